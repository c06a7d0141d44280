//! Account names. An [`AccountName`] is always valid.

use std::fmt;

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
