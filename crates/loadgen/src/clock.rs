//! The clock of the generator. It measures real time and signs real dates, so it asks the system.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// The date as HTTP writes it, for `x-ms-date`. The server accepts it for 15 minutes.
#[expect(clippy::disallowed_methods, reason = "requests are signed with the real date")]
pub fn http_date() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}
