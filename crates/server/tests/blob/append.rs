//! Append blobs (§18).

use testkit::{Request, Response, TestServer};

use crate::with_container;

fn create(server: &TestServer) -> Response {
    server.blob().send(Request::put("/abc/log").header("x-ms-blob-type", "AppendBlob"))
}

fn append(server: &TestServer, content: &str, headers: &[(&str, &str)]) -> Response {
    let request = Request::put("/abc/log?comp=appendblock").bytes(content);
    server.blob().send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
}

#[test]
fn blocks_are_appended() {
    let server = with_container();
    let created = create(&server).expect(201);
    assert_eq!((created.header("Content-MD5"), created.header("x-ms-content-crc64")), (None, None));
    assert_eq!(created.required("x-ms-request-server-encrypted"), "true");
    let first = append(&server, "hello ", &[]).expect(201);
    assert_eq!(
        (first.required("x-ms-blob-append-offset"), first.required("x-ms-blob-committed-block-count")),
        ("0", "1")
    );
    let second = append(&server, "world", &[("x-ms-blob-condition-appendpos", "6")]).expect(201);
    assert_eq!(
        (second.required("x-ms-blob-append-offset"), second.required("x-ms-blob-committed-block-count")),
        ("6", "2")
    );
    assert_ne!(first.required("ETag"), second.required("ETag"));
    assert_eq!(server.blob().content("/abc/log"), b"hello world");
    let head = server.blob().head("/abc/log").expect(200);
    assert_eq!(
        (head.required("x-ms-blob-type"), head.required("x-ms-blob-committed-block-count")),
        ("AppendBlob", "2")
    );
    append(&server, "x", &[("x-ms-blob-condition-appendpos", "6")])
        .expect_error(412, "AppendPositionConditionNotMet");
    append(&server, "x", &[("x-ms-blob-condition-maxsize", "11")])
        .expect_error(412, "MaxBlobSizeConditionNotMet");
    append(&server, "", &[]).expect_error(400, "InvalidHeaderValue");
    append(&server, "x", &[("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==")]).expect_error(400, "Md5Mismatch");
    assert_eq!(server.blob().content("/abc/log"), b"hello world");
}

#[test]
fn a_sealed_blob_takes_no_more() {
    let server = with_container();
    let etag = create(&server).expect(201).required("ETag").to_owned();
    let sealed = server.blob().send(Request::put("/abc/log?comp=seal")).expect(200);
    assert_eq!(sealed.required("x-ms-blob-sealed"), "true");
    // Trap 43.
    assert_ne!(sealed.required("ETag"), etag);
    let refused = append(&server, "x", &[]).expect_error(409, "BlobIsSealed");
    assert_eq!(refused.error_message(), "The blob is sealed and its contents cannot be modified.");
    assert_eq!(server.blob().head("/abc/log").expect(200).required("x-ms-blob-sealed"), "true");
    server.blob().send(Request::put("/abc/log?comp=metadata").header("x-ms-meta-a", "1")).expect(200);
}

#[test]
fn what_is_no_append_blob_is_refused() {
    let server = with_container();
    append(&server, "x", &[]).expect_error(404, "BlobNotFound");
    server.blob().put("/abc/log", "x");
    append(&server, "x", &[]).expect_error(409, "InvalidBlobType");
    let full = Request::put("/abc/new").header("x-ms-blob-type", "AppendBlob").bytes("x");
    server.blob().send(full).expect_error(400, "InvalidHeaderValue");
}
