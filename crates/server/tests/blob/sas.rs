//! Shared access signatures for blobs (§7): the published vectors, what each version signs, what each field bounds.

use blobs::BlobOptions;
use testkit::{Request, Sas, TestServer, percent_encode, signature};

use crate::with_container;

const VERSION: &str = "2025-11-05";
const SIGNATURE: &str = "AuthenticationFailed";

fn with_blob() -> TestServer {
    let server = with_container();
    server.blob().put("/abc/b", "content");
    server
}

/// The answer to GET of the blob with this token.
fn read(server: &TestServer, sas: &Sas) -> testkit::Response {
    let blob = server.blob();
    blob.send(Request::get("/abc/b").sas(&sas.sign(blob.credentials())))
}

#[track_caller]
fn refused(server: &TestServer, sas: &Sas, code: &str) {
    read(server, sas).expect_error(403, code);
}

#[test]
fn the_published_vectors_verify() {
    let credentials = testkit::Credentials::emulator();
    let check = |sas: Sas, expected: &str| assert_eq!(sas.signature(&credentials), expected, "{sas:?}");
    let timed = |sas: Sas| sas.set("st", "2026-06-26T00:00:00Z").set("se", "2026-06-27T00:00:00Z");
    let blob =
        |version: &str| Sas::blob(version, "mycontainer", "hello.txt").set("se", "2026-06-27T00:00:00Z");
    let both = |version: &str| timed(blob(version)).set("sp", "rw").set("spr", "https,http");
    check(both("2025-11-05"), "agzhxYRT2oqinretBt3JKuaaTPwn7BTR4mJowI7uxyc=");
    check(both("2019-12-12"), "3SPhOHvmJxNkL/RXbmuEx31QD6qMMnYyJzIUWTHgxgU=");
    let container = timed(Sas::container("2025-11-05", "mycontainer")).set("sp", "racwdl");
    check(container, "HSrwk2GupZkG+qZQtwOf7VS9s4gd2+aiGgQnNA+XYWQ=");
    let snapshot =
        blob("2025-11-05").set("sr", "bs").set("sp", "r").set("snapshot", "2026-06-26T01:02:03.0000001Z");
    check(snapshot, "vgoLAlLWWCAtnGXuERKq6OOCml2lQOvtt9Gwu0a203c=");
    let shown = blob("2025-11-05").set("sp", "r").set("rscd", "attachment; filename=a.txt");
    check(shown.set("rsct", "text/plain"), "2NkbpVYBiMF0ECs49bb81GmTrgTv+INkVjBlNEZRXz8=");
    let older = |version: &str| blob(version).set("sp", "r");
    check(older("2017-11-09").set("spr", "https,http"), "u94wJj+TKRr2ReJlQWKEzuaHuEF1Dqkl6A4+y8tN2ZY=");
    check(older("2014-02-14"), "rpIIAJXts1/eSEFt7rdwXgah3wrrSIi2k7wt/rbo+eg=");
}

#[test]
fn every_version_signs_its_own_lines() {
    let server = with_blob();
    for version in [
        "2012-02-12",
        "2013-08-15",
        "2014-02-14",
        "2015-02-21",
        "2015-04-05",
        "2017-11-09",
        "2018-03-28",
        "2018-11-09",
        "2019-12-12",
        "2020-10-02",
        "2020-12-06",
        "2023-11-03",
        "2025-11-05",
        "2026-06-06",
    ] {
        assert_eq!(
            read(&server, &Sas::blob(version, "abc", "b").set("sp", "r")).expect(200).text(),
            "content"
        );
        assert_eq!(
            read(&server, &Sas::container(version, "abc").set("sp", "r")).expect(200).text(),
            "content"
        );
        refused(&server, &Sas::blob(version, "abc", "c").set("sp", "r"), SIGNATURE);
        refused(&server, &Sas::container(version, "abd").set("sp", "r"), SIGNATURE);
    }
}

#[test]
fn times_addresses_and_protocols_bound_a_token() {
    let server = with_blob();
    for sas in [Sas::blob(VERSION, "abc", "b"), Sas::container(VERSION, "abc"), Sas::blob_account(VERSION)] {
        read(&server, &sas.clone().set("st", "2020-01-01")).expect(200);
        refused(&server, &sas.clone().set("st", "2098-01-01"), SIGNATURE);
        refused(&server, &sas.clone().set("se", "2020-01-01"), SIGNATURE);
        refused(&server, &sas.clone().without("se"), SIGNATURE);
        read(&server, &sas.clone().set("sip", "127.0.0.0-127.0.0.9")).expect(200);
        refused(&server, &sas.clone().set("sip", "10.0.0.1"), "AuthorizationSourceIPMismatch");
        read(&server, &sas.clone().set("spr", "https,http")).expect(200);
        refused(&server, &sas.set("spr", "https"), "AuthorizationProtocolMismatch");
    }
}

#[test]
fn an_expired_token_says_when_it_was_valid() {
    let server = with_blob();
    let sas = Sas::blob(VERSION, "abc", "b").set("st", "2020-01-01").set("se", "2020-01-02");
    let refused = read(&server, &sas).expect_error(403, SIGNATURE);
    let detail = refused.element("AuthenticationErrorDetail");
    assert!(detail.starts_with("Signature not valid in the specified time frame: Start ["), "{detail}");
}

#[test]
fn answers_say_what_the_token_says() {
    let server = with_blob();
    let sas =
        Sas::blob(VERSION, "abc", "b").set("rscc", "no-store").set("rscd", "attachment; filename=a.txt");
    let sas = sas.set("rsce", "identity").set("rscl", "fr").set("rsct", "text/plain");
    let blob = server.blob();
    for request in [Request::get("/abc/b"), Request::head("/abc/b")] {
        let answer = blob.send(request.sas(&sas.sign(blob.credentials()))).expect(200);
        assert_eq!(answer.required("Cache-Control"), "no-store");
        assert_eq!(answer.required("Content-Disposition"), "attachment; filename=a.txt");
        assert_eq!(answer.required("Content-Encoding"), "identity");
        assert_eq!(answer.required("Content-Language"), "fr");
        assert_eq!(answer.required("Content-Type"), "text/plain");
    }
    // They are signed.
    let signed = sas.sign(blob.credentials()).replace("attachment", "inline");
    blob.send(Request::get("/abc/b").sas(&signed)).expect_error(403, SIGNATURE);
}

#[test]
fn a_snapshot_has_tokens_of_its_own() {
    let server = with_blob();
    let blob = server.blob();
    let taken = blob.send(Request::put("/abc/b?comp=snapshot")).expect(201);
    let moment = taken.required("x-ms-snapshot").to_owned();
    blob.put("/abc/b", "changed");
    let of_snapshot = Sas::blob(VERSION, "abc", "b").set("sr", "bs").set("snapshot", &moment);
    assert_eq!(read(&server, &of_snapshot).expect(200).text(), "content");
    let token = of_snapshot
        .sign(blob.credentials())
        .replace(&percent_encode(&moment), "2020-01-01T00%3A00%3A00.0000000Z");
    blob.send(Request::get("/abc/b").sas(&token)).expect_error(403, SIGNATURE);
    // Trap 17: that of the blob is not for its snapshots, that of the container is.
    let past = format!("/abc/b?snapshot={}", percent_encode(&moment));
    let of_blob = Sas::blob(VERSION, "abc", "b").sign(blob.credentials());
    blob.send(Request::get(&past).sas(&of_blob)).expect_error(403, SIGNATURE);
    let of_container = Sas::container(VERSION, "abc").sign(blob.credentials());
    assert_eq!(blob.send(Request::get(&past).sas(&of_container)).expect(200).text(), "content");
}

#[test]
fn a_version_has_tokens_of_its_own() {
    let options = BlobOptions { keeps_versions: true, ..BlobOptions::default() };
    let server = TestServer::options().blob_options(options).start();
    let blob = server.blob();
    blob.create("abc");
    let first = blob.put("/abc/b", "first").required("x-ms-version-id").to_owned();
    blob.put("/abc/b", "second");
    let sas = Sas::blob(VERSION, "abc", "b").set("sr", "bv").set("versionid", &first);
    assert_eq!(read(&server, &sas).expect(200).text(), "first");
    let path = format!("/abc/b?versionid={}", percent_encode(&first));
    // Deleting a version needs a letter of its own.
    for (letters, status) in [("d", 403), ("x", 202)] {
        let sas = Sas::container(VERSION, "abc").set("sp", letters).sign(blob.credentials());
        blob.send(Request::delete(&path).sas(&sas)).expect(status);
    }
    refused(&server, &Sas::blob(VERSION, "abc", "c").set("sr", "bv").set("versionid", &first), SIGNATURE);
}

#[test]
fn a_policy_completes_a_token_and_ends_it() {
    let server = with_blob();
    let blob = server.blob();
    let set = |fields: &str| {
        let policy = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy>{fields}</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        blob.send(Request::put("/abc?restype=container&comp=acl").xml(&policy)).expect(200);
    };
    for sas in [Sas::blob(VERSION, "abc", "b"), Sas::container(VERSION, "abc")] {
        blob.send(Request::put("/abc?restype=container&comp=acl")).expect(200);
        let bare = sas.without("sp").without("se").set("si", "p");
        refused(&server, &bare, SIGNATURE);
        set("<Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission>");
        read(&server, &bare).expect(200);
        // What both say is refused.
        refused(&server, &bare.clone().set("sp", "r"), SIGNATURE);
        set("<Expiry>2099-01-01T00:00:00Z</Expiry>");
        refused(&server, &bare, SIGNATURE);
        read(&server, &bare.clone().set("sp", "r")).expect(200);
        set("<Expiry>2020-01-01T00:00:00Z</Expiry><Permission>r</Permission>");
        refused(&server, &bare, SIGNATURE);
    }
}

#[test]
fn failures_have_an_order() {
    let server = with_blob();
    let sas =
        Sas::blob_account(VERSION).set("sip", "10.0.0.1").set("spr", "https").set("srt", "s").set("sp", "w");
    let sas = sas.set("ss", "t");
    let mended = [
        ("sip", "127.0.0.1", "AuthorizationSourceIPMismatch"),
        ("spr", "https,http", "AuthorizationProtocolMismatch"),
        ("ss", "b", "AuthorizationServiceMismatch"),
        ("srt", "o", "AuthorizationResourceTypeMismatch"),
        ("sp", "r", "AuthorizationPermissionMismatch"),
    ];
    let mut sas = sas;
    for (field, value, code) in mended {
        refused(&server, &sas, code);
        sas = sas.set(field, value);
    }
    read(&server, &sas).expect(200);
}

#[test]
fn what_is_no_signature_is_refused() {
    let server = with_blob();
    let blob = server.blob();
    let sas = Sas::blob(VERSION, "abc", "b");
    for wrong in ["", "AAAA", "%00", "no%20base64!"] {
        blob.send(Request::get("/abc/b").sas(&sas.with_signature(wrong))).expect_error(403, SIGNATURE);
    }
    let of_another = percent_encode(&signature("d3Jvbmc=", &sas.string_to_sign("devstoreaccount1")));
    blob.send(Request::get("/abc/b").sas(&sas.with_signature(&of_another))).expect_error(403, SIGNATURE);
    for sr in ["", "x", "bb"] {
        refused(&server, &sas.clone().set("sr", sr), SIGNATURE);
    }
}

/// §7.3: whoever has any credentials for blobs may ask what kind of account this is, on any path (§1.1).
#[test]
fn account_information_needs_credentials_for_this_service() {
    let server = with_blob();
    let blob = server.blob();
    for path in ["/?", "/abc?", "/abc/b?"] {
        let request = Request::get(&format!("{path}restype=account&comp=properties"));
        let with = |sas: Sas| blob.send(request.clone().sas(&sas.sign(blob.credentials())));
        with(Sas::blob_account(VERSION).set("srt", "o").set("sp", "l")).expect(200);
        with(Sas::blob_account(VERSION).set("ss", "qt")).expect_error(403, "AuthorizationServiceMismatch");
        blob.send(request.clone()).expect(200);
    }
    let batch = Request::post("/?comp=batch").body("multipart/mixed; boundary=b", "--b--\r\n");
    let elsewhere = Sas::blob_account(VERSION).set("ss", "qt").sign(blob.credentials());
    blob.send(batch.sas(&elsewhere)).expect_error(403, "AuthorizationServiceMismatch");
    let on = |path: &str, sas: Sas| {
        let request = Request::get(&format!("{path}?restype=account&comp=properties"));
        blob.send(request.sas(&sas.sign(blob.credentials())))
    };
    let information = on("/abc", Sas::container(VERSION, "abc").set("sp", "r")).expect(200);
    assert_eq!(information.required("x-ms-account-kind"), "StorageV2");
    on("/abc/b", Sas::container(VERSION, "abc").set("sp", "r")).expect(200);
    on("/abc/b", Sas::blob(VERSION, "abc", "b").set("sp", "r")).expect(200);
    on("/other", Sas::container(VERSION, "abc").set("sp", "r")).expect_error(403, SIGNATURE);
}
