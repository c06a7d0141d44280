//! `$filter`: parses the text into a type-checked tree, and matches rows against the tree.
//!
//! Promises: a parsed filter is well typed and nests at most [`NESTING_DEPTH_MAX`] deep. Parsing takes time and memory
//! linear in the text and never recurses. Matching never allocates and never fails.
//! Leaves to others: which rows to look at (the planner's work), and where a row's values come from.

mod eval;
mod lexer;
mod literal;
mod parser;
mod refusal;
mod shape;
mod tree;

#[cfg(test)]
mod tests;

pub use parser::NESTING_DEPTH_MAX;
pub use shape::{SHAPE_BYTES_MAX, shape, shape_number};
pub use tree::{CompareOp, Expr, FilterProperty};

use crate::table::model::RawValue;
use crate::{ErrorCode, ServiceError};

/// A parsed filter: every comparison has its property on the left and a literal of a suitable type on the right.
#[derive(PartialEq, Debug)]
pub struct Filter {
    pub root: Expr,
}

/// Which properties have a declared type, which their literals must match. All others are untyped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schema {
    /// PartitionKey and RowKey are strings, Timestamp is a date.
    Entities,
    /// TableName is a string.
    Tables,
}

/// A row as a filter sees it: values as they are stored, because checking strings again would cost more than comparing
/// them. [`FilterProperty::TableName`] must be given in lower case: table names are not
/// case-sensitive.
pub trait Properties {
    fn property(&self, property: &FilterProperty) -> Option<RawValue<'_>>;
}

/// No URL is longer, but a query in a batch could be. The bound matters because a filter runs for every scanned row.
const FILTER_BYTES_MAX: usize = 64 * 1024;

/// Parses a `$filter`. A text of only white space counts as no filter.
pub fn parse(text: &str, schema: Schema) -> Result<Option<Filter>, ServiceError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    if text.len() > FILTER_BYTES_MAX {
        return Err(ErrorCode::InvalidInput.into());
    }
    parser::parse(text, schema).map(|root| Some(Filter { root }))
}

impl Filter {
    pub fn matches(&self, row: &impl Properties) -> bool {
        self.root.matches(row)
    }

    /// Whether a row's PartitionKey or RowKey must be known to tell whether it matches.
    pub fn reads_keys(&self) -> bool {
        self.root.reads_keys()
    }
}
