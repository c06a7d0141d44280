//! Leases of blobs and containers (§11).

use testkit::{Blobs, Request, Response, TestServer};

use crate::{pass, with_stopped_clock};

const A: &str = "ca761232-ed42-11ce-bacd-00aa0057b223";
const B: &str = "dbff6226-33d5-49c8-8cef-e8a83b0686a8";
const BLOB: &str = "/abc/b?comp=lease";
const CONTAINER: &str = "/abc?restype=container&comp=lease";

fn act(server: &TestServer, path: &str, action: &str, headers: &[(&str, &str)]) -> Response {
    let request = Request::put(path).header("x-ms-lease-action", action);
    server.blob().send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
}

#[test]
fn a_lease_is_acquired_renewed_changed_and_released() {
    let (server, clock) = with_stopped_clock();
    let etag = server.blob().put("/abc/b", "x").required("ETag").to_owned();
    let acquire =
        [("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", "ca761232ed4211cebacd00aa0057b223")];
    let leased = act(&server, BLOB, "acquire", &acquire).expect(201);
    assert_eq!((leased.required("x-ms-lease-id"), leased.required("ETag")), (A, &*etag));
    let head = server.blob().head("/abc/b").expect(200);
    assert_eq!(
        (
            head.required("x-ms-lease-state"),
            head.required("x-ms-lease-status"),
            head.required("x-ms-lease-duration")
        ),
        ("leased", "locked", "fixed")
    );
    act(&server, BLOB, "acquire", &[("x-ms-lease-duration", "15")]).expect_error(409, "LeaseAlreadyPresent");
    act(&server, BLOB, "renew", &[("x-ms-lease-id", B)])
        .expect_error(409, "LeaseIdMismatchWithLeaseOperation");
    act(&server, BLOB, "renew", &[("x-ms-lease-id", A)]).expect(200);
    let changed =
        act(&server, BLOB, "change", &[("x-ms-lease-id", A), ("x-ms-proposed-lease-id", B)]).expect(200);
    assert_eq!(changed.required("x-ms-lease-id"), B);
    let broken = act(&server, BLOB, "break", &[("x-ms-lease-break-period", "5")]).expect(202);
    assert_eq!((broken.required("x-ms-lease-time"), broken.header("x-ms-lease-id")), ("5", None));
    let head = server.blob().head("/abc/b").expect(200);
    assert_eq!((head.required("x-ms-lease-state"), head.header("x-ms-lease-duration")), ("breaking", None));
    pass(&clock, 5);
    let head = server.blob().head("/abc/b").expect(200);
    assert_eq!(
        (head.required("x-ms-lease-state"), head.required("x-ms-lease-status")),
        ("broken", "unlocked")
    );
    act(&server, BLOB, "release", &[("x-ms-lease-id", B)]).expect(200);
    assert_eq!(server.blob().head("/abc/b").expect(200).required("x-ms-lease-state"), "available");
    act(&server, BLOB, "acquire", &[]).expect_error(400, "MissingRequiredHeader");
    act(&server, BLOB, "acquire", &[("x-ms-lease-duration", "14")]).expect_error(400, "InvalidHeaderValue");
    act(&server, BLOB, "steal", &[]).expect_error(400, "InvalidHeaderValue");
    act(&server, "/abc/nope?comp=lease", "break", &[]).expect_error(404, "BlobNotFound");
}

#[test]
fn a_lease_guards_its_blob() {
    let (server, clock) = with_stopped_clock();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let put = |id: Option<&str>| {
        let request = Blobs::put_request("/abc/b", "y");
        blob.send(match id {
            Some(id) => request.header("x-ms-lease-id", id),
            None => request,
        })
    };
    put(Some(A)).expect_error(412, "LeaseNotPresentWithBlobOperation");
    act(&server, BLOB, "acquire", &[("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", A)])
        .expect(201);
    put(None).expect_error(412, "LeaseIdMissing");
    // Trap 1.
    put(Some(B)).expect_error(412, "LeaseIdMismatchWithBlobOperation");
    put(Some(A)).expect(201);
    // Traps 47 and §10.2.
    let wildcard = || Blobs::put_request("/abc/b", "z").header("If-None-Match", "*");
    blob.send(wildcard()).expect_error(412, "LeaseIdMissing");
    blob.send(wildcard().header("x-ms-lease-id", A)).expect(201);
    blob.send(Request::get("/abc/b")).expect(200);
    blob.send(Request::get("/abc/b").header("x-ms-lease-id", B))
        .expect_error(412, "LeaseIdMismatchWithBlobOperation");
    blob.send(Request::delete("/abc/b")).expect_error(412, "LeaseIdMissing");
    pass(&clock, 15);
    // Trap 2.
    put(Some(A)).expect_error(412, "LeaseLost");
    put(None).expect(201);
    let missing = Blobs::put_request("/abc/new", "y").header("x-ms-lease-id", A);
    blob.send(missing).expect_error(412, "LeaseNotPresentWithBlobOperation");
}

#[test]
fn a_lease_guards_its_container_from_deletion() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let leased =
        act(&server, CONTAINER, "acquire", &[("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", A)])
            .expect(201);
    assert_eq!(leased.required("x-ms-lease-id"), A);
    let found = blob.send(Request::get("/abc?restype=container")).expect(200);
    assert_eq!(
        (found.required("x-ms-lease-state"), found.required("x-ms-lease-duration")),
        ("leased", "infinite")
    );
    let refused = blob.send(Request::delete("/abc?restype=container")).expect_error(412, "LeaseIdMissing");
    assert_eq!(
        refused.error_message(),
        "There is currently a lease on the container and no lease ID was specified in the request."
    );
    blob.send(Request::delete("/abc?restype=container").header("x-ms-lease-id", B))
        .expect_error(412, "LeaseIdMismatchWithContainerOperation");
    blob.put("/abc/b", "x");
    blob.send(Request::delete("/abc?restype=container").header("x-ms-lease-id", A)).expect(202);
}
