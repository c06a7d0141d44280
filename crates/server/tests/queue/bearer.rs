//! Bearer tokens with the roles of the Queue service (§3): which role opens what, and which tokens open nothing.

use std::sync::Arc;

use protocol::auth::{BearerConfig, BearerValidator, KeySet, STORAGE_AUDIENCES};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use server::Current;
use testkit::{Message, Queues, Request, Response, TestServer, message_xml};

const ISSUER: &str = "https://issuer.example/";

/// An issuer made for one test.
struct Issuer(EcdsaKeyPair);

impl Issuer {
    fn new() -> Issuer {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Issuer(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap())
    }

    fn validator(&self) -> BearerValidator {
        let point = self.0.public_key().as_ref();
        let key = json!({"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": encode(&point[1..33]), "y": encode(&point[33..])});
        BearerValidator::new(BearerConfig {
            issuer: ISSUER.to_owned(),
            audiences: STORAGE_AUDIENCES.map(str::to_owned).to_vec(),
            keys: KeySet::parse(&json!({ "keys": [key] }).to_string()).unwrap(),
        })
    }

    fn token(&self, roles: Value, audience: &str) -> String {
        let claims =
            json!({"iss": ISSUER, "aud": audience, "nbf": 0, "exp": 4_000_000_000u64, "roles": roles});
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": "ec"});
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("Bearer {signed}.{}", encode(signature))
    }

    fn of_role(&self, role: &str) -> String {
        self.token(json!([role]), "https://storage.azure.com")
    }
}

/// Base64 for URLs, without padding.
fn encode(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.as_ref().chunks(3) {
        let number =
            group.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            text.push(char::from(DIGITS[(number >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}

/// Tokens count only over HTTPS: here a proxy in front is said to speak it.
fn start(issuer: &Issuer, is_https: bool) -> TestServer {
    let tokens = Arc::new(Current::new(issuer.validator()));
    let server = TestServer::options()
        .front(move |front| {
            front.tokens = Some(tokens);
            front.is_behind_tls_proxy = is_https;
        })
        .start();
    server.queue().create("abc");
    server
}

fn send(queue: &Queues<'_>, request: Request, token: &str) -> Response {
    queue.send(request.header("Authorization", token))
}

/// An operation: its name, the roles that it needs, and the request.
type Case = (&'static str, &'static str, fn(&Message) -> Request);

/// What each operation needs: R for Reader, C for Contributor, P for Message Processor, S for Message Sender.
const NEEDS: [Case; 15] = [
    ("List Queues", "RC", |_| Request::get("/?comp=list")),
    ("Get Queue Service Properties", "RC", |_| Request::get("/?restype=service&comp=properties")),
    ("Create Queue", "C", |_| Request::put("/abc")),
    ("Get Queue Metadata", "RC", |_| Request::get("/abc?comp=metadata")),
    ("Set Queue Metadata", "C", |_| Request::put("/abc?comp=metadata")),
    ("Put Message", "CS", |_| Request::post("/abc/messages").xml(&message_xml("a"))),
    ("Peek Messages", "RCP", |_| Request::get("/abc/messages?peekonly=true")),
    ("Get Messages", "CP", |_| Request::get("/abc/messages")),
    ("Delete Message", "CP", |message| message.delete("abc")),
    ("Update Message", "C", |message| message.hide("abc", 0)),
    ("Clear Messages", "C", |_| Request::delete("/abc/messages")),
    ("Delete Queue", "C", |_| Request::delete("/abc")),
    ("Set Queue Service Properties", "", |_| {
        Request::put("/?restype=service&comp=properties")
            .xml("<StorageServiceProperties><Cors /></StorageServiceProperties>")
    }),
    ("Get Queue ACL", "", |_| Request::get("/abc?comp=acl")),
    ("Set Queue ACL", "", |_| Request::put("/abc?comp=acl")),
];

#[test]
fn roles_open_what_they_say() {
    let issuer = Issuer::new();
    let server = start(&issuer, true);
    let queue = server.queue();
    for (letter, role) in [
        ("R", "Storage Queue Data Reader"),
        ("C", "Storage Queue Data Contributor"),
        ("P", "Storage Queue Data Message Processor"),
        ("S", "Storage Queue Data Message Sender"),
        ("-", "Storage Table Data Contributor"),
    ] {
        let token = issuer.of_role(role);
        for (name, roles, request) in NEEDS {
            queue.send(Request::put("/abc"));
            let message = queue.put("abc", "a");
            let answer = send(&queue, request(&message), &token);
            if roles.contains(letter) {
                assert_eq!(answer.status / 100, 2, "{role}: {name}\n{answer:?}");
            } else {
                assert!(matches!(answer.status, 403 | 404), "{role}: {name}\n{answer:?}");
                let is_told =
                    matches!(&*answer.error_code(), "AuthorizationPermissionMismatch" | "ResourceNotFound");
                assert!(is_told, "{role}: {name}\n{answer:?}");
            }
        }
    }
}

#[test]
fn the_audience_is_storage_or_the_accounts_own_queues() {
    let issuer = Issuer::new();
    let server = start(&issuer, true);
    let role = json!(["Storage Queue Data Contributor"]);
    let list = |audience: &str| {
        send(&server.queue(), Request::get("/?comp=list"), &issuer.token(role.clone(), audience))
    };
    for good in [
        "https://storage.azure.com",
        "https://storage.azure.com/",
        "https://devstoreaccount1.queue.core.windows.net",
    ] {
        list(good).expect(200);
    }
    for bad in [
        "https://devstoreaccount1.table.core.windows.net",
        "https://other.queue.core.windows.net",
        "https://example.org",
    ] {
        let refused = list(bad).expect_error(401, "InvalidAuthenticationInfo");
        assert!(refused.required("WWW-Authenticate").starts_with("Bearer "), "{bad}");
    }
}

#[test]
fn tokens_count_only_over_https_and_when_they_are_genuine() {
    let issuer = Issuer::new();
    let server = start(&issuer, false);
    let token = issuer.of_role("Storage Queue Data Contributor");
    send(&server.queue(), Request::get("/?comp=list"), &token).expect_error(401, "InvalidAuthenticationInfo");
    let server = start(&issuer, true);
    let list = |token: &str| send(&server.queue(), Request::get("/?comp=list"), token);
    list(&token).expect(200);
    let forged = Issuer::new().of_role("Storage Queue Data Contributor");
    for bad in [&*forged, "Bearer x", "Bearer a.b.c", &token[..token.len() - 4]] {
        assert_eq!(list(bad).expect(401).error_code(), "InvalidAuthenticationInfo", "{bad}");
    }
}

/// §2.4.
#[test]
fn tokens_came_with_2017_11_09() {
    let issuer = Issuer::new();
    let server = start(&issuer, true);
    let token = issuer.of_role("Storage Queue Data Contributor");
    let at = |version: &str| send(&server.queue(), Request::get("/?comp=list").version(version), &token);
    at("2017-11-09").expect(200);
    at("2025-11-05").expect(200);
    at("2017-07-29").expect_error(403, "AuthenticationFailed");
    at("2009-09-19").expect_error(403, "AuthenticationFailed");
}

#[test]
fn without_an_issuer_no_token_is_good() {
    let server = TestServer::start();
    let token = Issuer::new().of_role("Storage Queue Data Contributor");
    let refused = send(&server.queue(), Request::get("/?comp=list"), &token);
    refused.expect_error(401, "InvalidAuthenticationInfo");
}
