//! A Bloom filter: says quickly that a key is not among the recent rows.
//!
//! Most keys that readers look for are not recent. Finding that out in the ordered map takes about twenty comparisons
//! all over memory; here it takes a look at two bits.
//!
//! Promises: a key that was added is always found. A key that was not is found rarely, as long as there are not many
//! more keys than [`KEY_COUNT_USUAL`].

use std::sync::atomic::{AtomicU64, Ordering};

/// About as many rows as one fold takes.
const KEY_COUNT_USUAL: usize = 64 * 1024;
const BITS_PER_KEY: usize = 16;
const WORD_COUNT: usize = KEY_COUNT_USUAL * BITS_PER_KEY / 64;

pub(crate) struct BloomFilter {
    words: Box<[AtomicU64]>,
}

/// The hash of a key, computed once for all filters.
#[derive(Clone, Copy)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn of(key: &[u8]) -> KeyHash {
        // Spreads the 32 bits of the checksum over 64.
        KeyHash(u64::from(crc32fast::hash(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The word, and two bits in it.
    fn place(self) -> (usize, u64) {
        let word = (self.0 >> 44) as usize % WORD_COUNT;
        (word, 1 << (self.0 >> 38 & 63) | 1 << (self.0 >> 32 & 63))
    }
}

impl Default for BloomFilter {
    fn default() -> BloomFilter {
        BloomFilter { words: (0..WORD_COUNT).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl BloomFilter {
    pub(crate) fn add(&self, print: KeyHash) {
        let (word, bits) = print.place();
        self.words[word].fetch_or(bits, Ordering::Relaxed);
    }

    pub(crate) fn may_hold(&self, print: KeyHash) -> bool {
        let (word, bits) = print.place();
        self.words[word].load(Ordering::Relaxed) & bits == bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_added_is_missing_and_little_else_is_found() {
        let filter = BloomFilter::default();
        let print = |n: usize| KeyHash::of(format!("key {n}").as_bytes());
        (0..KEY_COUNT_USUAL).for_each(|n| filter.add(print(n)));
        assert!((0..KEY_COUNT_USUAL).all(|n| filter.may_hold(print(n))));
        let wrong = (KEY_COUNT_USUAL..2 * KEY_COUNT_USUAL).filter(|n| filter.may_hold(print(*n))).count();
        assert!(wrong < KEY_COUNT_USUAL / 20, "{wrong}");
    }
}
