//! One finished request, as everything that observes requests sees it.
//!
//! Promises: nothing here is a credential. What a caller stores or asks for is visible only as keys and names, and a
//! filter only as its shape. Leaves to others: deciding what of it is kept, and for how long.

use std::fmt;
use std::time::Duration;

use protocol::ErrorCode;
use protocol::common::DateTime;
use protocol::table::filter;
use protocol::table::region::{PlanKind, only_partition};

use crate::operation::{Operation, Service};
use crate::rows::NotedRows;

/// One finished request.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    pub operation: Operation,
    /// Empty when the request names no account of this server.
    pub account: &'a str,
    pub status: u16,
    /// Why it was refused. A batch that is answered 202 has the error of the operation that failed.
    pub error: Option<ErrorCode>,
    /// Bytes of the payload that were read.
    pub bytes_in: u64,
    /// Bytes of the answer's body.
    pub bytes_out: u64,
    /// From the head of the request to the answer, ready to send.
    pub took: Duration,
    /// When it was finished: by the clock that never goes back, and by the wall clock.
    pub at: Duration,
    pub now: DateTime,
    pub request_id: &'a str,
    pub detail: Detail<'a>,
}

impl Observation<'_> {
    pub fn service(&self) -> Service {
        self.operation.service()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.error.is_some() || self.status >= 400
    }
}

/// What the request is about and what it cost, as far as its service knows.
#[derive(Clone, Copy, Default, Debug)]
pub struct Detail<'a> {
    /// The table, queue or container, as the caller wrote it; empty when there is none. Of a request that was refused
    /// it may be any text.
    pub container: &'a str,
    /// PartitionKey and RowKey, when the request names or writes one row; of a batch, those of its first operation. A
    /// query has them in its filter: see [`Shape::partition`].
    pub partition: Option<&'a str>,
    pub row: Option<&'a str>,
    /// Of a batch that writes, or that reads one row by its keys: all its rows, which are in one partition.
    pub rows: NotedRows<'a>,
    /// How the rows were found: of reads only.
    pub plan: Option<PlanKind>,
    /// Of queries that have a filter.
    pub filter_shape: Option<Shape<'a>>,
    /// Rows that were looked at, also by a query that failed, and rows that were answered.
    pub examined: u64,
    pub returned: u64,
    /// Whether a query has more to give: its answer has a continuation.
    pub has_more: bool,
    /// Rows that were written or deleted: one, or as many as a batch has; 0 when nothing was.
    pub written: u64,
    /// Of the largest row that was to be written, or of the one that was read by its keys: its size by the service's
    /// rules for entities (`tables/limits.rs`), and how many properties it has besides the keys and Timestamp. Of a
    /// merge, that is only what it changes.
    pub row_bytes_max: u64,
    pub property_count_max: u32,
    pub credentials: Credentials,
    /// Whether it was sent to the secondary location.
    pub is_secondary: bool,
}

/// With what a caller said who it is, whether it was believed or not.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Credentials {
    /// With nothing.
    Anonymous,
    /// With an account key or a bearer token.
    #[default]
    Account,
    /// With a shared access signature.
    Sas,
}

/// A filter without its values: names of properties, operators, types of literals.
///
/// It borrows the filter's text, values and all, but shows only the shape. The number is made while the query is
/// planned and costs little; the text is made when somebody asks for it, and costs parsing the filter again.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    number: u64,
    source: &'a str,
}

impl<'a> Shape<'a> {
    /// `number` is [`filter::shape_number`] of the parsed `source`.
    pub fn new(number: u64, source: &'a str) -> Shape<'a> {
        Shape { number, source }
    }

    /// The same for filters of the same shape; different, very likely, for others.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The only partition that the filter can match, if there is one. Costs parsing the filter again.
    pub fn partition(&self) -> Option<String> {
        let filter = filter::parse(self.source, filter::Schema::Entities).ok()??;
        only_partition(&filter.root)
    }

    /// As in `PartitionKey eq String and Age gt Int32`: at most [`filter::SHAPE_BYTES_MAX`] bytes.
    pub fn text(&self) -> String {
        match filter::parse(self.source, filter::Schema::Entities) {
            Ok(Some(filter)) => filter::shape(&filter.root),
            // It was parsed before, so this is not reached.
            Ok(None) | Err(_) => String::new(),
        }
    }
}

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({})", self.text())
    }
}
