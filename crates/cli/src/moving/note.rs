//! How far a move is, as the target keeps it: `move 1 · source's last version · containers done · key of the next row`.
//!
//! One line of text. The keys are in hexadecimal, because they may hold anything.

use engine::OwnedKey;

const FIRST_WORDS: &str = "move 1";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MoveNote {
    /// Another last version is another source, or one that was written to.
    pub(super) source_ticks: u64,
    /// In the order of the catalogue.
    pub(super) done_count: usize,
    /// Of the container after those; `None`: none of its rows.
    pub(super) next: Option<OwnedKey>,
}

impl MoveNote {
    pub(super) fn write(&self) -> String {
        let MoveNote { source_ticks, done_count, next } = self;
        let mut text = format!("{FIRST_WORDS} {source_ticks} {done_count}");
        if let Some(key) = next {
            text += &format!(" {}. {}.", hex(&key.partition), hex(&key.row));
        }
        text
    }

    /// `None`: it is about something else.
    pub(super) fn read(text: &[u8]) -> Option<MoveNote> {
        let mut words = std::str::from_utf8(text).ok()?.strip_prefix(FIRST_WORDS)?.trim_start().split(' ');
        let (source_ticks, done_count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let next = match (words.next(), words.next()) {
            (None, None) => None,
            (Some(partition), Some(row)) => {
                Some(OwnedKey { partition: unhex(partition)?.into(), row: unhex(row)?.into() })
            }
            _ => return None,
        };
        Some(MoveNote { source_ticks, done_count, next })
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(word: &str) -> Option<String> {
    let digits = word.strip_suffix('.')?;
    let pairs = digits.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_as_it_was_written() {
        for next in [None, Some(("", "")), Some(("a b", "ü\n")), Some(("", "x"))] {
            let next = next.map(|(partition, row)| OwnedKey { partition: partition.into(), row: row.into() });
            let note = MoveNote { source_ticks: 7, done_count: 3, next };
            assert_eq!(MoveNote::read(note.write().as_bytes()), Some(note));
        }
        for text in ["", "restore", "move 1", "move 1 7", "move 1 7 x", "move 1 7 3 61.", "move 2 7 3"] {
            assert_eq!(MoveNote::read(text.as_bytes()), None, "{text}");
        }
    }
}
