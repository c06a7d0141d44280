//! Keys that callers bring for encryption, and encryption scopes.
//!
//! Promises: a key that was read has the hash that was sent with it. Only the hash is meant to be kept. Nothing is
//! encrypted here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest;

use crate::common::headers::{invalid_header, missing_header};
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;

const KEY: &str = "x-ms-encryption-key";
pub const KEY_SHA256: &str = "x-ms-encryption-key-sha256";
const ALGORITHM: &str = "x-ms-encryption-algorithm";
pub const SCOPE: &str = "x-ms-encryption-scope";
const KEY_BYTES: usize = 32;
const SCOPE_CHARS_MAX: usize = 63;

/// The SHA-256 of a key that the caller brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CustomerKeyHash(pub [u8; 32]);

impl CustomerKeyHash {
    /// As headers and lists have it.
    pub fn to_header(self) -> String {
        STANDARD.encode(self.0)
    }
}

/// How a caller wants its blob encrypted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Encryption {
    pub key: Option<CustomerKeyHash>,
    pub scope: Option<Box<str>>,
}

impl Encryption {
    pub fn read(headers: &Headers<'_>) -> Result<Encryption, ServiceError> {
        let scope = headers.get(SCOPE);
        if let Some(sent) = scope
            && sent.len() > SCOPE_CHARS_MAX
        {
            return Err(invalid_header(SCOPE, sent));
        }
        let key = read_key(headers)?;
        if key.is_some()
            && let Some(sent) = scope
        {
            // A blob is encrypted with one of the two.
            return Err(invalid_header(SCOPE, sent));
        }
        Ok(Encryption { key, scope: scope.map(Box::from) })
    }

    /// Whether a blob that was written with this key may be used by this request.
    pub fn check(&self, stored: Option<CustomerKeyHash>) -> Result<(), ErrorCode> {
        match (stored, self.key) {
            (None, None) => Ok(()),
            (Some(stored), Some(sent)) if stored == sent => Ok(()),
            (Some(_), Some(_)) => Err(ErrorCode::BlobCustomerSpecifiedEncryptionMismatch),
            (Some(_), None) => Err(ErrorCode::BlobUsesCustomerSpecifiedEncryption),
            (None, Some(_)) => Err(ErrorCode::BlobDoesNotUseCustomerSpecifiedEncryption),
        }
    }
}

fn read_key(headers: &Headers<'_>) -> Result<Option<CustomerKeyHash>, ServiceError> {
    let (key, hash, algorithm) = (headers.get(KEY), headers.get(KEY_SHA256), headers.get(ALGORITHM));
    if key.is_none() && hash.is_none() && algorithm.is_none() {
        return Ok(None);
    }
    let key = key.ok_or_else(|| missing_header(KEY))?;
    let hash = hash.ok_or_else(|| missing_header(KEY_SHA256))?;
    let algorithm = algorithm.ok_or_else(|| missing_header(ALGORITHM))?;
    if !algorithm.eq_ignore_ascii_case("AES256") {
        return Err(invalid_header(ALGORITHM, algorithm));
    }
    // The answer must not repeat a key.
    let bytes = STANDARD.decode(key).ok().filter(|bytes| bytes.len() == KEY_BYTES);
    let bytes = bytes.ok_or_else(|| invalid_header(KEY, ""))?;
    let found = digest::digest(&digest::SHA256, &bytes);
    let sent = STANDARD.decode(hash).ok().filter(|sent| *sent == found.as_ref());
    let sent = sent.and_then(|sent| sent.try_into().ok()).ok_or_else(|| invalid_header(KEY_SHA256, hash))?;
    Ok(Some(CustomerKeyHash(sent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT_KEY: &str = "MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=";
    const SENT_HASH: &str = "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=";

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Encryption, ServiceError> {
        Encryption::read(&pairs.iter().copied().collect())
    }

    #[test]
    fn a_key_comes_with_its_hash() {
        let all = [(KEY, SENT_KEY), (KEY_SHA256, SENT_HASH), (ALGORITHM, "AES256")];
        let read_all = read(&all).unwrap();
        assert_eq!(read_all.key.unwrap().to_header(), SENT_HASH);
        for absent in 0..3 {
            let mut some = all.to_vec();
            let (name, _) = some.remove(absent);
            let error = read(&some).unwrap_err();
            assert_eq!(error.elements().collect::<Vec<_>>(), [("HeaderName", name)]);
        }
        let wrong = |name, value| {
            let pairs: Vec<_> =
                all.iter().map(|pair| if pair.0 == name { (name, value) } else { *pair }).collect();
            read(&pairs).unwrap_err()
        };
        for error in [wrong(KEY, "x"), wrong(KEY_SHA256, SENT_KEY), wrong(ALGORITHM, "DES")] {
            assert_eq!(error.code, ErrorCode::InvalidHeaderValue);
        }
        assert!(wrong(KEY, "c2VjcmV0").elements().all(|(_, value)| value != "c2VjcmV0"));
    }

    #[test]
    fn a_blob_is_read_with_the_key_that_wrote_it() {
        let (one, other) = (CustomerKeyHash([1; 32]), CustomerKeyHash([2; 32]));
        let with = |key| Encryption { key, scope: None };
        assert_eq!(with(None).check(None), Ok(()));
        assert_eq!(with(Some(one)).check(Some(one)), Ok(()));
        let code = with(Some(other)).check(Some(one));
        assert_eq!(code, Err(ErrorCode::BlobCustomerSpecifiedEncryptionMismatch));
        assert_eq!(with(None).check(Some(one)), Err(ErrorCode::BlobUsesCustomerSpecifiedEncryption));
        let code = with(Some(one)).check(None);
        assert_eq!(code, Err(ErrorCode::BlobDoesNotUseCustomerSpecifiedEncryption));
    }

    #[test]
    fn a_scope_excludes_a_key() {
        assert_eq!(read(&[(SCOPE, "mine")]).unwrap().scope.as_deref(), Some("mine"));
        let both = [(SCOPE, "mine"), (KEY, SENT_KEY), (KEY_SHA256, SENT_HASH), (ALGORITHM, "AES256")];
        assert_eq!(read(&both).unwrap_err().code, ErrorCode::InvalidHeaderValue);
        assert_eq!(read(&[]).unwrap(), Encryption::default());
    }
}
