//! Put, get, peek, update and delete of messages; visibility, expiry, receipts.

use engine::Share;
use std::time::Duration;

use protocol::ErrorCode;
use protocol::common::DateTime;

use crate::support::{SECOND, code, setup};

#[tokio::test]
async fn messages_come_first_in_first_out() {
    let s = setup().await;
    for text in ["a", "b", "c", "d"] {
        s.put(text).await;
    }
    assert_eq!(s.peek_texts(2).await, ["a", "b"]);
    assert_eq!(s.get_texts(1, 30).await, ["a"]);
    assert_eq!(s.get_texts(32, 30).await, ["b", "c", "d"]);
    assert!(s.get(32, 30).await.is_empty() && s.peek_texts(32).await.is_empty());
    assert_eq!(s.count().await, 4);
    // What was taken comes up behind what became visible before.
    s.put("e").await;
    s.clock.advance(31 * SECOND);
    assert_eq!(s.get_texts(32, 30).await, ["e", "a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_message_is_invisible_until_its_time() {
    let s = setup().await;
    let put = s.put_with("late", SECOND, None).await;
    assert_eq!(put.visible.ticks() - put.inserted.ticks(), 10_000_000);
    assert!(s.get(1, 30).await.is_empty());
    s.clock.advance(Duration::from_millis(999));
    assert!(s.get(1, 30).await.is_empty());
    s.clock.advance(Duration::from_millis(2));
    let taken = s.get(1, 30).await;
    assert_eq!((taken[0].dequeue_count, taken[0].id, taken[0].inserted), (1, put.id, put.inserted));
    s.clock.advance(31 * SECOND);
    assert_eq!(s.get(1, 30).await[0].dequeue_count, 2);
}

#[tokio::test]
async fn only_the_newest_receipt_works() {
    let s = setup().await;
    let (account, queue) = (&s.account, &s.queue);
    let put = s.put("a").await;
    let first = s.get(1, 1).await.remove(0);
    let by_put = s.service.delete_message(account, queue, put.id, put.receipt).await;
    assert_eq!(code(by_put), ErrorCode::MessageNotFound);
    // A receipt outlives its time, until another takes the message.
    s.clock.advance(2 * SECOND);
    let updated =
        s.service.update_message(account, queue, first.id, first.receipt, None, SECOND).await.unwrap();
    assert_eq!(s.delete(&first).await, Err(ErrorCode::MessageNotFound));
    s.clock.advance(2 * SECOND);
    let second = s.get(1, 30).await.remove(0);
    assert_eq!(second.dequeue_count, 2);
    let stale = s.service.update_message(account, queue, first.id, updated.receipt, None, SECOND).await;
    assert_eq!(code(stale), ErrorCode::MessageNotFound);
    assert_eq!(s.delete(&second).await, Ok(()));
    assert_eq!(s.delete(&second).await, Err(ErrorCode::MessageNotFound));
    assert_eq!(s.count().await, 0);
}

#[tokio::test]
async fn the_receipt_of_a_put_deletes_what_nobody_took() {
    let s = setup().await;
    let put = s.put("a").await;
    s.service.delete_message(&s.account, &s.queue, put.id, put.receipt).await.unwrap();
    assert!(s.get(1, 30).await.is_empty());
    assert_eq!(s.count().await, 0);
}

#[tokio::test]
async fn an_update_changes_text_and_visibility_and_nothing_else() {
    let s = setup().await;
    s.put("a").await;
    let taken = s.get(1, 30).await.remove(0);
    let update = |receipt, text: Option<&'static str>, visibility| {
        s.service.update_message(&s.account, &s.queue, taken.id, receipt, text.map(Into::into), visibility)
    };
    let updated = update(taken.receipt, Some("b"), Duration::ZERO).await.unwrap();
    assert_eq!(s.peek_texts(1).await, ["b"]);
    let updated = update(updated.receipt, None, 10 * SECOND).await.unwrap();
    assert!(s.get(1, 30).await.is_empty());
    let updated = update(updated.receipt, Some(""), Duration::ZERO).await.unwrap();
    let again = s.get(1, 30).await.remove(0);
    assert_eq!((again.dequeue_count, again.inserted, again.expires), (2, taken.inserted, taken.expires));
    assert!(again.text.is_empty());
    assert_eq!(code(update(updated.receipt, None, SECOND).await), ErrorCode::MessageNotFound);
}

#[tokio::test]
async fn what_has_expired_is_gone_for_everybody() {
    let s = setup().await;
    s.put_with("short", Duration::ZERO, Some(5 * SECOND)).await;
    let put = s.put_with("held", Duration::ZERO, Some(5 * SECOND)).await;
    let forever = s.put_with("forever", Duration::ZERO, None).await;
    assert_eq!(forever.expires, DateTime::MAX);
    assert_eq!(put.expires.ticks() - put.inserted.ticks(), 50_000_000);
    let taken = s.get(2, 3600).await;
    assert_eq!(s.count().await, 3);
    s.clock.advance(4 * SECOND);
    let update =
        s.service.update_message(&s.account, &s.queue, taken[0].id, taken[0].receipt, None, Duration::ZERO);
    update.await.unwrap();
    s.clock.advance(Duration::from_millis(1001));
    assert_eq!(s.count().await, 1);
    assert_eq!(s.peek_texts(32).await, ["forever"]);
    assert_eq!(s.delete(&taken[1]).await, Err(ErrorCode::MessageNotFound));
    let update =
        s.service.update_message(&s.account, &s.queue, taken[1].id, taken[1].receipt, None, SECOND).await;
    assert_eq!(code(update), ErrorCode::MessageNotFound);
    assert_eq!(s.get_texts(32, 30).await, ["forever"]);
    // The sweep changes nothing that anybody can see.
    assert!(!s.service.sweep(true).await.unwrap());
    assert_eq!(s.count().await, 1);
    s.clock.advance(31 * SECOND);
    assert_eq!(s.get_texts(32, 30).await, ["forever"]);
}

#[tokio::test]
async fn the_sweep_removes_every_expired_message_and_no_other() {
    let s = setup().await;
    for n in 0..500 {
        s.put_with(&n.to_string(), Duration::ZERO, Some((1 + n % 3) * SECOND)).await;
    }
    s.clock.advance(Duration::from_millis(2001));
    // Without a sweep they are already left out, and the takers find what is left.
    assert_eq!(s.count().await, 166);
    while s.service.sweep(false).await.unwrap() {}
    assert_eq!(s.count().await, 166);
    assert_eq!(s.get_texts(2, 1).await, ["2", "5"]);
    s.clock.advance(SECOND);
    while s.service.sweep(true).await.unwrap() {}
    assert_eq!(s.count().await, 0);
    let mut rows = RowCount(0);
    let id = s.service.catalogue().id_of(&s.account, "queue").await.unwrap().unwrap();
    let budget = engine::Budget::UNBOUNDED;
    s.engine.scan(id, &[engine::KeyRange::all()], budget, &mut rows).await.unwrap();
    assert!(rows.0 <= 8, "only the counts are left, not {} rows", rows.0);
}

struct RowCount(usize);

impl engine::Sink for RowCount {
    fn row(&mut self, _: engine::Key<'_>, _: engine::Version, _: &[u8]) -> engine::Flow {
        self.0 += 1;
        engine::Flow::Continue
    }
}

#[tokio::test]
async fn what_does_not_fit_is_not_taken() {
    let s = setup().await;
    for text in ["aa", "bb", "cccccccc", "d"] {
        s.put(text).await;
    }
    let mut room: usize = 7;
    let mut fits = |text: &[u8]| {
        let left = room.checked_sub(text.len());
        room = left.unwrap_or(room);
        left.is_some()
    };
    let taken =
        s.service.get_messages(&s.account, &s.queue, 32, SECOND, Share::COMMON, &mut fits).await.unwrap();
    assert_eq!(taken.len(), 2);
    let peeked = s.service.peek_messages(&s.account, &s.queue, 32, Share::COMMON, &mut fits).await;
    assert_eq!(code(peeked), ErrorCode::ServerBusy);
    let taken = s.service.get_messages(&s.account, &s.queue, 32, SECOND, Share::COMMON, &mut fits).await;
    assert_eq!(code(taken), ErrorCode::ServerBusy);
    assert_eq!(s.get_texts(32, 1).await, ["cccccccc", "d"]);
}

#[tokio::test]
async fn times_to_live_end_with_the_last_date() {
    let s = setup().await;
    let put = s.put_with("long", Duration::ZERO, Some(Duration::from_secs(1 << 53))).await;
    assert_eq!(put.expires, DateTime::MAX);
    s.clock.advance(10 * SECOND);
    assert_eq!(s.get_texts(1, 30).await, ["long"]);
}

#[tokio::test]
async fn a_clock_that_steps_back_hides_nothing() {
    let s = setup().await;
    s.put("a").await;
    s.clock.step_back(3600 * SECOND);
    s.put("b").await;
    assert_eq!(s.get_texts(32, 10).await, ["a", "b"]);
    s.clock.advance(11 * SECOND);
    assert_eq!(s.get_texts(32, 10).await, ["a", "b"]);
}
