//! Optimistic concurrency: the whole matrix of §6.1, and the syntax of etags (§6.3).

use testkit::{Request, Response, TestServer, entity_path};

const WRONG: &str = "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"";
const MALFORMED: [&str; 8] = [
    "",
    "abc",
    "\"abc\"",
    "\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"",
    "datetime'2020-08-20T22%3A20%3A23.751381Z'",
    "W/datetime'2020-08-20T22%3A20%3A23.751381Z'",
    "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\", W/\"datetime'2021-08-20T22%3A20%3A23.751381Z'\"",
    "**",
];

/// Weak tags of a form that the service never writes (§0.4, ruling 6).
const FOREIGN: [&str; 3] = ["W/\"wrong\"", "W/\"0x5B168C7B6E589D2\"", "W/\"datetime'soon'\""];

/// Whether the entity exists when the request arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entity {
    Present,
    Absent,
}
use Entity::{Absent, Present};

/// Which etag the request carries.
#[derive(Clone, Copy, Debug)]
enum Etag {
    None,
    Any,
    Right,
    Wrong,
}

fn path() -> String {
    entity_path("mytable", "p", "r")
}

fn with_entity() -> (TestServer, String) {
    let server = TestServer::with_table("mytable");
    let etag = server.insert("mytable", "p", "r", r#""x":1"#).required("ETag").to_owned();
    (server, etag)
}

fn request(method: &str) -> Request {
    match method {
        "GET" | "DELETE" => Request::new(method, &path()),
        _ => Request::new(method, &path()).json(r#"{"x":2}"#),
    }
}

/// Brings ('p','r') into this state and sends the request with this etag.
fn answer(server: &TestServer, method: &str, header: &str, entity: Entity, etag: Etag) -> Response {
    let present =
        server.send(Request::put(&path()).json(r#"{"x":1}"#)).expect(204).required("ETag").to_owned();
    if entity == Absent {
        server.send(Request::delete(&path()).header("If-Match", "*")).expect(204);
    }
    let request = request(method);
    server.send(match etag {
        Etag::None => request,
        Etag::Any => request.header(header, "*"),
        Etag::Right => request.header(header, &present),
        Etag::Wrong => request.header(header, WRONG),
    })
}

#[test]
fn if_match_decides_by_verb_and_state() {
    let server = TestServer::with_table("mytable");
    let check = |method: &str, entity: Entity, etag: Etag, status: u16, code: &str| {
        let response = answer(&server, method, "If-Match", entity, etag);
        let what = format!("{method} {entity:?} {etag:?}: {response:?}");
        assert_eq!(response.status, status, "{what}");
        if status >= 400 {
            assert_eq!(response.error_code(), code, "{what}");
        }
        if method == "GET" {
            return;
        }
        // A refused write changes nothing; an accepted one stores what it sent.
        let after = server.get("mytable", "p", "r");
        match (status, method, entity) {
            (204, "DELETE", _) => assert_eq!(after.status, 404, "{what}"),
            (204, _, _) => assert_eq!(after.json()["x"], 2, "{what}"),
            (_, _, Present) => assert_eq!(after.json()["x"], 1, "{what}"),
            (_, _, Absent) => assert_eq!(after.status, 404, "{what}"),
        }
    };
    for method in ["PUT", "MERGE", "PATCH"] {
        check(method, Present, Etag::None, 204, "");
        check(method, Absent, Etag::None, 204, "");
        check(method, Present, Etag::Any, 204, "");
        check(method, Absent, Etag::Any, 404, "ResourceNotFound");
        check(method, Present, Etag::Right, 204, "");
        check(method, Present, Etag::Wrong, 412, "UpdateConditionNotSatisfied");
        check(method, Absent, Etag::Wrong, 404, "ResourceNotFound");
        check(method, Absent, Etag::Right, 404, "ResourceNotFound");
    }
    check("DELETE", Present, Etag::None, 400, "InvalidInput");
    check("DELETE", Absent, Etag::None, 400, "InvalidInput");
    check("DELETE", Present, Etag::Any, 204, "");
    check("DELETE", Absent, Etag::Any, 404, "ResourceNotFound");
    check("DELETE", Present, Etag::Right, 204, "");
    check("DELETE", Present, Etag::Wrong, 412, "UpdateConditionNotSatisfied");
    check("DELETE", Absent, Etag::Wrong, 404, "ResourceNotFound");
    check("GET", Present, Etag::None, 200, "");
    check("GET", Present, Etag::Any, 200, "");
    check("GET", Present, Etag::Right, 200, "");
    check("GET", Present, Etag::Wrong, 412, "UpdateConditionNotSatisfied");
    check("GET", Absent, Etag::Any, 404, "ResourceNotFound");
    check("GET", Absent, Etag::Right, 404, "ResourceNotFound");
}

#[test]
fn if_none_match_serves_a_browsers_cache_on_get() {
    let server = TestServer::with_table("mytable");
    answer(&server, "GET", "If-None-Match", Present, Etag::Wrong).expect(200);
    answer(&server, "GET", "If-None-Match", Absent, Etag::Wrong).expect_error(404, "ResourceNotFound");
    for etag in [Etag::Right, Etag::Any] {
        let response = answer(&server, "GET", "If-None-Match", Present, etag).expect(304);
        assert_eq!(response.reason, "Not Modified");
        assert_eq!(response.body, b"");
    }
}

#[test]
fn if_none_match_is_refused_on_writes() {
    let (server, _) = with_entity();
    for method in ["PUT", "DELETE"] {
        let message = format!("If-None-Match HTTP header cannot be specified for {method} operations.");
        for value in ["*", WRONG] {
            let request = request(method).header("If-None-Match", value);
            server.send(request).expect_message(400, "InvalidInput", &message);
        }
    }
    for method in ["MERGE", "PATCH"] {
        server.send(request(method).header("If-None-Match", "*")).expect_error(400, "InvalidInput");
    }
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1);
}

#[test]
fn both_conditions_at_once_are_refused() {
    let (server, etag) = with_entity();
    let message = "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify \
                   either one of the headers or none of them.";
    for method in ["PUT", "MERGE", "PATCH", "DELETE", "GET"] {
        let request = request(method).header("If-Match", &etag).header("If-None-Match", WRONG);
        server.send(request).expect_message(400, "InvalidInput", message);
    }
}

#[test]
fn a_condition_on_insert_never_becomes_a_precondition() {
    let (server, _) = with_entity();
    for header in ["If-Match", "If-None-Match"] {
        let body = testkit::entity_json("p", header, "");
        let response = server.send(Request::post("/mytable").header(header, WRONG).json(&body));
        // §6.1 says 400 and §3.10 allows ignoring the header. Neither allows 412.
        assert!(response.status == 400 || response.status == 201, "{response:?}");
    }
}

#[test]
fn a_malformed_etag_is_refused() {
    let (server, _) = with_entity();
    for etag in MALFORMED {
        for method in ["PUT", "MERGE", "PATCH", "DELETE"] {
            let response = server.send(request(method).header("If-Match", etag));
            assert_eq!(
                (response.status, response.error_code().as_str()),
                (400, "InvalidInput"),
                "{method} {etag}"
            );
            let message = format!(
                "The etag value '{etag}' specified in one of the request headers is not valid. Please make sure only \
                 one etag value is specified and is valid."
            );
            assert_eq!(response.error_message(), message);
        }
    }
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1);
}

#[test]
fn a_weak_etag_of_another_form_matches_nothing() {
    let (server, _) = with_entity();
    for etag in FOREIGN {
        for method in ["PUT", "MERGE", "PATCH", "DELETE", "GET"] {
            let response = server.send(request(method).header("If-Match", etag));
            response.expect_error(412, "UpdateConditionNotSatisfied");
            let gone = Request::new(method, &entity_path("mytable", "p", "gone")).header("If-Match", etag);
            let gone = if matches!(method, "GET" | "DELETE") { gone } else { gone.json("{}") };
            server.send(gone).expect_error(404, "ResourceNotFound");
        }
        server.send(request("GET").header("If-None-Match", etag)).expect(200);
    }
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1);
}

#[test]
fn an_empty_if_match_is_no_upsert() {
    let server = TestServer::with_table("mytable");
    server.send(request("PUT").header("If-Match", "")).expect_error(400, "InvalidInput");
    server.get("mytable", "p", "r").expect(404);
}

#[test]
fn etags_compare_by_the_time_they_name() {
    let (server, etag) = with_entity();
    let inner = etag.strip_prefix("W/\"datetime'").and_then(|rest| rest.strip_suffix("Z'\"")).unwrap();
    let (seconds, fraction) = inner.split_once('.').unwrap_or((inner, ""));
    let plain = format!("W/\"datetime'{}Z'\"", inner.replace("%3A", ":"));
    let lower = format!("W/\"datetime'{}Z'\"", inner.replace("%3A", "%3a"));
    let padded = format!("W/\"datetime'{seconds}.{fraction:0<7}Z'\"");
    for same in [&etag, &plain, &lower, &padded] {
        server.send(request("GET").header("If-Match", same)).expect(200);
    }
    server.send(request("PUT").header("If-Match", &padded)).expect(204);
}

#[test]
fn an_etag_is_used_up_by_the_write_it_allowed() {
    let (server, etag) = with_entity();
    let next = server.send(request("PUT").header("If-Match", &etag)).expect(204).required("ETag").to_owned();
    assert_ne!(next, etag);
    server.send(request("PUT").header("If-Match", &etag)).expect_error(412, "UpdateConditionNotSatisfied");
    server.send(request("DELETE").header("If-Match", &etag)).expect_error(412, "UpdateConditionNotSatisfied");
    server.send(request("DELETE").header("If-Match", &next)).expect(204);
}

#[test]
fn a_failed_condition_has_its_own_code_and_text() {
    let (server, _) = with_entity();
    let message = "The update condition specified in the request was not satisfied.";
    let response = server.send(request("PUT").header("If-Match", WRONG));
    let response = response.expect_message(412, "UpdateConditionNotSatisfied", message);
    assert_eq!(response.reason, "Precondition Failed");
    assert_eq!(response.header("Cache-Control"), Some("no-cache"));
}

#[test]
fn versions_before_upserts_need_if_match() {
    let (server, _) = with_entity();
    for method in ["PUT", "MERGE"] {
        server.send(request(method).header("x-ms-version", "2009-09-19")).expect(400);
    }
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1);
}

#[test]
fn of_many_writers_with_one_etag_exactly_one_wins() {
    let (server, mut etag) = with_entity();
    for _ in 0..10 {
        let answers: Vec<Response> = std::thread::scope(|scope| {
            let (server, etag) = (&server, etag.as_str());
            let writers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(move || {
                        let bytes = server.bytes_of(&request("MERGE").header("If-Match", etag));
                        server.connect().exchange(&bytes).unwrap()
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let winners: Vec<_> = answers.iter().filter(|answer| answer.status == 204).collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(answers.iter().filter(|answer| answer.status == 412).count(), 7);
        etag = winners[0].required("ETag").to_owned();
    }
}

#[test]
fn counting_by_read_and_conditional_write_loses_nothing() {
    let (server, _) = with_entity();
    let rounds = 20;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                let mut done = 0;
                while done < rounds {
                    let read = client.exchange(&server.bytes_of(&request("GET"))).unwrap();
                    let next = read.json()["x"].as_i64().unwrap() + 1;
                    let write = Request::put(&path()).header("If-Match", read.required("ETag"));
                    let write = write.json(&format!("{{\"x\":{next}}}"));
                    match client.exchange(&server.bytes_of(&write)).unwrap().status {
                        204 => done += 1,
                        412 => {}
                        other => panic!("unexpected status {other}"),
                    }
                }
            });
        }
    });
    assert_eq!(server.get("mytable", "p", "r").json()["x"], 1 + 4 * rounds);
}
