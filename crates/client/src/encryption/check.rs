//! What an entity with encrypted properties cannot do, refused before anything is sent.

use super::{EncryptionError, KEY_PROPERTY, LIST_PROPERTY};
use crate::Entity;

/// What opening a sealed property needs: the metadata, and the keys that the sealed bytes are bound to.
const NEEDED: [&str; 4] = [KEY_PROPERTY, LIST_PROPERTY, "PartitionKey", "RowKey"];

/// Refuses to merge an entity that has encrypted fields.
///
/// A merge keeps the stored properties that it does not mention. Those were sealed under the content key of an earlier
/// write, and a merge replaces the metadata with which that key is found: they would be lost.
pub fn check_merge<E: Entity>() -> Result<(), EncryptionError> {
    if E::ENCRYPTED.is_empty() { Ok(()) } else { Err(EncryptionError::Merge) }
}

/// Refuses a projection (`$select`) that fetches an encrypted property of `E`, but not the metadata and keys that are
/// needed to open it. [`with_metadata_columns`] adds them.
pub fn check_projection<E: Entity>(columns: &[&str]) -> Result<(), EncryptionError> {
    check_columns(E::ENCRYPTED, columns)
}

pub(super) fn check_columns(encrypted: &[&str], columns: &[&str]) -> Result<(), EncryptionError> {
    if !encrypted.iter().any(|name| columns.contains(name)) {
        return Ok(());
    }
    match NEEDED.iter().find(|name| !columns.contains(name)) {
        Some(missing) => Err(EncryptionError::Projection { missing }),
        None => Ok(()),
    }
}

/// The columns that a query for `E` fetches, with those that are needed to open its encrypted fields. `None` means all.
pub fn with_metadata_columns<E: Entity>() -> Option<Vec<&'static str>> {
    let mut columns = E::COLUMNS?.to_vec();
    if !E::ENCRYPTED.is_empty() {
        for name in NEEDED {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
    }
    Some(columns)
}
