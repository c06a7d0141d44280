//! Put Blob of block blobs (§17.1), reads (§16), MD5 and CRC64 (§12).

use testkit::{Blobs, Request};

use crate::{pattern, with_container, with_stopped_clock};

#[test]
fn a_blob_is_put_and_read() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let put = Blobs::put_request("/abc/myblob", "hello world")
        .header("x-ms-meta-m1", "v1")
        .header("If-None-Match", "*");
    let put = blob.send(put).expect(201);
    for (name, value) in [
        ("Content-Length", "0"),
        ("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww=="),
        ("x-ms-content-crc64", "vo7q9sPVKY0="),
        ("x-ms-request-server-encrypted", "true"),
        ("Last-Modified", "Fri, 26 Jun 2026 23:39:12 GMT"),
    ] {
        assert_eq!(put.required(name), value);
    }
    let read = blob.send(Request::get("/abc/myblob")).expect(200);
    assert_eq!(read.text(), "hello world");
    for (name, value) in [
        ("Accept-Ranges", "bytes"),
        ("Content-Length", "11"),
        ("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww=="),
        ("Content-Type", "application/octet-stream"),
        ("ETag", put.required("ETag")),
        ("Last-Modified", "Fri, 26 Jun 2026 23:39:12 GMT"),
        ("x-ms-creation-time", "Fri, 26 Jun 2026 23:39:12 GMT"),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-lease-state", "available"),
        ("x-ms-lease-status", "unlocked"),
        ("x-ms-server-encrypted", "true"),
        ("x-ms-meta-m1", "v1"),
    ] {
        assert_eq!(read.required(name), value);
    }
    for absent in
        ["x-ms-access-tier", "x-ms-tag-count", "x-ms-lease-duration", "x-ms-copy-id", "Content-Range"]
    {
        assert_eq!(read.header(absent), None, "{absent}");
    }
    let head = blob.head("/abc/myblob").expect(200);
    assert_eq!((head.required("Content-Length"), head.body.len()), ("11", 0));
    assert_eq!(
        (head.required("x-ms-access-tier"), head.required("x-ms-access-tier-inferred")),
        ("Hot", "true")
    );
    let again = Blobs::put_request("/abc/myblob", "x").header("If-None-Match", "*");
    blob.send(again).expect_error(409, "BlobAlreadyExists");
    assert_eq!(blob.content("/abc/myblob"), b"hello world");
}

#[test]
fn a_missing_blob_is_told_in_a_header() {
    let server = with_container();
    let blob = server.blob();
    let missing = blob.head("/abc/nope").expect(404);
    assert_eq!((missing.required("x-ms-error-code"), missing.body.len()), ("BlobNotFound", 0));
    blob.send(Request::get("/abc/nope")).expect_error(404, "BlobNotFound");
    assert_eq!(blob.head("/nope/nope").expect(404).required("x-ms-error-code"), "ContainerNotFound");
    blob.send(Blobs::put_request("/nope/b", "x")).expect_error(404, "ContainerNotFound");
    blob.send(Request::delete("/abc/nope")).expect_error(404, "BlobNotFound");
}

#[test]
fn names_are_as_they_are_sent() {
    let server = with_container();
    let blob = server.blob();
    for (path, same) in [
        ("/abc/a/b//c/../d", "/abc/a%2Fb%2F%2Fc%2F..%2Fd"),
        ("/abc/end/", "/abc/end%2F"),
        ("/abc/dot.", "/abc/dot%2E"),
        ("/abc/%C3%A4%20b", "/abc/%c3%a4%20b"),
        ("/abc/back%5Cslash", "/abc/back%5cslash"),
    ] {
        blob.put(path, path);
        assert_eq!(blob.content(same), path.as_bytes(), "{path}");
    }
    let names = blob.send(Request::get("/abc?restype=container&comp=list")).expect(200).elements("Name");
    assert_eq!(names, ["a/b//c/../d", "back\\slash", "dot.", "end/", "ä b"]);
}

#[test]
fn a_path_of_one_segment_is_in_the_root_container() {
    let server = with_container();
    let blob = server.blob();
    blob.send(Blobs::put_request("/photo.png", "x")).expect_error(404, "ContainerNotFound");
    blob.create("$root");
    blob.put("/photo.png", "root");
    assert_eq!(blob.content("/photo.png"), b"root");
    assert_eq!(blob.content("/$root/photo.png"), b"root");
}

#[test]
fn checksums_are_checked() {
    let server = with_container();
    let blob = server.blob();
    let put = |headers: &[(&str, &str)]| {
        let request = Blobs::put_request("/abc/b", "hello world");
        blob.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
    };
    put(&[("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==")]).expect(201);
    put(&[("x-ms-content-crc64", "vo7q9sPVKY0=")]).expect(201);
    // Trap 42.
    for header in ["Content-MD5", "x-ms-blob-content-md5"] {
        let refused = put(&[(header, "sQqNsWTgdUEFt6mb5y4/5Q==")]).expect_error(400, "Md5Mismatch");
        assert_eq!(refused.element("UserSpecifiedMd5"), "sQqNsWTgdUEFt6mb5y4/5Q==");
        assert_eq!(refused.element("ServerCalculatedMd5"), "XrY7u+Ae7tCTyyK7j1rNww==");
    }
    let refused = put(&[("x-ms-content-crc64", "Cc/2Kr4DuKg=")]).expect_error(400, "Crc64Mismatch");
    assert_eq!(refused.element("ServerCalculatedCrc"), "vo7q9sPVKY0=");
    put(&[("Content-MD5", "x")]).expect_error(400, "InvalidMd5");
    put(&[("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww=="), ("x-ms-content-crc64", "vo7q9sPVKY0=")])
        .expect_error(400, "BothCrc64AndMd5HeaderPresent");
    put(&[("x-ms-structured-body", "XSM/1.0; properties=crc64")]).expect_error(400, "UnsupportedHeader");
    put(&[("x-ms-blob-content-length", "512")]).expect_error(400, "InvalidHeaderValue");
    put(&[("x-ms-access-tier", "P10")]).expect_error(400, "InvalidBlobTier");
}

#[test]
fn overwriting_keeps_the_time_of_creation_and_nothing_else() {
    let (server, clock) = with_stopped_clock();
    let blob = server.blob();
    let first = Blobs::put_request("/abc/b", "one")
        .header("x-ms-meta-a", "1")
        .header("x-ms-blob-content-type", "text/plain")
        .header("x-ms-tags", "k=v");
    let etag = blob.send(first).expect(201).required("ETag").to_owned();
    crate::pass(&clock, 2);
    let put = blob.put("/abc/b", "two!");
    assert_ne!(put.required("ETag"), etag);
    let head = blob.head("/abc/b").expect(200);
    assert_eq!(head.required("x-ms-creation-time"), "Fri, 26 Jun 2026 23:39:12 GMT");
    assert_eq!(head.required("Last-Modified"), "Fri, 26 Jun 2026 23:39:14 GMT");
    assert_eq!((head.header("x-ms-meta-a"), head.header("x-ms-tag-count")), (None, None));
    assert_eq!(head.required("Content-Type"), "application/octet-stream");
    // Trap 41.
    let append = Request::put("/abc/b").header("x-ms-blob-type", "AppendBlob");
    blob.send(append).expect_error(409, "InvalidBlobType");
}

#[test]
fn customer_keys_guard_a_blob() {
    let server = with_container();
    let blob = server.blob();
    let with_key = |request: Request| {
        request
            .header("x-ms-encryption-key", "MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=")
            .header("x-ms-encryption-key-sha256", "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=")
            .header("x-ms-encryption-algorithm", "AES256")
    };
    let put = blob.send(with_key(Blobs::put_request("/abc/b", "secret"))).expect(201);
    assert_eq!(put.required("x-ms-encryption-key-sha256"), "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=");
    blob.send(Request::get("/abc/b")).expect_error(409, "BlobUsesCustomerSpecifiedEncryption");
    assert_eq!(blob.send(with_key(Request::get("/abc/b"))).expect(200).text(), "secret");
    blob.put("/abc/plain", "x");
    blob.send(with_key(Request::get("/abc/plain")))
        .expect_error(409, "BlobDoesNotUseCustomerSpecifiedEncryption");
}

#[test]
fn blobs_of_every_size_come_back() {
    let server = with_container();
    let blob = server.blob();
    for len in [0, 1, 511, 16 * 1024, 16 * 1024 + 1, 256 * 1024 + 1, 5 * 1024 * 1024 + 3] {
        let content = pattern(len);
        blob.put("/abc/b", content.clone());
        let read = blob.send(Request::get("/abc/b")).expect(200);
        assert!(read.body == content, "{len}");
        assert_eq!(read.required("Content-Length"), len.to_string());
    }
}

/// The lease and the conditions come before the body (§3), however short it is.
#[test]
fn a_wrong_checksum_comes_last() {
    let server = with_container();
    let blob = server.blob();
    for bytes in [5, 100_000] {
        blob.send(Request::delete("/abc/b"));
        blob.put("/abc/b", pattern(bytes));
        let wrong = || Blobs::put_request("/abc/b", pattern(bytes)).header("Content-MD5", WRONG_MD5);
        blob.send(wrong()).expect_error(400, "Md5Mismatch");
        blob.send(wrong().header("If-None-Match", "*")).expect_error(409, "BlobAlreadyExists");
        blob.send(wrong().header("If-Match", "\"0x1\"")).expect_error(412, "ConditionNotMet");
        let id = "ca761232-ed42-11ce-bacd-00aa0057b223";
        blob.send(wrong().header("x-ms-lease-id", id)).expect_error(412, "LeaseNotPresentWithBlobOperation");
        // §17.6: the other way round.
        let source = format!("{}/abc/b", blob.base());
        let from_url = Request::put("/abc/b").header("x-ms-blob-type", "BlockBlob");
        let from_url = from_url.header("x-ms-copy-source", &source).header("If-None-Match", "*");
        let checked = from_url.clone().header("x-ms-source-content-md5", WRONG_MD5);
        blob.send(checked).expect_error(400, "Md5Mismatch");
        blob.send(from_url).expect_error(409, "BlobAlreadyExists");
    }
}

const WRONG_MD5: &str = "sQqNsWTgdUEFt6mb5y4/5Q==";

/// Trap 42, also when both headers are there.
#[test]
fn both_checksums_of_a_blob_are_checked() {
    let server = with_container();
    let right = "XrY7u+Ae7tCTyyK7j1rNww==";
    let put = |sent: &str, stored: &str| {
        let request = Blobs::put_request("/abc/b", "hello world").header("Content-MD5", sent);
        server.blob().send(request.header("x-ms-blob-content-md5", stored))
    };
    put(right, right).expect(201);
    for (sent, stored) in [(right, WRONG_MD5), (WRONG_MD5, right)] {
        let refused = put(sent, stored).expect_error(400, "Md5Mismatch");
        let told = (refused.element("UserSpecifiedMd5"), refused.element("ServerCalculatedMd5"));
        assert_eq!(told, (WRONG_MD5.to_owned(), right.to_owned()));
    }
}

/// §4: older versions return the MD5 of what they wrote to everybody.
#[test]
fn older_versions_return_the_md5_always() {
    let server = with_container();
    let blob = server.blob();
    blob.send(Request::put("/abc/log").header("x-ms-blob-type", "AppendBlob")).expect(201);
    let disk = Request::put("/abc/disk").header("x-ms-blob-type", "PageBlob");
    blob.send(disk.header("x-ms-blob-content-length", "512")).expect(201);
    let page = Request::put("/abc/disk?comp=page").header("x-ms-page-write", "update");
    let list = "<BlockList><Latest>MQ==</Latest></BlockList>";
    for request in [
        Request::put("/abc/b?comp=block&blockid=MQ%3D%3D").bytes("x"),
        Request::put("/abc/b?comp=blocklist").xml(list),
        Request::put("/abc/log?comp=appendblock").bytes("x"),
        page.header("x-ms-range", "bytes=0-511").bytes([1; 512]),
    ] {
        for (version, has_md5) in [("2018-11-09", true), ("2019-02-02", false)] {
            let written = blob.send(request.clone().version(version)).expect(201);
            assert_eq!(written.header("Content-MD5").is_some(), has_md5, "{version} {request:?}");
        }
    }
}
