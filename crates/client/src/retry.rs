//! When an operation is sent again, and after how long.
//!
//! Owns: the policy and its arithmetic. Promises: attempts and time are bounded. An operation that may not happen twice
//! is sent again only when the server cannot have begun it. Leaves to others: sending and sleeping (`pipeline`).

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use crate::TransportError;
use crate::clock;
use crate::error::refuses_before_work;
use crate::pipeline::Repeat;

/// No back-off doubles more often than this, whatever the policy says.
const DOUBLINGS_MAX: u32 = 16;

/// How often, how long and where an operation is tried.
///
/// ```
/// use std::time::Duration;
/// use lazulite_client::RetryPolicy;
///
/// let patient = RetryPolicy::default().attempts_max(8).total_max(Duration::from_secs(300));
/// let once = RetryPolicy::never();
/// assert!(patient.attempts_max > once.attempts_max);
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often an operation is sent at most, the first time included. The reads that look for a lost write are not
    /// counted.
    pub attempts_max: u32,
    /// The wait before the second attempt. Each further wait is twice as long.
    pub delay_first: Duration,
    /// No wait is longer than this, except one that the server asks for.
    pub delay_max: Duration,
    /// No attempt begins later than this after the first one began.
    pub total_max: Duration,
    /// Reads go to the secondary endpoint in turn with the primary when the primary does not answer. What the secondary
    /// knows is a few minutes old. Reads that decide about a write, those of an update and those that look for a lost
    /// write, go to the primary only.
    pub reads_secondary: bool,
}

impl Default for RetryPolicy {
    /// Five attempts within two minutes, beginning with a wait of a quarter of a second.
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts_max: 5,
            delay_first: Duration::from_millis(250),
            delay_max: Duration::from_secs(30),
            total_max: Duration::from_secs(120),
            reads_secondary: false,
        }
    }
}

impl RetryPolicy {
    /// One attempt.
    pub fn never() -> RetryPolicy {
        RetryPolicy { attempts_max: 1, ..RetryPolicy::default() }
    }

    /// Changes [`RetryPolicy::attempts_max`](field@RetryPolicy::attempts_max).
    pub fn attempts_max(mut self, count: u32) -> RetryPolicy {
        self.attempts_max = count;
        self
    }

    /// Changes [`RetryPolicy::delay_first`](field@RetryPolicy::delay_first).
    pub fn delay_first(mut self, delay: Duration) -> RetryPolicy {
        self.delay_first = delay;
        self
    }

    /// Changes [`RetryPolicy::delay_max`](field@RetryPolicy::delay_max).
    pub fn delay_max(mut self, delay: Duration) -> RetryPolicy {
        self.delay_max = delay;
        self
    }

    /// Changes [`RetryPolicy::total_max`](field@RetryPolicy::total_max).
    pub fn total_max(mut self, time: Duration) -> RetryPolicy {
        self.total_max = time;
        self
    }

    /// Changes [`RetryPolicy::reads_secondary`](field@RetryPolicy::reads_secondary).
    pub fn reads_secondary(mut self, reads: bool) -> RetryPolicy {
        self.reads_secondary = reads;
        self
    }

    /// The wait after this many failures. A random part spreads clients that failed together: half of the wait is
    /// certain, the other half is drawn.
    pub(crate) fn delay(&self, failure_count: u32, random: u128) -> Duration {
        let doublings = failure_count.saturating_sub(1).min(DOUBLINGS_MAX);
        let whole = self.delay_first.saturating_mul(1 << doublings).min(self.delay_max);
        let share = (random as u32) as f64 / f64::from(u32::MAX);
        let half = whole / 2;
        half.saturating_add(half.mul_f64(share))
    }
}

/// How much of its policy an operation has used, however many calls it is made of.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// How many attempts have failed.
    pub failure_count: u32,
    /// When the first attempt began.
    pub started: Instant,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget { failure_count: 0, started: clock::instant() }
    }

    /// For a look at the state in between: it has attempts of its own, and the time that is left.
    pub(crate) fn for_a_look(&self) -> Budget {
        Budget { failure_count: 0, started: self.started }
    }

    /// The wait before the next attempt, at least as long as the server asked. `None` if there is to be none.
    pub(crate) fn next_delay(
        &self,
        policy: &RetryPolicy,
        random: u128,
        asked: Option<Duration>,
    ) -> Option<Duration> {
        if self.failure_count >= policy.attempts_max {
            return None;
        }
        self.within(policy, policy.delay(self.failure_count, random).max(asked.unwrap_or_default()))
    }

    /// The wait, if it ends in time.
    pub(crate) fn within(&self, policy: &RetryPolicy, delay: Duration) -> Option<Duration> {
        let end = (clock::instant() - self.started).saturating_add(delay);
        (end <= policy.total_max).then_some(delay)
    }
}

/// Whether the statuses say that another attempt may succeed.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Whether an operation that was answered so may be sent again.
pub(crate) fn allows_after_answer(repeat: Repeat, status: StatusCode, code: &str) -> bool {
    match repeat {
        Repeat::Freely => is_transient(status),
        Repeat::OnlyUnsent => refuses_before_work(status, code),
    }
}

/// Whether an operation without an answer may be sent again.
pub(crate) fn allows_after_silence(repeat: Repeat, error: Option<&TransportError>) -> bool {
    match repeat {
        Repeat::Freely => true,
        Repeat::OnlyUnsent => error.is_some_and(|error| error.is_unsent),
    }
}

/// The wait that the server asks for: `x-ms-retry-after-ms`, `retry-after-ms`, or `Retry-After` in seconds or as a date.
pub(crate) fn asked_delay(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    for name in ["x-ms-retry-after-ms", "retry-after-ms"] {
        if let Some(delay_ms) = text(name).and_then(|text| text.parse().ok()) {
            return Some(Duration::from_millis(delay_ms));
        }
    }
    let text = text("retry-after")?;
    if let Ok(delay_seconds) = text.parse() {
        return Some(Duration::from_secs(delay_seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_half_of_each_is_drawn() {
        let policy = RetryPolicy {
            delay_first: Duration::from_millis(100),
            delay_max: Duration::from_millis(350),
            ..RetryPolicy::default()
        };
        let range = |failures| {
            (policy.delay(failures, 0).as_millis(), policy.delay(failures, u128::from(u32::MAX)).as_millis())
        };
        assert_eq!(range(1), (50, 100));
        assert_eq!(range(2), (100, 200));
        assert_eq!(range(3), (175, 350));
        assert_eq!(range(u32::MAX), (175, 350));
        let endless = RetryPolicy { delay_first: Duration::MAX, delay_max: Duration::MAX, ..policy };
        assert!(
            endless.delay(9, u128::MAX) > Duration::from_secs(1 << 60),
            "the longest wait does not panic"
        );
    }

    #[test]
    fn the_server_may_ask_for_a_wait() {
        let now = UNIX_EPOCH + Duration::from_secs(1_632_185_422);
        let check = |pairs: &[(&'static str, &str)], expected_ms: Option<u64>| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(asked_delay(&headers, now), expected_ms.map(Duration::from_millis), "{pairs:?}");
        };
        check(&[], None);
        check(&[("retry-after", "3")], Some(3000));
        check(&[("retry-after", "3"), ("x-ms-retry-after-ms", "20")], Some(20));
        check(&[("retry-after", "Tue, 21 Sep 2021 00:50:30 GMT")], Some(8000));
        check(&[("retry-after", "Tue, 21 Sep 2021 00:50:00 GMT")], Some(0));
        for nonsense in ["", "-1", "soon", "1e3"] {
            check(&[("retry-after", nonsense), ("x-ms-retry-after-ms", nonsense)], None);
        }
    }

    #[test]
    fn what_must_not_happen_twice_is_sent_again_only_if_it_did_not_begin() {
        let code = |status: u16| StatusCode::from_u16(status).unwrap();
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(allows_after_answer(Repeat::Freely, code(status), ""));
            let expected = status == 429;
            assert_eq!(allows_after_answer(Repeat::OnlyUnsent, code(status), ""), expected, "{status}");
        }
        assert!(allows_after_answer(Repeat::OnlyUnsent, code(503), "ServerBusy"));
        for status in [200, 400, 404, 409, 412, 501] {
            assert!(!allows_after_answer(Repeat::Freely, code(status), "ServerBusy"), "{status}");
        }
        assert!(allows_after_silence(Repeat::OnlyUnsent, Some(&TransportError::unsent("x"))));
        assert!(!allows_after_silence(Repeat::OnlyUnsent, Some(&TransportError::lost("x"))));
        assert!(!allows_after_silence(Repeat::OnlyUnsent, None));
        assert!(allows_after_silence(Repeat::Freely, None));
    }
}
