//! The pages of a page blob: segments of 4 MiB, each a row with the extents that have content.
//!
//! A segment has a row per epoch in which it was written (`epochs.rs`). A blob or snapshot sees of each segment the newest row of
//! its line up to its epoch, so taking a snapshot copies nothing: it begins a new epoch. Overwriting or clearing all pages begins a
//! new line. Contents of pages are forgotten by the sweep alone, because rows of several epochs may name them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, Range};

use bytes::{Bytes, BytesMut};
use catalogue::from_read;
use contents::{ContentRef, Pin};
use engine::{Flow, Key, KeyRange, Share, Sink, TableId, Version};
use protocol::blob::limits::PAGE_BLOB_BYTES_MAX;
use protocol::{ErrorCode, ServiceError};

use crate::codec::{Decoder, Encoder};
use crate::epochs::{Epochs, PageLine, read_segment_row, segment_begin};
use crate::record::{BlobContent, BlobRecord, TAG_SEGMENT};
use crate::service::{BlobCore, damaged_row, scan_budget};
use crate::stream::StreamPiece;

pub(crate) const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;
/// A plan reads no more extents and segments at a time.
const PLAN_EXTENT_COUNT_MAX: usize = 65_536;
const PLAN_SEGMENT_COUNT_MAX: u64 = 1024;
const SEGMENT_COUNT_MAX: u64 = PAGE_BLOB_BYTES_MAX / SEGMENT_BYTES;

/// The content of 4 MiB: extents in order, without overlap. What is between them is zeros that nobody wrote.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PageSegment {
    pub(crate) extents: Vec<PageExtent>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PageExtent {
    /// Within the segment, in bytes.
    pub(crate) range: Range<u32>,
    pub(crate) source: PageSource,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PageSource {
    Inline(Bytes),
    /// The bytes of a content from there on.
    Part(ContentRef, u64),
}

impl PageSource {
    fn cut(&self, from: u32, to: u32) -> PageSource {
        match self {
            PageSource::Inline(bytes) => PageSource::Inline(bytes.slice(from as usize..to as usize)),
            PageSource::Part(content, at) => PageSource::Part(*content, at + u64::from(from)),
        }
    }
}

impl PageExtent {
    /// The part of the extent within this range.
    fn within(&self, range: &Range<u32>) -> Option<PageExtent> {
        let (start, end) = (self.range.start.max(range.start), self.range.end.min(range.end));
        if start >= end {
            return None;
        }
        let source = self.source.cut(start - self.range.start, end - self.range.start);
        Some(PageExtent { range: start..end, source })
    }

    pub(crate) fn length(&self) -> u32 {
        self.range.end - self.range.start
    }
}

impl PageSegment {
    /// Removes what is in this range.
    pub(crate) fn clear(&mut self, range: &Range<u32>) {
        let mut kept = Vec::with_capacity(self.extents.len() + 1);
        for extent in self.extents.drain(..) {
            kept.extend(extent.within(&(0..range.start)));
            kept.extend(extent.within(&(range.end..SEGMENT_BYTES as u32)));
        }
        self.extents = kept;
    }

    /// Puts extents, which are sorted and disjoint, in the place of what was there.
    pub(crate) fn write(&mut self, extents: Vec<PageExtent>) {
        for extent in &extents {
            self.clear(&extent.range);
        }
        self.extents.extend(extents);
        self.extents.sort_by_key(|extent| extent.range.start);
    }

    pub(crate) fn inline_bytes(&self) -> usize {
        let inline = self.extents.iter().map(|extent| match &extent.source {
            PageSource::Inline(bytes) => bytes.len(),
            PageSource::Part(..) => 0,
        });
        inline.sum()
    }

    pub(crate) fn contents(&self) -> impl Iterator<Item = &ContentRef> {
        self.extents.iter().filter_map(|extent| match &extent.source {
            PageSource::Part(content, _) => Some(content),
            PageSource::Inline(_) => None,
        })
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::new(TAG_SEGMENT);
        out.length(self.extents.len());
        for extent in &self.extents {
            out.length(extent.range.start as usize);
            out.length(extent.length() as usize);
            match &extent.source {
                PageSource::Inline(bytes) => {
                    out.byte(0);
                    out.raw(bytes);
                }
                PageSource::Part(content, at) => {
                    out.byte(1);
                    out.raw(&content.encode());
                    out.number(*at);
                }
            }
        }
        out.finish()
    }

    pub(crate) fn decode(value: &[u8]) -> Option<PageSegment> {
        let mut from = Decoder::new(value, TAG_SEGMENT)?;
        let mut segment = PageSegment::default();
        let mut end = 0;
        for _ in 0..from.length()? {
            let (start, length) = (from.length()?, from.length()?);
            let stop = start.checked_add(length).filter(|stop| *stop as u64 <= SEGMENT_BYTES)?;
            if start < end || length == 0 {
                return None;
            }
            end = stop;
            let source = match from.byte()? {
                0 => PageSource::Inline(Bytes::copy_from_slice(from.raw(length)?)),
                1 => {
                    let content = ContentRef::decode(from.raw(contents::CONTENT_REF_BYTES)?)?;
                    let at = from.number()?;
                    if at.checked_add(length as u64)? > content.length() {
                        return None;
                    }
                    PageSource::Part(content, at)
                }
                _ => return None,
            };
            segment.extents.push(PageExtent { range: start as u32..stop as u32, source });
        }
        from.end()?;
        Some(segment)
    }
}

/// Where the pages of a blob are found, and those that were read with its record.
pub(crate) struct PagePlan {
    pub(crate) table: TableId,
    pub(crate) blob: Box<str>,
    /// The row of the blob or snapshot.
    pub(crate) row: Box<str>,
    pub(crate) line: PageLine,
    pub(crate) ready: PageView,
}

/// Segments as of one moment.
#[derive(Default)]
pub(crate) struct PageView {
    /// The record of the blob or snapshot.
    pub(crate) record: Option<BlobRecord>,
    /// Of the record's row.
    pub(crate) version: Option<Version>,
    pub(crate) segments: BTreeMap<u64, PageSegment>,
    /// The epoch of each segment's row.
    pub(crate) epochs: BTreeMap<u64, u64>,
    /// All segments of this range are here, unless they have no content.
    pub(crate) covered: Range<u64>,
}

/// The segments that a range of bytes touches.
pub(crate) fn segments_of(range: &Range<u64>) -> Range<u64> {
    if range.is_empty() {
        return 0..0;
    }
    range.start / SEGMENT_BYTES..range.end.div_ceil(SEGMENT_BYTES)
}

impl BlobCore {
    /// Reads a record and its segments as of one moment. Fewer segments than asked for may be covered, but at least one.
    pub(crate) async fn page_view(
        &self,
        table: TableId,
        blob: &str,
        row: &str,
        segments: Range<u64>,
    ) -> Result<PageView, ServiceError> {
        let end = segments.end.min(segments.start.saturating_add(PLAN_SEGMENT_COUNT_MAX));
        let (first, last) = (segment_begin(segments.start), segment_begin(end.min(SEGMENT_COUNT_MAX + 1)));
        let ranges = [
            KeyRange::point(blob, row),
            KeyRange::rows(blob, Bound::Included(&first), Bound::Excluded(&last)),
        ];
        let mut sink = PageViewSink {
            view: PageView { covered: segments.start..end, ..PageView::default() },
            epochs: None,
            row,
            extent_count: 0,
            is_damaged: false,
            stopped_at: None,
        };
        let next = self
            .engine
            .scan(table, &ranges, scan_budget(Share::COMMON), &mut sink)
            .await
            .map_err(from_read)?;
        if sink.is_damaged {
            return Err(damaged_row());
        }
        if let Some(segment) = sink.stopped_at {
            sink.view.covered.end = segment;
        } else if let Some(next) = next {
            // The time is used up: what was not reached is not covered.
            let (segment, _) = read_segment_row(&next.row).ok_or(ErrorCode::ServerBusy)?;
            sink.view.segments.remove(&segment);
            sink.view.covered.end = segment;
            if segment <= segments.start {
                return Err(ErrorCode::ServerBusy.into());
            }
        }
        Ok(sink.view)
    }

    /// Plans the next pages of a stream, and takes them off its range.
    pub(crate) async fn plan_pages(
        &self,
        plan: &mut PagePlan,
        range: &mut Range<u64>,
        pieces: &mut VecDeque<StreamPiece>,
    ) -> Result<(), ServiceError> {
        let wanted = segments_of(range);
        if !plan.ready.covered.contains(&wanted.start) {
            let view = self.page_view(plan.table, &plan.blob, &plan.row, wanted.clone()).await?;
            let epochs = view.record.as_ref().and_then(page_epochs);
            if epochs.is_none_or(|epochs| epochs.line != plan.line) {
                let why = "the blob was replaced or deleted while it was read";
                return Err(ServiceError::with_source(ErrorCode::InternalError, why));
            }
            plan.ready = view;
        }
        let end = wanted.end.min(plan.ready.covered.end);
        for segment in wanted.start..end {
            let begin = segment * SEGMENT_BYTES;
            let from = (range.start.max(begin) - begin) as u32;
            let to = (range.end.min(begin + SEGMENT_BYTES) - begin) as u32;
            let mut at = from;
            let extents = plan.ready.segments.get(&segment).map_or(&[][..], |found| &found.extents);
            for extent in extents.iter().filter_map(|extent| extent.within(&(from..to))) {
                push_zeros(u64::from(extent.range.start - at), pieces);
                at = extent.range.end;
                let length = u64::from(extent.length());
                pieces.push_back(match extent.source {
                    PageSource::Inline(bytes) => StreamPiece::Bytes(bytes),
                    PageSource::Part(content, start) => {
                        StreamPiece::Parts([content].into(), start..start + length)
                    }
                });
            }
            push_zeros(u64::from(to - at), pieces);
            range.start = begin + u64::from(to);
        }
        Ok(())
    }

    /// The bytes of one extent.
    pub(crate) async fn read_extent(&self, extent: &PageExtent, pin: &Pin) -> Result<Bytes, ServiceError> {
        match &extent.source {
            PageSource::Inline(bytes) => Ok(bytes.clone()),
            PageSource::Part(content, at) => {
                let range = *at..*at + u64::from(extent.length());
                Ok(self.read_contents(std::slice::from_ref(content), range, pin).await?.into())
            }
        }
    }

    /// Gathers the bytes of extents of one segment.
    pub(crate) async fn gather(&self, extents: &[PageExtent], pin: &Pin) -> Result<Bytes, ServiceError> {
        let mut all = BytesMut::new();
        for extent in extents {
            all.extend_from_slice(&self.read_extent(extent, pin).await?);
        }
        Ok(all.freeze())
    }
}

fn push_zeros(length: u64, pieces: &mut VecDeque<StreamPiece>) {
    match pieces.back_mut() {
        _ if length == 0 => {}
        Some(StreamPiece::Zeros(zeros)) => *zeros += length,
        _ => pieces.push_back(StreamPiece::Zeros(length)),
    }
}

pub(crate) fn page_epochs(record: &BlobRecord) -> Option<Epochs> {
    match record.committed.as_ref()?.content {
        BlobContent::Pages(epochs) => Some(epochs),
        BlobContent::Map(_) => None,
    }
}

struct PageViewSink<'r> {
    view: PageView,
    /// Of the record, which comes before the segments.
    epochs: Option<Epochs>,
    row: &'r str,
    extent_count: usize,
    is_damaged: bool,
    stopped_at: Option<u64>,
}

impl PageViewSink<'_> {
    fn see(&mut self, row: &str, version: Version, value: &[u8]) -> Option<Flow> {
        if row == self.row {
            self.view.version = Some(version);
            let record = BlobRecord::decode_borrowed(value)?;
            self.epochs = page_epochs(&record);
            self.view.record = Some(record);
            return Some(Flow::Continue);
        }
        // Without a page blob there is nothing to see.
        let Some(epochs) = self.epochs else { return Some(Flow::Continue) };
        let (segment, written) = read_segment_row(row)?;
        if !epochs.reaches(written) {
            return Some(Flow::Continue);
        }
        let is_new = !self.view.segments.contains_key(&segment);
        if is_new && self.extent_count > PLAN_EXTENT_COUNT_MAX {
            self.stopped_at = Some(segment);
            return Some(Flow::Stop);
        }
        let found = PageSegment::decode(value)?;
        self.extent_count += found.extents.len();
        // Rows of one segment and line come in the order of epochs: the last one counts.
        self.view.segments.insert(segment, found);
        self.view.epochs.insert(segment, written.epoch);
        Some(Flow::Continue)
    }
}

impl Sink for PageViewSink<'_> {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.see(key.row, version, value).unwrap_or_else(|| {
            self.is_damaged = true;
            Flow::Stop
        })
    }
}
