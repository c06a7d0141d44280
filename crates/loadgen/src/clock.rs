//! The generator's clock. It reads the system's clock, because the generator measures real time and signs real dates.

use std::time::{Instant, SystemTime};

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// The current date in HTTP's format, for `x-ms-date`. The server accepts it for 15 minutes.
#[expect(clippy::disallowed_methods, reason = "requests are signed with the real date")]
pub fn http_date() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}
