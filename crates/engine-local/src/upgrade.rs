//! From an older format to the present one, when a store is opened.
//!
//! - From format 2 to 3: the lists of live and dropped tables become rows, and the tree stores the last record of the
//!   commit log that it contains. Format 2 has no log; opening creates one.
//! - From format 3 to 4: the store gets an id, which its tree, its marker and every segment of its log carry. All records
//!   of the old segments are folded into the tree, and the log goes on in a new segment.
//!
//! Promises: each step is one transaction, and the marker is written after the last. If a crash comes in between, the
//! upgrade runs again from the beginning: a step that was done changes nothing.

use redb::{Database, ReadableTable, TableDefinition, TableError};

use crate::fold_rows::FoldRows;
use crate::row_bytes;
use crate::store::{
    DROPPED, LIVE, META, META_FOLDED, META_LAST_VERSION, META_STORE, ROWS, begin_write, list_key,
};
use crate::store_id::StoreId;
use crate::view::Frozen;
use engine::{TableId, Version};

const LISTS: [(TableDefinition<u64, ()>, TableId); 2] =
    [(TableDefinition::new("live"), LIVE), (TableDefinition::new("dropped"), DROPPED)];

pub(crate) fn from_format_2(database: &Database) -> Result<(), redb::Error> {
    let transaction = begin_write(database)?;
    {
        let mut rows = transaction.open_table(ROWS)?;
        let mut meta = transaction.open_table(META)?;
        let last_version = meta.get(META_LAST_VERSION)?.map_or(0, |ticks| ticks.value());
        let version = Version::new(last_version.max(1)).expect("at least one");
        if meta.get(META_FOLDED)?.is_none() {
            meta.insert(META_FOLDED, 0)?;
        }
        for (old, list) in LISTS {
            for id in ids(&transaction, old)? {
                let key = list_key(list, TableId(id));
                let mut place = rows.insert_reserve(&key[..], row_bytes::size_bytes(&[]))?;
                row_bytes::write(place.as_mut(), &key, version, &[]);
            }
            transaction.delete_table(old)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Gives the store an id, unless it has one.
pub(crate) fn give_id(database: &Database) -> Result<(), redb::Error> {
    let transaction = begin_write(database)?;
    {
        let mut meta = transaction.open_table(META)?;
        if meta.get(META_STORE)?.is_some() {
            drop(meta);
            return Ok(transaction.abort()?);
        }
        meta.insert(META_STORE, StoreId::new().number())?;
    }
    Ok(transaction.commit()?)
}

/// Folds what the old segments hold; returns whether a table was dropped.
pub(crate) fn fold(database: &Database, rows: &Frozen) -> Result<bool, redb::Error> {
    let mut rows = FoldRows::new(rows);
    // In one transaction: the promise above.
    rows.write(begin_write(database)?, |_| false)?;
    Ok(rows.drops_any())
}

fn ids(
    transaction: &redb::WriteTransaction,
    list: TableDefinition<u64, ()>,
) -> Result<Vec<u64>, redb::Error> {
    match transaction.open_table(list) {
        Ok(table) => table.iter()?.map(|entry| Ok(entry?.0.value())).collect(),
        Err(TableError::TableDoesNotExist(_)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
