//! What a reader sees: the state as of one record of the log, made of recent rows and the tree below them.
//!
//! Promises: a view never changes, and the newest layer that has a key decides. A view keeps pages of the tree and
//! recent rows from being freed, so a scan holds it for one page at most. [`SharedState`](crate::shared) holds the latest
//! one.

use std::ops::Bound;
use std::sync::Arc;

use redb::{AccessGuard, Cursor, ReadOnlyTable, ReadableTable, ReadableTableMetadata, StorageError};

use crate::bloom_filter::KeyHash;
use crate::commit_log::Counters;
use crate::recent::{Recent, RecentRow, RecentRows};
use crate::row_bytes;
use crate::tree_error::TreeError;
use engine::scan::{self, RowSource, RowVisitor, ScannedRow, VisitStep};
use engine::{Row, Version};

/// The rows of the tree as of one transaction.
pub(crate) type Base = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Recent rows that still grow, and those that are being folded.
pub(crate) const LAYER_COUNT_MAX: usize = 2;

#[derive(Clone)]
pub(crate) struct View {
    /// The last record that this view includes.
    pub(crate) sequence: u64,
    /// The recent rows that the commit thread adds to.
    pub(crate) active: Arc<Recent>,
    pub(crate) frozen: Option<Arc<Frozen>>,
    pub(crate) base: Arc<Base>,
    pub(crate) counters: Counters,
}

/// Recent rows that are being folded; no more are added.
pub(crate) struct Frozen {
    pub(crate) recent: Arc<Recent>,
    /// Everything up to this record is in `recent` or was folded before; with the counters as of this record.
    pub(crate) until: u64,
    pub(crate) counters: Counters,
}

impl View {
    /// Roughly how many rows there are: a row that is both recent and in the tree counts twice.
    pub(crate) fn row_count(&self) -> Result<u64, TreeError> {
        let recent: usize = self.layers().map(Recent::row_count).sum();
        Ok(self.base.len()? + recent as u64)
    }

    pub(crate) fn recent_count(&self) -> usize {
        self.layers().map(Recent::row_count).sum()
    }

    pub(crate) fn recent_bytes(&self) -> usize {
        self.layers().map(Recent::size_bytes).sum()
    }

    fn layers(&self) -> impl Iterator<Item = &Recent> {
        [Some(&*self.active), self.frozen.as_deref().map(|frozen| &*frozen.recent)].into_iter().flatten()
    }

    /// The row, if it is recent; the outer `None` means that it is not.
    fn recent(&self, key: &[u8]) -> Option<Option<Row>> {
        // Most of the time nothing is recent; then the key need not be hashed.
        if self.frozen.is_none() && self.active.is_empty() {
            return None;
        }
        let print = KeyHash::of(key);
        self.layers().find_map(|recent| recent.get(key, print, self.sequence))
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Row>, TreeError> {
        if let Some(row) = self.recent(key) {
            return Ok(row);
        }
        let Some(stored) = self.base.get(key)? else { return Ok(None) };
        let (version, payload) = row_bytes::read(key, stored.value())?;
        Ok(Some(Row { version, value: bytes::Bytes::copy_from_slice(payload) }))
    }

    /// Reads the page where this row is or would be, to find damage; ignores the row.
    pub(crate) fn touch(&self, key: &[u8]) -> Result<(), TreeError> {
        if self.recent(key).is_some() {
            return Ok(());
        }
        Ok(self.base.get(key).map(|_| ())?)
    }
}

impl RowSource for View {
    type Error = TreeError;
    type Rows<'a> = ViewRows<'a>;

    fn range<'a>(&'a self, start: &'a [u8], end: &'a [u8]) -> Result<ViewRows<'a>, TreeError> {
        let mut layers = self.layers().map(|recent| recent.range(start, end, self.sequence));
        let recent = [layers.next(), layers.next()];
        let has_recent = recent.iter().flatten().any(|rows| rows.key().is_some());
        let cursor = self.base.lower_bound(Bound::Included(start))?;
        Ok(ViewRows { recent, has_recent, base: BaseRows { cursor, end, is_over: false }, base_head: None })
    }
}

type BaseEntry<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

/// A run of the tree's rows. redb's own range does the same, but takes longer for each row: it could also be walked from
/// its end.
struct BaseRows<'a> {
    cursor: Cursor<'a, &'static [u8], &'static [u8]>,
    end: &'a [u8],
    is_over: bool,
}

impl<'a> BaseRows<'a> {
    #[inline]
    fn next(&mut self) -> Result<Option<BaseEntry<'a>>, StorageError> {
        if self.is_over {
            return Ok(None);
        }
        let entry = self.cursor.next()?;
        if entry.as_ref().is_some_and(|(key, _)| is_before(key.value(), self.end)) {
            return Ok(entry);
        }
        self.is_over = true;
        Ok(None)
    }
}

/// Whether `key < end`. Ends are short and differ early, where calling a comparison costs more than making it.
#[inline]
fn is_before(key: &[u8], end: &[u8]) -> bool {
    let (key_words, _) = key.as_chunks::<8>();
    let (end_words, _) = end.as_chunks::<8>();
    for (word, end_word) in key_words.iter().zip(end_words) {
        if word != end_word {
            return u64::from_be_bytes(*word) < u64::from_be_bytes(*end_word);
        }
    }
    let done = 8 * key_words.len().min(end_words.len());
    let (key, end) = (&key[done..], &end[done..]);
    match key.iter().zip(end).find(|(byte, end_byte)| byte != end_byte) {
        Some((byte, end_byte)) => byte < end_byte,
        None => key.len() < end.len(),
    }
}

/// A run of rows, merged from all layers.
pub(crate) struct ViewRows<'a> {
    /// The newest layer first.
    recent: [Option<RecentRows<'a>>; LAYER_COUNT_MAX],
    has_recent: bool,
    base: BaseRows<'a>,
    /// The next row of the tree, if it was read and did not come first.
    base_head: Option<BaseEntry<'a>>,
}

/// One row in its layer.
pub(crate) enum ViewRow<'a> {
    Recent(RecentRow<'a>, Row),
    Base(BaseEntry<'a>),
}

impl ScannedRow for ViewRow<'_> {
    type Error = TreeError;

    fn key(&self) -> &[u8] {
        match self {
            ViewRow::Recent(found, _) => found.key(),
            ViewRow::Base((key, _)) => key.value(),
        }
    }

    fn read(&self) -> Result<(Version, &[u8]), TreeError> {
        match self {
            ViewRow::Recent(_, row) => Ok((row.version, &row.value)),
            ViewRow::Base((key, stored)) => Ok(row_bytes::read(key.value(), stored.value())?),
        }
    }

    /// As [`BaseRow::peek`].
    fn peek(&self) -> Option<(Version, &[u8])> {
        match self {
            ViewRow::Recent(_, row) => Some((row.version, &row.value)),
            ViewRow::Base((_, stored)) => row_bytes::peek(stored.value()),
        }
    }
}

/// One row of the tree, in its page.
struct BaseRow<'a> {
    key: &'a [u8],
    stored: &'a [u8],
}

impl ScannedRow for BaseRow<'_> {
    type Error = TreeError;

    fn key(&self) -> &[u8] {
        self.key
    }

    fn read(&self) -> Result<(Version, &[u8]), TreeError> {
        Ok(row_bytes::read(self.key, self.stored)?)
    }

    /// The block that the row lies in was checked when it was read from the file. So a scan does not miss a row
    /// because the disk damaged it, and the row's own checksum is for what is given out.
    fn peek(&self) -> Option<(Version, &[u8])> {
        row_bytes::peek(self.stored)
    }
}

impl<'a> scan::Rows for ViewRows<'a> {
    type Error = TreeError;
    type Row = ViewRow<'a>;

    fn walk(&mut self, visitor: &mut impl RowVisitor<TreeError>) -> Result<bool, TreeError> {
        while self.has_recent || self.base_head.is_some() {
            match self.next_row()? {
                Some(row) if visitor.row(&row)? == VisitStep::Pause => return Ok(true),
                Some(_) => {}
                None => return Ok(false),
            }
        }
        while !self.base.is_over {
            // By reference: an entry is long, and a profile showed where it was moved.
            let next = self.base.cursor.next();
            match &next {
                Ok(Some((key, stored))) if is_before(key.value(), self.base.end) => {
                    if visitor.row(&BaseRow { key: key.value(), stored: stored.value() })? == VisitStep::Pause
                    {
                        return Ok(true);
                    }
                }
                Ok(_) => self.base.is_over = true,
                Err(_) => drop(next?),
            }
        }
        Ok(false)
    }

    fn next_row(&mut self) -> Result<Option<ViewRow<'a>>, TreeError> {
        while self.has_recent {
            if self.base_head.is_none() {
                self.base_head = self.base.next()?;
            }
            let base_key = self.base_head.as_ref().map(|(key, _)| key.value());
            let keys = self.recent.iter().flatten().filter_map(RecentRows::key);
            let Some(least) = keys.min() else { break };
            if base_key.is_some_and(|key| key < least) {
                return Ok(self.base_head.take().map(ViewRow::Base));
            }
            let hides_base = base_key == Some(least);
            let holds_least = self
                .recent
                .each_ref()
                .map(|rows| rows.as_ref().is_some_and(|rows| rows.key() == Some(least)));
            if hides_base {
                self.base_head = None;
            }
            let mut newest: Option<RecentRow<'a>> = None;
            for (rows, holds_least) in self.recent.iter_mut().zip(holds_least) {
                if let Some(rows) = rows.as_mut().filter(|_| holds_least) {
                    let row = rows.take();
                    newest = newest.or(row);
                }
            }
            self.has_recent = self.recent.iter().flatten().any(|rows| rows.key().is_some());
            if let Some(mut found) = newest
                && let Some(row) = found.row.take()
            {
                return Ok(Some(ViewRow::Recent(found, row)));
            }
        }
        match self.base_head.take() {
            Some(entry) => Ok(Some(ViewRow::Base(entry))),
            None => Ok(self.base.next()?.map(ViewRow::Base)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_compared_with_an_end_as_bytes_are() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut text = |len: usize| -> Vec<u8> { (0..len).map(|_| random.u8(..3)).collect() };
        for len in 0..20 {
            for _ in 0..500 {
                let (start, a, b) = (text(len), text(len % 7), text(len % 11));
                let (key, end) = ([&start[..], &a].concat(), [&start[..], &b].concat());
                assert_eq!(is_before(&key, &end), key < end, "{key:?} {end:?}");
            }
        }
    }
}
