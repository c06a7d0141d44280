//! The end of a message's life (§5.1): it vanishes on time, wherever it stands.

use std::time::Duration;

use testkit::{Message, TestServer};

use crate::{pass, with_stopped_clock};

#[track_caller]
fn check_gone(server: &TestServer, message: &Message) {
    let queue = server.queue();
    assert!(queue.texts("abc").is_empty());
    assert!(queue.get("abc", "numofmessages=32").is_empty());
    assert_eq!(queue.count("abc"), 0);
    queue.send(message.hide("abc", 0)).expect_error(404, "MessageNotFound");
    queue.send(message.delete("abc")).expect_error(404, "MessageNotFound");
}

#[test]
fn a_message_that_nobody_took_expires() {
    let (server, clock) = with_stopped_clock();
    let put = server.queue().put_with("abc", "messagettl=5", "a");
    clock.advance(Duration::from_millis(4_999));
    assert_eq!(server.queue().texts("abc"), ["a"]);
    clock.advance(Duration::from_millis(2));
    check_gone(&server, &put);
}

#[test]
fn a_message_that_somebody_holds_expires() {
    let (server, clock) = with_stopped_clock();
    server.queue().put_with("abc", "messagettl=5", "a");
    let taken = server.queue().get_one("abc", "visibilitytimeout=100");
    pass(&clock, 5);
    check_gone(&server, &taken);
}

#[test]
fn a_hidden_message_expires() {
    let (server, clock) = with_stopped_clock();
    let put = server.queue().put_with("abc", "messagettl=5&visibilitytimeout=4", "a");
    pass(&clock, 5);
    check_gone(&server, &put);
}

#[test]
fn after_seven_days_a_usual_message_is_gone() {
    let (server, clock) = with_stopped_clock();
    let put = server.queue().put("abc", "a");
    pass(&clock, 604_799);
    assert_eq!(server.queue().texts("abc"), ["a"]);
    pass(&clock, 1);
    check_gone(&server, &put);
}

#[test]
fn a_message_may_live_for_ever() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put_with("abc", "messagettl=-1", "for ever");
    queue.put_with("abc", "messagettl=31536000", "a year");
    pass(&clock, 31_535_999);
    assert_eq!(queue.texts("abc"), ["for ever", "a year"]);
    pass(&clock, 31_536_000 * 20);
    assert_eq!(queue.texts("abc"), ["for ever"]);
    assert_eq!(queue.count("abc"), 1);
}

#[test]
fn expired_messages_do_not_stand_in_the_way() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    (0..100).for_each(|n| drop(queue.put_with("abc", "messagettl=5", &n.to_string())));
    queue.put("abc", "behind");
    pass(&clock, 5);
    assert_eq!(queue.texts("abc"), ["behind"]);
    assert_eq!(queue.count("abc"), 1);
    assert_eq!(queue.get_one("abc", "numofmessages=32").text, "behind");
}

#[test]
fn messages_of_different_lives_end_one_by_one() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    for seconds in [5, 3, 1, 4, 2] {
        queue.put_with("abc", &format!("messagettl={seconds}"), &seconds.to_string());
    }
    for left in (0..5).rev() {
        pass(&clock, 1);
        assert_eq!((queue.peek("abc").len(), queue.count("abc")), (left, left as u64));
    }
}
