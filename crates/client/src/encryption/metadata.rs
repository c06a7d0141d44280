//! The two properties beside the sealed ones: who wrapped the content key, and which properties are sealed.
//!
//! The names, and the words inside the first, are those of the .NET library's encryption; the protocol is our own, so
//! that no other library takes our rows for its own (docs/encryption.md).
//! Promises: exactly one text stands for a wrapped key. Everything in that text is either fixed or covered by the key
//! ring's authentication, so no changed text is accepted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{EncryptionError, WrappedKey};

/// The property with the wrapped content key, an Edm.String.
pub const KEY_PROPERTY: &str = "_ClientEncryptionMetadata1";
/// The property with the sealed list of encrypted properties, an Edm.Binary.
pub const LIST_PROPERTY: &str = "_ClientEncryptionMetadata2";

const PROTOCOL: &str = "Lazulite-1";
const WORD_BYTES_MAX: usize = 256;
const WRAPPED_BYTES_MAX: usize = 4096;
/// How much of an unknown protocol's name an error shows.
const SHOWN_PROTOCOL_CHARS_MAX: usize = 32;

const BEFORE_ID: &str = r#"{"WrappedContentKey":{"KeyId":""#;
const BEFORE_KEY: &str = r#"","EncryptedKey":""#;
const BEFORE_ALGORITHM: &str = r#"","Algorithm":""#;
const END: &str = r#""},"EncryptionAgent":{"Protocol":"Lazulite-1","EncryptionAlgorithm":"AES_GCM_256"},"KeyWrappingMetadata":{}}"#;
const BEFORE_PROTOCOL: &str = r#""Protocol":""#;

/// Whether a text can be a key id or the name of an algorithm. None of these characters needs escaping in JSON.
pub(super) fn is_word(text: &str) -> bool {
    (1..=WORD_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b';' | b'='))
}

pub(super) fn write_key(wrapped: &WrappedKey) -> Result<String, EncryptionError> {
    if !is_word(&wrapped.key_id) || !is_word(&wrapped.algorithm) || wrapped.bytes.len() > WRAPPED_BYTES_MAX {
        return Err(EncryptionError::KeyRing("it gave a wrapped key that cannot be stored".into()));
    }
    let key = STANDARD.encode(&wrapped.bytes);
    Ok([BEFORE_ID, &wrapped.key_id, BEFORE_KEY, &key, BEFORE_ALGORITHM, &wrapped.algorithm, END].concat())
}

pub(super) fn read_key(text: &str) -> Result<WrappedKey, EncryptionError> {
    scan_key(text).ok_or_else(|| explain(text))
}

fn scan_key(text: &str) -> Option<WrappedKey> {
    let rest = text.strip_prefix(BEFORE_ID)?.strip_suffix(END)?;
    let (key_id, rest) = rest.split_once(BEFORE_KEY)?;
    let (key, algorithm) = rest.split_once(BEFORE_ALGORITHM)?;
    if !is_word(key_id) || !is_word(algorithm) || key.len() > WRAPPED_BYTES_MAX.div_ceil(3) * 4 {
        return None;
    }
    // This decoder refuses every text that the encoder would not have written.
    let bytes = STANDARD.decode(key).ok()?;
    Some(WrappedKey { key_id: key_id.to_owned(), algorithm: algorithm.to_owned(), bytes })
}

fn explain(text: &str) -> EncryptionError {
    let named = text.split_once(BEFORE_PROTOCOL).and_then(|(_, rest)| rest.split_once('"'));
    match named {
        Some((protocol, _)) if protocol != PROTOCOL => {
            let shown = protocol.chars().take(SHOWN_PROTOCOL_CHARS_MAX).collect();
            EncryptionError::UnknownProtocol { protocol: shown }
        }
        _ => EncryptionError::MalformedMetadata {
            reason: "the wrapped key is not in the form that was written",
        },
    }
}

/// The names of sealed properties, each after its length in two bytes.
pub(super) fn write_list<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<u8>, EncryptionError> {
    let mut list = Vec::new();
    for name in names {
        let len = u16::try_from(name.len())
            .map_err(|_| EncryptionError::MalformedMetadata { reason: "a property's name is too long" })?;
        list.extend_from_slice(&len.to_be_bytes());
        list.extend_from_slice(name.as_bytes());
    }
    Ok(list)
}

/// Reads a list that was opened, so it is one that this library wrote; but it may be of a library with a mistake.
pub(super) fn read_list(list: &[u8]) -> Result<Vec<&str>, EncryptionError> {
    let malformed = EncryptionError::MalformedMetadata { reason: "the list of properties cannot be read" };
    let mut names = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let Some((len, after)) = rest.split_first_chunk::<2>() else { return Err(malformed) };
        let Some((name, after)) = after.split_at_checked(usize::from(u16::from_be_bytes(*len))) else {
            return Err(malformed);
        };
        let Ok(name) = std::str::from_utf8(name) else { return Err(malformed) };
        names.push(name);
        rest = after;
    }
    Ok(names)
}
