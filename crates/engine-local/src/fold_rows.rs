//! Writes the rows of a fold into the tree, in key order, in as many transactions as are needed.
//!
//! redb holds the changed pages of a transaction in half of its cache. When there are more, it writes some of them before the
//! commit, and has to read them again for their checksums. So a transaction ends when redb begins to write. Rows come in
//! key order, so each transaction changes another part of the tree, and together they write hardly more pages than one
//! transaction would: those on the boundaries, and those above them.
//!
//! Promises: the last transaction, and no other, says that the records are folded. After a crash between two of them the
//! log still has every record, and folding a row twice changes nothing. Leaves to others: showing the tree to readers,
//! who see the rows in memory until all of them are folded.

use std::collections::HashSet;

use redb::WriteTransaction;

use crate::row_bytes;
use crate::store::{DROPPED, META, META_FOLDED, META_LAST_VERSION, META_NEXT_TABLE, ROWS, listed_table};
use crate::view::Frozen;
use engine::keys;
use engine::{Row, TableId};

/// A transaction has at least this many rows, however small the cache is.
const TRANSACTION_ROW_COUNT_MIN: usize = 16;

/// Rows that are being folded, and how far that has come.
pub(crate) struct FoldRows<'a> {
    frozen: &'a Frozen,
    /// The tables that these rows say were dropped.
    dropped: HashSet<TableId>,
    /// The tree has every row up to this key.
    done: Option<Box<[u8]>>,
}

impl<'a> FoldRows<'a> {
    pub(crate) fn new(frozen: &'a Frozen) -> FoldRows<'a> {
        FoldRows { frozen, dropped: dropped_tables(frozen), done: None }
    }

    /// Whether these rows say that a table was dropped.
    pub(crate) fn drops_any(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Writes the next rows in this transaction until it is full, and commits it; returns whether these were the last.
    pub(crate) fn write(
        &mut self,
        transaction: WriteTransaction,
        is_full: impl Fn() -> bool,
    ) -> Result<bool, redb::Error> {
        let (mut row_count, mut last) = (0, None);
        {
            let mut rows = transaction.open_table(ROWS)?;
            for (entry, row) in self.frozen.recent.iter_after(self.done.as_deref()) {
                let key = entry.key();
                // Rows of a dropped table do not go into the tree. Those that are there are swept.
                if !self.dropped.is_empty()
                    && keys::table_of(key).is_some_and(|table| self.dropped.contains(&table))
                {
                    continue;
                }
                match row {
                    Some(Row { version, value }) => {
                        let mut place = rows.insert_reserve(&key[..], row_bytes::size_bytes(&value))?;
                        row_bytes::write(place.as_mut(), key, version, &value);
                    }
                    None => {
                        rows.remove(&key[..])?;
                    }
                }
                row_count += 1;
                if row_count >= TRANSACTION_ROW_COUNT_MIN && is_full() {
                    last = Some(key.clone());
                    break;
                }
            }
            if last.is_none() {
                let Frozen { until, counters, .. } = *self.frozen;
                let mut meta = transaction.open_table(META)?;
                meta.insert(META_FOLDED, until)?;
                meta.insert(META_LAST_VERSION, counters.last_version)?;
                meta.insert(META_NEXT_TABLE, counters.next_table)?;
            }
        }
        transaction.commit()?;
        let is_done = last.is_none();
        self.done = last;
        Ok(is_done)
    }
}

fn dropped_tables(frozen: &Frozen) -> HashSet<TableId> {
    let (start, end) = keys::table_range(DROPPED);
    let mut listed = frozen.recent.range(&start, &end, u64::MAX);
    std::iter::from_fn(|| listed.take())
        .filter(|found| found.row.is_some())
        .filter_map(|found| listed_table(found.key()))
        .collect()
}
