//! Bearer tokens: a JWT from a trusted issuer, and the roles it gives.
//!
//! Promises: only RS256 and ES256 are accepted, each only with a key of its own kind. The signature is verified before
//! any claim is believed. A token counts only for the account in its audience, and only over HTTPS.
//! Leaves to others: fetching the issuer's keys, and the words in which the caller is refused.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::{Map, Value};

use super::grant::{Connection, Grant, RoleSet};
use super::service_kind::ServiceKind;
use crate::common::guid::Guid;
use crate::common::{AccountName, DateTime};

/// How far the issuer's clock may be off from ours.
const LEEWAY_SECONDS: u64 = 60;
const TICKS_PER_SECOND: u64 = 10_000_000;
/// Longer than any real token, and short enough to decode without concern.
const TOKEN_BYTES_MAX: usize = 32 * 1024;
const P256_COORDINATE_BYTES: usize = 32;

/// A placeholder for the account's name in an audience.
const ACCOUNT_PLACEHOLDER: &str = "{account}";
/// A placeholder for the service's label in an audience.
const SERVICE_PLACEHOLDER: &str = "{service}";
/// The audiences of the storage services, in every cloud.
pub const STORAGE_AUDIENCES: [&str; 6] = [
    "https://storage.azure.com",
    "e406a681-f3d4-42a8-90b6-c2b029497af1",
    "https://{account}.{service}.core.windows.net",
    "https://{account}.{service}.core.chinacloudapi.cn",
    "https://{account}.{service}.core.usgovcloudapi.net",
    "https://{account}.{service}.core.cloudapi.de",
];
/// How the issuers of Azure's clouds begin; the tenant follows.
const AZURE_ISSUER_PREFIXES: [&str; 4] = [
    "https://sts.windows.net/",
    "https://sts.microsoftonline.de/",
    "https://sts.chinacloudapi.cn/",
    "https://sts.windows-ppe.net/",
];

/// Which tokens are accepted.
#[derive(Clone, Debug)]
pub struct BearerConfig {
    /// Must equal `iss` exactly.
    pub issuer: String,
    /// One of these must be in `aud`, with or without a slash at the end. `{account}` stands for the account's name,
    /// `{service}` for the service's label. [`STORAGE_AUDIENCES`] are the usual ones.
    pub audiences: Vec<String>,
    pub keys: KeySet,
}

#[derive(Clone, Debug)]
pub struct BearerValidator(Trust);

#[derive(Clone, Debug)]
enum Trust {
    Issuer(BearerConfig),
    /// Believes any token that claims to come from Azure: for development, where nobody can sign one.
    AnySignature,
}

/// Why a token was refused. For the log, not for the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BearerError {
    PlainHttp,
    Malformed,
    Algorithm,
    UnknownKey,
    Signature,
    MissingClaim(&'static str),
    NotYetValid,
    Expired,
    Issuer,
    Audience,
}

impl fmt::Display for BearerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BearerError::PlainHttp => "bearer tokens need HTTPS",
            BearerError::Malformed => "the token is not a compact JWT",
            BearerError::Algorithm => "the token's algorithm is not RS256 or ES256, or not its key's",
            BearerError::UnknownKey => "the token's key is not among the issuer's",
            BearerError::Signature => "the token's signature is wrong",
            BearerError::MissingClaim(name) => return write!(f, "the token has no usable claim {name}"),
            BearerError::NotYetValid => "the token is not valid yet",
            BearerError::Expired => "the token has expired",
            BearerError::Issuer => "the token is of another issuer",
            BearerError::Audience => "the token is for another audience",
        })
    }
}

impl std::error::Error for BearerError {}

impl BearerValidator {
    pub fn new(config: BearerConfig) -> BearerValidator {
        BearerValidator(Trust::Issuer(config))
    }

    /// Accepts any well-formed token that claims to come from Azure, to be meant for storage and to be currently valid,
    /// and gives it access to all data. The signature is not checked, so this is for development only.
    pub fn basic() -> BearerValidator {
        BearerValidator(Trust::AnySignature)
    }

    /// What `token`, the text after `Bearer`, allows its holder to do in the account with this service.
    pub fn validate(
        &self,
        token: &str,
        kind: &ServiceKind,
        account: &AccountName,
        connection: &Connection,
        now: DateTime,
    ) -> Result<Grant, BearerError> {
        if !connection.is_https {
            return Err(BearerError::PlainHttp);
        }
        let token = Jwt::parse(token)?;
        let claims = &token.claims;
        match &self.0 {
            Trust::Issuer(config) => {
                config.keys.verify(&token)?;
                check_times(claims, now)?;
                if text(claims, "iss") != Some(&config.issuer) {
                    return Err(BearerError::Issuer);
                }
                check_audience(claims, config.audiences.iter().map(String::as_str), kind, account)?;
                Ok(Grant::Roles(roles(claims, kind)))
            }
            Trust::AnySignature => {
                for name in ["nbf", "iat"] {
                    instant(claims, name)?.ok_or(BearerError::MissingClaim(name))?;
                }
                check_times(claims, now)?;
                let issuer = text(claims, "iss").ok_or(BearerError::Issuer)?;
                if !AZURE_ISSUER_PREFIXES.iter().any(|prefix| issuer.starts_with(prefix)) {
                    return Err(BearerError::Issuer);
                }
                check_audience(claims, STORAGE_AUDIENCES.into_iter(), kind, account)?;
                // Azure keeps role assignments outside of its tokens, so real tokens name no roles.
                Ok(Grant::Roles(kind.role_of_basic_tokens))
            }
        }
    }
}

/// Whose token this is: the ids of the caller and of its tenant. Claims that are missing or no GUIDs become zeros. The
/// token is not validated here.
pub fn bearer_identity(token: &str) -> Result<(Guid, Guid), BearerError> {
    let token = Jwt::parse(token)?;
    let id = |name| text(&token.claims, name).and_then(Guid::parse).unwrap_or(Guid([0; 16]));
    Ok((id("oid"), id("tid")))
}

/// A compact JWT, split and decoded. Nothing in it can be trusted yet.
struct Jwt<'a> {
    header: Map<String, Value>,
    claims: Map<String, Value>,
    /// Header and claims as sent: the text that is signed.
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Jwt<'a> {
    fn parse(text: &'a str) -> Result<Jwt<'a>, BearerError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(BearerError::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(BearerError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(BearerError::Malformed)?;
        Ok(Jwt {
            header: decode_object(header)?,
            claims: decode_object(claims)?,
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| BearerError::Malformed)?,
        })
    }
}

fn decode_object(part: &str) -> Result<Map<String, Value>, BearerError> {
    let json = URL_SAFE_NO_PAD.decode(part).map_err(|_| BearerError::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| BearerError::Malformed)
}

fn text<'m>(object: &'m Map<String, Value>, name: &str) -> Option<&'m str> {
    object.get(name).and_then(Value::as_str)
}

/// A claim that is either one string or a list of strings.
fn texts<'m>(object: &'m Map<String, Value>, name: &str) -> Vec<&'m str> {
    match object.get(name) {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A claim in seconds since 1970, possibly with a fraction. Earlier instants become 1970.
fn instant(claims: &Map<String, Value>, name: &'static str) -> Result<Option<DateTime>, BearerError> {
    let Some(claim) = claims.get(name) else { return Ok(None) };
    let seconds = claim.as_f64().ok_or(BearerError::MissingClaim(name))?;
    Ok(Some(since_1970(seconds as u64)))
}

fn since_1970(seconds: u64) -> DateTime {
    let ticks = seconds.saturating_mul(TICKS_PER_SECOND);
    DateTime::from_ticks(ticks.saturating_add(DateTime::UNIX_EPOCH.ticks()))
}

fn check_times(claims: &Map<String, Value>, now: DateTime) -> Result<(), BearerError> {
    const LEEWAY_TICKS: u64 = LEEWAY_SECONDS * TICKS_PER_SECOND;
    let expiry = instant(claims, "exp")?.ok_or(BearerError::MissingClaim("exp"))?;
    if now.ticks() >= expiry.ticks() + LEEWAY_TICKS {
        return Err(BearerError::Expired);
    }
    match instant(claims, "nbf")? {
        Some(start) if now.ticks() + LEEWAY_TICKS < start.ticks() => Err(BearerError::NotYetValid),
        _ => Ok(()),
    }
}

fn check_audience<'c>(
    claims: &Map<String, Value>,
    mut accepted: impl Iterator<Item = &'c str>,
    kind: &ServiceKind,
    account: &AccountName,
) -> Result<(), BearerError> {
    let named = texts(claims, "aud");
    let is_named = accepted.any(|audience| {
        let audience = audience.replace(ACCOUNT_PLACEHOLDER, account.as_str());
        let audience = audience.replace(SERVICE_PLACEHOLDER, kind.label);
        named.iter().any(|name| without_slash(name) == without_slash(&audience))
    });
    if is_named { Ok(()) } else { Err(BearerError::Audience) }
}

fn without_slash(audience: &str) -> &str {
    audience.strip_suffix('/').unwrap_or(audience)
}

/// All of the service's roles that the token names.
fn roles(claims: &Map<String, Value>, kind: &ServiceKind) -> RoleSet {
    let known = |named: &str| {
        kind.roles
            .iter()
            .find(|(name, id, _)| name.eq_ignore_ascii_case(named) || id.eq_ignore_ascii_case(named))
    };
    let named = texts(claims, "roles").into_iter().filter_map(known);
    named.fold(RoleSet::NONE, |roles, (_, _, role)| roles.or(*role))
}

/// An issuer's keys, from its JWKS.
#[derive(Clone, Debug, Default)]
pub struct KeySet(Vec<IssuerKey>);

#[derive(Clone, Debug)]
struct IssuerKey {
    id: String,
    public: PublicKey,
}

#[derive(Clone, Debug)]
enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point on the curve P-256.
    P256(Vec<u8>),
}

/// A JWKS that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySetError(String);

impl fmt::Display for KeySetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeySetError {}

impl KeySet {
    /// Reads the JSON text of a JWKS. Keys that cannot verify RS256 or ES256, or that have no id, are left out.
    pub fn parse(json: &str) -> Result<KeySet, KeySetError> {
        let set: Value = serde_json::from_str(json).map_err(|error| KeySetError(error.to_string()))?;
        let keys = set.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or_else(|| KeySetError("there is no list of keys".to_owned()))?;
        let read =
            keys.iter().filter_map(Value::as_object).filter_map(|key| IssuerKey::parse(key).transpose());
        read.collect::<Result<_, _>>().map(KeySet)
    }

    fn verify(&self, token: &Jwt<'_>) -> Result<(), BearerError> {
        // `crit` lists extensions that a verifier must understand or refuse the token. We understand none.
        if token.header.contains_key("crit") {
            return Err(BearerError::Malformed);
        }
        let algorithm = text(&token.header, "alg").ok_or(BearerError::Algorithm)?;
        if !matches!(algorithm, "RS256" | "ES256") {
            return Err(BearerError::Algorithm);
        }
        let id = text(&token.header, "kid").ok_or(BearerError::UnknownKey)?;
        let key = self.0.iter().find(|key| key.id == id).ok_or(BearerError::UnknownKey)?;
        let message = token.signed.as_bytes();
        let verdict = match (algorithm, &key.public) {
            ("RS256", PublicKey::Rsa { modulus, exponent }) => {
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(
                    &signature::RSA_PKCS1_2048_8192_SHA256,
                    message,
                    &token.signature,
                )
            }
            ("ES256", PublicKey::P256(point)) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, &token.signature)
            }
            _ => return Err(BearerError::Algorithm),
        };
        verdict.map_err(|_| BearerError::Signature)
    }
}

impl IssuerKey {
    /// `None` for kinds of keys that we do not use.
    fn parse(key: &Map<String, Value>) -> Result<Option<IssuerKey>, KeySetError> {
        let Some(id) = text(key, "kid") else { return Ok(None) };
        if text(key, "use").is_some_and(|purpose| purpose != "sig") {
            return Ok(None);
        }
        let number = |name: &str| {
            text(key, name)
                .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
                .filter(|number| !number.is_empty())
                .ok_or_else(|| KeySetError(format!("key {id} has no usable {name}")))
        };
        let is_for = |algorithm: &str| text(key, "alg").is_none_or(|named| named == algorithm);
        let public = match (text(key, "kty"), text(key, "crv")) {
            (Some("RSA"), _) if is_for("RS256") => {
                PublicKey::Rsa { modulus: without_zeros(number("n")?), exponent: without_zeros(number("e")?) }
            }
            (Some("EC"), Some("P-256")) if is_for("ES256") => {
                const UNCOMPRESSED: u8 = 4;
                let (x, y) = (number("x")?, number("y")?);
                if x.len() != P256_COORDINATE_BYTES || y.len() != P256_COORDINATE_BYTES {
                    return Err(KeySetError(format!("key {id} is not a point of P-256")));
                }
                PublicKey::P256([&[UNCOMPRESSED], &x[..], &y[..]].concat())
            }
            _ => return Ok(None),
        };
        Ok(Some(IssuerKey { id: id.to_owned(), public }))
    }
}

/// Some issuers put a leading zero byte (the sign) in front of a number.
fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}

#[cfg(test)]
mod tests;
