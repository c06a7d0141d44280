//! Whether the rows of a queue agree with each other: every message that expires has its expiry row and the other way
//! round, the counts add up to the number of messages, and keys and values are what they should be.
//!
//! Promises: pure, over rows in key order as of one moment, in bounded memory however long the queue is. The messages and
//! the expiry rows are compared by the sums of their hashes; only if these differ, [`QueueCheck::details`] asks to be shown
//! the rows again, in as many rounds as memory needs.

use std::collections::HashMap;

use protocol::queue::MessageId;

use crate::rows::{self, MessageKey, MessageValue, NEVER_TICKS};

/// Findings that are kept as text; further ones are only counted.
pub(crate) const FINDING_COUNT_MAX: usize = 100;
/// Messages that one round of a closer look remembers.
const ROUND_MESSAGE_COUNT_MAX: u64 = 1_000_000;

/// Sees all rows of one queue.
#[derive(Clone, Default, Debug)]
pub(crate) struct QueueCheck {
    pub(crate) message_count: u64,
    counted: i128,
    expiring: Fingerprint,
    expiry_rows: Fingerprint,
    findings: Findings,
}

/// A number of facts and the sum of their hashes, whatever their order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Fingerprint {
    count: u64,
    sum: u128,
}

impl Fingerprint {
    /// That the message of this id, at this place, expires then.
    fn add(&mut self, place: MessageKey, expires: u64) {
        let id = place.id.0;
        let mut hash = 0;
        for part in [(id >> 64) as u64, id as u64, place.visible, expires] {
            hash = mix(hash ^ part);
        }
        self.count += 1;
        self.sum = self.sum.wrapping_add(u128::from(hash) << 64 | u128::from(mix(!hash)));
    }
}

/// Scatters the bits of a number (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What is wrong, one sentence each, and how many there are.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Findings {
    pub(crate) sentences: Vec<String>,
    pub(crate) count: u64,
}

impl Findings {
    pub(crate) fn append(&mut self, other: Findings) {
        self.count += other.count;
        let room = FINDING_COUNT_MAX.saturating_sub(self.sentences.len());
        self.sentences.extend(other.sentences.into_iter().take(room));
    }

    fn add(&mut self, sentence: String) {
        self.count += 1;
        if self.sentences.len() < FINDING_COUNT_MAX {
            self.sentences.push(sentence);
        }
    }
}

/// A row of a queue, decoded.
enum QueueRow {
    Message { place: MessageKey, expires: u64 },
    Expiry { place: MessageKey, expires: u64 },
    Count(i64),
}

impl QueueRow {
    fn read(partition: &str, row: &str, value: &[u8]) -> Option<QueueRow> {
        if partition != rows::PARTITION {
            return None;
        }
        match row.as_bytes().first()? {
            b'm' => {
                let (place, message) = MessageKey::read(row).zip(MessageValue::read(value))?;
                std::str::from_utf8(message.text).ok()?;
                // Only one spelling of a key is its own.
                (*place.row() == *row).then_some(QueueRow::Message { place, expires: message.expires })
            }
            b'x' => {
                let (expires, id) = rows::read_expiry_row(row)?;
                let place = MessageKey { visible: rows::read_expiry(value)?, id };
                (*rows::expiry_row(expires, id) == *row).then_some(QueueRow::Expiry { place, expires })
            }
            b'c' => rows::read_count(value).map(QueueRow::Count),
            _ => None,
        }
    }
}

impl QueueCheck {
    pub(crate) fn see(&mut self, partition: &str, row: &str, value: &[u8]) {
        match QueueRow::read(partition, row, value) {
            Some(QueueRow::Message { place, expires }) => {
                self.message_count += 1;
                if expires != NEVER_TICKS {
                    self.expiring.add(place, expires);
                }
            }
            Some(QueueRow::Expiry { place, expires }) => self.expiry_rows.add(place, expires),
            Some(QueueRow::Count(count)) => self.counted += i128::from(count),
            None => self.findings.add(format!("the row {row:?} is no row of a queue")),
        }
    }

    /// What is wrong with the rows by themselves, and with the count.
    pub(crate) fn findings(&self) -> Findings {
        let mut findings = self.findings.clone();
        if self.counted != i128::from(self.message_count) {
            findings
                .add(format!("{} messages are counted but {} are there", self.counted, self.message_count));
        }
        findings
    }

    /// For a closer look at messages and expiry rows that do not agree: show each of these all rows again. Empty if they
    /// agree.
    pub(crate) fn details(&self) -> Vec<QueueDetails> {
        if self.expiring == self.expiry_rows {
            return Vec::new();
        }
        let rounds = self.expiring.count.max(self.expiry_rows.count).div_ceil(ROUND_MESSAGE_COUNT_MAX).max(1);
        (0..rounds).map(|round| QueueDetails { round, rounds, ..QueueDetails::default() }).collect()
    }

    #[cfg(test)]
    fn is_sound(&self) -> bool {
        self.findings().count == 0 && self.expiring == self.expiry_rows
    }
}

/// One round of a closer look: at the messages whose ids belong to it.
#[derive(Default)]
pub(crate) struct QueueDetails {
    round: u64,
    rounds: u64,
    /// Messages that expire, and have not met their expiry row yet.
    expiring: HashMap<(MessageId, u64), u64>,
    findings: Findings,
}

impl QueueDetails {
    pub(crate) fn see(&mut self, partition: &str, row: &str, value: &[u8]) {
        let is_mine = |id: MessageId| mix(id.0 as u64) % self.rounds == self.round;
        match QueueRow::read(partition, row, value) {
            Some(QueueRow::Message { place, expires }) if expires != NEVER_TICKS && is_mine(place.id) => {
                let other = self.expiring.insert((place.id, expires), place.visible);
                if other.is_some() {
                    self.findings.add(format!("the message {} is there twice", place.id));
                }
            }
            // Expiry rows come after all messages.
            Some(QueueRow::Expiry { place, expires }) if is_mine(place.id) => {
                match self.expiring.remove(&(place.id, expires)) {
                    Some(visible) if visible == place.visible => {}
                    Some(_) => self
                        .findings
                        .add(format!("the expiry row of message {} leads to another place", place.id)),
                    None => {
                        self.findings.add(format!("the expiry row of message {} has no message", place.id));
                    }
                }
            }
            _ => {}
        }
    }

    pub(crate) fn findings(mut self) -> Findings {
        let mut missing: Vec<MessageId> = self.expiring.keys().map(|(id, _)| *id).collect();
        missing.sort();
        for id in missing {
            self.findings.add(format!("the message {id} has no expiry row"));
        }
        self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::StoredMessage;
    use bytes::Bytes;

    type Rows = Vec<(Box<str>, Bytes)>;

    fn sound_rows() -> Rows {
        let mut found: Rows = vec![(rows::count_row(MessageId(1)), rows::write_count(5))];
        found.push((rows::count_row(MessageId(2)), rows::write_count(-2)));
        for number in 1..=3 {
            let expires = if number == 3 { NEVER_TICKS } else { 100 + number };
            let message = StoredMessage {
                visible: 50,
                id: MessageId(u128::from(number)),
                inserted: 10,
                expires,
                dequeue_count: 0,
                text: "text",
            };
            found.extend(message.rows().map(|(key, value)| (key.row, value)));
        }
        found.sort();
        found
    }

    /// The findings, all of them.
    fn looked_at(found: &Rows) -> Vec<String> {
        let mut check = QueueCheck::default();
        found.iter().for_each(|(row, value)| check.see("", row, value));
        let mut sentences = check.findings().sentences;
        for mut details in check.details() {
            found.iter().for_each(|(row, value)| details.see("", row, value));
            sentences.extend(details.findings().sentences);
        }
        assert_eq!(check.is_sound(), sentences.is_empty());
        sentences
    }

    #[test]
    fn rows_that_agree_are_sound() {
        assert_eq!(looked_at(&sound_rows()), [""; 0]);
        assert_eq!(looked_at(&Rows::new()), [""; 0]);
    }

    #[test]
    fn every_row_that_is_missing_or_wrong_is_found() {
        let whole = sound_rows();
        for index in 0..whole.len() {
            let mut cut = whole.clone();
            let (row, _) = cut.remove(index);
            assert!(!looked_at(&cut).is_empty(), "without {row}");
        }
        let check = |change: &dyn Fn(&mut Rows), part: &str| {
            let mut changed = whole.clone();
            change(&mut changed);
            changed.sort();
            let sentences = looked_at(&changed).join("\n");
            assert!(sentences.contains(part), "{part}: {sentences}");
        };
        let place =
            |kind: char| move |found: &Rows| found.iter().position(|(row, _)| row.starts_with(kind)).unwrap();
        let (message, expiry) = (place('m'), place('x'));
        check(&|found| found[0].1 = rows::write_count(6), "4 messages are counted but 3 are there");
        check(&|found| drop(found.remove(expiry(found))), "0001 has no expiry row");
        check(&|found| drop(found.remove(message(found))), "0001 has no message");
        let first_expiry = expiry(&whole);
        check(&|found| found[first_expiry].1 = rows::write_expiry(51), "leads to another place");
        check(&|found| found.push(("m1".into(), rows::write_count(0))), "\"m1\" is no row of a queue");
        check(&|found| found.push(("q".into(), Bytes::new())), "\"q\" is no row of a queue");
        let upper = format!("m{:016X}{:032X}", 0xAB, 7);
        let value = whole[message(&whole)].1.clone();
        check(&|found| found.push((upper.as_str().into(), value.clone())), "is no row of a queue");
    }
}
