//! Values as bytes: numbers, texts, optional things, lists.
//!
//! Promises: reading never panics, and never reserves more memory than the bytes that are there.

use bytes::Bytes;
use contents::{CONTENT_REF_BYTES, ContentRef};
use engine::varint;

pub(crate) struct Encoder(pub(crate) Vec<u8>);

impl Encoder {
    pub(crate) fn new(tag: u8) -> Encoder {
        Encoder(vec![tag])
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Eight bytes, little-endian.
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn length(&mut self, length: usize) {
        varint::push(&mut self.0, length);
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.raw(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn option<T>(&mut self, option: Option<T>, write: impl FnOnce(&mut Encoder, T)) {
        match option {
            Some(value) => {
                self.byte(1);
                write(self, value);
            }
            None => self.byte(0),
        }
    }

    pub(crate) fn pairs<'a>(&mut self, pairs: impl ExactSizeIterator<Item = (&'a str, &'a str)>) {
        self.length(pairs.len());
        for (name, value) in pairs {
            self.text(name);
            self.text(value);
        }
    }

    pub(crate) fn contents(&mut self, contents: &[ContentRef]) {
        self.length(contents.len());
        for content in contents {
            self.raw(&content.encode());
        }
    }

    pub(crate) fn finish(self) -> Bytes {
        self.0.into()
    }
}

/// Every step is `None` when the bytes are not what they should be.
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    /// `None` unless the bytes begin with the tag.
    pub(crate) fn new(bytes: &'a [u8], tag: u8) -> Option<Decoder<'a>> {
        let (first, rest) = bytes.split_first()?;
        (*first == tag).then_some(Decoder(rest))
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn length(&mut self) -> Option<usize> {
        varint::pull(&mut self.0)
    }

    pub(crate) fn raw(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.raw(N)?.try_into().ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.raw(length)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Decoder<'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.flag()? {
            true => read(self).map(Some),
            false => Some(None),
        }
    }

    pub(crate) fn pairs(&mut self) -> Option<Vec<(&'a str, &'a str)>> {
        let count = self.length()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.text()?, self.text()?));
        }
        Some(pairs)
    }

    pub(crate) fn contents(&mut self) -> Option<Vec<ContentRef>> {
        let count = self.length()?;
        let bytes = self.raw(count.checked_mul(CONTENT_REF_BYTES)?)?;
        bytes.chunks_exact(CONTENT_REF_BYTES).map(ContentRef::decode).collect()
    }

    /// `None` if something is left.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
