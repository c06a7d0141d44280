//! Metadata: names and values that a caller attaches to a resource, in headers `x-ms-meta-NAME`.
//!
//! A [`Metadata`] is always valid. Names keep their case and are compared without it.

use crate::{ErrorCode, ServiceError};

/// The header of an item is this and its name.
pub const HEADER_PREFIX: &str = "x-ms-meta-";
/// All names and values together.
const SIZE_BYTES_MAX: usize = 8 * 1024;

#[derive(Clone, Eq, Debug, Default)]
pub struct Metadata {
    items: Vec<(Box<str>, Box<str>)>,
}

impl Metadata {
    /// From the names, without the prefix, and their values.
    pub fn read<'a>(items: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Metadata, ServiceError> {
        let mut metadata = Metadata::default();
        let mut size_bytes = 0;
        for (name, value) in items {
            check_name(name)?;
            if !value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
                return Err(ErrorCode::InvalidMetadata.into());
            }
            if metadata.get(name).is_some() {
                return Err(ErrorCode::InvalidMetadata.into());
            }
            size_bytes += name.len() + value.len();
            if size_bytes > SIZE_BYTES_MAX {
                return Err(ErrorCode::MetadataTooLarge.into());
            }
            metadata.items.push((name.into(), value.into()));
        }
        Ok(metadata)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.items().find(|(item, _)| item.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn items(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.items.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// The same names, whatever their case and order, with the same values.
impl PartialEq for Metadata {
    fn eq(&self, other: &Metadata) -> bool {
        self.items.len() == other.items.len()
            && self.items().all(|(name, value)| other.get(name) == Some(value))
    }
}

/// An identifier of C#, in ASCII: a letter or `_`, then letters, digits and `_`.
fn check_name(name: &str) -> Result<(), ServiceError> {
    let Some(first) = name.bytes().next() else { return Err(ErrorCode::EmptyMetadataKey.into()) };
    let is_valid = (first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_valid { Ok(()) } else { Err(ErrorCode::InvalidMetadata.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(items: &[(&str, &str)]) -> Result<Metadata, ErrorCode> {
        Metadata::read(items.iter().copied()).map_err(|error| error.code)
    }

    #[test]
    fn names_are_identifiers_and_keep_their_case() {
        let metadata = code(&[("Color", "red"), ("_x1", "")]).unwrap();
        assert_eq!(metadata.items().collect::<Vec<_>>(), [("Color", "red"), ("_x1", "")]);
        assert_eq!(metadata.get("COLOR"), Some("red"));
        assert_eq!(code(&[("", "v")]), Err(ErrorCode::EmptyMetadataKey));
        for bad in ["a-b", "1a", "a b", "ä"] {
            assert_eq!(code(&[(bad, "v")]), Err(ErrorCode::InvalidMetadata), "{bad}");
        }
        assert_eq!(code(&[("a", "v"), ("A", "v")]), Err(ErrorCode::InvalidMetadata));
        assert_eq!(code(&[("a", "ä")]), Err(ErrorCode::InvalidMetadata));
    }

    #[test]
    fn all_together_have_a_bound() {
        let value = "v".repeat(SIZE_BYTES_MAX - 1);
        assert!(code(&[("a", &value)]).is_ok());
        assert_eq!(code(&[("a", &value), ("b", "")]), Err(ErrorCode::MetadataTooLarge));
    }

    #[test]
    fn equality_ignores_case_and_order_of_names() {
        let one = code(&[("a", "1"), ("B", "2")]).unwrap();
        assert_eq!(one, code(&[("b", "2"), ("A", "1")]).unwrap());
        assert_ne!(one, code(&[("a", "1"), ("b", "3")]).unwrap());
        assert_ne!(one, code(&[("a", "1")]).unwrap());
        assert_ne!(one, Metadata::default());
    }
}
