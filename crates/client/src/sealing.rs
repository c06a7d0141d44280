//! Where encryption meets the operations: what is sealed, what is unsealed, and what must be refused.
//!
//! Promises: a struct with encrypted properties is neither written nor read without a key ring, and reads no property
//! that was sealed unless it marks it, so that it cannot store it in the clear. Leaves to others: the
//! ciphers, the keys and the stored form (`encryption`).

use std::borrow::Cow;
use std::sync::Arc;

use crate::encryption::{EncryptionError, KeyRing, Place, seal, unseal};
use crate::{Entity, Error, Keys, Property, Row};

/// The key ring of a table client, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Sealing {
    pub(crate) ring: Option<Arc<dyn KeyRing>>,
}

/// What a type of entity reads, and what it marks as encrypted.
#[derive(Clone, Copy)]
pub(crate) struct Marks {
    /// `None` means every property.
    columns: Option<&'static [&'static str]>,
    pub(crate) encrypted: &'static [&'static str],
}

impl Marks {
    pub(crate) fn of<E: Entity>() -> Marks {
        Marks { columns: E::COLUMNS, encrypted: E::ENCRYPTED }
    }

    /// Whether the type would read this property as one that was never sealed.
    fn takes_for_plain(&self, name: &str) -> bool {
        !self.encrypted.contains(&name) && self.columns.is_none_or(|columns| columns.contains(&name))
    }
}

impl Sealing {
    /// The ring for these encrypted properties; `None` when there are none. Refuses if there are, but no ring.
    pub(crate) fn ring(&self, encrypted: &[&str]) -> Result<Option<&dyn KeyRing>, Error> {
        if encrypted.is_empty() {
            return Ok(None);
        }
        match &self.ring {
            Some(ring) => Ok(Some(&**ring)),
            None => Err(Error::Refused(format!(
                "the properties {} are encrypted, and this table client has no key ring: \
                 give it one with with_key_ring",
                encrypted.join(", ")
            ))),
        }
    }

    /// Seals the encrypted ones of an entity's properties.
    pub(crate) async fn seal(
        &self,
        encrypted: &[&str],
        properties: &mut Vec<Property<'_>>,
        table: &str,
        keys: &Keys<'_>,
    ) -> Result<(), Error> {
        match self.ring(encrypted)? {
            Some(ring) => Ok(seal(properties, encrypted, &Place { table, keys }, ring).await?),
            None => Ok(()),
        }
    }

    /// Opens the encrypted properties of a row, and returns their names. For a type without encrypted properties the
    /// row stays as it is.
    pub(crate) async fn unseal(
        &self,
        marks: Marks,
        row: &mut Row<'_>,
        table: &str,
    ) -> Result<Vec<String>, Error> {
        let Some(ring) = self.ring(marks.encrypted)? else { return Ok(Vec::new()) };
        let opened = unseal(row, marks.encrypted, table, ring).await?;
        match opened.iter().find(|name| marks.takes_for_plain(name)) {
            Some(property) => Err(EncryptionError::Unmarked { property: property.clone() }.into()),
            None => Ok(opened),
        }
    }
}

/// Refuses a projection that fetches a property of `E` that is encrypted, but takes it for plain: it would read
/// ciphertext, without the metadata that tells how to open it.
pub(crate) fn check_projection<E: Entity, P: Entity>() -> Result<(), Error> {
    let Some(columns) = P::COLUMNS else { return Ok(()) };
    let is_lost = |name: &&&str| columns.contains(*name) && !P::ENCRYPTED.contains(*name);
    match E::ENCRYPTED.iter().find(is_lost) {
        None => Ok(()),
        Some(name) => Err(Error::Refused(format!(
            "the projection fetches {name:?}, which is encrypted, without the metadata that opens it: \
             mark its field with #[entity(encrypt)], or leave it out"
        ))),
    }
}

/// The same row without a borrow.
pub(crate) fn own_row(row: Row<'_>) -> Row<'static> {
    let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    Row {
        partition_key: own(row.partition_key),
        row_key: own(row.row_key),
        timestamp: row.timestamp,
        etag: row.etag.map(own),
        properties: row.properties.into_iter().map(own_property).collect(),
    }
}

/// The same property without a borrow.
pub(crate) fn own_property(property: Property<'_>) -> Property<'static> {
    Property { name: Cow::Owned(property.name.into_owned()), value: property.value.into_owned() }
}
