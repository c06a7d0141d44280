//! Put Page, clear, Get Page Ranges, and new sizes of page blobs.
//!
//! A write of pages is one commit on the blob's row and the segments that it touches, two at most. Clearing begins a new line
//! if it clears everything; otherwise it is one commit for every hundred segments that have content, the last of which
//! gives the ETag of the answer.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use contents::{ContentId, ContentRef, PendingContent, Pin};
use engine::{Expect, Op};
use protocol::blob::checksum::Checksums;
use protocol::blob::conditions::SequenceConditions;
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{Lease, LeaseUse};
use protocol::blob::limits::PAGE_BYTES;
use protocol::blob::properties::BlobType;
use protocol::blob::range::check_pages;
use protocol::common::DateTime;
use protocol::common::headers::invalid_header;
use protocol::{ErrorCode, ServiceError};

use crate::api::{BlobPlace, PageQuery, PageRange, PageRanges, PagesWritten, Preconditions, UploadBody};
use crate::base::{BlobTarget, FoundBase, Tries, check_change, next_etag, put_base, put_op};
use crate::epochs::{Epochs, segment_row};
use crate::finish::Unstoppable;
use crate::page_rows::{
    PageExtent, PageSegment, PageSource, PageView, SEGMENT_BYTES, page_epochs, segments_of,
};
use crate::put::stamp_of;
use crate::read::check_read;
use crate::record::{BASE_ROW, BlobContent, BlobRecord, CommittedBlob};
use crate::service::{ATTEMPT_COUNT_MAX, BlobCore, BlobService};
use crate::upload::ReceivedData;

/// A write of so many bytes lies in the segment's row.
const INLINE_BYTES_MAX: usize = 4 * 1024;
/// With more bytes in the row, they move to the store of contents.
const SEGMENT_INLINE_BYTES_MAX: usize = 32 * 1024;
/// With more extents, a segment is written anew as few.
const SEGMENT_EXTENT_COUNT_MAX: usize = 512;
/// Segments that one commit changes.
const CLEARED_SEGMENT_COUNT_MAX: usize = 90;

impl BlobService {
    /// Put Page. The range is of whole pages, and the body must have its length.
    pub async fn put_pages(
        &self,
        place: BlobPlace<'_>,
        range: Range<u64>,
        body: UploadBody<'_>,
        sequence: SequenceConditions,
        pre: Preconditions,
    ) -> Result<PagesWritten, ServiceError> {
        let inner = &self.inner;
        let target = inner.target(place).await?;
        check_write(&inner.read_base(&target).await?, &range, &sequence, &pre, inner.now().await?)?;
        let received = inner.receive(body, false, INLINE_BYTES_MAX).await?;
        if received.length != range.end - range.start {
            return Err(invalid_header("Content-Length", &received.length.to_string()));
        }
        let (inner, checksums) = (inner.clone(), received.checksums);
        let write = async move {
            let outcome = inner.write_pages(&target, &range, &received.data, &sequence, &pre).await;
            if let (Err(error), ReceivedData::Stored(parts, pending)) = (&outcome, received.data) {
                inner.give_up(error, &parts, [pending]).await;
            }
            outcome
        };
        Ok(PagesWritten { checksums, ..Unstoppable::new(write).await? })
    }

    pub async fn clear_pages(
        &self,
        place: BlobPlace<'_>,
        range: Range<u64>,
        sequence: SequenceConditions,
        pre: Preconditions,
    ) -> Result<PagesWritten, ServiceError> {
        let target = self.inner.target(place).await?;
        let inner = self.inner.clone();
        let clear = async move { inner.clear(&target, range, None, &sequence, &pre).await };
        Unstoppable::new(clear).await
    }

    pub async fn page_ranges(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        query: PageQuery,
        pre: &Preconditions,
    ) -> Result<PageRanges, ServiceError> {
        let inner = &self.inner;
        let target = inner.target(place).await?;
        let found = inner.find_record(&target, revision).await?;
        check_read(&found, pre, inner.now().await?)?;
        let committed = found.committed()?;
        let epochs = page_epochs(&found.record).ok_or(ErrorCode::InvalidBlobType)?;
        let size = committed.size;
        let mut range = listed_range(query.range, size)?;
        let mut answer = PageRanges { stamp: committed.stamp(), size, ranges: Vec::new(), next: None };
        let previous = match query.previous {
            None => None,
            Some(moment) => Some(inner.previous_snapshot(&target, moment, epochs).await?),
        };
        range.start = range.start.max(query.marker.unwrap_or(0)).min(range.end);
        let mut listed = ListedPages { ranges: Vec::new(), count_max: query.count_max };
        while range.start < range.end && !listed.is_full() {
            let wanted = segments_of(&range);
            let now = inner.page_view(target.table, target.name(), &found.row, wanted.clone()).await?;
            let mut end = now.covered.end;
            let before = match &previous {
                None => None,
                Some(row) => {
                    let before = inner.page_view(target.table, target.name(), row, wanted.start..end).await?;
                    end = end.min(before.covered.end);
                    Some(before)
                }
            };
            for segment in wanted.start..end {
                listed.add_segment(segment, &range, &now, before.as_ref());
            }
            range.start = (end * SEGMENT_BYTES).min(range.end);
        }
        answer.next = listed.next();
        answer.ranges = listed.ranges;
        Ok(answer)
    }
}

/// The listed range, widened to whole pages.
fn listed_range(
    range: Option<protocol::blob::range::ByteRange>,
    size: u64,
) -> Result<Range<u64>, ServiceError> {
    let Some(range) = range else { return Ok(0..size) };
    if range.first >= size {
        return Err(ErrorCode::InvalidPageRange.into());
    }
    let end = range.last.map_or(size, |last| last.saturating_add(1).min(size));
    Ok(range.first / PAGE_BYTES * PAGE_BYTES..end.next_multiple_of(PAGE_BYTES).min(size))
}

/// Ranges that are found one after the other.
struct ListedPages {
    ranges: Vec<PageRange>,
    count_max: usize,
}

impl ListedPages {
    /// One more than asked for: its beginning is that of the next answer.
    fn is_full(&self) -> bool {
        self.ranges.len() > self.count_max
    }

    fn next(&mut self) -> Option<u64> {
        if self.is_full() { self.ranges.pop().map(|range| range.range.start) } else { None }
    }

    fn add(&mut self, range: Range<u64>, is_cleared: bool) {
        let is_full = self.is_full();
        match self.ranges.last_mut() {
            Some(last) if last.range.end == range.start && last.is_cleared == is_cleared => {
                last.range.end = range.end;
            }
            _ if is_full => {}
            _ => self.ranges.push(PageRange { range, is_cleared }),
        }
    }

    fn add_segment(&mut self, segment: u64, range: &Range<u64>, now: &PageView, before: Option<&PageView>) {
        let begin = segment * SEGMENT_BYTES;
        let clip = |start: u32, end: u32| {
            let found = (begin + u64::from(start)).max(range.start)..(begin + u64::from(end)).min(range.end);
            (!found.is_empty()).then_some(found)
        };
        let extents = now.segments.get(&segment).map_or(&[][..], |found| &found.extents);
        let Some(before) = before else {
            for extent in extents {
                if let Some(found) = clip(extent.range.start, extent.range.end) {
                    self.add(found, false);
                }
            }
            return;
        };
        if now.epochs.get(&segment) == before.epochs.get(&segment) {
            return;
        }
        let old = before.segments.get(&segment).map_or(&[][..], |found| &found.extents);
        let (new_pages, old_pages) = (pages(extents), pages(old));
        for (index, (new, old)) in new_pages.iter().zip(&old_pages).enumerate() {
            if new == old {
                continue;
            }
            let start = index as u32 * PAGE_BYTES as u32;
            if let Some(found) = clip(start, start + PAGE_BYTES as u32) {
                self.add(found, new.is_none());
            }
        }
    }
}

/// What tells the content of a page from another.
#[derive(Clone, PartialEq)]
enum PageContent {
    Inline(Bytes),
    Part(ContentId, u64),
}

fn pages(extents: &[PageExtent]) -> Vec<Option<PageContent>> {
    let mut pages = vec![None; (SEGMENT_BYTES / PAGE_BYTES) as usize];
    for extent in extents {
        for at in (0..extent.length()).step_by(PAGE_BYTES as usize) {
            let content = match &extent.source {
                PageSource::Inline(bytes) => PageContent::Inline(
                    bytes.slice(at as usize..(at as usize + PAGE_BYTES as usize).min(bytes.len())),
                ),
                PageSource::Part(content, start) => PageContent::Part(content.id(), start + u64::from(at)),
            };
            pages[((extent.range.start + at) / PAGE_BYTES as u32) as usize] = Some(content);
        }
    }
    pages
}

fn check_write(
    found: &FoundBase,
    range: &Range<u64>,
    sequence: &SequenceConditions,
    pre: &Preconditions,
    now: DateTime,
) -> Result<Lease, ServiceError> {
    let lease = check_writer(found, sequence, pre, now)?;
    check_pages(range, found.required()?.1.size)?;
    Ok(lease)
}

/// Everything about a write of pages, except its range.
fn check_writer(
    found: &FoundBase,
    sequence: &SequenceConditions,
    pre: &Preconditions,
    now: DateTime,
) -> Result<Lease, ServiceError> {
    let lease = check_change(found, pre, LeaseUse::Write, now)?;
    let (_, committed) = found.required()?;
    if committed.blob_type != BlobType::Page {
        return Err(ErrorCode::InvalidBlobType.into());
    }
    pre.encryption.check(committed.key)?;
    sequence.check(committed.sequence_number)?;
    Ok(lease)
}

/// Contents that were written and that no row names yet.
#[derive(Default)]
struct Unnamed {
    contents: Vec<ContentRef>,
    guards: Vec<PendingContent>,
}

impl BlobCore {
    /// The row of a snapshot that pages are compared with.
    async fn previous_snapshot(
        &self,
        target: &BlobTarget,
        moment: DateTime,
        epochs: Epochs,
    ) -> Result<Box<str>, ServiceError> {
        let found = self.find_any_record(target, Revision::Snapshot(moment)).await?;
        let found = found.filter(|found| found.record.live().is_some());
        let found = found.ok_or(ErrorCode::PreviousSnapshotNotFound)?;
        let before = page_epochs(&found.record).ok_or(ErrorCode::PreviousSnapshotNotFound)?;
        if before.born != epochs.born {
            return Err(ErrorCode::BlobOverwritten.into());
        }
        if before.epoch > epochs.epoch {
            return Err(ErrorCode::PreviousSnapshotCannotBeNewer.into());
        }
        Ok(found.row)
    }

    /// The blob's row and the segments of a range as of one moment.
    async fn page_base(
        &self,
        target: &BlobTarget,
        range: &Range<u64>,
    ) -> Result<(FoundBase, PageView), ServiceError> {
        let mut view = self.page_view(target.table, target.name(), BASE_ROW, segments_of(range)).await?;
        let expect = view.version.map_or(Expect::Absent, Expect::Exactly);
        Ok((FoundBase { record: view.record.take(), expect }, view))
    }

    async fn write_pages(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        range: &Range<u64>,
        data: &ReceivedData,
        sequence: &SequenceConditions,
        pre: &Preconditions,
    ) -> Result<PagesWritten, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            // Segments may be written anew, which reads them.
            let pin = self.contents.pin();
            let (found, mut view) = self.page_base(target, range).await?;
            let moment = self.next_moment().await?;
            let lease = check_write(&found, range, sequence, pre, moment)?;
            if view.covered.end < segments_of(range).end {
                return Err(ErrorCode::ServerBusy.into());
            }
            let mut record = found.required()?.0.clone();
            record.lease = lease;
            let epochs = page_epochs(&record).ok_or(ErrorCode::InvalidBlobType)?;
            let mut unnamed = Unnamed::default();
            let mut ops = Vec::new();
            for index in segments_of(range) {
                let mut segment = view.segments.remove(&index).unwrap_or_default();
                segment.write(extents_of(index, range, data));
                self.tidy(&mut segment, &pin, &mut unnamed).await?;
                ops.push(put_op(segment_row(index, epochs), Expect::Any, segment.encode()));
            }
            let written = touch(&mut record, &found, moment)?;
            ops.insert(0, put_base(&found, &record));
            match self.try_commit(target, ops).await {
                Ok(true) => return Ok(written),
                Ok(false) => self.forget(&unnamed.contents).await,
                Err(error) => {
                    self.keep_unresolved(&error, unnamed.guards);
                    return Err(error);
                }
            }
        }
    }

    /// Keeps the row of a segment short.
    async fn tidy(
        &self,
        segment: &mut PageSegment,
        pin: &Pin,
        unnamed: &mut Unnamed,
    ) -> Result<(), ServiceError> {
        let is_scattered = segment.extents.len() > SEGMENT_EXTENT_COUNT_MAX;
        if !is_scattered && segment.inline_bytes() <= SEGMENT_INLINE_BYTES_MAX {
            return Ok(());
        }
        let moves = |extent: &PageExtent| is_scattered || matches!(extent.source, PageSource::Inline(_));
        let (moved, mut kept): (Vec<_>, Vec<_>) = segment.extents.drain(..).partition(moves);
        let bytes = self.gather(&moved, pin).await?;
        let (parts, guard) = self.write_content(bytes).await?;
        unnamed.contents.extend(&parts);
        unnamed.guards.push(guard);
        let mut at = 0;
        for extent in moved {
            let end = at + u64::from(extent.length());
            kept.extend(place_parts(&parts, at..end, extent.range.start));
            at = end;
        }
        kept.sort_by_key(|extent| extent.range.start);
        segment.extents = merged(kept);
        Ok(())
    }

    /// Clears pages. With a new size, at which the range begins, everything from there on is cleared, whatever others write
    /// meanwhile, and the blob has that size afterwards.
    pub(crate) async fn clear(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        mut range: Range<u64>,
        size: Option<u64>,
        sequence: &SequenceConditions,
        pre: &Preconditions,
    ) -> Result<PagesWritten, ServiceError> {
        let mut pre = pre.clone();
        let mut tries = Tries::default();
        // The ETag that the last of several commits has left, and how often others came between them.
        let (mut left, mut restart_count) = (None, 0);
        loop {
            let _turn = tries.begin(self, target).await?;
            let (found, view) = self.page_base(target, &range).await?;
            let moment = self.next_moment().await?;
            let lease = check_writer(&found, sequence, &pre, moment)?;
            let mut record = found.required()?.0.clone();
            record.lease = lease;
            let committed = record.committed.as_mut().ok_or(ErrorCode::BlobNotFound)?;
            if let Some(size) = size {
                let end = committed.size.max(size);
                let is_ours = left.is_none_or(|left| left == committed.modified);
                if range.end != end || !is_ours {
                    // The blob has grown, or somebody has written what was cleared already.
                    restart_count += 1;
                    if restart_count > ATTEMPT_COUNT_MAX {
                        return Err(ErrorCode::ServerBusy.into());
                    }
                    (range, left) = (size..end, None);
                    continue;
                }
            } else {
                check_pages(&range, committed.size)?;
            }
            let BlobContent::Pages(epochs) = &mut committed.content else {
                return Err(ErrorCode::InvalidBlobType.into());
            };
            let mut ops = Vec::new();
            let mut until = range.end;
            if range.start == 0 && range.end == committed.size {
                *epochs = epochs.cleared(moment);
            } else if !range.is_empty() {
                let (cleared, reached) = clear_segments(view, &range, *epochs);
                (ops, until) = (cleared, reached);
            }
            let is_done = until >= range.end;
            if let Some(size) = size.filter(|_| is_done) {
                committed.size = size;
            }
            let written = touch(&mut record, &found, moment)?;
            ops.insert(0, put_base(&found, &record));
            if !self.try_commit(target, ops).await? {
                continue;
            }
            if is_done {
                return Ok(written);
            }
            // The conditions were met by the blob as the caller knew it. From here on it is ours.
            (range.start, left) = (until, Some(written.stamp.etag.0));
            pre.conditions = Default::default();
            tries = Tries::default();
        }
    }
}

/// Clears segments of a view, so many at most. Returns the changes, and up to where the range is cleared by them.
fn clear_segments(view: PageView, range: &Range<u64>, epochs: Epochs) -> (Vec<Op>, u64) {
    let mut ops = Vec::new();
    for (index, mut segment) in view.segments {
        if ops.len() == CLEARED_SEGMENT_COUNT_MAX {
            return (ops, index * SEGMENT_BYTES);
        }
        let begin = index * SEGMENT_BYTES;
        let part =
            (range.start.max(begin) - begin) as u32..(range.end.min(begin + SEGMENT_BYTES) - begin) as u32;
        let before = segment.clone();
        segment.clear(&part);
        if segment != before {
            ops.push(put_op(segment_row(index, epochs), Expect::Any, segment.encode()));
        }
    }
    (ops, (view.covered.end * SEGMENT_BYTES).min(range.end))
}

/// A write of pages changes the ETag and nothing else of the record.
fn touch(record: &mut BlobRecord, found: &FoundBase, moment: DateTime) -> Result<PagesWritten, ServiceError> {
    let committed = record.committed.as_mut().ok_or(ErrorCode::BlobNotFound)?;
    committed.modified = next_etag(found.live(), moment);
    let sequence_number = committed.sequence_number;
    Ok(PagesWritten { stamp: stamp_of(record), checksums: Checksums::default(), sequence_number })
}

/// The extents of one segment that a write of a range makes.
fn extents_of(index: u64, range: &Range<u64>, data: &ReceivedData) -> Vec<PageExtent> {
    let begin = index * SEGMENT_BYTES;
    let (from, to) = (range.start.max(begin), range.end.min(begin + SEGMENT_BYTES));
    let body = from - range.start..to - range.start;
    let start = (from - begin) as u32;
    match data {
        ReceivedData::Inline(bytes) => vec![PageExtent {
            range: start..start + (to - from) as u32,
            source: PageSource::Inline(bytes.slice(body.start as usize..body.end as usize)),
        }],
        ReceivedData::Stored(parts, _) => place_parts(parts, body, start),
    }
}

/// A range of the bytes of some contents as extents that begin there.
fn place_parts(parts: &[ContentRef], range: Range<u64>, mut start: u32) -> Vec<PageExtent> {
    let mut extents = Vec::new();
    let mut begin = 0;
    for part in parts {
        let end = begin + part.length();
        let (from, to) = (range.start.max(begin), range.end.min(end));
        if from < to {
            let length = (to - from) as u32;
            let source = PageSource::Part(*part, from - begin);
            extents.push(PageExtent { range: start..start + length, source });
            start += length;
        }
        begin = end;
    }
    extents
}

/// Neighbours that are neighbours in their content too become one.
fn merged(extents: Vec<PageExtent>) -> Vec<PageExtent> {
    let mut merged: Vec<PageExtent> = Vec::with_capacity(extents.len());
    for extent in extents {
        if let Some(last) = merged.last_mut()
            && last.range.end == extent.range.start
            && let (PageSource::Part(before, at), PageSource::Part(after, from)) =
                (&last.source, &extent.source)
            && before == after
            && at + u64::from(last.length()) == *from
        {
            last.range.end = extent.range.end;
        } else {
            merged.push(extent);
        }
    }
    merged
}

/// The new size of a page blob that grows.
pub(crate) fn grow(committed: &mut CommittedBlob, size: u64) {
    committed.size = size.max(committed.size);
}
