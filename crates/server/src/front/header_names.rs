//! Names of headers that all services have, parsed at compile time: a name given as a string is parsed at every
//! look-up.

use http::HeaderName;
use protocol::common::headers;

pub(crate) const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
pub const X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static(headers::X_MS_CLIENT_REQUEST_ID);
pub const X_MS_DATE: HeaderName = HeaderName::from_static(headers::X_MS_DATE);
pub const X_MS_ERROR_CODE: HeaderName = HeaderName::from_static(headers::X_MS_ERROR_CODE);
pub const X_MS_REQUEST_ID: HeaderName = HeaderName::from_static(headers::X_MS_REQUEST_ID);
pub const X_MS_VERSION: HeaderName = HeaderName::from_static(headers::X_MS_VERSION);
