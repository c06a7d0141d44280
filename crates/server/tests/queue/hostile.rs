//! Hostile input: whatever comes, the answer is a refusal in good order, and the server goes on.

use testkit::{Queues, RawClient, Request, message_xml};

use crate::with_queue;

/// Sends bytes, and checks that the answer is a refusal, or that the connection ends.
#[track_caller]
fn check_refused(queue: &Queues<'_>, bytes: &[u8]) {
    let mut client = RawClient::connect(queue.addr()).unwrap();
    if let Ok(answer) = client.exchange(bytes) {
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    check_alive(queue);
}

#[track_caller]
fn check_alive(queue: &Queues<'_>) {
    queue.send(Request::get("/?comp=list")).expect(200);
}

fn post(body: impl Into<Vec<u8>>) -> Request {
    Request::post("/abc/messages").body("application/xml", body)
}

#[test]
fn huge_bodies_are_refused_by_every_operation_that_reads_one() {
    let server = with_queue();
    let queue = server.queue();
    let huge = vec![b'x'; 8 << 20];
    for target in [
        "/abc/messages/x?popreceipt=AAAA&visibilitytimeout=0",
        "/abc?comp=acl",
        "/?restype=service&comp=properties",
    ] {
        check_refused(&queue, &queue.bytes_of(&Request::put(target).body("application/xml", huge.clone())));
    }
    check_refused(&queue, &queue.bytes_of(&post(huge)));
    let announced = post("x").header("Content-Length", "99999999999");
    let mut client = queue.connect();
    client.send(&queue.bytes_of(&announced)).unwrap();
    let answer = client.read_response(false);
    assert!(answer.as_ref().is_ok_and(|answer| answer.status == 413), "{answer:?}");
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn a_message_of_many_needless_characters_is_bounded() {
    let server = with_queue();
    let queue = server.queue();
    let blanks = format!("<QueueMessage>{}<MessageText>a</MessageText></QueueMessage>", " ".repeat(300_000));
    let answer = queue.send(post(blanks));
    assert!(matches!(answer.status, 201 | 413), "{answer:?}");
    let comments = "<!-- c -->".repeat(200_000);
    let answer = queue.send(post(format!("{comments}{}", message_xml("a"))));
    answer.expect_error(413, "RequestBodyTooLarge");
}

#[test]
fn deep_and_wide_documents_are_refused_or_read() {
    let server = with_queue();
    let queue = server.queue();
    for depth in [100, 10_000, 40_000] {
        let deep = format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
        for request in [
            post(deep.clone()),
            Request::put("/abc?comp=acl").xml(&deep),
            Request::put("/?restype=service&comp=properties").xml(&deep),
        ] {
            let target = request.target.clone();
            let answer = queue.send(request);
            assert!(matches!(answer.status, 400 | 413), "{target} {depth}: {answer:?}");
        }
        // In a text, markup is removed.
        let inside =
            queue.send(post(format!("<QueueMessage><MessageText>{deep}</MessageText></QueueMessage>")));
        assert!(matches!(inside.status, 201 | 400 | 413), "{depth}: {inside:?}");
    }
    let attributes: String = (0..20_000).map(|n| format!(" a{n}='v'")).collect();
    let wide = format!("<QueueMessage{attributes}><MessageText>a</MessageText></QueueMessage>");
    let answer = queue.send(post(wide));
    assert!(matches!(answer.status, 201 | 400 | 413), "{answer:?}");
    let twice = queue.send(post("<QueueMessage a='1' a='2'><MessageText>a</MessageText></QueueMessage>"));
    twice.expect_error(400, "InvalidXmlDocument");
}

#[test]
fn entities_are_never_expanded() {
    let server = with_queue();
    let queue = server.queue();
    let bomb = "<!DOCTYPE l [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'>]>";
    let file = "<!DOCTYPE l [<!ENTITY c SYSTEM 'file:///etc/passwd'>]>";
    for head in [bomb, file, "<!DOCTYPE l SYSTEM 'http://127.0.0.1/x'>", "<!DOCTYPE l>"] {
        let text = format!("{head}<QueueMessage><MessageText>&c;</MessageText></QueueMessage>");
        queue.send(post(text)).expect_error(400, "InvalidXmlDocument");
        let acl = format!(
            "{head}<SignedIdentifiers><SignedIdentifier><Id>&c;</Id></SignedIdentifier></SignedIdentifiers>"
        );
        queue.send(Request::put("/abc?comp=acl").xml(&acl)).expect_error(400, "InvalidXmlDocument");
    }
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let server = with_queue();
    let queue = server.queue();
    for bytes in [
        &b"\xff\xfe<\0Q\0"[..],
        b"\xfe\xff\0<",
        b"<QueueMessage><MessageText>\xc3\x28</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>\xed\xa0\x80</MessageText></QueueMessage>",
        b"\0",
        b"\xef\xbb\xbf",
    ] {
        queue.send(post(bytes)).expect_error(400, "InvalidXmlDocument");
    }
    let latin = b"<?xml version='1.0' encoding='iso-8859-1'?><QueueMessage><MessageText>\xe4</MessageText></QueueMessage>";
    queue.send(post(&latin[..])).expect_error(400, "InvalidXmlDocument");
}

#[test]
fn odd_ids_and_receipts_match_nothing() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    let long = "a".repeat(4000);
    for id in [
        "%00",
        "..",
        "%2E%2E",
        "*",
        "'",
        "%20",
        "%F0%9F%98%80",
        "0",
        "00000000-0000-0000-0000-000000000000",
        &long,
        &put.id.replace('-', ""),
    ] {
        let answer = queue.send(Request::delete(&format!("/abc/messages/{id}?popreceipt={}", put.receipt)));
        assert!(matches!(answer.status, 400 | 404), "{id}: {answer:?}");
    }
    for receipt in
        ["%00%00%00%00", "AAA%3D", "%3D", "A", "AAAA%0A", "%F0%9F%98%80", &long, &"A".repeat(4001), "%zz"]
    {
        let answer = queue.send(Request::delete(&format!("/abc/messages/{}?popreceipt={receipt}", put.id)));
        assert!(matches!(answer.status, 400 | 403 | 404), "{receipt}: {answer:?}");
    }
    assert_eq!(queue.texts("abc"), ["a"]);
    queue.send(put.delete("abc")).expect(204);
}

#[test]
fn odd_paths_are_refused() {
    let server = with_queue();
    let queue = server.queue();
    for target in [
        "/%zz",
        "/%",
        "/%FF%FE",
        "/abc%00",
        "/..",
        "/abc/../abd",
        "/abc/messages/%zz?popreceipt=AAAA",
        "/abc%2Fmessages",
    ] {
        let answer = queue.send(Request::delete(target));
        assert!(matches!(answer.status, 400 | 403), "{target}: {answer:?}");
    }
    check_alive(&queue);
}

#[test]
fn odd_queries_are_refused_or_ignored() {
    let server = with_queue();
    let queue = server.queue();
    for query in [
        "comp=list&%zz=1",
        "comp=%zz",
        "comp=list&prefix=%FF",
        "comp=list&maxresults=%zz",
        "comp=list&comp=metadata",
        "&&&comp=list",
        "comp=list&=&==",
    ] {
        let answer = queue.send(Request::get(&format!("/?{query}")));
        assert!(matches!(answer.status, 200 | 400 | 403), "{query}: {answer:?}");
    }
    let many: String = (0..500).map(|n| format!("&p{n}={n}")).collect();
    let answer = queue.send(Request::get(&format!("/?comp=list{many}")));
    assert!(matches!(answer.status, 200 | 400 | 414 | 431), "{answer:?}");
    check_alive(&queue);
}

#[test]
fn many_headers_and_long_headers_are_refused() {
    let server = with_queue();
    let queue = server.queue();
    let many =
        (0..500).fold(Request::put("/abd"), |request, n| request.header(&format!("x-ms-meta-n{n}"), "v"));
    check_refused(&queue, &queue.bytes_of(&many));
    check_refused(&queue, &queue.bytes_of(&Request::put("/abd").header("x-ms-meta-a", &"v".repeat(200_000))));
    check_refused(&queue, &queue.bytes_of(&Request::put("/abd").header("x-ms-meta-\u{e4}", "v")));
    queue.send(Request::get("/abd?comp=metadata")).expect(404);
}

#[test]
fn half_a_request_holds_nobody_up() {
    let server = with_queue();
    let queue = server.queue();
    let bytes = queue.bytes_of(&post(message_xml("a")));
    for end in [1, 20, bytes.len() / 2, bytes.len() - 1] {
        let mut client = queue.connect();
        client.send(&bytes[..end]).unwrap();
        check_alive(&queue);
        drop(client);
    }
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn a_body_where_none_belongs_changes_nothing() {
    let server = with_queue();
    let queue = server.queue();
    for request in [Request::put("/abd"), Request::put("/abc?comp=metadata")] {
        let answer = queue.send(request.xml("<anything />"));
        assert!(matches!(answer.status, 201 | 204 | 400), "{answer:?}");
    }
    let answer = queue.send(Request::get("/?comp=list").xml("<anything />"));
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    check_alive(&queue);
}
