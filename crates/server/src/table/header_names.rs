//! Names of headers that only the Table service has.

pub(crate) use protocol::table::wire::headers::{
    CONTINUATION_NEXT_PARTITION_KEY, CONTINUATION_NEXT_ROW_KEY, CONTINUATION_NEXT_TABLE_NAME,
};

pub(crate) const DATA_SERVICE_ID: &str = "dataserviceid";
/// Asks for an explanation of how the query found its rows.
pub(crate) const EXPLAIN: &str = "x-lazulite-explain";
pub(crate) const EXPLANATION: &str = "x-lazulite-plan";
pub(crate) const PREFERENCE_APPLIED: &str = "preference-applied";
