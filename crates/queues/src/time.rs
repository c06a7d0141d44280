//! The time that decides what is visible and what has expired.
//!
//! Promises: it never goes back, and it passes at least as fast as real time, also when the wall clock steps back. It
//! begins where the store's versions end, as far as they are ahead of the clock by no more than an hour: so a restart
//! after a small step back hides nothing. From further ahead it would make messages expire that nobody has seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::env::{Clock, ticks};

/// How far ahead of the clock the time may begin.
const AHEAD_MAX: Duration = Duration::from_secs(3600);

pub(crate) struct QueueTime {
    clock: Arc<dyn Clock>,
    /// The most that the time was ever ahead of the monotonic clock.
    offset: AtomicU64,
    /// The last moment that was told.
    last: AtomicU64,
}

impl QueueTime {
    /// `floor` is the store's last version.
    pub(crate) fn new(clock: Arc<dyn Clock>, floor: u64) -> QueueTime {
        let floor = floor.min(clock.now_ticks().saturating_add(ticks(AHEAD_MAX)));
        let offset = floor.saturating_sub(ticks(clock.monotonic()));
        QueueTime { clock, offset: AtomicU64::new(offset), last: AtomicU64::new(0) }
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
        // In this order: whoever is interrupted between the two must not believe for ever that the time is later than it
        // is, or two front ends would disagree about what is visible.
        let now = self.clock.now_ticks();
        let passed = ticks(self.clock.monotonic());
        let ahead = now.saturating_sub(passed);
        self.offset.fetch_max(ahead, Ordering::AcqRel).max(ahead).saturating_add(passed)
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

    /// Whoever looks at the time is interrupted for a second before the next look.
    struct Interrupting {
        clock: FakeClock,
        interruption_count: AtomicU64,
    }

    impl Interrupting {
        fn interrupt(&self) {
            let left = |count: u64| count.checked_sub(1);
            if self.interruption_count.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_ok() {
                self.clock.advance(Duration::from_secs(1));
            }
        }
    }

    impl Clock for Interrupting {
        fn now_ticks(&self) -> u64 {
            let now = self.clock.now_ticks();
            self.interrupt();
            now
        }

        fn monotonic(&self) -> Duration {
            let passed = self.clock.monotonic();
            self.interrupt();
            passed
        }
    }

    #[test]
    fn an_interruption_does_not_put_the_time_ahead() {
        let clock =
            Arc::new(Interrupting { clock: FakeClock::default(), interruption_count: AtomicU64::new(5) });
        let time = QueueTime::new(clock.clone(), 0);
        for _ in 0..5 {
            assert!(time.now() <= clock.clock.now_ticks());
        }
        assert_eq!(time.now(), clock.clock.now_ticks());
    }

    #[test]
    fn time_passes_after_the_clock_was_set_back() {
        let clock = Arc::new(FakeClock::default());
        let time = QueueTime::new(clock.clone(), 0);
        let before = time.now();
        clock.step_back(Duration::from_secs(3600));
        assert_eq!(time.now(), before);
        clock.advance(Duration::from_secs(1));
        assert_eq!(time.now(), before + ticks(Duration::from_secs(1)));
    }

    #[test]
    fn time_begins_with_the_store_unless_that_is_far_ahead() {
        let clock = Arc::new(FakeClock::default());
        let (now, minute) = (clock.now_ticks(), ticks(Duration::from_secs(60)));
        assert_eq!(QueueTime::new(clock.clone(), now + minute).now(), now + minute);
        assert_eq!(QueueTime::new(clock.clone(), now - minute).now(), now);
        let far = QueueTime::new(clock, now + 100_000 * minute).now();
        assert_eq!(far, now + ticks(AHEAD_MAX));
    }
}
