//! Snapshots (§21.1), deletion (§16.6), soft deletion (§21.7).

use testkit::{Request, TestServer};

use crate::with_container;

fn snapshot(server: &TestServer) -> String {
    let taken = server.blob().send(Request::put("/abc/b?comp=snapshot")).expect(201);
    // Trap 20.
    assert_eq!(taken.required("x-ms-request-server-encrypted"), "false");
    testkit::percent_encode(taken.required("x-ms-snapshot"))
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let server = with_container();
    let blob = server.blob();
    let etag = blob.put("/abc/b", "one").required("ETag").to_owned();
    let first = snapshot(&server);
    let second = snapshot(&server);
    assert!(first < second);
    blob.put("/abc/b", "two");
    let path = format!("/abc/b?snapshot={first}");
    let read = blob.send(Request::get(&path)).expect(200);
    assert_eq!((read.text(), read.required("ETag"), read.header("x-ms-lease-state")), ("one", &*etag, None));
    blob.head(&path).expect(200);
    assert_eq!(blob.content("/abc/b"), b"two");
    let write = format!("/abc/b?comp=metadata&snapshot={first}");
    blob.send(Request::put(&write)).expect_error(400, "InvalidOperation");
    blob.send(Request::get("/abc/b?snapshot=2020-01-01T00:00:00.0000000Z")).expect_error(404, "BlobNotFound");
}

#[test]
fn a_blob_with_snapshots_is_deleted_with_them() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "one");
    let first = snapshot(&server);
    snapshot(&server);
    let refused = blob.send(Request::delete("/abc/b")).expect_error(409, "SnapshotsPresent");
    assert_eq!(refused.error_message(), "This operation is not permitted because the blob has snapshots.");
    blob.send(Request::delete(&format!("/abc/b?snapshot={first}"))).expect(202);
    blob.send(Request::get(&format!("/abc/b?snapshot={first}"))).expect_error(404, "BlobNotFound");
    blob.send(Request::delete("/abc/b").header("x-ms-delete-snapshots", "only")).expect(202);
    assert_eq!(blob.content("/abc/b"), b"one");
    snapshot(&server);
    let deleted = blob.send(Request::delete("/abc/b").header("x-ms-delete-snapshots", "include")).expect(202);
    assert_eq!(deleted.required("x-ms-delete-type-permanent"), "true");
    blob.send(Request::get("/abc/b")).expect_error(404, "BlobNotFound");
}

#[test]
fn what_is_deleted_softly_comes_back() {
    let server = with_container();
    let blob = server.blob();
    let keep = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>2</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    blob.send(Request::put("/?restype=service&comp=properties").xml(keep)).expect(202);
    blob.put("/abc/b", "one");
    let deleted = blob.send(Request::delete("/abc/b")).expect(202);
    assert_eq!(deleted.required("x-ms-delete-type-permanent"), "false");
    blob.send(Request::get("/abc/b")).expect_error(404, "BlobNotFound");
    let listed = blob.send(Request::get("/abc?restype=container&comp=list&include=deleted")).expect(200);
    assert_eq!((listed.element("Deleted"), listed.element("LeaseStatus")), ("true".into(), String::new()));
    blob.send(Request::put("/abc/b?comp=undelete")).expect(200);
    assert_eq!(blob.content("/abc/b"), b"one");
    blob.send(Request::put("/abc/never?comp=undelete")).expect_error(404, "BlobNotFound");
}

fn keep_deleted(server: &TestServer, allows_permanent: bool) {
    let properties = format!(
        "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>2</Days><AllowPermanentDelete>{allows_permanent}</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>"
    );
    server.blob().send(Request::put("/?restype=service&comp=properties").xml(&properties)).expect(202);
}

/// §16.6: the account must allow it, and it is for snapshots and versions that are already deleted softly.
#[test]
fn what_is_deleted_softly_can_be_deleted_for_good() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "one");
    keep_deleted(&server, false);
    let taken = snapshot(&server);
    let path = format!("/abc/b?snapshot={taken}");
    let permanent = format!("{path}&deletetype=permanent");
    blob.send(Request::delete(&permanent)).expect_error(409, "BlobSnapshotNotSoftDeleted");
    keep_deleted(&server, true);
    blob.send(Request::delete(&permanent)).expect_error(409, "BlobSnapshotNotSoftDeleted");
    blob.send(Request::delete("/abc/b?deletetype=permanent")).expect_error(409, "BlobSnapshotNotSoftDeleted");
    let deleted = blob.send(Request::delete(&path)).expect(202);
    assert_eq!(deleted.required("x-ms-delete-type-permanent"), "false");
    let y = |letters: &str| {
        let sas = testkit::Sas::container("2025-11-05", "abc").set("sp", letters);
        Request::delete(&permanent).sas(&sas.sign(blob.credentials()))
    };
    blob.send(y("d")).expect_error(403, "AuthorizationPermissionMismatch");
    let deleted = blob.send(y("y")).expect(202);
    assert_eq!(deleted.required("x-ms-delete-type-permanent"), "true");
    blob.send(Request::put("/abc/b?comp=undelete")).expect(200);
    blob.send(Request::get(&path)).expect_error(404, "BlobNotFound");
    // Of the blob itself, this letter deletes nothing.
    let sas = testkit::Sas::container("2025-11-05", "abc").set("sp", "y").sign(blob.credentials());
    blob.send(Request::delete("/abc/b?deletetype=permanent").sas(&sas))
        .expect_error(403, "AuthorizationPermissionMismatch");
    assert_eq!(blob.content("/abc/b"), b"one");
}
