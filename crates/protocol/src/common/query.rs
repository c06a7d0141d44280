//! A query string, split once: all code that needs a query parameter asks here.
//!
//! Promises: names are decoded, values are as sent; the first of several parameters with one name counts.
//! Leaves to others: what a parameter means, and refusing values that do not decode.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::percent::percent_decode;
use crate::{ErrorCode, ServiceError};

/// The parameters of a query string, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query<'a> {
    parameters: Vec<(Cow<'a, str>, &'a str)>,
    has_unreadable_name: bool,
}

impl<'a> Query<'a> {
    /// `text` is what follows the `?`, still percent-encoded.
    pub fn split(text: &'a str) -> Query<'a> {
        if text.is_empty() {
            return Query::default();
        }
        let pair_count = memchr::memchr_iter(b'&', text.as_bytes()).count() + 1;
        let mut query = Query {
            parameters: Vec::with_capacity(pair_count.min(PARAMETER_COUNT_USUAL)),
            has_unreadable_name: false,
        };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match decode(name) {
                Some(name) => query.parameters.push((name, value)),
                None => query.has_unreadable_name = true,
            }
        }
        query
    }

    /// The same parameters with their names in lower case, for services that ignore it.
    pub fn with_lower_names(mut self) -> Query<'a> {
        for (name, _) in &mut self.parameters {
            if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                *name = Cow::Owned(name.to_ascii_lowercase());
            }
        }
        self
    }

    /// Each name with its value as sent.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.parameters.iter().map(|(name, value)| (&**name, *value))
    }

    /// The first value with this name, as sent.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// Whether some parameter was left out because its name does not decode.
    pub fn has_unreadable_name(&self) -> bool {
        self.has_unreadable_name
    }
}

/// As many parameters as signed requests usually have. The list grows for more.
const PARAMETER_COUNT_USUAL: usize = 16;

/// Decodes a name or a value. A raw `+` is a space here, unlike in paths. `None` when an escape is broken.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'+', text.as_bytes()).is_some() {
        percent_decode(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned()))
    } else {
        percent_decode(text)
    }
}

/// A parameter whose value the service does not understand. The reason may be empty.
pub fn invalid_parameter(name: &'static str, value: &str, reason: &'static str) -> ServiceError {
    ServiceError::from(ErrorCode::InvalidQueryParameterValue)
        .with_element("QueryParameterName", name)
        .with_element("QueryParameterValue", value.to_owned())
        .with_element("Reason", reason)
}

/// A number that is not in this range.
pub(crate) fn parameter_out_of_range(
    name: &'static str,
    value: &str,
    range: &RangeInclusive<i64>,
) -> ServiceError {
    ServiceError::from(ErrorCode::OutOfRangeQueryParameterValue)
        .with_element("QueryParameterName", name)
        .with_element("QueryParameterValue", value.to_owned())
        .with_element("MinimumAllowed", range.start().to_string())
        .with_element("MaximumAllowed", range.end().to_string())
}

/// A parameter that the request needs and does not have.
pub(crate) fn missing_parameter(name: &'static str) -> ServiceError {
    ServiceError::from(ErrorCode::MissingRequiredQueryParameter).with_element("QueryParameterName", name)
}

/// The decoded value of a parameter, if it is there.
pub(crate) fn text<'q>(query: &Query<'q>, name: &'static str) -> Result<Option<Cow<'q, str>>, ServiceError> {
    let Some(raw) = query.raw(name) else { return Ok(None) };
    decode(raw).map(Some).ok_or_else(|| invalid_parameter(name, raw, ""))
}

/// A number, and its text as sent. One that is too large to count stands for the largest.
pub(crate) fn number(query: &Query<'_>, name: &'static str) -> Result<Option<(i64, String)>, ServiceError> {
    let Some(sent) = text(query, name)? else { return Ok(None) };
    let digits = sent.strip_prefix('-').unwrap_or(&sent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid_parameter(name, &sent, ""));
    }
    let limit = if sent.starts_with('-') { i64::MIN } else { i64::MAX };
    Ok(Some((sent.parse().unwrap_or(limit), sent.into_owned())))
}

pub(crate) fn number_in(
    query: &Query<'_>,
    name: &'static str,
    range: RangeInclusive<i64>,
) -> Result<Option<i64>, ServiceError> {
    match number(query, name)? {
        Some((number, sent)) if !range.contains(&number) => Err(parameter_out_of_range(name, &sent, &range)),
        found => Ok(found.map(|(number, _)| number)),
    }
}

/// The longest time that a request may take, and the default for requests that set no timeout.
pub const TIMEOUT_SECONDS_MAX: u64 = 30;

/// How many seconds the request may take; larger values are silently lowered to the maximum.
pub fn timeout_seconds(query: &Query<'_>) -> Result<u64, ServiceError> {
    let Some(raw) = query.raw("timeout") else { return Ok(TIMEOUT_SECONDS_MAX) };
    let seconds: Option<u64> = decode(raw).and_then(|text| text.parse().ok());
    match seconds.ok_or_else(|| invalid_parameter("timeout", raw, ""))? {
        0 => Ok(TIMEOUT_SECONDS_MAX),
        seconds => Ok(seconds.min(TIMEOUT_SECONDS_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_and_the_first_counts() {
        let query = Query::split("a=1&&%24top=%32&a=2&b&c=x=y");
        assert_eq!(query.raw("a"), Some("1"));
        assert_eq!(query.raw("$top"), Some("%32"));
        assert_eq!((query.raw("b"), query.raw("c"), query.raw("d")), (Some(""), Some("x=y"), None));
        assert_eq!(query.parameters().count(), 5);
        assert!(!query.has_unreadable_name());
        assert!(Query::split("%f=1&a=2").has_unreadable_name());
        assert_eq!(Query::split("PeekOnly=True").with_lower_names().raw("peekonly"), Some("True"));
        assert_eq!(Query::split(""), Query::default());
    }

    #[test]
    fn a_timeout_is_at_most_thirty_seconds() {
        let seconds = |query: &str| timeout_seconds(&Query::split(query)).map_err(|error| error.code);
        assert_eq!((seconds(""), seconds("timeout=0"), seconds("timeout=%37")), (Ok(30), Ok(30), Ok(7)));
        assert_eq!(seconds("timeout=90"), Ok(30));
        for bad in ["timeout=", "timeout=x", "timeout=-1", "timeout=%zz"] {
            assert_eq!(seconds(bad), Err(ErrorCode::InvalidQueryParameterValue), "{bad}");
        }
    }

    #[test]
    fn a_plus_is_a_blank() {
        assert_eq!(decode("a+b%2Bc").as_deref(), Some("a b+c"));
        assert_eq!(decode("%zz"), None);
    }
}
