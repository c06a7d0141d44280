//! Bearer tokens (§8.6): an issuer's keys from a file or a URL, tokens signed by the tests, each claim wrong in turn,
//! the operations each role allows, the challenge for every other token, and `--oauth basic`, which checks no
//! signature.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use testkit::{Batch, Request, Response, TempDir, batch_parts, entity_json, entity_path, system_now};

use crate::running::Running;

const ISSUER: &str = "https://issuer.example/tenant/";
const READER: &str = "Storage Table Data Reader";
const CONTRIBUTOR: &str = "Storage Table Data Contributor";
/// Made for tests; used nowhere else.
const RSA_KEY_PEM: &str = include_str!("../../../protocol/src/auth/bearer/test_key.pem");

/// A token issuer with one RSA key and one elliptic-curve key.
struct Issuer {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    fn new() -> Issuer {
        let base64: String = RSA_KEY_PEM.lines().filter(|line| !line.starts_with('-')).collect();
        let random = SystemRandom::new();
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Issuer {
            rsa: RsaKeyPair::from_pkcs8(&STANDARD.decode(base64).unwrap()).unwrap(),
            ec: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).unwrap(),
        }
    }

    fn jwks(&self) -> String {
        let rsa = PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let point = self.ec.public_key().as_ref();
        json!({"keys": [
            {"kty": "RSA", "use": "sig", "kid": "rsa", "n": encode(&rsa.n), "e": encode(&rsa.e)},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "x": encode(&point[1..33]), "y": encode(&point[33..])},
        ]})
        .to_string()
    }

    /// Signs with the algorithm that the header names in `alg`; with RSA if it names another.
    fn sign(&self, header: Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let random = SystemRandom::new();
        let signature = match header["alg"].as_str() {
            Some("ES256") => self.ec.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            _ => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
        format!("{signed}.{}", encode(signature))
    }

    fn rs256(&self, claims: &Value) -> String {
        self.sign(json!({"alg": "RS256", "kid": "rsa", "typ": "JWT"}), claims)
    }

    fn es256(&self, claims: &Value) -> String {
        self.sign(json!({"alg": "ES256", "kid": "ec", "typ": "JWT"}), claims)
    }
}

fn now() -> u64 {
    system_now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// Valid claims with this role.
fn claims(role: &str) -> Value {
    json!({
        "iss": ISSUER, "aud": "https://storage.azure.com", "exp": now() + 3600, "nbf": now() - 10, "iat": now() - 10,
        "roles": [role], "oid": "5c4d0b8e-0000-4000-8000-000000000001",
    })
}

/// Valid claims with one of them changed; `null` removes it.
fn changed(name: &str, value: Value) -> Value {
    let mut claims = claims(CONTRIBUTOR);
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

/// A server over TLS that trusts an issuer whose keys are in a file.
struct World {
    data: TempDir,
    issuer: Issuer,
    server: Running,
}

fn configure(data: &Path, jwks: &str, more: &str) -> PathBuf {
    let file = data.join("lazulite.toml");
    let text = format!("[oauth]\nissuer = \"{ISSUER}\"\njwks = \"{jwks}\"\n{more}");
    std::fs::write(&file, text).unwrap();
    file
}

impl World {
    fn new() -> World {
        let (data, issuer) = (TempDir::new().unwrap(), Issuer::new());
        let keys = data.path().join("keys.json");
        std::fs::write(&keys, issuer.jwks()).unwrap();
        World::with_keys(data, issuer, keys.to_str().unwrap(), "")
    }

    fn with_keys(data: TempDir, issuer: Issuer, jwks: &str, more: &str) -> World {
        let file = configure(data.path(), jwks, more);
        let server =
            Running::over(&data.path().join("store"), &["--https", "--config", file.to_str().unwrap()]);
        let world = World { data, issuer, server };
        let create = Request::post("/Tables").json(r#"{"TableName":"mytable"}"#);
        world.server.send_over_tls(&world.authority(), create).expect(201);
        let insert = Request::post("/mytable").json(&entity_json("p", "r", ""));
        world.server.send_over_tls(&world.authority(), insert).expect(201);
        world
    }

    fn authority(&self) -> PathBuf {
        self.data.path().join("store/tls/ca.pem")
    }

    fn send(&self, token: &str, request: Request) -> Response {
        let request = request.header("Authorization", &format!("Bearer {token}"));
        let request = request.header("x-ms-version", "2020-12-06");
        self.server.send_over_tls(&self.authority(), request)
    }
}

fn read() -> Request {
    Request::get("/mytable(PartitionKey='p',RowKey='r')")
}

/// The response is the live service's recorded challenge, word for word.
#[track_caller]
fn check_challenge(response: Response) {
    let message = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    let response = response.expect_message(401, "InvalidAuthenticationInfo", message);
    assert_eq!(response.header("x-ms-error-code"), Some("InvalidAuthenticationInfo"));
    let challenge = response.required("WWW-Authenticate");
    assert!(challenge.starts_with("Bearer authorization_uri=https://"), "{challenge}");
    assert!(challenge.ends_with(" resource_id=https://storage.azure.com"), "{challenge}");
    assert_eq!(response.header("x-ms-version"), None);
}

#[test]
fn tokens_of_both_kinds_open_the_door() {
    let world = World::new();
    for token in [world.issuer.rs256(&claims(CONTRIBUTOR)), world.issuer.es256(&claims(READER))] {
        world.send(&token, read()).expect(200);
        // Service versions that send no challenge accept tokens too.
        let request = read().header("Authorization", &format!("Bearer {token}"));
        world.server.send_over_tls(&world.authority(), request).expect(200);
    }
}

#[test]
fn each_claim_must_be_right() {
    let world = World::new();
    let accepted = |claims: Value| drop(world.send(&world.issuer.rs256(&claims), read()).expect(200));
    let refused = |claims: Value| check_challenge(world.send(&world.issuer.rs256(&claims), read()));
    for audience in [
        json!("https://storage.azure.com"),
        json!("https://storage.azure.com/"),
        json!("https://devstoreaccount1.table.core.windows.net"),
        json!("e406a681-f3d4-42a8-90b6-c2b029497af1"),
        json!(["https://other.example", "https://storage.azure.com"]),
    ] {
        accepted(changed("aud", audience));
    }
    for audience in [
        Value::Null,
        json!(""),
        json!([]),
        json!(7),
        json!("https://storage.azure.com.evil.example"),
        json!("https://otheraccount.table.core.windows.net"),
        json!("https://management.azure.com"),
    ] {
        refused(changed("aud", audience));
    }
    for issuer in [
        Value::Null,
        json!(""),
        json!("https://issuer.example/tenant"),
        json!("https://evil.example/"),
        json!(7),
    ] {
        refused(changed("iss", issuer));
    }
    for expiry in [Value::Null, json!(0), json!(now() - 3600), json!("soon"), json!(now() - 120)] {
        refused(changed("exp", expiry));
    }
    for start in [json!(now() + 3600), json!("soon")] {
        refused(changed("nbf", start));
    }
    accepted(changed("nbf", Value::Null));
    accepted(changed("exp", json!(now() + 10)));
}

#[test]
fn a_signature_is_checked_with_the_key_that_it_names() {
    let world = World::new();
    let (issuer, stranger) = (&world.issuer, Issuer::new());
    let good = claims(CONTRIBUTOR);
    let token = issuer.rs256(&good);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let forged =
        format!("{header}.{}.{signature}", encode(changed("oid", json!("someone else")).to_string()));
    let none = encode(json!({"alg": "none", "kid": "rsa"}).to_string());
    for bad in [
        forged,
        stranger.es256(&good),
        issuer.sign(json!({"alg": "RS256", "kid": "other"}), &good),
        issuer.sign(json!({"alg": "RS256"}), &good),
        issuer.sign(json!({"alg": "RS256", "kid": "ec"}), &good),
        issuer.sign(json!({"alg": "ES256", "kid": "rsa"}), &good),
        issuer.sign(json!({"alg": "HS256", "kid": "rsa"}), &good),
        issuer.sign(json!({"alg": "RS512", "kid": "rsa"}), &good),
        issuer.sign(json!({"alg": "RS256", "kid": "rsa", "crit": ["x"]}), &good),
        format!("{none}.{}.", encode(good.to_string())),
        format!("{signed}."),
        format!("{signed}.AAAA"),
        signed.to_owned(),
        "a.b.c".to_owned(),
        "nonsense".to_owned(),
        "x".repeat(40_000),
    ] {
        check_challenge(world.send(&bad, read()));
    }
    world.send(&token, read()).expect(200);
}

#[test]
fn a_token_that_is_no_good_is_answered_as_its_version_expects() {
    let world = World::new();
    let expired = world.issuer.rs256(&changed("exp", json!(now() - 3600)));
    let bearer = format!("Bearer {expired}");
    let send = |request: Request| world.server.send_over_tls(&world.authority(), request);
    for version in ["2019-12-12", "2020-12-06", "2026-06-06"] {
        check_challenge(send(read().header("Authorization", &bearer).header("x-ms-version", version)));
    }
    for version in ["2019-02-02", "2019-07-07"] {
        let response = send(read().header("Authorization", &bearer).header("x-ms-version", version));
        let response = response.expect_error(403, "AuthenticationFailed");
        assert_eq!(response.header("WWW-Authenticate"), None);
    }
    // Only the log says why, and it does not contain the token.
    let line = world.server.line_with("the token has expired");
    assert!(line.contains("audit"), "{line}");
    assert!(!world.server.stop().contains(&expired));
}

/// Status and error code of an operation, also of the only one in a batch.
fn outcome(world: &World, token: &str, request: Request) -> (u16, String) {
    let response = world.send(token, request);
    let response = if response.status == 202 && response.required("Content-Type").starts_with("multipart") {
        batch_parts(&response).remove(0)
    } else {
        response
    };
    let code = if response.status >= 400 { response.error_code() } else { String::new() };
    (response.status, code)
}

#[test]
fn roles_say_what_may_be_done() {
    let world = World::new();
    let path = entity_path("mytable", "p", "r");
    let reads = || {
        vec![
            (Request::get("/Tables"), 200),
            (Request::get("/Tables('mytable')"), 200),
            (Request::get("/mytable()"), 200),
            (read(), 200),
            (Batch::new().operation("GET", "/mytable()", &[], None).query_request(), 200),
        ]
    };
    let writes = || {
        vec![
            (Request::post("/Tables").json(r#"{"TableName":"made"}"#), 201),
            (Request::delete("/Tables('made')"), 204),
            (Request::post("/mytable").json(&entity_json("p", "new", "")), 201),
            (Request::put(&path).json("{}"), 204),
            (Request::merge(&path).json("{}"), 204),
            (Request::put(&path).json("{}").header("If-Match", "*"), 204),
            (Batch::new().insert("mytable", &entity_json("p", "b", "")).request(), 204),
            (Request::delete(&entity_path("mytable", "p", "new")).header("If-Match", "*"), 204),
        ]
    };
    let refused = (403, "AuthorizationPermissionMismatch".to_owned());
    let reader = world.issuer.rs256(&claims(READER));
    let by_id = world.issuer.rs256(&claims("76199698-9eea-4c19-bc75-cec21354c6b6"));
    let contributor = world.issuer.rs256(&claims(CONTRIBUTOR));
    let none =
        [claims("Storage Blob Data Contributor"), changed("roles", Value::Null), changed("roles", json!([]))];
    let none = none.map(|claims| world.issuer.rs256(&claims));
    for (request, status) in reads() {
        for token in [&reader, &by_id, &contributor] {
            assert_eq!(
                outcome(&world, token, request.clone()).0,
                status,
                "{} {}",
                request.method,
                request.target
            );
        }
        for token in &none {
            assert_eq!(outcome(&world, token, request.clone()), refused, "{}", request.target);
        }
    }
    for (request, status) in writes() {
        for token in [&reader, &by_id].into_iter().chain(&none) {
            assert_eq!(
                outcome(&world, token, request.clone()),
                refused,
                "{} {}",
                request.method,
                request.target
            );
        }
        assert_eq!(
            outcome(&world, &contributor, request.clone()).0,
            status,
            "{} {}",
            request.method,
            request.target
        );
    }
    // With two roles, the one that allows more counts.
    let both = world.issuer.rs256(&changed("roles", json!([READER, CONTRIBUTOR])));
    assert_eq!(outcome(&world, &both, Request::put(&path).json("{}")).0, 204);
    // Only account keys reach access policies. For a token the resource does not even exist.
    for token in [&reader, &contributor] {
        for request in [Request::get("/mytable?comp=acl"), Request::put("/mytable?comp=acl")] {
            assert_eq!(outcome(&world, token, request), (404, "ResourceNotFound".to_owned()));
        }
    }
}

#[test]
fn keys_come_from_a_url_too() {
    let (data, issuer) = (TempDir::new().unwrap(), Issuer::new());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys?x=1", listener.local_addr().unwrap());
    let body = issuer.jwks();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let mut buffer = [0; 1024];
        while !asked.ends_with(b"\r\n\r\n") {
            let count = stream.read(&mut buffer).unwrap();
            asked.extend_from_slice(&buffer[..count]);
        }
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        String::from_utf8(asked).unwrap()
    });
    let world = World::with_keys(data, issuer, &url, "audiences = [\"https://tables.example\"]\n");
    assert!(served.join().unwrap().starts_with("GET /keys?x=1 HTTP/1."));
    let token = world.issuer.es256(&changed("aud", json!("https://tables.example")));
    world.send(&token, read()).expect(200);
    // A configured audience replaces the default ones.
    check_challenge(world.send(&world.issuer.es256(&claims(READER)), read()));
}

#[test]
fn keys_that_cannot_be_had_are_named() {
    let data = TempDir::new().unwrap();
    let keys = data.path().join("keys.json");
    let check = |jwks: &str, part: &str| {
        let file = configure(data.path(), jwks, "");
        let arguments = [
            "--in-memory",
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
            "--config",
            file.to_str().unwrap(),
        ];
        let sentence = crate::refusal(&arguments, &[]);
        assert!(sentence.contains(part), "{jwks}: {sentence}");
    };
    check("absent.json", "absent.json");
    std::fs::write(&keys, "nonsense").unwrap();
    check(keys.to_str().unwrap(), "keys.json");
    std::fs::write(&keys, "{}").unwrap();
    check(keys.to_str().unwrap(), "keys");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    check(&format!("http://{closed}/keys"), &closed.to_string());
}

#[test]
fn tokens_travel_over_https_only() {
    let (data, issuer) = (TempDir::new().unwrap(), Issuer::new());
    let keys = data.path().join("keys.json");
    std::fs::write(&keys, issuer.jwks()).unwrap();
    let file = configure(data.path(), keys.to_str().unwrap(), "");
    let arguments = [
        "--in-memory",
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--config",
        file.to_str().unwrap(),
    ];
    let server = Running::start(&arguments, &[]);
    let token = issuer.rs256(&claims(CONTRIBUTOR));
    let request = Request::get("/Tables").header("Authorization", &format!("Bearer {token}"));
    check_challenge(server.send(request.clone().header("x-ms-version", "2020-12-06")));
    server.send(request).expect_error(403, "AuthenticationFailed");
}

#[test]
fn without_an_issuer_every_token_is_challenged() {
    let data = TempDir::new().unwrap();
    let server = Running::over(data.path(), &["--https"]);
    let token = Issuer::new().rs256(&claims(CONTRIBUTOR));
    let request = Request::get("/Tables").header("Authorization", &format!("Bearer {token}"));
    let request = request.header("x-ms-version", "2020-12-06");
    check_challenge(server.send_over_tls(&data.path().join("tls/ca.pem"), request));
}

#[test]
fn the_basic_way_checks_everything_but_the_signature() {
    let data = TempDir::new().unwrap();
    let server = Running::over(data.path(), &["--https", "--oauth", "basic"]);
    server.line_with("--oauth basic accepts bearer tokens that anybody can make");
    let stranger = Issuer::new();
    let azure = |name: &str, value: Value| {
        let mut claims =
            changed("iss", json!("https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/"));
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        let bearer = format!("Bearer {}", stranger.rs256(&claims));
        let request =
            Request::post("/Tables").json(r#"{"TableName":"made"}"#).header("Authorization", &bearer);
        let response = server
            .send_over_tls(&data.path().join("tls/ca.pem"), request.header("x-ms-version", "2020-12-06"));
        server.send_over_tls(&data.path().join("tls/ca.pem"), Request::delete("/Tables('made')"));
        response
    };
    azure("roles", Value::Null).expect(201);
    for (name, value) in [
        ("iss", json!("https://evil.example/")),
        ("aud", json!("https://management.azure.com")),
        ("exp", json!(now() - 3600)),
        ("nbf", json!(now() + 3600)),
        ("exp", Value::Null),
        ("iat", Value::Null),
        ("aud", Value::Null),
    ] {
        check_challenge(azure(name, value));
    }
}
