//! Bytes on their way out.
//!
//! Promises: a stream holds one piece at a time and the plan of what follows, which is bounded; it reads only what its range
//! needs; a content that does not match its checksum ends it with an error.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use contents::{ContentRef, ContentStream, Pin};
use protocol::ServiceError;

use crate::api::{BlobView, Upload};
use crate::content::{self, ContentMap, ContentNode};
use crate::page_rows::PagePlan;
use crate::service::{BlobCore, from_content};

/// Zeros are sent in pieces of this size.
const ZERO_BYTES: usize = 64 * 1024;
static ZEROS: [u8; ZERO_BYTES] = [0; ZERO_BYTES];

/// A blob whose conditions are checked and whose content can be read.
pub struct OpenBlob {
    pub(crate) view: BlobView,
    pub(crate) inner: Arc<BlobCore>,
    pub(crate) pin: Pin,
    pub(crate) source: StreamSource,
}

pub(crate) enum StreamSource {
    Map(ContentMap),
    Pages(Box<PagePlan>),
}

impl OpenBlob {
    pub fn view(&self) -> &BlobView {
        &self.view
    }

    pub fn size(&self) -> u64 {
        self.view.size()
    }

    /// The bytes of this range, which lies within the blob.
    pub fn stream(self, range: Range<u64>) -> BlobStream {
        let range = range.start.min(self.size())..range.end.min(self.size());
        let length = range.end.saturating_sub(range.start);
        let mut stream = BlobStream {
            inner: self.inner,
            pin: self.pin,
            pieces: VecDeque::new(),
            pages: None,
            reading: None,
            length,
            left: length,
        };
        match self.source {
            StreamSource::Map(map) => plan_map(map, range, &mut stream.pieces),
            StreamSource::Pages(plan) => stream.pages = Some((plan, range)),
        }
        stream
    }
}

/// A part of what a stream has to send.
pub(crate) enum StreamPiece {
    Bytes(Bytes),
    Parts(Arc<[ContentRef]>, Range<u64>),
    Node(ContentNode, Range<u64>),
    Zeros(u64),
}

/// Plans the range of a content.
fn plan_map(map: ContentMap, range: Range<u64>, pieces: &mut VecDeque<StreamPiece>) {
    let mut begin = 0;
    for node in map.nodes {
        let end = begin + node.length;
        if let Some(part) = overlap(&range, begin, end) {
            pieces.push_back(StreamPiece::Node(node, part));
        }
        begin = end;
    }
    begin = plan_entries(&map.entries, begin, &range, pieces);
    let end = begin + map.tail.len() as u64;
    if let Some(part) = overlap(&range, begin, end) {
        pieces.push_back(StreamPiece::Bytes(map.tail.slice(part.start as usize..part.end as usize)));
    }
}

/// Plans entries of which the first begins there; returns where the last one ends. Neighbours are read as one.
fn plan_entries(
    entries: &[content::ContentEntry],
    mut begin: u64,
    range: &Range<u64>,
    pieces: &mut VecDeque<StreamPiece>,
) -> u64 {
    let mut parts = Vec::new();
    let mut first = None;
    for part in entries.iter().flat_map(|entry| entry.parts.iter()) {
        let end = begin + part.length();
        if overlap(range, begin, end).is_some() {
            first.get_or_insert(begin);
            parts.push(*part);
        }
        begin = end;
    }
    if let Some(first) = first {
        let length: u64 = parts.iter().map(ContentRef::length).sum();
        if let Some(part) = overlap(range, first, first + length) {
            pieces.push_back(StreamPiece::Parts(parts.into(), part));
        }
    }
    begin
}

/// The part of `begin..end` that the range covers, counted from `begin`.
fn overlap(range: &Range<u64>, begin: u64, end: u64) -> Option<Range<u64>> {
    let (from, to) = (range.start.max(begin), range.end.min(end));
    (from < to).then(|| from - begin..to - begin)
}

/// The bytes of a blob, or of a range of it.
pub struct BlobStream {
    inner: Arc<BlobCore>,
    pin: Pin,
    pieces: VecDeque<StreamPiece>,
    pages: Option<(Box<PagePlan>, Range<u64>)>,
    reading: Option<ContentStream>,
    length: u64,
    left: u64,
}

impl BlobStream {
    /// How many bytes it has in all.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next piece; `None` at the end. After an error there is nothing more.
    pub async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        match self.next_piece().await {
            Ok(Some(piece)) => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                Some(Ok(piece))
            }
            Ok(None) if self.left > 0 => {
                self.stop();
                Some(Err(crate::service::damaged_row()))
            }
            Ok(None) => None,
            Err(error) => {
                self.stop();
                Some(Err(error))
            }
        }
    }

    fn stop(&mut self) {
        (self.left, self.reading, self.pages) = (0, None, None);
        self.pieces.clear();
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, ServiceError> {
        loop {
            if let Some(reading) = &mut self.reading {
                match reading.next().await {
                    Some(piece) => return piece.map(Some).map_err(from_content),
                    None => self.reading = None,
                }
            }
            match self.pieces.pop_front() {
                Some(StreamPiece::Bytes(bytes)) => return Ok(Some(bytes)),
                Some(StreamPiece::Parts(parts, range)) => {
                    let contents = self.inner.contents.clone();
                    self.reading = Some(ContentStream::new(contents, parts, range, self.pin.clone()));
                }
                Some(StreamPiece::Node(node, range)) => {
                    let entries = self.inner.read_node(&node, &self.pin).await?;
                    let mut planned = VecDeque::new();
                    plan_entries(&entries, 0, &range, &mut planned);
                    for piece in planned.into_iter().rev() {
                        self.pieces.push_front(piece);
                    }
                }
                Some(StreamPiece::Zeros(length)) => {
                    let now = length.min(ZERO_BYTES as u64);
                    if now < length {
                        self.pieces.push_front(StreamPiece::Zeros(length - now));
                    }
                    return Ok(Some(Bytes::from_static(&ZEROS[..now as usize])));
                }
                None => {
                    let Some((plan, range)) = &mut self.pages else { return Ok(None) };
                    if range.start >= range.end {
                        return Ok(None);
                    }
                    self.inner.plan_pages(plan, range, &mut self.pieces).await?;
                }
            }
        }
    }

    /// All of it at once, for what is known to be short.
    pub async fn collect(mut self) -> Result<Bytes, ServiceError> {
        let mut all = bytes::BytesMut::with_capacity(self.length as usize);
        while let Some(piece) = self.next().await {
            all.extend_from_slice(&piece?);
        }
        Ok(all.freeze())
    }
}

#[async_trait]
impl Upload for BlobStream {
    async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        BlobStream::next(self).await
    }
}
