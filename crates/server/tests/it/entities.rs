//! One entity: insert, get, delete (§3.10, §3.11, §3.17) and the POST tunnel (§3.14).

use serde_json::json;
use testkit::{Request, Response, TestServer, entity_json, entity_path, mask};

const PAYLOAD: &str = r#"{"PartitionKey":"001","PartitionKey@odata.type":"Edm.String","RowKey":"r1","RowKey@odata.type":"Edm.String","age":39,"sex":"male","sex@odata.type":"Edm.String","married":true,"ratio":3.1,"evenratio":3.0,"double":5,"double@odata.type":"Edm.Double","Birthday":"1973-10-04T00:00:00.000000Z","Birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","birthday@odata.type":"Edm.DateTime","binary":"YmluYXJ5","binary@odata.type":"Edm.Binary","big":"933311100","big@odata.type":"Edm.Int64","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","clsid@odata.type":"Edm.Guid","gone":null,"Timestamp":null}"#;
const CUSTOM: &str = r#""age":39,"sex":"male","married":true,"ratio":3.1,"evenratio":3.0,"double":5.0,"Birthday@odata.type":"Edm.DateTime","Birthday":"1973-10-04T00:00:00Z","birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","big@odata.type":"Edm.Int64","big":"933311100","clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#;

fn insert(json: &str) -> Request {
    Request::post("/mytable").json(json)
}

/// The ETag header, once its form is checked and the body's Timestamp and `odata.etag` agree with it.
fn checked_etag(response: &Response) -> String {
    let etag = response.required("ETag").to_owned();
    let inner = etag.strip_prefix("W/\"datetime'").and_then(|rest| rest.strip_suffix("'\"")).unwrap();
    let body = response.json();
    assert_eq!(body["odata.etag"], json!(etag));
    assert_eq!(body["Timestamp"], json!(inner.replace("%3A", ":")));
    etag
}

#[test]
fn insert_answers_with_the_entity_as_stored() {
    let server = TestServer::with_table("mytable");
    let response =
        server.send(insert(PAYLOAD).header("Content-Type", "application/json;odata=nometadata")).expect(201);
    let head = r#"{"odata.metadata":"http://HOST/devstoreaccount1/$metadata#mytable/@Element","odata.etag":"W/\"datetime'TIME'\"","PartitionKey":"001","RowKey":"r1","Timestamp":"TIME","#;
    // `mask` hides GUID values too, because they look like request ids.
    assert_eq!(mask(response.text()), format!("{head}{}", mask(CUSTOM)));
    assert!(response.text().ends_with(CUSTOM), "{response:?}");
    checked_etag(&response);
    let location = format!("{}/mytable(PartitionKey='001',RowKey='r1')", server.base());
    assert_eq!(response.required("Location"), location);
    assert_eq!(response.header("Preference-Applied"), None);
    assert_eq!(response.header("DataServiceId"), None);
}

#[test]
fn a_stored_entity_reads_back_as_insert_returned_it() {
    let server = TestServer::with_table("mytable");
    let inserted = server.send(insert(PAYLOAD)).expect(201);
    let read = server.get("mytable", "001", "r1").expect(200);
    assert_eq!(read.text(), inserted.text());
    assert_eq!(checked_etag(&read), checked_etag(&inserted));
    assert_eq!(read.header("Location"), None);
}

#[test]
fn prefer_decides_whether_insert_returns_the_entity() {
    let server = TestServer::with_table("mytable");
    let request = insert(&entity_json("p", "1", "")).header("Prefer", "return-content");
    let response = server.send(request).expect(201);
    assert_eq!(response.header("Preference-Applied"), Some("return-content"));
    assert_eq!(response.json()["RowKey"], "1");

    let request = insert(&entity_json("p", "2", "")).header("Prefer", "return-no-content");
    let response = server.send(request).expect(204);
    let location = format!("{}/mytable(PartitionKey='p',RowKey='2')", server.base());
    assert_eq!(response.header("Preference-Applied"), Some("return-no-content"));
    assert_eq!(response.header("Location"), Some(location.as_str()));
    assert_eq!(response.header("DataServiceId"), Some(location.as_str()));
    assert_eq!(response.header("Content-Type"), None);
    let etag = response.required("ETag").to_owned();
    assert_eq!(server.get("mytable", "p", "2").required("ETag"), etag);
}

#[test]
fn insert_refuses_an_entity_that_exists_and_leaves_it_alone() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":1"#);
    let request = insert(&entity_json("p", "r", r#""x":2"#)).header("Prefer", "return-no-content");
    let response = server.send(request);
    let response =
        response.expect_message(409, "EntityAlreadyExists", "The specified entity already exists.");
    assert_eq!(response.header("Preference-Applied"), Some("return-no-content"));
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1);
}

#[test]
fn every_entity_operation_on_a_missing_table_says_so() {
    let server = TestServer::start();
    let message = "The table specified does not exist.";
    let entity = entity_path("absent", "p", "r");
    let json = entity_json("p", "r", "");
    for request in [
        Request::post("/absent").json(&json),
        Request::get(&entity),
        Request::get("/absent()"),
        Request::get("/absent"),
        Request::put(&entity).json(&json),
        Request::put(&entity).json(&json).header("If-Match", "*"),
        Request::merge(&entity).json(&json),
        Request::patch(&entity).json(&json).header("If-Match", "*"),
        Request::delete(&entity).header("If-Match", "*"),
    ] {
        let response = server.send(request).expect_message(404, "TableNotFound", message);
        assert_eq!(response.header("Cache-Control"), None, "§9.1: missing on early failures");
    }
}

#[test]
fn insert_needs_both_keys() {
    let server = TestServer::with_table("mytable");
    let message = "The values are not specified for all properties in the entity.";
    for body in [
        r#"{"RowKey":"r"}"#,
        r#"{"PartitionKey":"p"}"#,
        r#"{"PartitionKey":null,"RowKey":"r"}"#,
        r#"{"PartitionKey":"p","RowKey":null}"#,
        r#"{"x":1}"#,
        r#"{}"#,
        r#"{"partitionkey":"p","rowkey":"r"}"#,
    ] {
        server.send(insert(body)).expect_message(400, "PropertiesNeedValue", message);
    }
}

#[test]
fn insert_refuses_payloads_that_cannot_be_read() {
    let server = TestServer::with_table("mytable");
    let message = "An error occurred while processing this request.";
    for body in [
        "{",
        "[]",
        "\"text\"",
        "null",
        r#"{"PartitionKey":"p","RowKey":"r","x":}"#,
        r#"{"PartitionKey":"p","RowKey":"r"} trailing"#,
        r#"{"PartitionKey":"p","RowKey":"r",}"#,
        r#"{'PartitionKey':'p','RowKey':'r'}"#,
        r#"{"PartitionKey":"p","RowKey":"r","x":{}}"#,
        r#"{"PartitionKey":"p","RowKey":"r","x":{"y":1}}"#,
        r#"{"PartitionKey":"p","RowKey":"r","x":[]}"#,
        r#"{"PartitionKey":"p","RowKey":"r","x":[1,2]}"#,
        r#"{"PartitionKey":"p","RowKey":"r","x":"\ud800"}"#,
        r#"{"PartitionKey":"p","RowKey":"r","x":01}"#,
        r#"{"PartitionKey":"p","RowKey":"r","x":NaN}"#,
    ] {
        let response = server.send(insert(body));
        assert_eq!(
            (response.status, response.error_code().as_str()),
            (400, "InvalidInput"),
            "{body}\n{response:?}"
        );
        assert_eq!(response.error_message(), message, "{body}");
    }
    let mut invalid_utf8 = br#"{"PartitionKey":"p","RowKey":"r","x":""#.to_vec();
    invalid_utf8.extend_from_slice(b"\xFF\xFE\"}");
    server
        .send(Request::post("/mytable").body("application/json", invalid_utf8))
        .expect_error(400, "InvalidInput");
    server.send(insert("")).expect(400);
    server.get("mytable", "p", "r").expect_error(404, "ResourceNotFound");
}

#[test]
fn a_property_given_twice_is_refused() {
    let server = TestServer::with_table("mytable");
    let body = entity_json("p", "r", r#""x":1,"x":2"#);
    server.send(insert(&body)).expect_message(
        400,
        "DuplicatePropertiesSpecified",
        "A property is specified more than once.",
    );
    let message = "A key property is specified more than once.";
    for body in [
        r#"{"PartitionKey":"p","RowKey":"r","PartitionKey":"q"}"#,
        r#"{"PartitionKey":"p","RowKey":"r","RowKey":"r"}"#,
    ] {
        server.send(insert(body)).expect_message(400, "DuplicateKeyPropertySpecified", message);
    }
    server.send(insert(&entity_json("p", "r", r#""x":1,"X":2"#))).expect(201);
}

#[test]
fn a_missing_entity_is_a_missing_resource() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    let message = "The specified resource does not exist.";
    for (partition, row) in [("p", "x"), ("x", "r"), ("P", "r"), ("p", "R"), ("", "")] {
        server.get("mytable", partition, row).expect_message(404, "ResourceNotFound", message);
    }
}

#[test]
fn table_names_in_paths_ignore_case() {
    let server = TestServer::with_table("MyTable");
    server.insert("mytable", "p", "r", r#""x":1"#);
    server.get("MYTABLE", "p", "r").expect(200);
    let response = server.send(Request::get("/myTABLE()")).expect(200);
    assert_eq!(response.json()["value"].as_array().unwrap().len(), 1);
}

#[test]
fn a_post_to_the_table_with_parentheses_inserts_too() {
    let server = TestServer::with_table("mytable");
    server.send(Request::post("/mytable()").json(&entity_json("p", "r", ""))).expect(201);
}

#[test]
fn delete_removes_the_entity_and_says_nothing_more() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    let path = entity_path("mytable", "p", "r");
    let response = server.send(Request::delete(&path).header("If-Match", "*")).expect(204);
    assert_eq!(response.header("ETag"), None);
    assert_eq!(response.header("Content-Type"), None);
    assert_eq!(response.header("Cache-Control"), Some("no-cache"));
    server.get("mytable", "p", "r").expect_error(404, "ResourceNotFound");
    let request = Request::delete(&path).header("If-Match", "*");
    server.send(request).expect_message(404, "ResourceNotFound", "The specified resource does not exist.");
}

#[test]
fn delete_without_if_match_is_refused() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    server.send(Request::delete(&entity_path("mytable", "p", "r"))).expect_error(400, "InvalidInput");
    server.get("mytable", "p", "r").expect(200);
}

#[test]
fn an_entity_can_be_inserted_again_after_it_was_deleted() {
    let server = TestServer::with_table("mytable");
    let first = server.insert("mytable", "p", "r", r#""x":1"#).required("ETag").to_owned();
    server.send(Request::delete(&entity_path("mytable", "p", "r")).header("If-Match", &first)).expect(204);
    let second = server.insert("mytable", "p", "r", r#""y":1"#).required("ETag").to_owned();
    assert_ne!(first, second);
    assert_eq!(server.get("mytable", "p", "r").json().get("x"), None);
}

#[test]
fn post_tunnels_the_verbs_a_client_cannot_send() {
    let server = TestServer::with_table("mytable");
    let path = entity_path("mytable", "p", "r");
    let tunnel = |method: &str, json: &str| Request::post(&path).header("X-HTTP-Method", method).json(json);
    server.send(tunnel("PUT", r#"{"x":1,"y":1}"#)).expect(204);
    server.send(tunnel("MERGE", r#"{"y":2}"#).header("If-Match", "*")).expect(204);
    server.send(tunnel("PATCH", r#"{"z":3}"#)).expect(204);
    let body = server.get("mytable", "p", "r").json();
    assert_eq!((&body["x"], &body["y"], &body["z"]), (&json!(1), &json!(2), &json!(3)));
    let request = Request::post(&path).header("X-HTTP-Method", "DELETE").header("If-Match", "*");
    server.send(request).expect(204);
    server.get("mytable", "p", "r").expect(404);
}

#[test]
fn the_tunnel_is_refused_when_misused() {
    let server = TestServer::with_table("mytable");
    let path = entity_path("mytable", "p", "r");
    server.send(Request::put(&path).json("{}").header("X-HTTP-Method", "MERGE")).expect_message(
        400,
        "XMethodNotUsingPost",
        "The request uses X-HTTP-Method with a Http Verb that is not POST.",
    );
    for value in ["BREW", ""] {
        server.send(Request::post(&path).json("{}").header("X-HTTP-Method", value)).expect_message(
            400,
            "XMethodIncorrectValue",
            "The specified X-HTTP-Method is invalid.",
        );
    }
    let request = Request::post(&path).json("{}").header("X-HTTP-Method", "MERGE");
    server.send(request.another_header("X-HTTP-Method", "PUT")).expect_message(
        400,
        "XMethodIncorrectCount",
        "More than one X-HTTP-Method is specified.",
    );
}

#[test]
fn post_to_an_entity_needs_the_tunnel() {
    let server = TestServer::with_table("mytable");
    let request = Request::post(&entity_path("mytable", "p", "r")).json("{}");
    server.send(request).expect_error(405, "MethodNotAllowed");
}

#[test]
fn of_many_inserts_of_one_key_exactly_one_wins() {
    let server = TestServer::with_table("mytable");
    for round in 0..10 {
        let row = format!("r{round}");
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let (server, row) = (&server, row.as_str());
            let writers: Vec<_> = (0..8)
                .map(|writer| {
                    scope.spawn(move || {
                        let body = entity_json("p", row, &format!("\"writer\":{writer}"));
                        let bytes = server.bytes_of(&Request::post("/mytable").json(&body));
                        server.connect().exchange(&bytes).unwrap().status
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let winners = statuses.iter().filter(|status| **status == 201).count();
        let losers = statuses.iter().filter(|status| **status == 409).count();
        assert_eq!((winners, losers), (1, 7), "{statuses:?}");
    }
}
