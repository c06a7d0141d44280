//! Messages: put, take, peek, update, delete, clear.

use std::time::Duration;

use lazulite_client::{DateTime, Error, MessageHandle, PutOptions};
use testkit::TestServer;

use crate::{HALF_A_MINUTE, queue};

#[tokio::test]
async fn a_message_goes_in_and_comes_out() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    let sent = queue.put("order 17", PutOptions::new()).await.unwrap();
    assert!(!sent.pop_receipt.is_empty());
    assert_eq!(sent.expires.whole_seconds() - sent.inserted.whole_seconds(), 7 * 24 * 60 * 60);

    let peeked = queue.peek(32).await.unwrap();
    assert_eq!(peeked.len(), 1);
    assert_eq!((peeked[0].text.as_str(), peeked[0].dequeue_count), ("order 17", 0));

    let taken = queue.take(32, HALF_A_MINUTE).await.unwrap();
    assert_eq!(taken.len(), 1);
    let message = &taken[0];
    assert_eq!((message.text.as_str(), message.dequeue_count), ("order 17", 1));
    assert_eq!((&message.id, message.inserted, message.expires), (&sent.id, sent.inserted, sent.expires));
    assert!(message.next_visible > message.inserted);

    assert!(queue.peek(1).await.unwrap().is_empty(), "it is hidden");
    assert!(queue.take(1, HALF_A_MINUTE).await.unwrap().is_empty());
    assert_eq!(queue.approximate_count().await.unwrap(), 1);
    queue.delete(message).await.unwrap();
    assert_eq!(queue.approximate_count().await.unwrap(), 0);
    assert!(queue.delete(message).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn texts_come_back_character_by_character() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    let longest = "x".repeat(64 * 1024);
    let all_escaped = "&".repeat(64 * 1024);
    let texts =
        ["", " ", "<a href=\"b\">&amp;</a>", "\r\n\t \u{e4}\u{1F600}\u{FFFD}", "]]>", &longest, &all_escaped];
    for text in texts {
        queue.put(text, PutOptions::new()).await.unwrap();
        let message = queue.take(1, HALF_A_MINUTE).await.unwrap().remove(0);
        assert!(message.text == text, "{} characters", text.len());
        queue.delete(&message).await.unwrap();
    }
    for _ in 0..32 {
        queue.put(&all_escaped, PutOptions::new()).await.unwrap();
    }
    let taken = queue.take(32, HALF_A_MINUTE).await.unwrap();
    assert!(!taken.is_empty() && taken.iter().all(|message| message.text == all_escaped));
}

#[tokio::test]
async fn texts_that_xml_cannot_hold_are_refused_before_sending() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    for bad in ["\0", "a\u{1f}", "\u{FFFE}", &"x".repeat(64 * 1024 + 1)] {
        assert!(matches!(queue.put(bad, PutOptions::new()).await, Err(Error::Refused(_))));
    }
    let sent = queue.put("a", PutOptions::new()).await.unwrap();
    assert!(matches!(queue.update(&sent, Some("\0"), Duration::ZERO).await, Err(Error::Refused(_))));
    assert_eq!(queue.peek(32).await.unwrap().len(), 1);
}

#[tokio::test]
async fn bytes_and_values_have_helpers() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    let bytes: Vec<u8> = (0..=255).collect();
    queue.put_bytes(&bytes, PutOptions::new()).await.unwrap();
    assert_eq!(queue.peek(1).await.unwrap()[0].bytes().unwrap(), bytes);
    let message = queue.take(1, HALF_A_MINUTE).await.unwrap().remove(0);
    assert_eq!(message.bytes().unwrap(), bytes);

    queue.put_json(&("a<b", 17, Some(0.5)), PutOptions::new()).await.unwrap();
    let message = queue.take(1, HALF_A_MINUTE).await.unwrap().remove(0);
    assert_eq!(message.text, "[\"a<b\",17,0.5]");
    assert_eq!(message.json::<(String, u32, Option<f64>)>().unwrap(), ("a<b".to_owned(), 17, Some(0.5)));
    assert!(matches!(message.json::<u32>(), Err(Error::Unreadable(_))));
    assert!(matches!(message.bytes(), Err(Error::Unreadable(_))));
}

#[tokio::test]
async fn options_delay_and_limit_a_message() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    let hour = Duration::from_secs(3600);
    let late = queue.put("late", PutOptions::new().visible_after(hour)).await.unwrap();
    assert_eq!(late.next_visible.whole_seconds() - late.inserted.whole_seconds(), 3600);
    assert!(queue.take(1, HALF_A_MINUTE).await.unwrap().is_empty());

    let forever = queue.put("forever", PutOptions::new().forever()).await.unwrap();
    assert_eq!(forever.expires.whole_seconds(), DateTime::MAX.whole_seconds());
    let short = queue.put("short", PutOptions::new().time_to_live(hour)).await.unwrap();
    assert_eq!(short.expires.whole_seconds() - short.inserted.whole_seconds(), 3600);
    let refused = queue.put("never", PutOptions::new().visible_after(hour).time_to_live(hour)).await;
    assert!(matches!(refused, Err(Error::Refused(_))));

    // A message that nobody took can be deleted with the receipt of its put.
    queue.delete(&late).await.unwrap();
    assert_eq!(queue.approximate_count().await.unwrap(), 2);
}

#[tokio::test]
async fn an_update_gives_a_new_receipt_and_ends_the_old_one() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    queue.put("one", PutOptions::new()).await.unwrap();
    let mut message = queue.take(1, HALF_A_MINUTE).await.unwrap().remove(0);
    let old = message.clone();

    let updated = queue.update(&message, None, Duration::from_secs(600)).await.unwrap();
    assert_ne!(updated.pop_receipt, old.pop_receipt);
    assert!(updated.next_visible > old.next_visible);
    message.renew(updated);
    let stale = queue.update(&old, None, HALF_A_MINUTE).await.unwrap_err();
    assert_eq!((stale.is_not_found(), stale.code()), (true, Some("MessageNotFound")));
    assert!(queue.delete(&old).await.unwrap_err().is_not_found());

    // Shown at once, with another text; then with the same text; then with none.
    message.renew(queue.update(&message, Some("two <2>"), Duration::ZERO).await.unwrap());
    assert_eq!(queue.peek(1).await.unwrap()[0].text, "two <2>");
    message.renew(queue.update(&message, None, Duration::ZERO).await.unwrap());
    assert_eq!(queue.peek(1).await.unwrap()[0].text, "two <2>");
    message.renew(queue.update(&message, Some(""), Duration::ZERO).await.unwrap());
    assert_eq!(queue.peek(1).await.unwrap()[0].text, "");
    let again = queue.take(1, HALF_A_MINUTE).await.unwrap().remove(0);
    assert_eq!((again.id, again.dequeue_count), (message.id.clone(), 2));
    assert!(queue.delete(&message).await.unwrap_err().is_not_found(), "somebody took it meanwhile");
}

#[tokio::test]
async fn handles_can_be_kept_and_wrong_ones_are_refused() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    let sent = queue.put("one", PutOptions::new()).await.unwrap();
    let handle = MessageHandle::from((sent.id.as_str(), sent.pop_receipt.as_str()));
    let malformed = queue.delete((handle.id, "no receipt/+=")).await.unwrap_err();
    assert_eq!(malformed.code(), Some("InvalidQueryParameterValue"));
    let unknown =
        queue.delete(("d8611c43-075a-43f0-b70f-42f477cbfda7", handle.pop_receipt)).await.unwrap_err();
    assert_eq!(unknown.code(), Some("MessageNotFound"));
    let odd = queue.delete(("a/../b?c=d#e%", handle.pop_receipt)).await.unwrap_err();
    assert!(odd.status().is_some_and(|status| status.is_client_error()), "{odd}");
    queue.delete(handle).await.unwrap();
}

#[tokio::test]
async fn many_messages_are_taken_in_portions() {
    let server = TestServer::start();
    let queue = queue(&server).await;
    for number in 0..40 {
        queue.put(&number.to_string(), PutOptions::new()).await.unwrap();
    }
    assert_eq!(queue.peek(32).await.unwrap().len(), 32);
    let mut texts = Vec::new();
    for expected in [32, 8, 0] {
        let taken = queue.take(32, HALF_A_MINUTE).await.unwrap();
        assert_eq!(taken.len(), expected);
        texts.extend(taken.into_iter().map(|message| message.text));
    }
    assert_eq!(texts, (0..40).map(|number| number.to_string()).collect::<Vec<_>>());
    for (count, visibility) in
        [(0, HALF_A_MINUTE), (33, HALF_A_MINUTE), (1, Duration::ZERO), (1, Duration::MAX)]
    {
        assert!(matches!(queue.take(count, visibility).await, Err(Error::Refused(_))));
    }
    assert!(matches!(queue.peek(0).await, Err(Error::Refused(_))));
    queue.clear().await.unwrap();
    assert_eq!(queue.approximate_count().await.unwrap(), 0);
}
