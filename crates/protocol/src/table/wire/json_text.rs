//! What in a text JSON cannot hold as it is: quotes, backslashes, control characters. Looked for eight bytes at a time.

const ONES: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = ONES << 7;

pub fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// How many bytes at the beginning need no escape.
pub fn plain_len(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = escapes_in(u64::from_le_bytes(*word));
        if found != 0 {
            // The lowest bit is right; a borrow may set wrong ones above it.
            return 8 * index + found.trailing_zeros() as usize / 8;
        }
    }
    let before = text.len() - rest.len();
    before + rest.iter().position(|byte| needs_escape(*byte)).unwrap_or(rest.len())
}

/// Whether no byte needs an escape. Some may be seen twice; without an early end, which would cost more than it saves.
pub fn is_plain(text: &[u8]) -> bool {
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

/// The high bits of the bytes that do: the usual arithmetic that finds a byte below a bound, or equal to another.
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
                    // With one more behind it.
                    text[len - 1] = b'"';
                    let expected = if needs_escape(byte) { at } else { len - 1 };
                    assert_eq!(plain_len(&text), expected, "{byte:02x} at {at} of {len}, then a quote");
                }
            }
        }
    }
}
