//! The planted bugs that need the inside of this crate, in builds with the feature `seeded-bugs` alone.
//! `engine::seeded` lists all bugs and says why there are any; this crate does not know the engine, so it reads the
//! name of its bug itself.

use std::sync::OnceLock;

/// Names the bug that the process carries.
const VARIABLE: &str = "LAZULITE_SEEDED_BUG";

fn is(bug: &str) -> bool {
    static CARRIED: OnceLock<Option<String>> = OnceLock::new();
    CARRIED.get_or_init(|| std::env::var(VARIABLE).ok()).as_deref() == Some(bug)
}

/// Whether contents are said to be durable although nobody synced them.
pub(crate) fn leaves_out_syncs() -> bool {
    is("unsynced-content")
}

/// Whether a sweep forgets what is about to get a row.
pub(crate) fn sweeps_pending() -> bool {
    is("hasty-sweep")
}
