//! Request ids: GUID-shaped, lower case, unique within and across runs.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes ids from a random seed per run and a counter, without asking the system for randomness each time.
pub(crate) struct RequestIds {
    seed: u64,
    next: AtomicU64,
}

// Aligned, because text is checked by words, and byte by byte up to the first of them.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub struct RequestId([u8; 36]);

impl RequestIds {
    pub fn new() -> RequestIds {
        // The standard library seeds its hashers with randomness from the system.
        RequestIds { seed: RandomState::new().hash_one("lazulite"), next: AtomicU64::new(1) }
    }

    pub fn next(&self) -> RequestId {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        RequestId::from_halves(mix(self.seed ^ count), self.seed.rotate_left(32).wrapping_add(count))
    }
}

impl RequestId {
    fn from_halves(high: u64, low: u64) -> RequestId {
        /// Where each byte stands, as two digits.
        const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
        let mut text = [b'-'; 36];
        let bits = u128::from(high) << 64 | u128::from(low);
        for (byte, place) in bits.to_be_bytes().into_iter().zip(PLACES) {
            text[place..place + 2].copy_from_slice(&PAIRS[usize::from(byte)]);
        }
        RequestId(text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Each byte as two hexadecimal digits.
static PAIRS: [[u8; 2]; 256] = {
    let hex = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [hex[byte >> 4], hex[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Spreads consecutive numbers over all bits (the finalizer of SplitMix64).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_guids_and_never_repeat() {
        let ids = RequestIds::new();
        let made: HashSet<String> = (0..10_000).map(|_| ids.next().as_str().to_owned()).collect();
        assert_eq!(made.len(), 10_000);
        assert!(made.iter().all(|id| protocol::table::model::Guid::parse(id).is_some()));
        assert_eq!(
            RequestId::from_halves(0x0123_4567_89ab_cdef, 1).as_str(),
            "01234567-89ab-cdef-0000-000000000001"
        );
    }
}
