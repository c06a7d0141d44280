//! Queue names. A [`QueueName`] is always valid.

use std::fmt;

use crate::{ErrorCode, ServiceError};

const LEN: std::ops::RangeInclusive<usize> = 3..=63;

/// 3 to 63 lower-case letters, digits and single dashes, with a letter or digit at both ends.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct QueueName(Box<str>);

impl QueueName {
    pub fn parse(text: &str) -> Result<QueueName, ServiceError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_valid = text.bytes().all(|byte| is_plain(byte) || byte == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-')
            && !text.contains("--");
        if !is_valid {
            return Err(ErrorCode::InvalidResourceName.into());
        }
        if !LEN.contains(&text.len()) {
            return Err(ServiceError::with_detail(
                ErrorCode::OutOfRangeInput,
                "The specified resource name length is not within the permissible limits.",
            ));
        }
        Ok(QueueName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_with_single_dashes() {
        let longest = "q".repeat(63);
        for good in ["abc", "a-b", "0-0-0", "my-queue-1", &longest] {
            assert!(QueueName::parse(good).is_ok(), "{good}");
        }
        let code = |text: &str| QueueName::parse(text).map_err(|error| error.code);
        for bad in ["Abc", "-abc", "abc-", "a--b", "a_b", "äbc", "a b", "$logs"] {
            assert_eq!(code(bad), Err(ErrorCode::InvalidResourceName), "{bad}");
        }
        for bad in ["", "a", "ab", &"q".repeat(64)] {
            assert_eq!(code(bad), Err(ErrorCode::OutOfRangeInput), "{bad}");
        }
    }
}
