//! Replace, merge and upsert (§3.13 to §3.16), nulls (§4.8) and Timestamp (§4.9).

use serde_json::{Value, json};
use testkit::{Request, TestServer, entity_json, entity_path};

/// A server with an entity ('p','r') that has x = 1 and y = "one".
fn with_entity() -> TestServer {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":1,"y":"one""#);
    server
}

fn path() -> String {
    entity_path("mytable", "p", "r")
}

/// The custom properties of ('p','r').
fn custom(server: &TestServer) -> Value {
    let accept = "application/json;odata=nometadata";
    let mut body = server.send(Request::get(&path()).header("Accept", accept)).expect(200).json();
    for name in ["PartitionKey", "RowKey", "Timestamp"] {
        body.as_object_mut().unwrap().remove(name).unwrap();
    }
    body
}

#[test]
fn replace_drops_properties_it_does_not_mention() {
    for if_match in [None, Some("*")] {
        let server = with_entity();
        let mut request = Request::put(&path()).json(&entity_json("p", "r", r#""z":true"#));
        if let Some(value) = if_match {
            request = request.header("If-Match", value);
        }
        let response = server.send(request).expect(204);
        assert_eq!(response.reason, "No Content");
        assert!(response.required("ETag").starts_with("W/\"datetime'"));
        for absent in ["Location", "Preference-Applied", "DataServiceId", "Content-Type"] {
            assert_eq!(response.header(absent), None, "{absent}");
        }
        assert_eq!(custom(&server), json!({ "z": true }));
    }
}

#[test]
fn merge_keeps_properties_it_does_not_mention() {
    for method in ["MERGE", "PATCH"] {
        for if_match in [None, Some("*")] {
            let server = with_entity();
            let mut request =
                Request::new(method, &path()).json(&entity_json("p", "r", r#""y":"two","z":true"#));
            if let Some(value) = if_match {
                request = request.header("If-Match", value);
            }
            let response = server.send(request).expect(204);
            assert!(response.required("ETag").starts_with("W/\"datetime'"));
            assert_eq!(custom(&server), json!({ "x": 1, "y": "two", "z": true }));
        }
    }
}

#[test]
fn merge_changes_the_type_with_the_value() {
    let server = with_entity();
    server.send(Request::merge(&path()).json(r#"{"x":"7","x@odata.type":"Edm.Int64"}"#)).expect(204);
    let body = server.get("mytable", "p", "r").json();
    assert_eq!((&body["x@odata.type"], &body["x"]), (&json!("Edm.Int64"), &json!("7")));
    server.send(Request::merge(&path()).json(r#"{"x":2.5}"#)).expect(204);
    let body = server.get("mytable", "p", "r").json();
    assert_eq!((body.get("x@odata.type"), &body["x"]), (None, &json!(2.5)));
}

#[test]
fn null_means_absent_so_replace_removes_and_merge_keeps() {
    let check = |method: &str, body: &str, expected: Value| {
        let server = with_entity();
        server.send(Request::new(method, &path()).json(body)).expect(204);
        assert_eq!(custom(&server), expected, "{method} {body}");
    };
    check("PUT", r#"{"x":null,"y":"two"}"#, json!({ "y": "two" }));
    check("PUT", r#"{"x":null,"x@odata.type":"Edm.Int64"}"#, json!({}));
    check("MERGE", r#"{"x":null,"z":3}"#, json!({ "x": 1, "y": "one", "z": 3 }));
    check("PATCH", r#"{"x":null,"y":null}"#, json!({ "x": 1, "y": "one" }));
    check("MERGE", "{}", json!({ "x": 1, "y": "one" }));
    check("PUT", "{}", json!({}));
}

#[test]
fn an_upsert_inserts_what_is_not_there() {
    let server = TestServer::with_table("mytable");
    for (number, method) in ["PUT", "MERGE", "PATCH"].into_iter().enumerate() {
        let row = number.to_string();
        let path = entity_path("mytable", "p", &row);
        let response = server.send(Request::new(method, &path).json(r#"{"x":5}"#)).expect(204);
        assert_eq!(response.header("Location"), None, "no way to tell insert from replace");
        let read = server.get("mytable", "p", &row).expect(200);
        assert_eq!(read.json()["x"], 5);
        assert_eq!(read.required("ETag"), response.required("ETag"));
    }
}

#[test]
fn the_url_decides_which_entity_is_written() {
    let server = with_entity();
    for method in ["PUT", "MERGE"] {
        let request =
            Request::new(method, &path()).json(r#"{"PartitionKey":"other","RowKey":"other","x":9}"#);
        server.send(request).expect(204);
        server.get("mytable", "other", "other").expect(404);
        let body = server.get("mytable", "p", "r").json();
        assert_eq!(
            (&body["PartitionKey"], &body["RowKey"], &body["x"]),
            (&json!("p"), &json!("r"), &json!(9))
        );
    }
}

#[test]
fn prefer_changes_nothing_for_updates() {
    let server = with_entity();
    for (method, prefer) in
        [("PUT", "return-content"), ("MERGE", "return-content"), ("PUT", "return-no-content")]
    {
        let response =
            server.send(Request::new(method, &path()).header("Prefer", prefer).json("{}")).expect(204);
        assert_eq!(response.body, b"");
    }
}

#[test]
fn updates_of_a_missing_entity_with_a_condition_are_refused() {
    let server = TestServer::with_table("mytable");
    for method in ["PUT", "MERGE", "PATCH"] {
        let request = Request::new(method, &path()).header("If-Match", "*").json("{}");
        let message = "The specified resource does not exist.";
        server.send(request).expect_message(404, "ResourceNotFound", message);
        server.get("mytable", "p", "r").expect(404);
    }
}

#[test]
fn updates_refuse_what_insert_refuses() {
    let server = with_entity();
    let check = |body: &str, code: &str| {
        for method in ["PUT", "MERGE", "PATCH"] {
            server.send(Request::new(method, &path()).json(body)).expect_error(400, code);
        }
    };
    check("{", "InvalidInput");
    check(r#"{"x":[]}"#, "InvalidInput");
    check(r#"{"x":"y","x@odata.type":"Edm.Guid"}"#, "InvalidInput");
    check(r#"{"a-b":1}"#, "PropertyNameInvalid");
    check(r#"{"x":1,"x":2}"#, "DuplicatePropertiesSpecified");
    check(r#"{"x":"0001-01-01T00:00:00Z","x@odata.type":"Edm.DateTime"}"#, "OutOfRangeInput");
    assert_eq!(custom(&server), json!({ "x": 1, "y": "one" }));
}

#[test]
fn timestamp_belongs_to_the_server() {
    let server = TestServer::with_table("mytable");
    for (row, timestamp) in [
        r#""Timestamp":"1999-01-01T00:00:00Z""#,
        r#""Timestamp":"1999-01-01T00:00:00Z","Timestamp@odata.type":"Edm.DateTime""#,
        r#""Timestamp":null"#,
        r#""Timestamp":5"#,
    ]
    .into_iter()
    .enumerate()
    {
        let inserted = server.insert("mytable", "p", &row.to_string(), timestamp);
        assert!(!inserted.json()["Timestamp"].as_str().unwrap().starts_with("1999"), "{inserted:?}");
        let path = entity_path("mytable", "p", &row.to_string());
        server.send(Request::put(&path).json(&format!("{{{timestamp}}}"))).expect(204);
        server.send(Request::merge(&path).json(&format!("{{{timestamp}}}"))).expect(204);
        let read = server.get("mytable", "p", &row.to_string());
        assert!(!read.json()["Timestamp"].as_str().unwrap().starts_with("1999"), "{read:?}");
    }
}

#[test]
fn custom_properties_named_like_system_ones_in_another_case_are_ordinary() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""timestamp":"mine","partitionkey":1,"ROWKEY":true"#);
    assert_eq!(custom(&server), json!({ "timestamp": "mine", "partitionkey": 1, "ROWKEY": true }));
}

#[test]
fn every_write_moves_timestamp_and_etag_forward() {
    let server = TestServer::with_table("mytable");
    let mut last = server.insert("mytable", "p", "r", "").json()["Timestamp"].as_str().unwrap().to_owned();
    for number in 0..50 {
        let method = ["PUT", "MERGE"][number % 2];
        let etag =
            server.send(Request::new(method, &path()).json("{}")).expect(204).required("ETag").to_owned();
        let read = server.get("mytable", "p", "r");
        assert_eq!(read.required("ETag"), etag);
        let now = read.json()["Timestamp"].as_str().unwrap().to_owned();
        assert!(ticks(&now) > ticks(&last), "{now} is not after {last}");
        last = now;
    }
}

/// The time with its fraction padded, so that texts sort by time.
fn ticks(text: &str) -> String {
    let bare = text.strip_suffix('Z').unwrap();
    let (seconds, fraction) = bare.split_once('.').unwrap_or((bare, ""));
    format!("{seconds}.{fraction:0<7}")
}

#[test]
fn concurrent_merges_of_one_entity_are_all_kept() {
    let server = with_entity();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let server = &server;
            scope.spawn(move || {
                for number in 0..10 {
                    let body = format!("{{\"w{writer}_{number}\":{number}}}");
                    let bytes = server.bytes_of(&Request::merge(&path()).json(&body));
                    assert_eq!(server.connect().exchange(&bytes).unwrap().status, 204);
                }
            });
        }
    });
    let body = custom(&server);
    assert_eq!(body.as_object().unwrap().len(), 2 + 80);
}
