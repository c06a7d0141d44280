//! Names of headers that only the Table service has.

use http::HeaderName;
use protocol::table::wire::headers;

pub const CONTINUATION_NEXT_PARTITION_KEY: HeaderName =
    HeaderName::from_static(headers::CONTINUATION_NEXT_PARTITION_KEY);
pub const CONTINUATION_NEXT_ROW_KEY: HeaderName = HeaderName::from_static(headers::CONTINUATION_NEXT_ROW_KEY);
pub const CONTINUATION_NEXT_TABLE_NAME: HeaderName =
    HeaderName::from_static(headers::CONTINUATION_NEXT_TABLE_NAME);
pub(crate) const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
/// Asks for an explanation of how the query found its rows.
pub(crate) const EXPLAIN: HeaderName = HeaderName::from_static("x-lazulite-explain");
pub(crate) const EXPLANATION: HeaderName = HeaderName::from_static("x-lazulite-plan");
pub(crate) const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
