//! The intra-partition secondary index: copies of an entity in its own partition, under other RowKeys.
//!
//! Promises: one transaction writes the primary and its copies, so no reader ever sees them differ, and the value that a copy
//! is named after is unique in the partition: a second entity with the same value is refused (409). Leaves to others: the
//! bound of 100 operations in a transaction.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use lazulite_client::{Entity, Error, IfMatch, TableClient};

use crate::raw::{RawEntity, rows_between};

/// The RowKeys of the copies.
type CopyNames<E> = dyn Fn(&E) -> Vec<String> + Send + Sync;

/// A table whose entities have copies in their own partition.
///
/// ```no_run
/// use lazulite_client::{Entity, Error, TableClient};
/// use lazulite_patterns::partition_index::PartitionIndex;
///
/// #[derive(Entity)]
/// struct Employee {
///     #[entity(partition_key)]
///     department: String,
///     #[entity(row_key)]
///     key: String,
///     email: String,
/// }
///
/// # async fn f(table: TableClient, jonas: Employee) -> Result<(), Error> {
/// let employees = PartitionIndex::new(table, |employee: &Employee| vec![format!("email_{}", employee.email)]);
/// employees.insert(&jonas).await?;
/// let found = employees.find("Sales", "email_jonesj@contoso.com").await?;
/// # Ok(()) }
/// ```
pub struct PartitionIndex<E> {
    table: TableClient,
    copies: Arc<CopyNames<E>>,
}

impl<E: Entity + Sync> PartitionIndex<E> {
    /// `copies` names the RowKeys of an entity's copies. They must differ from the RowKey of every primary: give each index
    /// a prefix.
    pub fn new(
        table: TableClient,
        copies: impl Fn(&E) -> Vec<String> + Send + Sync + 'static,
    ) -> PartitionIndex<E> {
        PartitionIndex { table, copies: Arc::new(copies) }
    }

    /// The copies of an entity, for a bulk load.
    pub fn copies_of(&self, entity: &E) -> Result<Vec<RawEntity>, Error> {
        let partition_key = entity.keys()?.partition_key;
        let names = (self.copies)(entity).into_iter();
        Ok(names.map(|name| RawEntity::copy_of(entity, &partition_key, &name)).collect::<Result<_, _>>()?)
    }

    /// Inserts an entity and its copies. Refused (409) if the entity or one of the copies' RowKeys exists.
    pub async fn insert(&self, entity: &E) -> Result<(), Error> {
        let keys = entity.keys()?;
        let mut transaction = self.table.transaction(keys.partition_key.as_ref());
        transaction.insert(entity)?;
        for copy in self.copies_of(entity)? {
            transaction.insert(&copy)?;
        }
        transaction.send().await.map(|_| ())
    }

    /// Replaces an entity and its copies. `old` is the primary as it was read, with its ETag. Refused (412) if it changed
    /// meanwhile.
    pub async fn replace(&self, old: &E, new: &E) -> Result<(), Error> {
        let keys = new.keys()?;
        if old.keys()? != keys {
            return Err(Error::Refused("an entity cannot be replaced by one with other keys".to_owned()));
        }
        let etag = own_etag(old)?;
        let names = |entity: &E| (self.copies)(entity).into_iter().collect::<BTreeSet<String>>();
        let (before, after) = (names(old), names(new));
        let mut transaction = self.table.transaction(keys.partition_key.as_ref());
        transaction.replace(new, IfMatch::ETag(etag))?;
        for name in &after {
            let copy = RawEntity::copy_of(new, &keys.partition_key, name)?;
            // A copy that was there is under the primary's ETag; a new one must not take another entity's place.
            if before.contains(name) {
                transaction.upsert_replace(&copy)?;
            } else {
                transaction.insert(&copy)?;
            }
        }
        for name in before.difference(&after) {
            transaction.delete(name, IfMatch::Any)?;
        }
        transaction.send().await.map(|_| ())
    }

    /// Deletes an entity and its copies. `old` is the primary as it was read, with its ETag.
    pub async fn delete(&self, old: &E) -> Result<(), Error> {
        let keys = old.keys()?;
        let mut transaction = self.table.transaction(keys.partition_key.as_ref());
        transaction.delete(&keys.row_key, IfMatch::ETag(own_etag(old)?))?;
        for name in (self.copies)(old) {
            transaction.delete(&name, IfMatch::Any)?;
        }
        transaction.send().await.map(|_| ())
    }

    /// The entity with a copy of this name: one point read. Its ETag is that of the copy; read the primary to change it.
    pub async fn find(&self, partition_key: &str, name: &str) -> Result<Option<E>, Error> {
        let copy = self.table.try_get::<RawEntity>(partition_key, name).await?;
        Ok(copy.map(RawEntity::into_primary).transpose()?)
    }

    /// The entities whose copies have names in this range, in the order of those names: one row range.
    pub async fn list(&self, partition_key: &str, names: Range<String>) -> Result<Vec<E>, Error> {
        let copies = rows_between(&self.table, partition_key, &names).await?;
        Ok(copies.into_iter().map(RawEntity::into_primary).collect::<Result<_, _>>()?)
    }
}

/// The ETag of an entity that was read.
pub(crate) fn own_etag<E: Entity>(entity: &E) -> Result<&str, Error> {
    entity.etag().ok_or_else(|| {
        Error::Refused(
            "the entity has no ETag: give its struct a field with #[entity(etag)], and read it".to_owned(),
        )
    })
}
