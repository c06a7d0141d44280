//! References to contents, as rows keep them (docs/contents.md).
//!
//! Promises: 24 bytes, whatever the store; decoding an encoded reference returns it, and decoding anything else is an
//! error or a reference to nothing. Only the store that made an id knows what it means.

use std::fmt;

pub const CONTENT_REF_BYTES: usize = 24;
const FORMAT: u8 = 1;
const LENGTH_BYTES: usize = 7;
const LENGTH_MAX: u64 = (1 << (8 * LENGTH_BYTES)) - 1;

/// Names a content within its store. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId(pub(crate) [u8; 16]);

impl ContentId {
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ContentRef {
    pub(crate) id: ContentId,
    pub(crate) length: u64,
}

impl ContentRef {
    pub(crate) fn new(id: ContentId, length: u64) -> ContentRef {
        assert!(length <= LENGTH_MAX, "no store takes a content of 64 PiB");
        ContentRef { id, length }
    }

    pub fn id(&self) -> ContentId {
        self.id
    }

    /// How many bytes the content has.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn encode(&self) -> [u8; CONTENT_REF_BYTES] {
        let mut bytes = [0; CONTENT_REF_BYTES];
        bytes[0] = FORMAT;
        bytes[1..8].copy_from_slice(&self.length.to_le_bytes()[..LENGTH_BYTES]);
        bytes[8..].copy_from_slice(&self.id.0);
        bytes
    }

    /// `None` when these bytes are not of a format that this version knows.
    pub fn decode(bytes: &[u8]) -> Option<ContentRef> {
        let bytes: &[u8; CONTENT_REF_BYTES] = bytes.try_into().ok()?;
        let (head, id) = bytes.split_first_chunk::<8>()?;
        let id = ContentId(id.try_into().ok()?);
        // The format is the lowest byte, and the length is above it.
        (head[0] == FORMAT).then(|| ContentRef { id, length: u64::from_le_bytes(*head) >> 8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_reads_as_it_was_written_and_keeps_its_bytes() {
        let content = ContentRef::new(ContentId(*b"0123456789abcdef"), 0x0102_0304_0506);
        assert_eq!(content.encode(), *b"\x01\x06\x05\x04\x03\x02\x01\x000123456789abcdef");
        assert_eq!(ContentRef::decode(&content.encode()), Some(content));
        let longest = ContentRef::new(ContentId([0xff; 16]), LENGTH_MAX);
        assert_eq!(ContentRef::decode(&longest.encode()), Some(longest));
    }

    #[test]
    fn other_bytes_are_no_reference() {
        let mut bytes = ContentRef::new(ContentId([7; 16]), 1).encode();
        assert_eq!(ContentRef::decode(&bytes[..23]), None);
        assert_eq!(ContentRef::decode(&[]), None);
        bytes[0] = 2;
        assert_eq!(ContentRef::decode(&bytes), None);
    }
}
