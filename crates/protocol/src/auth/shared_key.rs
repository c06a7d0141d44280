//! Shared Key and Shared Key Lite: what is signed, and whether a signature is right.
//!
//! Promises: signatures are compared in constant time; a prepared key costs two hash blocks a request less.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::error::{ErrorCode, ServiceError};

pub(crate) const SIGNATURE_BYTES: usize = 32;

/// An account's key, with the hash's key schedule done once.
#[derive(Clone)]
pub struct AccountKey(Hmac<Sha256>);

impl AccountKey {
    pub fn from_base64(text: &str) -> Option<AccountKey> {
        let key = STANDARD.decode(text.trim()).ok().filter(|key| !key.is_empty())?;
        Hmac::new_from_slice(&key).ok().map(AccountKey)
    }

    /// Whether this key made the signature of the pieces, put together. Takes the same time whatever the answer.
    pub(crate) fn verify(&self, pieces: &[&str], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.mac(pieces).verify_slice(signature).is_ok()
    }

    /// The signature of the pieces, put together, in Base64.
    pub(crate) fn sign(&self, pieces: &[&str]) -> String {
        STANDARD.encode(self.mac(pieces).finalize().into_bytes())
    }

    fn mac(&self, pieces: &[&str]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for piece in pieces {
            mac.update(piece.as_bytes());
        }
        mac
    }
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

/// The parts of a request that a Shared Key signature covers, exactly as they were sent.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    pub method: &'a str,
    pub content_md5: &'a str,
    pub content_type: &'a str,
    /// `x-ms-date` if it was sent, else `Date`.
    pub date: &'a str,
    /// Without `-secondary`.
    pub account: &'a str,
    /// The path as on the request line, still percent-encoded.
    pub path: &'a str,
    pub comp: Option<&'a str>,
}

impl SignedRequest<'_> {
    /// Whether any of the keys made this signature.
    pub fn is_signed_by(&self, keys: &[AccountKey], scheme: Scheme, signature: &str) -> bool {
        let Some(bytes) = decode_signature(signature) else { return false };
        if self.verify(self.path, keys, scheme, &bytes) {
            return true;
        }
        // Proxies and clients differ in how they escape the few characters that need no escape.
        let unescaped = unescape_harmless(self.path);
        if unescaped != self.path && self.verify(&unescaped, keys, scheme, &bytes) {
            return true;
        }
        // Some clients sign the primary's path when they read the secondary by path; Python puts the secondary's
        // segment in front of what it has signed.
        let secondary = format!("/{}-secondary", self.account);
        let Some(rest) = unescaped.strip_prefix(&secondary) else { return false };
        self.verify(&format!("/{}{rest}", self.account), keys, scheme, &bytes)
            || self.verify(rest, keys, scheme, &bytes)
    }

    fn verify(
        &self,
        path: &str,
        keys: &[AccountKey],
        scheme: Scheme,
        signature: &[u8; SIGNATURE_BYTES],
    ) -> bool {
        let path = if path.is_empty() { "/" } else { path };
        let (comp_name, comp) = match self.comp {
            Some(value) => ("?comp=", value),
            None => ("", ""),
        };
        let full = [
            self.method,
            "\n",
            self.content_md5,
            "\n",
            self.content_type,
            "\n",
            self.date,
            "\n",
            "/",
            self.account,
            path,
            comp_name,
            comp,
        ];
        let pieces = match scheme {
            Scheme::SharedKey => &full[..],
            Scheme::SharedKeyLite => &full[6..],
        };
        keys.iter().any(|key| key.verify(pieces, signature))
    }
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

    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    fn request(path: &'static str) -> SignedRequest<'static> {
        SignedRequest {
            method: "POST",
            content_md5: "",
            content_type: "application/json;odata=nometadata",
            date: "Tue, 21 Sep 2021 00:50:22 GMT",
            account: "devstoreaccount1",
            path,
            comp: None,
        }
    }

    /// The vectors of the specification, section 8.2.6.
    #[test]
    fn the_published_vectors_verify() {
        use Scheme::*;
        let check = |request: SignedRequest<'_>, scheme, signature: &str| {
            let keys = [AccountKey::from_base64("AAAA").unwrap(), AccountKey::from_base64(KEY).unwrap()];
            assert!(request.is_signed_by(&keys, scheme, signature), "{request:?}");
            assert!(!request.is_signed_by(&keys[..1], scheme, signature));
            let other = SignedRequest { date: "Tue, 21 Sep 2021 00:50:23 GMT", ..request };
            assert!(!other.is_signed_by(&keys, scheme, signature));
        };
        check(request("/devstoreaccount1/Tables"), SharedKey, "oSRL1U6GT6H9ozZwtxhmNf81TZ6hYxZt0accxTeX5n8=");
        check(request("/Tables"), SharedKey, "a9OWBhrP50p2bxJAepogFCyaD2c951dGhWvjKDFe9Wk=");
        check(
            request("/devstoreaccount1/mytable(PartitionKey='pk',RowKey='a%20b')"),
            SharedKeyLite,
            "DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=",
        );
        check(
            request("/devstoreaccount1/mytable(PartitionKey=%27pk%27,RowKey=%27a%20b%27)"),
            SharedKeyLite,
            "DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=",
        );
        let acl = SignedRequest { comp: Some("acl"), ..request("/devstoreaccount1/mytable") };
        check(acl, SharedKeyLite, "SO65cYzWYF7KUbHvdtzgswP3gtUqVlmfCQRhELGu68k=");
        let properties = SignedRequest { comp: Some("properties"), ..request("/devstoreaccount1/") };
        check(properties, SharedKeyLite, "AlV97hd4VHPXdyJuwScqc1tXVjpoSlZmuM3B+MEx0SY=");
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let keys = [AccountKey::from_base64(KEY).unwrap()];
        for signature in ["", "x", "AAAA", &"A".repeat(44), &"A".repeat(400), "é"] {
            assert!(!request("/").is_signed_by(&keys, Scheme::SharedKey, signature));
        }
    }

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
