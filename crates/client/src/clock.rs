//! Time and chance: the only module that asks for either.
//!
//! Owns: [`Environment`], from which dates, request ids and jitter come, and the clock that measures idle connections.
//! Promises: with a fixed environment, the same calls send the same bytes.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

/// Where the client takes the time and random numbers from.
///
/// [`SystemEnvironment`] is right for every program; a test may fix both, to compare requests byte by byte.
pub trait Environment: Send + Sync + 'static {
    /// The current time: requests are signed with it.
    fn now(&self) -> SystemTime;

    /// A number that nobody else draws: request ids and the boundaries of transactions are made of it. It is no secret.
    fn random(&self) -> u128;
}

/// The system's clock, and a fast generator seeded by the system.
#[derive(Clone, Copy, Default, Debug)]
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    #[expect(clippy::disallowed_methods, reason = "requests are signed with the real date")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn random(&self) -> u128 {
        fastrand::u128(..)
    }
}

/// The clock that measures waiting. A test of tokio can stop it.
pub(crate) fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The time as `x-ms-date` carries it. The text is made once in a second.
pub(crate) struct DateText {
    environment: Arc<dyn Environment>,
    latest: RwLock<(u64, HeaderValue)>,
}

impl DateText {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> DateText {
        DateText { environment, latest: RwLock::new((u64::MAX, HeaderValue::from_static(""))) }
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    pub(crate) fn now(&self) -> HeaderValue {
        let now = self.environment.now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        {
            let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
            if latest.0 == second {
                return latest.1.clone();
            }
        }
        let text = HeaderValue::try_from(http_date(now)).expect("a date is a valid header value");
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = (second, text.clone());
        text
    }
}

/// Years that an HTTP date cannot show become its first or last.
fn http_date(time: SystemTime) -> String {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let ticks = u64::try_from(since_epoch.as_nanos() / 100).unwrap_or(u64::MAX);
    let date = crate::DateTime::from_ticks(crate::DateTime::UNIX_EPOCH.ticks().saturating_add(ticks));
    let mut text = Vec::with_capacity(32);
    date.write_http(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A random number as a GUID of version 4, in lower case.
pub(crate) fn guid(random: u128) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    // The bits of the version and of the variant.
    let bits = random & !(0xF << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let mut text = [b'-'; 36];
    let mut at = 0;
    for place in 0..32 {
        if matches!(at, 8 | 13 | 18 | 23) {
            at += 1;
        }
        text[at] = HEX[(bits >> (124 - 4 * place)) as usize & 15];
        at += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[test]
    fn guids_have_the_version_and_the_variant() {
        let text = |random| String::from_utf8(guid(random).to_vec()).unwrap();
        assert_eq!(text(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(text(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(text(0x0123_4567_89ab_4def_8123_4567_89ab_cdef), "01234567-89ab-4def-8123-456789abcdef");
    }

    struct Fixed(Mutex<SystemTime>);

    impl Environment for Arc<Fixed> {
        fn now(&self) -> SystemTime {
            *self.0.lock().unwrap()
        }

        fn random(&self) -> u128 {
            0
        }
    }

    #[test]
    fn the_date_changes_with_the_second() {
        let clock = Arc::new(Fixed(Mutex::new(UNIX_EPOCH + Duration::from_millis(1_632_185_422_100))));
        let date = DateText::new(Arc::new(clock.clone()));
        assert_eq!(date.now(), "Tue, 21 Sep 2021 00:50:22 GMT");
        *clock.0.lock().unwrap() += Duration::from_millis(899);
        assert_eq!(date.now(), "Tue, 21 Sep 2021 00:50:22 GMT");
        *clock.0.lock().unwrap() += Duration::from_millis(1);
        assert_eq!(date.now(), "Tue, 21 Sep 2021 00:50:23 GMT");
        *clock.0.lock().unwrap() = UNIX_EPOCH - Duration::from_secs(5);
        assert_eq!(date.now(), "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
