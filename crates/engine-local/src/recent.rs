//! The rows that recent commits wrote, in key order, before they are folded into the tree below.
//!
//! Every change has the sequence number of its log record, so a reader's view is a number: it sees the changes up to
//! that record, whatever is added later. One thread adds; any number of threads read without waiting.
//!
//! Promises: a change stays until the whole set is dropped. Leaves to others: which records are durable.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::{Entry, Range};

use crate::bloom_filter::{BloomFilter, KeyHash};
use engine::Row;

/// Memory of a row beside its key and value: the node of the map, the row itself, and the allocator's overhead.
const ROW_OVERHEAD_BYTES: usize = 224;
/// Memory of a further change to the same row, beside its value.
const CHANGE_OVERHEAD_BYTES: usize = 64;

#[derive(Default)]
pub(crate) struct Recent {
    rows: SkipMap<Box<[u8]>, Changes>,
    filter: BloomFilter,
    size_bytes: AtomicUsize,
}

/// The changes to one row.
struct Changes {
    first: RowChange,
    has_later: AtomicBool,
    later: Mutex<Vec<RowChange>>,
}

#[derive(Clone)]
struct RowChange {
    sequence: u64,
    /// `None`: the row was removed.
    row: Option<Row>,
}

impl Changes {
    fn later(&self) -> MutexGuard<'_, Vec<RowChange>> {
        self.later.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The row as of this record; the outer `None` if no change is that old.
    fn as_of(&self, sequence: u64) -> Option<Option<Row>> {
        if self.has_later.load(Ordering::Acquire)
            && let Some(change) = self.later().iter().rev().find(|change| change.sequence <= sequence)
        {
            return Some(change.row.clone());
        }
        (self.first.sequence <= sequence).then(|| self.first.row.clone())
    }
}

impl Recent {
    /// Adds a change. Sequence numbers never decrease.
    pub(crate) fn add(&self, sequence: u64, key: Box<[u8]>, row: Option<Row>) {
        let value_bytes = row.as_ref().map_or(0, |row| row.value.len());
        let key_bytes = key.len();
        self.filter.add(KeyHash::of(&key));
        let mut change = Some(RowChange { sequence, row });
        let new = || {
            let first = change.take().expect("made once, of the one change");
            Changes { first, has_later: AtomicBool::new(false), later: Mutex::default() }
        };
        let entry = self.rows.get_or_insert_with(key, new);
        let size_bytes = match change {
            None => ROW_OVERHEAD_BYTES + key_bytes + value_bytes,
            Some(change) => {
                let changes = entry.value();
                changes.later().push(change);
                changes.has_later.store(true, Ordering::Release);
                CHANGE_OVERHEAD_BYTES + value_bytes
            }
        };
        self.size_bytes.fetch_add(size_bytes, Ordering::Relaxed);
    }

    /// The row as of this record; the outer `None` if it has no change here that is that old.
    pub(crate) fn get(&self, key: &[u8], print: KeyHash, sequence: u64) -> Option<Option<Row>> {
        if !self.filter.may_hold(print) {
            return None;
        }
        self.rows.get(key)?.value().as_of(sequence)
    }

    /// Whether it has any change of this key.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.rows.contains_key(key)
    }

    /// The rows with `start <= key < end`, as of this record.
    pub(crate) fn range<'a>(&'a self, start: &'a [u8], end: &'a [u8], sequence: u64) -> RecentRows<'a> {
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let rows = (!self.is_empty()).then(|| self.rows.range(bounds));
        let mut range = RecentRows { rows, head: None, sequence };
        range.advance();
        range
    }

    /// Every row with its latest change.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Entry<'_, Box<[u8]>, impl Sized>, Option<Row>)> {
        self.iter_after(None)
    }

    /// Every row behind this key, with its latest change.
    pub(crate) fn iter_after(
        &self,
        key: Option<&[u8]>,
    ) -> impl Iterator<Item = (Entry<'_, Box<[u8]>, impl Sized>, Option<Row>)> {
        let start = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.rows.range::<[u8], _>((start, Bound::Unbounded)).filter_map(|entry| {
            let row = entry.value().as_of(u64::MAX)?;
            Some((entry, row))
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes.load(Ordering::Relaxed)
    }
}

type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);
type RecentEntries<'a> = Range<'a, [u8], Bounds<'a>, Box<[u8]>, Changes>;

/// A run of rows, with the next one already read.
pub(crate) struct RecentRows<'a> {
    rows: Option<RecentEntries<'a>>,
    head: Option<RecentRow<'a>>,
    sequence: u64,
}

/// A row, or the fact that it was removed.
pub(crate) struct RecentRow<'a> {
    entry: Entry<'a, Box<[u8]>, Changes>,
    pub(crate) row: Option<Row>,
}

impl RecentRow<'_> {
    pub(crate) fn key(&self) -> &[u8] {
        self.entry.key()
    }
}

impl<'a> RecentRows<'a> {
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.head.as_ref().map(RecentRow::key)
    }

    /// The next row.
    pub(crate) fn take(&mut self) -> Option<RecentRow<'a>> {
        let row = self.head.take();
        self.advance();
        row
    }

    fn advance(&mut self) {
        self.head = None;
        let Some(rows) = &mut self.rows else { return };
        for entry in rows {
            if let Some(row) = entry.value().as_of(self.sequence) {
                self.head = Some(RecentRow { entry, row });
                return;
            }
        }
        self.rows = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Version;

    fn row(ticks: u64) -> Option<Row> {
        Some(Row { version: Version::new(ticks).unwrap(), value: format!("v{ticks}").into() })
    }

    #[test]
    fn a_view_is_a_number() {
        let recent = Recent::default();
        let get = |key: &[u8], sequence| recent.get(key, KeyHash::of(key), sequence);
        assert_eq!(get(b"a", 9), None);
        recent.add(2, b"b"[..].into(), row(2));
        recent.add(3, b"a"[..].into(), row(3));
        recent.add(4, b"b"[..].into(), None);
        recent.add(6, b"b"[..].into(), row(6));
        for (sequence, a, b) in [
            (1, None, None),
            (2, None, Some(row(2))),
            (3, Some(row(3)), Some(row(2))),
            (4, Some(row(3)), Some(None)),
            (5, Some(row(3)), Some(None)),
            (6, Some(row(3)), Some(row(6))),
        ] {
            assert_eq!((get(b"a", sequence), get(b"b", sequence)), (a.clone(), b.clone()), "{sequence}");
            let mut range = recent.range(b"a", b"c", sequence);
            let listed: Vec<_> =
                std::iter::from_fn(|| range.take()).map(|row| (row.key().to_vec(), row.row)).collect();
            let expected: Vec<_> = [("a", a), ("b", b)]
                .into_iter()
                .filter_map(|(key, row)| Some((key.as_bytes().to_vec(), row?)))
                .collect();
            assert_eq!(listed, expected, "{sequence}");
        }
        assert_eq!(recent.row_count(), 2);
        assert!(recent.range(b"b\0", b"c", 9).key().is_none());
        assert_eq!(recent.range(b"a", b"b", 9).key(), Some(&b"a"[..]));
    }
}
