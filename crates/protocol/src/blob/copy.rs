//! Copies: the headers that name a source, the state of a copy, and refusals about the source.

use crate::common::DateTime;
use crate::common::guid::Guid;
use crate::common::headers::{invalid_header, missing_header};
use crate::common::percent::percent_decode;
use crate::common::query::{Query, invalid_parameter, missing_parameter, text};
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;
use super::limits::COPY_SOURCE_BYTES_MAX;
use super::name::ROOT_CONTAINER;

const COPY_SOURCE: &str = "x-ms-copy-source";
const SOURCE_AUTHORIZATION: &str = "x-ms-copy-source-authorization";

/// `x-ms-copy-source`: the URL of a blob, in parts. The parts are as sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopySource<'a> {
    pub url: &'a str,
    pub is_https: bool,
    /// Host and port.
    pub authority: &'a str,
    /// With its leading slash.
    pub path: &'a str,
    /// Without the question mark.
    pub query: &'a str,
    /// The token for the source, if it needs one of its own.
    pub bearer: Option<&'a str>,
}

impl<'a> CopySource<'a> {
    pub fn read(headers: &Headers<'a>) -> Result<CopySource<'a>, ServiceError> {
        let url = headers.get(COPY_SOURCE).ok_or_else(|| missing_header(COPY_SOURCE))?;
        let invalid = || invalid_header(COPY_SOURCE, url);
        if url.len() > COPY_SOURCE_BYTES_MAX
            || url.contains(|byte: char| byte.is_ascii_control() || byte == ' ')
        {
            return Err(invalid());
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(invalid)?;
        let is_https = scheme.eq_ignore_ascii_case("https");
        if !is_https && !scheme.eq_ignore_ascii_case("http") {
            return Err(invalid());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path_at = place.find('/').unwrap_or(place.len());
        let (authority, path) = place.split_at(path_at);
        // Credentials in a URL are none of the service's.
        if authority.is_empty() || authority.contains('@') || path.len() < 2 {
            return Err(invalid());
        }
        let bearer = match headers.get(SOURCE_AUTHORIZATION) {
            None => None,
            Some(sent) => {
                let (scheme, token) = sent.split_once(' ').unwrap_or((sent, ""));
                if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
                    // The answer must not repeat a token.
                    return Err(invalid_header(SOURCE_AUTHORIZATION, ""));
                }
                Some(token.trim())
            }
        };
        Ok(CopySource { url, is_https, authority, path, query, bearer })
    }

    /// Container and blob of a path within an account, without its leading slash.
    pub fn names(path: &str) -> Option<(String, String)> {
        let (container, blob) = path.split_once('/').unwrap_or((ROOT_CONTAINER, path));
        let decoded = |raw| percent_decode(raw).filter(|name| !name.is_empty()).map(|name| name.into_owned());
        Some((decoded(container)?, decoded(blob)?))
    }
}

/// The parameter `copyid` of Abort Copy Blob.
pub fn read_copy_id(query: &Query<'_>) -> Result<Guid, ServiceError> {
    let sent = text(query, "copyid")?.ok_or_else(|| missing_parameter("copyid"))?;
    Guid::parse(&sent).ok_or_else(|| invalid_parameter("copyid", &sent, ""))
}

/// The last copy to a blob, as its properties show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyState {
    pub id: Guid,
    pub source: Box<str>,
    pub status: CopyStatus,
    /// In bytes.
    pub copied: u64,
    pub total: u64,
    pub completed: Option<DateTime>,
    /// Why it failed.
    pub description: Option<Box<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyStatus {
    Pending,
    Success,
    Aborted,
    Failed,
}

impl CopyStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            CopyStatus::Pending => "pending",
            CopyStatus::Success => "success",
            CopyStatus::Aborted => "aborted",
            CopyStatus::Failed => "failed",
        }
    }
}

impl CopyState {
    /// `x-ms-copy-progress`.
    pub fn progress(&self) -> String {
        format!("{}/{}", self.copied, self.total)
    }
}

/// The refusal of a copy whose source was refused with this status. The answer's headers repeat the elements
/// `CopySourceStatusCode` and `CopySourceErrorCode`.
pub fn source_failure(status: u16, code: Option<&str>, message: Option<&str>) -> ServiceError {
    let own = match status {
        304 => ErrorCode::CopySourceNotModified,
        400 => ErrorCode::CopySourceRefused,
        401 => ErrorCode::CopySourceUnauthenticated,
        403 => ErrorCode::CopySourceForbidden,
        404 => ErrorCode::CopySourceNotFound,
        409 => ErrorCode::CopySourceConflict,
        412 => ErrorCode::CopySourceFailed,
        _ => ErrorCode::CannotVerifyCopySource,
    };
    let error = match message {
        Some(message) => ServiceError::with_detail(own, message.to_owned()),
        None => own.into(),
    };
    let mut error = error.with_element("CopySourceStatusCode", status.to_string());
    if let Some(code) = code {
        error = error.with_element("CopySourceErrorCode", code.to_owned());
    }
    match message {
        Some(message) => error.with_element("CopySourceErrorMessage", message.to_owned()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<(bool, String, String, String), ErrorCode> {
        let headers: Headers<'_> = [("x-ms-copy-source", url)].into_iter().collect();
        let source = CopySource::read(&headers).map_err(|error| error.code)?;
        let owned = (source.authority.to_owned(), source.path.to_owned(), source.query.to_owned());
        Ok((source.is_https, owned.0, owned.1, owned.2))
    }

    #[test]
    fn sources_are_urls_of_blobs() {
        let check = |url: &str, https: bool, authority: &str, path: &str, query: &str| {
            let expected = (https, authority.to_owned(), path.to_owned(), query.to_owned());
            assert_eq!(read(url), Ok(expected), "{url}");
        };
        check("http://127.0.0.1:10000/a/c/b?sv=1&sig=x", false, "127.0.0.1:10000", "/a/c/b", "sv=1&sig=x");
        check(
            "HTTPS://acct.blob.core.windows.net/c/b%20c#f",
            true,
            "acct.blob.core.windows.net",
            "/c/b%20c",
            "",
        );
        let long = format!("http://a/{}", "b".repeat(COPY_SOURCE_BYTES_MAX));
        for bad in [
            "/acct/c/b",
            "ftp://a/b",
            "http://",
            "http://a",
            "http://a/",
            "http:///b",
            "http://u@a/b",
            "http://a/b c",
            &long,
        ] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidHeaderValue), "{bad}");
        }
        assert_eq!(read(""), Err(ErrorCode::MissingRequiredHeader));
        let names = |path| CopySource::names(path);
        assert_eq!(names("c/d%2Fe/f"), Some(("c".to_owned(), "d/e/f".to_owned())));
        assert_eq!(names("photo.png"), Some(("$root".to_owned(), "photo.png".to_owned())));
        assert_eq!((names("c/"), names(""), names("c/%zz")), (None, None, None));
    }

    #[test]
    fn a_source_may_have_a_token() {
        let read = |authorization: &'static str| {
            let pairs = [("x-ms-copy-source", "http://a/b/c"), (SOURCE_AUTHORIZATION, authorization)];
            CopySource::read(&pairs.into_iter().collect()).map(|source| source.bearer)
        };
        assert_eq!(read("Bearer abc").unwrap(), Some("abc"));
        let error = read("Basic c2VjcmV0").unwrap_err();
        assert!(error.elements().all(|(_, value)| !value.contains("c2VjcmV0")));
    }

    #[test]
    fn refusals_tell_what_the_source_said() {
        let error = source_failure(404, Some("BlobNotFound"), Some("The specified blob does not exist."));
        assert_eq!((error.code.name(), error.code.status()), ("CannotVerifyCopySource", 404));
        assert_eq!(
            error.elements().collect::<Vec<_>>(),
            [
                ("CopySourceStatusCode", "404"),
                ("CopySourceErrorCode", "BlobNotFound"),
                ("CopySourceErrorMessage", "The specified blob does not exist."),
            ]
        );
        let status = |status| source_failure(status, None, None).code.status();
        assert_eq!([304, 401, 403, 409, 412, 418, 503].map(status), [304, 401, 403, 409, 412, 500, 500]);
        let id = read_copy_id(&Query::split("copyid=1f812371-a41d-49e6-b123-f4b542e851c5"));
        assert!(id.is_ok() && read_copy_id(&Query::split("copyid=x")).is_err());
    }
}
