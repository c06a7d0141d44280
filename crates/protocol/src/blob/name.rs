//! Names of containers and blobs. A [`ContainerName`] and a [`BlobName`] are always valid.

use std::fmt;

use crate::common::names::{check_container_name, name_length_error};
use crate::{ErrorCode, ServiceError};

/// The container of blobs whose path has no container.
pub(crate) const ROOT_CONTAINER: &str = "$root";
/// The container of static websites.
pub const WEB_CONTAINER: &str = "$web";
/// The containers that only the service itself writes. Lists show them when they are asked to.
const SYSTEM_CONTAINERS: [&str; 2] = ["$logs", "$blobchangefeed"];

/// In UTF-16 units, which is how the service counts characters.
const BLOB_NAME_CHARS_MAX: usize = 1024;
const BLOB_NAME_SEGMENT_COUNT_MAX: usize = 254;

/// 3 to 63 lower-case letters, digits and single dashes, or one of the names that begin with a dollar sign.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ContainerName(Box<str>);

impl ContainerName {
    pub fn parse(text: &str) -> Result<ContainerName, ServiceError> {
        let is_special = [ROOT_CONTAINER, WEB_CONTAINER].contains(&text) || SYSTEM_CONTAINERS.contains(&text);
        if !is_special {
            check_container_name(text)?;
        }
        Ok(ContainerName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only the service itself writes it.
    pub fn is_system(&self) -> bool {
        SYSTEM_CONTAINERS.contains(&self.as_str())
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// 1 to 1024 characters, with case. Slashes, dots and backslashes are characters as any other.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlobName(Box<str>);

impl BlobName {
    pub fn parse(text: &str) -> Result<BlobName, ServiceError> {
        // No text has more UTF-16 units than bytes, so short ones need no count.
        let is_long = text.len() > BLOB_NAME_CHARS_MAX && text.encode_utf16().count() > BLOB_NAME_CHARS_MAX;
        if text.is_empty() || is_long {
            return Err(name_length_error());
        }
        if text.chars().any(is_forbidden) {
            return Err(ErrorCode::InvalidResourceName.into());
        }
        let segment_count = memchr::memchr_iter(b'/', text.as_bytes()).count() + 1;
        if segment_count > BLOB_NAME_SEGMENT_COUNT_MAX {
            return Err(name_length_error());
        }
        Ok(BlobName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Control characters and non-characters. The last two of the basic plane are allowed, although XML does not have them:
/// lists have a form for names that contain them.
fn is_forbidden(character: char) -> bool {
    match character {
        _ if character.is_control() => true,
        '\u{FDD1}'..='\u{FDEF}' | '\u{FFF0}'..='\u{FFFD}' => true,
        '\u{10000}'.. => u32::from(character) & 0xFFFE == 0xFFFE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_lower_case_with_single_dashes_or_special() {
        let longest = "c".repeat(63);
        for good in ["abc", "my-container-1", "0-0", "$root", "$web", "$logs", "$blobchangefeed", &longest] {
            assert!(ContainerName::parse(good).is_ok(), "{good}");
        }
        let code = |text: &str| ContainerName::parse(text).map_err(|error| error.code);
        for bad in ["Abc", "-abc", "abc-", "a--b", "a_b", "$other", "$Root", "a.b"] {
            assert_eq!(code(bad), Err(ErrorCode::InvalidResourceName), "{bad}");
        }
        for bad in ["", "ab", &"c".repeat(64)] {
            assert_eq!(code(bad), Err(ErrorCode::OutOfRangeInput), "{bad}");
        }
        assert!(ContainerName::parse("$logs").unwrap().is_system());
        assert!(!ContainerName::parse("$web").unwrap().is_system());
        let refusal = ContainerName::parse("ab").unwrap_err();
        assert_eq!(
            refusal.message(),
            "The specified resource name length is not within the permissible limits."
        );
    }

    #[test]
    fn blobs_have_nearly_any_name() {
        let longest = "b".repeat(1024);
        let wide = "\u{1F600}".repeat(512);
        let deep = "a/".repeat(253);
        for good in [
            "a", " ", ".", "..", "/", "//", "a/../b", "a\\b", "end.", "end/", "A", "ä", "\u{FFFF}", &longest,
            &wide, &deep,
        ] {
            assert!(BlobName::parse(good).is_ok(), "{good}");
        }
        let code = |text: &str| BlobName::parse(text).map_err(|error| error.code);
        let (long, wide, deep) = ("b".repeat(1025), "\u{1F600}".repeat(513), "a/".repeat(254));
        for bad in ["", &long, &wide, &deep] {
            assert_eq!(code(bad), Err(ErrorCode::OutOfRangeInput), "{bad}");
        }
        for bad in ["\0", "a\nb", "\u{7f}", "\u{81}", "\u{FDD1}", "\u{FFF0}", "\u{1FFFE}", "\u{10FFFF}"] {
            assert_eq!(code(bad), Err(ErrorCode::InvalidResourceName), "{bad:?}");
        }
    }
}
