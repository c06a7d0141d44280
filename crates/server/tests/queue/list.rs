//! List Queues (§4.2): pages, prefixes, markers, metadata.

use testkit::{Queues, Request, Response, TestServer};

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

fn with_queues(names: &[&str]) -> TestServer {
    let server = TestServer::start();
    names.iter().for_each(|name| server.queue().create(name));
    server
}

#[track_caller]
fn list(queue: &Queues<'_>, query: &str) -> Response {
    queue.send(Request::get(&format!("/?comp=list{query}"))).expect(200)
}

#[track_caller]
fn check(queue: &Queues<'_>, query: &str, expected: &[&str]) {
    assert_eq!(list(queue, query).elements("Name"), expected, "{query}");
}

#[test]
fn queues_are_listed_in_the_order_of_their_names() {
    let server = with_queues(&["b2b", "abc", "a-b", "ab1", "000", "zzz", "abcd"]);
    check(&server.queue(), "", &["000", "a-b", "ab1", "abc", "abcd", "b2b", "zzz"]);
}

#[test]
fn the_document_is_that_of_the_service() {
    let server = with_queues(&["listqueue0", "listqueue1", "listqueue2", "listqueue3", "other"]);
    let queue = server.queue();
    let endpoint = format!("<EnumerationResults ServiceEndpoint=\"{}/\">", queue.base());
    let page = list(&queue, "&prefix=listqueue&maxresults=3");
    assert_eq!(page.required("Content-Type"), "application/xml");
    assert_eq!(page.required("Cache-Control"), "no-cache");
    assert_eq!(
        page.text(),
        format!(
            "{HEAD}{endpoint}<Prefix>listqueue</Prefix><MaxResults>3</MaxResults><Queues><Queue><Name>listqueue0</Name></Queue><Queue><Name>listqueue1</Name></Queue><Queue><Name>listqueue2</Name></Queue></Queues><NextMarker>/devstoreaccount1/listqueue3</NextMarker></EnumerationResults>"
        )
    );
    queue.send(Request::put("/listqueue3?comp=metadata").header("x-ms-meta-color", "red")).expect(204);
    let rest = list(&queue, "&prefix=listqueue&marker=%2Fdevstoreaccount1%2Flistqueue3&include=metadata");
    assert_eq!(
        rest.text(),
        format!(
            "{HEAD}{endpoint}<Prefix>listqueue</Prefix><Marker>/devstoreaccount1/listqueue3</Marker><Queues><Queue><Name>listqueue3</Name><Metadata><color>red</color></Metadata></Queue></Queues><NextMarker /></EnumerationResults>"
        )
    );
}

#[test]
fn an_empty_list_has_empty_elements() {
    let server = TestServer::start();
    let text = list(&server.queue(), "").text().to_owned();
    assert!(text.ends_with("<Queues /><NextMarker /></EnumerationResults>"), "{text}");
    for absent in ["<Prefix", "<Marker", "<MaxResults"] {
        assert!(!text.contains(absent), "{text}");
    }
}

/// Trap 21: some clients leave out the slash.
#[test]
fn the_account_may_have_a_slash_or_not() {
    let server = with_queues(&["abc"]);
    for target in ["?comp=list", "/?comp=list"] {
        assert_eq!(server.queue().send(Request::get(target)).expect(200).elements("Name"), ["abc"]);
    }
}

#[test]
fn a_prefix_selects() {
    let server = with_queues(&["abc", "abd", "b-a", "bcd"]);
    let queue = server.queue();
    check(&queue, "&prefix=a", &["abc", "abd"]);
    check(&queue, "&prefix=abc", &["abc"]);
    check(&queue, "&prefix=b-", &["b-a"]);
    check(&queue, "&prefix=c", &[]);
    check(&queue, "&prefix=A", &[]);
    check(&queue, "&prefix=abcdefgh", &[]);
    check(&queue, "&prefix=", &["abc", "abd", "b-a", "bcd"]);
    check(&queue, "&prefix=%C3%A4%3C%26", &[]);
    assert!(list(&queue, "&prefix=%3C%26").text().contains("<Prefix>&lt;&amp;</Prefix>"));
}

#[test]
fn pages_lead_through_all_queues() {
    let names: Vec<String> = (0..23).map(|n| format!("q-{n:02}")).collect();
    let server = with_queues(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let queue = server.queue();
    for size in [1, 5, 22, 23, 24, 5000] {
        let (mut found, mut marker, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let mut request = Request::get(&format!("/?comp=list&maxresults={size}"));
            if !marker.is_empty() {
                request = request.query("marker", &marker);
            }
            let page = queue.send(request).expect(200);
            let listed = page.elements("Name");
            assert!(listed.len() <= size);
            found.extend(listed);
            pages += 1;
            marker = page.element("NextMarker");
            if marker.is_empty() {
                break;
            }
        }
        assert_eq!(found, names);
        assert_eq!(pages, names.len().div_ceil(size), "pages of {size}");
    }
}

#[test]
fn a_page_within_a_prefix_ends_with_the_prefix() {
    let server = with_queues(&["aaa", "abc", "abd", "bbb"]);
    let queue = server.queue();
    let page = list(&queue, "&prefix=ab&maxresults=2");
    assert_eq!((page.elements("Name").len(), page.element("NextMarker")), (2, String::new()));
    let page = list(&queue, "&prefix=ab&maxresults=1");
    let rest = queue.send(Request::get("/?comp=list&prefix=ab").query("marker", &page.element("NextMarker")));
    assert_eq!(rest.expect(200).elements("Name"), ["abd"]);
}

/// Trap 5: a marker names the first queue of the next page, so it is part of that page.
#[test]
fn a_marker_survives_the_deletion_of_its_queue() {
    let server = with_queues(&["aaa", "bbb", "ccc"]);
    let queue = server.queue();
    let marker = list(&queue, "&maxresults=1").element("NextMarker");
    let from = |marker: &str| queue.send(Request::get("/?comp=list").query("marker", marker)).expect(200);
    assert_eq!(from(&marker).elements("Name"), ["bbb", "ccc"]);
    queue.send(Request::delete("/bbb")).expect(204);
    assert_eq!(from(&marker).elements("Name"), ["ccc"]);
    queue.send(Request::delete("/ccc")).expect(204);
    assert!(from(&marker).elements("Name").is_empty());
}

#[test]
fn a_marker_may_be_a_name_and_not_of_another_account() {
    let server = with_queues(&["aaa", "bbb"]);
    let queue = server.queue();
    check(&queue, "&marker=bbb", &["bbb"]);
    check(&queue, "&marker=aab", &["bbb"]);
    check(&queue, "&marker=", &["aaa", "bbb"]);
    for bad in ["%2F", "%2Fother%2Fbbb", "%2Fdevstoreaccount1%2F", "a%2Fb", "%2F%2F%2F"] {
        let refused = queue.send(Request::get(&format!("/?comp=list&marker={bad}")));
        assert_eq!(
            refused.expect_error(400, "InvalidMarker").error_message(),
            "The specified marker is invalid."
        );
    }
}

#[test]
fn metadata_are_listed_on_request() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.create("abc");
    queue.send(Request::put("/abd").header("x-ms-meta-color", "a<b&c").header("x-ms-meta-e", "")).expect(201);
    let plain = list(&queue, "").text().to_owned();
    assert!(!plain.contains("Metadata"), "{plain}");
    for query in ["&include=metadata", "&include=Metadata", "&INCLUDE=metadata"] {
        let text = list(&queue, query).text().to_owned();
        assert!(text.contains("<Queue><Name>abc</Name><Metadata /></Queue>"), "{text}");
        let metadata = "<Name>abd</Name><Metadata><color>a&lt;b&amp;c</color><e /></Metadata>";
        assert!(text.contains(metadata), "{text}");
    }
}

#[test]
fn the_size_of_a_page_is_checked() {
    let server = with_queues(&["abc", "abd"]);
    let queue = server.queue();
    for bad in ["0", "-1", "-99999999999999999999"] {
        let refused = queue.send(Request::get(&format!("/?comp=list&maxresults={bad}")));
        let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
        assert_eq!(refused.element("QueryParameterName"), "maxresults");
        assert_eq!(refused.element("QueryParameterValue"), bad);
        assert_eq!(
            (refused.element("MinimumAllowed"), refused.element("MaximumAllowed")),
            ("1".into(), "5000".into())
        );
    }
    for bad in ["x", "1.5", "1e1", "%20"] {
        let refused = queue.send(Request::get(&format!("/?comp=list&maxresults={bad}")));
        assert_eq!(
            refused.expect_error(400, "InvalidQueryParameterValue").element("QueryParameterName"),
            "maxresults"
        );
    }
    // More than the maximum is treated as the maximum.
    for large in ["5000", "5001", "999999999999"] {
        check(&queue, &format!("&maxresults={large}"), &["abc", "abd"]);
    }
}

#[test]
fn what_to_include_is_checked() {
    let server = with_queues(&[]);
    let refused = server.queue().send(Request::get("/?comp=list&include=acl"));
    let refused = refused.expect_error(400, "InvalidQueryParameterValue");
    assert_eq!(
        (refused.element("QueryParameterName"), refused.element("QueryParameterValue")),
        ("include".into(), "acl".into())
    );
}

/// §2.4: before 2013-08-15 the list named the account, and the URL of each queue.
#[test]
fn old_versions_list_the_urls_of_queues() {
    let server = with_queues(&["abc"]);
    let queue = server.queue();
    let old = queue.send(Request::get("/?comp=list").version("2012-02-12")).expect(200);
    assert!(old.text().contains("<EnumerationResults AccountName=\""), "{old:?}");
    assert_eq!(old.element("Url"), format!("{}/abc", queue.base()));
    let new = queue.send(Request::get("/?comp=list").version("2013-08-15")).expect(200);
    assert!(new.text().contains("ServiceEndpoint=") && new.elements("Url").is_empty(), "{new:?}");
}
