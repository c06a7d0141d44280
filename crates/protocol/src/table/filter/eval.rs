//! Does a row match? The truth table of comparisons between a stored value and a literal.
//!
//! This runs once for every scanned row: it borrows all it looks at.

use std::cmp::Ordering;

use crate::common::ordinal::compare_ordinal;
use crate::table::model::Value;

use super::Properties;
use super::tree::{CompareOp, Expr, Property};

impl Expr {
    pub fn matches(&self, row: &impl Properties) -> bool {
        // Recursion is as deep as the parser lets filters nest. Comparisons have their own function, and loops are
        // plain, to keep this frame small.
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

fn is_set(row: &impl Properties, property: &Property) -> bool {
    matches!(row.property(property), Some(Value::Boolean(true)))
}

fn is_met(row: &impl Properties, property: &Property, op: CompareOp, literal: &Value<'_>) -> bool {
    row.property(property).is_some_and(|stored| op.holds(&stored, literal))
}

impl CompareOp {
    /// `stored op literal`, by the rules for untyped properties.
    fn holds(self, stored: &Value<'_>, literal: &Value<'_>) -> bool {
        let Some(ordering) = compare(stored, literal) else {
            // NaN is on one side: nothing is ordered with it and nothing equals it.
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

/// Where a stored value stands towards a literal. The literal is widened to the stored type where it can be, never
/// the other way round; types that do not meet make the stored value the lesser one.
fn compare(stored: &Value<'_>, literal: &Value<'_>) -> Option<Ordering> {
    Some(match (stored, literal) {
        (Value::String(stored), Value::String(literal)) => compare_ordinal(stored, literal),
        (Value::Int32(stored), Value::Int32(literal)) => stored.cmp(literal),
        (Value::Int64(stored), Value::Int64(literal)) => stored.cmp(literal),
        (Value::Int64(stored), Value::Int32(literal)) => stored.cmp(&i64::from(*literal)),
        (Value::Double(stored), Value::Double(literal)) => return stored.partial_cmp(literal),
        (Value::Double(stored), Value::Int32(literal)) => return stored.partial_cmp(&f64::from(*literal)),
        (Value::Double(stored), Value::Int64(literal)) => return stored.partial_cmp(&(*literal as f64)),
        (Value::Boolean(stored), Value::Boolean(literal)) => stored.cmp(literal),
        (Value::DateTime(stored), Value::DateTime(literal)) => stored.cmp(literal),
        (Value::Guid(stored), Value::Guid(literal)) => stored.cmp(literal),
        (Value::Binary(stored), Value::Binary(literal)) => stored.cmp(literal),
        _ => Ordering::Less,
    })
}
