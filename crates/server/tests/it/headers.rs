//! Response headers (§11) and the service version that a request names (§2.1).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use engine::env::FakeClock;
use testkit::{Request, TestServer, entity_json, entity_path, mask};

#[test]
fn every_answer_has_id_version_date_and_server() {
    let server = TestServer::with_table("mytable");
    let path = entity_path("mytable", "p", "r");
    for (request, status) in [
        (Request::post("/Tables").json(r#"{"TableName":"abc"}"#), 201),
        (Request::post("/mytable").json(&entity_json("p", "r", "")), 201),
        (Request::get(&path), 200),
        (Request::get("/mytable()"), 200),
        (Request::put(&path).json("{}"), 204),
        (Request::delete(&path).header("If-Match", "*"), 204),
        (Request::get(&path), 404),
        (Request::post("/mytable").json("{"), 400),
    ] {
        let response = server.send(request).expect(status);
        assert_eq!(mask(response.required("x-ms-request-id")), "GUID");
        assert_eq!(response.required("x-ms-version"), "2019-02-02");
        assert_eq!(mask(response.required("Date")), "DATE");
        assert!(response.required("Server").starts_with("Windows-Azure-Table/1.0"), "{response:?}");
        assert_eq!(response.header("X-Content-Type-Options"), Some("nosniff"));
        let names: Vec<_> = response.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        let distinct: HashSet<_> = names.iter().collect();
        assert_eq!(names.len(), distinct.len(), "a header is sent once:\n{response:?}");
    }
}

#[test]
fn the_date_follows_the_clock_in_both_directions() {
    let clock = Arc::new(FakeClock::default());
    let server = TestServer::options().clock(clock.clone()).start();
    let date = || server.send(Request::get("/Tables").unsigned()).required("Date").to_owned();
    assert_eq!(date(), "Wed, 01 Jan 2025 00:00:00 GMT");
    clock.advance(Duration::from_millis(999));
    assert_eq!(date(), "Wed, 01 Jan 2025 00:00:00 GMT");
    clock.advance(Duration::from_millis(1));
    assert_eq!(date(), "Wed, 01 Jan 2025 00:00:01 GMT");
    clock.step_back(Duration::from_secs(3601));
    assert_eq!(date(), "Tue, 31 Dec 2024 23:00:00 GMT");
    // HTTP has no earlier date than this one.
    clock.step_back(Duration::from_secs(60 * 366 * 86400));
    assert_eq!(date(), "Thu, 01 Jan 1970 00:00:00 GMT");
}

#[test]
fn successful_odata_answers_are_not_cached() {
    let server = TestServer::with_table("mytable");
    let inserted = server.insert("mytable", "p", "r", "");
    assert_eq!(inserted.header("Cache-Control"), Some("no-cache"));
    for target in ["/Tables", "/Tables('mytable')", "/mytable()", "/mytable(PartitionKey='p',RowKey='r')"] {
        assert_eq!(server.send(Request::get(target)).expect(200).header("Cache-Control"), Some("no-cache"));
    }
}

#[test]
fn answers_without_a_body_say_so() {
    let server = TestServer::with_table("mytable");
    let path = entity_path("mytable", "p", "r");
    for request in [
        Request::put(&path).json("{}"),
        Request::merge(&path).json("{}"),
        Request::delete(&path).header("If-Match", "*"),
        Request::delete("/Tables('mytable')"),
    ] {
        let response = server.send(request).expect(204);
        assert_eq!(response.header("Content-Length"), Some("0"));
        assert_eq!(response.header("Content-Type"), None);
        assert_eq!(response.header("Transfer-Encoding"), None);
    }
}

#[test]
fn request_ids_are_unique() {
    let server = TestServer::start();
    let mut seen = HashSet::new();
    for _ in 0..200 {
        let response = server.send(Request::get("/Tables")).expect(200);
        assert!(seen.insert(response.required("x-ms-request-id").to_owned()), "an id came twice");
    }
}

#[test]
fn a_client_request_id_comes_back() {
    let server = TestServer::start();
    let longest = "x".repeat(1024);
    for id in ["mine", "e5ac202f-1a75-11ec-86a1-5cf37093a909", "!\"#$%&'()~", longest.as_str()] {
        for version in ["2013-08-15", "2019-02-02", "2020-12-06"] {
            let request = Request::get("/Tables").header("x-ms-client-request-id", id);
            let response = server.send(request.header("x-ms-version", version)).expect(200);
            assert_eq!(response.header("x-ms-client-request-id"), Some(id));
        }
    }
    let request = Request::get("/Tables('absent')").header("x-ms-client-request-id", "mine");
    assert_eq!(server.send(request).expect(404).header("x-ms-client-request-id"), Some("mine"));
    let request = Request::get("/Tables").header("x-ms-return-client-request-id", "true");
    assert_eq!(server.send(request).expect(200).header("x-ms-client-request-id"), None);
}

#[test]
fn a_client_request_id_that_is_too_long_or_not_visible_ascii_is_dropped() {
    let server = TestServer::start();
    let too_long = "x".repeat(1025);
    for id in [too_long.as_str(), "a b", "ü", "a\tb"] {
        let response = server.send(Request::get("/Tables").header("x-ms-client-request-id", id)).expect(200);
        assert_eq!(response.header("x-ms-client-request-id"), None, "{id}");
    }
}

#[test]
fn the_version_used_is_the_one_asked_for() {
    let server = TestServer::start();
    for version in
        ["2013-08-15", "2015-12-11", "2017-11-09", "2019-02-02", "2019-07-07", "2020-12-06", "2026-06-06"]
    {
        let response = server.send(Request::get("/Tables").header("x-ms-version", version)).expect(200);
        assert_eq!(response.header("x-ms-version"), Some(version));
    }
    for future in ["2027-01-01", "2099-12-31"] {
        let response = server.send(Request::get("/Tables").header("x-ms-version", future)).expect(200);
        assert_eq!(response.header("x-ms-version"), Some(future), "newer versions are taken leniently");
    }
}

#[test]
fn a_version_that_is_no_date_is_refused() {
    let server = TestServer::start();
    for version in
        ["2019-13-01", "2019-00-01", "2019-02-32", "2019-2-2", "20190202", "latest", "2019-02-02x", ""]
    {
        let response = server.send(Request::get("/Tables").header("x-ms-version", version));
        response.expect_error(400, "InvalidHeaderValue");
    }
}

#[test]
fn a_missing_version_is_2019_02_02() {
    let server = TestServer::start();
    let response = server.send(Request::get("/Tables").without("x-ms-version")).expect(200);
    assert_eq!(response.header("x-ms-version"), Some("2019-02-02"));
}

#[test]
fn etags_are_on_single_entities_only() {
    let server = TestServer::with_table("mytable");
    let path = entity_path("mytable", "p", "r");
    for (request, has_etag) in [
        (Request::post("/mytable").json(&entity_json("p", "r", "")), true),
        (Request::get(&path), true),
        (Request::put(&path).json("{}"), true),
        (Request::merge(&path).json("{}"), true),
        (Request::get("/mytable()"), false),
        (Request::get("/Tables"), false),
        (Request::get("/Tables('mytable')"), false),
        (Request::delete(&path).header("If-Match", "*"), false),
    ] {
        let what = format!("{} {}", request.method, request.target);
        let response = server.send(request);
        assert!(response.status < 300, "{what}\n{response:?}");
        assert_eq!(response.header("ETag").is_some(), has_etag, "{what}");
    }
}
