//! Times as keys: oldest first, or newest first as the log tail needs them.

use lazulite_client::DateTime;

use super::{KeyError, padded, parse_padded};

/// The digits of a time: enough for the last tick of the year 9999.
pub const TICKS_WIDTH: usize = 19;

/// A time as a key that sorts the oldest first. [`DateTime`] counts ticks of 100 ns.
///
/// ```
/// use lazulite_client::DateTime;
/// use lazulite_patterns::keys::{chronological, parse_chronological};
///
/// let noon = DateTime::parse("2026-01-31T12:00:00Z").ok_or("a time")?;
/// assert_eq!(chronological(noon), "0639054576000000000");
/// assert_eq!(parse_chronological("0639054576000000000")?, noon);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn chronological(time: DateTime) -> String {
    write(time.ticks().min(DateTime::MAX.ticks()))
}

/// Reads what [`chronological`] wrote.
pub fn parse_chronological(text: &str) -> Result<DateTime, KeyError> {
    read(text).map(DateTime::from_ticks)
}

/// A time as a key that sorts the newest first ("inverted ticks"): `$top=10` then returns the ten newest entities.
///
/// Two entities of the same tick need something after it, see [`compose`](super::compose).
///
/// ```
/// use lazulite_client::DateTime;
/// use lazulite_patterns::keys::{log_tail, parse_log_tail};
///
/// let morning = DateTime::parse("2026-01-31T08:00:00Z").ok_or("a time")?;
/// let noon = DateTime::parse("2026-01-31T12:00:00Z").ok_or("a time")?;
/// assert!(log_tail(noon) < log_tail(morning));
/// assert_eq!(parse_log_tail(&log_tail(noon))?, noon);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn log_tail(time: DateTime) -> String {
    write(DateTime::MAX.ticks().saturating_sub(time.ticks()))
}

/// Reads what [`log_tail`] wrote.
pub fn parse_log_tail(text: &str) -> Result<DateTime, KeyError> {
    read(text).map(|ticks| DateTime::from_ticks(DateTime::MAX.ticks() - ticks))
}

fn write(ticks: u64) -> String {
    padded(ticks, TICKS_WIDTH).expect("ticks up to the last one have 19 digits")
}

fn read(text: &str) -> Result<u64, KeyError> {
    let ticks = parse_padded(text, TICKS_WIDTH)?;
    if ticks > DateTime::MAX.ticks() {
        return Err(KeyError::new(format!("'{text}' is after the year 9999")));
    }
    Ok(ticks)
}
