//! Anonymous reads (§8), signatures (§7), Shared Key (§6), CORS (§9).

use testkit::{Blobs, Request, Sas, Scheme, Style};

use crate::with_container;

#[test]
fn public_containers_are_read_without_credentials() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let anonymous = |request: Request| blob.send(request.unsigned().without("x-ms-date"));
    let set = |access: &str| {
        let acl = Request::put("/abc?restype=container&comp=acl");
        blob.send(if access.is_empty() { acl } else { acl.header("x-ms-blob-public-access", access) })
            .expect(200);
    };
    let list = "/abc?restype=container&comp=list";
    let challenged = anonymous(Request::get("/abc/b")).expect_error(401, "NoAuthenticationInformation");
    assert!(challenged.required("WWW-Authenticate").starts_with("Bearer authorization_uri="));
    anonymous(Request::get("/abc/b").without("x-ms-version")).expect_error(404, "ResourceNotFound");
    set("blob");
    assert_eq!(anonymous(Request::get("/abc/b").without("x-ms-version")).expect(200).text(), "x");
    anonymous(Request::head("/abc/b")).expect(200);
    anonymous(Request::get("/abc/b?comp=metadata")).expect(200);
    anonymous(Request::get("/abc/nope")).expect_error(404, "BlobNotFound");
    anonymous(Request::get(list)).expect_error(401, "NoAuthenticationInformation");
    for write in
        [Blobs::put_request("/abc/b", "y"), Request::delete("/abc/b"), Request::put("/abc/b?comp=metadata")]
    {
        anonymous(write).expect_error(401, "NoAuthenticationInformation");
    }
    anonymous(Request::get("/abc/b?comp=tags")).expect_error(401, "NoAuthenticationInformation");
    set("container");
    assert_eq!(anonymous(Request::get(list)).expect(200).elements("Name"), ["b"]);
    anonymous(Request::get("/abc?restype=container")).expect(200);
    anonymous(Request::get("/abc?restype=container&comp=acl"))
        .expect_error(401, "NoAuthenticationInformation");
    anonymous(Request::get("/?comp=list")).expect_error(401, "NoAuthenticationInformation");
    set("");
    anonymous(Request::get("/abc/b")).expect_error(401, "NoAuthenticationInformation");
    // A wrong signature is wrong, however public the blob is.
    set("blob");
    let wrong = Request::get("/abc/b").header("Authorization", "SharedKey devstoreaccount1:AAAA");
    blob.send(wrong).expect_error(403, "AuthenticationFailed");
}

#[test]
fn a_signature_allows_what_its_letters_say() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let version = "2025-11-05";
    let send = |sas: Sas, request: Request| blob.send(request.sas(&sas.sign(blob.credentials())));
    let container = |letters: &str| Sas::container(version, "abc").set("sp", letters);
    send(container("r"), Request::get("/abc/b")).expect(200);
    send(container("r"), Request::get("/abc?restype=container&comp=list"))
        .expect_error(403, "AuthorizationPermissionMismatch");
    send(container("l"), Request::get("/abc?restype=container&comp=list")).expect(200);
    send(container("l"), Request::get("/abc/b")).expect_error(403, "AuthorizationPermissionMismatch");
    send(container("racwdl"), Request::delete("/abc?restype=container"))
        .expect_error(403, "AuthorizationFailure");
    send(container("racwdl"), Request::get("/other/b")).expect(403);
    send(container("c"), Blobs::put_request("/abc/new", "x")).expect(201);
    // Trap 52 and §7.2.
    send(container("c"), Blobs::put_request("/abc/new", "y")).expect_error(403, "UnauthorizedBlobOverwrite");
    send(container("c"), Request::put("/abc/n2?comp=block&blockid=MQ%3D%3D").bytes("x"))
        .expect_error(403, "AuthorizationPermissionMismatch");
    send(container("w"), Blobs::put_request("/abc/new", "y")).expect(201);
    send(container("w"), Blobs::put_request("/abc/new", "y").header("x-ms-tags", "a=b"))
        .expect_error(403, "AuthorizationPermissionMismatch");
    send(container("wt"), Blobs::put_request("/abc/new", "y").header("x-ms-tags", "a=b")).expect(201);
    send(container("d"), Request::delete("/abc/new")).expect(202);

    let single = |letters: &str| Sas::blob(version, "abc", "b").set("sp", letters);
    send(single("r"), Request::get("/abc/b")).expect(200);
    send(single("r"), Request::get("/abc/other")).expect_error(403, "AuthenticationFailed");
    send(single("r").set("se", "2020-01-01T00:00:00Z"), Request::get("/abc/b"))
        .expect_error(403, "AuthenticationFailed");

    let account =
        |letters: &str, types: &str| Sas::blob_account(version).set("sp", letters).set("srt", types);
    send(account("l", "s"), Request::get("/?comp=list")).expect(200);
    send(account("l", "o"), Request::get("/?comp=list"))
        .expect_error(403, "AuthorizationResourceTypeMismatch");
    send(account("c", "c"), Request::put("/made?restype=container")).expect(201);
    send(account("r", "o"), Request::get("/abc/b")).expect(200);
    send(account("rw", "c"), Request::get("/abc?restype=container&comp=acl"))
        .expect_error(403, "AuthorizationFailure");
    send(account("r", "o").set("ss", "q"), Request::get("/abc/b"))
        .expect_error(403, "AuthorizationServiceMismatch");
}

#[test]
fn a_snapshot_needs_its_own_signature() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let taken = blob.send(Request::put("/abc/b?comp=snapshot")).expect(201);
    let moment = taken.required("x-ms-snapshot");
    let path = format!("/abc/b?snapshot={}", testkit::percent_encode(moment));
    let of_blob = Sas::blob("2025-11-05", "abc", "b").set("sp", "r");
    blob.send(Request::get(&path).sas(&of_blob.sign(blob.credentials()))).expect(403);
    let of_snapshot = of_blob.set("sr", "bs").set("snapshot", moment);
    let read = blob.send(Request::get("/abc/b").sas(&of_snapshot.sign(blob.credentials())));
    assert_eq!(read.expect(200).text(), "x");
}

#[test]
fn requests_are_signed_in_both_forms_and_styles() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    blob.send(Request::get("/abc/b").scheme(Scheme::SharedKeyLite)).expect(200);
    let host = Style::Host("devstoreaccount1.blob.core.windows.net".to_owned());
    blob.send(Request::get("/abc/b").style(host.clone())).expect(200);
    blob.send(
        Request::get("/abc?restype=container&comp=list&include=snapshots&include=metadata").style(host),
    )
    .expect(200);
    blob.send(Request::get("/abc/b").header("Range", "bytes=0-0")).expect(206);
    blob.send(Request::get("/abc/b").signed_target("/devstoreaccount1/abc/c"))
        .expect_error(403, "AuthenticationFailed");
    let secondary = Request::get("/abc/b").path_account("devstoreaccount1-secondary");
    blob.send(secondary).expect(200);
    let write = Blobs::put_request("/abc/b", "y").path_account("devstoreaccount1-secondary");
    blob.send(write).expect_error(403, "InsufficientAccountPermissions");
}

#[test]
fn other_origins_read_by_the_rules() {
    let server = with_container();
    let blob = server.blob();
    let rules = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>200</MaxAgeInSeconds><ExposedHeaders>x-ms-meta-*</ExposedHeaders><AllowedHeaders>x-ms-blob-type</AllowedHeaders></CorsRule></Cors></StorageServiceProperties>";
    blob.send(Request::put("/?restype=service&comp=properties").xml(rules)).expect(202);
    blob.send(Blobs::put_request("/abc/b", "x").header("x-ms-meta-a", "1")).expect(201);
    let preflight = Request::new("OPTIONS", "/abc/b").unsigned().header("Origin", "http://a.example");
    let preflight = preflight.header("Access-Control-Request-Method", "PUT");
    let allowed = blob.send(preflight.header("Access-Control-Request-Headers", "x-ms-blob-type")).expect(200);
    assert_eq!(allowed.required("Access-Control-Max-Age"), "200");
    let read = blob.send(Request::get("/abc/b").header("Origin", "http://a.example")).expect(200);
    assert_eq!(read.required("Access-Control-Allow-Origin"), "http://a.example");
    assert_eq!(read.required("Access-Control-Expose-Headers"), "x-ms-meta-a");
}
