//! Edm.DateTime: an instant in ticks of 100 ns since 0001-01-01T00:00:00Z, and its text forms.
//!
//! Promises: reading never panics; [`DateTime::parse`] returns the instant that [`DateTime::write`] wrote.

use std::fmt;
use std::str::FromStr;

use super::decimal::pair;

const TICKS_PER_SECOND: u64 = 10_000_000;
const TICKS_PER_DAY: u64 = 86_400 * TICKS_PER_SECOND;
/// The first day of each month, counted from 1 March, so that the leap day comes last.
const DAYS_BEFORE_MONTH_FROM_MARCH: [u64; 12] = [0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337];
/// Days from 0000-03-01 to 0001-01-01 in the proleptic Gregorian calendar.
const DAYS_FROM_MARCH_0000_TO_EPOCH: u64 = 306;
/// 0001-01-01 was a Monday.
const WEEKDAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
/// Fraction digits that an instant can hold; further digits are dropped.
const FRACTION_DIGITS_MAX: usize = 7;

/// An instant in ticks of 100 ns since 0001-01-01T00:00:00Z, up to the end of the year 9999. Its text is UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DateTime(u64);

impl DateTime {
    /// The first instant the service stores: 1601-01-01T00:00:00Z.
    pub const MIN_STORED: DateTime = DateTime(504_911_232_000_000_000);
    /// The last instant: 9999-12-31T23:59:59.9999999Z.
    pub const MAX: DateTime = DateTime(3_155_378_975_999_999_999);
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: DateTime = DateTime(621_355_968_000_000_000);

    /// Instants after the year 9999 become [`DateTime::MAX`].
    pub fn from_ticks(ticks: u64) -> DateTime {
        DateTime(ticks.min(Self::MAX.0))
    }

    /// Ticks of 100 ns since 0001-01-01T00:00:00Z.
    pub fn ticks(self) -> u64 {
        self.0
    }

    /// Whole seconds since 0001-01-01T00:00:00Z.
    pub fn whole_seconds(self) -> u64 {
        self.0 / TICKS_PER_SECOND
    }

    /// Reads an HTTP date (RFC 1123), as `x-ms-date` carries it.
    pub fn parse_http(text: &str) -> Option<DateTime> {
        if let Some(date) = parse_usual_http(text.as_bytes()) {
            return Some(date);
        }
        let since_unix = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(DateTime::from_ticks(Self::UNIX_EPOCH.0 + since_unix.as_secs() * TICKS_PER_SECOND))
    }

    /// Reads `yyyy-MM-ddTHH:mm[:ss[.fffffff]][Z|±hh:mm]`. No zone means UTC; an offset is converted.
    pub fn parse(text: &str) -> Option<DateTime> {
        parse_usual(text.as_bytes()).or_else(|| DateTime::parse_any(text))
    }

    fn parse_any(text: &str) -> Option<DateTime> {
        let (date, time) = text.split_once(['T', 't'])?;
        let (year, month_day) = date.split_once('-')?;
        let (month, day) = month_day.split_once('-')?;
        let days = days_since_epoch(digits(year, 4)?, digits(month, 2)?, digits(day, 2)?)?;

        let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
        let (clock, zone) = time.split_at(zone_at);
        let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut parts = whole.split(':');
        let hour = digits(parts.next()?, 2).filter(|hour| *hour < 24)?;
        let minute = digits(parts.next()?, 2).filter(|minute| *minute < 60)?;
        let second = match parts.next() {
            Some(text) => digits(text, 2).filter(|second| *second < 60)?,
            None if fraction.is_empty() => 0,
            None => return None,
        };
        if parts.next().is_some() || clock.ends_with('.') {
            return None;
        }
        let of_day =
            (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction_ticks(fraction.as_bytes())?;
        let local = days * TICKS_PER_DAY + of_day;
        let utc = i128::from(local) - i128::from(offset_ticks(zone)?);
        u64::try_from(utc).ok().filter(|ticks| *ticks <= Self::MAX.0).map(DateTime)
    }

    /// The service's text form: without trailing zeros in the fraction, and without the point when no digit is left.
    pub fn write(self, out: &mut Vec<u8>) {
        self.text().write(out);
    }

    /// The same text, for a caller that writes it more than once.
    pub fn text(self) -> DateText {
        let mut text = *b"yyyy-MM-ddTHH:mm:ss.fffffffZ";
        text[..19].copy_from_slice(&self.seconds());
        text[19..27].copy_from_slice(&self.fraction());
        let mut len = 27;
        while text[len - 1] == b'0' && len > 20 {
            len -= 1;
        }
        if len == 20 {
            len = 19;
        }
        text[len] = b'Z';
        DateText { text, len: len + 1 }
    }

    /// The text with exactly seven fraction digits, as error bodies carry it.
    pub fn write_padded(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seconds());
        out.extend_from_slice(&self.fraction());
        out.push(b'Z');
    }

    /// An HTTP date (RFC 1123): `Thu, 27 Oct 2022 22:04:57 GMT`. The fraction of the second is dropped.
    pub fn write_http(self, out: &mut Vec<u8>) {
        let days = self.0 / TICKS_PER_DAY;
        let (_, month, _) = civil(days);
        let seconds = self.seconds();
        let mut text = *b"Www, dd Mmm yyyy HH:mm:ss GMT";
        text[..3].copy_from_slice(WEEKDAYS[(days % 7) as usize]);
        text[5..7].copy_from_slice(&seconds[8..10]);
        text[8..11].copy_from_slice(MONTHS[month as usize - 1]);
        text[12..16].copy_from_slice(&seconds[..4]);
        text[17..25].copy_from_slice(&seconds[11..]);
        out.extend_from_slice(&text);
    }

    /// `MM/dd/yyyy HH:mm:ss`, as in the service's message about a date out of range.
    pub fn write_american(self, out: &mut Vec<u8>) {
        let text = self.seconds();
        for piece in [&text[5..7], b"/", &text[8..10], b"/", &text[..4], b" ", &text[11..]] {
            out.extend_from_slice(piece);
        }
    }

    /// `yyyy-MM-ddTHH:mm:ss`.
    fn seconds(self) -> [u8; 19] {
        let (year, month, day) = civil(self.0 / TICKS_PER_DAY);
        let second = self.0 % TICKS_PER_DAY / TICKS_PER_SECOND;
        let mut text = *b"yyyy-MM-ddTHH:mm:ss";
        text[..2].copy_from_slice(&pair(year / 100));
        text[2..4].copy_from_slice(&pair(year));
        text[5..7].copy_from_slice(&pair(month));
        text[8..10].copy_from_slice(&pair(day));
        text[11..13].copy_from_slice(&pair(second / 3600));
        text[14..16].copy_from_slice(&pair(second / 60 % 60));
        text[17..].copy_from_slice(&pair(second % 60));
        text
    }

    /// `.fffffff`.
    fn fraction(self) -> [u8; 1 + FRACTION_DIGITS_MAX] {
        let ticks = self.0 % TICKS_PER_SECOND;
        let mut text = *b".fffffff";
        text[1] = b'0' + (ticks / 1_000_000) as u8;
        text[2..4].copy_from_slice(&pair(ticks / 10_000));
        text[4..6].copy_from_slice(&pair(ticks / 100));
        text[6..].copy_from_slice(&pair(ticks));
        text
    }
}

/// The text of an instant, without trailing zeros in the fraction.
#[derive(Clone, Copy)]
pub struct DateText {
    text: [u8; 28],
    len: usize,
}

impl DateText {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text[..self.len]);
    }

    /// The text inside an ETag: with `:` escaped.
    pub(crate) fn write_escaped(&self, out: &mut Vec<u8>) {
        let mut escaped = *b"yyyy-MM-ddTHH%3Amm%3Ass.fffffffZ";
        escaped[..13].copy_from_slice(&self.text[..13]);
        escaped[16..18].copy_from_slice(&self.text[14..16]);
        escaped[21..].copy_from_slice(&self.text[17..]);
        out.extend_from_slice(&escaped[..self.len + 4]);
    }
}

impl DateTime {
    /// The text of [`DateTime::write_padded`].
    pub fn to_padded(self) -> String {
        text_of(|out| self.write_padded(out))
    }

    /// The text of [`DateTime::write_http`].
    pub fn to_http(self) -> String {
        text_of(|out| self.write_http(out))
    }
}

fn text_of(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::with_capacity("Fri, 27 Jan 2023 23:22:39 GMT".len());
    write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The text of [`DateTime::write`].
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity("yyyy-MM-ddTHH:mm:ss.fffffffZ".len());
        self.write(&mut text);
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Reads what [`DateTime::parse`] reads.
impl FromStr for DateTime {
    type Err = DateTimeError;

    fn from_str(text: &str) -> Result<DateTime, DateTimeError> {
        DateTime::parse(text).ok_or(DateTimeError)
    }
}

/// A text that is not a date and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DateTimeError;

impl fmt::Display for DateTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a date and time of the form yyyy-MM-ddTHH:mm:ss.fffffffZ")
    }
}

impl std::error::Error for DateTimeError {}

/// Reads `yyyy-MM-ddTHH:mm:ss[.fffffff]Z`, the form that nearly all clients send. `None` for any other text.
fn parse_usual(text: &[u8]) -> Option<DateTime> {
    let (head, end) = text.split_first_chunk::<19>()?;
    let two = |at: usize| two_digits(head, at);
    if [head[4], head[7], head[10], head[13], head[16]] != *b"--T::" {
        return None;
    }
    let fraction = match end {
        [b'Z'] => 0,
        [b'.', digits @ .., b'Z'] if !digits.is_empty() => fraction_ticks(digits)?,
        _ => return None,
    };
    let days = days_since_epoch(two(0)? * 100 + two(2)?, two(5)?, two(8)?)?;
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let of_day = (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction;
    // The year has four digits, so this cannot be after [`DateTime::MAX`].
    Some(DateTime(days * TICKS_PER_DAY + of_day))
}

/// The number that two digits at this place make.
#[inline]
fn two_digits(text: &[u8], at: usize) -> Option<u64> {
    let (high, low) = (text.get(at)?.wrapping_sub(b'0'), text.get(at + 1)?.wrapping_sub(b'0'));
    (high < 10 && low < 10).then_some(u64::from(high) * 10 + u64::from(low))
}

/// The form of an HTTP date that everybody writes. Every signed request has one.
fn parse_usual_http(text: &[u8]) -> Option<DateTime> {
    let text: &[u8; 29] = text.try_into().ok()?;
    let two = |at: usize| two_digits(text, at);
    if [text[3], text[4], text[7], text[11], text[16], text[19], text[22]] != *b",    ::" {
        return None;
    }
    let month = MONTHS.iter().position(|month| month[..] == text[8..11])? as u64 + 1;
    let days = days_since_epoch(two(12)? * 100 + two(14)?, month, two(5)?)?;
    let (hour, minute, second) = (two(17)?, two(20)?, two(23)?);
    if hour > 23 || minute > 59 || second > 59 || text[25..] != *b" GMT" {
        return None;
    }
    let date = DateTime(days * TICKS_PER_DAY + (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND);
    (date >= DateTime::UNIX_EPOCH && text[..3] == WEEKDAYS[(days % 7) as usize][..]).then_some(date)
}

/// Exactly `width` decimal digits.
fn digits(text: &str, width: usize) -> Option<u64> {
    let all_digits = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok()).flatten()
}

fn fraction_ticks(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut ticks = 0;
    for place in 0..FRACTION_DIGITS_MAX {
        ticks = ticks * 10 + digits.get(place).map_or(0, |digit| u64::from(digit - b'0'));
    }
    Some(ticks)
}

fn offset_ticks(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        None => return Some(0),
        Some(b'Z' | b'z') => return (zone.len() == 1).then_some(0),
        Some(b'+') => 1,
        Some(_) => -1,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let hours = digits(hours, 2).filter(|hours| *hours <= 14)?;
    let minutes = digits(minutes, 2).filter(|minutes| *minutes < 60)?;
    Some(sign * ((hours * 60 + minutes) * 60 * TICKS_PER_SECOND) as i64)
}

fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    if year == 0 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days_in_month = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day > days_in_month {
        return None;
    }
    let march_year = if month < 3 { year - 1 } else { year };
    let before_month = DAYS_BEFORE_MONTH_FROM_MARCH[((month + 9) % 12) as usize];
    let days =
        march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400 + before_month + day - 1;
    Some(days - DAYS_FROM_MARCH_0000_TO_EPOCH)
}

/// (year, month, day) of a day counted from 0001-01-01: the arithmetic of Neri and Schneider ("Euclidean affine functions and
/// their application to calendar algorithms", 2022), in years that begin in March. A test looks at every day.
fn civil(days: u64) -> (u64, u64, u64) {
    let quarters = 4 * (days + DAYS_FROM_MARCH_0000_TO_EPOCH) + 3;
    let (century, of_century) = (quarters / 146_097, (quarters % 146_097) | 3);
    let product = 2_939_745 * of_century;
    let (year_of_century, of_year) = (product >> 32, (product & 0xFFFF_FFFF) / 2_939_745 / 4);
    let sum = 2_141 * of_year + 197_913;
    let (month, day) = (sum >> 16, (sum & 0xFFFF) / 2_141 + 1);
    let year = 100 * century + year_of_century;
    if month > 12 { (year + 1, month - 12, day) } else { (year, month, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_day_has_its_date() {
        let (mut year, mut month, mut day) = (1, 1, 1);
        for days in 0..=DateTime::MAX.0 / TICKS_PER_DAY {
            assert_eq!(civil(days), (year, month, day));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let month_len = match month {
                2 => 28 + u64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > month_len {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

    #[test]
    fn http_dates_are_read_as_written() {
        let check = |date: DateTime, expected: &str| {
            assert_eq!(text(|out| date.write_http(out)), expected);
        };
        check(DateTime::MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
        check(DateTime::UNIX_EPOCH, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(DateTime::parse("2022-10-27T22:04:57.9Z").unwrap(), "Thu, 27 Oct 2022 22:04:57 GMT");
        for day in (0..200_000).step_by(97) {
            let date =
                DateTime::from_ticks(DateTime::UNIX_EPOCH.0 + day * (TICKS_PER_DAY + TICKS_PER_SECOND));
            let written = text(|out| date.write_http(out));
            assert_eq!(DateTime::parse_http(&written), Some(date), "{written}");
        }
    }

    #[track_caller]
    fn check(input: &str, expected: Option<&str>) {
        let written = DateTime::parse(input).map(|date| text(|out| date.write(out)));
        assert_eq!(written.as_deref(), expected, "{input}");
    }

    #[test]
    fn dates_are_read_leniently_and_written_trimmed() {
        check("2020-01-01T01:02:00Z", Some("2020-01-01T01:02:00Z"));
        check("2012-11-10T03:04:05.200Z", Some("2012-11-10T03:04:05.2Z"));
        check("2020-11-07T01:23:15.4923920Z", Some("2020-11-07T01:23:15.492392Z"));
        check("2020-11-07T01:23:15.00000019Z", Some("2020-11-07T01:23:15.0000001Z"));
        check("2020-11-07T01:23:15", Some("2020-11-07T01:23:15Z"));
        check("2020-11-07T01:23Z", Some("2020-11-07T01:23:00Z"));
        check("2020-11-07T01:23:15+02:00", Some("2020-11-06T23:23:15Z"));
        check("2020-12-31T23:30:00-01:00", Some("2021-01-01T00:30:00Z"));
        check("1601-01-01T00:00:00Z", Some("1601-01-01T00:00:00Z"));
        check("0001-01-01T00:00:00", Some("0001-01-01T00:00:00Z"));
        check("9999-12-31T23:59:59.9999999Z", Some("9999-12-31T23:59:59.9999999Z"));
        check("2000-02-29T00:00:00Z", Some("2000-02-29T00:00:00Z"));
        check("1900-02-29T00:00:00Z", None);
        check("2021-02-29T00:00:00Z", None);
        check("2021-13-01T00:00:00Z", None);
        check("2021-01-01T24:00:00Z", None);
        check("0001-01-01T00:00:00+01:00", None);
        check("9999-12-31T23:59:59-01:00", None);
        check("2021-01-01", None);
        check("2021-01-01T00:00:00.Z", None);
        check("2021-01-01T00:00:00ZZ", None);
        check("2021-01-01T00:00:00é", None);
        check("", None);
    }

    #[test]
    fn every_day_of_ten_thousand_years_survives_the_round_trip() {
        let last_day = DateTime::MAX.0 / TICKS_PER_DAY;
        for day in 0..=last_day {
            let (year, month, date) = civil(day);
            assert_eq!(days_since_epoch(year, month, date), Some(day), "{year}-{month}-{date}");
        }
        assert_eq!(civil(last_day), (9999, 12, 31));
        assert_eq!(civil(DateTime::UNIX_EPOCH.0 / TICKS_PER_DAY), (1970, 1, 1));
        assert_eq!(civil(DateTime::MIN_STORED.0 / TICKS_PER_DAY), (1601, 1, 1));
    }

    #[test]
    fn errors_pad_the_fraction_and_etags_escape_the_colon() {
        let date = DateTime::parse("2021-09-21T00:50:21.07Z").unwrap();
        assert_eq!(text(|out| date.write_padded(out)), "2021-09-21T00:50:21.0700000Z");
        assert_eq!(text(|out| date.text().write_escaped(out)), "2021-09-21T00%3A50%3A21.07Z");
        assert_eq!(text(|out| DateTime(0).write_american(out)), "01/01/0001 00:00:00");
    }

    #[test]
    fn http_dates_are_read() {
        let date = DateTime::parse_http("Tue, 21 Sep 2021 00:50:22 GMT").unwrap();
        assert_eq!(text(|out| date.write(out)), "2021-09-21T00:50:22Z");
        for none in [
            "yesterday",
            "Wed, 21 Sep 2021 00:50:22 GMT",
            "Tue, 31 Sep 2021 00:50:22 GMT",
            "Tue, 21 Sep 2021 24:50:22 GMT",
            "Tue, 21 Sep 2021 00:50:22 CET",
            "Tue, 21 Sep 2021 00-50:22 GMT",
            "Fri, 21 Sep 1900 00:50:22 GMT",
        ] {
            assert_eq!(DateTime::parse_http(none), None, "{none}");
            assert!(parse_usual_http(none.as_bytes()).is_none());
        }
        // What the library reads, and nothing else.
        for days in 0..5_000 {
            let date = DateTime::from_ticks(
                DateTime::UNIX_EPOCH.0 + days * (11 * TICKS_PER_DAY + 12_345 * TICKS_PER_SECOND),
            );
            let mut written = text(|out| date.write_http(out)).into_bytes();
            for place in 0..written.len() {
                let kept =
                    std::mem::replace(&mut written[place], b"0123 :,GMaN"[(days as usize + place) % 11]);
                let read = std::str::from_utf8(&written).unwrap();
                let theirs = httpdate::parse_http_date(read)
                    .ok()
                    .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
                let theirs = theirs.map(|since| DateTime::UNIX_EPOCH.0 + since.as_secs() * TICKS_PER_SECOND);
                let ours = parse_usual_http(read.as_bytes()).map(DateTime::ticks);
                assert!(ours.is_none() || ours == theirs, "{read}");
                written[place] = kept;
            }
        }
        // Older forms are dates, too.
        let old = DateTime::parse_http("Tuesday, 21-Sep-21 00:50:22 GMT");
        assert_eq!(old, Some(date));
    }
}
