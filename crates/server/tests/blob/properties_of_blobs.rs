//! Properties and metadata of blobs (§16.4, §16.5), tiers (§21.5).

use std::sync::Arc;
use std::time::Duration;

use blobs::BlobOptions;
use engine::env::FakeClock;
use testkit::{Blobs, Request, TestServer};

use crate::{START_TICKS, pass, with_container, with_stopped_clock};

#[test]
fn setting_one_property_clears_the_others() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let put = Blobs::put_request("/abc/b", "x").header("x-ms-blob-content-language", "de");
    let etag = blob.send(put.header("Cache-Control", "no-store")).expect(201).required("ETag").to_owned();
    assert_eq!(blob.head("/abc/b").required("Cache-Control"), "no-store");
    let set = Request::put("/abc/b?comp=properties").header("x-ms-blob-content-type", "text/plain");
    assert_ne!(blob.send(set).expect(200).required("ETag"), etag);
    let head = blob.head("/abc/b").expect(200);
    assert_eq!(head.required("Content-Type"), "text/plain");
    assert_eq!((head.header("Content-Language"), head.header("Cache-Control")), (None, None));
}

#[test]
fn metadata_are_replaced_as_a_whole() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let set = blob.send(Request::put("/abc/b?comp=metadata").header("x-ms-meta-a", "a")).expect(200);
    assert_eq!(set.required("x-ms-request-server-encrypted"), "true");
    let found = blob.send(Request::get("/abc/b?comp=metadata")).expect(200);
    assert_eq!((found.required("x-ms-meta-a"), found.required("ETag")), ("a", set.required("ETag")));
    blob.send(Request::put("/abc/b?comp=metadata")).expect(200);
    assert_eq!(blob.head("/abc/b").header("x-ms-meta-a"), None);
    blob.send(Request::put("/abc/b?comp=metadata").header("x-ms-meta-1a", "a"))
        .expect_error(400, "InvalidMetadata");
    let large = "v".repeat(8 * 1024);
    blob.send(Request::put("/abc/b?comp=metadata").header("x-ms-meta-a", &large))
        .expect_error(400, "MetadataTooLarge");
}

/// Trap 25, also for requests that follow each other without waiting.
#[test]
fn names_of_metadata_keep_their_case() {
    let server = with_container();
    let blob = server.blob();
    let mut client = blob.connect();
    let mut bytes = Vec::new();
    for name in ["CamelCase", "lower", "UPPER"] {
        let request =
            Blobs::put_request(&format!("/abc/{name}"), "x").header(&format!("X-Ms-Meta-{name}"), "v");
        bytes.extend_from_slice(&blob.bytes_of(&request));
    }
    client.send(&bytes).unwrap();
    for _ in 0..3 {
        assert_eq!(client.read_response(false).unwrap().status, 201);
    }
    let list = blob.send(Request::get("/abc?restype=container&comp=list&include=metadata")).expect(200);
    for name in ["CamelCase", "lower", "UPPER"] {
        assert!(list.text().contains(&format!("<Metadata><{name}>v</{name}></Metadata>")), "{list:?}");
    }
}

#[test]
fn tiers_are_set() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let etag = blob.put("/abc/b", "x").required("ETag").to_owned();
    let set = |tier: &str| blob.send(Request::put("/abc/b?comp=tier").header("x-ms-access-tier", tier));
    set("Cool").expect(200);
    let head = blob.head("/abc/b").expect(200);
    assert_eq!((head.required("x-ms-access-tier"), head.header("x-ms-access-tier-inferred")), ("Cool", None));
    assert_eq!(
        (head.required("ETag"), head.required("x-ms-access-tier-change-time")),
        (&*etag, "Fri, 26 Jun 2026 23:39:12 GMT")
    );
    set("Archive").expect(200);
    blob.send(Request::get("/abc/b")).expect_error(409, "BlobArchived");
    set("Hot").expect(202);
    let head = blob.head("/abc/b").expect(200);
    assert_eq!(
        (head.required("x-ms-access-tier"), head.required("x-ms-archive-status")),
        ("Archive", "rehydrate-pending-to-hot")
    );
    set("Warm").expect_error(400, "InvalidHeaderValue");
    blob.send(Request::put("/abc/b?comp=tier")).expect_error(400, "MissingRequiredHeader");
}

/// §4: the tier is known from one version on, and tells which one it has chosen.
#[test]
fn the_smart_tier_is_for_newer_versions() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let set = |version: &str| {
        let request = Request::put("/abc/b?comp=tier").header("x-ms-access-tier", "Smart");
        blob.send(request.version(version))
    };
    set("2026-04-06").expect_error(400, "InvalidHeaderValue");
    assert_eq!(blob.head("/abc/b").header("x-ms-smart-access-tier"), None);
    set("2026-06-06").expect(200);
    for (version, chosen) in [("2026-06-06", Some("Hot")), ("2025-11-05", None)] {
        let head = blob.send(Request::head("/abc/b").version(version)).expect(200);
        assert_eq!(head.required("x-ms-access-tier"), "Smart");
        assert_eq!(head.header("x-ms-smart-access-tier"), chosen, "{version}");
        let list = Request::get("/abc?restype=container&comp=list").version(version);
        let shown = blob.send(list).expect(200).elements("SmartAccessTier");
        assert_eq!(shown.first().map(String::as_str), chosen, "{version}");
    }
}

/// §21.5: how long it takes is the operator's choice.
#[test]
fn a_blob_that_has_left_the_archive_is_like_any_other() {
    let clock = Arc::new(FakeClock::new(START_TICKS));
    let options = BlobOptions { rehydrates_after: Some(Duration::from_secs(60)), ..BlobOptions::default() };
    let server = TestServer::options().clock(clock.clone()).blob_options(options).start();
    let blob = server.blob();
    blob.create("abc");
    blob.put("/abc/b", "x");
    for tier in ["Archive", "Cool"] {
        blob.send(Request::put("/abc/b?comp=tier").header("x-ms-access-tier", tier));
    }
    blob.send(Blobs::put_request("/abc/b", "y")).expect_error(409, "BlobArchived");
    pass(&clock, 60);
    assert_eq!(blob.head("/abc/b").required("x-ms-access-tier"), "Cool");
    // The tier has changed when the blob left the archive, and not when it went there.
    let delete = Request::delete("/abc/b").version("2026-04-06");
    let since = |time: &str| delete.clone().header("x-ms-access-tier-if-modified-since", time);
    blob.send(since("Fri, 26 Jun 2026 23:40:12 GMT")).expect_error(412, "ConditionNotMet");
    blob.put("/abc/b", "y");
    blob.send(since("Fri, 26 Jun 2026 23:39:30 GMT")).expect(202);
}
