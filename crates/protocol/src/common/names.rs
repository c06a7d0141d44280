//! Account names, and the rule for names of containers that two services share. An [`AccountName`] is always valid.

use std::fmt;

use crate::{ErrorCode, ServiceError};

const CONTAINER_NAME_LEN: std::ops::RangeInclusive<usize> = 3..=63;
const ACCOUNT_NAME_LEN: std::ops::RangeInclusive<usize> = 3..=24;

/// 3 to 24 lower-case letters and digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AccountName(Box<str>);

impl AccountName {
    pub fn parse(text: &str) -> Option<AccountName> {
        let valid = ACCOUNT_NAME_LEN.contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        valid.then(|| AccountName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses a container's name unless it has 3 to 63 lower-case letters, digits and single dashes, with a letter or digit
/// at both ends.
pub(crate) fn check_container_name(text: &str) -> Result<(), ServiceError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_valid = text.bytes().all(|byte| is_plain(byte) || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--");
    if !is_valid {
        return Err(ErrorCode::InvalidResourceName.into());
    }
    if CONTAINER_NAME_LEN.contains(&text.len()) { Ok(()) } else { Err(name_length_error()) }
}

/// A name that is too short or too long.
pub(crate) fn name_length_error() -> ServiceError {
    ServiceError::with_detail(
        ErrorCode::OutOfRangeInput,
        "The specified resource name length is not within the permissible limits.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_names_are_lower_case_letters_and_digits() {
        assert!(AccountName::parse("devstoreaccount1").is_some());
        for bad in ["ab", "Abc", "a-b", "abc!", &"a".repeat(25)] {
            assert!(AccountName::parse(bad).is_none(), "{bad}");
        }
    }
}
