//! The wall clock and a stopwatch for tests that talk to a real process.

use std::time::{Duration, Instant, SystemTime};

#[allow(clippy::disallowed_methods, reason = "a client signs with its own clock, not with the server's")]
pub fn system_now() -> SystemTime {
    SystemTime::now()
}

/// RFC 1123, as in `Date` and `x-ms-date`.
pub fn http_date(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

/// Measures how long something outside this process takes.
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "measures another process, which no fake clock governs")]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
