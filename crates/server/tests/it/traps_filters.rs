//! Filters that emulators get wrong: typed literals of every kind, `not`, null, constants, and very long filters.

use testkit::{Request, Response, TestServer};

fn query(server: &TestServer, filter: &str) -> Response {
    server.send(Request::get("/mytable()").query("$filter", filter))
}

fn rows(response: &Response) -> String {
    let body = response.json();
    let rows = body["value"].as_array().unwrap_or_else(|| panic!("not a list:\n{response:?}")).iter();
    rows.map(|row| row["RowKey"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(server: &TestServer, filter: &str, expected: &str) {
    assert_eq!(rows(&query(server, filter).expect(200)), expected, "{filter}");
}

/// Rows whose property `v` has this type; each pair is a row key and its value.
fn with_values(edm: &str, values: &[(&str, &str)]) -> TestServer {
    let server = TestServer::with_table("mytable");
    for (row, value) in values {
        server.insert("mytable", "p", row, &format!("\"v\":\"{value}\",\"v@odata.type\":\"{edm}\""));
    }
    server
}

#[test]
fn an_int64_is_compared_as_a_number_not_as_its_text() {
    let values = [("a", "-60"), ("b", "9"), ("c", "60"), ("d", "100"), ("e", "9007199254740993")];
    let server = with_values("Edm.Int64", &values);
    check(&server, "v eq 60L", "c");
    check(&server, "60L eq v", "c");
    check(&server, "v gt 60L", "d e");
    check(&server, "v ge 9L and v lt 100L", "b c");
    check(&server, "v lt 0L", "a");
    check(&server, "v eq -60L", "a");
    check(&server, "v ne 60L", "a b d e");
    check(&server, "v eq 60", "c");
    // A double cannot tell these numbers apart.
    check(&server, "v eq 9007199254740993L", "e");
    check(&server, "v eq 9007199254740992L", "");
    check(&server, "v lt 9007199254740993L and v gt 99L", "d");
}

#[test]
fn dates_are_told_apart_by_a_hundred_nanoseconds() {
    let server = with_values(
        "Edm.DateTime",
        &[
            ("a", "2020-01-01T00:00:00.1234566Z"),
            ("b", "2020-01-01T00:00:00.1234567Z"),
            ("c", "2020-01-01T00:00:00.1234568Z"),
            ("d", "1601-01-01T00:00:00Z"),
            ("e", "9999-12-31T23:59:59.9999999Z"),
        ],
    );
    check(&server, "v eq datetime'2020-01-01T00:00:00.1234567Z'", "b");
    check(
        &server,
        "v gt datetime'2020-01-01T00:00:00.1234566Z' and v lt datetime'2020-01-01T00:00:00.1234568Z'",
        "b",
    );
    check(&server, "v ne datetime'2020-01-01T00:00:00.1234567Z'", "a c d e");
    check(&server, "v ge datetime'9999-12-31T23:59:59.9999999Z'", "e");
    check(&server, "v le datetime'1601-01-01T00:00:00.0000000Z'", "d");
    check(&server, "v eq datetime'2020-01-01T01:00:00.1234567+01:00'", "b");
}

#[test]
fn guids_are_compared_by_value_in_every_spelling() {
    let server = with_values(
        "Edm.Guid",
        &[
            ("a", "00000000-0000-0000-0000-000000000001"),
            ("b", "00000001-0000-0000-0000-000000000000"),
            ("c", "a455c695-df98-5678-aaaa-81d3367e5a34"),
            ("d", "A455C695-DF98-5678-AAAA-81D3367E5A35"),
        ],
    );
    check(&server, "v eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'", "c");
    check(&server, "v eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", "c");
    check(&server, "v eq guid'a455c695-df98-5678-aaaa-81d3367e5a35'", "d");
    check(&server, "v gt guid'00000000-0000-0000-0000-000000000001'", "b c d");
    check(&server, "v le guid'00000001-0000-0000-0000-000000000000'", "a b");
    check(&server, "v ne guid'a455c695-df98-5678-aaaa-81d3367e5a34'", "a b d");
    // A string literal that looks like a GUID is not a GUID.
    check(&server, "v eq 'a455c695-df98-5678-aaaa-81d3367e5a34'", "");
}

#[test]
fn binaries_are_compared_by_bytes_and_written_in_hex() {
    // 00, 7F, 80, 80 00 and FF as Base64. A comparison of signed bytes would put the last three first.
    let server = with_values(
        "Edm.Binary",
        &[("a", "AA=="), ("b", "fw=="), ("c", "gA=="), ("d", "gAA="), ("e", "/w==")],
    );
    check(&server, "v eq X'80'", "c");
    check(&server, "v eq binary'8000'", "d");
    check(&server, "v gt X'7f'", "c d e");
    check(&server, "v lt X'8000'", "a b c");
    check(&server, "v ge X'80' and v le X'8000'", "c d");
    check(&server, "v ne X'FF'", "a b c d");
    // A filter does not take Base64.
    query(&server, "v eq X'/w=='").expect_error(400, "InvalidInput");
}

#[test]
fn not_turns_whole_expressions_around_also_for_rows_that_lack_the_property() {
    let server = TestServer::with_table("mytable");
    for (row, members) in [("a", r#""v":1,"w":true"#), ("b", r#""v":2,"w":false"#), ("c", "")] {
        server.insert("mytable", "p", row, members);
    }
    check(&server, "not (v eq 1)", "b c");
    check(&server, "not(v eq 1)", "b c");
    check(&server, "not (v eq 1 or v eq 2)", "c");
    check(&server, "not (v eq 1) and not (v eq 2)", "c");
    check(&server, "not (v ne 1)", "a c");
    check(&server, "v ne 1", "b");
    check(&server, "not w", "b c");
    check(&server, "not (not w)", "a");
    check(&server, "not (PartitionKey eq 'p')", "");
    check(&server, "not (RowKey ge 'b')", "a");
    check(&server, "not false", "a b c");
}

#[test]
fn null_is_refused_in_a_filter() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""v":1"#);
    for filter in [
        "v eq null",
        "v ne null",
        "null eq v",
        "not (v eq null)",
        "PartitionKey eq null",
        "v eq 1 or w eq null",
    ] {
        query(&server, filter).expect_error(400, "InvalidInput");
    }
    server
        .send(Request::get("/Tables").query("$filter", "TableName eq null"))
        .expect_error(400, "InvalidInput");
    check(&server, "v eq 'null'", "");
}

#[test]
fn constant_and_empty_filters_hold_for_tables_too() {
    let server = TestServer::with_table("mytable");
    let tables = |filter: &str| {
        let response = server.send(Request::get(&format!("/Tables?$filter={filter}"))).expect(200);
        assert_eq!(response.header("x-ms-continuation-NextTableName"), None, "{filter}");
        response.json()["value"].as_array().unwrap().len()
    };
    assert_eq!((tables("false"), tables("true"), tables(""), tables("not%20false")), (0, 1, 1, 1));
    assert_eq!(tables("TableName%20eq%20'mytable'%20and%20false"), 0);
    assert_eq!(tables("TableName%20eq%20'x'%20or%20true"), 1);
}

#[test]
fn a_filter_on_table_names_ignores_the_case_in_which_they_were_given() {
    let server = TestServer::with_table("MyTable");
    let found = |filter: &str| {
        let response = server.send(Request::get("/Tables").query("$filter", filter)).expect(200);
        !response.json()["value"].as_array().unwrap().is_empty()
    };
    for filter in
        ["TableName eq 'MyTable'", "TableName eq 'mytable'", "TableName ge 'my' and TableName lt 'mz'"]
    {
        assert!(found(filter), "{filter}");
    }
    assert!(!found("TableName eq 'MyTables'"));
    assert!(!found("TableName lt 'mytable'"));
}

#[test]
fn very_long_filters_are_answered() {
    let server = TestServer::with_table("mytable");
    for row in ["00000", "00999", "zz"] {
        server.insert("mytable", "p", row, "");
    }
    // Six times the documented maximum of fifteen comparisons, then nearly as many as fit into 32 KiB.
    for count in [90, 1000] {
        let wanted: Vec<String> = (0..count).map(|row| format!("RowKey eq '{row:05}'")).collect();
        let filter = format!("PartitionKey eq 'p' and ({})", wanted.join(" or "));
        let request = Request::get(&format!("/mytable()?$filter={}", filter.replace(' ', "+")));
        let expected = if count > 999 { "00000 00999" } else { "00000" };
        assert_eq!(rows(&server.send(request).expect(200)), expected, "{count} comparisons");
    }
    let nested = format!("{}RowKey eq 'zz'{}", "(".repeat(200), ")".repeat(200));
    check(&server, &nested, "zz");
    let long_text = "x".repeat(20_000);
    check(&server, &format!("RowKey eq 'zz' or v eq '{long_text}'"), "zz");
}

#[test]
fn quotes_in_a_filter_are_doubled_and_only_that() {
    let server = TestServer::with_table("mytable");
    for (row, text) in [("a", "it's"), ("b", "''"), ("c", "a\\\\b"), ("d", "%27"), ("e", "x' or '1' eq '1")] {
        server.insert("mytable", "p", row, &format!("\"v\":\"{text}\""));
    }
    check(&server, "v eq 'it''s'", "a");
    check(&server, "v eq ''''''", "b");
    check(&server, "v eq 'a\\b'", "c");
    check(&server, "v eq '%27'", "d");
    check(&server, "v eq 'x'' or ''1'' eq ''1'", "e");
    query(&server, "v eq 'it's'").expect_error(400, "InvalidInput");
    query(&server, "v eq \"it\"").expect_error(400, "InvalidInput");
}

#[test]
fn a_property_may_be_named_like_a_keyword_in_another_case() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""And":1,"Eq":"x","Not":true,"Datetime":2"#);
    check(&server, "And eq 1 and Eq eq 'x' and Not and Datetime eq 2", "r");
}
