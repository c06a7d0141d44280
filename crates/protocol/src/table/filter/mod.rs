//! `$filter`: from the text to a type-checked tree, and from the tree to a yes or no for each row.
//!
//! Promises: what parses is well typed and nests at most [`NESTING_DEPTH_MAX`] deep; parsing takes time and memory
//! linear in the text and never recurses; matching never allocates and never fails.
//! Leaves to others: which rows are looked at (the planner's work) and where a row's values come from.

mod eval;
mod lexer;
mod literal;
mod parser;
mod refusal;
mod tree;

#[cfg(test)]
mod tests;

pub use parser::NESTING_DEPTH_MAX;
pub use tree::{CompareOp, Expr, Property};

use crate::table::model::Value;
use crate::{ErrorCode, ServiceError};

/// A filter that parsed: every comparison has its property on the left and a literal of a fitting type.
#[derive(PartialEq, Debug)]
pub struct Filter {
    pub root: Expr,
}

/// Which properties are declared, with a type that literals must have. All others are untyped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schema {
    /// PartitionKey and RowKey are strings, Timestamp is a date.
    Entities,
    /// TableName is a string.
    Tables,
}

/// A row, seen by a filter. The value of [`Property::TableName`] is given in lower case: table names ignore case.
pub trait Properties {
    fn property(&self, property: &Property) -> Option<Value<'_>>;
}

/// No URL is longer; only a query inside a batch could be. A filter runs once for every row it is asked about.
const FILTER_BYTES_MAX: usize = 64 * 1024;

/// Reads the text of a `$filter`. A blank text is the same as none.
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
}
