//! Key rings whose keys are in this process: given by the program, or by an environment variable.
//!
//! Owns: the text form of keys (`id=BASE64`, shared with the file key ring), and how a local key wraps a content key.
//! Promises: the same wrapping key and nonce are never used twice. Each wrap draws a salt of 32 random bytes, and
//! derives from it, by HKDF-Expand (SHA-256), an AES-256-GCM key and a nonce of its own. So there is no number of
//! writes after which a key must be exchanged, as there is (2^32) for random nonces of 96 bits under one key.

use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use zeroize::Zeroizing;

use super::key_ring::{KEY_BYTES, fill_random};
use super::metadata::is_word;
use super::{ContentKey, EncryptionError, KeyAnswer, KeyRing, WrappedKey};

/// What local rings name as the algorithm of a wrapped key.
const ALGORITHM: &str = "HKDF-SHA256-A256GCM";
/// Sets keys that wrap apart from keys for anything else that might be derived.
const PURPOSE: &[u8] = b"lazulite-client key wrap 1";
const SALT_BYTES: usize = 32;
const WRAPPED_BYTES: usize = SALT_BYTES + KEY_BYTES + 16;
const KEY_COUNT_MAX: usize = 64;

type Key = Zeroizing<[u8; KEY_BYTES]>;

/// Keys with their ids, the current one first; never empty.
#[derive(Clone)]
pub(super) struct KeyList(Vec<(String, Key)>);

impl KeyList {
    /// Reads `id=BASE64` entries, separated by line ends or `;`. Lines that begin with `#` are comments.
    pub(super) fn parse(text: &str) -> Result<KeyList, EncryptionError> {
        let mut keys = Vec::new();
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            for entry in line.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
                let (id, key) =
                    entry.split_once('=').ok_or(refused("an entry is not of the form id=BASE64"))?;
                push(&mut keys, id.trim(), decode(key.trim())?)?;
            }
        }
        if keys.is_empty() { Err(refused("it has no keys")) } else { Ok(KeyList(keys)) }
    }

    fn one(id: &str, key: [u8; KEY_BYTES]) -> Result<KeyList, EncryptionError> {
        let mut keys = Vec::new();
        push(&mut keys, id, Zeroizing::new(key))?;
        Ok(KeyList(keys))
    }

    /// A new key, as a line of a key file.
    pub(super) fn generate_line(id: &str) -> Result<Zeroizing<String>, EncryptionError> {
        check_id(id)?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        fill_random(key.as_mut())?;
        let encoded = Zeroizing::new(STANDARD.encode(&key[..]));
        Ok(Zeroizing::new(format!("{id}={}\n", encoded.as_str())))
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.0.iter().map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn wrap(&self, content_key: &ContentKey) -> Result<WrappedKey, EncryptionError> {
        let (id, key) = &self.0[0];
        let mut bytes = vec![0; SALT_BYTES];
        fill_random(&mut bytes)?;
        let (wrapping, nonce) = derive(key, &bytes, id)?;
        bytes.extend_from_slice(content_key.as_bytes());
        let tag = wrapping
            .seal_in_place_separate_tag(nonce, Aad::from(id.as_bytes()), &mut bytes[SALT_BYTES..])
            .map_err(|_| refused("a content key could not be wrapped"))?;
        bytes.extend_from_slice(tag.as_ref());
        Ok(WrappedKey { key_id: id.clone(), algorithm: ALGORITHM.to_owned(), bytes })
    }

    pub(super) fn unwrap(&self, wrapped: &WrappedKey) -> Result<ContentKey, EncryptionError> {
        let (id, key) = self
            .0
            .iter()
            .find(|(id, _)| *id == wrapped.key_id)
            .ok_or_else(|| EncryptionError::UnknownKey { key_id: wrapped.key_id.clone() })?;
        let wrong = || EncryptionError::WrongKey { key_id: id.clone() };
        if wrapped.algorithm != ALGORITHM || wrapped.bytes.len() != WRAPPED_BYTES {
            return Err(wrong());
        }
        let (salt, sealed) = wrapped.bytes.split_at(SALT_BYTES);
        let (wrapping, nonce) = derive(key, salt, id)?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let plain =
            wrapping.open_in_place(nonce, Aad::from(id.as_bytes()), &mut opened).map_err(|_| wrong())?;
        let plain: [u8; KEY_BYTES] = (&*plain).try_into().map_err(|_| wrong())?;
        Ok(ContentKey::from_bytes(plain))
    }
}

/// The key and the nonce of one wrap. The ring's key is uniformly random, so HKDF needs no extraction (RFC 5869, 3.3).
fn derive(key: &Key, salt: &[u8], id: &str) -> Result<(LessSafeKey, Nonce), EncryptionError> {
    struct Length;
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            KEY_BYTES + NONCE_LEN
        }
    }
    let failed = |_| refused("a wrapping key could not be derived");
    let mut derived = Zeroizing::new([0; KEY_BYTES + NONCE_LEN]);
    let info = [PURPOSE, salt, id.as_bytes()];
    let source = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, key.as_ref());
    source.expand(&info, Length).map_err(failed)?.fill(derived.as_mut()).map_err(failed)?;
    let (key, nonce) = derived.split_at(KEY_BYTES);
    let key = UnboundKey::new(&aead::AES_256_GCM, key).map_err(failed)?;
    Ok((LessSafeKey::new(key), Nonce::try_assume_unique_for_key(nonce).map_err(failed)?))
}

fn push(keys: &mut Vec<(String, Key)>, id: &str, key: Key) -> Result<(), EncryptionError> {
    check_id(id)?;
    if keys.iter().any(|(other, _)| other == id) {
        return Err(EncryptionError::KeyRing(format!("it has two keys with the id {id:?}").into()));
    }
    if keys.len() >= KEY_COUNT_MAX {
        return Err(refused("it has more than 64 keys"));
    }
    keys.push((id.to_owned(), key));
    Ok(())
}

fn check_id(id: &str) -> Result<(), EncryptionError> {
    let reason = "an id must have 1 to 256 visible ASCII characters, and no quote, backslash, semicolon, \
                  equals sign or number sign";
    if is_word(id) && !id.contains('#') { Ok(()) } else { Err(refused(reason)) }
}

/// The reason holds nothing of the text, which may be a key with a small mistake.
fn decode(text: &str) -> Result<Key, EncryptionError> {
    let bytes = Zeroizing::new(STANDARD.decode(text).map_err(|_| refused("a key is not Base64"))?);
    let key: [u8; KEY_BYTES] =
        bytes.as_slice().try_into().map_err(|_| refused("a key does not have 32 bytes"))?;
    Ok(Zeroizing::new(key))
}

pub(super) fn refused(reason: &'static str) -> EncryptionError {
    EncryptionError::KeyRing(reason.into())
}

/// Keys that can be exchanged while they are in use.
pub(super) struct SharedKeys(RwLock<Arc<KeyList>>);

impl SharedKeys {
    pub(super) fn new(keys: KeyList) -> SharedKeys {
        SharedKeys(RwLock::new(Arc::new(keys)))
    }

    pub(super) fn get(&self) -> Arc<KeyList> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, keys: KeyList) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Changes a copy, and keeps the old keys if the change fails.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<(String, Key)>) -> Result<(), EncryptionError>,
    ) -> Result<(), EncryptionError> {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut keys = KeyList::clone(&kept);
        change(&mut keys.0)?;
        *kept = Arc::new(keys);
        Ok(())
    }
}

/// A key ring whose keys the program gives: for tests, or for keys that it fetched from a vault when it started.
///
/// ```
/// use lazulite_client::encryption::InMemoryKeyRing;
///
/// let ring = InMemoryKeyRing::new("2025", [7; 32])?;
/// // First every reader learns the new key, then writers begin to use it.
/// ring.add("2026", [8; 32])?;
/// assert_eq!(ring.key_ids(), ["2025", "2026"]);
/// ring.promote("2026")?;
/// assert_eq!(ring.key_ids(), ["2026", "2025"]);
/// # Ok::<(), lazulite_client::encryption::EncryptionError>(())
/// ```
pub struct InMemoryKeyRing(SharedKeys);

impl InMemoryKeyRing {
    /// A ring with one key. An id has 1 to 256 visible ASCII characters, and none of `"`, `\`, `;`, `=`, `#`.
    pub fn new(key_id: &str, key: [u8; 32]) -> Result<InMemoryKeyRing, EncryptionError> {
        Ok(InMemoryKeyRing(SharedKeys::new(KeyList::one(key_id, key)?)))
    }

    /// A ring with one new key, which is lost with the ring.
    pub fn generate(key_id: &str) -> Result<InMemoryKeyRing, EncryptionError> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        fill_random(key.as_mut())?;
        InMemoryKeyRing::new(key_id, *key)
    }

    /// A ring from entries `id=BASE64`, separated by line ends or `;`, the current one first.
    pub fn parse(text: &str) -> Result<InMemoryKeyRing, EncryptionError> {
        Ok(InMemoryKeyRing(SharedKeys::new(KeyList::parse(text)?)))
    }

    /// Adds a key that can unwrap, and that [`InMemoryKeyRing::promote`] can make the current one.
    pub fn add(&self, key_id: &str, key: [u8; 32]) -> Result<(), EncryptionError> {
        self.0.change(|keys| push(keys, key_id, Zeroizing::new(key)))
    }

    /// Makes a key the current one, with which new content keys are wrapped.
    pub fn promote(&self, key_id: &str) -> Result<(), EncryptionError> {
        self.0.change(|keys| {
            let unknown = || EncryptionError::UnknownKey { key_id: key_id.to_owned() };
            let at = keys.iter().position(|(id, _)| id == key_id).ok_or_else(unknown)?;
            keys[..=at].rotate_right(1);
            Ok(())
        })
    }

    /// Removes a key. What it wrapped becomes unreadable. The last key cannot be removed.
    pub fn remove(&self, key_id: &str) -> Result<(), EncryptionError> {
        self.0.change(|keys| {
            keys.retain(|(id, _)| id != key_id);
            if keys.is_empty() { Err(refused("its last key cannot be removed")) } else { Ok(()) }
        })
    }

    /// The ids of all keys, the current one first.
    pub fn key_ids(&self) -> Vec<String> {
        self.0.get().ids()
    }
}

/// A key ring whose keys are in an environment variable: entries `id=BASE64`, separated by `;`, the current one first.
///
/// Every program of the same user can read a process's environment; prefer a file, or a vault, where that matters.
///
/// ```no_run
/// use lazulite_client::encryption::EnvironmentKeyRing;
///
/// // LAZULITE_KEY_RING="2026=3q2+7w...;2025=AAEC..."
/// let ring = EnvironmentKeyRing::new("LAZULITE_KEY_RING")?;
/// println!("new entities are sealed with {}", ring.key_ids()[0]);
/// # Ok::<(), lazulite_client::encryption::EncryptionError>(())
/// ```
pub struct EnvironmentKeyRing(KeyList);

impl EnvironmentKeyRing {
    /// Reads the variable once.
    pub fn new(variable: &str) -> Result<EnvironmentKeyRing, EncryptionError> {
        let text = std::env::var(variable).map(Zeroizing::new).map_err(|_| {
            EncryptionError::KeyRing(format!("the environment variable {variable} is not set").into())
        })?;
        Ok(EnvironmentKeyRing(KeyList::parse(&text)?))
    }

    /// The ids of all keys, the current one first.
    pub fn key_ids(&self) -> Vec<String> {
        self.0.ids()
    }
}

impl KeyRing for InMemoryKeyRing {
    fn wrap<'a>(&'a self, content_key: &'a ContentKey) -> KeyAnswer<'a, WrappedKey> {
        KeyAnswer::ready(self.0.get().wrap(content_key))
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> KeyAnswer<'a, ContentKey> {
        KeyAnswer::ready(self.0.get().unwrap(wrapped))
    }
}

impl KeyRing for EnvironmentKeyRing {
    fn wrap<'a>(&'a self, content_key: &'a ContentKey) -> KeyAnswer<'a, WrappedKey> {
        KeyAnswer::ready(self.0.wrap(content_key))
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> KeyAnswer<'a, ContentKey> {
        KeyAnswer::ready(self.0.unwrap(wrapped))
    }
}

impl std::fmt::Debug for InMemoryKeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InMemoryKeyRing").field(&self.key_ids()).finish()
    }
}

impl std::fmt::Debug for EnvironmentKeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EnvironmentKeyRing").field(&self.key_ids()).finish()
    }
}
