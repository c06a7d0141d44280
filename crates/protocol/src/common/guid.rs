//! GUIDs: read in any of the usual forms, written with hyphens in lower case.

use std::fmt;
use std::str::FromStr;

use super::percent::hex_digit;

/// Sixteen bytes in the order of the text, so byte order is the service's order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Guid(pub [u8; 16]);

const HYPHENS_AFTER_BYTES: [usize; 4] = [4, 6, 8, 10];

impl Guid {
    /// Reads the forms of .NET: `D` (hyphens), `N` (32 digits), `B` (braces), `P` (parentheses), with hex digits in
    /// either case.
    pub fn parse(text: &str) -> Option<Guid> {
        let bare = match text.as_bytes() {
            [b'{', .., b'}'] | [b'(', .., b')'] => &text[1..text.len() - 1],
            _ => text,
        };
        let wrapped = bare.len() != text.len();
        let hyphenated = bare.len() == 36;
        if !hyphenated && (wrapped || bare.len() != 32) {
            return None;
        }
        let mut bytes = [0u8; 16];
        let mut digits = bare.bytes();
        for (index, byte) in bytes.iter_mut().enumerate() {
            if hyphenated && HYPHENS_AFTER_BYTES.contains(&index) && digits.next()? != b'-' {
                return None;
            }
            *byte = hex_digit(digits.next()?)? << 4 | hex_digit(digits.next()?)?;
        }
        Some(Guid(bytes))
    }

    /// Appends the text: hyphens, lower case.
    pub fn write(self, out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        for (index, byte) in self.0.iter().enumerate() {
            if HYPHENS_AFTER_BYTES.contains(&index) {
                out.push(b'-');
            }
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
    }
}

/// The text of [`Guid::write`].
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity("00000000-0000-0000-0000-000000000000".len());
        self.write(&mut text);
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Reads what [`Guid::parse`] reads.
impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Guid, GuidError> {
        Guid::parse(text).ok_or(GuidError)
    }
}

/// A text that is not a GUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuidError;

impl fmt::Display for GuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a GUID")
    }
}

impl std::error::Error for GuidError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: Option<&str>) {
        let written = Guid::parse(input).map(|guid| {
            let mut out = Vec::new();
            guid.write(&mut out);
            String::from_utf8(out).unwrap()
        });
        assert_eq!(written.as_deref(), expected, "{input}");
    }

    #[test]
    fn any_usual_form_is_read_and_one_is_written() {
        let written = Some("c9da6455-213d-42c9-9a79-3e9149a57833");
        check("c9da6455-213d-42c9-9a79-3e9149a57833", written);
        check("C9DA6455-213D-42C9-9A79-3E9149A57833", written);
        check("c9da6455213d42c99a793e9149a57833", written);
        check("{c9da6455-213d-42c9-9a79-3e9149a57833}", written);
        check("(c9da6455-213d-42c9-9a79-3e9149a57833)", written);
        check("", None);
        check("{}", None);
        check("{c9da6455213d42c99a793e9149a57833}", None);
        check("c9da6455-213d-42c9-9a79-3e9149a5783", None);
        check("c9da6455-213d-42c9-9a79-3e9149a5783g", None);
        check("c9da6455213d-42c9-9a79-3e9149a57833--", None);
        check("é9da6455-213d-42c9-9a79-3e9149a5783", None);
    }
}
