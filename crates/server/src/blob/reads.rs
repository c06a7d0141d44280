//! Reads of blobs: content, properties, metadata, tags, lists of blocks and pages.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use blobs::{BlobView, BlockLists, PageQuery, Preconditions};
use bytes::Bytes;
use protocol::auth::Grant;
use protocol::blob::blob_headers::{Shown, write_blob_headers};
use protocol::blob::block_list::BlockListWriter;
use protocol::blob::checksum::{ContentDigest, md5_to_header};
use protocol::blob::conditions::Conditions;
use protocol::blob::identifier::BlockId;
use protocol::blob::page_list::{PageListWriter, PageRangesParameters};
use protocol::blob::properties::BlockListType;
use protocol::blob::range::{ByteRange, RangeChecksum, content_range, unsatisfied_range};
use protocol::{ErrorCode, ServiceError};

use super::BlobCall;
use super::answer::BlobAnswer;
use super::download;
use crate::front::refusal::Refusal;
use crate::http::body::{AnswerBody, AnswerStream, Pieces};
use crate::http::header_names::{CONTENT_RANGE, ETAG};

/// From this version on, Get and Set Blob Tags take all conditions.
pub(crate) const CONDITIONS_ON_TAGS: &str = "2026-02-06";
/// A longer list of blocks is sent in pieces of about this size.
const LIST_PIECE_BYTES: usize = 64 * 1024;
const LIST_WHOLE_COUNT_MAX: usize = 200;

impl BlobCall<'_> {
    pub async fn get(&self) -> Result<BlobAnswer, Refusal> {
        let headers = &self.request.headers;
        let asked = ByteRange::read(headers)?;
        let checksum = RangeChecksum::read(headers)?;
        let preconditions = self.preconditions()?;
        let open = self.service().open_blob(self.place(), self.revision, asked, &preconditions).await;
        let open = match open {
            Ok(open) => open,
            Err(error) => return Err(self.not_modified(error, preconditions).await),
        };
        let size = open.size();
        let range = match asked.map(|asked| asked.within(size)) {
            None => None,
            Some(Ok(range)) => Some(range),
            Some(Err(error)) => return Err(unsatisfied(error, size)),
        };
        if let Some(checksum) = checksum {
            checksum.check(range.as_ref())?;
        }
        let (status, shown) = if range.is_some() { (206, Shown::Range) } else { (200, Shown::Whole) };
        let mut answer = self.show(BlobAnswer::empty(status), open.view(), shown);
        if let Some(range) = &range {
            answer = answer.header("content-range", &content_range(range, size));
        }
        let stream = open.stream(range.unwrap_or(0..size));
        let Some(checksum) = checksum else { return Ok(answer.with_body(download::body(stream).await?)) };
        // The checksum stands before the content, so the content is read first.
        let mut reservation = self.session.reserve_answer();
        if !reservation.grow(usize::try_from(stream.length()).unwrap_or(usize::MAX)) {
            return Err(ErrorCode::ServerBusy.into());
        }
        let content = stream.collect().await?;
        let is_md5 = checksum == RangeChecksum::Md5;
        let found = ContentDigest::of(&content, is_md5, !is_md5);
        let mut body = AnswerBody::whole(content.into());
        body.hold(reservation);
        Ok(answer
            .header_if("content-md5", found.md5.as_ref().map(md5_to_header))
            .header_if("x-ms-content-crc64", found.crc64.map(|crc| crc.to_header()))
            .with_body(body))
    }

    pub(crate) async fn get_properties(&self) -> Result<BlobAnswer, Refusal> {
        let preconditions = self.preconditions()?;
        let found = self.service().blob_properties(self.place(), self.revision, &preconditions).await;
        let found = match found {
            Ok(found) => found,
            Err(error) => return Err(self.not_modified(error, preconditions).await),
        };
        Ok(self.show(BlobAnswer::empty(200), &found, Shown::Properties).unsent_len(found.size()))
    }

    /// A refusal. One that says that nothing has changed tells the ETag of what is there, for those who keep copies.
    async fn not_modified(&self, error: ServiceError, preconditions: Preconditions) -> Refusal {
        let mut refusal = Refusal::from(error);
        if refusal.error.code.status() != 304 {
            return refusal;
        }
        let unconditional = Preconditions { conditions: Conditions::default(), ..preconditions };
        let found = self.service().blob_properties(self.place(), self.revision, &unconditional).await;
        let stamp = found.ok().and_then(|found| found.stamp());
        refusal.header = stamp.map(|stamp| Box::new((ETAG, stamp.etag.quoted())));
        refusal
    }

    /// The headers that show a blob, with what the caller's signature sets instead.
    fn show(&self, mut answer: BlobAnswer, view: &BlobView, shown: Shown) -> BlobAnswer {
        let head = self.session.head;
        let mut put = |name: &str, value: &str| answer.push(name, value);
        let mut listed = view.listed();
        let overridden;
        if let (Grant::ServiceSas { .. }, Some(committed)) = (self.session.grant, &mut listed.committed) {
            overridden = committed.http.clone().with_overrides(&head.query);
            committed.http = &overridden;
            write_blob_headers(&listed, shown, head.version, &mut put);
        } else {
            write_blob_headers(&listed, shown, head.version, &mut put);
        }
        answer
    }

    pub(crate) async fn get_metadata(&self) -> Result<BlobAnswer, ServiceError> {
        let preconditions = self.preconditions()?;
        let found = self.service().blob_properties(self.place(), self.revision, &preconditions).await?;
        let committed = found.committed.as_ref().ok_or(ErrorCode::BlobNotFound)?;
        let answer = BlobAnswer::empty(200).stamp(committed.etag, committed.last_modified);
        Ok(answer.metadata(&committed.metadata))
    }

    /// The conditions of operations on tags.
    pub(crate) fn tag_preconditions(&self) -> Result<Preconditions, ServiceError> {
        if self.request.version >= CONDITIONS_ON_TAGS {
            self.preconditions()
        } else {
            self.preconditions_on_tags()
        }
    }

    pub(crate) async fn get_tags(&self) -> Result<BlobAnswer, ServiceError> {
        let preconditions = self.tag_preconditions()?;
        let tags = self.service().tags(self.place(), self.revision, &preconditions).await?;
        Ok(BlobAnswer::document(tags.write_document()))
    }

    pub(crate) async fn get_block_list(&self) -> Result<BlobAnswer, ServiceError> {
        let list_type = BlockListType::read_query(&self.session.head.query)?;
        let preconditions = self.preconditions_on_tags()?;
        let lists = self.service().block_list(self.place(), self.revision, list_type, &preconditions).await?;
        let (stamp, size) = (lists.stamp, lists.size);
        let mut answer = BlobAnswer::read(block_list_body(list_type, lists));
        if let Some(stamp) = stamp {
            answer = answer.stamp(stamp.etag, stamp.last_modified);
        }
        Ok(answer.header("x-ms-blob-content-length", &size.to_string()))
    }

    pub(crate) async fn get_page_ranges(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let parameters = PageRangesParameters::read(&self.session.head.query, headers, self.revision)?;
        let query = PageQuery {
            previous: parameters.previous,
            range: ByteRange::read(headers)?,
            marker: parameters.marker,
            count_max: parameters.page_count(),
        };
        let preconditions = self.preconditions()?;
        let found = self.service().page_ranges(self.place(), self.revision, query, &preconditions).await?;
        let mut writer = PageListWriter::begin(&parameters);
        for page in &found.ranges {
            if page.is_cleared {
                writer.push_cleared(&page.range);
            } else {
                writer.push(&page.range);
            }
        }
        Ok(BlobAnswer::document(writer.finish(found.next))
            .stamp(found.stamp.etag, found.stamp.last_modified)
            .header("x-ms-blob-content-length", &found.size.to_string()))
    }
}

/// The refusal of a range behind the end, which tells where the end is.
fn unsatisfied(error: ServiceError, size: u64) -> Refusal {
    let mut refusal = Refusal::from(error);
    refusal.header = Some(Box::new((CONTENT_RANGE, unsatisfied_range(size))));
    refusal
}

fn block_list_body(list_type: BlockListType, lists: BlockLists) -> AnswerBody {
    let count = lists.committed.len() + lists.uncommitted.len();
    let mut pieces = BlockListPieces {
        writer: Some(BlockListWriter::begin(list_type)),
        committed: lists.committed.into_iter(),
        uncommitted: lists.uncommitted.into_iter(),
    };
    if count <= LIST_WHOLE_COUNT_MAX {
        let whole = std::iter::from_fn(|| pieces.next_piece()).flatten().collect();
        return AnswerBody::whole(whole);
    }
    AnswerBody::Stream(AnswerStream { len: None, pieces: Box::pin(pieces) })
}

/// A list of blocks that is written while it is sent.
struct BlockListPieces {
    /// `None` at the end.
    writer: Option<BlockListWriter>,
    committed: vec::IntoIter<(BlockId, u64)>,
    uncommitted: vec::IntoIter<(BlockId, u64)>,
}

impl BlockListPieces {
    fn next_piece(&mut self) -> Option<Vec<u8>> {
        let mut writer = self.writer.take()?;
        while writer.buffered_bytes() < LIST_PIECE_BYTES {
            if let Some((id, size)) = self.committed.next() {
                writer.push_committed(&id, size);
            } else if let Some((id, size)) = self.uncommitted.next() {
                writer.push_uncommitted(&id, size);
            } else {
                return Some(writer.finish());
            }
        }
        let piece = writer.drain();
        self.writer = Some(writer);
        Some(piece)
    }
}

impl Pieces for BlockListPieces {
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        Poll::Ready(self.next_piece().map(|piece| Ok(Bytes::from(piece))))
    }
}
