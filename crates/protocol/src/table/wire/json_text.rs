//! Finds the characters that JSON must escape (quotes, backslashes, control characters), eight bytes at a time.

const ONES: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = ONES << 7;

pub(crate) fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// How many bytes at the beginning need no escape.
pub(crate) fn plain_len(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = escapes_in(u64::from_le_bytes(*word));
        if found != 0 {
            // The lowest bit is correct; borrows can set wrong bits only above it.
            return 8 * index + found.trailing_zeros() as usize / 8;
        }
    }
    let before = text.len() - rest.len();
    before + rest.iter().position(|byte| needs_escape(*byte)).unwrap_or(rest.len())
}

/// Whether no byte needs an escape. The last word may overlap the one before. Stopping early would cost more than it
/// saves.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<8>() {
        let (words, _) = text.as_chunks::<8>();
        let last = escapes_in(u64::from_le_bytes(*last));
        return words.iter().fold(last, |found, word| found | escapes_in(u64::from_le_bytes(*word))) == 0;
    }
    match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
            escapes_in(first << 32 | last) == 0
        }
        _ => text.iter().all(|byte| !needs_escape(*byte)),
    }
}

/// The high bit of each byte that needs an escape: the usual bit tricks that find bytes below a bound or equal to a
/// value.
fn escapes_in(word: u64) -> u64 {
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_wherever_it_stands() {
        for len in 0..40 {
            assert_eq!(plain_len(&vec![b'a'; len]), len);
            for at in 0..len {
                for byte in 0..=0xFF {
                    let mut text = vec![b'a'; len];
                    text[at] = byte;
                    assert_eq!(is_plain(&text), !needs_escape(byte), "{byte:02x} at {at} of {len}");
                    let expected = if needs_escape(byte) { at } else { len };
                    assert_eq!(plain_len(&text), expected, "{byte:02x} at {at} of {len}");
                    // The same with one more escape after it.
                    text[len - 1] = b'"';
                    let expected = if needs_escape(byte) { at } else { len - 1 };
                    assert_eq!(plain_len(&text), expected, "{byte:02x} at {at} of {len}, then a quote");
                }
            }
        }
    }
}
