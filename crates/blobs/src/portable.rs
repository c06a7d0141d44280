//! Rows of blobs without references to a store: as backups carry them.
//!
//! In a portable row, each list of references is one reference, whose id is the number of a content. The contents come before
//! the rows that name them (`export.rs` makes both, `import.rs` reads both). Nodes are written out as their entries. The rest of a
//! value is as in a store. A content that several rows may name is *shared*; any other is named by one row.
//!
//! Promises: a portable row is held to the rules of requests, because it may come from a stranger. [`ContentBook`] remembers
//! contents in bounded memory.
//! Leaves to others: files and their blocks.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use contents::{CONTENT_REF_BYTES, ContentRef};
use protocol::blob::lease::{Lease, LeaseDuration};
use protocol::blob::limits::{
    APPEND_COUNT_MAX, COMMITTED_BLOCK_COUNT_MAX, COPY_SOURCE_BYTES_MAX, PAGE_BLOB_BYTES_MAX, PAGE_BYTES,
};
use protocol::blob::properties::BlobType;
use protocol::blob::{BlobName, ContainerName};
use protocol::common::DateTime;

use crate::container_deletion::DELETED_MARK;
use crate::containers::{is_deleted_record, is_live_record};
use crate::content::INLINE_BYTES_MAX;
use crate::epochs::read_segment_row;
use crate::page_rows::{PageSegment, PageSource, SEGMENT_BYTES};
use crate::record::{
    BASE_ROW, BlobContent, BlobRecord, CommittedBlob, RecordKind, StagedBlock, read_block_row,
    read_moment_row,
};

/// Shared contents that later rows of the same container may name: 100 MiB of memory at most. An older one is carried again.
pub(crate) const SHARED_COUNT_MAX: usize = 1 << 20;
/// Other contents that no row has named yet. One row names as many as a blob has blocks.
const FRESH_COUNT_MAX: usize = 2 * COMMITTED_BLOCK_COUNT_MAX;
/// Far more than any property that a request may set.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// No moment is later: 9000-01-01T00:00:00Z.
const MOMENT_MAX: u64 = 2_839_809_888_000_000_000;

/// The reference that stands for a content in a portable row.
pub(crate) fn placeholder(number: u64, length: u64) -> ContentRef {
    let mut bytes = [0; CONTENT_REF_BYTES];
    bytes[..8].copy_from_slice(&(length << 8 | 1).to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    ContentRef::decode(&bytes).expect("the first byte is the format")
}

/// `None` if the reference does not stand for a content.
fn read_placeholder(content: &ContentRef) -> Option<u64> {
    let (number, rest) =
        content.id().as_bytes().split_first_chunk::<8>().map(|(n, rest)| (*n, rest.to_vec()))?;
    rest.iter().all(|byte| *byte == 0).then(|| u64::from_le_bytes(number))
}

/// The contents that rows may name, with what is known of each.
pub struct ContentBook<T> {
    fresh: HashMap<u64, (u64, T)>,
    shared: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for ContentBook<T> {
    fn default() -> ContentBook<T> {
        ContentBook { fresh: HashMap::new(), shared: BTreeMap::new() }
    }
}

impl<T: Clone> ContentBook<T> {
    /// Adds a content of this length.
    pub fn add(&mut self, number: u64, is_shared: bool, length: u64, known: T) -> Result<(), &'static str> {
        if is_shared {
            self.shared.insert(number, (length, known));
            if self.shared.len() > SHARED_COUNT_MAX {
                self.shared.pop_first();
            }
            return Ok(());
        }
        if self.fresh.len() >= FRESH_COUNT_MAX {
            return Err("there are too many contents that no row names");
        }
        self.fresh.insert(number, (length, known));
        Ok(())
    }

    /// A new container begins: its rows name only contents of its own.
    pub fn clear(&mut self) {
        *self = ContentBook::default();
    }

    pub(crate) fn row(&mut self, is_shared: bool) -> RowContents<'_, T> {
        RowContents { book: self, is_shared, taken: HashMap::new() }
    }
}

/// The contents that one row names.
pub(crate) struct RowContents<'b, T> {
    book: &'b mut ContentBook<T>,
    is_shared: bool,
    /// The row may name one several times.
    taken: HashMap<u64, (u64, T)>,
}

impl<T: Clone> RowContents<'_, T> {
    pub(crate) fn find(&mut self, content: &ContentRef) -> Result<T, &'static str> {
        let unknown = "it names a content that is not before it";
        let number = read_placeholder(content).ok_or(unknown)?;
        let found = match self.taken.get(&number) {
            Some(found) => found,
            None => {
                let shared = self.book.shared.get(&number).filter(|_| self.is_shared).cloned();
                let found = shared.or_else(|| self.book.fresh.remove(&number)).ok_or(unknown)?;
                self.taken.entry(number).or_insert(found)
            }
        };
        if found.0 != content.length() {
            return Err("it names a content with another length");
        }
        Ok(found.1.clone())
    }

    /// What stands for a list; nothing stands for an empty one.
    pub(crate) fn find_list(&mut self, list: &[ContentRef]) -> Result<Option<T>, &'static str> {
        match list {
            [] => Ok(None),
            [one] => self.find(one).map(Some),
            _ => Err("it names several contents in the place of one"),
        }
    }
}

/// The value of a row of a container.
pub(crate) enum RowValue {
    Record(Box<BlobRecord>),
    Block(StagedBlock),
    Segment(PageSegment),
}

impl RowValue {
    /// `None` if the value is not what belongs into this row.
    pub(crate) fn read(row: &str, value: &Bytes) -> Option<RowValue> {
        if row == BASE_ROW || read_moment_row(row).is_some() {
            let record = BlobRecord::decode(value)?;
            return ((row == BASE_ROW) == (record.kind == RecordKind::Base))
                .then(|| RowValue::Record(Box::new(record)));
        }
        if row.starts_with('U') {
            read_block_row(row)?;
            return StagedBlock::decode(value).map(RowValue::Block);
        }
        read_segment_row(row)?;
        PageSegment::decode(value).map(RowValue::Segment)
    }

    pub(crate) fn encode(&self) -> Bytes {
        match self {
            RowValue::Record(record) => record.encode(),
            RowValue::Block(block) => block.encode(),
            RowValue::Segment(segment) => segment.encode(),
        }
    }

    /// Whether other rows may name its contents.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            RowValue::Record(record) => {
                record.committed.as_ref().is_some_and(|committed| committed.is_shared)
            }
            RowValue::Block(_) => false,
            RowValue::Segment(_) => true,
        }
    }
}

/// Whether a request could have stored this row, and its contents are in the book.
pub fn check_portable(
    blob: &str,
    row: &str,
    value: &[u8],
    book: &mut ContentBook<()>,
) -> Result<(), &'static str> {
    BlobName::parse(blob).map_err(|_| "this is not the name of a blob")?;
    let value = RowValue::read(row, &Bytes::copy_from_slice(value)).ok_or("it is no row of a blob")?;
    let mut contents = book.row(value.is_shared());
    match &value {
        RowValue::Record(record) => check_record(row, record, &mut contents),
        RowValue::Block(block) => {
            check_moments(&[block.at, read_block_row(row).map_or(0, |(generation, _)| generation)])?;
            contents.find_list(&block.parts).map(|_| ())
        }
        RowValue::Segment(segment) => check_segment(row, segment, &mut contents),
    }
}

fn check_moments(moments: &[u64]) -> Result<(), &'static str> {
    let is_late = moments.iter().any(|moment| *moment > MOMENT_MAX);
    if is_late { Err("it has a time after the year 9000") } else { Ok(()) }
}

fn check_record(
    row: &str,
    record: &BlobRecord,
    contents: &mut RowContents<'_, ()>,
) -> Result<(), &'static str> {
    let lease_moment = match record.lease {
        Lease::Leased { until, .. } => until.map_or(0, DateTime::ticks),
        Lease::Breaking { until, .. } => until.ticks(),
        Lease::Available | Lease::Broken { .. } | Lease::Expired { .. } => 0,
    };
    if let Lease::Leased { duration, .. } | Lease::Expired { duration, .. } = record.lease
        && matches!(duration, LeaseDuration::Fixed(seconds) if !(15..=60).contains(&seconds))
    {
        return Err("its lease has a duration that no lease has");
    }
    let deleted = record.deleted.map_or([0; 2], |deleted| [deleted.at, deleted.until]);
    let staged = record.staging.map_or(0, |staging| staging.generation);
    check_moments(&[lease_moment, deleted[0], deleted[1], staged, read_moment_row(row).unwrap_or(0)])?;
    match &record.committed {
        Some(committed) => check_committed(committed, contents),
        None if record.kind == RecordKind::Base && record.staging.is_some() => Ok(()),
        None => Err("it has no content"),
    }
}

fn check_committed(
    committed: &CommittedBlob,
    contents: &mut RowContents<'_, ()>,
) -> Result<(), &'static str> {
    let http = &committed.http;
    let texts = [
        &http.content_type,
        &http.content_encoding,
        &http.content_language,
        &http.content_disposition,
        &http.cache_control,
        &committed.scope,
    ];
    let is_of_header = |byte: u8| byte == b'\t' || !byte.is_ascii_control();
    let is_text = |text: &str| text.len() <= TEXT_BYTES_MAX && text.bytes().all(is_of_header);
    if texts.into_iter().flatten().any(|text| !is_text(text)) {
        return Err("one of its properties is not a text that a header can have");
    }
    if let Some(copy) = &committed.copy {
        let description = copy.description.as_deref().unwrap_or_default();
        if copy.source.len() > COPY_SOURCE_BYTES_MAX || !is_text(&copy.source) || !is_text(description) {
            return Err("the source of its copy is not an address");
        }
        check_moments(&[copy.completed.map_or(0, DateTime::ticks)])?;
    }
    let tier = committed.tier;
    let tier_moments = [tier.explicit.map_or(0, |(_, at)| at), tier.rehydrating.map_or(0, |(_, _, at)| at)];
    check_moments(&tier_moments)?;
    check_moments(&[committed.modified, committed.created, committed.version.unwrap_or(0)])?;
    if committed.append_count > APPEND_COUNT_MAX {
        return Err("it has more appended blocks than a blob may have");
    }
    match (&committed.content, committed.blob_type) {
        (BlobContent::Pages(epochs), BlobType::Page) => {
            check_moments(&[epochs.line.begun, epochs.born.begun])?;
            let is_sound = committed.size.is_multiple_of(PAGE_BYTES) && committed.size <= PAGE_BLOB_BYTES_MAX;
            if is_sound { Ok(()) } else { Err("it has a size that no page blob has") }
        }
        (BlobContent::Map(map), BlobType::Block | BlobType::Append) => {
            if !map.nodes.is_empty() || map.entries.len() > COMMITTED_BLOCK_COUNT_MAX {
                return Err("it has more blocks than a blob may have");
            }
            if map.tail.len() > INLINE_BYTES_MAX {
                return Err("it has a longer content in its row than rows have");
            }
            for entry in &map.entries {
                contents.find_list(&entry.parts)?;
            }
            // Each length is below 2^56, and there are fewer than 2^17 of them: a sum may be too large, but not for this.
            let length = map.entries.iter().map(|entry| u128::from(entry.length())).sum::<u128>();
            match length + map.tail.len() as u128 == u128::from(committed.size) {
                true => Ok(()),
                false => Err("its size is not the length of its content"),
            }
        }
        _ => Err("its content is not of its type"),
    }
}

fn check_segment(
    row: &str,
    segment: &PageSegment,
    contents: &mut RowContents<'_, ()>,
) -> Result<(), &'static str> {
    let (number, epochs) = read_segment_row(row).ok_or("it is no row of a blob")?;
    check_moments(&[epochs.line.begun])?;
    if number >= PAGE_BLOB_BYTES_MAX / SEGMENT_BYTES {
        return Err("it is behind the end of every page blob");
    }
    for extent in &segment.extents {
        let is_whole =
            [extent.range.start, extent.range.end].iter().all(|at| u64::from(*at) % PAGE_BYTES == 0);
        if !is_whole {
            return Err("it has half a page");
        }
        if let PageSource::Part(content, _) = &extent.source {
            contents.find(content)?;
        }
    }
    Ok(())
}

/// Whether a container may have this name and this record. Deleted ones have a name of their own.
pub fn check_portable_container(name: &str, record: &[u8]) -> Result<(), &'static str> {
    let is_container = |name: &str| ContainerName::parse(name).is_ok();
    let is_sound = match name.split_once(DELETED_MARK) {
        // It may be about to lose its name.
        None => {
            let is_record = is_live_record(record, MOMENT_MAX) || is_deleted_record(record, MOMENT_MAX);
            is_container(name) && is_record
        }
        Some((name, version)) => {
            let is_version = version.len() == 16
                && u64::from_str_radix(version, 16).is_ok_and(|moment| moment <= MOMENT_MAX);
            is_container(name) && is_version && is_deleted_record(record, MOMENT_MAX)
        }
    };
    if is_sound { Ok(()) } else { Err("its name or its record is not that of a container") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_that_is_not_shared_is_named_by_one_row() {
        let mut book = ContentBook::default();
        book.add(7, false, 10, ()).unwrap();
        book.add(8, true, 20, ()).unwrap();
        let mut row = book.row(false);
        assert_eq!(row.find(&placeholder(7, 11)), Err("it names a content with another length"));
        assert!(row.find(&placeholder(7, 10)).is_ok());
        assert!(row.find(&placeholder(7, 10)).is_ok(), "the same row may");
        assert!(row.find(&placeholder(8, 20)).is_err(), "only rows that share may");
        assert!(book.row(true).find(&placeholder(7, 10)).is_err());
        for _ in 0..2 {
            assert!(book.row(true).find(&placeholder(8, 20)).is_ok());
        }
        book.clear();
        assert!(book.row(true).find(&placeholder(8, 20)).is_err());
    }

    #[test]
    fn a_reference_of_a_store_stands_for_nothing() {
        assert_eq!(read_placeholder(&placeholder(u64::MAX, 5)), Some(u64::MAX));
        let mut bytes = placeholder(1, 1).encode();
        bytes[23] = 1;
        assert_eq!(read_placeholder(&ContentRef::decode(&bytes).unwrap()), None);
    }
}
