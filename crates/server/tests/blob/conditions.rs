//! Conditional headers (§10).

use testkit::{Blobs, Request};

use crate::with_stopped_clock;

const NOW: &str = "Fri, 26 Jun 2026 23:39:12 GMT";
const BEFORE: &str = "Fri, 26 Jun 2026 23:39:11 GMT";

#[test]
fn reads_are_conditional() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let etag = blob.put("/abc/b", "x").required("ETag").to_owned();
    let other = "\"0x8D4BCC2E4835CD0\"";
    for method in ["GET", "HEAD"] {
        let status = |headers: &[(&str, &str)]| {
            let request = Request::new(method, "/abc/b");
            let sent =
                blob.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)));
            if sent.status != 200 {
                let expected = if sent.status == 400 { "UnsatisfiableCondition" } else { "ConditionNotMet" };
                assert_eq!(sent.required("x-ms-error-code"), expected);
            }
            if sent.status == 304 {
                assert!(sent.body.is_empty() && sent.header("Content-Length").is_none_or(|len| len == "0"));
            }
            sent.status
        };
        assert_eq!(status(&[("If-Match", &etag)]), 200);
        assert_eq!(status(&[("If-Match", etag.trim_matches('"'))]), 200);
        assert_eq!(status(&[("If-Match", other)]), 412);
        assert_eq!(status(&[("If-None-Match", &etag)]), 304);
        assert_eq!(status(&[("If-None-Match", other)]), 200);
        assert_eq!(status(&[("If-None-Match", "*")]), 400);
        assert_eq!(status(&[("If-Modified-Since", NOW)]), 304);
        assert_eq!(status(&[("If-Modified-Since", BEFORE)]), 200);
        assert_eq!(status(&[("If-Unmodified-Since", BEFORE)]), 412);
        assert_eq!(status(&[("If-Unmodified-Since", NOW)]), 200);
        assert_eq!(status(&[("If-Unmodified-Since", "")]), 200);
        assert_eq!(status(&[("If-None-Match", &etag), ("If-Modified-Since", BEFORE)]), 200);
    }
    // Existence comes first (trap 46).
    blob.send(Request::get("/abc/nope").header("If-Match", "*")).expect_error(404, "BlobNotFound");
}

#[test]
fn the_connection_survives_a_304() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let etag = blob.put("/abc/b", "x").required("ETag").to_owned();
    let mut client = blob.connect();
    for _ in 0..3 {
        let request = Request::get("/abc/b").header("If-None-Match", &etag);
        assert_eq!(client.exchange(&blob.bytes_of(&request)).unwrap().status, 304);
        assert_eq!(client.exchange(&blob.bytes_of(&Request::get("/abc/b"))).unwrap().body, b"x");
    }
}

#[test]
fn writes_are_conditional() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let etag = blob.put("/abc/b", "x").required("ETag").to_owned();
    let put = |path: &str, headers: &[(&str, &str)]| {
        let request = Blobs::put_request(path, "y");
        blob.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
    };
    put("/abc/b", &[("If-Match", "\"0x1\"")]).expect_error(412, "ConditionNotMet");
    put("/abc/b", &[("If-None-Match", &etag)]).expect_error(412, "ConditionNotMet");
    put("/abc/b", &[("If-Modified-Since", NOW)]).expect_error(412, "ConditionNotMet");
    put("/abc/b", &[("If-Unmodified-Since", BEFORE)]).expect_error(412, "ConditionNotMet");
    put("/abc/b", &[("If-None-Match", "*")]).expect_error(409, "BlobAlreadyExists");
    put("/abc/b", &[("If-Match", &etag), ("If-None-Match", "*")])
        .expect_error(400, "MultipleConditionHeadersNotSupported");
    put("/abc/new", &[("If-Match", "*")]).expect_error(412, "ConditionNotMet");
    put("/abc/new", &[("If-None-Match", &etag)]).expect(201);
    put("/abc/b", &[("If-Match", &etag)]).expect(201);
    put("/abc/b", &[("If-Match", &etag)]).expect_error(412, "ConditionNotMet");
    let delete = Request::delete("/abc/b").header("If-Match", &etag);
    blob.send(delete).expect_error(412, "ConditionNotMet");
    blob.send(Request::delete("/abc/b").header("If-Match", "*")).expect(202);
}

#[test]
fn tags_are_conditions() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    blob.send(Blobs::put_request("/abc/b", "x").header("x-ms-tags", "status=done&prio=05")).expect(201);
    let get = |condition: &str| blob.send(Request::get("/abc/b").header("x-ms-if-tags", condition));
    get("\"status\" = 'done' AND \"prio\" >= '05'").expect(200);
    get("\"status\" = 'open'").expect_error(412, "ConditionNotMet");
    get("status").expect_error(400, "InvalidHeaderValue");
}
