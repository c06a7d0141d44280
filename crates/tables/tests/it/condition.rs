//! A filter as a tree: written as text for the service, and evaluated here by the comparison rules of §5.5.

use std::cmp::Ordering;

use protocol::common::ordinal::compare_ordinal;
use protocol::table::model::Value;

use super::model::Row;

#[derive(Clone, Debug)]
pub enum Condition {
    Compare { property: String, operator: &'static str, literal: Value<'static>, literal_first: bool },
    Flag(String),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    pub fn holds(&self, partition: &str, row_key: &str, row: &Row) -> bool {
        match self {
            Condition::Compare { property, operator, literal, literal_first } => {
                let stored = match property.as_str() {
                    "PartitionKey" => Some(Value::String(partition.into())),
                    "RowKey" => Some(Value::String(row_key.into())),
                    name => row.properties.get(name).cloned(),
                };
                let operator = if *literal_first { flipped(operator) } else { operator };
                // A missing property fails every comparison.
                stored.is_some_and(|stored| compares(&stored, operator, literal))
            }
            Condition::Flag(name) => row.properties.get(name) == Some(&Value::Boolean(true)),
            Condition::Not(inner) => !inner.holds(partition, row_key, row),
            Condition::And(left, right) => {
                left.holds(partition, row_key, row) && right.holds(partition, row_key, row)
            }
            Condition::Or(left, right) => {
                left.holds(partition, row_key, row) || right.holds(partition, row_key, row)
            }
        }
    }

    pub fn text(&self) -> String {
        match self {
            Condition::Compare { property, operator, literal, literal_first: false } => {
                format!("{property} {operator} {}", literal_text(literal))
            }
            Condition::Compare { property, operator, literal, literal_first: true } => {
                format!("{} {operator} {property}", literal_text(literal))
            }
            Condition::Flag(name) => name.clone(),
            Condition::Not(inner) => format!("not ({})", inner.text()),
            Condition::And(left, right) => format!("({}) and ({})", left.text(), right.text()),
            Condition::Or(left, right) => format!("({}) or ({})", left.text(), right.text()),
        }
    }
}

fn flipped(operator: &'static str) -> &'static str {
    match operator {
        "lt" => "gt",
        "le" => "ge",
        "gt" => "lt",
        "ge" => "le",
        same => same,
    }
}

fn literal_text(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => format!("{number}L"),
        Value::Double(number) => format!("{number:?}"),
        Value::Boolean(flag) => flag.to_string(),
        other => panic!("no literal of {other:?} is generated"),
    }
}

/// §5.5: equal types compare by value, a literal is widened to the stored type, and in all other cases the stored value
/// is "less".
fn compares(stored: &Value<'_>, operator: &str, literal: &Value<'_>) -> bool {
    let order = match (stored, literal) {
        (Value::String(a), Value::String(b)) => compare_ordinal(a, b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Int32(a), Value::Int32(b)) => a.cmp(b),
        (Value::Int64(a), Value::Int64(b)) => a.cmp(b),
        (Value::Int64(a), Value::Int32(b)) => a.cmp(&i64::from(*b)),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (Value::Double(a), Value::Int32(b)) => a.total_cmp(&f64::from(*b)),
        (Value::Double(a), Value::Int64(b)) => a.total_cmp(&(*b as f64)),
        _ => Ordering::Less,
    };
    match operator {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" => order.is_lt(),
        "le" => order.is_le(),
        "gt" => order.is_gt(),
        "ge" => order.is_ge(),
        other => panic!("there is no operator {other}"),
    }
}
