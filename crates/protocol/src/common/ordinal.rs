//! The service's order of strings: ordinal, by UTF-16 code unit.

use std::cmp::Ordering;

/// Compares by UTF-16 code unit. UTF-8 byte order is the same, except that supplementary characters
/// (lead byte F0 and up) sort before U+E000..U+FFFF (lead bytes EE and EF), because their surrogates do.
pub fn compare_ordinal(a: &str, b: &str) -> Ordering {
    compare_ordinal_bytes(a.as_bytes(), b.as_bytes())
}

/// The same for strings that are at hand as bytes of UTF-8.
#[inline]
pub fn compare_ordinal_bytes(a: &[u8], b: &[u8]) -> Ordering {
    match a.iter().zip(b).position(|(x, y)| x != y) {
        None => a.len().cmp(&b.len()),
        Some(at) => rank(a[at]).cmp(&rank(b[at])),
    }
}

/// The rank of a differing byte in UTF-16 order. Only lead bytes can differ in class here: two strings that agree up to
/// a continuation byte agree on the lead byte before it.
fn rank(byte: u8) -> u8 {
    match byte {
        0xEE => 0xFE,
        0xEF => 0xFF,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_utf16_code_units() {
        let texts = [
            "",
            "10",
            "2",
            "B",
            "a",
            "b",
            "bB",
            "é",
            "日",
            "\u{D7FF}",
            "\u{1F600}",
            "\u{10FFFF}",
            "\u{E000}",
            "\u{FFFD}",
        ];
        for a in texts {
            for b in texts {
                let expected = a.encode_utf16().collect::<Vec<_>>().cmp(&b.encode_utf16().collect());
                assert_eq!(compare_ordinal(a, b), expected, "{a:?} and {b:?}");
            }
        }
    }
}
