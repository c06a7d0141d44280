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

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        let (a, b, c) = ((id >> 96) as u32, (id >> 80) as u16, (id >> 64) as u16);
        let (d, e) = ((id >> 48) as u16, id as u64 & 0xffff_ffff_ffff);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
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
