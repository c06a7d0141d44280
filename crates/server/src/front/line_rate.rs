//! A bound on how many lines a log gets: strangers can cause as many of them as they like.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Lines per second: a flood of requests must not flood the log.
pub(crate) const LINES_PER_SECOND_MAX: u32 = 10;

#[derive(Default)]
pub(crate) struct LineRate(Mutex<Second>);

#[derive(Default)]
struct Second {
    started: Duration,
    line_count: u32,
    left_out_count: u64,
}

impl LineRate {
    /// Whether a line may be written now; if so, how many were left out before it.
    pub(crate) fn admit(&self, now: Duration) -> Option<u64> {
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(second.started) >= Duration::from_secs(1) {
            second.started = now;
            second.line_count = 0;
        }
        if second.line_count == LINES_PER_SECOND_MAX {
            second.left_out_count += 1;
            return None;
        }
        second.line_count += 1;
        Some(std::mem::take(&mut second.left_out_count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let rate = LineRate::default();
        let start = Duration::from_secs(100);
        let admitted = (0..1000).filter(|_| rate.admit(start).is_some()).count();
        assert_eq!(admitted, LINES_PER_SECOND_MAX as usize);
        assert_eq!(rate.admit(start + Duration::from_secs(1)), Some(990));
        assert_eq!(rate.admit(start + Duration::from_secs(1)), Some(0));
    }
}
