//! Which rows match: the truth table of comparisons, then the logic on top.

use std::borrow::Cow;
use std::fmt::Write;

use super::*;
use crate::common::DateTime;
use crate::table::model::Guid;

/// A row with one property, `x`.
pub struct Row<'a>(pub Option<Value<'a>>);

impl Properties for Row<'_> {
    fn property(&self, property: &FilterProperty) -> Option<RawValue<'_>> {
        match property {
            FilterProperty::Custom(name) if &**name == "x" => self.0.as_ref().map(RawValue::from),
            _ => None,
        }
    }
}

#[track_caller]
pub fn matches(text: &str, x: Option<Value<'static>>) -> bool {
    Filter { root: parsed(text, Schema::Entities) }.matches(&Row(x))
}

fn string(text: &'static str) -> Value<'static> {
    Value::String(Cow::Borrowed(text))
}

fn binary(bytes: &'static [u8]) -> Value<'static> {
    Value::Binary(Cow::Borrowed(bytes))
}

fn one_of_each_type() -> Vec<Value<'static>> {
    vec![
        string("3"),
        Value::Int32(3),
        Value::Int64(3),
        Value::Double(3.0),
        Value::Boolean(true),
        Value::DateTime(DateTime::parse("2020-01-01T00:00:00Z").unwrap()),
        Value::Guid(Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap()),
        binary(&[3]),
    ]
}

/// Checks which operators hold between a stored `x` and a literal, with the literal on either side.
#[track_caller]
fn check_holds(stored: Option<Value<'static>>, literal: &str, expected: &str) {
    let (mut right, mut left) = (String::new(), String::new());
    for (op, flipped) in [("eq", "eq"), ("ne", "ne"), ("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le")]
    {
        if matches(&format!("x {op} {literal}"), stored.clone()) {
            write!(right, "{op} ").unwrap();
        }
        if matches(&format!("{literal} {flipped} x"), stored.clone()) {
            write!(left, "{op} ").unwrap();
        }
    }
    assert_eq!(right.trim_end(), expected, "{stored:?} with {literal}");
    assert_eq!(left, right, "{stored:?} with {literal}");
}

const LESS: &str = "ne lt le";
const EQUAL: &str = "eq le ge";
const GREATER: &str = "ne gt ge";
/// For types that do not match, the stored value counts as less.
const MISMATCH: &str = LESS;

#[test]
fn every_comparison_with_a_missing_property_is_false() {
    for literal in ["'a'", "3", "3L", "3.0", "NaN", "true", DATE, GUID, "X'03'"] {
        check_holds(None, literal, "");
    }
    assert!(matches("not (x eq 1)", None));
    assert!(!matches("x ne 1", None));
}

#[test]
fn values_of_one_type_compare_by_value() {
    let check = check_holds;
    check(Some(string("b")), "'b'", EQUAL);
    check(Some(string("b")), "'B'", GREATER);
    check(Some(string("b")), "'bB'", LESS);
    check(Some(string("10")), "'2'", LESS);
    check(Some(string("")), "''", EQUAL);
    check(Some(string("\u{1F600}")), "'\u{E000}'", LESS);
    check(Some(Value::Int32(3)), "3", EQUAL);
    check(Some(Value::Int32(-3)), "3", LESS);
    check(Some(Value::Int32(4)), "3", GREATER);
    check(Some(Value::Int64(3)), "3L", EQUAL);
    check(Some(Value::Int64(i64::MIN)), "3L", LESS);
    check(Some(Value::Int64(i64::MAX)), "9223372036854775806L", GREATER);
    check(Some(Value::Double(3.0)), "3.0", EQUAL);
    check(Some(Value::Double(2.5)), "3.0", LESS);
    check(Some(Value::Double(3.5)), "3.0", GREATER);
    check(Some(Value::Double(-0.0)), "0.0", EQUAL);
    check(Some(Value::Double(f64::INFINITY)), "INF", EQUAL);
    check(Some(Value::Double(f64::NEG_INFINITY)), "-1e300", LESS);
    check(Some(Value::Boolean(true)), "true", EQUAL);
    check(Some(Value::Boolean(false)), "true", LESS);
    check(Some(Value::Boolean(true)), "false", GREATER);
    let date = |text: &str| Some(Value::DateTime(DateTime::parse(text).unwrap()));
    check(date("2020-01-01T00:00:00Z"), DATE, EQUAL);
    check(date("2019-12-31T23:59:59.9999999Z"), DATE, LESS);
    check(date("2020-01-01T00:00:00.0000001Z"), DATE, GREATER);
    let guid = |text: &str| Some(Value::Guid(Guid::parse(text).unwrap()));
    check(guid("c9da6455-213d-42c9-9a79-3e9149a57833"), GUID, EQUAL);
    check(guid("09da6455-213d-42c9-9a79-3e9149a57833"), GUID, LESS);
    check(guid("c9da6455-213d-42c9-9a79-3e9149a57834"), GUID, GREATER);
    check(Some(binary(&[1, 2])), "X'0102'", EQUAL);
    check(Some(binary(&[1])), "X'0102'", LESS);
    check(Some(binary(&[2])), "X'0102'", GREATER);
    check(Some(binary(&[255])), "X'7F'", GREATER);
    check(Some(binary(&[])), "X''", EQUAL);
}

#[test]
fn nan_is_unequal_to_everything_and_ordered_with_nothing() {
    check_holds(Some(Value::Double(f64::NAN)), "NaN", "ne");
    check_holds(Some(Value::Double(f64::NAN)), "3.0", "ne");
    check_holds(Some(Value::Double(f64::NAN)), "3", "ne");
    check_holds(Some(Value::Double(3.0)), "NaN", "ne");
    check_holds(Some(Value::Double(f64::INFINITY)), "NaN", "ne");
}

#[test]
fn a_literal_is_widened_to_the_stored_type() {
    let check = check_holds;
    check(Some(Value::Int64(3)), "3", EQUAL);
    check(Some(Value::Int64(2)), "3", LESS);
    check(Some(Value::Int64(1 << 40)), "3", GREATER);
    check(Some(Value::Double(3.0)), "3", EQUAL);
    check(Some(Value::Double(2.9)), "3", LESS);
    check(Some(Value::Double(3.1)), "3", GREATER);
    check(Some(Value::Double(3.0)), "3L", EQUAL);
    check(Some(Value::Double(2.9)), "3L", LESS);
    check(Some(Value::Double(3.1)), "3L", GREATER);
    // The literal is rounded to the nearest Double.
    check(Some(Value::Double(9_007_199_254_740_992.0)), "9007199254740993L", EQUAL);
}

#[test]
fn types_that_do_not_meet_make_the_stored_value_the_lesser() {
    check_holds(Some(Value::Int32(3)), "3L", MISMATCH);
    check_holds(Some(Value::Int32(3)), "3.0", MISMATCH);
    check_holds(Some(Value::Int64(3)), "3.0", MISMATCH);
    check_holds(Some(Value::Int32(i32::MAX)), "-1L", MISMATCH);
    check_holds(Some(Value::Int32(3)), "NaN", MISMATCH);

    // Every pair of types that are neither equal nor convertible by widening.
    let literals = ["'3'", "3", "3L", "3.0", "true", DATE, GUID, "X'03'"];
    let (int32, int64, double) = (1, 2, 3);
    for (stored_at, stored) in one_of_each_type().into_iter().enumerate() {
        for (literal_at, literal) in literals.iter().enumerate() {
            let is_widening =
                [(int64, int32), (double, int32), (double, int64)].contains(&(stored_at, literal_at));
            let expected = if stored_at == literal_at || is_widening { EQUAL } else { MISMATCH };
            check_holds(Some(stored.clone()), literal, expected);
        }
    }
}

#[test]
fn a_flag_is_true_only_where_it_is_a_boolean_and_true() {
    assert!(matches("x", Some(Value::Boolean(true))));
    assert!(!matches("x", Some(Value::Boolean(false))));
    assert!(!matches("x", Some(string("true"))));
    assert!(!matches("x", Some(Value::Int32(1))));
    assert!(!matches("x", None));
    assert!(!matches("not x", Some(Value::Boolean(true))));
    assert!(matches("not x", Some(Value::Boolean(false))));
    assert!(matches("not x", Some(Value::Int32(1))));
    assert!(matches("not x", None));
}

#[test]
fn logic_is_two_valued() {
    let check =
        |text: &str, expected: bool| assert_eq!(matches(text, Some(Value::Int32(3))), expected, "{text}");
    check("x eq 3 and x lt 4", true);
    check("x eq 3 and x gt 4", false);
    check("x eq 4 or x eq 3", true);
    check("x eq 4 or x eq 5", false);
    check("x eq 3 or y eq 1 and z eq 1", true);
    check("(x eq 3 or y eq 1) and z eq 1", false);
    check("not (x eq 4 or y eq 1)", true);
    check("x eq 3 and not (y eq 1)", true);
    check("true", true);
    check("false", false);
    check("true and x eq 3", true);
}

#[test]
fn numbers_of_foreign_types_are_greater_than_every_value() {
    check("x eq 1.5f", "false");
    check("x gt 1M", "false");
    check("x ge 1.5F", "false");
    check("1.5f le x", "false");
    check("x ne 1.5f", "x Ne NaND");
    check("x lt 1m", "x Ne NaND");
    check("1.5f ge x", "x Ne NaND");
    for value in one_of_each_type().into_iter().chain([Value::Double(f64::NAN)]) {
        assert!(matches("x lt 1.5f", Some(value.clone())), "{value:?}");
        assert!(!matches("x ge 1.5f", Some(value)));
    }
    assert!(!matches("x lt 1.5f", None));
}
