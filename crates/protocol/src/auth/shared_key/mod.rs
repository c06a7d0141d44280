//! Shared Key and Shared Key Lite: account keys, the `Authorization` header, and verifying signatures.
//!
//! The signed text has two forms: `short` covers four fields and the resource, `full` covers every header and parameter
//! that matters. Each service's `ServiceKind` says which one it uses.
//! Promises: signatures are compared in constant time. A prepared key saves two hash blocks per request.

mod full;
mod short;

pub use full::FullRequest;
pub use short::ShortRequest;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::{ErrorCode, ServiceError};

pub(crate) const SIGNATURE_BYTES: usize = 32;

/// A shorter key is weaker than the signatures that it makes. The service's own keys have 64 bytes.
pub const KEY_BYTES_MIN: usize = 32;

/// An account's key. The HMAC key schedule is computed once.
#[derive(Clone)]
pub struct AccountKey {
    key: hmac::Key,
    is_weak: bool,
}

impl AccountKey {
    pub fn from_base64(text: &str) -> Option<AccountKey> {
        let key = STANDARD.decode(text.trim()).ok().filter(|key| !key.is_empty())?;
        let is_weak = key.len() < KEY_BYTES_MIN || key.iter().all(|byte| *byte == key[0]);
        Some(AccountKey { key: hmac::Key::new(hmac::HMAC_SHA256, &key), is_weak })
    }

    /// Whether the key is shorter than [`KEY_BYTES_MIN`], or one byte repeated, as in an example.
    pub fn is_weak(&self) -> bool {
        self.is_weak
    }

    /// Whether this key made the signature of the concatenated pieces. Takes the same time for yes and no.
    pub(crate) fn verify(&self, pieces: &[&str], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        joined(pieces, |text| hmac::verify(&self.key, text, signature).is_ok())
    }

    /// The signature of the concatenated pieces, in Base64.
    pub(crate) fn sign(&self, pieces: &[&str]) -> String {
        joined(pieces, |text| STANDARD.encode(hmac::sign(&self.key, text)))
    }
}

/// Up to this length a text is concatenated on the stack; few are longer.
const TEXT_BYTES_USUAL: usize = 512;

/// Calls `look` with the concatenated pieces, because ring verifies only a contiguous text.
fn joined<T>(pieces: &[&str], look: impl FnOnce(&[u8]) -> T) -> T {
    let text_bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    if let [text] = pieces {
        return look(text.as_bytes());
    }
    if text_bytes > TEXT_BYTES_USUAL {
        return look(pieces.concat().as_bytes());
    }
    let mut text = [0; TEXT_BYTES_USUAL];
    let mut end = 0;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        text[end..end + piece.len()].copy_from_slice(piece.as_bytes());
        end += piece.len();
    }
    look(&text[..end])
}

/// Decodes a signature from Base64.
pub(crate) fn decode_signature(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    // Slightly too large, because the decoder asks for room for the padding too.
    let mut decoded = [0u8; SIGNATURE_BYTES + 3];
    let length = STANDARD.decode_slice(text, &mut decoded).ok()?;
    decoded[..length].try_into().ok()
}

/// Keys are never printed, not even by `Debug`.
impl std::fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountKey(..)")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    SharedKey,
    SharedKeyLite,
}

/// Which parts of a request the service's signatures cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedKeyForm {
    /// [`ShortRequest`].
    Short,
    /// [`FullRequest`].
    Full,
}

/// The parts of an `Authorization` header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Authorization<'a> {
    Signed { scheme: Scheme, account: &'a str, signature: &'a str },
    Bearer(&'a str),
}

impl<'a> Authorization<'a> {
    pub fn parse(text: &'a str) -> Result<Authorization<'a>, ServiceError> {
        let (scheme, rest) =
            split_once(text.trim_ascii(), b' ').ok_or(ErrorCode::InvalidAuthenticationInfo)?;
        let scheme = match scheme {
            "SharedKey" => Scheme::SharedKey,
            "SharedKeyLite" => Scheme::SharedKeyLite,
            _ if scheme.eq_ignore_ascii_case("Bearer") => return Ok(Authorization::Bearer(rest.trim())),
            _ => return Err(ErrorCode::InvalidAuthenticationInfo.into()),
        };
        let (account, signature) =
            split_once(rest.trim_ascii(), b':').ok_or(ErrorCode::InvalidAuthenticationInfo)?;
        if account.is_empty() || signature.is_empty() {
            return Err(ErrorCode::InvalidAuthenticationInfo.into());
        }
        Ok(Authorization::Signed { scheme, account, signature })
    }
}

/// Like [`str::split_once`], for an ASCII character.
fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = memchr::memchr(separator, text.as_bytes())?;
    Some((&text[..at], &text[at + 1..]))
}

/// Whether `verify` accepts the path as sent, or in one of the forms in which clients are known to sign it.
fn any_path(account: &str, path: &str, verify: impl Fn(&str) -> bool) -> bool {
    if verify(path) {
        return true;
    }
    // Clients and proxies disagree about escaping the few characters that need no escape.
    let unescaped = unescape_harmless(path);
    if unescaped != path && verify(&unescaped) {
        return true;
    }
    // When they read from the secondary by path, some clients sign the primary's path. The Python client adds the
    // secondary's segment only after signing.
    let secondary = format!("/{account}-secondary");
    let Some(rest) = unescaped.strip_prefix(&secondary) else { return false };
    verify(&format!("/{account}{rest}")) || verify(rest)
}

fn unescape_harmless(path: &str) -> String {
    let mut text = path.to_owned();
    for (escaped, plain) in
        [("%27", "'"), ("%28", "("), ("%29", ")"), ("%24", "$"), ("%2C", ","), ("%2c", ",")]
    {
        if text.contains(escaped) {
            text = text.replace(escaped, plain);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_headers_are_taken_apart() {
        let signed = Authorization::Signed { scheme: Scheme::SharedKeyLite, account: "a", signature: "s=" };
        assert_eq!(Authorization::parse("SharedKeyLite a:s=").unwrap(), signed);
        assert_eq!(Authorization::parse("Bearer t").unwrap(), Authorization::Bearer("t"));
        for bad in
            ["", "SharedKey", "SharedKey a", "SharedKey :s", "SharedKey a:", "Basic eDp5", "sharedkey a:s"]
        {
            assert_eq!(
                Authorization::parse(bad).unwrap_err().code,
                ErrorCode::InvalidAuthenticationInfo,
                "{bad}"
            );
        }
    }
}
