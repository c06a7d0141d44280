//! Bearer tokens, and the issuer's key sets.
//!
//! An input that begins with `{` is a header and claims, each on a line, and a signature. They are encoded here, so
//! that mutations reach the JSON. Any other input is the token itself.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use protocol::auth::{
    BearerConfig, BearerError, BearerValidator, Connection, Grant, KeySet, STORAGE_AUDIENCES,
};
use protocol::common::{AccountName, DateTime};
use protocol::table::{CONTRIBUTOR, KIND};

use crate::golden::distinct;
use crate::{ACCOUNT, Golden, Outcome, Target, as_text, cut_line};

pub const TARGET: Target = Target {
    name: "bearer",
    run,
    // Base64 turns three bytes into four, and the server refuses longer tokens.
    input_bytes_max: 24 * 1024,
    tokens: &[
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"\"",
        b"\\",
        b"\\u0000",
        b".",
        b"..",
        b"=",
        b"\n",
        b"\"alg\":\"RS256\"",
        b"\"alg\":\"ES256\"",
        b"\"alg\":\"none\"",
        b"\"kid\":\"ec\"",
        b"\"kid\":\"rsa\"",
        b"\"crit\":[]",
        b"\"iss\":\"https://sts.windows.net/t/\"",
        b"\"aud\":",
        b"https://storage.azure.com",
        b"https://devstoreaccount1.table.core.windows.net/",
        b"\"exp\":",
        b"\"nbf\":",
        b"\"iat\":",
        b"\"roles\":",
        b"Storage Table Data Reader",
        b"0",
        b"-1",
        b"1e300",
        b"1e999",
        b"18446744073709551615",
        b"1597962023",
        b"4102444800",
        b"\"1\"",
        b"null",
        b"true",
        b"\"keys\":",
        b"\"kty\":\"RSA\"",
        b"\"n\":",
        b"\"e\":\"AQAB\"",
        b"eyJhbGciOiJub25lIn0",
        b"AAAA",
        b"\xFF",
    ],
    seeds,
};

/// Two public keys; this target does not need the private ones.
const KEY_SET: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","kid":"ec","alg":"ES256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},{"kty":"RSA","use":"sig","kid":"rsa","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB"}]}"#;

static ISSUER: LazyLock<BearerValidator> = LazyLock::new(|| {
    BearerValidator::new(BearerConfig {
        issuer: "https://sts.windows.net/t/".to_owned(),
        audiences: STORAGE_AUDIENCES.map(str::to_owned).to_vec(),
        keys: KeySet::parse(KEY_SET).expect("the key set is good"),
    })
});

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let claims = r#"{"iss":"https://sts.windows.net/t/","aud":"https://storage.azure.com","exp":4102444800,"nbf":1500000000,"iat":1500000000,"roles":["Storage Table Data Reader"]}"#;
    let listed = r#"{"aud":["x","https://devstoreaccount1.table.core.windows.net/"],"iss":"https://sts.windows.net/","exp":4102444800.5,"nbf":0,"iat":1}"#;
    let by_hand = [
        format!("{{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"JWT\"}}\n{claims}\nAAAA"),
        format!("{{\"alg\":\"ES256\",\"kid\":\"ec\"}}\n{claims}\n"),
        format!("{{}}\n{listed}\n"),
        format!(
            "{}.{}.AAAA",
            URL_SAFE_NO_PAD.encode("{\"alg\":\"ES256\",\"kid\":\"ec\"}"),
            URL_SAFE_NO_PAD.encode(claims)
        ),
        KEY_SET.to_owned(),
    ];
    let headers =
        golden.requests().filter_map(|request| request.header("Authorization")?.strip_prefix("Bearer "));
    distinct(by_hand.into_iter().chain(headers.map(str::to_owned)).map(String::into_bytes))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let token = if input.starts_with(b"{") {
        let (header, rest) = cut_line(input);
        if rest.is_empty() {
            let keys = KeySet::parse(as_text(header)?);
            return if keys.is_ok() {
                Ok(Outcome::Accepted("key set"))
            } else {
                Err(Outcome::Refused("key set"))
            };
        }
        let (claims, signature) = cut_line(rest);
        let [header, claims, signature] =
            [header, claims, signature].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{header}.{claims}.{signature}")
    } else {
        as_text(input)?.to_owned()
    };

    let account = AccountName::parse(ACCOUNT).expect("an account's name");
    let now = DateTime::parse("2020-08-20T22:20:23Z").expect("a date");
    let mut connection = Connection { peer: IpAddr::V4(Ipv4Addr::LOCALHOST), is_https: false };
    let basic = BearerValidator::basic();
    assert_eq!(basic.validate(&token, &KIND, &account, &connection, now), Err(BearerError::PlainHttp));
    connection.is_https = true;
    let strict = ISSUER.validate(&token, &KIND, &account, &connection, now);
    assert!(strict.is_err(), "a token is accepted although nobody has the private keys: {token}");
    match basic.validate(&token, &KIND, &account, &connection, now) {
        Ok(grant) => {
            assert_eq!(grant, Grant::Roles(CONTRIBUTOR));
            Ok(Outcome::Accepted(match strict {
                Err(BearerError::Signature) => "well formed, of a known key",
                _ => "well formed",
            }))
        }
        Err(error) => Err(Outcome::Refused(match error {
            BearerError::PlainHttp => "PlainHttp",
            BearerError::Malformed => "Malformed",
            BearerError::Algorithm => "Algorithm",
            BearerError::UnknownKey => "UnknownKey",
            BearerError::Signature => "Signature",
            BearerError::MissingClaim(name) => name,
            BearerError::NotYetValid => "NotYetValid",
            BearerError::Expired => "Expired",
            BearerError::Issuer => "Issuer",
            BearerError::Audience => "Audience",
        })),
    }
}
