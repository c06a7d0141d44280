//! Decides whether a row matches a filter: the truth table of comparisons between a stored value and a literal.
//!
//! This runs for every scanned row, so it borrows everything and never allocates.

use std::cmp::Ordering;

use crate::common::ordinal::compare_ordinal_bytes;
use crate::table::model::{RawValue, Value};

use super::Properties;
use super::tree::{CompareOp, Expr, FilterProperty};

impl Expr {
    pub fn matches(&self, row: &impl Properties) -> bool {
        // The parser bounds how deep filters nest, and so the recursion here. Comparisons are in a function of their
        // own and the loops are plain, to keep this stack frame small.
        match self {
            Expr::Constant(value) => *value,
            Expr::Flag(property) => is_set(row, property),
            Expr::Compare { property, op, literal } => is_met(row, property, *op, literal),
            Expr::Not(operand) => !operand.matches(row),
            Expr::And(terms) => {
                for term in terms {
                    if !term.matches(row) {
                        return false;
                    }
                }
                true
            }
            Expr::Or(terms) => {
                for term in terms {
                    if term.matches(row) {
                        return true;
                    }
                }
                false
            }
        }
    }
}

fn is_set(row: &impl Properties, property: &FilterProperty) -> bool {
    matches!(row.property(property), Some(RawValue::Boolean(true)))
}

#[inline]
fn is_met(row: &impl Properties, property: &FilterProperty, op: CompareOp, literal: &Value<'_>) -> bool {
    row.property(property).is_some_and(|stored| op.holds(stored, literal))
}

impl CompareOp {
    /// Evaluates `stored op literal` by the rules for untyped properties.
    #[inline]
    fn holds(self, stored: RawValue<'_>, literal: &Value<'_>) -> bool {
        let Some(ordering) = compare(stored, literal) else {
            // One side is NaN, which equals nothing and has no order.
            return self == CompareOp::Ne;
        };
        match self {
            CompareOp::Eq => ordering.is_eq(),
            CompareOp::Ne => ordering.is_ne(),
            CompareOp::Gt => ordering.is_gt(),
            CompareOp::Ge => ordering.is_ge(),
            CompareOp::Lt => ordering.is_lt(),
            CompareOp::Le => ordering.is_le(),
        }
    }
}

/// Compares a stored value with a literal. The literal is widened to the stored type where possible, never the other
/// way round. If the types do not match, the stored value counts as less.
#[inline]
fn compare(stored: RawValue<'_>, literal: &Value<'_>) -> Option<Ordering> {
    Some(match (stored, literal) {
        (RawValue::String(stored), Value::String(literal)) => {
            compare_ordinal_bytes(stored, literal.as_bytes())
        }
        (RawValue::Int32(stored), Value::Int32(literal)) => stored.cmp(literal),
        (RawValue::Int64(stored), Value::Int64(literal)) => stored.cmp(literal),
        (RawValue::Int64(stored), Value::Int32(literal)) => stored.cmp(&i64::from(*literal)),
        (RawValue::Double(stored), Value::Double(literal)) => return stored.partial_cmp(literal),
        (RawValue::Double(stored), Value::Int32(literal)) => return stored.partial_cmp(&f64::from(*literal)),
        (RawValue::Double(stored), Value::Int64(literal)) => return stored.partial_cmp(&(*literal as f64)),
        (RawValue::Boolean(stored), Value::Boolean(literal)) => stored.cmp(literal),
        (RawValue::DateTime(stored), Value::DateTime(literal)) => stored.cmp(literal),
        (RawValue::Guid(stored), Value::Guid(literal)) => stored.cmp(literal),
        (RawValue::Binary(stored), Value::Binary(literal)) => stored.cmp(literal),
        _ => Ordering::Less,
    })
}
