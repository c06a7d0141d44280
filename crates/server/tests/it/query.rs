//! `$select`, `$top`, and query options that are ignored or refused (§5.1, §5.6, §5.7, §1.4).

use serde_json::json;
use testkit::{Request, Response, TestServer, mask};

fn with_rows() -> TestServer {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "001", "r1", r#""age":39,"sex":"male","big":"7","big@odata.type":"Edm.Int64""#);
    server.insert("mytable", "001", "r2", r#""sex":"female""#);
    server
}

fn count(response: &Response) -> usize {
    response.json()["value"].as_array().unwrap_or_else(|| panic!("not a list:\n{response:?}")).len()
}

#[test]
fn a_set_names_its_table_and_gives_each_entity_its_etag() {
    let server = with_rows();
    for path in ["/mytable()", "/mytable"] {
        let response = server.send(Request::get(path)).expect(200);
        let expected = r#"{"odata.metadata":"http://HOST/devstoreaccount1/$metadata#mytable","value":[{"odata.etag":"W/\"datetime'TIME'\"","PartitionKey":"001","RowKey":"r1","Timestamp":"TIME","age":39,"sex":"male","big@odata.type":"Edm.Int64","big":"7"},{"odata.etag":"W/\"datetime'TIME'\"","PartitionKey":"001","RowKey":"r2","Timestamp":"TIME","sex":"female"}]}"#;
        assert_eq!(mask(response.text()), expected);
        assert_eq!(response.header("ETag"), None);
        let etag = response.json()["value"][0]["odata.etag"].as_str().unwrap().to_owned();
        assert_eq!(server.get("mytable", "001", "r1").required("ETag"), etag);
    }
}

#[test]
fn full_metadata_of_a_set_is_in_every_element() {
    let server = with_rows();
    let request = Request::get("/mytable()?$top=1").header("Accept", "application/json;odata=fullmetadata");
    let expected = r#"{"odata.metadata":"http://HOST/devstoreaccount1/$metadata#mytable","value":[{"odata.type":"devstoreaccount1.mytable","odata.id":"http://HOST/devstoreaccount1/mytable(PartitionKey='001',RowKey='r1')","odata.etag":"W/\"datetime'TIME'\"","odata.editLink":"mytable(PartitionKey='001',RowKey='r1')","PartitionKey":"001","RowKey":"r1","Timestamp@odata.type":"Edm.DateTime","Timestamp":"TIME","age":39,"sex":"male","big@odata.type":"Edm.Int64","big":"7"}]}"#;
    assert_eq!(mask(server.send(request).expect(200).text()), expected);
}

#[test]
fn nothing_found_is_an_empty_set() {
    let server = with_rows();
    for filter in ["PartitionKey eq 'x'", "PartitionKey eq '001' and RowKey eq 'x'", "age eq 99"] {
        let response = server.send(Request::get("/mytable()").query("$filter", filter)).expect(200);
        assert_eq!(response.json()["value"], json!([]));
    }
}

#[test]
fn a_filter_on_both_keys_is_still_a_set() {
    let server = with_rows();
    let filter = "PartitionKey eq '001' and RowKey eq 'r1'";
    let response = server.send(Request::get("/mytable()").query("$filter", filter)).expect(200);
    assert_eq!(count(&response), 1);
    assert_eq!(response.header("x-ms-continuation-NextPartitionKey"), None);
}

#[test]
fn select_returns_exactly_what_it_names_with_null_for_what_is_missing() {
    let server = with_rows();
    let check = |select: &str, shown: &str, first: &str, second: &str| {
        let response = server.send(Request::get("/mytable()").query("$select", select)).expect(200);
        let expected = format!(
            r#"{{"odata.metadata":"http://HOST/devstoreaccount1/$metadata#mytable&$select={shown}","value":[{{"odata.etag":"W/\"datetime'TIME'\"",{first}}},{{"odata.etag":"W/\"datetime'TIME'\"",{second}}}]}}"#
        );
        assert_eq!(mask(response.text()), expected, "{select}");
    };
    check(
        "PartitionKey,RowKey,age",
        "PartitionKey,RowKey,age",
        r#""PartitionKey":"001","RowKey":"r1","age":39"#,
        r#""PartitionKey":"001","RowKey":"r2","age":null"#,
    );
    check("sex", "sex", r#""sex":"male""#, r#""sex":"female""#);
    check("big", "big", r#""big@odata.type":"Edm.Int64","big":"7""#, r#""big":null"#);
    check("Timestamp", "Timestamp", r#""Timestamp":"TIME""#, r#""Timestamp":"TIME""#);
    check("SEX", "SEX", r#""SEX":null"#, r#""SEX":null"#);
}

#[test]
fn select_tolerates_blanks_around_commas() {
    let server = with_rows();
    let response = server.send(Request::get("/mytable()").query("$select", "RowKey , age")).expect(200);
    let first = &response.json()["value"][0];
    assert_eq!((&first["RowKey"], &first["age"]), (&json!("r1"), &json!(39)));
    assert_eq!(first.get("sex"), None);
}

#[test]
fn select_works_on_one_entity() {
    let server = with_rows();
    let path = "/mytable(PartitionKey='001',RowKey='r1')?$select=age,sex,nope";
    let response = server.send(Request::get(path)).expect(200);
    let expected = r#"{"odata.metadata":"http://HOST/devstoreaccount1/$metadata#mytable/@Element&$select=age,sex,nope","odata.etag":"W/\"datetime'TIME'\"","age":39,"sex":"male","nope":null}"#;
    assert_eq!(mask(response.text()), expected);
    assert!(response.header("ETag").is_some());
    let request = Request::get(path).header("Accept", "application/json;odata=nometadata");
    assert_eq!(server.send(request).text(), r#"{"age":39,"sex":"male","nope":null}"#);
}

#[test]
fn select_does_not_touch_filtering_or_continuation() {
    let server = with_rows();
    let request = Request::get("/mytable()").query("$select", "age").query("$filter", "sex eq 'female'");
    let response = server.send(request).expect(200);
    assert_eq!(response.json()["value"][0]["age"], json!(null));
    let response = server.send(Request::get("/mytable()?$select=age&$top=1")).expect(200);
    assert!(response.header("x-ms-continuation-NextRowKey").is_some());
}

#[test]
fn empty_options_are_absent_ones() {
    let server = with_rows();
    for (query, is_selection) in
        [("?$filter=", false), ("?$select=", true), ("?$filter=&$select=", true), ("?$select=&$top=2", true)]
    {
        let response = server.send(Request::get(&format!("/mytable(){query}"))).expect(200);
        assert_eq!(count(&response), 2, "{query}");
        assert!(response.json()["value"][0].get("sex").is_some(), "{query}");
        // An empty selection selects everything, but the metadata repeat it (§0.4, ruling 13).
        assert_eq!(response.text().contains("/$metadata#mytable&$select=\","), is_selection, "{query}");
    }
}

#[test]
fn top_bounds_a_page_between_0_and_1000() {
    let server = with_rows();
    let top = |value: &str| server.send(Request::get("/mytable()").query("$top", value));
    let response = top("0").expect(200);
    assert_eq!(count(&response), 0);
    assert_eq!(response.header("x-ms-continuation-NextPartitionKey"), None);
    assert_eq!(response.header("x-ms-continuation-NextRowKey"), None);
    let response = top("1").expect(200);
    assert_eq!(count(&response), 1);
    assert!(response.header("x-ms-continuation-NextPartitionKey").is_some());
    assert!(response.header("x-ms-continuation-NextRowKey").is_some());
    for value in ["2", "1000"] {
        assert_eq!(count(&top(value).expect(200)), 2);
    }
    for value in ["1001", "-1", "99999999999999999999"] {
        top(value).expect_error(400, "InvalidInput");
    }
    top("1001").expect_message(400, "InvalidInput", "One of the request inputs is not valid.");
    top("-1").expect_message(400, "InvalidInput", "One of the request inputs is not valid.");
    for value in ["x", "1.5", "0x1", "1 2"] {
        let message = format!("Incorrect format for $top argument '{value}'.");
        top(value).expect_message(400, "InvalidInput", &message);
    }
}

#[test]
fn options_the_service_lacks_are_not_implemented() {
    let server = with_rows();
    for option in
        ["$orderby=age", "$skip=1", "$expand=x", "$inlinecount=allpages", "$count=true", "$skiptoken=x"]
    {
        let response = server.send(Request::get(&format!("/mytable()?{option}")));
        let message = "The requested operation is not implemented on the specified resource.";
        response.expect_message(501, "NotImplemented", message);
    }
}

#[test]
fn unknown_options_are_ignored() {
    let server = with_rows();
    for query in ["?$x=1", "?x=1", "?timeout=20", "?filter=x", "?$Filter=x", "?foo", "?&&", "?", "?$apply=x"]
    {
        let response = server.send(Request::get(&format!("/mytable(){query}")));
        assert_eq!(response.status, 200, "{query}\n{response:?}");
        assert_eq!(count(&response), 2, "{query}");
    }
}

#[test]
fn option_names_may_be_percent_encoded() {
    let server = with_rows();
    let response = server.send(Request::get("/mytable()?%24top=1&%24filter=age%20eq%2039")).expect(200);
    assert_eq!(count(&response), 1);
}

#[test]
fn a_query_that_cannot_be_decoded_is_refused() {
    let server = with_rows();
    for query in ["?$filter=%zz", "?$filter=%FF", "?$filter=age%20eq%2"] {
        let response = server.send(Request::get(&format!("/mytable(){query}")));
        assert_eq!(response.status, 400, "{query}\n{response:?}");
    }
}

#[test]
fn timeout_must_be_a_number_of_seconds() {
    let server = with_rows();
    for value in ["1", "30", "90", "100000"] {
        server.send(Request::get("/mytable()").query("timeout", value)).expect(200);
    }
    let message = "Value for one of the query parameters specified in the request URI is invalid.";
    for value in ["x", "1.5", "30s"] {
        let request = Request::get("/mytable()").query("timeout", value);
        server.send(request).expect_message(400, "InvalidQueryParameterValue", message);
    }
}
