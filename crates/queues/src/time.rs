//! The time that decides what is visible and what has expired.
//!
//! Promises: it never goes back, and it passes at least as fast as real time. The wall clock may step back, and a store
//! may hold versions from a clock that was ahead: then this time begins where the store's versions end, and passes from
//! there, so messages of that era come up at once instead of years later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::env::{Clock, ticks};

pub(crate) struct QueueTime {
    clock: Arc<dyn Clock>,
    /// The time was at least this when the process began, `started` after some fixed moment.
    floor: u64,
    started: Duration,
    /// The last moment that was told.
    last: AtomicU64,
}

impl QueueTime {
    /// `floor` is the store's last version.
    pub(crate) fn new(clock: Arc<dyn Clock>, floor: u64) -> QueueTime {
        let started = clock.monotonic();
        QueueTime { clock, floor, started, last: AtomicU64::new(0) }
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

    /// Time since some fixed moment.
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn read(&self) -> u64 {
        let passed = ticks(self.clock.monotonic().saturating_sub(self.started));
        self.clock.now_ticks().max(self.floor.saturating_add(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::env::FakeClock;

    #[test]
    fn time_follows_the_clock_but_never_back() {
        let clock = Arc::new(FakeClock::new(1_000));
        let time = QueueTime::new(clock.clone(), 0);
        assert_eq!((time.now(), time.now()), (1_000, 1_000));
        assert_eq!((time.next(), time.next()), (1_001, 1_002));
        assert_eq!(time.now(), 1_002);
        clock.advance(Duration::from_micros(100));
        assert_eq!(time.next(), 2_000);
        clock.step_back(Duration::from_micros(150));
        assert!(time.now() >= 2_000 && time.next() > 2_000);
    }

    #[test]
    fn time_passes_even_when_the_store_is_ahead_of_the_clock() {
        let clock = Arc::new(FakeClock::new(1_000));
        let time = QueueTime::new(clock.clone(), 50_000_000);
        assert_eq!(time.now(), 50_000_000);
        clock.advance(Duration::from_secs(2));
        assert_eq!(time.now(), 70_000_000);
    }
}
