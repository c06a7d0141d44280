//! Contents of commits whose outcome nobody knows.
//!
//! Such a commit may still happen: an embedded engine replays its log when it is opened again, and a database may be waiting for
//! its standby. Until then a sweep must not forget what the commit names. One guard protects everything that was written since the
//! first of these commits began, so this takes the same memory for one of them and for millions.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use contents::PendingContent;

/// On an engine that is shared, a commit that did not happen for so long never will. Other processes treat the contents of this one
/// in the same way.
const UNRESOLVED_TIME_MAX: Duration = Duration::from_secs(24 * 3600);

#[derive(Default)]
pub(crate) struct Unresolved(Mutex<Option<KeptContents>>);

struct KeptContents {
    guard: PendingContent,
    /// When the last of the commits was given up.
    since: Duration,
}

impl Unresolved {
    pub(crate) fn keep(&self, guards: impl IntoIterator<Item = PendingContent>, now: Duration) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for guard in guards {
            match &mut *kept {
                Some(kept) => {
                    kept.guard.include(guard);
                    kept.since = now;
                }
                none => *none = Some(KeptContents { guard, since: now }),
            }
        }
    }

    /// Ends the protection when all of the commits are old enough.
    pub(crate) fn release(&self, now: Duration) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_some_and(|kept| now.saturating_sub(kept.since) >= UNRESOLVED_TIME_MAX) {
            *kept = None;
        }
    }
}
