//! What a certificate says about itself: who issued it to whom, and for which time.
//!
//! Leaves to others: whether any of it is true, which is for those who verify signatures.

use protocol::model::DateTime;

use super::der::{self, Element, Reader};

pub struct Facts<'a> {
    pub issuer: &'a [u8],
    pub subject: &'a [u8],
    pub not_before: DateTime,
    pub not_after: DateTime,
}

impl<'a> Facts<'a> {
    /// `None` when the bytes are not a certificate.
    pub fn read(certificate: &'a [u8]) -> Option<Facts<'a>> {
        let mut body = Reader::new(certificate).enter(der::SEQUENCE)?.enter(der::SEQUENCE)?;
        if body.next_is(der::CONTEXT_0) {
            body.any()?; // The version.
        }
        body.expect(der::INTEGER)?; // The serial number.
        body.expect(der::SEQUENCE)?; // The algorithm of the signature.
        let issuer = body.expect(der::SEQUENCE)?.whole;
        let mut validity = body.enter(der::SEQUENCE)?;
        let not_before = time(validity.any()?)?;
        let not_after = time(validity.any()?)?;
        let subject = body.expect(der::SEQUENCE)?.whole;
        Some(Facts { issuer, subject, not_before, not_after })
    }

    pub fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }
}

/// `YYMMDDHHMMSSZ` until 2049 and `YYYYMMDDHHMMSSZ` after it, by RFC 5280.
fn time(element: Element<'_>) -> Option<DateTime> {
    let text = std::str::from_utf8(element.value).ok().filter(|text| text.is_ascii())?;
    let (year, rest) = match element.tag {
        der::UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            (format!("{}{year}", if year < "50" { "20" } else { "19" }), rest)
        }
        der::GENERALIZED_TIME => text.split_at_checked(4).map(|(year, rest)| (year.to_owned(), rest))?,
        _ => return None,
    };
    let part = |from: usize| rest.get(from..from + 2);
    if rest.get(10..) != Some("Z") {
        return None;
    }
    let [month, day] = [part(0)?, part(2)?];
    let [hour, minute, second] = [part(4)?, part(6)?, part(8)?];
    DateTime::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_time_are_read_and_others_are_not() {
        let read = |tag, text: &str| time(Element { tag, value: text.as_bytes(), whole: &[] });
        let at = |text| DateTime::parse(text);
        assert_eq!(read(der::UTC_TIME, "491231235959Z"), at("2049-12-31T23:59:59Z"));
        assert_eq!(read(der::UTC_TIME, "500101000000Z"), at("1950-01-01T00:00:00Z"));
        assert_eq!(read(der::GENERALIZED_TIME, "21240229010203Z"), at("2124-02-29T01:02:03Z"));
        for bad in
            ["", "49", "4912312359Z", "491331235959Z", "491231235959+0000", "4912312359590", "é91231235959Z"]
        {
            assert!(read(der::UTC_TIME, bad).is_none(), "{bad}");
        }
        assert!(read(der::INTEGER, "491231235959Z").is_none());
    }

    #[test]
    fn what_is_cut_short_is_not_a_certificate() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let whole = made.cert.der();
        let facts = Facts::read(whole).unwrap();
        assert!(facts.is_self_issued() && facts.not_before < facts.not_after);
        for length in 0..whole.len() {
            assert!(Facts::read(&whole[..length]).is_none(), "{length}");
        }
    }
}
