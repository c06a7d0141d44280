//! Bearer tokens that are wrong in every way we know of, signed by an issuer made for the tests.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::json;

use super::*;
use crate::table::{self, KIND};

const ISSUER: &str = "https://issuer.example/";
const AUDIENCE: &str = "https://storage.azure.com";
const TENANT: &str = "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/";
/// 2025-06-01T12:00:00Z.
const NOW: u64 = 1_748_779_200;

/// Made for these tests and used nowhere else.
const RSA_KEY_PEM: &str = include_str!("test_key.pem");

/// An issuer with one key of each kind.
struct Issuer {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
}

impl Issuer {
    fn new() -> Issuer {
        let base64: String = RSA_KEY_PEM.lines().filter(|line| !line.starts_with('-')).collect();
        let pkcs8 = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
        let random = SystemRandom::new();
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Issuer {
            rsa: RsaKeyPair::from_pkcs8(&pkcs8).unwrap(),
            ec: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).unwrap(),
        }
    }

    fn jwks(&self) -> Value {
        let components = RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let point = self.ec.public_key().as_ref();
        json!({"keys": [
            {"kty": "RSA", "use": "sig", "kid": "rsa", "n": encode(&components.n), "e": encode(&components.e), "x5t": "x"},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": encode(&point[1..33]), "y": encode(&point[33..])},
            {"kty": "oct", "kid": "oct", "k": "AAAA"},
        ]})
    }

    fn validator(&self) -> BearerValidator {
        BearerValidator::new(BearerConfig {
            issuer: ISSUER.to_owned(),
            audiences: STORAGE_AUDIENCES.map(str::to_owned).to_vec(),
            keys: KeySet::parse(&self.jwks().to_string()).unwrap(),
        })
    }

    /// A token with this header, signed with the key that `signer` names.
    fn sign(&self, signer: &str, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let random = SystemRandom::new();
        let signature = match signer {
            "rsa" => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
            "ec" => self.ec.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            // The mistake of libraries that use the public key as an HMAC secret.
            "hmac" => {
                let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, self.ec.public_key().as_ref());
                ring::hmac::sign(&secret, signed.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{signed}.{}", encode(signature))
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn header_of(kind: &str) -> Value {
    match kind {
        "rsa" => json!({"typ": "JWT", "alg": "RS256", "kid": "rsa"}),
        _ => json!({"typ": "JWT", "alg": "ES256", "kid": "ec"}),
    }
}

/// Valid claims with some replaced; null removes a claim.
fn claims(changes: Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "iat": NOW - 60, "nbf": NOW - 60, "exp": NOW + 3600,
        "roles": ["Storage Table Data Reader"],
    });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

fn validate(validator: &BearerValidator, token: &str) -> Result<Grant, BearerError> {
    let account = AccountName::parse("devstoreaccount1").unwrap();
    let connection = Connection { peer: [127, 0, 0, 1].into(), is_https: true };
    validator.validate(token, &KIND, &account, &connection, since_1970(NOW))
}

const READER: Result<Grant, BearerError> = Ok(Grant::Roles(table::READER));
const CONTRIBUTOR: Result<Grant, BearerError> = Ok(Grant::Roles(table::CONTRIBUTOR));

/// Checks the same claims signed with each kind of key, and in an unsigned token.
#[track_caller]
fn check_claims(changes: Value, expected: Result<Grant, BearerError>) {
    let issuer = Issuer::new();
    let claims = claims(changes);
    for kind in ["rsa", "ec"] {
        let token = issuer.sign(kind, &header_of(kind), &claims);
        assert_eq!(validate(&issuer.validator(), &token), expected, "{kind} {claims}");
    }
}

#[track_caller]
fn check_basic(changes: Value, expected: Result<Grant, BearerError>) {
    let mut claims = claims(json!({"iss": TENANT, "roles": null}));
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let token = Issuer::new().sign("nobody", &json!({"alg": "none"}), &claims);
    assert_eq!(validate(&BearerValidator::basic(), &token), expected, "{claims}");
}

#[test]
fn roles_are_known_by_name_and_by_id() {
    check_claims(json!({}), READER);
    check_claims(json!({"roles": "Storage Table Data Reader"}), READER);
    check_claims(json!({"roles": ["76199698-9eea-4c19-bc75-cec21354c6b6"]}), READER);
    check_claims(json!({"roles": ["Storage Table Data Contributor"]}), CONTRIBUTOR);
    check_claims(json!({"roles": ["0A9A7E1F-b9d0-4cc4-a60d-0319b160aaa3"]}), CONTRIBUTOR);
    check_claims(
        json!({"roles": ["Storage Table Data Contributor", 7, "Owner", "Storage Table Data Reader"]}),
        Ok(Grant::Roles(table::READER.or(table::CONTRIBUTOR))),
    );
    for none in [json!(null), json!([]), json!(["Owner"]), json!(7), json!({})] {
        check_claims(json!({"roles": none}), Ok(Grant::Roles(RoleSet::NONE)));
    }
}

#[test]
fn a_token_is_good_from_nbf_until_exp_with_some_leeway() {
    let leeway = LEEWAY_SECONDS;
    check_claims(json!({"exp": NOW - leeway + 1}), READER);
    check_claims(json!({"exp": NOW - leeway}), Err(BearerError::Expired));
    check_claims(json!({"exp": 0}), Err(BearerError::Expired));
    check_claims(json!({"exp": -1}), Err(BearerError::Expired));
    check_claims(json!({"exp": u64::MAX}), READER);
    check_claims(json!({"exp": 1e300}), READER);
    check_claims(json!({"exp": NOW as f64 + 0.5}), READER);
    check_claims(json!({"exp": null}), Err(BearerError::MissingClaim("exp")));
    check_claims(json!({"exp": (NOW + 60).to_string()}), Err(BearerError::MissingClaim("exp")));
    check_claims(json!({"nbf": NOW + leeway}), READER);
    check_claims(json!({"nbf": NOW + leeway + 1}), Err(BearerError::NotYetValid));
    check_claims(json!({"nbf": u64::MAX}), Err(BearerError::NotYetValid));
    check_claims(json!({"nbf": null, "iat": null}), READER);
    check_claims(json!({"nbf": "soon"}), Err(BearerError::MissingClaim("nbf")));
}

#[test]
fn the_issuer_is_exactly_the_configured_one() {
    for other in [json!(null), json!(""), json!("https://issuer.example"), json!(TENANT), json!([ISSUER])] {
        check_claims(json!({"iss": other}), Err(BearerError::Issuer));
    }
}

#[test]
fn a_token_is_for_storage_or_for_this_account() {
    for audience in [
        json!("https://storage.azure.com/"),
        json!("e406a681-f3d4-42a8-90b6-c2b029497af1"),
        json!("https://devstoreaccount1.table.core.windows.net"),
        json!("https://devstoreaccount1.table.core.usgovcloudapi.net/"),
        json!(["https://graph.microsoft.com", AUDIENCE]),
    ] {
        check_claims(json!({"aud": audience}), READER);
        check_basic(json!({"aud": audience}), CONTRIBUTOR);
    }
    for other in [
        json!(null),
        json!(""),
        json!("/"),
        json!([]),
        json!(7),
        json!("https://storage.azure.com//"),
        json!("https://storage.azure.com.example"),
        json!("https://another.table.core.windows.net"),
        json!("https://{account}.table.core.windows.net"),
        json!("https://devstoreaccount1.blob.core.windows.net"),
        json!(["https://graph.microsoft.com"]),
    ] {
        check_claims(json!({"aud": other}), Err(BearerError::Audience));
        check_basic(json!({"aud": other}), Err(BearerError::Audience));
    }
}

#[test]
fn algorithms_are_two_and_each_has_its_kind_of_key() {
    let issuer = Issuer::new();
    let check = |signer: &str, header: Value, expected: Result<Grant, BearerError>| {
        let token = issuer.sign(signer, &header, &claims(json!({})));
        assert_eq!(validate(&issuer.validator(), &token), expected, "{signer} {header}");
    };
    check("rsa", json!({"alg": "RS256", "kid": "rsa"}), READER);
    check("ec", json!({"alg": "ES256", "kid": "ec"}), READER);

    check("rsa", json!({"alg": "ES256", "kid": "rsa"}), Err(BearerError::Algorithm));
    check("ec", json!({"alg": "RS256", "kid": "ec"}), Err(BearerError::Algorithm));
    for algorithm in ["none", "None", "HS256", "RS384", "PS256", "ES384", "EdDSA", "rs256", ""] {
        for (signer, id) in [("rsa", "rsa"), ("hmac", "ec"), ("nobody", "rsa")] {
            check(signer, json!({"alg": algorithm, "kid": id}), Err(BearerError::Algorithm));
        }
    }
    check("rsa", json!({"kid": "rsa"}), Err(BearerError::Algorithm));
    check("rsa", json!({"alg": 256, "kid": "rsa"}), Err(BearerError::Algorithm));

    check("rsa", json!({"alg": "RS256"}), Err(BearerError::UnknownKey));
    check("rsa", json!({"alg": "RS256", "kid": "RSA"}), Err(BearerError::UnknownKey));
    check("hmac", json!({"alg": "RS256", "kid": "oct"}), Err(BearerError::UnknownKey));
    check("rsa", json!({"alg": "RS256", "kid": "rsa", "crit": ["b64"]}), Err(BearerError::Malformed));

    check("ec", json!({"alg": "RS256", "kid": "rsa"}), Err(BearerError::Signature));
    check("rsa", json!({"alg": "ES256", "kid": "ec"}), Err(BearerError::Signature));
    check("hmac", json!({"alg": "ES256", "kid": "ec"}), Err(BearerError::Signature));
    check("nobody", json!({"alg": "RS256", "kid": "rsa"}), Err(BearerError::Signature));
    check("nobody", json!({"alg": "ES256", "kid": "ec"}), Err(BearerError::Signature));
}

#[test]
fn a_change_to_any_part_breaks_the_signature() {
    let (issuer, other) = (Issuer::new(), Issuer::new());
    for kind in ["rsa", "ec"] {
        let token = issuer.sign(kind, &header_of(kind), &claims(json!({})));
        assert_eq!(validate(&issuer.validator(), &token), READER);
        let parts: Vec<&str> = token.split('.').collect();

        let more = encode(claims(json!({"roles": ["Storage Table Data Contributor"]})).to_string());
        let changed = format!("{}.{more}.{}", parts[0], parts[2]);
        assert_eq!(validate(&issuer.validator(), &changed), Err(BearerError::Signature));

        let mut header = header_of(kind);
        header["typ"] = json!("at+jwt");
        let changed = format!("{}.{}.{}", encode(header.to_string()), parts[1], parts[2]);
        assert_eq!(validate(&issuer.validator(), &changed), Err(BearerError::Signature));

        let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        for at in [0, signature.len() / 2, signature.len() - 1] {
            let mut changed = signature.clone();
            changed[at] ^= 1;
            let changed = format!("{}.{}.{}", parts[0], parts[1], encode(changed));
            assert_eq!(validate(&issuer.validator(), &changed), Err(BearerError::Signature));
        }
        let cut = format!("{}.{}.{}", parts[0], parts[1], encode(&signature[1..]));
        assert_eq!(validate(&issuer.validator(), &cut), Err(BearerError::Signature));
    }
    let token = other.sign("ec", &header_of("ec"), &claims(json!({})));
    assert_eq!(validate(&issuer.validator(), &token), Err(BearerError::Signature));
}

#[test]
fn what_is_no_compact_jwt_is_refused() {
    let issuer = Issuer::new();
    let object = encode("{}");
    let list = encode("[]");
    let long = "A".repeat(TOKEN_BYTES_MAX);
    let deep = encode("[".repeat(10_000));
    for bad in [
        "",
        ".",
        "..",
        "...",
        &object,
        &format!("{object}.{object}"),
        &format!("{object}.{object}.{object}.{object}"),
        &format!("{list}.{object}."),
        &format!("{object}.{list}."),
        &format!("{object}.{deep}."),
        &format!("{object}.{object}.+"),
        &format!("{object}.{object}.AA=="),
        &format!("{object}.{object}.{long}"),
        &format!("{object}. {object}."),
        "é.é.é",
    ] {
        for validator in [issuer.validator(), BearerValidator::basic()] {
            let shown = &bad[..bad.len().min(40)];
            assert_eq!(validate(&validator, bad), Err(BearerError::Malformed), "{shown}");
        }
    }
}

#[test]
fn tokens_need_https() {
    let account = AccountName::parse("devstoreaccount1").unwrap();
    let connection = Connection { peer: [127, 0, 0, 1].into(), is_https: false };
    let issuer = Issuer::new();
    let token = issuer.sign("rsa", &header_of("rsa"), &claims(json!({})));
    for validator in [issuer.validator(), BearerValidator::basic()] {
        let verdict = validator.validate(&token, &KIND, &account, &connection, since_1970(NOW));
        assert_eq!(verdict, Err(BearerError::PlainHttp));
    }
}

#[test]
fn basic_believes_azure_tokens_without_their_signature() {
    check_basic(json!({}), CONTRIBUTOR);
    for prefix in AZURE_ISSUER_PREFIXES {
        check_basic(json!({"iss": format!("{prefix}tenant/")}), CONTRIBUTOR);
    }
    for other in [json!(null), json!(""), json!(ISSUER), json!("http://sts.windows.net/x/"), json!(7)] {
        check_basic(json!({"iss": other}), Err(BearerError::Issuer));
    }
    for name in ["nbf", "iat", "exp"] {
        check_basic(json!({name: null}), Err(BearerError::MissingClaim(name)));
        check_basic(json!({name: "x"}), Err(BearerError::MissingClaim(name)));
    }
    check_basic(json!({"exp": NOW - 3600}), Err(BearerError::Expired));
    check_basic(json!({"nbf": NOW + 3600}), Err(BearerError::NotYetValid));
}

#[test]
fn key_sets_leave_out_what_cannot_verify() {
    let count = |keys: Value| KeySet::parse(&json!({"keys": keys}).to_string()).map(|set| set.0.len());
    let jwks = Issuer::new().jwks();
    let (rsa, ec) = (&jwks["keys"][0], &jwks["keys"][1]);
    let changed = |key: &Value, name: &str, value: Value| {
        let mut key = key.clone();
        key[name] = value;
        json!([key])
    };
    assert_eq!(count(jwks["keys"].clone()), Ok(2));
    assert_eq!(count(json!([])), Ok(0));
    assert_eq!(count(json!([1, "x", {}])), Ok(0));
    assert_eq!(count(changed(rsa, "use", json!("enc"))), Ok(0));
    assert_eq!(count(changed(rsa, "alg", json!("RS512"))), Ok(0));
    assert_eq!(count(changed(rsa, "alg", json!("RS256"))), Ok(1));
    assert_eq!(count(changed(rsa, "kid", json!(null))), Ok(0));
    assert_eq!(count(changed(rsa, "kty", json!("OKP"))), Ok(0));
    assert_eq!(count(changed(ec, "crv", json!("P-384"))), Ok(0));
    for (key, name) in [(rsa, "n"), (rsa, "e"), (ec, "x"), (ec, "y")] {
        for bad in [json!(null), json!(""), json!("+"), json!(7)] {
            let error = count(changed(key, name, bad)).unwrap_err();
            let id = key["kid"].as_str().unwrap();
            assert_eq!(error.to_string(), format!("key {id} has no usable {name}"));
        }
    }
    assert_eq!(
        count(changed(ec, "x", json!("AAAA"))).unwrap_err().to_string(),
        "key ec is not a point of P-256"
    );
    for bad in ["", "{}", "[]", "{\"keys\":{}}", "<html>"] {
        assert!(KeySet::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_modulus_may_begin_with_zeros_but_not_be_short() {
    let issuer = Issuer::new();
    let components = RsaPublicKeyComponents::<Vec<u8>>::from(issuer.rsa.public());
    let token = issuer.sign("rsa", &header_of("rsa"), &claims(json!({})));
    let check = |modulus: &[u8], expected: Result<Grant, BearerError>| {
        let keys =
            json!({"keys": [{"kty": "RSA", "kid": "rsa", "n": encode(modulus), "e": encode(&components.e)}]});
        let validator = BearerValidator::new(BearerConfig {
            issuer: ISSUER.to_owned(),
            audiences: vec![AUDIENCE.to_owned()],
            keys: KeySet::parse(&keys.to_string()).unwrap(),
        });
        assert_eq!(validate(&validator, &token), expected);
    };
    check(&components.n, READER);
    check(&[&[0, 0], &components.n[..]].concat(), READER);
    check(&components.n[..128], Err(BearerError::Signature));
    check(&[0], Err(BearerError::Signature));
}

#[test]
fn each_service_has_roles_and_audiences_of_its_own() {
    let issuer = Issuer::new();
    let account = AccountName::parse("devstoreaccount1").unwrap();
    let connection = Connection { peer: [127, 0, 0, 1].into(), is_https: true };
    let check = |kind: &ServiceKind, audience: &str, role: &str, expected: Result<RoleSet, BearerError>| {
        let claims = claims(json!({"aud": audience, "roles": role}));
        let token = issuer.sign("rsa", &header_of("rsa"), &claims);
        let verdict = issuer.validator().validate(&token, kind, &account, &connection, since_1970(NOW));
        assert_eq!(verdict, expected.map(Grant::Roles), "{} {audience} {role}", kind.label);
    };
    use crate::{blob, queue};
    let sender = "Storage Queue Data Message Sender";
    check(&queue::KIND, AUDIENCE, sender, Ok(queue::MESSAGE_SENDER));
    check(&queue::KIND, "https://devstoreaccount1.queue.core.windows.net", sender, Ok(queue::MESSAGE_SENDER));
    check(
        &queue::KIND,
        "https://devstoreaccount1.table.core.windows.net",
        sender,
        Err(BearerError::Audience),
    );
    check(&queue::KIND, AUDIENCE, "Storage Table Data Contributor", Ok(RoleSet::NONE));
    check(&blob::KIND, AUDIENCE, "Storage Blob Data Owner", Ok(blob::OWNER));
    check(&KIND, AUDIENCE, sender, Ok(RoleSet::NONE));
}

#[test]
fn a_token_tells_whose_it_is() {
    let token = |claims: &str| {
        let part = |json: &str| URL_SAFE_NO_PAD.encode(json);
        format!("{}.{}.{}", part("{}"), part(claims), part("x"))
    };
    let oid = "c9da6455-213d-42c9-9a79-3e9149a57833";
    let (caller, tenant) = bearer_identity(&token(&format!("{{\"oid\":\"{oid}\",\"tid\":\"no\"}}"))).unwrap();
    assert_eq!((caller.to_string(), tenant), (oid.to_owned(), Guid([0; 16])));
    assert!(bearer_identity("x").is_err());
}
