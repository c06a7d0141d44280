//! `$filter` over the wire: grammar (§5.2), refusals (§5.3, §5.4) and comparison rules (§5.5).

use testkit::{Request, TestServer};

/// One entity per type and value, named by its row key, and one without properties.
fn with_rows() -> TestServer {
    let server = TestServer::with_table("mytable");
    for (row, members) in [
        ("bare", ""),
        ("binary", r#""v":"AQID","v@odata.type":"Edm.Binary","kind":"binary""#),
        ("bool", r#""v":true,"kind":"bool""#),
        ("date", r#""v":"2020-01-02T03:04:05.6Z","v@odata.type":"Edm.DateTime","kind":"date""#),
        ("double", r#""v":3.0,"kind":"double""#),
        ("guid", r#""v":"a455c695-df98-5678-aaaa-81d3367e5a34","v@odata.type":"Edm.Guid","kind":"guid""#),
        ("int", r#""v":3,"kind":"int""#),
        ("long", r#""v":"3","v@odata.type":"Edm.Int64","kind":"long""#),
        ("no", r#""v":false,"kind":"bool""#),
        ("text", r#""v":"b","kind":"text""#),
    ] {
        server.insert("mytable", "p", row, members);
    }
    server
}

fn rows(server: &TestServer, filter: &str) -> Vec<String> {
    let response = server.send(Request::get("/mytable()").query("$filter", filter));
    assert_eq!(response.status, 200, "{filter}\n{response:?}");
    let body = response.json();
    body["value"].as_array().unwrap().iter().map(|row| row["RowKey"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn check(server: &TestServer, filter: &str, expected: &str) {
    assert_eq!(rows(server, filter).join(" "), expected, "{filter}");
}

#[test]
fn each_type_is_found_by_its_own_literal() {
    let server = with_rows();
    let check = |filter: &str, expected: &str| check(&server, filter, expected);
    check("v eq 'b'", "text");
    check("v eq true", "bool");
    check("v eq false", "no");
    check("v eq X'010203'", "binary");
    check("v eq x'010203'", "binary");
    check("v eq binary'010203'", "binary");
    check("v eq datetime'2020-01-02T03:04:05.6Z'", "date");
    check("v eq datetime'2020-01-02T03:04:05.6000000Z'", "date");
    check("v eq datetime'2020-01-02T03:04:05.6'", "date");
    check("v eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'", "guid");
    check("v eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", "guid");
    check("v eq 3L", "double long");
    check("v eq 3l", "double long");
    check("v eq 3.0", "double");
    check("v eq 3D", "double");
    check("v eq 3e0", "double");
    check("v eq 3", "double int long");
    check("v eq -3", "");
    check("kind eq 'it''s'", "");
    check("kind eq ''", "");
}

/// Whether one stored row matches `v OP literal`, for each OP in the order eq ne lt le gt ge.
fn truth(server: &TestServer, row: &str, literal: &str) -> String {
    let holds = |operator: &str| {
        let filter = format!("PartitionKey eq 'p' and RowKey eq '{row}' and v {operator} {literal}");
        if rows(server, &filter).is_empty() { '-' } else { '+' }
    };
    ["eq", "ne", "lt", "le", "gt", "ge"].map(holds).into_iter().collect()
}

const SMALLER: &str = "-+++--";
const EQUAL: &str = "+--+-+";
const LARGER: &str = "-+--++";
const NEVER: &str = "------";

#[test]
fn values_of_one_type_compare_by_value() {
    let server = with_rows();
    let check = |row: &str, literal: &str, expected: &str| {
        assert_eq!(truth(&server, row, literal), expected, "{row} against {literal}");
    };
    check("int", "2", LARGER);
    check("int", "3", EQUAL);
    check("int", "4", SMALLER);
    check("int", "-4", LARGER);
    check("long", "2L", LARGER);
    check("long", "3L", EQUAL);
    check("long", "9223372036854775807L", SMALLER);
    check("double", "2.5", LARGER);
    check("double", "3.0", EQUAL);
    check("double", "1E+300", SMALLER);
    check("double", "INF", SMALLER);
    check("double", "-INF", LARGER);
    check("text", "'a'", LARGER);
    check("text", "'b'", EQUAL);
    check("text", "'bB'", SMALLER);
    check("text", "'B'", LARGER);
    check("text", "''", LARGER);
    check("bool", "false", LARGER);
    check("bool", "true", EQUAL);
    check("no", "true", SMALLER);
    check("date", "datetime'2020-01-02T03:04:05.5999999Z'", LARGER);
    check("date", "datetime'2020-01-02T03:04:05.6Z'", EQUAL);
    check("date", "datetime'2020-01-02T03:04:05.6000001Z'", SMALLER);
    check("guid", "guid'00000000-0000-0000-0000-000000000000'", LARGER);
    check("guid", "guid'a455c695-df98-5678-aaaa-81d3367e5a34'", EQUAL);
    check("guid", "guid'ffffffff-0000-0000-0000-000000000000'", SMALLER);
    check("binary", "X'0102'", LARGER);
    check("binary", "X'010203'", EQUAL);
    check("binary", "X'01020300'", SMALLER);
    check("binary", "X'02'", SMALLER);
    check("binary", "X''", LARGER);
}

#[test]
fn a_literal_is_widened_to_the_stored_type() {
    let server = with_rows();
    for (row, equal, smaller, larger) in
        [("long", "3", "4", "2"), ("double", "3", "4", "2"), ("double", "3L", "4L", "2L")]
    {
        assert_eq!(truth(&server, row, equal), EQUAL, "{row} against {equal}");
        assert_eq!(truth(&server, row, smaller), SMALLER, "{row} against {smaller}");
        assert_eq!(truth(&server, row, larger), LARGER, "{row} against {larger}");
    }
}

#[test]
fn types_that_do_not_compare_count_as_less() {
    let server = with_rows();
    let literals = [
        ("text", "'zz'"),
        ("bool", "true"),
        ("date", "datetime'1999-01-01T00:00:00Z'"),
        ("guid", "guid'00000000-0000-0000-0000-000000000000'"),
        ("binary", "X''"),
        ("int", "0"),
        ("long", "0L"),
        ("double", "0.0"),
    ];
    for (row, _) in literals {
        for (other, literal) in literals {
            let widened = matches!((row, other), ("long" | "double", "int") | ("double", "long"));
            if row != other && !widened {
                assert_eq!(truth(&server, row, literal), SMALLER, "{row} against {literal}");
            }
        }
    }
}

#[test]
fn a_missing_property_fails_every_comparison() {
    let server = with_rows();
    for literal in ["3", "'x'", "true", "3L", "3.0", "X'00'", "datetime'2020-01-01T00:00:00Z'"] {
        assert_eq!(truth(&server, "bare", literal), NEVER, "{literal}");
    }
    check(&server, "RowKey eq 'bare' and not (v eq 3)", "bare");
    check(&server, "RowKey eq 'bare' and v ne 3", "");
    check(&server, "not (v ne 3) and RowKey lt 'binary'", "bare");
}

#[test]
fn a_bare_name_is_a_boolean_test() {
    let server = with_rows();
    check(&server, "v", "bool");
    check(&server, "not v", "bare binary date double guid int long no text");
    check(&server, "missing", "");
    check(&server, "not missing and RowKey eq 'int'", "int");
    check(&server, "v or kind eq 'int'", "bool int");
    check(&server, "v eq true and not (kind eq 'x')", "bool");
}

#[test]
fn and_binds_tighter_than_or_and_not_tightest() {
    let server = with_rows();
    check(&server, "kind eq 'int' or kind eq 'text' and v eq 'x'", "int");
    check(&server, "(kind eq 'int' or kind eq 'text') and v eq 'b'", "text");
    check(&server, "kind eq 'text' and v eq 'x' or kind eq 'int'", "int");
    check(&server, "not (kind eq 'int') and v eq 3", "double long");
    check(&server, "not(kind eq 'int') and v eq 3", "double long");
    check(&server, "not (kind eq 'int' or kind eq 'long') and v eq 3", "double");
    check(&server, "not not (kind eq 'int')", "int");
    check(&server, "((((kind eq 'int'))))", "int");
    check(&server, "( kind eq 'int' )", "int");
}

#[test]
fn true_and_false_are_filters() {
    let server = with_rows();
    assert_eq!(rows(&server, "true").len(), 10);
    assert_eq!(rows(&server, "false").len(), 0);
    check(&server, "false or kind eq 'int'", "int");
    check(&server, "true and kind eq 'int'", "int");
}

#[test]
fn blanks_may_be_many_and_the_literal_may_come_first() {
    let server = with_rows();
    check(&server, "kind   eq   'int'", "int");
    check(&server, "kind\teq\t'int'", "int");
    check(&server, "'int' eq kind", "int");
    check(&server, "3 lt v and kind eq 'int'", "");
    check(&server, "2 lt v and kind eq 'int'", "int");
    check(&server, "4 gt v and kind eq 'int'", "int");
    check(&server, "'bool' gt RowKey", "bare binary");
    check(&server, "'no' le RowKey", "no text");
}

#[test]
fn a_plus_in_a_query_is_a_blank() {
    let server = with_rows();
    let response = server.send(Request::get("/mytable()?$filter=kind+eq+'int'")).expect(200);
    assert_eq!(response.json()["value"][0]["RowKey"], "int");
    server.insert("mytable", "p", "zplus", r#""kind":"a+b""#);
    let response = server.send(Request::get("/mytable()?$filter=kind%20eq%20'a%2Bb'")).expect(200);
    assert_eq!(response.json()["value"][0]["RowKey"], "zplus");
}

#[test]
fn key_filters_find_the_same_rows_as_a_scan_would() {
    let server = TestServer::with_table("mytable");
    for partition in ["a", "b", "c"] {
        for row in ["1", "2", "3"] {
            server.insert("mytable", partition, row, &format!("\"pk\":\"{partition}\",\"rk\":\"{row}\""));
        }
    }
    for filter in [
        "PartitionKey eq 'b'",
        "PartitionKey eq 'b' and RowKey eq '2'",
        "PartitionKey eq 'b' and RowKey ge '2'",
        "PartitionKey eq 'b' and RowKey gt '1' and RowKey lt '3'",
        "PartitionKey gt 'a'",
        "PartitionKey ge 'b' and PartitionKey lt 'c'",
        "PartitionKey le 'b' and RowKey eq '3'",
        "PartitionKey ne 'b'",
        "RowKey eq '2'",
        "RowKey ne '2'",
        "PartitionKey eq 'a' and RowKey eq '3' or PartitionKey eq 'c' and RowKey eq '1'",
        "PartitionKey eq 'c' or PartitionKey eq 'a'",
        "(PartitionKey eq 'a' or PartitionKey eq 'b') and (RowKey eq '1' or RowKey eq '3')",
        "not (PartitionKey eq 'b')",
        "not (PartitionKey eq 'b' and RowKey eq '2')",
        "PartitionKey eq 'a' and PartitionKey eq 'b'",
        "PartitionKey eq 'b' and (RowKey eq '1' or rk eq '3')",
        "PartitionKey gt 'a' or RowKey gt '2'",
        "'b' lt PartitionKey",
        "PartitionKey gt 'b' and not (RowKey ge '2')",
        "PartitionKey ge ''",
        "PartitionKey lt ''",
    ] {
        let scan = filter.replace("PartitionKey", "pk").replace("RowKey", "rk");
        let keys = |filter: &str| {
            let response = server.send(Request::get("/mytable()").query("$filter", filter)).expect(200);
            let body = response.json();
            let rows = body["value"].as_array().unwrap().iter();
            rows.map(|row| format!("{}{}", row["PartitionKey"], row["RowKey"])).collect::<Vec<_>>()
        };
        assert_eq!(keys(filter), keys(&scan), "{filter}");
    }
}

#[test]
fn timestamp_can_be_filtered() {
    let server = with_rows();
    assert_eq!(rows(&server, "Timestamp gt datetime'2020-01-01T00:00:00Z'").len(), 10);
    check(&server, "Timestamp lt datetime'2020-01-01T00:00:00Z'", "");
    let stamp = server.get("mytable", "p", "int").json()["Timestamp"].as_str().unwrap().to_owned();
    check(&server, &format!("Timestamp eq datetime'{stamp}'"), "int");
}

#[test]
fn property_names_and_strings_are_case_sensitive() {
    let server = with_rows();
    check(&server, "KIND eq 'int'", "");
    check(&server, "kind eq 'INT'", "");
    check(&server, "partitionkey eq 'p'", "");
}

/// First refusals by status and code, then those whose message is recorded too.
#[test]
fn what_cannot_be_answered_is_refused() {
    let server = with_rows();
    let check = |filter: &str, status: u16, code: &str| {
        let response = server.send(Request::get("/mytable()").query("$filter", filter));
        assert_eq!(
            (response.status, response.error_code().as_str()),
            (status, code),
            "{filter}\n{response:?}"
        );
        assert_eq!(response.header("Cache-Control"), None, "§5.4: early failures have none");
    };
    for filter in [
        "kind eq",
        "eq 'int'",
        "kind eq 'int",
        "kind eq 'int')",
        "(kind eq 'int'",
        "kind eq 'int' and",
        "kind eq 'int' or or v eq 3",
        "kind = 'int'",
        "kind == 'int'",
        "kind eq 'int' && v eq 3",
        "kind EQ 'int'",
        "kind eq 'int' AND v eq 3",
        "kind in ('int')",
        "v has 3",
        "kind eq 'int' v eq 3",
        "not",
        "()",
        "!v",
        "v eq datetime'x'",
        "v eq datetime'2020-13-01T00:00:00Z'",
        "v eq guid'x'",
        "v eq X'0'",
        "v eq X'0G'",
        "v eq 2147483648",
        "v eq 9223372036854775808L",
        "v eq 3.",
        "v eq 1'invalid'",
        "v eq TRUE 3",
        "1",
        "'text'",
        "v eq DATETIME'2020-01-01T00:00:00Z'",
        "contains(kind,'i')",
        "unknown(kind)",
        "PartitionKey eq 5",
        "RowKey gt true",
        "Timestamp gt 'x'",
        "Timestamp eq 5",
        "5 eq PartitionKey",
    ] {
        check(filter, 400, "InvalidInput");
    }
    for filter in [
        "kind eq v",
        "PartitionKey eq RowKey",
        "1 eq 1",
        "'a' lt 'b'",
        "startswith(kind,'i')",
        "endswith(kind,'t')",
        "substringof('i',kind)",
        "length(kind) eq 3",
        "tolower(kind) eq 'int'",
        "year(v) eq 2020",
        "v add 1 eq 4",
        "v mul 2 gt 3",
    ] {
        check(filter, 501, "NotImplemented");
    }
}

#[test]
fn the_recorded_texts_of_filter_errors_are_kept() {
    let server = with_rows();
    let check = |filter: &str, message: &str| {
        let request = Request::get("/mytable()").query("$filter", filter);
        server.send(request).expect_message(400, "InvalidInput", message);
    };
    check("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'.");
    check("property1 eq 1'invalid'", "Syntax error at position 23 in 'property1 eq 1'invalid''.");
    check("1", "The $filter expression must evaluate to a single boolean value.");
    check(
        "PropX eq 5454161346626",
        "Unrecognized 'Edm.Int32' literal '5454161346626' at '9' in 'PropX eq 5454161346626'.",
    );
    check(
        "PartitionKey eq 5",
        "A binary operator with incompatible types was detected. Found operand types 'Edm.String' and 'Edm.Int32' for \
         operator kind 'Equal'.",
    );
    let message = "The requested operation is not implemented on the specified resource.";
    let request = Request::get("/mytable()").query("$filter", "a eq b");
    server.send(request).expect_message(501, "NotImplemented", message);
}

#[test]
fn deep_nesting_is_refused_and_moderate_nesting_is_not() {
    let server = with_rows();
    let nested = |depth: usize| format!("{}kind eq 'int'{}", "(".repeat(depth), ")".repeat(depth));
    check(&server, &nested(100), "int");
    let response = server.send(Request::get("/mytable()").query("$filter", &nested(1000)));
    response.expect_error(400, "InvalidInput");
    let response =
        server.send(Request::get("/mytable()").query("$filter", &format!("{}v", "not ".repeat(1500))));
    response.expect_error(400, "InvalidInput");
}

#[test]
fn more_comparisons_than_the_documented_fifteen_are_answered() {
    let server = with_rows();
    let many = (0..200).map(|number| format!("v eq {number}")).collect::<Vec<_>>().join(" or ");
    check(&server, &many, "double int long");
}
