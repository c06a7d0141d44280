//! Names of what was observed: account, table, partition and row, in one bounded piece of text.
//!
//! Promises: a name takes at most [`NAME_BYTES_MAX`] bytes however long the keys are; what is longer is cut and shows
//! it. Two names are compared by [`hash`], which covers all of them.

use protocol::common::Fnv;

/// No account and no table has a longer name; keys may be longer, and their beginning tells enough.
const PART_BYTES_MAX: [usize; PART_COUNT] = [32, 64, 128, 128];
const PART_COUNT: usize = 4;
const CUT_MARK: &str = "\u{2026}";

pub(super) const NAME_BYTES_MAX: usize = 32 + 64 + 128 + 128;

/// Parts that do not apply are empty.
#[derive(Default)]
pub(super) struct Name {
    text: String,
    /// Where each part ends.
    ends: [u16; PART_COUNT],
}

impl Name {
    pub(super) fn new(parts: &[&str]) -> Name {
        let mut name = Name::default();
        name.set(parts);
        name
    }

    /// Account, table, partition, row; those that are missing are empty. Uses the memory of the name before.
    pub(super) fn set(&mut self, parts: &[&str]) {
        debug_assert!(parts.len() <= PART_COUNT);
        self.text.clear();
        let lengths = parts.iter().zip(PART_BYTES_MAX).map(|(part, bytes_max)| part.len().min(bytes_max));
        let total: usize = lengths.sum();
        if self.text.capacity() < total {
            self.text.reserve_exact(total);
        }
        for (index, bytes_max) in PART_BYTES_MAX.into_iter().enumerate() {
            push_cut(&mut self.text, parts.get(index).copied().unwrap_or_default(), bytes_max);
            self.ends[index] = self.text.len() as u16;
        }
    }

    pub(super) fn account(&self) -> &str {
        self.part(0)
    }

    pub(super) fn table(&self) -> &str {
        self.part(1)
    }

    pub(super) fn partition(&self) -> &str {
        self.part(2)
    }

    pub(super) fn row(&self) -> &str {
        self.part(3)
    }

    /// Its end is missing. A key that has this length and ends with the mark by itself counts as cut, too.
    pub(super) fn is_partition_cut(&self) -> bool {
        let partition = self.partition();
        partition.len() + CUT_MARK.len() >= PART_BYTES_MAX[2] && partition.ends_with(CUT_MARK)
    }

    fn part(&self, index: usize) -> &str {
        let begin = index.checked_sub(1).map_or(0, |before| usize::from(self.ends[before]));
        self.text.get(begin..usize::from(self.ends[index])).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.text.capacity()
    }
}

fn push_cut(text: &mut String, part: &str, bytes_max: usize) {
    if part.len() <= bytes_max {
        text.push_str(part);
        return;
    }
    text.push_str(cut(part, bytes_max - CUT_MARK.len()));
    text.push_str(CUT_MARK);
}

/// At most so many bytes from the beginning.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Over all parts. The parts before `case_matters_from` are compared without regard to case, as names of
/// tables are.
pub(super) fn hash(parts: &[&str], case_matters_from: usize) -> u64 {
    let mut hash = Fnv::default();
    for (index, part) in parts.iter().enumerate() {
        for byte in part.bytes() {
            hash.byte(if index < case_matters_from { byte.to_ascii_lowercase() } else { byte });
        }
        // No text contains this byte, so ("a", "bc") and ("ab", "c") differ.
        hash.byte(0xff);
    }
    hash.value()
}

/// Of an account and a table, and of keys in it.
pub(super) fn hash_of(account: &str, table: &str, keys: &[&str]) -> u64 {
    let mut parts = [account, table, "", ""];
    let count = keys.len().min(2);
    parts[2..2 + count].copy_from_slice(&keys[..count]);
    hash(&parts[..2 + count], 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_bounded_and_shows_that_it_was_cut() {
        let long = "ä".repeat(2000);
        let mut name = Name::new(&[&long, &long, &long, &long]);
        assert!(name.held_bytes() <= NAME_BYTES_MAX, "{}", name.held_bytes());
        assert!(name.partition().ends_with(CUT_MARK) && name.row().starts_with("ä"));
        name.set(&["account", "table"]);
        assert_eq!(
            (name.account(), name.table(), name.partition(), name.row()),
            ("account", "table", "", "")
        );
        name.set(&[&long, &long, &long, &long]);
        assert!(name.held_bytes() <= NAME_BYTES_MAX);
    }

    #[test]
    fn tables_are_the_same_in_any_case_and_keys_are_not() {
        assert_eq!(hash_of("a", "People", &["p"]), hash_of("a", "people", &["p"]));
        assert_ne!(hash_of("a", "people", &["P"]), hash_of("a", "people", &["p"]));
        assert_ne!(hash_of("a", "people", &["p", ""]), hash_of("a", "people", &["p"]));
        assert_ne!(hash_of("a", "bc", &[]), hash_of("ab", "c", &[]));
    }
}
