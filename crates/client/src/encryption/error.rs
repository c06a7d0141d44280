//! Why something was not sealed, or not opened.

use std::borrow::Cow;
use std::fmt;

/// Why a property was not sealed or not opened. Holds names of properties and ids of keys, but no values and no keys.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EncryptionError {
    /// The entity has encrypted fields, but the client was built without a key ring.
    NoKeyRing,
    /// The row has no `_ClientEncryptionMetadata1` or `2`: it was written without encryption, or a projection or
    /// another program dropped them.
    MissingMetadata {
        /// The metadata property that is missing.
        property: &'static str,
    },
    /// The metadata is not of the form that this library writes.
    MalformedMetadata {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Another library, or a later version of this one, encrypted the row.
    UnknownProtocol {
        /// What the metadata names as its protocol; `1.0` is the old .NET library.
        protocol: String,
    },
    /// The key ring has no key with this id.
    UnknownKey {
        /// The id of the key that wrapped the content key.
        key_id: String,
    },
    /// The key ring has a key with this id, but that key did not wrap this content key; or the wrapped key was changed.
    WrongKey {
        /// The id of the key that was tried.
        key_id: String,
    },
    /// The sealed bytes are not those that were sealed for this property of this row: they were changed, cut, or moved
    /// from another property, row or table.
    NotAuthentic {
        /// The property that could not be opened.
        property: String,
    },
    /// The row's sealed list names this property, but the row does not have it.
    Removed {
        /// The property that is missing.
        property: String,
    },
    /// The property should be encrypted, but it is stored in the clear.
    NotEncrypted {
        /// The property that is readable.
        property: String,
    },
    /// The property is encrypted in this row, but the struct that reads it does not say so: a struct that wrote it back
    /// would store it in the clear.
    Unmarked {
        /// The property that the struct takes for plain.
        property: String,
    },
    /// The sealed value would be larger than the service stores.
    TooLarge {
        /// The property that is too large.
        property: String,
        /// The length that it would have.
        bytes: usize,
        /// The most that the service stores.
        bytes_max: usize,
    },
    /// With the two properties of metadata, the entity would have more than the service stores.
    TooManyProperties {
        /// How many it has without metadata.
        count: usize,
        /// How many it may have without metadata.
        count_max: usize,
    },
    /// The entity has a property whose name is reserved for metadata.
    ReservedName {
        /// The reserved name.
        property: &'static str,
    },
    /// A merge of an entity with encrypted fields.
    Merge,
    /// A projection that fetches an encrypted property, but not everything that is needed to open it.
    Projection {
        /// The first property that is needed and not fetched.
        missing: &'static str,
    },
    /// The key ring cannot be read, or refused.
    KeyRing(Cow<'static, str>),
    /// The operating system gave no random bytes.
    NoRandomness,
}

impl fmt::Display for EncryptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use EncryptionError::*;
        match self {
            NoKeyRing => f.write_str(
                "the entity has encrypted properties, but the client has no key ring; give it one when you build it",
            ),
            MissingMetadata { property } => write!(
                f,
                "the entity has no property {property}, without which its encrypted properties cannot be opened: it \
                 was written without encryption, or the property was dropped"
            ),
            MalformedMetadata { reason } => write!(f, "the entity's encryption metadata is malformed: {reason}"),
            UnknownProtocol { protocol } => {
                write!(f, "the entity was encrypted with the protocol {protocol:?}, which this library does not read")
            }
            UnknownKey { key_id } => write!(f, "the key ring has no key {key_id:?}"),
            WrongKey { key_id } => {
                write!(f, "the key {key_id:?} of the key ring is not the one that wrapped this entity's content key")
            }
            NotAuthentic { property } => write!(
                f,
                "the property {property:?} is not what was sealed for this entity: it was changed, cut or moved"
            ),
            Removed { property } => write!(f, "the encrypted property {property:?} was removed from the entity"),
            NotEncrypted { property } => {
                write!(f, "the property {property:?} should be encrypted, but it is stored in the clear")
            }
            Unmarked { property } => write!(
                f,
                "the property {property:?} is encrypted, but the struct takes it for plain, and would store it in the \
                 clear: give it a field with #[entity(encrypt)], or do not keep the rest of the properties"
            ),
            TooLarge { property, bytes, bytes_max } => write!(
                f,
                "the property {property:?} takes {bytes} bytes when it is encrypted; the service stores {bytes_max}"
            ),
            TooManyProperties { count, count_max } => write!(
                f,
                "the entity has {count} properties; one with encrypted properties can have {count_max}, because two \
                 more hold metadata"
            ),
            ReservedName { property } => {
                write!(f, "the entity has a property {property}, a name that is reserved for encryption metadata")
            }
            Merge => f.write_str(
                "an entity with encrypted properties cannot be merged, because each write has its own content key; \
                 replace it",
            ),
            Projection { missing } => write!(
                f,
                "the projection has encrypted properties, but not {missing}, without which they cannot be opened"
            ),
            KeyRing(reason) => write!(f, "the key ring: {reason}"),
            NoRandomness => f.write_str("the operating system gave no random bytes"),
        }
    }
}

impl std::error::Error for EncryptionError {}
