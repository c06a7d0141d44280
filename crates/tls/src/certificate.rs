//! The issuer, the subject and the validity dates of an X.509 certificate.
//!
//! Leaves to others: verifying the signature, without which none of these facts can be trusted.

use time::{Date, Month, OffsetDateTime, Time};

use crate::der::{self, DerElement, DerReader};

pub(crate) struct Facts<'a> {
    /// The name of the issuer, in DER.
    pub(crate) issuer: &'a [u8],
    /// The name of the subject, in DER.
    pub(crate) subject: &'a [u8],
    pub(crate) not_before: OffsetDateTime,
    pub(crate) not_after: OffsetDateTime,
}

impl<'a> Facts<'a> {
    /// `None` when the bytes are not a certificate.
    pub(crate) fn read(certificate: &'a [u8]) -> Option<Facts<'a>> {
        let mut body = DerReader::new(certificate).enter(der::SEQUENCE)?.enter(der::SEQUENCE)?;
        if body.next_is(der::CONTEXT_0) {
            body.any()?; // The version.
        }
        body.expect(der::INTEGER)?; // The serial number.
        body.expect(der::SEQUENCE)?; // The signature algorithm.
        let issuer = body.expect(der::SEQUENCE)?.whole;
        let mut validity = body.enter(der::SEQUENCE)?;
        let not_before = time(validity.any()?)?;
        let not_after = time(validity.any()?)?;
        let subject = body.expect(der::SEQUENCE)?.whole;
        Some(Facts { issuer, subject, not_before, not_after })
    }

    /// Root certificates name themselves as their issuer.
    pub(crate) fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }
}

/// RFC 5280 writes dates up to 2049 as `YYMMDDHHMMSSZ` and later dates as `YYYYMMDDHHMMSSZ`.
fn time(element: DerElement<'_>) -> Option<OffsetDateTime> {
    let (digits, zone) = element.value.split_at_checked(element.value.len().checked_sub(1)?)?;
    if zone != b"Z" || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + i32::from(digit - b'0'));
    let (year, rest) = match element.tag {
        der::UTC_TIME => {
            let (digits, rest) = digits.split_at_checked(2)?;
            let year = number(digits);
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        der::GENERALIZED_TIME => {
            let (digits, rest) = digits.split_at_checked(4)?;
            (number(digits), rest)
        }
        _ => return None,
    };
    let &[m1, m2, d1, d2, h1, h2, n1, n2, s1, s2] = rest else { return None };
    let pair = |tens: u8, ones: u8| (tens - b'0') * 10 + (ones - b'0');
    let date = Date::from_calendar_date(year, Month::try_from(pair(m1, m2)).ok()?, pair(d1, d2)).ok()?;
    let time = Time::from_hms(pair(h1, h2), pair(n1, n2), pair(s1, s2)).ok()?;
    Some(OffsetDateTime::new_utc(date, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_time_are_read_and_others_are_not() {
        let read = |tag, text: &str| time(DerElement { tag, value: text.as_bytes(), whole: &[] });
        let text = |time: Option<OffsetDateTime>| time.unwrap().to_string();
        assert_eq!(text(read(der::UTC_TIME, "491231235959Z")), "2049-12-31 23:59:59.0 +00:00:00");
        assert_eq!(text(read(der::UTC_TIME, "500101000000Z")), "1950-01-01 0:00:00.0 +00:00:00");
        assert_eq!(text(read(der::GENERALIZED_TIME, "21240229010203Z")), "2124-02-29 1:02:03.0 +00:00:00");
        for bad in [
            "",
            "Z",
            "49",
            "4912312359Z",
            "491331235959Z",
            "490229000000Z",
            "491231246060Z",
            "491231235959+0000",
            "4912312359590",
            "é91231235959Z",
        ] {
            assert!(read(der::UTC_TIME, bad).is_none(), "{bad}");
        }
        assert!(read(der::INTEGER, "491231235959Z").is_none());
    }

    #[test]
    fn a_truncated_certificate_is_not_a_certificate() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let whole = made.cert.der();
        let facts = Facts::read(whole).unwrap();
        assert!(facts.is_self_issued() && facts.not_before < facts.not_after);
        for length in 0..whole.len() {
            assert!(Facts::read(&whole[..length]).is_none(), "{length}");
        }
    }
}
