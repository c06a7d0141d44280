//! Names of headers, ready to be looked for: a name given as text is read anew each time.

use http::HeaderName;
use protocol::wire::headers;

pub const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
pub const CONTINUATION_NEXT_PARTITION_KEY: HeaderName =
    HeaderName::from_static(headers::CONTINUATION_NEXT_PARTITION_KEY);
pub const CONTINUATION_NEXT_ROW_KEY: HeaderName = HeaderName::from_static(headers::CONTINUATION_NEXT_ROW_KEY);
pub const CONTINUATION_NEXT_TABLE_NAME: HeaderName =
    HeaderName::from_static(headers::CONTINUATION_NEXT_TABLE_NAME);
pub const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
/// A caller who sends this header is told how the query found its rows.
pub const EXPLAIN: HeaderName = HeaderName::from_static("x-lazulite-explain");
pub const EXPLANATION: HeaderName = HeaderName::from_static("x-lazulite-plan");
pub const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
pub const X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static(headers::X_MS_CLIENT_REQUEST_ID);
pub const X_MS_DATE: HeaderName = HeaderName::from_static(headers::X_MS_DATE);
pub const X_MS_ERROR_CODE: HeaderName = HeaderName::from_static(headers::X_MS_ERROR_CODE);
pub const X_MS_REQUEST_ID: HeaderName = HeaderName::from_static(headers::X_MS_REQUEST_ID);
pub const X_MS_VERSION: HeaderName = HeaderName::from_static(headers::X_MS_VERSION);
