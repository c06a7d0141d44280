//! A reader for DER, complete enough to read PFX files and to find the names and dates of a certificate.
//!
//! Promises: never panics and never reads past its input, whatever the bytes. `None` means that the next bytes are not
//! the element that the caller asked for. Leaves to others: the meaning of the elements.

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
/// The tag `[0]` around one or more complete elements.
pub(crate) const CONTEXT_0: u8 = 0xA0;
/// The tag `[0]` in place of a primitive element's own tag.
pub(crate) const CONTEXT_0_PRIMITIVE: u8 = 0x80;

const CONSTRUCTED: u8 = 0x20;
/// Tag numbers of 31 and more take further bytes. No format that we read uses them.
const LONG_TAG: u8 = 0x1F;

#[derive(Clone, Copy)]
pub(crate) struct DerElement<'a> {
    pub(crate) tag: u8,
    pub(crate) value: &'a [u8],
    /// The value with its tag and length.
    pub(crate) whole: &'a [u8],
}

/// A sequence of elements, read from front to back.
#[derive(Clone, Copy)]
pub(crate) struct DerReader<'a> {
    rest: &'a [u8],
}

impl<'a> DerReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> DerReader<'a> {
        DerReader { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn next_is(&self, tag: u8) -> bool {
        self.rest.first() == Some(&tag)
    }

    pub(crate) fn any(&mut self) -> Option<DerElement<'a>> {
        let (&tag, after_tag) = self.rest.split_first()?;
        if tag & LONG_TAG == LONG_TAG {
            return None;
        }
        let (&first, after_first) = after_tag.split_first()?;
        let (length, after_length) = match first {
            0..=0x7F => (usize::from(first), after_first),
            // 0x80 is the indefinite length of BER. More than four bytes would exceed the size of any file we read.
            0x81..=0x84 => {
                let (bytes, after) = after_first.split_at_checked(usize::from(first & 0x7F))?;
                let length = bytes.iter().fold(0_u32, |length, &byte| length << 8 | u32::from(byte));
                (usize::try_from(length).ok()?, after)
            }
            _ => return None,
        };
        let (value, rest) = after_length.split_at_checked(length)?;
        let whole = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Some(DerElement { tag, value, whole })
    }

    pub(crate) fn expect(&mut self, tag: u8) -> Option<DerElement<'a>> {
        if self.next_is(tag) { self.any() } else { None }
    }

    /// The elements inside the next element, which must have this tag.
    pub(crate) fn enter(&mut self, tag: u8) -> Option<DerReader<'a>> {
        self.expect(tag).map(|element| DerReader::new(element.value))
    }

    pub(crate) fn object_identifier(&mut self) -> Option<&'a [u8]> {
        self.expect(OBJECT_IDENTIFIER).map(|element| element.value)
    }

    /// A non-negative number of up to 32 bits.
    pub(crate) fn integer(&mut self) -> Option<u32> {
        let value = self.expect(INTEGER)?.value;
        let digits = match value {
            [0, digits @ ..] => digits,
            [first, ..] if *first < 0x80 => value,
            _ => return None,
        };
        if digits.len() > 4 {
            return None;
        }
        Some(digits.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    /// An octet string with this tag. Some programs write it in pieces, inside a constructed element.
    pub(crate) fn octets(&mut self, tag: u8) -> Option<Vec<u8>> {
        if self.next_is(tag) {
            return self.any().map(|element| element.value.to_vec());
        }
        let mut pieces = self.enter(tag | CONSTRUCTED)?;
        let mut octets = Vec::new();
        while !pieces.is_empty() {
            octets.extend_from_slice(pieces.expect(OCTET_STRING)?.value);
        }
        Some(octets)
    }
}

/// An object identifier as people write it: `1.2.840.113549.1.5.13`.
pub(crate) fn dotted(identifier: &[u8]) -> String {
    let mut parts: Vec<u64> = Vec::new();
    let mut part = 0_u64;
    for byte in identifier {
        part = part.wrapping_shl(7) | u64::from(byte & 0x7F);
        if byte & 0x80 != 0 {
            continue;
        }
        if parts.is_empty() {
            // The first number encodes the first two parts.
            let first = (part / 40).min(2);
            parts.push(first);
            part -= first * 40;
        }
        parts.push(part);
        part = 0;
    }
    parts.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_or_long_and_never_past_the_end() {
        let long = [&[0x04, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        assert_eq!(DerReader::new(&long).any().unwrap().value, [7; 256]);
        assert_eq!(DerReader::new(&[0x04, 2, 1, 2, 9]).any().unwrap().whole, [0x04, 2, 1, 2]);
        for bad in [
            &[][..],
            &[0x04],
            &[0x04, 1],
            &[0x04, 0x80, 0, 0],
            &[0x04, 0x81],
            &[0x04, 0x84, 0xFF, 0xFF, 0xFF, 0xFF],
            &[0x04, 0x85, 0, 0, 0, 0, 1, 1],
            &[0x1F, 1, 1],
        ] {
            assert!(DerReader::new(bad).any().is_none(), "{bad:?}");
        }
    }

    #[test]
    fn numbers_and_strings_are_what_they_say() {
        let integer = |bytes: &[u8]| DerReader::new(bytes).integer();
        assert_eq!(integer(&[2, 2, 8, 0]), Some(2048));
        assert_eq!(integer(&[2, 5, 0, 0xFF, 0xFF, 0xFF, 0xFF]), Some(u32::MAX));
        for bad in [&[2, 1, 0xFF][..], &[2, 0], &[2, 5, 1, 0, 0, 0, 0], &[4, 1, 1]] {
            assert_eq!(integer(bad), None, "{bad:?}");
        }
        let octets = |bytes: &[u8]| DerReader::new(bytes).octets(OCTET_STRING);
        assert_eq!(octets(&[4, 2, 1, 2]), Some(vec![1, 2]));
        assert_eq!(octets(&[0x24, 6, 4, 1, 1, 4, 1, 2]), Some(vec![1, 2]));
        assert_eq!(octets(&[0x24, 3, 5, 1, 1]), None);
        assert_eq!(dotted(&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0D]), "1.2.840.113549.1.5.13");
    }
}
