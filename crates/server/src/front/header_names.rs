//! Names of headers that all services have.

pub(crate) use protocol::common::headers::{
    X_MS_CLIENT_REQUEST_ID, X_MS_DATE, X_MS_ERROR_CODE, X_MS_REQUEST_ID, X_MS_VERSION,
};

pub(crate) const CONTENT_MD5: &str = "content-md5";
