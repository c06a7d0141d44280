//! The time: real, or set by a test.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// The Unix epoch in ticks of 100 ns since 0001-01-01T00:00:00Z.
pub const UNIX_EPOCH_TICKS: u64 = 621_355_968_000_000_000;

pub trait Clock: Send + Sync + 'static {
    /// The wall clock in ticks of 100 ns since 0001-01-01T00:00:00Z. It may step, in both directions.
    fn now_ticks(&self) -> u64;

    /// Time since some fixed moment. It never goes back.
    fn monotonic(&self) -> Duration;
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    #[allow(clippy::disallowed_methods)] // The one place that may.
    pub fn new() -> SystemClock {
        SystemClock { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // The one place that may.
    fn now_ticks(&self) -> u64 {
        // A clock set before 1970 is wrong anyway; versions still grow from the last one.
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        UNIX_EPOCH_TICKS.saturating_add(ticks(since_epoch))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct FakeClock {
    time: Mutex<FakeTime>,
}

#[derive(Clone, Copy, Debug)]
struct FakeTime {
    ticks: u64,
    monotonic: Duration,
}

impl FakeClock {
    pub fn new(ticks: u64) -> FakeClock {
        FakeClock { time: Mutex::new(FakeTime { ticks, monotonic: Duration::ZERO }) }
    }

    /// Sets the wall clock, forwards or back; the monotonic clock stays.
    pub(crate) fn set_ticks(&self, ticks: u64) {
        self.with(|time| time.ticks = ticks);
    }

    /// Lets time pass: both clocks move.
    pub fn advance(&self, by: Duration) {
        self.with(|time| {
            time.ticks = time.ticks.saturating_add(ticks(by));
            time.monotonic += by;
        });
    }

    /// Sets the wall clock back; the monotonic clock stays.
    pub fn step_back(&self, by: Duration) {
        self.with(|time| time.ticks = time.ticks.saturating_sub(ticks(by)));
    }

    fn with<T>(&self, change: impl FnOnce(&mut FakeTime) -> T) -> T {
        // Plain numbers cannot be left half changed by a panic.
        change(&mut self.time.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

impl Default for FakeClock {
    /// The first day of 2025.
    fn default() -> FakeClock {
        FakeClock::new(UNIX_EPOCH_TICKS + 1_735_689_600 * 10_000_000)
    }
}

impl Clock for FakeClock {
    fn now_ticks(&self) -> u64 {
        self.with(|time| time.ticks)
    }

    fn monotonic(&self) -> Duration {
        self.with(|time| time.monotonic)
    }
}

/// A span of time in ticks.
pub fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_counts_ticks_since_year_one() {
        let ticks = SystemClock::new().now_ticks();
        let year_2025 = FakeClock::default().now_ticks();
        let century = 100 * 365 * 24 * 3600 * 10_000_000;
        assert!(year_2025 < ticks && ticks < year_2025 + century, "{ticks}");
    }

    #[test]
    fn the_fake_clock_moves_only_when_told_to() {
        let clock = FakeClock::new(1_000_000_000);
        clock.advance(Duration::from_millis(1));
        assert_eq!((clock.now_ticks(), clock.monotonic()), (1_000_010_000, Duration::from_millis(1)));
        clock.step_back(Duration::from_secs(1));
        assert_eq!((clock.now_ticks(), clock.monotonic()), (990_010_000, Duration::from_millis(1)));
        clock.set_ticks(7);
        assert_eq!((clock.now_ticks(), clock.monotonic()), (7, Duration::from_millis(1)));
    }
}
