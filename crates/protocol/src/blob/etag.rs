//! ETags of containers and blobs: `"0x8DA7413B31024BF"`, a number that every change makes greater.

use std::fmt;

/// The number behind an ETag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlobETag(pub u64);

impl BlobETag {
    /// Reads a tag with or without quotes. `None` for a text that this service never writes: it matches nothing.
    pub fn parse(text: &str) -> Option<BlobETag> {
        let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let digits = bare.strip_prefix("0x").or_else(|| bare.strip_prefix("0X"))?;
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex { u64::from_str_radix(digits, 16).ok().map(BlobETag) } else { None }
    }

    /// In quotes, as headers and lists of containers have it.
    pub fn quoted(self) -> String {
        format!("\"{self}\"")
    }
}

/// Without quotes, as lists of blobs have it.
impl fmt::Display for BlobETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:X}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_optional() {
        let tag = BlobETag(0x8DA_7413_B310_24BF);
        assert_eq!(tag.quoted(), "\"0x8DA7413B31024BF\"");
        for text in ["\"0x8DA7413B31024BF\"", "0x8DA7413B31024BF", "0x8da7413b31024bf"] {
            assert_eq!(BlobETag::parse(text), Some(tag), "{text}");
        }
        for text in ["", "\"\"", "0x", "W/\"0x8DA7413B31024BF\"", "0x+1", "0x8DA7413B31024BF00", "x", "*"] {
            assert_eq!(BlobETag::parse(text), None, "{text}");
        }
    }
}
