//! Names of headers that HTTP defines.

pub(crate) const ACCEPT: &str = "accept";
pub(crate) const AUTHORIZATION: &str = "authorization";
pub(crate) const CACHE_CONTROL: &str = "cache-control";
pub(crate) const CONTENT_LENGTH: &str = "content-length";
pub(crate) const CONTENT_RANGE: &str = "content-range";
pub(crate) const CONTENT_SECURITY_POLICY: &str = "content-security-policy";
pub(crate) const CONTENT_TYPE: &str = "content-type";
pub(crate) const COOKIE: &str = "cookie";
pub(crate) const DATE: &str = "date";
pub(crate) const ETAG: &str = "etag";
pub(crate) const HOST: &str = "host";
pub(crate) const LOCATION: &str = "location";
pub(crate) const NO_SNIFF: &str = "x-content-type-options";
pub(crate) const ORIGIN: &str = "origin";
pub(crate) const REFERRER_POLICY: &str = "referrer-policy";
pub(crate) const SERVER: &str = "server";
pub(crate) const WWW_AUTHENTICATE: &str = "www-authenticate";
