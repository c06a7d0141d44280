//! The time that ETags, snapshots, versions and leases are made of.
//!
//! Promises: it never goes back, and it passes at least as fast as real time, also when the wall clock steps back. It
//! begins where the store's versions end, as far as they are ahead of the clock by no more than an hour: so no ETag
//! and no snapshot is used twice after a small step back. From further ahead it would make leases expire too early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::env::{Clock, ticks};

/// How far ahead of the clock the time may begin.
const AHEAD_MAX: Duration = Duration::from_secs(3600);

pub(crate) struct BlobTime {
    clock: Arc<dyn Clock>,
    /// The most that the time was ever ahead of the monotonic clock.
    offset: AtomicU64,
    /// The last moment that was told.
    last: AtomicU64,
}

impl BlobTime {
    /// `floor` is the store's last version.
    pub(crate) fn new(clock: Arc<dyn Clock>, floor: u64) -> BlobTime {
        let floor = floor.min(clock.now_ticks().saturating_add(ticks(AHEAD_MAX)));
        let offset = floor.saturating_sub(ticks(clock.monotonic()));
        BlobTime { clock, offset: AtomicU64::new(offset), last: AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) -> u64 {
        let read = self.read();
        self.last.fetch_max(read, Ordering::AcqRel).max(read)
    }

    /// A moment that was never told before: later than every other.
    pub(crate) fn next(&self) -> u64 {
        let read = self.read();
        let next = |last: u64| Some(read.max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        read.max(last.unwrap_or_default().saturating_add(1))
    }

    /// Another process has told this moment: every later one is greater, unless it is too far ahead of the clock.
    pub(crate) fn see(&self, moment: u64) {
        let moment = moment.min(self.clock.now_ticks().saturating_add(ticks(AHEAD_MAX)));
        self.last.fetch_max(moment, Ordering::AcqRel);
    }

    fn read(&self) -> u64 {
        // In this order: whoever is interrupted between the two must not believe for ever that the time is later than it
        // is, or two servers would disagree about leases.
        let now = self.clock.now_ticks();
        let passed = ticks(self.clock.monotonic());
        let ahead = now.saturating_sub(passed);
        self.offset.fetch_max(ahead, Ordering::AcqRel).max(ahead).saturating_add(passed)
    }
}

#[cfg(test)]
mod tests {
    use engine::env::FakeClock;

    use super::*;

    #[test]
    fn what_another_process_told_is_past_unless_it_is_far_ahead() {
        let clock = Arc::new(FakeClock::default());
        let time = BlobTime::new(clock.clone(), 0);
        let ahead = clock.now_ticks() + ticks(Duration::from_secs(60));
        time.see(ahead);
        assert!(time.next() > ahead);
        time.see(u64::MAX);
        assert!(time.next() <= clock.now_ticks() + ticks(AHEAD_MAX) + 1);
    }
}
