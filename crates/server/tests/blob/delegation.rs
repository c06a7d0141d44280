//! Get User Delegation Key (§13.6) and the signatures made with it (§7.4).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::auth::BearerValidator;
use server::Current;
use testkit::{Request, TestServer, percent_encode, signature};

fn token() -> String {
    let part = |json: &str| URL_SAFE_NO_PAD.encode(json);
    let claims = "{\"iss\":\"https://sts.windows.net/0/\",\"aud\":\"https://storage.azure.com\",\"nbf\":1000000000,\"iat\":1000000000,\"exp\":4000000000,\"oid\":\"11111111-2222-3333-4444-555555555555\",\"tid\":\"66666666-7777-8888-9999-000000000000\"}";
    format!("{}.{}.{}", part("{\"alg\":\"none\",\"typ\":\"JWT\"}"), part(claims), part("signature"))
}

fn start() -> TestServer {
    TestServer::options()
        .front(|config| {
            config.tokens = Some(Arc::new(Current::new(BearerValidator::basic())));
            config.is_behind_tls_proxy = true;
        })
        .start()
}

const PATH: &str = "/?restype=service&comp=userdelegationkey";

fn key_info() -> String {
    let expiry = testkit::system_now() + std::time::Duration::from_secs(3600);
    let seconds = expiry.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let ticks = engine::env::UNIX_EPOCH_TICKS + seconds * 10_000_000;
    format!("<KeyInfo><Expiry>{}</Expiry></KeyInfo>", protocol::common::DateTime::from_ticks(ticks))
}

#[test]
fn the_holder_of_a_token_gets_a_key_that_signs() {
    let server = start();
    let blob = server.blob();
    blob.create("abc");
    blob.put("/abc/b", "x");
    let ask = Request::post(PATH).xml(&key_info()).header("Authorization", &format!("Bearer {}", token()));
    let key = blob.send(ask).expect(200);
    assert_eq!(key.element("SignedOid"), "11111111-2222-3333-4444-555555555555");
    assert_eq!(key.element("SignedTid"), "66666666-7777-8888-9999-000000000000");
    assert_eq!(key.element("SignedService"), "b");
    let sign = |permissions: &str, value: &str| {
        let field = |name: &str| key.element(name);
        let (oid, tid, start, expiry, version) = (
            field("SignedOid"),
            field("SignedTid"),
            field("SignedStart"),
            field("SignedExpiry"),
            field("SignedVersion"),
        );
        let lines = [
            permissions,
            "",
            &expiry,
            "/blob/devstoreaccount1/abc/b",
            &oid,
            &tid,
            &start,
            &expiry,
            "b",
            &version,
            "",
            "",
            "",
            "",
            "",
            "2021-12-02",
            "b",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
        ];
        let signed = percent_encode(&signature(value, &lines.join("\n")));
        format!(
            "sp={permissions}&se={}&skoid={oid}&sktid={tid}&skt={}&ske={}&sks=b&skv={version}&sv=2021-12-02&sr=b&sig={signed}",
            percent_encode(&expiry),
            percent_encode(&start),
            percent_encode(&expiry)
        )
    };
    let value = key.element("Value");
    assert_eq!(blob.send(Request::get("/abc/b").sas(&sign("r", &value))).expect(200).text(), "x");
    blob.send(Request::delete("/abc/b").sas(&sign("r", &value)))
        .expect_error(403, "AuthorizationPermissionMismatch");
    let other = blob.credentials().key.clone();
    blob.send(Request::get("/abc/b").sas(&sign("r", &other))).expect_error(403, "AuthenticationFailed");
}

#[test]
fn only_the_holder_of_a_token_gets_one() {
    let server = start();
    let refused = server.blob().send(Request::post(PATH).xml(&key_info()));
    refused.expect_error(403, "AuthenticationFailed");
    let ask = Request::post(PATH).header("Authorization", &format!("Bearer {}", token()));
    let late = ask.xml("<KeyInfo><Expiry>2099-01-01T00:00:00Z</Expiry></KeyInfo>");
    server.blob().send(late).expect_error(400, "InvalidXmlNodeValue");
}
