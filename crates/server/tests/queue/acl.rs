//! Get Queue ACL and Set Queue ACL (§4.6, §4.7).

use testkit::{Queues, Request, Response};

use crate::with_queue;

fn set(body: &str) -> Request {
    Request::put("/abc?comp=acl").xml(body)
}

#[track_caller]
fn get(queue: &Queues<'_>) -> Response {
    queue.send(Request::get("/abc?comp=acl")).expect(200)
}

fn identifier(id: &str, policy: &str) -> String {
    format!("<SignedIdentifier><Id>{id}</Id>{policy}</SignedIdentifier>")
}

fn document(inside: &str) -> String {
    format!("<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers>{inside}</SignedIdentifiers>")
}

fn policy(fields: &str) -> String {
    format!("<AccessPolicy>{fields}</AccessPolicy>")
}

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

#[test]
fn a_queue_begins_without_policies() {
    let server = with_queue();
    let found = get(&server.queue());
    assert_eq!(found.text(), format!("{HEAD}<SignedIdentifiers />"));
    assert_eq!(found.required("Content-Type"), "application/xml");
    assert_eq!(found.required("Cache-Control"), "no-cache");
}

#[test]
fn policies_are_shown_with_seven_digits_of_a_second() {
    let server = with_queue();
    let queue = server.queue();
    let times = "<Start>2022-10-27T22:01:36Z</Start><Expiry>2022-10-27T23:06:36Z</Expiry>";
    let body = document(&identifier("testid", &policy(&format!("{times}<Permission>r</Permission>"))));
    queue.send(set(&body)).expect(204);
    assert_eq!(
        get(&queue).text(),
        format!(
            "{HEAD}<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2022-10-27T22:01:36.0000000Z</Start><Expiry>2022-10-27T23:06:36.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        )
    );
    for (sent, shown) in [
        ("2022-10-27", "2022-10-27T00:00:00.0000000Z"),
        ("2022-10-27T22:01Z", "2022-10-27T22:01:00.0000000Z"),
        ("2022-10-27T22:01:36.123Z", "2022-10-27T22:01:36.1230000Z"),
        ("2022-10-27T22:01:36.1234567Z", "2022-10-27T22:01:36.1234567Z"),
    ] {
        queue
            .send(set(&document(&identifier("i", &policy(&format!("<Expiry>{sent}</Expiry>"))))))
            .expect(204);
        assert_eq!(get(&queue).element("Expiry"), shown);
    }
}

#[test]
fn head_has_no_body() {
    let server = with_queue();
    let head = server.queue().send(Request::head("/abc?comp=acl")).expect(200);
    assert_eq!((head.body.len(), head.required("Content-Type")), (0, "application/xml"));
}

#[test]
fn what_a_policy_leaves_open_is_left_out() {
    let server = with_queue();
    let queue = server.queue();
    for body in
        [identifier("i", ""), identifier("i", "<AccessPolicy />"), identifier("i", &policy("<Permission />"))]
    {
        queue.send(set(&document(&body))).expect(204);
        let found = get(&queue);
        assert_eq!(found.elements("Id"), ["i"]);
        for absent in ["<Start", "<Expiry"] {
            assert!(!found.text().contains(absent), "{found:?}");
        }
    }
}

#[test]
fn every_set_of_letters_in_order_is_a_permission() {
    let server = with_queue();
    let queue = server.queue();
    for letters in ["r", "a", "u", "p", "ra", "rp", "au", "raup", "rup"] {
        let fields = policy(&format!("<Permission>{letters}</Permission>"));
        queue.send(set(&document(&identifier("i", &fields)))).expect(204);
        assert_eq!(get(&queue).element("Permission"), letters);
    }
}

#[test]
fn setting_replaces_all_policies() {
    let server = with_queue();
    let queue = server.queue();
    let five: String = (1..=5).map(|n| identifier(&format!("p{n}"), "")).collect();
    queue.send(set(&document(&five))).expect(204);
    assert_eq!(get(&queue).elements("Id"), ["p1", "p2", "p3", "p4", "p5"]);
    queue.send(set(&document(&identifier("other", "")))).expect(204);
    assert_eq!(get(&queue).elements("Id"), ["other"]);
    for nothing in [document(""), "<SignedIdentifiers />".to_owned(), String::new()] {
        queue.send(set(&document(&five))).expect(204);
        queue.send(set(&nothing)).expect(204);
        assert!(get(&queue).elements("Id").is_empty(), "{nothing}");
    }
    queue.send(set(&document(&five))).expect(204);
    queue.send(Request::put("/abc?comp=acl")).expect(204);
    assert!(get(&queue).elements("Id").is_empty());
}

#[test]
fn an_id_has_1_to_64_characters_and_occurs_once() {
    let server = with_queue();
    let queue = server.queue();
    let longest = "i".repeat(64);
    for good in [&*longest, "a b", "\u{e4}\u{1F600}", "&lt;&amp;"] {
        queue.send(set(&document(&identifier(good, "")))).expect(204);
        assert_eq!(get(&queue).elements("Id").len(), 1);
    }
    let twice = identifier("i", "").repeat(2);
    for bad in [identifier("", ""), identifier(&format!("{longest}i"), ""), twice] {
        queue.send(set(&document(&bad))).expect_error(400, "InvalidXmlDocument");
    }
}

#[test]
fn wrong_documents_are_refused_and_change_nothing() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(set(&document(&identifier("kept", "")))).expect(204);
    let six: String = (1..=6).map(|n| identifier(&format!("p{n}"), "")).collect();
    let field = |field: &str| document(&identifier("i", &policy(field)));
    for bad in [
        document(&six),
        field("<Permission>pr</Permission>"),
        field("<Permission>d</Permission>"),
        field("<Permission>rr</Permission>"),
        field("<Permission>R</Permission>"),
        field("<Start>soon</Start>"),
        field("<Expiry>2022-13-01</Expiry>"),
        field("<Other>x</Other>"),
        document("<Other />"),
        document("text"),
        document("<SignedIdentifier><AccessPolicy /></SignedIdentifier>"),
        "<Wrong />".to_owned(),
        "<SignedIdentifiers>".to_owned(),
        "nothing".to_owned(),
        "<!DOCTYPE a [<!ENTITY b 'c'>]><SignedIdentifiers />".to_owned(),
    ] {
        let refused = queue.send(set(&bad)).expect_error(400, "InvalidXmlDocument");
        assert_eq!(refused.error_message(), "XML specified is not syntactically valid.", "{bad}");
        for name in ["LineNumber", "LinePosition", "Reason"] {
            assert_eq!(refused.elements(name).len(), 1, "{name} for {bad}");
        }
    }
    assert_eq!(get(&queue).elements("Id"), ["kept"]);
}

#[test]
fn a_byte_order_mark_is_no_mistake() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(set(&format!("\u{FEFF}{}", crate::POLICY))).expect(204);
    assert_eq!(get(&queue).elements("Id"), ["p"]);
    assert!(get(&queue).text().starts_with("<?xml"));
}

#[test]
fn policies_came_with_2012_02_12() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(Request::get("/abc?comp=acl").version("2012-02-12")).expect(200);
    let old = queue.send(Request::get("/abc?comp=acl").version("2011-08-18"));
    old.expect_error(400, "InvalidQueryParameterValue");
}
