//! Sealing the properties of one entity, and opening them.
//!
//! Each sealed value is `nonce || ciphertext || tag`. The authenticated data names the format, the table, both keys and
//! the property, so a sealed value is valid in one place only. The content key is new for every write, so values of
//! different writes cannot be mixed either.
//!
//! No nonce repeats under a key: the first nonce of a write is random, each further one adds one to its last 32 bits,
//! and an entity has fewer than 2^32 properties. Another write has another key.

use std::borrow::Cow;

use ring::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::key_ring::fill_random;
use super::metadata::{read_key, read_list, write_key, write_list};
use super::{ContentKey, EncryptionError, KEY_PROPERTY, KeyRing, LIST_PROPERTY, payload};
use crate::{Keys, Property, Row, Value};

/// The authenticated data begins with it. A change of the format changes it.
const FORMAT: &[u8] = b"lazulite-client entity 1";
const TAG_BYTES: usize = 16;
/// What the service stores in one binary property.
const BINARY_BYTES_MAX: usize = 64 * 1024;
/// What the service stores in one entity, beside keys and Timestamp.
const PROPERTY_COUNT_MAX: usize = 252;
const METADATA_COUNT: usize = 2;

/// Where an entity is stored. Sealed values are valid there only.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The table's name; its case does not matter.
    pub table: &'a str,
    /// The entity's keys.
    pub keys: &'a Keys<'a>,
}

/// Seals the properties with these names, and appends the two properties of metadata.
///
/// An absent property stays absent, and cannot be added later by someone without the key ring. On an error the
/// properties may be partly sealed, and must not be sent.
pub async fn seal(
    properties: &mut Vec<Property<'_>>,
    names: &[&str],
    place: &Place<'_>,
    ring: &dyn KeyRing,
) -> Result<(), EncryptionError> {
    for reserved in [KEY_PROPERTY, LIST_PROPERTY] {
        if properties.iter().any(|property| property.name == reserved) {
            return Err(EncryptionError::ReservedName { property: reserved });
        }
    }
    let count_max = PROPERTY_COUNT_MAX - METADATA_COUNT;
    if properties.len() > count_max {
        return Err(EncryptionError::TooManyProperties { count: properties.len(), count_max });
    }
    let content_key = ContentKey::generate()?;
    let wrapped = write_key(&ring.wrap(&content_key).await?)?;

    let mut sealer = Sealer::new(&content_key)?;
    let mut context = Context::new(place.table, &place.keys.partition_key, &place.keys.row_key);
    for property in properties.iter_mut().filter(|property| names.contains(&&*property.name)) {
        let mut plain = sealer.begin(payload::len(&property.value));
        payload::write(&property.value, &mut plain);
        property.value = sealer.finish(plain, &property.name, &mut context)?;
    }
    let sealed_names = properties.iter().map(|property| &*property.name).filter(|name| names.contains(name));
    let list = write_list(sealed_names)?;
    let mut plain = sealer.begin(list.len());
    plain.extend_from_slice(&list);
    let list = sealer.finish(plain, LIST_PROPERTY, &mut context)?;

    properties
        .push(Property { name: Cow::Borrowed(KEY_PROPERTY), value: Value::String(Cow::Owned(wrapped)) });
    properties.push(Property { name: Cow::Borrowed(LIST_PROPERTY), value: list });
    Ok(())
}

/// Opens every sealed property of the row, and removes the two properties of metadata. Returns the names of the
/// properties that it opened: whoever writes the row back has to seal these again.
///
/// `names` are the properties that the caller expects to be sealed. One of them that is stored in the clear is refused,
/// and so is one that was sealed but is no longer there. On an error the row may be partly opened, and must not be
/// used.
pub async fn unseal(
    row: &mut Row<'_>,
    names: &[&str],
    table: &str,
    ring: &dyn KeyRing,
) -> Result<Vec<String>, EncryptionError> {
    let missing = |property| EncryptionError::MissingMetadata { property };
    let wrapped = match row.take(KEY_PROPERTY).ok_or(missing(KEY_PROPERTY))? {
        Value::String(text) => read_key(&text)?,
        _ => return Err(EncryptionError::MalformedMetadata { reason: "the wrapped key is not a string" }),
    };
    let list = row.take(LIST_PROPERTY).ok_or(missing(LIST_PROPERTY))?;
    let content_key = ring.unwrap(&wrapped).await?;

    let opener = key_of(&content_key)?;
    let mut context = Context::new(table, &row.partition_key, &row.row_key);
    let list = open(&opener, list, LIST_PROPERTY, &mut context)?;
    let sealed = read_list(&list)?;
    let mut was_seen = vec![false; sealed.len()];
    for property in &mut row.properties {
        let Some(at) = sealed.iter().position(|name| *name == property.name) else {
            let is_reserved = [KEY_PROPERTY, LIST_PROPERTY].contains(&&*property.name);
            if is_reserved || names.contains(&&*property.name) {
                return Err(EncryptionError::NotEncrypted { property: property.name.to_string() });
            }
            continue;
        };
        // A second property of the same name would be one that nobody sealed.
        if std::mem::replace(&mut was_seen[at], true) {
            return Err(EncryptionError::NotEncrypted { property: property.name.to_string() });
        }
        let value = std::mem::replace(&mut property.value, Value::Boolean(false));
        let opened = open(&opener, value, &property.name, &mut context)?;
        property.value = payload::read(opened).ok_or(EncryptionError::MalformedMetadata {
            reason: "a sealed value has no type that is known",
        })?;
    }
    let removed = sealed.iter().zip(&was_seen).find(|(name, seen)| !**seen && names.contains(name));
    match removed {
        Some((name, _)) => Err(EncryptionError::Removed { property: (*name).to_owned() }),
        None => {
            let opened = sealed.iter().zip(&was_seen).filter(|(_, seen)| **seen);
            Ok(opened.map(|(name, _)| (*name).to_owned()).collect())
        }
    }
}

/// The text that [`KEY_PROPERTY`] of a stored entity should have instead of `stored`, so that the ring's current key
/// opens it. `None` if the current key wrapped it already.
///
/// The content key and the sealed values stay as they are. So this one property can be merged into the stored entity,
/// under the condition that its ETag has not changed since.
///
/// ```
/// use lazulite_client::encryption::{InMemoryKeyRing, KEY_PROPERTY, Place, rewrap, seal, unseal};
/// use lazulite_client::{Keys, Property, Row, Value};
///
/// # let run = async {
/// let ring = InMemoryKeyRing::new("old", [1; 32])?;
/// let keys = Keys { partition_key: "p".into(), row_key: "r".into() };
/// let mut properties = vec![Property { name: "secret".into(), value: Value::String("s".into()) }];
/// seal(&mut properties, &["secret"], &Place { table: "things", keys: &keys }, &ring).await?;
///
/// ring.add("new", [2; 32])?;
/// ring.promote("new")?;
/// let stored = properties.iter_mut().find(|property| property.name == KEY_PROPERTY).unwrap();
/// let Value::String(text) = &stored.value else { unreachable!() };
/// let rewrapped = rewrap(text, &ring).await?.expect("the old key wrapped it");
/// assert_eq!(rewrap(&rewrapped, &ring).await?, None);
/// stored.value = Value::String(rewrapped.into());
///
/// ring.remove("old")?;
/// let mut row = Row { partition_key: "p".into(), row_key: "r".into(), properties, ..Row::default() };
/// unseal(&mut row, &["secret"], "things", &ring).await?;
/// assert_eq!(row.take("secret"), Some(Value::String("s".into())));
/// # Ok::<(), lazulite_client::encryption::EncryptionError>(())
/// # };
/// # let mut run = std::pin::pin!(run);
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # let std::task::Poll::Ready(result) = std::future::Future::poll(run.as_mut(), &mut context) else { panic!() };
/// # result.unwrap();
/// ```
pub async fn rewrap(stored: &str, ring: &dyn KeyRing) -> Result<Option<String>, EncryptionError> {
    let before = read_key(stored)?;
    let content_key = ring.unwrap(&before).await?;
    let after = ring.wrap(&content_key).await?;
    if after.key_id == before.key_id { Ok(None) } else { write_key(&after).map(Some) }
}

fn key_of(content_key: &ContentKey) -> Result<LessSafeKey, EncryptionError> {
    let unbound = UnboundKey::new(&aead::AES_256_GCM, content_key.as_bytes());
    Ok(LessSafeKey::new(unbound.map_err(|_| EncryptionError::KeyRing("a content key does not fit".into()))?))
}

/// Seals the values of one write.
struct Sealer {
    key: LessSafeKey,
    next_nonce: [u8; NONCE_LEN],
}

impl Sealer {
    /// The key must be new: nonces are unique within one sealer only.
    fn new(content_key: &ContentKey) -> Result<Sealer, EncryptionError> {
        let mut next_nonce = [0; NONCE_LEN];
        fill_random(&mut next_nonce)?;
        Ok(Sealer { key: key_of(content_key)?, next_nonce })
    }

    /// A buffer that begins with the next nonce and has room for the rest.
    fn begin(&mut self, plain_bytes: usize) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(NONCE_LEN + plain_bytes + TAG_BYTES);
        buffer.extend_from_slice(&self.next_nonce);
        let [.., a, b, c, d] = &mut self.next_nonce;
        [*a, *b, *c, *d] = u32::from_be_bytes([*a, *b, *c, *d]).wrapping_add(1).to_be_bytes();
        buffer
    }

    /// Seals what follows the nonce.
    fn finish(
        &self,
        mut buffer: Vec<u8>,
        property: &str,
        context: &mut Context,
    ) -> Result<Value<'static>, EncryptionError> {
        let bytes = buffer.len() + TAG_BYTES;
        let too_large = || EncryptionError::TooLarge {
            property: property.to_owned(),
            bytes,
            bytes_max: BINARY_BYTES_MAX,
        };
        if bytes > BINARY_BYTES_MAX {
            return Err(too_large());
        }
        let (nonce, plain) = buffer.split_at_mut(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| too_large())?;
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(context.of(property)), plain);
        buffer.extend_from_slice(tag.map_err(|_| too_large())?.as_ref());
        Ok(Value::Binary(Cow::Owned(buffer)))
    }
}

fn open(
    key: &LessSafeKey,
    value: Value<'_>,
    property: &str,
    context: &mut Context,
) -> Result<Vec<u8>, EncryptionError> {
    let Value::Binary(sealed) = value else {
        return Err(EncryptionError::NotEncrypted { property: property.to_owned() });
    };
    let not_authentic = || EncryptionError::NotAuthentic { property: property.to_owned() };
    let mut buffer = sealed.into_owned();
    let nonce = buffer.first_chunk::<NONCE_LEN>().ok_or_else(not_authentic)?;
    let nonce = Nonce::assume_unique_for_key(*nonce);
    // The plaintext is written over the nonce, at the start of the buffer.
    let plain = key.open_within(nonce, Aad::from(context.of(property)), &mut buffer, NONCE_LEN..);
    let plain_bytes = plain.map_err(|_| not_authentic())?.len();
    buffer.truncate(plain_bytes);
    Ok(buffer)
}

/// The authenticated data: format, table, keys, property. Each piece follows its length, so no two places have the
/// same.
struct Context {
    bytes: Vec<u8>,
    /// The length without the property.
    place_bytes: usize,
}

impl Context {
    fn new(table: &str, partition_key: &str, row_key: &str) -> Context {
        let mut bytes = FORMAT.to_vec();
        // Names that differ in case only are the same table.
        push_piece(&mut bytes, &table.to_ascii_lowercase());
        push_piece(&mut bytes, partition_key);
        push_piece(&mut bytes, row_key);
        let place_bytes = bytes.len();
        Context { bytes, place_bytes }
    }

    fn of(&mut self, property: &str) -> &[u8] {
        self.bytes.truncate(self.place_bytes);
        push_piece(&mut self.bytes, property);
        &self.bytes
    }
}

fn push_piece(out: &mut Vec<u8>, piece: &str) {
    out.extend_from_slice(&(piece.len() as u64).to_be_bytes());
    out.extend_from_slice(piece.as_bytes());
}
