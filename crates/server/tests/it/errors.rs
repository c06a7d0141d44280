//! The shapes of errors: OData (§9.1), front end (§9.2) and Atom (§2.3).

use std::sync::Arc;
use std::time::Duration;

use engine::env::FakeClock;
use testkit::{Request, Response, TestServer, entity_json, entity_path, mask};

fn is_seven_digit_time(text: &str) -> bool {
    let form = "9999-99-99T99:99:99.9999999Z";
    text.len() == form.len()
        && form.bytes().zip(text.bytes()).all(|(f, t)| if f == b'9' { t.is_ascii_digit() } else { f == t })
}

/// The lines of an error's message: text, request id and time.
fn lines(response: &Response) -> Vec<String> {
    let value = response.json()["odata.error"]["message"]["value"].as_str().unwrap().to_owned();
    value.split('\n').map(str::to_owned).collect()
}

#[test]
fn an_odata_error_is_compact_json_with_request_id_and_time() {
    let server = TestServer::with_table("mytable");
    let response = server.get("mytable", "p", "absent").expect(404);
    let expected = r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist.\nRequestId:GUID\nTime:TIME"}}}"#;
    assert_eq!(mask(response.text()), expected);
    assert_eq!(response.reason, "Not Found");
    let content_type = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
    assert_eq!(response.header("Content-Type"), Some(content_type));
    assert_eq!(response.header("Cache-Control"), Some("no-cache"));
    assert_eq!(response.header("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(response.header("x-ms-version"), Some("2019-02-02"));
    let lines = lines(&response);
    assert_eq!(lines[1], format!("RequestId:{}", response.required("x-ms-request-id")));
    assert!(is_seven_digit_time(lines[2].strip_prefix("Time:").unwrap()), "{}", lines[2]);
}

#[test]
fn the_time_in_an_error_keeps_its_zeros() {
    let clock = Arc::new(FakeClock::default());
    let server = TestServer::options().clock(clock.clone()).start();
    let time = || lines(&server.send(Request::get("/Tables('absent')")).expect(404))[2].clone();
    assert_eq!(time(), "Time:2025-01-01T00:00:00.0000000Z");
    clock.advance(Duration::from_millis(1500));
    assert_eq!(time(), "Time:2025-01-01T00:00:01.5000000Z");
    clock.advance(Duration::from_nanos(100));
    assert_eq!(time(), "Time:2025-01-01T00:00:01.5000001Z");
}

#[test]
fn reason_phrases_of_odata_errors_are_the_standard_ones() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    let path = entity_path("mytable", "p", "r");
    let etag = "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"";
    for (request, status, reason) in [
        (Request::post("/mytable").json("{"), 400, "Bad Request"),
        (Request::get("/absent()"), 404, "Not Found"),
        (Request::put("/Tables"), 405, "Method Not Allowed"),
        (Request::post("/mytable").json(&entity_json("p", "r", "")), 409, "Conflict"),
        (Request::put(&path).json("{}").header("If-Match", etag), 412, "Precondition Failed"),
        (Request::get("/mytable()?$orderby=x"), 501, "Not Implemented"),
    ] {
        let response = server.send(request).expect(status);
        assert_eq!(response.reason, reason);
        assert_eq!(response.header("X-Content-Type-Options"), Some("nosniff"));
    }
}

#[test]
fn the_content_type_of_an_error_has_the_level_asked_for() {
    let server = TestServer::start();
    for level in ["nometadata", "minimalmetadata", "fullmetadata"] {
        let request =
            Request::get("/Tables('absent')").header("Accept", &format!("application/json;odata={level}"));
        let expected = format!("application/json;odata={level};streaming=true;charset=utf-8");
        assert_eq!(server.send(request).expect(404).header("Content-Type"), Some(expected.as_str()));
    }
}

#[test]
fn errors_of_requests_that_return_nothing_are_still_json() {
    let server = TestServer::with_table("mytable");
    let path = entity_path("mytable", "p", "absent");
    for request in [
        Request::delete(&path).header("If-Match", "*"),
        Request::put(&path).json("{}").header("If-Match", "*"),
        Request::delete("/Tables('absent')"),
    ] {
        let response = server.send(request.header("Accept", "application/json"));
        let response = response.expect_error(404, "ResourceNotFound");
        let content_type = response.required("Content-Type");
        assert_eq!(content_type, "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
    }
}

#[test]
fn texts_taken_from_the_request_are_escaped() {
    let server = TestServer::with_table("mytable");
    let filter = "a\"b\\c </m:message> 😀\t eq";
    let response =
        server.send(Request::get("/mytable()").query("$filter", filter)).expect_error(400, "InvalidInput");
    assert!(response.json()["odata.error"]["message"]["value"].is_string());
    let key = "a\"\u{1}\\b";
    let response = server.send(Request::post("/mytable").json(&entity_json(key, "r", "")));
    let message = format!("The 'PartitionKey' parameter of value '{key}' is out of range.");
    response.expect_message(400, "OutOfRangeInput", &message);
    // A message that quotes the request is bounded, and a key of full length still fits.
    let longest = format!("\u{1}{}", "日".repeat(511));
    let message = format!("The 'PartitionKey' parameter of value '{longest}' is out of range.");
    let response = server.send(Request::post("/mytable").json(&entity_json(&longest, "r", "")));
    response.expect_message(400, "OutOfRangeInput", &message);
    let far = format!("\u{1}{}", "日".repeat(300_000));
    let response = server.send(Request::post("/mytable").json(&entity_json(&far, "r", ""))).expect(400);
    assert!(response.body.len() < 4096, "{}", response.body.len());
}

#[test]
fn a_front_end_error_is_prefixed_xml_when_json_is_not_asked_for() {
    let server = TestServer::start();
    let message = "Server failed to authenticate the request. Make sure the value of Authorization header is formed \
                   correctly including the signature.";
    for request in [
        Request::get("/Tables").header("Accept", "application/xml"),
        Request::get("/Tables").header("Accept", "application/atom+xml"),
        Request::get("/Tables").without("Accept"),
    ] {
        let request = request.header("Authorization", "SharedKey devstoreaccount1:AAAA");
        let response = server.send(request.header("x-ms-client-request-id", "mine")).expect(403);
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>AuthenticationFailed</m:code><m:message xml:lang=\"en-US\">{message}\nRequestId:GUID\nTime:TIME</m:message></m:error>"
        );
        assert_eq!(mask(response.text()), expected);
        assert_eq!(response.reason, message, "the reason phrase is the text");
        assert_eq!(response.header("Content-Type"), Some("application/xml"));
        check_front_end_headers(&response, "AuthenticationFailed");
    }
}

#[test]
fn a_front_end_error_is_json_when_json_is_asked_for() {
    let server = TestServer::start();
    for accept in
        ["application/json", "application/json;odata=fullmetadata", "application/json; odata=nometadata"]
    {
        let request =
            Request::get("/Tables").header("Accept", accept).header("x-ms-client-request-id", "mine");
        let response =
            server.send(request.header("Authorization", "SharedKey devstoreaccount1:AAAA")).expect(403);
        let expected = r#"{"odata.error":{"code":"AuthenticationFailed","message":{"lang":"en-US","value":"Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.\nRequestId:GUID\nTime:TIME"}}}"#;
        assert_eq!(mask(response.text()), expected);
        assert!(response.reason.starts_with("Server failed to authenticate"), "{}", response.reason);
        assert_eq!(response.header("Content-Type"), Some("application/json"));
        check_front_end_headers(&response, "AuthenticationFailed");
        let lines = lines(&response);
        assert_eq!(lines[1], format!("RequestId:{}", response.required("x-ms-request-id")));
        assert!(is_seven_digit_time(lines[2].strip_prefix("Time:").unwrap()), "{}", lines[2]);
    }
}

#[track_caller]
fn check_front_end_headers(response: &Response, code: &str) {
    assert_eq!(response.header("x-ms-error-code"), Some(code));
    assert_eq!(response.header("Server"), Some("Microsoft-HTTPAPI/2.0"));
    assert_eq!(response.required("Content-Length"), response.body.len().to_string());
    for absent in ["Cache-Control", "X-Content-Type-Options", "x-ms-version", "x-ms-client-request-id"] {
        assert_eq!(response.header(absent), None, "{absent} on an authentication failure");
    }
}

#[test]
fn failures_before_execution_lack_cache_control() {
    let server = TestServer::with_table("mytable");
    for request in [
        Request::get("/absent()"),
        Request::get("/mytable()").query("$filter", "a b c"),
        Request::get("/mytable(PartitionKey='a')"),
        Request::get("/mytable(PartitionKey='a%2Fb',RowKey='r')"),
        Request::post("/mytable").json(&entity_json("a/b", "r", "")),
    ] {
        let target = request.target.clone();
        assert_eq!(server.send(request).header("Cache-Control"), None, "{target}");
    }
    for request in [
        Request::get("/Tables('absent')"),
        Request::get(&entity_path("mytable", "p", "absent")),
        Request::delete(&entity_path("mytable", "p", "absent")).header("If-Match", "*"),
    ] {
        let target = request.target.clone();
        assert_eq!(server.send(request).header("Cache-Control"), Some("no-cache"), "{target}");
    }
}

#[test]
fn an_atom_refusal_is_plain_xml() {
    let server = TestServer::start();
    let response = server.send(Request::get("/Tables").header("Accept", "application/atom+xml")).expect(415);
    let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?><error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><code>AtomFormatNotSupported</code><message xml:lang=\"en-US\">Atom format is not supported.\nRequestId:GUID\nTime:TIME</message></error>";
    assert_eq!(mask(response.text()), expected);
    let content_type = response.required("Content-Type").replace(' ', "");
    assert_eq!(content_type, "application/xml;charset=utf-8");
}

#[test]
fn a_malformed_version_is_a_front_end_error() {
    let server = TestServer::start();
    let message = "The value for one of the HTTP headers is not in the correct format.";
    for version in ["x", "2019-02", "2019-2-2", "20190202", "2019-02-02x", "2019/02/02", ""] {
        let response = server.send(Request::get("/Tables").header("x-ms-version", version));
        let response = response.expect_message(400, "InvalidHeaderValue", message);
        assert_eq!(response.header("x-ms-error-code"), Some("InvalidHeaderValue"), "{version}");
    }
}

#[test]
fn the_server_goes_on_after_every_error() {
    let server = TestServer::with_table("mytable");
    for request in [
        Request::get("/nowhere/at/all"),
        Request::get("/$metadata"),
        Request::get("/"),
        Request::get(""),
        Request::post("/$batch").json("{}"),
        Request::new("OPTIONS", "/mytable"),
        Request::get("/Tables('')"),
        Request::get("/Tables('a')('b')"),
        Request::get("/()"),
        Request::get("/mytable)("),
        Request::get("/mytable?comp=acl"),
        Request::get("/?restype=service&comp=properties"),
        Request::get("/?restype=service&comp=stats"),
        Request::get("/?comp=list"),
        Request::get("/%00"),
    ] {
        let target = request.target.clone();
        let response = server.send(request);
        assert!(response.status != 500, "{target}\n{response:?}");
        server.send(Request::get("/Tables")).expect(200);
    }
}
