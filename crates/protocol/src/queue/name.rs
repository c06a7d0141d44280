//! Queue names. A [`QueueName`] is always valid.

use std::fmt;

use crate::ServiceError;
use crate::common::names::check_container_name;

/// 3 to 63 lower-case letters, digits and single dashes, with a letter or digit at both ends.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct QueueName(Box<str>);

impl QueueName {
    pub fn parse(text: &str) -> Result<QueueName, ServiceError> {
        check_container_name(text)?;
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
    use crate::ErrorCode;

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
