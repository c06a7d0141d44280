//! Header values that are not ASCII (§5, §6, §16.1): they are signed, and kept as the text that was sent.

use testkit::{Blobs, Request, Response, TestServer};

use crate::with_container;

const DISPOSITION: &str = "attachment; filename=\"\u{e4}.pdf\"";

/// Sends a request as a client does that writes headers in Latin-1. What it signs is UTF-8 all the same.
fn send_latin(server: &TestServer, request: &Request) -> Response {
    let blob = server.blob();
    let mut bytes = Vec::new();
    let sent = blob.bytes_of(request);
    let mut rest = &sent[..];
    while let Some(at) = rest.windows(2).position(|pair| pair == "\u{e4}".as_bytes()) {
        bytes.extend_from_slice(&rest[..at]);
        bytes.push(0xe4);
        rest = &rest[at + 2..];
    }
    assert!(!bytes.is_empty(), "nothing to write in Latin-1");
    bytes.extend_from_slice(rest);
    blob.connect().exchange(&bytes).unwrap().of_blob()
}

#[test]
fn a_property_is_kept_in_either_encoding() {
    let server = with_container();
    let blob = server.blob();
    let put = |name: &str| {
        let request = Blobs::put_request(&format!("/abc/{name}"), "x");
        request.header("x-ms-blob-content-disposition", DISPOSITION).header("Content-Language", "\u{e4}")
    };
    blob.send(put("utf")).expect(201);
    send_latin(&server, &put("latin")).expect(201);
    for name in ["utf", "latin"] {
        let head = blob.head(&format!("/abc/{name}")).expect(200);
        assert_eq!(head.required("Content-Disposition"), DISPOSITION, "{name}");
        assert_eq!(head.required("Content-Language"), "\u{e4}", "{name}");
    }
    let listed = blob.send(Request::get("/abc?restype=container&comp=list")).expect(200);
    assert_eq!(listed.elements("Content-Language"), ["\u{e4}", "\u{e4}"]);
}

#[test]
fn what_is_signed_is_what_was_sent() {
    let server = with_container();
    let blob = server.blob();
    let request = Blobs::put_request("/abc/b", "x").header("x-ms-blob-content-disposition", DISPOSITION);
    let mut bytes = blob.bytes_of(&request);
    let at = bytes.windows(2).position(|pair| pair == "\u{e4}".as_bytes()).unwrap();
    bytes[at + 1] += 1;
    blob.connect().exchange(&bytes).unwrap().of_blob().expect_error(403, "AuthenticationFailed");
}

#[test]
fn metadata_are_ascii() {
    let server = with_container();
    let request = Blobs::put_request("/abc/b", "x").header("x-ms-meta-a", "\u{e4}");
    server.blob().send(request.clone()).expect_error(400, "InvalidMetadata");
    send_latin(&server, &request).expect_error(400, "InvalidMetadata");
}
