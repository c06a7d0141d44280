//! Whether the database has space left on its disk.
//!
//! Promises: a refusal for want of space is told in the log once, and again only after a while without any. Nobody
//! measures space from here: a write that found none is all that is known, and it counts for [`FULL_FOR`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::env::Clock;

/// Longer than a client waits before it tries again.
const FULL_FOR: Duration = Duration::from_secs(30);

pub(crate) struct DiskSpace {
    clock: Arc<dyn Clock>,
    /// On the monotonic clock, in milliseconds.
    full_until_ms: AtomicU64,
}

impl DiskSpace {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> DiskSpace {
        DiskSpace { clock, full_until_ms: AtomicU64::new(0) }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    /// A write was refused for want of space.
    pub(crate) fn ran_out(&self) {
        let now_ms = self.now_ms();
        let until_ms = now_ms + FULL_FOR.as_millis() as u64;
        if self.full_until_ms.swap(until_ms, Ordering::Relaxed) <= now_ms {
            log::error!(
                "PostgreSQL: the leader has no space left on its disk. Writes are refused (503) until there is some; \
                 reads continue, and no acknowledged write is lost"
            );
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.now_ms() < self.full_until_ms.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use engine::env::FakeClock;

    use super::*;

    #[test]
    fn a_refusal_counts_for_a_while() {
        let clock = Arc::new(FakeClock::default());
        let space = DiskSpace::new(clock.clone());
        assert!(!space.is_full());
        space.ran_out();
        assert!(space.is_full());
        clock.advance(FULL_FOR - Duration::from_millis(1));
        assert!(space.is_full());
        space.ran_out();
        clock.advance(FULL_FOR - Duration::from_millis(1));
        assert!(space.is_full());
        clock.advance(Duration::from_millis(1));
        assert!(!space.is_full());
    }
}
