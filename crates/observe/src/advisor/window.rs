//! Sums over the last minutes, in constant memory: what stops happening is forgotten.
//!
//! Promises: what was counted is in the sum for at least one window and at most two.

use std::ops::Add;
use std::time::Duration;

/// Long enough that a program's rarer queries are seen several times, short enough that a cause that was removed is
/// soon no finding any more.
pub(super) const WINDOW: Duration = Duration::from_secs(300);

/// The sum of this window and of the one before.
#[derive(Clone, Copy, Default)]
pub(super) struct Windowed<T> {
    number: u64,
    current: T,
    previous: T,
}

impl<T: Copy + Default + Add<Output = T>> Windowed<T> {
    /// Where to count what happens now.
    pub(super) fn at(&mut self, now: Duration) -> &mut T {
        let number = number_of(now);
        // A request that was finished a moment before another one may come after it.
        match number.saturating_sub(self.number) {
            0 => {}
            1 => self.previous = std::mem::take(&mut self.current),
            _ => (self.previous, self.current) = (T::default(), T::default()),
        }
        self.number = self.number.max(number);
        &mut self.current
    }

    pub(super) fn sum(&self, now: Duration) -> T {
        match number_of(now).saturating_sub(self.number) {
            0 => self.previous + self.current,
            1 => self.current,
            _ => T::default(),
        }
    }
}

/// How much time the sums cover, for rates: from the beginning of the window before, or from the first request.
pub(super) fn span(now: Duration, started: Duration) -> Duration {
    let begin = WINDOW * u32::try_from(number_of(now).saturating_sub(1)).unwrap_or(u32::MAX);
    now.saturating_sub(begin.max(started)).max(Duration::from_secs(1))
}

fn number_of(now: Duration) -> u64 {
    now.as_secs() / WINDOW.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stops_is_forgotten_after_two_windows() {
        let mut counts = Windowed::<u64>::default();
        let at = |windows: u32| WINDOW * windows + Duration::from_secs(1);
        *counts.at(at(3)) += 5;
        *counts.at(at(4)) += 2;
        // Late, but counted.
        *counts.at(at(3)) += 1;
        assert_eq!([4, 5, 6].map(|windows| counts.sum(at(windows))), [8, 3, 0]);
        *counts.at(at(9)) += 1;
        assert_eq!(counts.sum(at(9)), 1);
    }

    #[test]
    fn the_span_ends_at_the_first_request() {
        let seconds = Duration::from_secs;
        assert_eq!(span(seconds(1000), seconds(990)), seconds(10));
        assert_eq!(span(seconds(1000), seconds(0)), seconds(400));
        assert_eq!(span(seconds(7), seconds(7)), seconds(1));
    }
}
