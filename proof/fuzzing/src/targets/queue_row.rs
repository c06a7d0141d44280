//! The rows of a queue: their keys, their values, and how counts merge.
//!
//! An input is the length of a key in one byte, the key, and a value.

use engine::ValueRules;
use protocol::queue::MessageId;
use queues::VALUE_RULES;
use queues::rows::{MessageKey, MessageValue, read_count, read_expiry, write_count, write_expiry};

use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "queue_row",
    run,
    input_bytes_max: 128 * 1024,
    tokens: &[
        b"\x00",
        b"\x01",
        b"\x02",
        b"\x03",
        b"\x04",
        b"\xFF",
        b"m",
        b"x",
        b"c",
        b"0000000000000000",
        b"ffffffffffffffff",
        b"+000000000000000",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\x80\x00\x00\x00\x00\x00\x00\x00",
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\xC3\xA9",
    ],
    seeds,
};

fn seeds(_: &Golden) -> Vec<Vec<u8>> {
    let key = MessageKey { visible: 638_000_000_000_000_000, id: MessageId(u128::MAX / 3) };
    let message = MessageValue { inserted: 1, expires: 2, dequeue_count: 3, text: "text é".as_bytes() };
    let values = [message.write(), write_expiry(9), write_count(-9), write_count(i64::MAX)];
    let rows = [key.row(), "c7".into(), key.row().replacen('m', "x", 1).into()];
    distinct(rows.iter().flat_map(|row| {
        let with = |value: &bytes::Bytes| [&[row.len() as u8], row.as_bytes(), value].concat();
        values.iter().map(with).collect::<Vec<_>>()
    }))
}

pub fn run(input: &[u8]) -> Outcome {
    let Some((&key_len, rest)) = input.split_first() else { return Outcome::Refused("nothing") };
    let Some((key, value)) = rest.split_at_checked(usize::from(key_len)) else {
        return Outcome::Refused("no value");
    };
    if let Some(read) = std::str::from_utf8(key).ok().and_then(MessageKey::read) {
        assert_eq!(MessageKey::read(&read.row()), Some(read));
        assert!(read.after() > read || read.visible == u64::MAX);
    }
    let ValueRules { merge, is_sound } = VALUE_RULES;
    if let Some(message) = MessageValue::read(value) {
        assert!(message.write() == value, "a message differs when written again");
    }
    if let Some(visible) = read_expiry(value) {
        assert!(write_expiry(visible) == value && is_sound(value));
    }
    let count = read_count(value);
    match merge(None, value) {
        Ok(merged) => assert!(count.is_some() && merged == value),
        Err(_) => assert!(count.is_none(), "a count does not merge"),
    }
    if let Some(count) = count {
        let old = write_count(i64::from_le_bytes(key.first_chunk().copied().unwrap_or_default()));
        let merged = merge(Some(&old), value).expect("counts merge");
        assert!(is_sound(&merged) && write_count(count) == value);
    }
    let kinds = [MessageValue::read(value).is_some(), read_expiry(value).is_some(), count.is_some()];
    assert!(kinds.iter().filter(|is| **is).count() <= 1, "a value of two kinds");
    match kinds {
        _ if !is_sound(value) => Outcome::Refused("no sound value"),
        [true, ..] => Outcome::Accepted("message"),
        [_, true, _] => Outcome::Accepted("expiry"),
        [.., true] => Outcome::Accepted("count"),
        _ => panic!("a sound value of no kind"),
    }
}
