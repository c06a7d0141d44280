//! Names, in lower case, of the headers that the storage services add to those of HTTP.

pub(crate) const X_HTTP_METHOD: &str = "x-http-method";
pub const X_MS_CLIENT_REQUEST_ID: &str = "x-ms-client-request-id";
pub const X_MS_DATE: &str = "x-ms-date";
pub const X_MS_ERROR_CODE: &str = "x-ms-error-code";
pub const X_MS_REQUEST_ID: &str = "x-ms-request-id";
pub const X_MS_VERSION: &str = "x-ms-version";
