//! What emulators get wrong (§23), one test per trap or group of traps. Those that other modules show are not repeated
//! here.

use testkit::{Blobs, Request, Response, Style, TestServer};

use crate::{pass, with_container, with_stopped_clock};

fn with_blob() -> TestServer {
    let server = with_container();
    server.blob().put("/abc/b", "content");
    server
}

fn lease(path: &str, action: &str) -> Request {
    Request::put(&format!("{path}?comp=lease")).header("x-ms-lease-action", action)
}

const ID: &str = "ca761232-ed42-11ce-bacd-00aa0057b223";

fn leased(server: &TestServer, seconds: &str) {
    let acquire = lease("/abc/b", "acquire").header("x-ms-lease-duration", seconds);
    server.blob().send(acquire.header("x-ms-proposed-lease-id", ID)).expect(201);
}

#[test]
fn traps_1_2_3_and_49_leases_that_are_over() {
    let (server, clock) = with_stopped_clock();
    let blob = server.blob();
    blob.put("/abc/b", "content");
    leased(&server, "15");
    let with = |id: &str| Request::put("/abc/b?comp=metadata").header("x-ms-lease-id", id);
    let other = "11111111-2222-3333-4444-555555555555";
    blob.send(with(other)).expect_error(412, "LeaseIdMismatchWithBlobOperation");
    blob.send(lease("/abc/b", "renew").header("x-ms-lease-id", other))
        .expect_error(409, "LeaseIdMismatchWithLeaseOperation");
    pass(&clock, 16);
    blob.send(with(ID)).expect_error(412, "LeaseLost");
    blob.send(lease("/abc/b", "renew").header("x-ms-lease-id", other))
        .expect_error(409, "LeaseIdMismatchWithLeaseOperation");
    blob.send(lease("/abc/b", "renew").header("x-ms-lease-id", ID)).expect(200);
    pass(&clock, 16);
    blob.send(Request::put("/abc/b?comp=metadata")).expect(200);
    blob.send(lease("/abc/b", "renew").header("x-ms-lease-id", ID))
        .expect_error(409, "LeaseIdMismatchWithLeaseOperation");
}

#[test]
fn traps_4_and_47_wildcards_and_leases() {
    let server = with_blob();
    let blob = server.blob();
    let create = || Blobs::put_request("/abc/b", "new").header("If-None-Match", "*");
    blob.send(create()).expect_error(409, "BlobAlreadyExists");
    leased(&server, "-1");
    blob.send(create()).expect_error(412, "LeaseIdMissing");
    blob.send(create().header("x-ms-lease-id", ID)).expect(201);
    assert_eq!(blob.content("/abc/b"), b"new");
}

#[test]
fn traps_6_7_and_33_ranges() {
    let server = with_blob();
    let blob = server.blob();
    for range in ["bytes=0-", "bytes=0-6", "bytes=0-100"] {
        let part = blob.send(Request::get("/abc/b").header("Range", range)).expect(206);
        assert_eq!(part.required("Content-Range"), "bytes 0-6/7");
    }
    blob.put("/abc/empty", "");
    let refused = blob.send(Request::get("/abc/empty").header("x-ms-range", "bytes=0-3"));
    assert_eq!(refused.expect_error(416, "InvalidRange").required("Content-Range"), "bytes */0");
}

#[test]
fn trap_8_blocks_have_a_checksum_and_no_etag() {
    let server = with_container();
    let put = || Request::put("/abc/b?comp=block&blockid=MQ%3D%3D").bytes("HelloWorld");
    let put_block = server.blob().send(put()).expect(201);
    for absent in ["ETag", "Last-Modified", "Content-MD5"] {
        assert_eq!(put_block.header(absent), None, "{absent}");
    }
    assert_eq!(put_block.required("x-ms-content-crc64"), "8R2aIe9T07E=");
    let checked = server.blob().send(put().header("Content-MD5", "aOEJ8PQMpyoV4FzCJ4b45g==")).expect(201);
    assert_eq!(checked.required("Content-MD5"), "aOEJ8PQMpyoV4FzCJ4b45g==");
}

#[test]
fn traps_9_and_22_the_document_of_a_block_list() {
    let server = with_container();
    let blob = server.blob();
    blob.send(Request::put("/abc/b?comp=block&blockid=MQ%3D%3D").bytes("x")).expect(201);
    let list =
        "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><Latest>MQ==</Latest></BlockList>";
    blob.send(Request::put("/abc/b?comp=blocklist").body("text/plain; charset=UTF-8", list)).expect(201);
    assert_eq!(blob.head("/abc/b").required("Content-Type"), "application/octet-stream");
}

#[test]
fn trap_10_a_level_that_is_not_sent_is_private() {
    let server = with_container();
    let blob = server.blob();
    let acl = || Request::put("/abc?restype=container&comp=acl");
    blob.send(acl().header("x-ms-blob-public-access", "container")).expect(200);
    blob.send(acl()).expect(200);
    assert_eq!(blob.head("/abc?restype=container").header("x-ms-blob-public-access"), None);
}

#[test]
fn trap_11_a_resize_keeps_the_properties() {
    let server = with_container();
    let blob = server.blob();
    let create =
        Request::put("/abc/d").header("x-ms-blob-type", "PageBlob").header("x-ms-blob-content-length", "512");
    blob.send(create.header("x-ms-blob-content-language", "de")).expect(201);
    let set = || Request::put("/abc/d?comp=properties");
    blob.send(set().header("x-ms-blob-content-length", "1024")).expect(200);
    blob.send(set().header("x-ms-sequence-number-action", "increment")).expect(200);
    let head = blob.head("/abc/d").expect(200);
    assert_eq!((head.required("Content-Language"), head.required("Content-Length")), ("de", "1024"));
    blob.send(set().header("x-ms-blob-content-type", "text/css")).expect(200);
    assert_eq!(blob.head("/abc/d").header("Content-Language"), None);
}

#[test]
fn traps_18_19_and_20_headers_that_are_there_or_not() {
    let server = with_blob();
    let blob = server.blob();
    let read = |version: &str| blob.send(Request::get("/abc/b").header("x-ms-version", version)).expect(200);
    let (get, head) = (read("2025-11-05"), blob.head("/abc/b"));
    for answer in [&get, &head] {
        for absent in ["x-ms-lease-duration", "x-ms-copy-id", "x-ms-tag-count"] {
            assert_eq!(answer.header(absent), None, "{absent}");
        }
    }
    assert_eq!((get.header("x-ms-access-tier"), head.required("x-ms-access-tier")), (None, "Hot"));
    assert_eq!(read("2026-10-06").required("x-ms-access-tier"), "Hot");
}

#[test]
fn traps_23_and_24_names_are_kept_as_they_are() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/dir/file", "one");
    assert_eq!(blob.content("/abc/dir%2Ffile"), b"one");
    for name in ["a//b", "a/./b", "a/../b", "..", "c.", "c/", "c%5Cd", "%2E%2E/e"] {
        blob.put(&format!("/abc/{name}"), name);
        assert_eq!(blob.content(&format!("/abc/{name}")), name.as_bytes(), "{name}");
    }
    let listed = blob.send(Request::get("/abc?restype=container&comp=list")).expect(200).elements("Name");
    assert_eq!(listed, ["..", "../e", "a/../b", "a/./b", "a//b", "c.", "c/", "c\\d", "dir/file"]);
}

#[test]
fn traps_28_29_and_57_answers_without_a_body() {
    let server = with_blob();
    let blob = server.blob();
    let etag = blob.head("/abc/b").required("ETag").to_owned();
    let not_modified = blob.send(Request::get("/abc/b").header("If-None-Match", &etag)).expect(304);
    assert_eq!((not_modified.body.len(), not_modified.required("x-ms-error-code")), (0, "ConditionNotMet"));
    assert!(matches!(not_modified.header("Content-Length"), None | Some("0")), "{not_modified:?}");
    let missing = blob.head("/abc/nope").expect(404);
    assert_eq!((missing.body.len(), missing.required("x-ms-error-code")), (0, "BlobNotFound"));
    let put = Request::put("/abc/copy").header("x-ms-blob-type", "BlockBlob");
    let put = put.header("x-ms-copy-source", &format!("{}/abc/b", blob.base()));
    let unmet = blob.send(put.header("x-ms-source-if-none-match", &etag)).expect(304);
    assert_eq!(unmet.body.len(), 0);
    assert!(unmet.header("x-ms-error-code").is_some());
}

#[test]
fn trap_35_nobody_sees_that_a_private_blob_is_there() {
    let server = with_blob();
    let blob = server.blob();
    let ask = |version: Option<&str>| {
        let request = Request::get("/abc/b").unsigned().without("x-ms-date");
        blob.send(match version {
            Some(version) => request.header("x-ms-version", version),
            None => request.without("x-ms-version"),
        })
    };
    ask(Some("2025-11-05")).expect_error(401, "NoAuthenticationInformation");
    ask(Some("2018-03-28")).expect_error(404, "ResourceNotFound");
    ask(None).expect_error(404, "ResourceNotFound");
}

#[test]
fn traps_36_37_39_44_and_53_refusals() {
    let server = with_blob();
    let blob = server.blob();
    let commit = |id: &str| {
        let list = format!("<BlockList><Latest>{id}</Latest></BlockList>");
        blob.send(Request::put("/abc/b?comp=blocklist").xml(&list))
    };
    commit("MQ==").expect_error(400, "InvalidBlockList");
    assert!(matches!(
        &*commit("not base64").expect(400).error_code(),
        "InvalidBlockList" | "InvalidXmlDocument"
    ));
    let list = |most: &str| Request::get(&format!("/abc?restype=container&comp=list&maxresults={most}"));
    blob.send(list("5001")).expect(200);
    blob.send(list("0")).expect_error(400, "OutOfRangeQueryParameterValue");
    let sized = Blobs::put_request("/abc/c", "x").header("x-ms-blob-content-length", "512");
    assert_eq!(blob.send(sized).status, 400);
    let unknown =
        blob.send(Request::get("/abc/b?comp=nonsense")).expect_error(400, "InvalidQueryParameterValue");
    assert_eq!(unknown.element("QueryParameterName"), "comp");
    blob.send(Request::post("/abc/b")).expect_error(405, "UnsupportedHttpVerb");
    let disk = Request::put("/abc/d").header("x-ms-blob-type", "PageBlob");
    blob.send(disk.header("x-ms-blob-content-length", "1024")).expect(201);
    let clear = |range: &str| {
        let request = Request::put("/abc/d?comp=page").header("x-ms-page-write", "clear");
        blob.send(request.header("x-ms-range", range))
    };
    clear("bytes=1-511").expect_error(400, "InvalidHeaderValue");
    clear("bytes=1024-1535").expect_error(416, "InvalidPageRange");
}

#[test]
fn trap_45_a_missing_source_tells_its_status() {
    let server = with_blob();
    let blob = server.blob();
    let source = format!("{}/abc/nope", blob.base());
    let put = |path: &str| Request::put(path).header("x-ms-copy-source", &source);
    let check = |answer: Response| {
        let refused = answer.expect_error(404, "CannotVerifyCopySource");
        assert_eq!(refused.required("x-ms-copy-source-status-code"), "404");
        assert_eq!(refused.required("x-ms-copy-source-error-code"), "BlobNotFound");
        assert_eq!(refused.element("CopySourceErrorCode"), "BlobNotFound");
    };
    check(blob.send(put("/abc/new").header("x-ms-blob-type", "BlockBlob")));
    check(blob.send(put("/abc/new").header("x-ms-requires-sync", "true")));
    check(blob.send(put("/abc/new?comp=block&blockid=MQ%3D%3D")));
}

#[test]
fn traps_46_48_and_50_conditions_on_what_is_not_there() {
    let server = with_blob();
    let blob = server.blob();
    blob.send(Request::get("/abc/nope").header("If-Match", "\"0x1\"")).expect_error(404, "BlobNotFound");
    let write = Blobs::put_request("/abc/nope", "x").header("If-Match", "\"0x1\"");
    blob.send(write).expect_error(412, "ConditionNotMet");
    blob.send(Request::put("/abc/staged?comp=block&blockid=MQ%3D%3D").bytes("x")).expect(201);
    blob.head("/abc/staged").expect(404);
    blob.send(Request::get("/abc/staged?comp=blocklist&blocklisttype=uncommitted")).expect(200);
    blob.send(Request::put("/abc/staged?comp=blocklist").xml("<BlockList />")).expect(201);
    assert_eq!(blob.content("/abc/staged"), b"");
    blob.send(Request::get("/abc/b").header("If-Unmodified-Since", "")).expect(200);
}

#[test]
fn trap_51_names_below_a_prefix_that_was_shown_are_covered() {
    let server = with_container();
    let blob = server.blob();
    for name in ["a/1", "a/2", "a/3"] {
        blob.put(&format!("/abc/{name}"), "x");
    }
    let list = Request::get("/abc?restype=container&comp=list&delimiter=/&maxresults=1");
    let page = blob.send(list).expect(200);
    assert_eq!((page.elements("Name"), page.element("NextMarker")), (vec!["a/".to_owned()], String::new()));
}

#[test]
fn trap_54_the_time_of_creation_survives() {
    let (server, clock) = with_stopped_clock();
    let blob = server.blob();
    blob.put("/abc/b", "one");
    let created = blob.head("/abc/b").required("x-ms-creation-time").to_owned();
    pass(&clock, 10);
    blob.put("/abc/b", "two");
    let head = blob.head("/abc/b");
    assert_eq!(head.required("x-ms-creation-time"), created);
    assert_ne!(head.required("Last-Modified"), created);
    blob.send(Request::delete("/abc/b")).expect(202);
    blob.put("/abc/b", "three");
    assert_ne!(blob.head("/abc/b").required("x-ms-creation-time"), created);
}

#[test]
fn trap_58_hosts_with_a_suffix_behind_the_account() {
    let server = with_blob();
    let blob = server.blob();
    for label in ["devstoreaccount1", "devstoreaccount1-ipv6", "devstoreaccount1-dualstack"] {
        let host = format!("{label}.blob.core.windows.net");
        assert_eq!(
            blob.send(Request::get("/abc/b").style(Style::Host(host.clone()))).expect(200).text(),
            "content",
            "{host}"
        );
    }
}
