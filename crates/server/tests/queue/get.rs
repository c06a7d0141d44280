//! Get Messages (§5.3) and the model behind it (§5.1).

use std::time::Duration;

use testkit::{Request, TestServer};

use crate::{pass, with_queue, with_stopped_clock};

fn texts(server: &TestServer, query: &str) -> Vec<String> {
    server.queue().get("abc", query).into_iter().map(|message| message.text).collect()
}

#[test]
fn the_answer_has_seven_elements_in_order() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "message1");
    let taken = queue.send(Request::get("/abc/messages?numofmessages=32&visibilitytimeout=30")).expect(200);
    assert_eq!(
        (taken.required("Content-Type"), taken.required("Cache-Control")),
        ("application/xml", "no-cache")
    );
    let message = &testkit::messages(&taken)[0];
    assert_eq!(
        taken.text(),
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>{}</MessageId><InsertionTime>Fri, 26 Jun 2026 23:39:12 GMT</InsertionTime><ExpirationTime>Fri, 03 Jul 2026 23:39:12 GMT</ExpirationTime><PopReceipt>{}</PopReceipt><TimeNextVisible>Fri, 26 Jun 2026 23:39:42 GMT</TimeNextVisible><DequeueCount>1</DequeueCount><MessageText>message1</MessageText></QueueMessage></QueueMessagesList>",
            message.id, message.receipt
        )
    );
}

#[test]
fn an_empty_queue_gives_an_empty_list_at_once() {
    let server = with_queue();
    for query in ["", "?numofmessages=32", "?peekonly=true"] {
        let none = server.queue().send(Request::get(&format!("/abc/messages{query}"))).expect(200);
        assert_eq!(none.text(), "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList />");
    }
}

#[test]
fn messages_come_first_in_first_out() {
    let server = with_queue();
    let all: Vec<String> = (0..50).map(|n| format!("m{n}")).collect();
    all.iter().for_each(|text| drop(server.queue().put("abc", text)));
    assert_eq!(texts(&server, ""), all[..1]);
    assert_eq!(texts(&server, "numofmessages=2"), all[1..3]);
    assert_eq!(texts(&server, "numofmessages=32"), all[3..35]);
    assert_eq!(texts(&server, "numofmessages=32"), all[35..]);
    assert!(texts(&server, "numofmessages=32").is_empty());
}

#[test]
fn a_taken_message_is_hidden_for_thirty_seconds_by_default() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "a");
    let first = queue.get_one("abc", "");
    assert_eq!(first.visible, "Fri, 26 Jun 2026 23:39:42 GMT");
    clock.advance(Duration::from_millis(29_999));
    assert!(queue.get("abc", "").is_empty());
    clock.advance(Duration::from_millis(2));
    let second = queue.get_one("abc", "");
    assert_eq!((second.id, second.text, &*second.dequeue_count), (first.id, first.text, "2"));
    assert_ne!(second.receipt, first.receipt);
    assert_eq!((second.inserted, second.expires), (first.inserted, first.expires));
}

#[test]
fn each_taking_raises_the_dequeue_count() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "a");
    for count in 1..=20 {
        assert_eq!(queue.get_one("abc", "visibilitytimeout=1").dequeue_count, count.to_string());
        pass(&clock, 1);
    }
    assert_eq!(queue.peek("abc")[0].dequeue_count, "20");
}

/// §5.1: ascending by the time at which messages become visible, then by their insertion.
#[test]
fn a_message_that_comes_back_stands_behind_those_that_were_visible_before() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "first");
    assert_eq!(queue.get_one("abc", "visibilitytimeout=10").text, "first");
    pass(&clock, 5);
    queue.put("abc", "second");
    pass(&clock, 10);
    queue.put("abc", "third");
    pass(&clock, 0);
    assert_eq!(texts(&server, "numofmessages=32"), ["second", "first", "third"]);
}

#[test]
fn delayed_messages_stand_where_they_become_visible() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put_with("abc", "visibilitytimeout=20", "twenty");
    queue.put_with("abc", "visibilitytimeout=10", "ten");
    queue.put("abc", "now");
    pass(&clock, 30);
    queue.put("abc", "last");
    pass(&clock, 0);
    assert_eq!(texts(&server, "numofmessages=32"), ["now", "ten", "twenty", "last"]);
}

/// Trap 19: times have a resolution of a second only on the wire.
#[test]
fn order_within_a_second_is_kept() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    for n in 0..20 {
        queue.put_with("abc", "visibilitytimeout=1", &n.to_string());
        clock.advance(Duration::from_millis(10));
    }
    pass(&clock, 2);
    let expected: Vec<String> = (0..20).map(|n: i32| n.to_string()).collect();
    assert_eq!(texts(&server, "numofmessages=32"), expected);
}

#[test]
fn between_1_and_32_messages_can_be_taken_for_1_second_to_7_days() {
    let server = with_queue();
    let queue = server.queue();
    for good in ["numofmessages=1", "numofmessages=32", "visibilitytimeout=1", "visibilitytimeout=604800"] {
        queue.get("abc", good);
    }
    for (query, name, value, min, max) in [
        ("numofmessages=0", "numofmessages", "0", "1", "32"),
        ("numofmessages=33", "numofmessages", "33", "1", "32"),
        ("numofmessages=-1", "numofmessages", "-1", "1", "32"),
        ("numofmessages=100", "numofmessages", "100", "1", "32"),
        ("numofmessages=99999999999999999999", "numofmessages", "99999999999999999999", "1", "32"),
        // Trap 6.
        ("visibilitytimeout=0", "visibilitytimeout", "0", "1", "604800"),
        ("visibilitytimeout=-1", "visibilitytimeout", "-1", "1", "604800"),
        ("visibilitytimeout=604801", "visibilitytimeout", "604801", "1", "604800"),
    ] {
        let refused = queue.send(Request::get(&format!("/abc/messages?{query}")));
        let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
        let message =
            "One of the query parameters specified in the request URI is outside the permissible range.";
        assert_eq!(refused.error_message(), message);
        let found = ["QueryParameterName", "QueryParameterValue", "MinimumAllowed", "MaximumAllowed"];
        assert_eq!(found.map(|element| refused.element(element)), [name, value, min, max].map(str::to_owned));
    }
    for bad in [
        "numofmessages=x",
        "numofmessages=",
        "numofmessages=1.0",
        "visibilitytimeout=y",
        "visibilitytimeout=",
    ] {
        queue
            .send(Request::get(&format!("/abc/messages?{bad}")))
            .expect_error(400, "InvalidQueryParameterValue");
    }
}

#[test]
fn a_refused_request_takes_nothing() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "a");
    queue.send(Request::get("/abc/messages?numofmessages=33")).expect(400);
    queue.send(Request::get("/abc/messages?peekonly=maybe")).expect_error(400, "InvalidQueryParameterValue");
    queue.send(Request::get("/abc/messages").unsigned()).expect(401);
    assert_eq!(queue.get_one("abc", "").dequeue_count, "1");
}

/// §5.3 [wire]: the next time of visibility may lie after the end of the message's life.
#[test]
fn a_message_may_be_taken_for_longer_than_it_lives() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put_with("abc", "messagettl=10", "short");
    let taken = queue.get_one("abc", "visibilitytimeout=100");
    assert_eq!(taken.visible, "Fri, 26 Jun 2026 23:40:52 GMT");
    assert_eq!(taken.expires, "Fri, 26 Jun 2026 23:39:22 GMT");
    pass(&clock, 10);
    assert_eq!(queue.count("abc"), 0);
    queue.send(taken.delete("abc")).expect_error(404, "MessageNotFound");
}

#[test]
fn peekonly_false_takes() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "a");
    assert_eq!(queue.get_one("abc", "peekonly=false").dequeue_count, "1");
    assert!(queue.get("abc", "").is_empty());
}

#[test]
fn many_takers_never_get_the_same_message() {
    let server = with_queue();
    let count = 200;
    (0..count).for_each(|n| drop(server.queue().put("abc", &n.to_string())));
    let bytes = server.queue().bytes_of(&Request::get("/abc/messages?numofmessages=7"));
    let mut taken: Vec<String> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..8)
            .map(|_| {
                let (mut client, bytes) = (server.queue().connect(), &bytes);
                scope.spawn(move || {
                    let mut found = Vec::new();
                    loop {
                        let messages = testkit::messages(&client.exchange(bytes).unwrap().expect(200));
                        if messages.is_empty() {
                            return found;
                        }
                        found.extend(messages.into_iter().map(|message| message.text));
                    }
                })
            })
            .collect();
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    let found = taken.len();
    taken.sort();
    taken.dedup();
    assert_eq!((found, taken.len()), (count, count));
}

#[test]
fn large_messages_come_thirty_two_at_a_time() {
    let server = with_queue();
    let queue = server.queue();
    let text = "<".repeat(65_536);
    (0..32).for_each(|_| drop(queue.put("abc", &text)));
    let taken = queue.get("abc", "numofmessages=32");
    assert_eq!(taken.len(), 32);
    assert!(taken.iter().all(|message| message.text == text));
}
