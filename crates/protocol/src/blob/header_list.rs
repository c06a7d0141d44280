//! The headers of one request: those of HTTP, or those of a request inside a batch.
//!
//! Promises: names are found in any case, and the first of several headers with one name counts. An empty value counts
//! as an absent header, as in the service.
//! The names of metadata keep the case in which this list got them. A server that has the raw head of a request gives
//! the names as they were sent; one whose HTTP library lowers them can only give lower-case names.

use crate::common::Metadata;
use crate::common::headers::invalid_header;
use crate::common::metadata::HEADER_PREFIX;
use crate::{ErrorCode, ServiceError};

/// Names and values, in the order sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Headers<'a> {
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> FromIterator<(&'a str, &'a str)> for Headers<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(headers: I) -> Headers<'a> {
        Headers { headers: headers.into_iter().collect() }
    }
}

impl<'a> Headers<'a> {
    /// The value of a header, without the blanks around it.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim_ascii()).filter(|value| !value.is_empty())
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Every header, in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.headers.iter().copied()
    }

    /// The metadata. A header without a name after the prefix's dash is none of them.
    pub fn metadata(&self) -> Result<Metadata, ServiceError> {
        Metadata::read(self.headers.iter().filter_map(|(name, value)| {
            let prefix = name.get(..HEADER_PREFIX.len())?;
            prefix.eq_ignore_ascii_case(HEADER_PREFIX).then(|| (&name[HEADER_PREFIX.len()..], *value))
        }))
    }

    /// `true` or `false`, in any case; an absent header is false.
    pub fn flag(&self, name: &'static str) -> Result<bool, ServiceError> {
        match self.get(name) {
            None => Ok(false),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(value) => Err(invalid_header(name, value)),
        }
    }

    /// A number without a sign.
    pub fn number(&self, name: &'static str) -> Result<Option<u64>, ServiceError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_number { value.parse().ok() } else { None };
        number.map(Some).ok_or_else(|| invalid_header(name, value))
    }

    /// Refuses bodies with checksums between their pieces: the frames would be stored as content.
    pub fn check_supported(&self) -> Result<(), ServiceError> {
        for name in ["x-ms-structured-body", "x-ms-structured-content-length"] {
            if self.has(name) {
                return Err(ServiceError::from(ErrorCode::UnsupportedHeader).with_element("HeaderName", name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case_and_empty_values_are_absent() {
        let headers: Headers<'_> =
            [("X-Ms-Range", " bytes=0-1 "), ("x-ms-range", "bytes=5-"), ("If-Match", "")]
                .into_iter()
                .collect();
        assert_eq!(headers.get("x-ms-range"), Some("bytes=0-1"));
        assert_eq!((headers.get("if-match"), headers.has("range")), (None, false));
    }

    #[test]
    fn metadata_keep_the_case_that_they_came_with() {
        let headers: Headers<'_> =
            [("X-MS-Meta-MyName", "v"), ("x-ms-meta-other", " w"), ("x-ms-meta", "x"), ("ä", "y")]
                .into_iter()
                .collect();
        let metadata = headers.metadata().unwrap();
        assert_eq!(metadata.items().collect::<Vec<_>>(), [("MyName", "v"), ("other", " w")]);
        let empty: Headers<'_> = [("x-ms-meta-", "v")].into_iter().collect();
        assert_eq!(empty.metadata().unwrap_err().code, ErrorCode::EmptyMetadataKey);
    }

    #[test]
    fn flags_and_numbers_are_checked() {
        let headers: Headers<'_> =
            [("a", "True"), ("b", "false"), ("c", "1"), ("d", "-1"), ("e", "99999999999999999999")]
                .into_iter()
                .collect();
        let flag = |name| headers.flag(name).map_err(|error| error.code);
        assert_eq!((flag("a"), flag("b"), flag("z")), (Ok(true), Ok(false), Ok(false)));
        assert_eq!(flag("c"), Err(ErrorCode::InvalidHeaderValue));
        assert_eq!(headers.number("c").unwrap(), Some(1));
        assert!(headers.number("d").is_err() && headers.number("e").is_err());
        let framed: Headers<'_> =
            [("x-ms-structured-body", "XSM/1.0; properties=crc64")].into_iter().collect();
        assert_eq!(framed.check_supported().unwrap_err().code, ErrorCode::UnsupportedHeader);
    }
}
