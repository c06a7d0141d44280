//! The shape of a filter: its properties, operators and types of literals, without any value.
//!
//! Promises: filters that differ only in their values have the same shape, and so have those that differ only in how
//! often they repeat a term, as in `RowKey eq 'a' or RowKey eq 'b' or …`. No part of a value is in the shape. Its text
//! has at most [`SHAPE_BYTES_MAX`] bytes.

use super::{CompareOp, Expr, FilterProperty};
use crate::common::Fnv;

/// The text of a longer shape is cut.
pub const SHAPE_BYTES_MAX: usize = 512;
const CUT_MARK: &str = "\u{2026}";

/// As in `PartitionKey eq String and (Age gt Int32 or Done)`. A term that stands several times in a row is written
/// once, followed by a mark: `RowKey eq String or ..`.
pub fn shape(root: &Expr) -> String {
    let mut text = Text { out: String::new(), is_cut: false };
    walk(root, false, &mut text);
    if text.is_cut {
        text.out.push_str(CUT_MARK);
    }
    text.out
}

/// A number that stands for the shape; made without allocating.
pub fn shape_number(root: &Expr) -> u64 {
    let mut number = Fnv::default();
    walk(root, false, &mut number);
    number.value()
}

trait Output {
    fn put(&mut self, piece: &str);

    /// Nothing that follows matters.
    fn is_full(&self) -> bool;
}

struct Text {
    out: String,
    is_cut: bool,
}

impl Output for Text {
    fn put(&mut self, piece: &str) {
        let room = (SHAPE_BYTES_MAX - CUT_MARK.len()).saturating_sub(self.out.len());
        if self.is_cut || piece.len() > room {
            let end = (0..=room.min(piece.len())).rev().find(|at| piece.is_char_boundary(*at));
            if !self.is_cut {
                self.out.push_str(&piece[..end.unwrap_or_default()]);
            }
            self.is_cut = true;
            return;
        }
        self.out.push_str(piece);
    }

    fn is_full(&self) -> bool {
        self.is_cut
    }
}

impl Output for Fnv {
    fn put(&mut self, piece: &str) {
        self.text(piece);
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// The tree nests no deeper than the parser allows, so this recursion is bounded.
fn walk(expr: &Expr, is_nested: bool, out: &mut impl Output) {
    if out.is_full() {
        return;
    }
    match expr {
        Expr::Constant(_) => out.put("Boolean"),
        Expr::Flag(property) => out.put(name(property)),
        Expr::Compare { property, op, literal } => {
            out.put(name(property));
            out.put(keyword(*op));
            out.put(type_name(literal.edm_type().name()));
        }
        Expr::Not(inner) => {
            out.put("not ");
            walk(inner, true, out);
        }
        Expr::And(terms) => list(terms, " and ", is_nested, out),
        Expr::Or(terms) => list(terms, " or ", is_nested, out),
    }
}

fn list(terms: &[Expr], word: &str, is_nested: bool, out: &mut impl Output) {
    if is_nested {
        out.put("(");
    }
    let mut previous: Option<&Expr> = None;
    let mut is_repeated = false;
    for term in terms {
        if previous.is_some_and(|previous| is_alike(previous, term)) {
            // How often does not matter: the next query of the program may have more or fewer.
            if !is_repeated {
                out.put(word);
                out.put("..");
            }
            is_repeated = true;
            continue;
        }
        if previous.is_some() {
            out.put(word);
        }
        is_repeated = false;
        walk(term, true, out);
        previous = Some(term);
        if out.is_full() {
            return;
        }
    }
    if is_nested {
        out.put(")");
    }
}

/// Whether two terms have the same shape.
fn is_alike(left: &Expr, right: &Expr) -> bool {
    match (left, right) {
        (Expr::Constant(_), Expr::Constant(_)) => true,
        (Expr::Flag(left), Expr::Flag(right)) => left == right,
        (
            Expr::Compare { property: left, op: left_op, literal: left_literal },
            Expr::Compare { property: right, op: right_op, literal: right_literal },
        ) => left == right && left_op == right_op && left_literal.edm_type() == right_literal.edm_type(),
        (Expr::Not(left), Expr::Not(right)) => is_alike(left, right),
        (Expr::And(left), Expr::And(right)) | (Expr::Or(left), Expr::Or(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_alike(left, right))
        }
        _ => false,
    }
}

fn name(property: &FilterProperty) -> &str {
    match property {
        FilterProperty::PartitionKey => "PartitionKey",
        FilterProperty::RowKey => "RowKey",
        FilterProperty::Timestamp => "Timestamp",
        FilterProperty::TableName => "TableName",
        FilterProperty::Custom(name) => name,
    }
}

fn keyword(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => " eq ",
        CompareOp::Ne => " ne ",
        CompareOp::Gt => " gt ",
        CompareOp::Ge => " ge ",
        CompareOp::Lt => " lt ",
        CompareOp::Le => " le ",
    }
}

fn type_name(edm: &'static str) -> &'static str {
    edm.strip_prefix("Edm.").unwrap_or(edm)
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, parse};
    use super::*;

    fn of(filter: &str) -> (String, u64) {
        let filter = parse(filter, Schema::Entities).unwrap().unwrap();
        (shape(&filter.root), shape_number(&filter.root))
    }

    #[track_caller]
    fn check(filter: &str, expected: &str) {
        assert_eq!(of(filter).0, expected);
    }

    #[test]
    fn a_shape_has_names_operators_and_types_and_no_values() {
        check("PartitionKey eq 'secret'", "PartitionKey eq String");
        check("PartitionKey eq 'a' and RowKey eq 'b'", "PartitionKey eq String and RowKey eq String");
        check("Age gt 7 and (Done or not Late)", "Age gt Int32 and (Done or not Late)");
        check("Total lt 7L or Share ge 0.5", "Total lt Int64 or Share ge Double");
        check("When le datetime'2020-01-01T00:00:00Z'", "When le DateTime");
        check("7 lt Age", "Age gt Int32");
        check(
            "Id ne guid'12345678-1234-1234-1234-123456789012' and B eq X'00'",
            "Id ne Guid and B eq Binary",
        );
    }

    #[test]
    fn how_often_a_term_is_repeated_does_not_matter() {
        let rows = |count: usize| {
            let terms: Vec<String> = (0..count).map(|row| format!("RowKey eq 'r{row}'")).collect();
            format!("PartitionKey eq 'p' and ({})", terms.join(" or "))
        };
        check(&rows(2), "PartitionKey eq String and (RowKey eq String or ..)");
        assert_eq!(of(&rows(2)), of(&rows(90)));
        assert_ne!(of(&rows(1)), of(&rows(2)));
    }

    #[test]
    fn the_number_stands_for_the_text() {
        let filters =
            ["A eq 1", "A eq 1L", "B eq 1", "A ne 1", "A eq 1 and B eq 1", "A eq 1 or B eq 1", "A", "not A"];
        for left in filters {
            for right in filters {
                assert_eq!(of(left).1 == of(right).1, left == right, "{left} {right}");
            }
        }
        assert_eq!(of("A eq 1 and B eq 'x'"), of("A eq 2 and B eq 'yyyy'"));
    }

    #[test]
    fn a_long_shape_is_cut() {
        let long: Vec<String> = (0..500).map(|number| format!("Property{number} eq {number}")).collect();
        let (text, _) = of(&long.join(" and "));
        assert!(text.len() <= SHAPE_BYTES_MAX && text.ends_with(CUT_MARK), "{text}");
        let (text, _) = of(&format!("{} eq 1", "ä".repeat(400)));
        assert!(text.len() <= SHAPE_BYTES_MAX && text.ends_with(CUT_MARK), "{text}");
    }
}
