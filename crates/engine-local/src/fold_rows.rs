//! Writes the rows of a fold into the tree, in key order, in as many transactions as are needed.
//!
//! The changed pages of a transaction are in memory until it is committed, so it ends when they are likely to be enough
//! ([`TransactionSize`]). redb holds them in half of its cache. When there are more, it writes some of them before the commit,
//! and has to read them again for their checksums; so a transaction also ends when redb begins to write. Rows come in key
//! order, so each transaction changes another part of the tree, and together they write hardly more pages than one transaction
//! would: those on the boundaries, and those above them.
//!
//! Promises: the last transaction, and no other, says that the records are folded. After a crash between two of them the
//! log still has every record, and folding a row twice changes nothing. Leaves to others: showing the tree to readers,
//! who see the rows in memory until all of them are folded.

use std::collections::HashSet;

use redb::WriteTransaction;

use crate::checksum_cache::BLOCK_BYTES;
use crate::row_bytes;
use crate::store::{DROPPED, META, META_FOLDED, META_LAST_VERSION, META_NEXT_TABLE, ROWS, listed_table};
use crate::view::Frozen;
use engine::keys;
use engine::{Row, TableId};

/// A transaction has at least this many rows, however small the cache is.
const TRANSACTION_ROW_COUNT_MIN: usize = 16;

/// A shorter transaction says little about the next: most of its pages are those above the rows.
const LEARNT_ROW_COUNT_MIN: usize = 256;

/// How many rows make a transaction: as many as change about so many bytes of pages, if they are like those before.
pub(crate) struct TransactionSize {
    bytes_max: u64,
    bytes_per_row: u64,
}

impl TransactionSize {
    pub(crate) fn new(bytes_max: u64) -> TransactionSize {
        // Rows with random keys change a page each.
        TransactionSize { bytes_max, bytes_per_row: BLOCK_BYTES as u64 }
    }

    pub(crate) fn row_count_max(&self) -> usize {
        usize::try_from(self.bytes_max / self.bytes_per_row).unwrap_or(usize::MAX)
    }

    /// Hears how many rows a transaction had, and how much it wrote.
    pub(crate) fn learn(&mut self, row_count: usize, written_bytes: u64) {
        if row_count >= LEARNT_ROW_COUNT_MIN {
            self.bytes_per_row = (written_bytes / row_count as u64).max(1);
        }
    }
}

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

    /// Writes the next rows in this transaction until so many make it full, and commits it; returns how many there were, and
    /// whether these were the last.
    pub(crate) fn write(
        &mut self,
        transaction: WriteTransaction,
        is_full: impl Fn(usize) -> bool,
    ) -> Result<(usize, bool), redb::Error> {
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
                if row_count >= TRANSACTION_ROW_COUNT_MIN && is_full(row_count) {
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
        Ok((row_count, is_done))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_as_many_rows_as_those_before_suggest() {
        let mut size = TransactionSize::new(1_000_000);
        assert_eq!(size.row_count_max(), 244, "a page for each");
        size.learn(1_000, 250_000);
        assert_eq!(size.row_count_max(), 4_000);
        size.learn(5, 400_000);
        assert_eq!(size.row_count_max(), 4_000, "five rows say nothing");
        size.learn(2_000, 0);
        assert_eq!(size.row_count_max(), 1_000_000);
        size.learn(300, 600_000_000);
        assert_eq!(size.row_count_max(), 0, "the least is up to the fold");
    }
}
