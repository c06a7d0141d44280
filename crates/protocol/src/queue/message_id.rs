//! The id of a message: a GUID, written in lower case with dashes.

use std::fmt;

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MessageId(pub u128);

const DASHES: [usize; 4] = [8, 13, 18, 23];
const TEXT_LEN: usize = 36;

impl MessageId {
    /// `None` if the text is no id that we write: then no message has it.
    pub fn parse(text: &str) -> Option<MessageId> {
        let bytes = text.as_bytes();
        if bytes.len() != TEXT_LEN {
            return None;
        }
        let mut id = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if DASHES.contains(&at) {
                if *byte != b'-' {
                    return None;
                }
                continue;
            }
            let digit = char::from(*byte).to_digit(16)?;
            id = id << 4 | u128::from(digit);
        }
        Some(MessageId(id))
    }
}

impl MessageId {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let digits = hex_digits(self.0);
        let mut start = 0;
        for (dash_count, dash) in DASHES.iter().enumerate() {
            let end = dash - dash_count;
            out.extend_from_slice(&digits[start..end]);
            out.push(b'-');
            start = end;
        }
        out.extend_from_slice(&digits[start..]);
    }
}

/// The number in hexadecimal, in lower case.
pub(super) fn hex_digits(number: u128) -> [u8; 32] {
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    digits
}

const HEX: &[u8; 16] = b"0123456789abcdef";

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(TEXT_LEN);
        self.write(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_as_written_in_either_case() {
        let text = "a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab";
        let id = MessageId::parse(text).unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(MessageId::parse(&text.to_uppercase()), Some(id));
        for bad in ["", "test-message-b9ecbdb2", &text[1..], "a638c367-b0f4-4c76-9e4d-d22dc8a9f5ag"] {
            assert_eq!(MessageId::parse(bad), None, "{bad}");
        }
        assert_eq!(MessageId::parse("a638c3670b0f4-4c76-9e4d-d22dc8a9f5ab"), None);
    }
}
