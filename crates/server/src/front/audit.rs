//! The audit log: one line for each request refused for its credentials or permissions, at a bounded rate.
//!
//! Promises: no line shows a secret, and refusals that exceed the rate are counted.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use protocol::ServiceError;

/// Lines per second: a flood of refused requests must not flood the log.
const LINES_PER_SECOND_MAX: u32 = 10;
/// Enough of a path to find the request, too little to fill a disk.
const PATH_CHARACTERS_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Audit(Mutex<Second>);

#[derive(Default)]
struct Second {
    started: Duration,
    line_count: u32,
    left_out_count: u64,
}

impl Audit {
    /// `path` comes without its query, which may hold a signature.
    pub fn refused(&self, now: Duration, peer: IpAddr, method: &str, path: &str, error: &ServiceError) {
        let Some(left_out_count) = self.admit(now) else { return };
        let path: String = path.chars().take(PATH_CHARACTERS_MAX).collect();
        if left_out_count > 0 {
            log::warn!("audit: {left_out_count} refusals were not written");
        }
        match &error.source {
            Some(reason) => {
                log::warn!("audit: refused {peer} {method} {path:?}: {}: {reason}", error.code.name())
            }
            None => log::warn!("audit: refused {peer} {method} {path:?}: {}", error.code.name()),
        }
    }

    /// Whether a line may be written now; if so, how many were left out before it.
    fn admit(&self, now: Duration) -> Option<u64> {
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
        let audit = Audit::default();
        let start = Duration::from_secs(100);
        let admitted = (0..1000).filter(|_| audit.admit(start).is_some()).count();
        assert_eq!(admitted, LINES_PER_SECOND_MAX as usize);
        assert_eq!(audit.admit(start + Duration::from_secs(1)), Some(990));
        assert_eq!(audit.admit(start + Duration::from_secs(1)), Some(0));
    }
}
