//! Filters as text: what they mean, and how they are refused.

mod hostile;
mod matching;

use super::*;
use crate::ErrorCode;
use crate::table::model::Value;

const DATE: &str = "datetime'2020-01-01T00:00:00Z'";
const GUID: &str = "guid'c9da6455-213d-42c9-9a79-3e9149a57833'";

// Meaning.

#[track_caller]
fn parsed(text: &str, schema: Schema) -> Expr {
    match parse(text, schema) {
        Ok(Some(filter)) => filter.root,
        Ok(None) => panic!("{text}: blank"),
        Err(error) => panic!("{text}: {error}"),
    }
}

/// The tree, with every group in brackets.
fn show(expr: &Expr) -> String {
    let list = |word: &str, terms: &[Expr]| {
        let terms: Vec<String> = terms.iter().map(show).collect();
        format!("[{}]", terms.join(word))
    };
    match expr {
        Expr::Constant(value) => value.to_string(),
        Expr::Flag(property) => show_property(property),
        Expr::Compare { property, op, literal } => {
            format!("{} {op:?} {}", show_property(property), show_value(literal))
        }
        Expr::Not(operand) => format!("not {}", show(operand)),
        Expr::And(terms) => list(" and ", terms),
        Expr::Or(terms) => list(" or ", terms),
    }
}

fn show_property(property: &FilterProperty) -> String {
    match property {
        FilterProperty::Custom(name) => name.to_string(),
        declared => format!("<{declared:?}>"),
    }
}

fn show_value(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => format!("{number}L"),
        Value::Double(number) => format!("{number:?}D"),
        Value::Boolean(value) => value.to_string(),
        Value::DateTime(date) => written(|out| date.write(out)),
        Value::Guid(guid) => written(|out| guid.write(out)),
        Value::Binary(bytes) => format!("{bytes:?}"),
    }
}

fn written(write: impl Fn(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(show(&parsed(text, Schema::Entities)), expected, "{text}");
}

#[test]
fn a_blank_filter_is_none() {
    for text in ["", " ", "\t \n"] {
        assert!(parse(text, Schema::Entities).unwrap().is_none());
    }
}

#[test]
fn operators_bind_in_the_order_not_comparison_and_or() {
    check("a eq 1", "a Eq 1");
    check("a or b", "[a or b]");
    check("a or b and c", "[a or [b and c]]");
    check("a and b or c", "[[a and b] or c]");
    check("(a or b) and c", "[[a or b] and c]");
    check("a and b and c", "[a and b and c]");
    check("a or b or c or d", "[a or b or c or d]");
    check("((a or b) or c) or d", "[a or b or c or d]");
    check("a or (b or c)", "[a or [b or c]]");
    check("a or b and c or d and e", "[a or [b and c] or [d and e]]");
    check("a eq 1 and b ne 2 or c lt 3", "[[a Eq 1 and b Ne 2] or c Lt 3]");
    check("not a", "not a");
    check("not a and b", "[not a and b]");
    check("not a or b", "[not a or b]");
    check("a and not b or c", "[[a and not b] or c]");
    check("not (a and b)", "not [a and b]");
    check("not(a and b)", "not [a and b]");
    check("not(a) and b", "[not a and b]");
    check("not a eq 1", "not a Eq 1");
    check("not a eq 1 and b", "[not a Eq 1 and b]");
    check("not (a eq 1)", "not a Eq 1");
    check("not not a", "a");
    check("not not not a", "not a");
    check("not true", "false");
    check("true", "true");
    check("false", "false");
    check("(true)", "true");
    check("a or true", "[a or true]");
}

#[test]
fn blanks_and_parentheses_are_free() {
    check("  a   eq\t1  ", "a Eq 1");
    check("((a eq 1))", "a Eq 1");
    check("( ( a ) eq ( 1 ) )", "a Eq 1");
    check("(a)eq(1)", "a Eq 1");
    check("(a eq 1)and(b eq 2)", "[a Eq 1 and b Eq 2]");
    check("a eq 'x'and b eq 'y'", "[a Eq \"x\" and b Eq \"y\"]");
    check("a eq 5and b", "[a Eq 5 and b]");
}

#[test]
fn the_literal_may_stand_on_either_side() {
    check("1 eq a", "a Eq 1");
    check("1 ne a", "a Ne 1");
    check("1 lt a", "a Gt 1");
    check("1 le a", "a Ge 1");
    check("1 gt a", "a Lt 1");
    check("1 ge a", "a Le 1");
    check("'x' eq PartitionKey", "<PartitionKey> Eq \"x\"");
}

#[test]
fn names_are_case_sensitive_and_declared_ones_are_known() {
    check("PartitionKey ge 'a' and RowKey lt 'b'", "[<PartitionKey> Ge \"a\" and <RowKey> Lt \"b\"]");
    check("Timestamp gt datetime'2020-01-01T00:00:00Z'", "<Timestamp> Gt 2020-01-01T00:00:00Z");
    check("partitionkey eq 5", "partitionkey Eq 5");
    check("timestamp eq 5", "timestamp Eq 5");
    check("TableName eq 5", "TableName Eq 5");
    check("_x1 eq 5", "_x1 Eq 5");
    check("größe eq 5", "größe Eq 5");
    check("名前 eq 5", "名前 Eq 5");
    check("x\u{301} eq 5", "x\u{301} Eq 5");
    // A keyword counts as one only where an operator may stand, and only in lower case.
    check("eq eq 5", "eq Eq 5");
    check("and and or", "[and and or]");
    check("True", "True");
    check("NOT eq 5", "NOT Eq 5");
    check("year eq 5", "year Eq 5");
    // Names are known for their schema: entities have no declared TableName.
    check("TableName", "TableName");
}

#[test]
fn table_names_compare_in_lower_case() {
    let check = |text: &str, expected: &str| assert_eq!(show(&parsed(text, Schema::Tables)), expected);
    check("TableName eq 'MyTable'", "<TableName> Eq \"mytable\"");
    check("'MY' le TableName and TableName lt 'N'", "[<TableName> Ge \"my\" and <TableName> Lt \"n\"]");
    check("PartitionKey eq 5", "PartitionKey Eq 5");
    check("Other eq 'X'", "Other Eq \"X\"");
}

#[test]
fn literals_of_every_type() {
    check("x eq 'text'", "x Eq \"text\"");
    check("x eq ''", "x Eq \"\"");
    check("x eq ''''", "x Eq \"'\"");
    check("x eq 'O''Neil''s'", "x Eq \"O'Neil's\"");
    check("x eq 'a and b) or ('", "x Eq \"a and b) or (\"");
    check("x eq 'é\u{1F600}'", "x Eq \"é\u{1F600}\"");
    check("x eq 0", "x Eq 0");
    check("x eq 007", "x Eq 7");
    check("x eq -5", "x Eq -5");
    check("x eq - 5", "x Eq -5");
    check("x eq 2147483647", "x Eq 2147483647");
    check("x eq -2147483648", "x Eq -2147483648");
    check("x eq 5L", "x Eq 5L");
    check("x eq -5l", "x Eq -5L");
    check("x eq 9223372036854775807L", "x Eq 9223372036854775807L");
    check("x eq -9223372036854775808L", "x Eq -9223372036854775808L");
    check("x eq 1.5", "x Eq 1.5D");
    check("x eq -1.50", "x Eq -1.5D");
    check("x eq 3D", "x Eq 3.0D");
    check("x eq 3d", "x Eq 3.0D");
    check("x eq 1.5D", "x Eq 1.5D");
    check("x eq 1e3", "x Eq 1000.0D");
    check("x eq 1E+3", "x Eq 1000.0D");
    check("x eq 25.0e-1d", "x Eq 2.5D");
    check("x eq 1.7976931348623157E+308", "x Eq 1.7976931348623157e308D");
    check("x eq 4.94065645841247E-324", "x Eq 5e-324D");
    check("x eq NaN", "x Eq NaND");
    check("x eq INF", "x Eq infD");
    check("x eq -INF", "x Eq -infD");
    check("x eq - INF", "x Eq -infD");
    check("x eq true", "x Eq true");
    check("x eq false", "x Eq false");
    check("x eq datetime'2008-07-10T00:00:00Z'", "x Eq 2008-07-10T00:00:00Z");
    check("x eq datetime'2012-11-10T03:04:05.200Z'", "x Eq 2012-11-10T03:04:05.2Z");
    check("x eq datetime'2012-11-10T03:04:05.1234567'", "x Eq 2012-11-10T03:04:05.1234567Z");
    check("x ge datetime'0001-01-01T00:00:00Z'", "x Ge 0001-01-01T00:00:00Z");
    check("x eq datetimeoffset'2012-11-10T03:04:05+01:00'", "x Eq 2012-11-10T02:04:05Z");
    check("x eq guid'A455C695-df98-5678-aaaa-81d3367e5a34'", "x Eq a455c695-df98-5678-aaaa-81d3367e5a34");
    check("x eq X'0102fF'", "x Eq [1, 2, 255]");
    check("x eq x'00'", "x Eq [0]");
    check("x eq binary'FF'", "x Eq [255]");
    check("x eq X''", "x Eq []");
}

// Refusals and their messages.

#[track_caller]
fn check_refused(text: &str, schema: Schema, code: ErrorCode, expected: &str) {
    match parse(text, schema) {
        Ok(filter) => panic!("{text} was taken: {filter:?}"),
        Err(error) => {
            assert_eq!(error.message(), expected, "{text}");
            assert_eq!(error.code, code, "{text}");
        }
    }
}

/// Expects a 400 with the given message, followed by ` in 'TEXT'.`
#[track_caller]
fn check_syntax(text: &str, expected: &str) {
    check_refused(text, Schema::Entities, ErrorCode::InvalidInput, &format!("{expected} in '{text}'."));
}

#[track_caller]
fn check_invalid(text: &str, expected: &str) {
    check_refused(text, Schema::Entities, ErrorCode::InvalidInput, expected);
}

#[track_caller]
fn check_not_implemented(text: &str) {
    let message = "The requested operation is not implemented on the specified resource.";
    check_refused(text, Schema::Entities, ErrorCode::NotImplemented, message);
}

#[test]
fn the_two_recorded_syntax_errors_come_out_exactly() {
    check_invalid("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'.");
    check_invalid("property1 eq 1'invalid'", "Syntax error at position 23 in 'property1 eq 1'invalid''.");
}

#[test]
fn syntax_errors_name_their_position() {
    check_syntax("a eq 1 b", "Syntax error at position 8");
    check_syntax("a eq 1)", "Syntax error at position 7");
    check_syntax("a, b", "Syntax error at position 2");
    check_syntax("a eq 1 AND b eq 2", "Syntax error at position 10");
    check_syntax("a EQ 1", "Syntax error at position 4");
    check_syntax("a in (1,2)", "Syntax error at position 4");
    check_syntax("a has 1", "Syntax error at position 5");
    check_syntax("a = 1", "Syntax error at position 3");
    check_syntax("a.b eq 1", "Syntax error at position 2");
    check_syntax("a (b)", "Syntax error at position 3");
    check_syntax("a eq DateTime'2020-01-01T00:00:00Z'", "Syntax error at position 35");
    check_syntax("a eq 5LL", "Syntax error at position 8");
    check_syntax("a eq 0x10", "Syntax error at position 9");

    check_syntax("a eq 'x", "There is an unterminated string literal at position 7");
    check_syntax("a eq 'x''", "There is an unterminated string literal at position 9");
    check_syntax("'", "There is an unterminated string literal at position 1");
    check_syntax("a eq datetime'2020", "There is an unterminated literal at position 18");
    check_syntax("a eq X'", "There is an unterminated literal at position 7");

    check_syntax("a eq", "Expression expected at position 4");
    check_syntax("a eq ", "Expression expected at position 5");
    check_syntax("eq 1 and", "Syntax error at position 4");
    check_syntax("a and", "Expression expected at position 5");
    check_syntax("not", "Expression expected at position 3");
    check_syntax("()", "Expression expected at position 1");
    check_syntax("(", "Expression expected at position 1");
    check_syntax(")", "Expression expected at position 0");
    check_syntax("a eq *", "Expression expected at position 5");
    check_syntax("-", "Expression expected at position 1");
    check_syntax(".5 eq a", "Expression expected at position 0");
    check_syntax("a eq ,", "Expression expected at position 5");

    check_syntax("(a eq 1", "')' or operator expected at position 7");
    check_syntax("((a eq 1)", "')' or operator expected at position 9");
    check_syntax("(a eq 1 b)", "')' or operator expected at position 8");
    check_syntax("(a, b)", "')' or operator expected at position 2");
    check_syntax("f(a", "')' or ',' expected at position 3");
    check_syntax("f(a b)", "')' or ',' expected at position 4");
    check_syntax("f(a,)", "Expression expected at position 4");

    check_syntax("a eq !", "Syntax error: character '!' is not valid at position 5");
    check_syntax("a && b", "Syntax error: character '&' is not valid at position 2");
    check_syntax("a eq \"x\"", "Syntax error: character '\"' is not valid at position 5");
    check_syntax("a eq +5", "Syntax error: character '+' is not valid at position 5");

    check_syntax("a eq 1.", "A digit was expected at position 7");
    check_syntax("a eq 1.x", "A digit was expected at position 7");
    check_syntax("a eq 1e", "A digit was expected at position 7");
    check_syntax("a eq 1e+", "A digit was expected at position 8");
    check_syntax("1eq a", "A digit was expected at position 2");
}

#[test]
fn positions_count_utf16_code_units() {
    check_syntax("é bbb ccc", "Syntax error at position 5");
    check_syntax("a eq '\u{1F600}' b", "Syntax error at position 11");
    check_syntax("a eq '\u{1F600}", "There is an unterminated string literal at position 8");
}

#[test]
fn literals_that_do_not_read_are_named() {
    check_invalid(
        "PropX eq 5454161346626",
        "Unrecognized 'Edm.Int32' literal '5454161346626' at '9' in 'PropX eq 5454161346626'.",
    );
    check_syntax("x eq 2147483648", "Unrecognized 'Edm.Int32' literal '2147483648' at '5'");
    check_syntax("x eq -2147483649", "Unrecognized 'Edm.Int32' literal '-2147483649' at '5'");
    check_syntax("x eq --5", "Unrecognized 'Edm.Int32' literal '--5' at '5'");
    check_syntax(
        "x eq 9223372036854775808L",
        "Unrecognized 'Edm.Int64' literal '9223372036854775808L' at '5'",
    );
    check_syntax("x eq 1.5L", "Unrecognized 'Edm.Int64' literal '1.5L' at '5'");
    check_syntax("x eq 1e999", "Unrecognized 'Edm.Double' literal '1e999' at '5'");
    check_syntax("x eq - NaN", "Unrecognized 'Edm.Double' literal '-NaN' at '5'");
    check_syntax("x eq datetime'x'", "Unrecognized 'Edm.DateTime' literal 'datetime'x'' at '5'");
    check_syntax("x eq datetime''", "Unrecognized 'Edm.DateTime' literal 'datetime''' at '5'");
    check_syntax("x eq guid'12'", "Unrecognized 'Edm.Guid' literal 'guid'12'' at '5'");
    check_syntax("x eq X'1'", "Unrecognized 'Edm.Binary' literal 'X'1'' at '5'");
    check_syntax("x eq X'1g'", "Unrecognized 'Edm.Binary' literal 'X'1g'' at '5'");
    check_syntax("x eq binary'é'", "Unrecognized 'Edm.Binary' literal 'binary'é'' at '5'");
}

#[test]
fn a_filter_is_a_single_boolean_value() {
    let message = "The $filter expression must evaluate to a single boolean value.";
    for text in
        ["1", "(1)", "'x'", "5L", "1.5", "1.5f", DATE, GUID, "X'00'", "null", "PartitionKey", "(Timestamp)"]
    {
        check_invalid(text, message);
    }
    let one = "A unary operator with an incompatible type was detected. Found operand type";
    check_invalid("not 1", &format!("{one} 'Edm.Int32' for operator kind 'Not'."));
    let two = "A binary operator with incompatible types was detected. Found operand types";
    check_invalid("1 and 'x'", &format!("{two} 'Edm.Int32' and 'Edm.String' for operator kind 'And'."));
    check_invalid("x eq 1 or 5L", &format!("{two} 'Edm.Boolean' and 'Edm.Int64' for operator kind 'Or'."));
    check_invalid("x or 5L", &format!("{two} '<null>' and 'Edm.Int64' for operator kind 'Or'."));
}

#[test]
fn keys_and_timestamp_are_no_conditions() {
    let two = "A binary operator with incompatible types was detected. Found operand types";
    check_invalid(
        "(PartitionKey ) and (RowKey ge 'x')",
        &format!("{two} 'Edm.String' and 'Edm.Boolean' for operator kind 'And'."),
    );
    check_invalid(
        "x eq 1 or Timestamp",
        &format!("{two} 'Edm.Boolean' and 'Edm.DateTime' for operator kind 'Or'."),
    );
    check_invalid("RowKey and x", &format!("{two} 'Edm.String' and '<null>' for operator kind 'And'."));
    let one = "A unary operator with an incompatible type was detected. Found operand type";
    check_invalid("not RowKey", &format!("{one} 'Edm.String' for operator kind 'Not'."));
}

#[test]
fn null_is_refused() {
    for text in ["x eq null", "null ne x", "not null", "x and null", "null eq null", "(null) eq x"] {
        check_invalid(text, "One of the request inputs is not valid.");
    }
}

#[test]
fn a_declared_property_wants_its_type() {
    let check = |text: &str, schema: Schema, left: &str, right: &str, kind: &str| {
        let expected = format!(
            "A binary operator with incompatible types was detected. Found operand types '{left}' and '{right}' for operator kind '{kind}'."
        );
        check_refused(text, schema, ErrorCode::InvalidInput, &expected);
    };
    let entities = Schema::Entities;
    check("PartitionKey eq 5", entities, "Edm.String", "Edm.Int32", "Equal");
    check("PartitionKey ne 5L", entities, "Edm.String", "Edm.Int64", "NotEqual");
    check("RowKey gt true", entities, "Edm.String", "Edm.Boolean", "GreaterThan");
    check("RowKey ge 1.5", entities, "Edm.String", "Edm.Double", "GreaterThanOrEqual");
    check("RowKey eq 1.5f", entities, "Edm.String", "Edm.Single", "Equal");
    check("Timestamp lt 'x'", entities, "Edm.DateTime", "Edm.String", "LessThan");
    check("Timestamp le 5", entities, "Edm.DateTime", "Edm.Int32", "LessThanOrEqual");
    check("5 lt PartitionKey", entities, "Edm.Int32", "Edm.String", "LessThan");
    check("TableName eq 1", Schema::Tables, "Edm.String", "Edm.Int32", "Equal");
}

#[test]
fn legal_odata_that_the_service_does_not_offer() {
    // Property with property, literal with literal, and conditions compared.
    check_not_implemented("a eq b");
    // Literals are lower case, so this is a name.
    check_not_implemented("a eq True");
    check_not_implemented("PartitionKey eq RowKey");
    check_not_implemented("1 eq 1");
    check_not_implemented("1 eq 'x'");
    check_not_implemented("true eq true");
    check_not_implemented("(a eq 1) eq true");
    check_not_implemented("a eq 1 eq 2");
    check_not_implemented("a eq not b");
    // Arithmetic.
    for operator in ["add", "sub", "mul", "div", "mod"] {
        check_not_implemented(&format!("a {operator} 1 eq 2"));
        check_not_implemented(&format!("2 eq 1 {operator} a"));
    }
    check_not_implemented("-a eq 1");
    check_not_implemented("-(a) eq 1");
    check_not_implemented("1 add 2");
    // Functions.
    check_not_implemented("startswith(a, 'x')");
    check_not_implemented("endswith(a,'x') and b eq 1");
    check_not_implemented("substringof('x', a) eq true");
    check_not_implemented("length(a) gt 5");
    check_not_implemented("5 lt length( a )");
    check_not_implemented("tolower(trim(a)) eq 'x'");
    check_not_implemented("year(Timestamp) eq 2020");
    check_not_implemented("isof('Edm.String')");
    check_not_implemented("cast(a, 'Edm.Int32') eq 5");
    check_not_implemented("round()");
    check_not_implemented("not startswith(a, 'x')");
    // Navigation.
    check_not_implemented("a/b eq 1");
    check_not_implemented("a/any(x: x eq 1)");
    // The first such construct decides, but syntax errors take precedence.
    check_not_implemented("a eq b and contains(a, 'x')");
    check_syntax("startswith(a, 'x'", "')' or ',' expected at position 17");
    check_syntax("PartitionKey eq 5 and", "Expression expected at position 21");
}

#[test]
fn unknown_functions_are_named() {
    let message = |name: &str| {
        format!(
            "An unknown function with name '{name}' was found. This may also be a key lookup on a navigation property, which is not allowed."
        )
    };
    check_invalid("contains(a, 'x')", &message("contains"));
    check_invalid("StartsWith(a, 'x')", &message("StartsWith"));
    check_invalid("f()", &message("f"));
    check_invalid("a eq now()", &message("now"));
    check_invalid("contains(a, 'x') and startswith(a, 'x')", &message("contains"));
}
