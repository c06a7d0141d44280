//! Stored access policies: the identifiers in a container's ACL, which shared access signatures refer to.

use super::DateTime;

/// One identifier of a container's ACL. The tokens that refer to it supply the fields that are `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoredPolicy {
    pub id: String,
    pub start: Option<DateTime>,
    pub expiry: Option<DateTime>,
    /// Permission letters, as they were given.
    pub permission: Option<String>,
}

/// Reads the time of a policy or a token: any form that [`DateTime::parse`] reads, or a date alone, which means
/// midnight UTC.
pub(crate) fn parse_policy_time(text: &str) -> Option<DateTime> {
    if text.contains(['T', 't']) { DateTime::parse(text) } else { DateTime::parse(&format!("{text}T00:00Z")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_forms() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                parse_policy_time(text),
                expected.map(|text| DateTime::parse(text).unwrap()),
                "{text}"
            );
        };
        check("2030-01-02", Some("2030-01-02T00:00:00Z"));
        check("2030-01-02T03:04Z", Some("2030-01-02T03:04:00Z"));
        check("2030-01-02T03:04:05Z", Some("2030-01-02T03:04:05Z"));
        check("2030-01-02T03:04:05.0670000Z", Some("2030-01-02T03:04:05.067Z"));
        check("2030-01-02T03:04:05+01:00", Some("2030-01-02T02:04:05Z"));
        for bad in
            ["", "2030", "2030-1-2", "2030-02-30", "2030-01-02Z", "2030-01-02T", "2030-01-02T03Z", "soon"]
        {
            check(bad, None);
        }
    }
}
