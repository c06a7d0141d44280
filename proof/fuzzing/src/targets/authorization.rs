//! The `Authorization` header, and the Shared Key signatures over a request.
//!
//! An input is lines: the header's value, method, target, date, `Content-MD5`, `Content-Type`. A signature computed
//! here by the published rules, without the code under test, must be accepted; an altered one must be refused.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use protocol::auth::{AccountKey, Authorization, Scheme, ShortRequest};
use protocol::common::DateTime;
use sha2::Sha256;

use crate::golden::distinct;
use crate::{ACCOUNT, ACCOUNT_KEY, Golden, Outcome, Target, as_text};

pub const TARGET: Target = Target {
    name: "authorization",
    run,
    input_bytes_max: 128 * 1024,
    tokens: &[
        b"SharedKey ",
        b"SharedKeyLite ",
        b"Bearer ",
        b"bearer ",
        b"Basic ",
        b"devstoreaccount1",
        b":",
        b" ",
        b"=",
        b"==",
        b"\n",
        b"\r\n",
        b"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        b"AAAA",
        b"GET",
        b"/devstoreaccount1",
        b"/devstoreaccount1-secondary",
        b"?comp=acl",
        b"?comp=",
        b"&comp=list",
        b"%27",
        b"%28",
        b"%24",
        b"%2C",
        b"%2c",
        b"%",
        b"'",
        b"(",
        b")",
        b"Thu, 20 Aug 2020 22:20:23 GMT",
        b"Sun, 06 Nov 1994 08:49:37 GMT",
        b"application/json",
        b"\xC3\xA9",
        b"\x00",
        b"\xFF",
    ],
    seeds,
};

static KEYS: LazyLock<Vec<AccountKey>> =
    LazyLock::new(|| vec![AccountKey::from_base64(ACCOUNT_KEY).expect("the published key is Base64")]);

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    distinct(golden.requests().map(|request| {
        let header = |name| request.header(name).unwrap_or_default();
        let method = request.start_line.split(' ').next().unwrap_or_default();
        let lines = [
            header("Authorization"),
            method,
            request.target(),
            header("x-ms-date"),
            header("Content-MD5"),
            header("Content-Type"),
        ];
        lines.join("\n").into_bytes()
    }))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let text = as_text(input)?;
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (header, method, target, date, content_md5, content_type) =
        (line(), line(), line(), line(), line(), line());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let comp = query.split('&').find_map(|pair| pair.strip_prefix("comp="));
    let request = ShortRequest { method, content_md5, content_type, date, account: ACCOUNT, path, comp };
    DateTime::parse_http(date);

    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        let mut signature = sign(&request, scheme);
        let signed = request.is_signed_by(&KEYS, scheme, &STANDARD.encode(signature));
        assert!(signed, "a right signature is refused");
        signature[usize::from(input.len() as u8 % 32)] ^= 1 << (input.len() % 8);
        let signed = request.is_signed_by(&KEYS, scheme, &STANDARD.encode(signature));
        assert!(!signed, "a wrong signature is accepted");
    }
    match Authorization::parse(header)? {
        Authorization::Bearer(token) => {
            let again = format!("Bearer {token}");
            // An empty token leaves only the scheme, which is not a valid header.
            if !token.is_empty() {
                assert_eq!(Authorization::parse(&again).ok(), Some(Authorization::Bearer(token)));
            }
            Ok(Outcome::Accepted("bearer"))
        }
        Authorization::Signed { scheme, account, signature } => {
            let name = if scheme == Scheme::SharedKey { "SharedKey" } else { "SharedKeyLite" };
            let again = format!("{name} {account}:{signature}");
            let expected = Authorization::Signed { scheme, account, signature };
            assert_eq!(Authorization::parse(&again).ok(), Some(expected), "{again:?}");
            let signed = request.is_signed_by(&KEYS, scheme, signature);
            let expected = STANDARD.encode(sign(&request, scheme));
            // Other spellings of the path may be signed too, but never without the key.
            assert!(!signed || STANDARD.decode(signature).is_ok());
            Ok(Outcome::Accepted(match (signed, signature == expected) {
                (true, true) => "signed",
                (true, false) => "signed by another path",
                (false, _) => "signed wrongly",
            }))
        }
    }
}

/// The signature, computed by the published rules.
fn sign(request: &ShortRequest<'_>, scheme: Scheme) -> [u8; 32] {
    let path = if request.path.is_empty() { "/" } else { request.path };
    let comp = request.comp.map(|comp| format!("?comp={comp}")).unwrap_or_default();
    let resource = format!("/{}{path}{comp}", request.account);
    let text = match scheme {
        Scheme::SharedKey => format!(
            "{}\n{}\n{}\n{}\n{resource}",
            request.method, request.content_md5, request.content_type, request.date
        ),
        Scheme::SharedKeyLite => format!("{}\n{resource}", request.date),
    };
    let key = STANDARD.decode(ACCOUNT_KEY).expect("the published key is Base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}
