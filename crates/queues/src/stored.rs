//! Stored messages as plain values: for a backup, which holds them, and for whoever looks at a queue's rows.
//!
//! Promises: a message read from its row and written again gives the same rows. [`StoredMessage::check`] holds a message
//! from a stranger to what requests can store. The expiry rows and the count follow from the messages, so nobody needs to
//! keep them elsewhere. Leaves to others: names, metadata and policies of queues.

use std::ops::Bound;

use bytes::Bytes;
use engine::{Commit, Effect, Expect, KeyRange, Op, OwnedKey, TableId};
use protocol::common::Metadata;
use protocol::common::xml_write::is_xml_text;
use protocol::queue::MessageId;
use protocol::queue::message_text::TEXT_BYTES_MAX;

use crate::payload;
use crate::rows::{self, MessageKey, MessageValue, NEVER_TICKS, PARTITION};

/// A message and its place. Times are ticks of 100 ns since 0001-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredMessage<'a> {
    /// When it becomes visible. Messages stand in this order, and those of one moment in the order of their ids.
    pub visible: u64,
    pub id: MessageId,
    pub inserted: u64,
    /// [`StoredMessage::NEVER`]: it does not.
    pub expires: u64,
    pub dequeue_count: u32,
    pub text: &'a str,
}

impl<'a> StoredMessage<'a> {
    /// The end of the calendar. A message that expires then never does.
    pub const NEVER: u64 = NEVER_TICKS;

    /// The rows of a queue that are messages, in order.
    pub fn range() -> KeyRange {
        KeyRange::rows(PARTITION, Bound::Included("m"), Bound::Excluded("n"))
    }

    /// `None`: the row is no message.
    pub fn read(row: &str, value: &'a [u8]) -> Option<StoredMessage<'a>> {
        let MessageKey { visible, id } = MessageKey::read(row)?;
        let MessageValue { inserted, expires, dequeue_count, text } = MessageValue::read(value)?;
        let text = std::str::from_utf8(text).ok()?;
        Some(StoredMessage { visible, id, inserted, expires, dequeue_count, text })
    }

    /// Whether requests could have stored it; else the reason why not.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.text.len() > TEXT_BYTES_MAX {
            return Err("its text is longer than 64 KiB");
        }
        if !is_xml_text(self.text) {
            return Err("its text holds a character that XML does not have");
        }
        if self.visible.max(self.expires) > NEVER_TICKS {
            return Err("it has a time after the year 9999");
        }
        if self.inserted >= self.expires {
            return Err("it expires before it is inserted");
        }
        Ok(())
    }

    /// The message's row, and the row that says when it expires.
    pub fn rows(&self) -> impl Iterator<Item = (OwnedKey, Bytes)> {
        let key = MessageKey { visible: self.visible, id: self.id };
        let value = MessageValue {
            inserted: self.inserted,
            expires: self.expires,
            dequeue_count: self.dequeue_count,
            text: self.text.as_bytes(),
        };
        let expiry = (self.expires != NEVER_TICKS)
            .then(|| (rows::expiry_row(self.expires, self.id), rows::write_expiry(self.visible)));
        let owned = |(row, value)| (OwnedKey { partition: PARTITION.into(), row }, value);
        [(key.row(), value.write())].into_iter().chain(expiry).map(owned)
    }
}

/// The commit that counts so many messages more, for messages that were put as rows.
pub fn count_commit(queue: TableId, message_count: u64) -> Commit {
    let change = i64::try_from(message_count).unwrap_or(i64::MAX);
    let effect = Effect::Merge(rows::write_count(change));
    Commit::one(queue, PARTITION, Op { row: rows::count_row(MessageId(0)), expect: Expect::Any, effect })
}

/// The payload of a queue in the catalogue.
pub fn write_payload(metadata: &Metadata) -> Bytes {
    payload::write(metadata)
}

/// `None`: the payload does not decode.
pub fn read_payload(payload: &[u8]) -> Option<Metadata> {
    payload::read(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: StoredMessage<'static> = StoredMessage {
        visible: 30,
        id: MessageId(7),
        inserted: 10,
        expires: 20,
        dequeue_count: 3,
        text: "text",
    };

    #[test]
    fn a_message_reads_as_it_was_written_and_only_from_its_row() {
        let written: Vec<(OwnedKey, Bytes)> = MESSAGE.rows().collect();
        assert_eq!(written.len(), 2);
        let (key, value) = &written[0];
        assert!(StoredMessage::range().contains(&key.partition, &key.row));
        assert_eq!(StoredMessage::read(&key.row, value), Some(MESSAGE));
        let (expiry, value) = &written[1];
        assert!(!StoredMessage::range().contains(&expiry.partition, &expiry.row));
        assert_eq!(StoredMessage::read(&expiry.row, value), None);
        let endless = StoredMessage { expires: StoredMessage::NEVER, ..MESSAGE };
        assert_eq!(endless.rows().count(), 1);
    }

    #[test]
    fn a_message_that_no_request_could_store_is_refused() {
        let check = |message: StoredMessage<'_>, part: &str| {
            assert!(message.check().unwrap_err().contains(part), "{part}");
        };
        let longest = "x".repeat(TEXT_BYTES_MAX);
        for good in ["", "\r\n\t", "\u{1F600}", &longest] {
            assert_eq!(StoredMessage { text: good, ..MESSAGE }.check(), Ok(()));
        }
        check(StoredMessage { text: &format!("{longest}x"), ..MESSAGE }, "64 KiB");
        check(StoredMessage { text: "\u{1}", ..MESSAGE }, "XML");
        check(StoredMessage { text: "\u{FFFF}", ..MESSAGE }, "XML");
        check(StoredMessage { visible: NEVER_TICKS + 1, ..MESSAGE }, "9999");
        check(StoredMessage { expires: u64::MAX, ..MESSAGE }, "9999");
        check(StoredMessage { expires: 10, ..MESSAGE }, "expires before");
    }
}
