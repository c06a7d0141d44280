//! Names, in lower case, of the headers that the storage services add to those of HTTP, and the refusals of headers.

use crate::{ErrorCode, ServiceError};

pub const X_HTTP_METHOD: &str = "x-http-method";
pub const X_MS_CLIENT_REQUEST_ID: &str = "x-ms-client-request-id";
pub const X_MS_DATE: &str = "x-ms-date";
pub const X_MS_ERROR_CODE: &str = "x-ms-error-code";
pub const X_MS_REQUEST_ID: &str = "x-ms-request-id";
pub const X_MS_VERSION: &str = "x-ms-version";

/// A header whose value the service does not understand.
pub fn invalid_header(name: &'static str, value: &str) -> ServiceError {
    ServiceError::from(ErrorCode::InvalidHeaderValue)
        .with_element("HeaderName", name)
        .with_element("HeaderValue", value.to_owned())
}

/// A header that the request needs and does not have.
pub fn missing_header(name: &'static str) -> ServiceError {
    ServiceError::from(ErrorCode::MissingRequiredHeader).with_element("HeaderName", name)
}
