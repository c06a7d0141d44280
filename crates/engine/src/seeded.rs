//! Planted bugs: a test of the tests. Each breaks one promise of the contract, on demand, so that it can be shown
//! that the trials would notice.
//!
//! Only a build with the feature `seeded-bugs` can carry one; it takes the bug's name from the environment when it is
//! first asked. Without the feature [`is`] is a constant and the compiler removes every hook.

/// Names the bug that a build with the feature carries; unset or empty, it carries none.
pub const VARIABLE: &str = "LAZULITE_SEEDED_BUG";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// Callers hear of success before their group is synced and published.
    AnswerBeforeSync,
    /// Any row that is there satisfies an expectation of one version.
    BrokenEtag,
    /// A commit of several ops becomes two durable groups, with a pause between them.
    SplitBatch,
    /// The last version is not restored when the store is opened.
    VersionReuse,
}

impl Bug {
    pub const ALL: [Bug; 4] = [Bug::AnswerBeforeSync, Bug::BrokenEtag, Bug::SplitBatch, Bug::VersionReuse];

    pub fn name(self) -> &'static str {
        match self {
            Bug::AnswerBeforeSync => "answer-before-sync",
            Bug::BrokenEtag => "broken-etag",
            Bug::SplitBatch => "split-batch",
            Bug::VersionReuse => "version-reuse",
        }
    }
}

/// Whether this process carries the bug.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub const fn is(_bug: Bug) -> bool {
    false
}

/// What whoever starts this build must know; nothing when it is an honest one.
#[cfg(not(feature = "seeded-bugs"))]
pub const fn warning() -> Option<String> {
    None
}

#[cfg(feature = "seeded-bugs")]
pub use self::carried::{is, warning};

#[cfg(feature = "seeded-bugs")]
mod carried {
    use std::sync::OnceLock;

    use super::{Bug, VARIABLE};

    /// Whether this process carries the bug.
    pub fn is(bug: Bug) -> bool {
        carried() == Some(bug)
    }

    /// What whoever starts this build must know.
    pub fn warning() -> Option<String> {
        let carries = match carried() {
            Some(bug) => format!("and now breaks its promises on purpose: {}", bug.name()),
            None => format!("none of them switched on ({VARIABLE})"),
        };
        Some(format!("THIS BUILD CARRIES PLANTED BUGS, {carries}. Never keep data in it."))
    }

    fn carried() -> Option<Bug> {
        static CARRIED: OnceLock<Option<Bug>> = OnceLock::new();
        *CARRIED.get_or_init(|| {
            let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
            let bug = Bug::ALL.into_iter().find(|bug| bug.name() == name);
            // A trial of a bug that is not there would pass, and prove nothing.
            Some(bug.unwrap_or_else(|| panic!("{VARIABLE}={name}, but there is no such bug")))
        })
    }
}

#[cfg(all(test, not(feature = "seeded-bugs")))]
mod tests {
    use super::*;

    #[test]
    fn an_honest_build_carries_no_bug_whatever_the_environment_says() {
        assert!(Bug::ALL.into_iter().all(|bug| !is(bug)));
        assert_eq!(warning(), None);
    }
}
