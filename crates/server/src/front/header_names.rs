//! Names of headers that every service has, ready to be looked for: a name given as text is read anew each time.

use http::HeaderName;
use protocol::common::headers;

pub const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
pub const X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static(headers::X_MS_CLIENT_REQUEST_ID);
pub const X_MS_DATE: HeaderName = HeaderName::from_static(headers::X_MS_DATE);
pub const X_MS_ERROR_CODE: HeaderName = HeaderName::from_static(headers::X_MS_ERROR_CODE);
pub const X_MS_REQUEST_ID: HeaderName = HeaderName::from_static(headers::X_MS_REQUEST_ID);
pub const X_MS_VERSION: HeaderName = HeaderName::from_static(headers::X_MS_VERSION);
