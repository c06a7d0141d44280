//! From format 2 to format 3: the lists of live and dropped tables become rows, and the tree stores the last record
//! of the commit log that it contains. Format 2 has no log; opening creates one.
//!
//! Promises: it is one transaction, and the marker is written after it. If a crash comes between the two, the upgrade
//! runs again and changes nothing.

use redb::{Database, ReadableTable, TableDefinition, TableError};

use crate::row_bytes;
use crate::store::{DROPPED, LIVE, META, META_FOLDED, META_LAST_VERSION, ROWS, begin_write, list_key};
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
