//! Accounts as they lie in an engine that others may read: sealed with a key from the configuration.
//!
//! ```text
//! row "accounts" / NAME of the settings:   format u8 = 1 · nonce, 12 bytes · sealed text · tag, 16 bytes
//! ```
//!
//! The text is `NAME:KEY1[:KEY2]`, as in `LAZULITE_ACCOUNTS`. The cipher is AES-256-GCM with a random nonce. The format and the
//! name are authenticated with it, so a row cannot be given to another account. Whoever may write to the database can put back
//! an older row, or remove one: the seal protects the keys, not the database.
//! Leaves to others: where the rows are (`engine_accounts`), where the key comes from (`place`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::random;

const FORMAT: u8 = 1;
const KEY_BYTES: usize = 32;

/// Never printed, so it is not `Debug`.
#[derive(Clone)]
pub struct AccountsKey([u8; KEY_BYTES]);

impl AccountsKey {
    /// `None`: not 32 bytes in Base64.
    pub fn parse(text: &str) -> Option<AccountsKey> {
        STANDARD.decode(text.trim()).ok()?.try_into().ok().map(AccountsKey)
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &self.0).ok().map(LessSafeKey::new)
    }

    pub fn seal(&self, name: &str, text: &str) -> Result<Vec<u8>, String> {
        let nonce = random::bytes::<NONCE_LEN>()?;
        let mut sealed = text.as_bytes().to_vec();
        let cipher = self.cipher().ok_or("the accounts key cannot be used")?;
        cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad(name), &mut sealed)
            .map_err(|_| "an account cannot be sealed")?;
        Ok([&[FORMAT][..], &nonce, &sealed].concat())
    }

    /// `None`: sealed with another key, for another account, or damaged.
    pub fn open(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let (format, rest) = bytes.split_first()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        if *format != FORMAT {
            return None;
        }
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self.cipher()?.open_in_place(nonce, aad(name), &mut sealed).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

fn aad(name: &str) -> Aad<Vec<u8>> {
    Aad::from([b"lazulite account ", &[FORMAT][..], name.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> AccountsKey {
        AccountsKey::parse(&STANDARD.encode([byte; KEY_BYTES])).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_and_name_alone() {
        let sealed = key(1).seal("acme", "acme:KEY").unwrap();
        assert_eq!(key(1).open("acme", &sealed).as_deref(), Some("acme:KEY"));
        assert_eq!(key(2).open("acme", &sealed), None);
        assert_eq!(key(1).open("other", &sealed), None);
        assert!(!sealed.windows(3).any(|bytes| bytes == b"KEY"));
        assert_ne!(sealed, key(1).seal("acme", "acme:KEY").unwrap(), "another nonce each time");
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert_eq!(key(1).open("acme", &flipped), None, "byte {at}");
            assert_eq!(key(1).open("acme", &sealed[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn a_key_is_32_bytes_in_base64() {
        for text in ["", "secret", &STANDARD.encode([1; 31]), &STANDARD.encode([1; 33])] {
            assert!(AccountsKey::parse(text).is_none(), "{text}");
        }
    }
}
