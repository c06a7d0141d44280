//! The inter-partition secondary index: a copy of each entity, under keys made of other properties.

use std::sync::Arc;

use lazulite_client::{Entity, Error, IfMatch, Keys, TableClient};

use super::Follows;
use crate::keys;
use crate::raw::RawEntity;

/// How often a copy may change between being read and being deleted.
const ATTEMPT_COUNT_MAX: u32 = 16;

/// The keys of an entity's copies.
type CopyKeys<E> = dyn Fn(&E) -> Vec<Keys<'static>> + Send + Sync;

/// The copies of entities in a table of their own. A place is the keys of a copy.
///
/// The keys of copies must be unique: put the entity's own key behind a value that several entities may have
/// ([`keys::compose`]).
pub struct CopyIndex<E> {
    table: TableClient,
    copies: Arc<CopyKeys<E>>,
}

impl<E: Entity + Sync> CopyIndex<E> {
    /// `copies` gives the keys of an entity's copies, none if it has none.
    pub fn new(
        table: TableClient,
        copies: impl Fn(&E) -> Vec<Keys<'static>> + Send + Sync + 'static,
    ) -> CopyIndex<E> {
        CopyIndex { table, copies: Arc::new(copies) }
    }

    /// The entity with a copy under these keys, as it was when the copy was made. One point read.
    pub async fn find(&self, partition_key: &str, row_key: &str) -> Result<Option<E>, Error> {
        let copy = self.table.try_get::<RawEntity>(partition_key, row_key).await?;
        Ok(copy.map(RawEntity::into_primary).transpose()?)
    }

    /// The copies of an entity, for a bulk load.
    pub fn copies_of(&self, entity: &E) -> Result<Vec<RawEntity>, Error> {
        let copies = (self.copies)(entity).into_iter();
        let copy = |keys: Keys<'_>| RawEntity::copy_of(entity, &keys.partition_key, &keys.row_key);
        Ok(copies.map(copy).collect::<Result<_, _>>()?)
    }

    /// The table that holds the copies.
    pub fn table(&self) -> &TableClient {
        &self.table
    }
}

impl<E: Entity + Sync> Follows<E> for CopyIndex<E> {
    fn places(&self, entity: &E) -> Result<Vec<String>, Error> {
        let copies = (self.copies)(entity).into_iter();
        Ok(copies.map(|keys| keys::compose([keys.partition_key, keys.row_key])).collect())
    }

    async fn settle(&self, place: &str, keys: &Keys<'_>, entity: Option<&E>) -> Result<(), Error> {
        let unreadable = || Error::Unreadable(format!("{place:?} names no copy"));
        let parts = keys::parts(place).map_err(|_| unreadable())?;
        let [partition_key, row_key] = parts.as_slice() else { return Err(unreadable()) };
        if let Some(entity) = entity {
            let copy = RawEntity::copy_of(entity, partition_key, row_key)?;
            return self.table.upsert_replace(&copy).await.map(|_| ());
        }
        for _ in 0..ATTEMPT_COUNT_MAX {
            let Some(copy) = self.table.try_get::<RawEntity>(partition_key, row_key).await? else {
                return Ok(());
            };
            if !copy.is_copy_of(keys) {
                return Ok(());
            }
            match self.table.delete(partition_key, row_key, IfMatch::ETag(copy.read_etag()?)).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_not_found() || error.is_precondition_failed() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!("the copy at {place:?} changes all the time")))
    }
}
