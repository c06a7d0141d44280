//! The rows of a queue, all in one partition, so that one commit can change any of them:
//!
//! ```text
//! c SLOT                 count of messages, in a few slots whose sum counts
//! m VISIBLE ID           a message, in the order in which messages become visible
//! x EXPIRES ID           when a message expires and where it is now, in the order in which messages expire
//! ```
//!
//! Times are ticks, written as 16 hexadecimal digits, ids as 32. A message moves, as its row is deleted and put again, when
//! it is taken or updated; its expiry row follows. A message that never expires has none.
//!
//! Promises: values read as they were written, and bytes that are no value are refused.

use std::ops::Bound;

use bytes::{BufMut, Bytes, BytesMut};
use engine::{Key, KeyRange, MergeRefusal};
use protocol::queue::MessageId;

/// The partition of all rows.
pub(crate) const PARTITION: &str = "";

/// 9999-12-31T23:59:59.9999999Z: messages that expire then never do.
pub(crate) const NEVER_TICKS: u64 = 3_155_378_975_999_999_999;

const TAG_MESSAGE: u8 = 1;
const TAG_EXPIRY: u8 = 2;
const TAG_COUNT: u8 = 3;
/// Tag, inserted, expires, dequeue count.
const MESSAGE_HEAD_BYTES: usize = 1 + 8 + 8 + 4;
const EXPIRY_BYTES: usize = 1 + 8;
const COUNT_BYTES: usize = 1 + 8;
/// Enough for front ends that share an engine not to wait for each other's counting.
const COUNT_SLOT_COUNT: u128 = 8;

/// Where a message stands. The default is before all of them.
#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MessageKey {
    pub visible: u64,
    pub id: MessageId,
}

impl MessageKey {
    /// Before every message that becomes visible then.
    pub(crate) const fn first_at(visible: u64) -> MessageKey {
        MessageKey { visible, id: MessageId(0) }
    }

    pub fn row(self) -> Box<str> {
        row('m', self.visible, self.id)
    }

    pub fn read(row: &str) -> Option<MessageKey> {
        read_row('m', row).map(|(visible, id)| MessageKey { visible, id })
    }

    /// The next key.
    pub fn after(self) -> MessageKey {
        match self.id.0.checked_add(1) {
            Some(id) => MessageKey { visible: self.visible, id: MessageId(id) },
            None => MessageKey::first_at(self.visible.saturating_add(1)),
        }
    }
}

fn row(kind: char, ticks: u64, id: MessageId) -> Box<str> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(1 + 16 + 32);
    text.push(kind);
    text.extend((0..16).rev().map(|place| char::from(HEX[(ticks >> (4 * place) & 0xf) as usize])));
    text.extend((0..32).rev().map(|place| char::from(HEX[(id.0 >> (4 * place) & 0xf) as usize])));
    text.into()
}

fn read_row(kind: char, row: &str) -> Option<(u64, MessageId)> {
    let digits = row.strip_prefix(kind).filter(|digits| digits.len() == 48 && digits.is_ascii())?;
    let (ticks, id) = digits.split_at(16);
    let id = u128::from_str_radix(id, 16).ok()?;
    Some((u64::from_str_radix(ticks, 16).ok()?, MessageId(id)))
}

/// The messages from `start` on that are visible by then.
pub(crate) fn visible_range(start: MessageKey, now: u64) -> KeyRange {
    let (start, end) = (start.row(), MessageKey::first_at(now.saturating_add(1)).row());
    KeyRange::rows(PARTITION, Bound::Included(&start), Bound::Excluded(&end))
}

/// The rows that say what has expired by then, from this row on.
pub(crate) fn expired_range(start: &str, now: u64) -> KeyRange {
    let end = row('x', now.saturating_add(1), MessageId(0));
    KeyRange::rows(PARTITION, Bound::Included(start), Bound::Excluded(&end))
}

pub(crate) fn count_range() -> KeyRange {
    KeyRange::rows(PARTITION, Bound::Included("c"), Bound::Excluded("d"))
}

pub(crate) fn expiry_row(expires: u64, id: MessageId) -> Box<str> {
    row('x', expires, id)
}

/// When a message expires, and its id, from its expiry row.
pub(crate) fn read_expiry_row(row: &str) -> Option<(u64, MessageId)> {
    read_row('x', row)
}

pub(crate) fn count_row(id: MessageId) -> Box<str> {
    format!("c{}", id.0 % COUNT_SLOT_COUNT).into()
}

pub(crate) fn message_key(row: &str) -> Key<'_> {
    Key::new(PARTITION, row)
}

/// A message without its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageValue<'a> {
    pub inserted: u64,
    pub expires: u64,
    pub dequeue_count: u32,
    pub text: &'a [u8],
}

impl<'a> MessageValue<'a> {
    pub fn read(value: &'a [u8]) -> Option<MessageValue<'a>> {
        let (head, text) = value.split_first_chunk::<MESSAGE_HEAD_BYTES>()?;
        let is_text = head[0] == TAG_MESSAGE;
        is_text.then_some(MessageValue {
            inserted: u64::from_be_bytes(*head[1..].first_chunk()?),
            expires: u64::from_be_bytes(*head[9..].first_chunk()?),
            dequeue_count: u32::from_be_bytes(*head[17..].first_chunk()?),
            text,
        })
    }

    pub fn write(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(MESSAGE_HEAD_BYTES + self.text.len());
        bytes.put_u8(TAG_MESSAGE);
        bytes.put_u64(self.inserted);
        bytes.put_u64(self.expires);
        bytes.put_u32(self.dequeue_count);
        bytes.extend_from_slice(self.text);
        bytes.freeze()
    }

    pub(crate) fn has_expired(&self, now: u64) -> bool {
        self.expires <= now && self.expires != NEVER_TICKS
    }
}

/// The text of a message's value.
pub fn text_of(value: &Bytes) -> Bytes {
    value.slice(MESSAGE_HEAD_BYTES.min(value.len())..)
}

/// The value of an expiry row: where the message is now.
pub fn write_expiry(visible: u64) -> Bytes {
    tagged(TAG_EXPIRY, visible.to_be_bytes())
}

pub fn read_expiry(value: &[u8]) -> Option<u64> {
    untagged(TAG_EXPIRY, value).map(u64::from_be_bytes)
}

/// A count, or a patch that changes one.
pub fn write_count(count: i64) -> Bytes {
    tagged(TAG_COUNT, count.to_be_bytes())
}

pub fn read_count(value: &[u8]) -> Option<i64> {
    untagged(TAG_COUNT, value).map(i64::from_be_bytes)
}

fn tagged(tag: u8, number: [u8; 8]) -> Bytes {
    let mut bytes = [0; 9];
    bytes[0] = tag;
    bytes[1..].copy_from_slice(&number);
    Bytes::copy_from_slice(&bytes)
}

fn untagged(tag: u8, value: &[u8]) -> Option<[u8; 8]> {
    let (first, number) = value.split_first()?;
    (*first == tag).then_some(())?;
    number.try_into().ok()
}

/// Only counts merge: the patch is added.
pub(crate) fn merge(old: Option<&[u8]>, patch: &[u8]) -> Result<Bytes, MergeRefusal> {
    const NO_COUNT: MergeRefusal = MergeRefusal(1);
    let patch = read_count(patch).ok_or(NO_COUNT)?;
    let old = old.map_or(Some(0), read_count).ok_or(NO_COUNT)?;
    Ok(write_count(old.saturating_add(patch)))
}

pub(crate) fn is_sound(value: &[u8]) -> bool {
    match value.first() {
        Some(&TAG_MESSAGE) => {
            value.len() >= MESSAGE_HEAD_BYTES && std::str::from_utf8(&value[MESSAGE_HEAD_BYTES..]).is_ok()
        }
        Some(&TAG_EXPIRY) => value.len() == EXPIRY_BYTES,
        Some(&TAG_COUNT) => value.len() == COUNT_BYTES,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_time_and_read_as_written() {
        let key = |visible, id| MessageKey { visible, id: MessageId(id) };
        let keys = [key(0, 5), key(9, u128::MAX), key(10, 0), key(16, 1), key(16, 2), key(u64::MAX, 0)];
        let rows = keys.map(MessageKey::row);
        assert!(rows.is_sorted());
        assert_eq!(rows.each_ref().map(|row| MessageKey::read(row).unwrap()), keys);
        assert!(keys.windows(2).all(|pair| pair[0].after() <= pair[1]));
        assert_eq!(&*key(0x1f, 0xab).row(), format!("m{:016x}{:032x}", 0x1f, 0xab));
        for broken in ["", "m", "x0", "m000000000000001g00000000000000000000000000000000"] {
            assert_eq!(MessageKey::read(broken), None, "{broken}");
        }
    }

    #[test]
    fn ranges_end_with_the_moment_itself() {
        let id = MessageId(7);
        let range = visible_range(MessageKey { visible: 5, id }, 9);
        let holds =
            |visible, id: u128| range.contains(PARTITION, &MessageKey { visible, id: MessageId(id) }.row());
        assert!(!holds(5, 6) && holds(5, 7) && holds(9, u128::MAX) && !holds(10, 0));
        assert!(expired_range("x", 9).contains(PARTITION, &expiry_row(9, id)));
        assert!(!expired_range("x", 9).contains(PARTITION, &expiry_row(10, MessageId(0))));
        assert!(count_range().contains(PARTITION, &count_row(id)));
    }

    #[test]
    fn values_read_as_written_and_only_as_what_they_are() {
        let message = MessageValue { inserted: 1, expires: 2, dequeue_count: 3, text: b"text" };
        let written = message.write();
        assert_eq!(MessageValue::read(&written), Some(message));
        assert_eq!(text_of(&written), "text");
        assert_eq!(read_expiry(&write_expiry(9)), Some(9));
        assert_eq!(read_count(&write_count(-9)), Some(-9));
        for value in [&written, &write_expiry(9), &write_count(9)] {
            assert!(is_sound(value));
        }
        assert_eq!(MessageValue::read(&write_count(9)), None);
        assert_eq!(read_count(&write_expiry(9)), None);
        for broken in [&b""[..], b"\x01", b"\x02", b"\x031234567", b"\x04", &[&written[..], b"\xff"].concat()]
        {
            assert!(!is_sound(broken), "{broken:?}");
        }
    }

    #[test]
    fn counts_add_up_and_nothing_else_merges() {
        let (two, minus_three) = (write_count(2), write_count(-3));
        assert_eq!(merge(None, &two), Ok(write_count(2)));
        assert_eq!(merge(Some(&two), &minus_three), Ok(write_count(-1)));
        assert!(merge(Some(&write_expiry(1)), &two).is_err());
        assert!(merge(Some(&two), b"x").is_err());
    }

    #[test]
    fn what_never_expires_has_not_expired() {
        let at = |expires| MessageValue { inserted: 0, expires, dequeue_count: 0, text: b"" };
        assert!(at(10).has_expired(10) && !at(10).has_expired(9));
        assert!(!at(NEVER_TICKS).has_expired(u64::MAX));
    }
}
