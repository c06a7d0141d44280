//! ETags: `W/"datetime'2020-08-20T22%3A20%3A23.751381Z'"`, made from an entity's Timestamp.

use crate::common::{DateText, DateTime};
use crate::{ErrorCode, ServiceError};

/// The value of an `If-Match` or `If-None-Match` header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ETag {
    Any,
    Exactly(DateTime),
    /// A weak tag of a form that this service never writes: it matches no entity.
    Foreign,
}

impl ETag {
    /// ETags are compared by instant: `%3A` equals `:`, and padded fractions equal trimmed ones. As in the OData library,
    /// only a single weak tag is valid.
    pub fn parse(text: &str) -> Result<ETag, ServiceError> {
        if text == "*" {
            return Ok(ETag::Any);
        }
        let opaque = text.strip_prefix("W/\"").and_then(|rest| rest.strip_suffix('"'));
        let opaque =
            opaque.filter(|opaque| !opaque.is_empty() && !opaque.contains('"')).ok_or_else(|| {
                ServiceError::with_detail(
                    ErrorCode::InvalidInput,
                    format!(
                        "The etag value '{text}' specified in one of the request headers is not valid. \
                     Please make sure only one etag value is specified and is valid."
                    ),
                )
            })?;
        let date = opaque.strip_prefix("datetime'").and_then(|rest| rest.strip_suffix('\''));
        let timestamp = date.and_then(|date| DateTime::parse(&date.replace("%3A", ":").replace("%3a", ":")));
        Ok(timestamp.map_or(ETag::Foreign, ETag::Exactly))
    }

    /// The ETag of an entity with this Timestamp.
    pub fn write(timestamp: &DateText, out: &mut Vec<u8>) {
        out.extend_from_slice(b"W/\"datetime'");
        timestamp.write_escaped(out);
        out.extend_from_slice(b"'\"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_means_the_instant_it_names() {
        let date = DateTime::parse("2020-08-20T22:20:23.751381Z").unwrap();
        for text in [
            "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"",
            "W/\"datetime'2020-08-20T22%3a20%3a23.7513810Z'\"",
            "W/\"datetime'2020-08-20T22:20:23.751381Z'\"",
        ] {
            assert_eq!(ETag::parse(text).unwrap(), ETag::Exactly(date), "{text}");
        }
        let mut written = Vec::new();
        ETag::write(&date.text(), &mut written);
        assert_eq!(written, b"W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"");
    }

    #[test]
    fn a_weak_tag_of_another_form_matches_nothing() {
        for text in
            ["W/\"x\"", "W/\"wrong\"", "W/\"0x5B168C7B6E589D2\"", "W/\"datetime''\"", "W/\"datetime'soon'\""]
        {
            assert_eq!(ETag::parse(text).unwrap(), ETag::Foreign, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "abc",
            "\"x\"",
            "W/",
            "W/\"",
            "W/\"\"",
            "W/x",
            "w/\"x\"",
            "W/\"x\", W/\"y\"",
            "*, *",
            "W/\"datetime'2020-08-20T22:20:23Z'",
        ] {
            let error = ETag::parse(text).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidInput);
            assert!(error.message().starts_with(&format!("The etag value '{text}' specified")));
        }
    }
}
