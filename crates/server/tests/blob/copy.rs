//! Copies (§20) and operations from a URL (§17.3, §17.6, §18.3, §19.4).

use testkit::{Blobs, Request, Sas};

use crate::{pattern, with_container};

fn copy(path: &str, source: &str) -> Request {
    Request::put(path).header("x-ms-copy-source", source)
}

#[test]
fn a_copy_within_the_account_is_done_at_once() {
    let server = with_container();
    let blob = server.blob();
    let put = Blobs::put_request("/abc/orig", "hello").header("x-ms-meta-a", "1");
    blob.send(put.header("x-ms-blob-content-type", "text/plain").header("x-ms-tags", "k=v")).expect(201);
    let source = format!("{}/abc/orig", blob.base());
    let copied = blob.send(copy("/abc/copy", &source)).expect(202);
    assert_eq!(copied.required("x-ms-copy-status"), "success");
    let head = blob.head("/abc/copy").expect(200);
    for (name, value) in [
        ("x-ms-copy-id", copied.required("x-ms-copy-id")),
        ("x-ms-copy-source", &*source),
        ("x-ms-copy-status", "success"),
        ("x-ms-copy-progress", "5/5"),
        ("x-ms-meta-a", "1"),
        ("Content-Type", "text/plain"),
    ] {
        assert_eq!(head.required(name), value);
    }
    // Tags are not copied.
    assert_eq!(head.header("x-ms-tag-count"), None);
    assert_eq!(blob.content("/abc/copy"), b"hello");
    blob.send(copy("/abc/copy", &source).header("x-ms-meta-b", "2")).expect(202);
    let head = blob.head("/abc/copy").expect(200);
    assert_eq!((head.header("x-ms-meta-a"), head.required("x-ms-meta-b")), (None, "2"));
    for missing in ["abc/nope", "nope/orig"] {
        let source = format!("{}/{missing}", blob.base());
        blob.send(copy("/abc/x", &source)).expect_error(404, "BlobNotFound");
    }
    blob.send(copy("/nope/x", &source)).expect_error(404, "ContainerNotFound");
    blob.send(copy("/abc/x", "not a url")).expect_error(400, "InvalidHeaderValue");
    let abort = "/abc/copy?comp=copy&copyid=7d2d8a7a-e7f2-4940-b309-4a39a2ae2203";
    blob.send(Request::put(abort).header("x-ms-copy-action", "abort"))
        .expect_error(409, "NoPendingCopyOperation");
}

#[test]
fn a_source_has_conditions() {
    let server = with_container();
    let blob = server.blob();
    let etag = blob.put("/abc/orig", "hello").required("ETag").to_owned();
    let source = format!("{}/abc/orig", blob.base());
    let conditional = |name: &str, value: &str| copy("/abc/copy", &source).header(name, value);
    blob.send(conditional("x-ms-source-if-match", "\"0x1\"")).expect_error(412, "SourceConditionNotMet");
    blob.send(conditional("x-ms-source-if-none-match", &etag)).expect_error(412, "SourceConditionNotMet");
    // Copy Blob From URL is a copy too.
    for (name, value) in [
        ("x-ms-source-if-match", "\"0x1\""),
        ("x-ms-source-if-none-match", &*etag),
        ("x-ms-source-if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT"),
    ] {
        let synchronous = conditional(name, value).header("x-ms-requires-sync", "true");
        blob.send(synchronous).expect_error(412, "SourceConditionNotMet");
    }
    blob.send(conditional("x-ms-source-if-match", &etag).header("x-ms-requires-sync", "true")).expect(202);
    let from_url = conditional("x-ms-source-if-none-match", &etag).header("x-ms-blob-type", "BlockBlob");
    // Trap 57.
    let refused = blob.send(from_url).expect(304);
    assert_eq!((refused.required("x-ms-error-code"), refused.body.len()), ("CannotVerifyCopySource", 0));
    blob.send(conditional("x-ms-source-if-match", &etag)).expect(202);
}

#[test]
fn a_blob_is_put_from_a_url() {
    let server = with_container();
    let blob = server.blob();
    let put = Blobs::put_request("/abc/orig", "hello world").header("x-ms-blob-content-type", "text/plain");
    blob.send(put.header("x-ms-meta-a", "1")).expect(201);
    let source = format!("{}/abc/orig", blob.base());
    let put = || copy("/abc/copy", &source).header("x-ms-blob-type", "BlockBlob");
    let done = blob.send(put()).expect(201);
    // Trap 55.
    assert_eq!((done.required("x-ms-content-crc64"), done.header("Content-MD5")), ("vo7q9sPVKY0=", None));
    let done = blob.send(put().header("x-ms-source-content-md5", "XrY7u+Ae7tCTyyK7j1rNww==")).expect(201);
    assert_eq!(
        (done.header("x-ms-content-crc64"), done.required("Content-MD5")),
        (None, "XrY7u+Ae7tCTyyK7j1rNww==")
    );
    let head = blob.head("/abc/copy").expect(200);
    assert_eq!((head.required("Content-Type"), head.header("x-ms-meta-a")), ("text/plain", None));
    assert_eq!(head.required("Content-MD5"), "XrY7u+Ae7tCTyyK7j1rNww==");
    blob.send(put().header("x-ms-source-content-md5", "sQqNsWTgdUEFt6mb5y4/5Q=="))
        .expect_error(400, "Md5Mismatch");
    blob.send(put().header("If-None-Match", "*")).expect_error(409, "BlobAlreadyExists");
    // Trap 45.
    let missing = copy("/abc/x", &format!("{source}x")).header("x-ms-blob-type", "BlockBlob");
    let refused = blob.send(missing).expect_error(404, "CannotVerifyCopySource");
    assert_eq!(refused.required("x-ms-copy-source-status-code"), "404");
    assert_eq!(refused.required("x-ms-copy-source-error-code"), "BlobNotFound");
    assert_eq!(refused.element("CopySourceErrorCode"), "BlobNotFound");
}

#[test]
fn parts_are_written_from_a_url() {
    let server = with_container();
    let blob = server.blob();
    let content = pattern(2048);
    blob.put("/abc/orig", content.clone());
    let source = format!("{}/abc/orig", blob.base());
    let block = copy("/abc/b?comp=block&blockid=MQ%3D%3D", &source).header("x-ms-source-range", "bytes=1-4");
    blob.send(block).expect(201).required("x-ms-content-crc64");
    let list = "<BlockList><Latest>MQ==</Latest></BlockList>";
    blob.send(Request::put("/abc/b?comp=blocklist").xml(list)).expect(201);
    assert_eq!(blob.content("/abc/b"), &content[1..5]);

    blob.send(Request::put("/abc/log").header("x-ms-blob-type", "AppendBlob")).expect(201);
    let append = copy("/abc/log?comp=appendblock", &source).header("x-ms-source-range", "bytes=0-511");
    assert_eq!(blob.send(append).expect(201).required("x-ms-blob-committed-block-count"), "1");
    assert_eq!(blob.content("/abc/log"), &content[..512]);

    let disk = Request::put("/abc/disk").header("x-ms-blob-type", "PageBlob");
    blob.send(disk.header("x-ms-blob-content-length", "1024")).expect(201);
    let pages = copy("/abc/disk?comp=page", &source).header("x-ms-page-write", "update");
    let pages = pages.header("x-ms-range", "bytes=512-1023").header("x-ms-source-range", "bytes=0-511");
    blob.send(pages).expect(201);
    assert_eq!(blob.content("/abc/disk")[512..], content[..512]);
}

#[test]
fn a_source_is_read_only_by_those_who_may() {
    let server = with_container();
    let blob = server.blob();
    blob.create("private");
    blob.put("/private/orig", "secret");
    let source = format!("{}/private/orig", blob.base());
    // A signature for one container does not open another one.
    let writer = Sas::container("2025-11-05", "abc").sign(blob.credentials());
    let with_sas =
        |source: &str| copy("/abc/copy", source).header("x-ms-blob-type", "BlockBlob").sas(&writer);
    blob.send(with_sas(&source)).expect_error(401, "CannotVerifyCopySource");
    let reader = Sas::blob("2025-11-05", "private", "orig").set("sp", "r").sign(blob.credentials());
    blob.send(with_sas(&format!("{source}?{reader}"))).expect(201);
    assert_eq!(blob.content("/abc/copy"), b"secret");
    let useless = Sas::blob("2025-11-05", "private", "orig").set("sp", "d").sign(blob.credentials());
    let refused =
        blob.send(with_sas(&format!("{source}?{useless}"))).expect_error(403, "CannotVerifyCopySource");
    assert_eq!(refused.required("x-ms-copy-source-error-code"), "AuthorizationPermissionMismatch");
    // What everybody may read needs no signature.
    let public =
        Request::put("/private?restype=container&comp=acl").header("x-ms-blob-public-access", "blob");
    blob.send(public).expect(200);
    blob.send(with_sas(&source)).expect(201);
    // Trap 27: the host of the source does not matter.
    blob.send(with_sas("http://any.alias.example:1234/devstoreaccount1/private/orig")).expect(201);
    blob.send(with_sas("http://127.0.0.1:1/stranger/c/b")).expect_error(404, "CannotVerifyCopySource");
}
