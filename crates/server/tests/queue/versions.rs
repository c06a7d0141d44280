//! Versions of the protocol (§2.4): how a request names one, and what has not always been there.

use testkit::{Request, message_xml, messages};

use crate::{pass, with_queue, with_stopped_clock};

fn list() -> Request {
    Request::get("/?comp=list")
}

fn put() -> Request {
    Request::post("/abc/messages").xml(&message_xml("a"))
}

const KNOWN: [&str; 49] = [
    "2009-09-19",
    "2011-08-18",
    "2012-02-12",
    "2013-08-15",
    "2014-02-14",
    "2015-02-21",
    "2015-04-05",
    "2015-07-08",
    "2015-12-11",
    "2016-05-31",
    "2017-04-17",
    "2017-07-29",
    "2017-11-09",
    "2018-03-28",
    "2018-11-09",
    "2019-02-02",
    "2019-07-07",
    "2019-10-10",
    "2019-12-12",
    "2020-02-10",
    "2020-04-08",
    "2020-06-12",
    "2020-08-04",
    "2020-10-02",
    "2020-12-06",
    "2021-02-12",
    "2021-04-10",
    "2021-06-08",
    "2021-08-06",
    "2021-10-04",
    "2021-12-02",
    "2022-11-02",
    "2023-01-03",
    "2023-05-03",
    "2023-08-03",
    "2023-11-03",
    "2024-02-04",
    "2024-05-04",
    "2024-08-04",
    "2024-11-04",
    "2025-01-05",
    "2025-05-05",
    "2025-07-05",
    "2025-11-05",
    "2026-02-06",
    "2026-04-06",
    "2026-06-06",
    "2026-10-06",
    "2030-01-01",
];

#[test]
fn every_known_version_is_served_and_echoed() {
    let server = with_queue();
    for version in KNOWN {
        let answer = server.queue().send(list().version(version)).expect(200);
        assert_eq!(answer.required("x-ms-version"), version);
    }
}

#[test]
fn the_oldest_versions_are_served_and_not_echoed() {
    let server = with_queue();
    for version in ["2009-04-14", "2009-07-17"] {
        let answer = server.queue().send(list().version(version)).expect(200);
        assert_eq!(answer.header("x-ms-version"), None, "{version}");
    }
}

#[test]
fn what_is_no_version_is_named() {
    let server = with_queue();
    for bad in ["new", "2025-13-01", "2025-11-5", "20251105", "2025-11-05T00:00", "2025-11-32", "0"] {
        let refused = server.queue().send(list().version(bad)).expect_error(400, "InvalidHeaderValue");
        assert_eq!(
            refused.error_message(),
            "The value for one of the HTTP headers is not in the correct format."
        );
        assert_eq!(
            (refused.element("HeaderName"), refused.element("HeaderValue")),
            ("x-ms-version".into(), bad.into())
        );
    }
}

/// §2.4: the version is checked before the caller.
#[test]
fn a_wrong_version_is_told_to_anybody() {
    let server = with_queue();
    server.queue().send(list().version("new").unsigned()).expect_error(400, "InvalidHeaderValue");
}

#[test]
fn without_a_version_the_newest_is_served() {
    let server = with_queue();
    let answer = server.queue().send(list().without("x-ms-version")).expect(200);
    assert!(answer.required("x-ms-version") >= "2025-11-05");
    assert!(answer.text().contains("ServiceEndpoint"));
}

#[test]
fn errors_have_their_code_in_a_header_since_2017_07_29() {
    let server = with_queue();
    let at = |version: &str| server.queue().send(Request::delete("/missing").version(version)).expect(404);
    assert_eq!(at("2017-07-29").header("x-ms-error-code"), Some("QueueNotFound"));
    let old = at("2017-04-17");
    assert_eq!((old.header("x-ms-error-code"), &*old.error_code()), (None, "QueueNotFound"));
}

#[test]
fn put_message_has_an_answer_since_2016_05_31() {
    let server = with_queue();
    let new = server.queue().send(put().version("2016-05-31")).expect(201);
    assert_eq!(messages(&new).len(), 1);
    let old = server.queue().send(put().version("2015-12-11")).expect(201);
    assert_eq!((old.body.len(), old.required("Content-Length"), old.header("Content-Type")), (0, "0", None));
    assert_eq!(server.queue().count("abc"), 2);
}

#[test]
fn messages_show_their_dequeue_count_since_2009_09_19() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "a");
    let peek =
        |version: &str| queue.send(Request::get("/abc/messages?peekonly=true").version(version)).expect(200);
    assert_eq!(peek("2009-09-19").elements("DequeueCount"), ["0"]);
    assert!(peek("2009-07-17").elements("DequeueCount").is_empty());
}

#[test]
fn messages_live_for_any_time_since_2017_07_29() {
    let server = with_queue();
    let at = |version: &str, query: &str| {
        let request = Request::post(&format!("/abc/messages?messagettl={query}")).xml(&message_xml("a"));
        server.queue().send(request.version(version))
    };
    at("2017-07-29", "-1").expect(201);
    at("2017-07-29", "604801").expect(201);
    at("2017-04-17", "604800").expect(201);
    for bad in ["604801", "-1", "0"] {
        let refused = at("2017-04-17", bad).expect(400);
        assert_eq!(refused.element("QueryParameterName"), "messagettl");
    }
}

#[test]
fn messages_have_64_kib_since_2011_08_18() {
    let server = with_queue();
    let at = |version: &str, size: usize| {
        server
            .queue()
            .send(Request::post("/abc/messages").xml(&message_xml(&"x".repeat(size))).version(version))
    };
    at("2011-08-18", 65_536).expect(201);
    at("2009-09-19", 8_192).expect(201);
    at("2009-09-19", 8_193).expect_error(413, "RequestBodyTooLarge");
}

#[test]
fn messages_are_hidden_for_seven_days_since_2011_08_18() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    let get = |version: &str, seconds: &str| {
        queue.send(Request::get(&format!("/abc/messages?visibilitytimeout={seconds}")).version(version))
    };
    get("2011-08-18", "604800").expect(200);
    get("2009-09-19", "7200").expect(200);
    let refused = get("2009-09-19", "7201").expect_error(400, "OutOfRangeQueryParameterValue");
    assert_eq!(refused.element("MaximumAllowed"), "7200");
    // Messages could not be put hidden.
    let put = Request::post("/abc/messages?visibilitytimeout=100").xml(&message_xml("a"));
    queue.send(put.version("2009-09-19")).expect(201);
    pass(&clock, 0);
    assert_eq!(queue.texts("abc"), ["a"]);
}
