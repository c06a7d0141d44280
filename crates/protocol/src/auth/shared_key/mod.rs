//! Shared Key and Shared Key Lite: keys, the `Authorization` header, and whether a signature is right.
//!
//! What is signed comes in two forms: `short` has four fields and the resource, `full` has every header and parameter
//! that matters. Which one a service uses is a field of its `ServiceKind`.
//! Promises: signatures are compared in constant time; a prepared key saves two hash blocks a request.

mod full;
mod short;

pub use full::FullRequest;
pub use short::ShortRequest;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::{ErrorCode, ServiceError};

pub(crate) const SIGNATURE_BYTES: usize = 32;

/// An account's key, with the hash's key schedule done once.
#[derive(Clone)]
pub struct AccountKey(hmac::Key);

impl AccountKey {
    pub fn from_base64(text: &str) -> Option<AccountKey> {
        let key = STANDARD.decode(text.trim()).ok().filter(|key| !key.is_empty())?;
        Some(AccountKey(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Whether this key made the signature of the pieces, put together. Takes the same time whatever the answer.
    pub(crate) fn verify(&self, pieces: &[&str], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        joined(pieces, |text| hmac::verify(&self.0, text, signature).is_ok())
    }

    /// The signature of the pieces, put together, in Base64.
    pub(crate) fn sign(&self, pieces: &[&str]) -> String {
        joined(pieces, |text| STANDARD.encode(hmac::sign(&self.0, text)))
    }
}

/// A text of this length is put together on the stack; few are longer.
const TEXT_BYTES_USUAL: usize = 1024;

/// Shows the pieces, put together: ring verifies a text that is in one piece.
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
    for piece in pieces {
        text[end..end + piece.len()].copy_from_slice(piece.as_bytes());
        end += piece.len();
    }
    look(&text[..end])
}

/// Reads a signature's Base64.
pub(crate) fn decode_signature(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    // Room for the padding of a signature that is a byte too long.
    let mut decoded = [0u8; SIGNATURE_BYTES + 3];
    let length = STANDARD.decode_slice(text, &mut decoded).ok()?;
    decoded[..length].try_into().ok()
}

/// Keys never show, not even in a debug print.
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

/// What a service's signatures cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedKeyForm {
    /// [`ShortRequest`].
    Short,
    /// [`FullRequest`].
    Full,
}

/// An `Authorization` header, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Authorization<'a> {
    Signed { scheme: Scheme, account: &'a str, signature: &'a str },
    Bearer(&'a str),
}

impl<'a> Authorization<'a> {
    pub fn parse(text: &'a str) -> Result<Authorization<'a>, ServiceError> {
        let (scheme, rest) = split_once(text.trim(), b' ').ok_or(ErrorCode::InvalidAuthenticationInfo)?;
        let scheme = match scheme {
            "SharedKey" => Scheme::SharedKey,
            "SharedKeyLite" => Scheme::SharedKeyLite,
            _ if scheme.eq_ignore_ascii_case("Bearer") => return Ok(Authorization::Bearer(rest.trim())),
            _ => return Err(ErrorCode::InvalidAuthenticationInfo.into()),
        };
        let (account, signature) =
            split_once(rest.trim(), b':').ok_or(ErrorCode::InvalidAuthenticationInfo)?;
        if account.is_empty() || signature.is_empty() {
            return Err(ErrorCode::InvalidAuthenticationInfo.into());
        }
        Ok(Authorization::Signed { scheme, account, signature })
    }
}

/// As [`str::split_once`], for an ASCII character.
fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = memchr::memchr(separator, text.as_bytes())?;
    Some((&text[..at], &text[at + 1..]))
}

/// Whether `verify` accepts the path as it was sent, or in one of the forms in which clients are known to sign it.
fn any_path(account: &str, path: &str, verify: impl Fn(&str) -> bool) -> bool {
    if verify(path) {
        return true;
    }
    // Proxies and clients differ in how they escape the few characters that need no escape.
    let unescaped = unescape_harmless(path);
    if unescaped != path && verify(&unescaped) {
        return true;
    }
    // Some clients sign the primary's path when they read the secondary by path; Python puts the secondary's
    // segment in front of what it has signed.
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
