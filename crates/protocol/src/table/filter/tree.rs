//! The tree of a filter, and the few rewrites that keep it in normal form.

use crate::table::model::{EdmType, Value};

use super::Schema;

/// A condition on a row. There are only two truth values: a comparison with a missing property is false, and the rest
/// is ordinary logic.
///
/// Not `Clone`: unlike the other recursions over the tree, a derived clone would need more stack than a thread has.
#[derive(PartialEq, Debug)]
pub enum Expr {
    Constant(bool),
    /// A bare property name: true only if the property is a Boolean and true.
    Flag(FilterProperty),
    Compare {
        property: FilterProperty,
        op: CompareOp,
        literal: Value<'static>,
    },
    Not(Box<Expr>),
    /// Two or more, in the order of the text.
    And(Vec<Expr>),
    /// Two or more, in the order of the text.
    Or(Vec<Expr>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FilterProperty {
    PartitionKey,
    RowKey,
    Timestamp,
    TableName,
    Custom(Box<str>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareOp {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

impl Expr {
    pub(super) fn reads_keys(&self) -> bool {
        let is_key = |property: &FilterProperty| {
            matches!(property, FilterProperty::PartitionKey | FilterProperty::RowKey)
        };
        match self {
            Expr::Constant(_) => false,
            Expr::Flag(property) | Expr::Compare { property, .. } => is_key(property),
            Expr::Not(operand) => operand.reads_keys(),
            Expr::And(terms) | Expr::Or(terms) => terms.iter().any(Expr::reads_keys),
        }
    }

    /// `left and right`. A chain of these extends one list, so thousands of terms nest no deeper than two.
    pub(super) fn and(left: Expr, right: Expr) -> Expr {
        match left {
            Expr::And(mut terms) => {
                terms.push(right);
                Expr::And(terms)
            }
            left => Expr::And(vec![left, right]),
        }
    }

    /// `left or right`, like [`Expr::and`].
    pub(super) fn or(left: Expr, right: Expr) -> Expr {
        match left {
            Expr::Or(mut terms) => {
                terms.push(right);
                Expr::Or(terms)
            }
            left => Expr::Or(vec![left, right]),
        }
    }

    /// `not operand`. Two negations cancel, since there are only two truth values.
    pub(super) fn negation(operand: Expr) -> Expr {
        match operand {
            Expr::Constant(value) => Expr::Constant(!value),
            Expr::Not(inner) => *inner,
            operand => Expr::Not(Box::new(operand)),
        }
    }
}

impl FilterProperty {
    /// Names are case-sensitive; a name the schema does not declare is a custom property.
    pub(super) fn named(name: &str, schema: Schema) -> FilterProperty {
        match (schema, name) {
            (Schema::Entities, "PartitionKey") => FilterProperty::PartitionKey,
            (Schema::Entities, "RowKey") => FilterProperty::RowKey,
            (Schema::Entities, "Timestamp") => FilterProperty::Timestamp,
            (Schema::Tables, "TableName") => FilterProperty::TableName,
            _ => FilterProperty::Custom(name.into()),
        }
    }

    /// The type that a literal compared with this property must have.
    pub(super) fn declared_type(&self) -> Option<EdmType> {
        match self {
            FilterProperty::PartitionKey | FilterProperty::RowKey | FilterProperty::TableName => {
                Some(EdmType::String)
            }
            FilterProperty::Timestamp => Some(EdmType::DateTime),
            FilterProperty::Custom(_) => None,
        }
    }
}

impl CompareOp {
    pub(super) fn from_keyword(keyword: &str) -> Option<CompareOp> {
        Some(match keyword {
            "eq" => CompareOp::Eq,
            "ne" => CompareOp::Ne,
            "gt" => CompareOp::Gt,
            "ge" => CompareOp::Ge,
            "lt" => CompareOp::Lt,
            "le" => CompareOp::Le,
            _ => return None,
        })
    }

    /// The name of the operator in messages.
    pub(super) fn kind(self) -> &'static str {
        match self {
            CompareOp::Eq => "Equal",
            CompareOp::Ne => "NotEqual",
            CompareOp::Gt => "GreaterThan",
            CompareOp::Ge => "GreaterThanOrEqual",
            CompareOp::Lt => "LessThan",
            CompareOp::Le => "LessThanOrEqual",
        }
    }

    /// The operator with the same meaning when its sides are swapped: `3 lt x` is `x gt 3`.
    pub(super) fn flipped(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Eq,
            CompareOp::Ne => CompareOp::Ne,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
        }
    }
}
