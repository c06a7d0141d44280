//! Removes the rows of dropped tables, a slice at a time.
//!
//! Promises: a slice is one short durable transaction. An interrupted sweep continues where it stopped, because a
//! table leaves the list of dropped tables together with its last row. When a table is on
//! that list in the tree, a fold that a crash interrupted may still have rows of it in the log. The fold that repeats it
//! leaves them out and lists the table again (`fold_rows.rs`).

use redb::{ReadableTable, WriteTransaction};

use crate::store::{DROPPED, ROWS, listed_table};
use engine::TableId;
use engine::keys;

pub(crate) const SLICE_ROW_COUNT_MAX: usize = 500;
/// Freeing a large value means reading its pages.
const SLICE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) struct Swept {
    pub(crate) row_count: u64,
    /// Whether there may be more to sweep.
    pub(crate) more: bool,
}

/// Removes a few rows of one dropped table, in a transaction of its own.
pub(crate) fn sweep_slice(transaction: WriteTransaction) -> Result<Swept, redb::Error> {
    let row_count;
    {
        let mut rows = transaction.open_table(ROWS)?;
        let Some((listed, table)) = first_dropped(&rows)? else {
            drop(rows);
            transaction.abort()?;
            return Ok(Swept { row_count: 0, more: false });
        };
        let (keys, last) = next_keys(&rows, table)?;
        for key in &keys {
            rows.remove(&key[..])?;
        }
        if last {
            rows.remove(&listed[..])?;
        }
        row_count = keys.len() as u64;
    }
    transaction.commit()?;
    // That may have been the last table; the next slice will tell.
    Ok(Swept { row_count, more: true })
}

/// The first table on the list, and its key there.
pub(crate) fn first_dropped(
    rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
) -> Result<Option<(Vec<u8>, TableId)>, redb::Error> {
    let (start, end) = keys::table_range(DROPPED);
    let Some(entry) = rows.range(&start[..]..&end[..])?.next() else { return Ok(None) };
    let listed = entry?.0.value().to_vec();
    let broken = || redb::Error::Corrupted(format!("{}: it names no table", keys::describe(&listed)));
    let table = listed_table(&listed).ok_or_else(broken)?;
    Ok(Some((listed, table)))
}

/// The table's first keys, and whether they are all of its keys.
fn next_keys(
    rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
    table: TableId,
) -> Result<(Vec<Vec<u8>>, bool), redb::Error> {
    let (start, end) = keys::table_range(table);
    let mut keys = Vec::new();
    let mut bytes = 0;
    for entry in rows.range(&start[..]..&end[..])? {
        if keys.len() >= SLICE_ROW_COUNT_MAX || bytes >= SLICE_BYTES_MAX {
            return Ok((keys, false));
        }
        let (key, value) = entry?;
        bytes += value.value().len();
        keys.push(key.value().to_vec());
    }
    Ok((keys, true))
}
