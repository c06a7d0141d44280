//! Update Message (§5.5).

use std::time::Duration;

use testkit::{Message, Request, TestServer, message_xml};

use crate::{pass, with_queue, with_stopped_clock};

fn with_taken() -> (TestServer, Message) {
    let server = with_queue();
    server.queue().put("abc", "text");
    let taken = server.queue().get_one("abc", "");
    (server, taken)
}

#[test]
fn the_answer_has_a_receipt_and_a_time() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "text");
    let taken = queue.get_one("abc", "");
    let updated = queue.send(taken.hide("abc", 100)).expect(204);
    assert_eq!(updated.required("x-ms-time-next-visible"), "Fri, 26 Jun 2026 23:40:52 GMT");
    assert_ne!(updated.required("x-ms-popreceipt"), taken.receipt);
}

/// Trap 8.
#[test]
fn without_a_body_the_text_stays() {
    let (server, taken) = with_taken();
    let queue = server.queue();
    let updated = queue.send(taken.hide("abc", 0)).expect(204);
    assert_eq!(queue.texts("abc"), ["text"]);
    let mut without_length = taken.after(&updated).hide("abc", 0).without("Content-Length");
    without_length.body = None;
    let updated = queue.send(without_length).expect(204);
    let with_type = taken.after(&updated).hide("abc", 0).header("Content-Type", "application/xml");
    queue.send(with_type).expect(204);
    assert_eq!(queue.texts("abc"), ["text"]);
}

#[test]
fn a_body_replaces_the_text() {
    let (server, taken) = with_taken();
    let queue = server.queue();
    let mut message = taken;
    for text in ["other", "", "<&>", &"x".repeat(65_536)] {
        let updated = queue.send(message.hide("abc", 0).xml(&message_xml(text))).expect(204);
        message = message.after(&updated);
        assert_eq!(queue.texts("abc"), [text]);
    }
    let updated = queue.send(message.hide("abc", 0).xml("<QueueMessage><MessageText/></QueueMessage>"));
    updated.expect(204);
    assert_eq!(queue.texts("abc"), [""]);
}

#[test]
fn wrong_bodies_are_refused_and_the_message_stays() {
    let (server, taken) = with_taken();
    let queue = server.queue();
    for bad in ["nothing", "<QueueMessage/>", "<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>"]
    {
        queue.send(taken.hide("abc", 0).xml(bad)).expect_error(400, "InvalidXmlDocument");
    }
    let large = message_xml(&"x".repeat(65_537));
    let refused = queue.send(taken.hide("abc", 0).xml(&large)).expect_error(413, "RequestBodyTooLarge");
    assert_eq!(refused.element("MaxLimit"), "65536");
    queue.send(taken.hide("abc", 0)).expect(204);
    assert_eq!(queue.texts("abc"), ["text"]);
}

#[test]
fn counts_and_times_of_the_message_stay() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "text");
    let taken = queue.get_one("abc", "");
    pass(&clock, 5);
    queue.send(taken.hide("abc", 0)).expect(204);
    let found = &queue.peek("abc")[0];
    assert_eq!((&found.id, &found.inserted, &found.expires), (&taken.id, &taken.inserted, &taken.expires));
    assert_eq!(found.dequeue_count, "1");
}

#[test]
fn a_message_is_hidden_from_now_on() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "text");
    let taken = queue.get_one("abc", "visibilitytimeout=10");
    pass(&clock, 9);
    let updated = queue.send(taken.hide("abc", 10)).expect(204);
    clock.advance(Duration::from_millis(9_999));
    assert!(queue.get("abc", "").is_empty());
    clock.advance(Duration::from_millis(2));
    let again = queue.get_one("abc", "");
    assert_eq!((again.id, &*again.dequeue_count), (taken.id.clone(), "2"));
    queue.send(taken.after(&updated).delete("abc")).expect_error(404, "MessageNotFound");
}

#[test]
fn a_hidden_time_of_zero_gives_the_message_back_at_once() {
    let (server, taken) = with_taken();
    let queue = server.queue();
    assert!(queue.get("abc", "").is_empty());
    queue.send(taken.hide("abc", 0)).expect(204);
    assert_eq!(queue.get_one("abc", "").dequeue_count, "2");
}

#[test]
fn a_message_that_was_never_taken_can_be_updated() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "text");
    let updated = queue.send(put.hide("abc", 0).xml(&message_xml("new"))).expect(204);
    assert_eq!(queue.texts("abc"), ["new"]);
    queue.send(put.after(&updated).delete("abc")).expect(204);
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn the_time_is_needed_and_checked() {
    let (server, taken) = with_taken();
    let queue = server.queue();
    let path = taken.path("abc");
    // Trap 26.
    let missing = queue.send(Request::put(&path)).expect_error(400, "InvalidQueryParameterValue");
    assert_eq!(missing.element("QueryParameterName"), "visibilitytimeout");
    for bad in ["-1", "604801", "99999999999999999999"] {
        let refused = queue.send(Request::put(&format!("{path}&visibilitytimeout={bad}")));
        let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
        assert_eq!(
            (refused.element("MinimumAllowed"), refused.element("MaximumAllowed")),
            ("0".into(), "604800".into())
        );
    }
    for bad in ["x", "", "1.5"] {
        let refused = queue.send(Request::put(&format!("{path}&visibilitytimeout={bad}")));
        refused.expect_error(400, "InvalidQueryParameterValue");
    }
    queue.send(taken.hide("abc", 604_800)).expect(204);
}

/// Trap 25.
#[test]
fn a_message_may_be_hidden_beyond_its_life_which_still_ends() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put_with("abc", "messagettl=60", "short");
    let taken = queue.get_one("abc", "");
    let updated = queue.send(taken.hide("abc", 604_800)).expect(204);
    pass(&clock, 59);
    let updated = queue.send(taken.after(&updated).hide("abc", 100)).expect(204);
    assert_eq!(queue.count("abc"), 1);
    pass(&clock, 1);
    assert_eq!(queue.count("abc"), 0);
    queue.send(taken.after(&updated).hide("abc", 0)).expect_error(404, "MessageNotFound");
}

/// §5.5 [wire]: the id need not be a GUID; it just does not match.
#[test]
fn an_unknown_message_is_not_found() {
    let (server, taken) = with_taken();
    let queue = server.queue();
    for id in ["test-message-b9ecbdb2", "a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab", "%C3%A4", "a%2Fb", "."] {
        for receipt in ["bjoiqbcycpsabwpecydj", &taken.receipt] {
            let path = format!("/abc/messages/{id}?popreceipt={receipt}&visibilitytimeout=0");
            let refused = queue.send(Request::put(&path)).expect_error(404, "MessageNotFound");
            assert_eq!(refused.error_message(), "The specified message does not exist.", "{id}");
        }
    }
}

#[test]
fn updates_came_with_2011_08_18() {
    let (server, taken) = with_taken();
    let queue = server.queue();
    let old = queue.send(taken.hide("abc", 0).version("2009-09-19"));
    assert_eq!(old.status, 405, "{old:?}");
    queue.send(taken.hide("abc", 0).version("2011-08-18")).expect(204);
}
