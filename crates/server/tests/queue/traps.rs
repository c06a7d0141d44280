//! The traps of §10, by their number, where no other module shows them: what emulators and the pages get wrong.

use std::time::Duration;

use testkit::{Request, TestServer, message_xml};

use crate::{pass, with_queue, with_stopped_clock};

/// 1: a stale receipt is 404, not 400; and a malformed one is told before the message is looked for.
#[test]
fn trap_1_stale_receipts() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    let taken = queue.get_one("abc", "");
    queue.send(put.delete("abc")).expect_error(404, "MessageNotFound");
    queue
        .send(Request::delete("/abc/messages/unknown?popreceipt=invalid"))
        .expect_error(400, "InvalidQueryParameterValue");
    queue.send(Request::delete("/abc/messages/unknown?popreceipt=AAAA")).expect_error(404, "MessageNotFound");
    queue.send(taken.delete("abc")).expect(204);
}

/// 2: 413 for a text of more than 65,536 bytes, however long its escaped form is.
#[test]
fn trap_2_the_limit_is_on_the_text() {
    let server = with_queue();
    let queue = server.queue();
    let escaped =
        format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", "&#x26;".repeat(65_536));
    queue.send(Request::post("/abc/messages").xml(&escaped)).expect(201);
    let refused = queue.send(Request::post("/abc/messages").xml(&message_xml(&"x".repeat(65_537))));
    assert_eq!(refused.expect_error(413, "RequestBodyTooLarge").element("MaxLimit"), "65536");
}

/// 4: a byte-order mark is read and never written.
#[test]
fn trap_4_byte_order_marks() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(Request::post("/abc/messages").xml(&format!("\u{FEFF}{}", message_xml("a")))).expect(201);
    let properties = "\u{FEFF}<StorageServiceProperties><Cors /></StorageServiceProperties>";
    queue.send(Request::put("/?restype=service&comp=properties").xml(properties)).expect(202);
    for target in [
        "/?comp=list",
        "/?restype=service&comp=properties",
        "/abc?comp=acl",
        "/abc/messages",
        "/abc/messages?peekonly=true",
        "/missing?comp=acl",
    ] {
        assert!(queue.send(Request::get(target)).text().starts_with("<?xml"), "{target}");
    }
}

/// 6: a visibility of zero is right for Put and Update, and wrong for Get.
#[test]
fn trap_6_a_visibility_of_zero() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put_with("abc", "visibilitytimeout=0", "a");
    queue.send(put.hide("abc", 0)).expect(204);
    queue
        .send(Request::get("/abc/messages?visibilitytimeout=0"))
        .expect_error(400, "OutOfRangeQueryParameterValue");
}

/// 7: a queue that exists is 204 only with the same metadata.
#[test]
fn trap_7_create_again() {
    let server = TestServer::start();
    let queue = server.queue();
    let create = |name: &str| queue.send(Request::put("/abc").header(name, "v")).status;
    assert_eq!([create("x-ms-meta-Ab"), create("x-ms-meta-aB"), create("x-ms-meta-b")], [201, 204, 409]);
}

/// 8: no body keeps the text, an empty text empties it.
#[test]
fn trap_8_no_body_and_an_empty_text() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    let kept = put.after(&queue.send(put.hide("abc", 0)).expect(204));
    assert_eq!(queue.texts("abc"), ["a"]);
    queue.send(kept.hide("abc", 0).xml(&message_xml(""))).expect(204);
    assert_eq!(queue.texts("abc"), [""]);
}

/// 10: with the page's order of the two headers that queues never carry.
#[test]
fn trap_10_content_encoding_comes_first() {
    let server = with_queue();
    let request = Request::get("/?comp=list").header("Content-Encoding", "a").header("Content-Language", "b");
    server.queue().send(request).expect(200);
}

/// 15: an expired token is 403 `AuthenticationFailed`.
#[test]
fn trap_15_expired_tokens() {
    let server = with_queue();
    let queue = server.queue();
    let sas = testkit::Sas::queue("2025-11-05", "abc").set("se", "2020-01-01T00:00:00Z");
    let answer = queue.send(Request::get("/abc?comp=metadata").sas(&sas.sign(queue.credentials())));
    answer.expect_error(403, "AuthenticationFailed");
}

/// 17: only Get Messages raises the dequeue count.
#[test]
fn trap_17_dequeue_counts() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    assert_eq!(queue.peek("abc")[0].dequeue_count, "0");
    queue.send(put.hide("abc", 0)).expect(204);
    assert_eq!(queue.peek("abc")[0].dequeue_count, "0");
    let taken = queue.get_one("abc", "");
    queue.send(taken.hide("abc", 0)).expect(204);
    assert_eq!((&*taken.dequeue_count, &*queue.peek("abc")[0].dequeue_count), ("1", "1"));
}

/// 19: a message put with a visibility of one second does not appear early, wherever in a second it was put.
#[test]
fn trap_19_sub_second_precision() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    clock.advance(Duration::from_millis(900));
    queue.put_with("abc", "visibilitytimeout=1", "a");
    clock.advance(Duration::from_millis(200));
    assert!(queue.texts("abc").is_empty(), "a second has begun, but none has passed");
    clock.advance(Duration::from_millis(799));
    assert!(queue.texts("abc").is_empty());
    clock.advance(Duration::from_millis(2));
    assert_eq!(queue.texts("abc"), ["a"]);
}

/// 20: the count includes invisible messages and no expired ones.
#[test]
fn trap_20_the_count() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "a");
    queue.put_with("abc", "visibilitytimeout=100", "b");
    queue.put_with("abc", "messagettl=1", "c");
    queue.get("abc", "");
    assert_eq!(queue.count("abc"), 3);
    pass(&clock, 1);
    assert_eq!(queue.count("abc"), 2);
}

/// 24: the reason phrase carries the error's text.
#[test]
fn trap_24_reason_phrases() {
    let server = with_queue();
    let refused = server.queue().send(Request::delete("/missing"));
    assert_eq!(refused.reason, "The specified queue does not exist.");
    assert_eq!(server.queue().send(Request::put("/abd")).reason, "Created");
}
