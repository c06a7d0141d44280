//! Tables: create, list, get, delete (§3.5 to §3.7), table names (§4.6) and paths that name no resource (§1.2).

use serde_json::json;
use testkit::{Request, Response, TestServer, mask};

fn create(name: &str) -> Request {
    Request::post("/Tables").json(&json!({ "TableName": name }).to_string())
}

fn names(response: &Response) -> Vec<String> {
    let body = response.json();
    let rows = body["value"].as_array().unwrap_or_else(|| panic!("not a list:\n{response:?}"));
    rows.iter().map(|row| row["TableName"].as_str().unwrap().to_owned()).collect()
}

fn with_tables(tables: &[&str]) -> TestServer {
    let server = TestServer::start();
    for table in tables {
        server.create_table(table);
    }
    server
}

#[test]
fn create_answers_with_the_table_at_the_level_asked_for() {
    let server = TestServer::start();
    let check = |level: &str, table: &str, expected: &str| {
        let accept = format!("application/json;odata={level}");
        let response = server.send(create(table).header("Accept", &accept)).expect(201);
        assert_eq!(response.reason, "Created");
        assert_eq!(response.text(), expected.replace("BASE", &server.base()));
        assert_eq!(response.required("Content-Type"), format!("{accept};streaming=true;charset=utf-8"));
        assert_eq!(response.required("Location"), format!("{}/Tables('{table}')", server.base()));
        assert_eq!(response.header("ETag"), None);
        assert_eq!(response.header("Preference-Applied"), None);
        assert_eq!(response.header("DataServiceId"), None);
    };
    check("nometadata", "none", r#"{"TableName":"none"}"#);
    check(
        "minimalmetadata",
        "minimal",
        r#"{"odata.metadata":"BASE/$metadata#Tables/@Element","TableName":"minimal"}"#,
    );
    check(
        "fullmetadata",
        "full",
        r#"{"odata.metadata":"BASE/$metadata#Tables/@Element","odata.type":"devstoreaccount1.Tables","odata.id":"BASE/Tables('full')","odata.editLink":"Tables('full')","TableName":"full"}"#,
    );
}

#[test]
fn prefer_decides_whether_create_returns_the_table() {
    let server = TestServer::start();
    let response = server.send(create("content").header("Prefer", "return-content")).expect(201);
    assert_eq!(response.header("Preference-Applied"), Some("return-content"));
    assert_eq!(response.json()["TableName"], "content");

    let response = server.send(create("nothing").header("Prefer", "return-no-content")).expect(204);
    let location = format!("{}/Tables('nothing')", server.base());
    assert_eq!(response.header("Preference-Applied"), Some("return-no-content"));
    assert_eq!(response.header("Location"), Some(location.as_str()));
    assert_eq!(response.header("DataServiceId"), Some(location.as_str()));
    assert_eq!(response.header("Content-Type"), None);
}

#[test]
fn preference_applied_is_also_on_a_refused_create() {
    let server = with_tables(&["taken"]);
    let response = server.send(create("taken").header("Prefer", "return-no-content"));
    let response = response.expect_error(409, "TableAlreadyExists");
    assert_eq!(response.header("Preference-Applied"), Some("return-no-content"));
}

#[test]
fn table_names_have_3_to_63_letters_and_digits_and_start_with_a_letter() {
    let server = TestServer::start();
    let long = "x".repeat(63);
    for name in ["abc", "A1b", "z99", "TablesToo", long.as_str()] {
        server.send(create(name)).expect(201);
    }
    let too_long = "x".repeat(64);
    for name in ["ab", "x", too_long.as_str()] {
        let message = "The specified resource name length is not within the permissible limits.";
        server.send(create(name)).expect_message(400, "OutOfRangeInput", message);
    }
    for name in ["a-b", "1abc", "a_bc", "ab c", "abc$", "täble", "ab.c", "a/bc", "日本語"] {
        let message = "The specifed resource name contains invalid characters.";
        server.send(create(name)).expect_message(400, "InvalidResourceName", message);
    }
}

#[test]
fn the_name_tables_is_reserved_in_any_case() {
    let server = TestServer::start();
    for name in ["tables", "Tables", "TABLES"] {
        server.send(create(name)).expect_error(400, "InvalidResourceName");
    }
}

#[test]
fn create_refuses_bodies_that_name_no_table() {
    let server = TestServer::start();
    let check = |body: &str, code: &str, message: &str| {
        server.send(Request::post("/Tables").json(body)).expect_message(400, code, message);
    };
    let need = "The values are not specified for all properties in the entity.";
    check("{}", "PropertiesNeedValue", need);
    check(r#"{"TableName":null}"#, "PropertiesNeedValue", need);
    let unreadable = "An error occurred while processing this request.";
    check("{", "InvalidInput", unreadable);
    check(r#"{"TableName":"abc""#, "InvalidInput", unreadable);
    check("[]", "InvalidInput", unreadable);
}

#[test]
fn creating_a_table_again_in_any_case_is_refused() {
    let server = with_tables(&["MyTable"]);
    for name in ["MyTable", "mytable", "MYTABLE"] {
        server.send(create(name)).expect_message(
            409,
            "TableAlreadyExists",
            "The table specified already exists.",
        );
    }
}

#[test]
fn tables_are_listed_by_lower_cased_name_in_the_case_they_were_given() {
    let server = with_tables(&["Bcd", "abc", "Zed", "aZZ", "b10", "B2x"]);
    let response = server.send(Request::get("/Tables")).expect(200);
    assert_eq!(names(&response), ["abc", "aZZ", "b10", "B2x", "Bcd", "Zed"]);
    assert_eq!(names(&server.send(Request::get("/Tables()"))), names(&response));
}

#[test]
fn a_list_of_tables_has_the_annotations_of_its_level() {
    let server = with_tables(&["abc", "def"]);
    let check = |level: &str, expected: &str| {
        let accept = format!("application/json;odata={level}");
        let response = server.send(Request::get("/Tables").header("Accept", &accept)).expect(200);
        assert_eq!(response.text(), expected.replace("BASE", &server.base()));
    };
    check("nometadata", r#"{"value":[{"TableName":"abc"},{"TableName":"def"}]}"#);
    check(
        "minimalmetadata",
        r#"{"odata.metadata":"BASE/$metadata#Tables","value":[{"TableName":"abc"},{"TableName":"def"}]}"#,
    );
    check(
        "fullmetadata",
        r#"{"odata.metadata":"BASE/$metadata#Tables","value":[{"odata.type":"devstoreaccount1.Tables","odata.id":"BASE/Tables('abc')","odata.editLink":"Tables('abc')","TableName":"abc"},{"odata.type":"devstoreaccount1.Tables","odata.id":"BASE/Tables('def')","odata.editLink":"Tables('def')","TableName":"def"}]}"#,
    );
}

#[test]
fn an_account_without_tables_lists_none() {
    let server = TestServer::start();
    let response = server.send(Request::get("/Tables")).expect(200);
    assert_eq!(
        mask(response.text()),
        r#"{"odata.metadata":"http://HOST/devstoreaccount1/$metadata#Tables","value":[]}"#
    );
}

#[test]
fn one_table_can_be_read_by_name_in_any_case() {
    let server = with_tables(&["MyTable"]);
    let response = server.send(Request::get("/Tables('MyTable')")).expect(200);
    let expected = r#"{"odata.metadata":"BASE/$metadata#Tables/@Element","TableName":"MyTable"}"#;
    assert_eq!(response.text(), expected.replace("BASE", &server.base()));
    assert_eq!(response.header("ETag"), None);
    server.send(Request::get("/Tables('mytable')")).expect(200);
    server.send(Request::get("/Tables(%27MyTable%27)")).expect(200);
}

#[test]
fn a_missing_table_is_a_missing_resource_when_asked_for_by_name() {
    let server = TestServer::start();
    let message = "The specified resource does not exist.";
    for name in ["absent", "$MetricsHourPrimaryTransactionsTable"] {
        let path = format!("/Tables('{name}')");
        server.send(Request::get(&path)).expect_message(404, "ResourceNotFound", message);
    }
    server.send(Request::delete("/Tables('absent')")).expect_message(404, "ResourceNotFound", message);
}

#[test]
fn delete_removes_the_table_and_its_entities() {
    let server = with_tables(&["Doomed", "kept"]);
    server.insert("Doomed", "p", "r", "");
    let response =
        server.send(Request::delete("/Tables('doomed')").header("Accept", "application/json")).expect(204);
    assert_eq!(response.header("Content-Type"), None);
    assert_eq!(response.header("ETag"), None);
    assert_eq!(response.header("Cache-Control"), Some("no-cache"));
    assert_eq!(names(&server.send(Request::get("/Tables"))), ["kept"]);
    server.send(Request::get("/Tables('Doomed')")).expect_error(404, "ResourceNotFound");
    server.get("Doomed", "p", "r").expect_error(404, "TableNotFound");
    server.send(Request::get("/Doomed()")).expect_error(404, "TableNotFound");
    server.send(Request::delete("/Tables('Doomed')")).expect_error(404, "ResourceNotFound");
}

#[test]
fn a_table_created_again_is_empty() {
    let server = with_tables(&["phoenix"]);
    server.insert("phoenix", "p", "r", r#""old":1"#);
    server.send(Request::delete("/Tables('phoenix')")).expect(204);
    server.create_table("phoenix");
    server.get("phoenix", "p", "r").expect_error(404, "ResourceNotFound");
    let response = server.send(Request::get("/phoenix()")).expect(200);
    assert_eq!(response.json()["value"], json!([]));
}

#[test]
fn delete_table_refuses_etags() {
    let server = with_tables(&["held"]);
    let message = "If-Match or If-None-Match headers cannot be specified if the target type does not have etag \
                   properties defined.";
    let etag = "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"";
    for header in ["If-Match", "If-None-Match"] {
        let request = Request::delete("/Tables('held')").header(header, etag);
        server.send(request).expect_message(400, "InvalidInput", message);
    }
    server.send(Request::delete("/Tables('held')")).expect(204);
}

#[test]
fn tables_can_be_filtered_by_name() {
    let server = with_tables(&["alpha", "beta", "gamma", "mytable", "mytable2"]);
    let check = |filter: &str, expected: &[&str]| {
        let response = server.send(Request::get("/Tables").query("$filter", filter)).expect(200);
        assert_eq!(names(&response), expected, "{filter}");
    };
    check("TableName eq 'beta'", &["beta"]);
    check("TableName ge 'my' and TableName lt 'n'", &["mytable", "mytable2"]);
    check("TableName eq 'alpha' or TableName eq 'gamma'", &["alpha", "gamma"]);
    check("not (TableName eq 'beta')", &["alpha", "gamma", "mytable", "mytable2"]);
    check("TableName ne 'beta' and TableName lt 'h'", &["alpha", "gamma"]);
    check("'beta' le TableName", &["beta", "gamma", "mytable", "mytable2"]);
    check("TableName gt 'zzz'", &[]);
    check("", &["alpha", "beta", "gamma", "mytable", "mytable2"]);
}

#[test]
fn a_filter_on_tables_is_checked_like_one_on_entities() {
    let server = with_tables(&["alpha"]);
    let check = |filter: &str, status: u16, code: &str| {
        server.send(Request::get("/Tables").query("$filter", filter)).expect_error(status, code);
    };
    check("TableName eq 1", 400, "InvalidInput");
    check("TableName eq", 400, "InvalidInput");
    check("TableName eq 'alpha", 400, "InvalidInput");
    check("TableName eq TableName", 501, "NotImplemented");
    check("startswith(TableName,'a')", 501, "NotImplemented");
}

#[test]
fn tables_are_listed_in_pages() {
    let all = ["ttt1", "ttt2", "ttt3", "ttt4", "ttt5"];
    let server = with_tables(&all);
    let mut seen = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..10 {
        let mut request = Request::get("/Tables").query("$top", "2");
        if let Some(token) = &token {
            request = request.query("NextTableName", token);
        }
        let response = server.send(request).expect(200);
        assert!(names(&response).len() <= 2);
        seen.extend(names(&response));
        token = response.header("x-ms-continuation-NextTableName").map(str::to_owned);
        assert!(token.as_deref() != Some(""), "a token is never empty");
        if token.is_none() {
            break;
        }
    }
    assert_eq!(seen, all);
}

#[test]
fn a_page_of_tables_goes_on_after_the_table_it_names_is_deleted() {
    let server = with_tables(&["ttt1", "ttt2", "ttt3"]);
    let response = server.send(Request::get("/Tables").query("$top", "1")).expect(200);
    let token = response.required("x-ms-continuation-NextTableName").to_owned();
    server.send(Request::delete("/Tables('ttt2')")).expect(204);
    let response = server.send(Request::get("/Tables").query("NextTableName", &token)).expect(200);
    assert_eq!(names(&response), ["ttt3"]);
}

#[test]
fn a_page_holds_at_most_a_thousand_tables() {
    let server = TestServer::start();
    for number in 0..1001 {
        server.create_table(&format!("t{number:04}"));
    }
    let response = server.send(Request::get("/Tables")).expect(200);
    assert_eq!(names(&response).len(), 1000);
    let token = response.required("x-ms-continuation-NextTableName");
    let response = server.send(Request::get("/Tables").query("NextTableName", token)).expect(200);
    assert_eq!(names(&response), ["t1000"]);
    assert_eq!(response.header("x-ms-continuation-NextTableName"), None);
}

#[test]
fn top_for_tables_is_0_to_1000() {
    let server = with_tables(&["abc", "def"]);
    let response = server.send(Request::get("/Tables?$top=0")).expect(200);
    assert_eq!(names(&response), Vec::<String>::new());
    assert_eq!(response.header("x-ms-continuation-NextTableName"), None);
    assert_eq!(names(&server.send(Request::get("/Tables?$top=1000"))).len(), 2);
    for top in ["1001", "-1", "x", "1.5"] {
        server.send(Request::get("/Tables").query("$top", top)).expect_error(400, "InvalidInput");
    }
}

#[test]
fn a_malformed_table_token_is_refused() {
    let server = with_tables(&["abc"]);
    for token in ["x", "1!4!", "9!8!U21pdGg-", "1!8!????????"] {
        let request = Request::get("/Tables").query("NextTableName", token);
        server.send(request).expect_message(400, "InvalidInput", "One of the request inputs is not valid.");
    }
}

#[test]
fn the_only_property_of_a_table_can_be_selected() {
    let server = with_tables(&["abc"]);
    let response = server.send(Request::get("/Tables?$select=TableName")).expect(200);
    assert_eq!(names(&response), ["abc"]);
}

#[test]
fn verbs_that_tables_do_not_take_are_refused() {
    let server = with_tables(&["abc"]);
    let message = "The requested method is not allowed on the specified resource.";
    for (method, target) in [
        ("PUT", "/Tables"),
        ("DELETE", "/Tables"),
        ("MERGE", "/Tables"),
        ("PUT", "/Tables('abc')"),
        ("PATCH", "/Tables('abc')"),
        ("POST", "/Tables('abc')"),
        ("GET", "/$batch"),
        ("PUT", "/abc"),
        ("DELETE", "/abc"),
    ] {
        let request = Request::new(method, target).json("{}");
        server.send(request).expect_message(405, "MethodNotAllowed", message);
    }
}

#[test]
fn further_path_segments_are_navigation_which_does_not_exist() {
    let server = with_tables(&["abc"]);
    server.send(Request::get("/abc/Tables")).expect_error(501, "NotImplemented");
    server
        .send(Request::post("/abc/Tables").json(r#"{"TableName":"x"}"#))
        .expect_error(400, "PropertiesNeedValue");
    let message = "The number of keys specified in the URI does not match number of key properties for the resource \
                   'devstoreaccount1.abc'.";
    server.send(Request::delete("/abc/Tables('x')")).expect_message(400, "InvalidInput", message);
}
