//! Peek Messages (§5.4).

use testkit::Request;

use crate::{pass, with_queue, with_stopped_clock};

#[test]
fn the_answer_has_five_elements_in_order() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    let put = queue.put_with("abc", "messagettl=-1", "message1");
    let peeked = queue.send(Request::get("/abc/messages?peekonly=true")).expect(200);
    assert_eq!(
        (peeked.required("Content-Type"), peeked.required("Cache-Control")),
        ("application/xml", "no-cache")
    );
    assert_eq!(
        peeked.text(),
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>{}</MessageId><InsertionTime>Fri, 26 Jun 2026 23:39:12 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><DequeueCount>0</DequeueCount><MessageText>message1</MessageText></QueueMessage></QueueMessagesList>",
            put.id
        )
    );
}

/// Trap 17.
#[test]
fn peeking_changes_nothing() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    for _ in 0..3 {
        assert_eq!(queue.peek("abc")[0].dequeue_count, "0");
    }
    queue.send(put.hide("abc", 0)).expect(204);
    assert_eq!(queue.get_one("abc", "").dequeue_count, "1");
}

#[test]
fn only_visible_messages_are_shown_in_their_order() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "1");
    queue.put_with("abc", "visibilitytimeout=100", "hidden");
    queue.put("abc", "2");
    queue.put("abc", "3");
    assert_eq!(queue.texts("abc"), ["1", "2", "3"]);
    queue.get_one("abc", "");
    assert_eq!(queue.texts("abc"), ["2", "3"]);
    let one = queue.send(Request::get("/abc/messages?peekonly=true")).expect(200);
    assert_eq!(one.elements("MessageText"), ["2"]);
    let two = queue.send(Request::get("/abc/messages?numofmessages=2&peekonly=True")).expect(200);
    assert_eq!(two.elements("MessageText"), ["2", "3"]);
}

#[test]
fn between_1_and_32_messages_are_shown() {
    let server = with_queue();
    let queue = server.queue();
    (0..40).for_each(|n| drop(queue.put("abc", &n.to_string())));
    assert_eq!(queue.peek("abc").len(), 32);
    for bad in ["0", "33", "-1"] {
        let refused = queue.send(Request::get(&format!("/abc/messages?peekonly=true&numofmessages={bad}")));
        let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
        assert_eq!(
            (refused.element("MinimumAllowed"), refused.element("MaximumAllowed")),
            ("1".into(), "32".into())
        );
    }
}

#[test]
fn a_message_shows_how_often_it_was_taken() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "a");
    queue.get_one("abc", "visibilitytimeout=1");
    pass(&clock, 1);
    assert_eq!(queue.peek("abc")[0].dequeue_count, "1");
}
