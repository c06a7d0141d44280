//! Bytes on their way out.
//!
//! Promises: a stream holds one piece at a time and the plan of what follows, which is bounded; it reads only what its range
//! needs; a content that does not match its checksum ends it with an error. A stream whose reader is too slow is ended by a sweep.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use contents::{ContentRef, ContentStream, Pin};
use protocol::{ErrorCode, ServiceError};
use tokio::sync::Mutex;

use crate::api::{BlobView, Upload};
use crate::content::{self, ContentMap, ContentNode};
use crate::page_rows::PagePlan;
use crate::service::{BlobCore, from_content};

/// After this time a reader must have taken so many bytes a second, on average.
const SLOW_TIME_MAX: Duration = Duration::from_secs(10 * 60);
const SLOW_RATE_MIN: u64 = 4 * 1024;
/// After this time, so many.
const STREAM_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
const STREAM_RATE_MIN: u64 = 4 * 1024 * 1024;
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
        let began = self.inner.clock.monotonic();
        let mut state = StreamState {
            inner: self.inner,
            pin: Some(self.pin),
            pieces: VecDeque::new(),
            pages: None,
            reading: None,
        };
        match self.source {
            StreamSource::Map(map) => plan_map(map, range, &mut state.pieces),
            StreamSource::Pages(plan) => state.pages = Some((plan, range)),
        }
        let slot = StreamSlot { state: Mutex::new(state), began, sent: AtomicU64::new(0) };
        BlobStream { slot: Arc::new(slot), length, left: length, is_watched: false }
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
    slot: Arc<StreamSlot>,
    length: u64,
    left: u64,
    is_watched: bool,
}

/// What a stream has to send. A sweep can end it while nobody reads.
pub(crate) struct StreamSlot {
    state: Mutex<StreamState>,
    began: Duration,
    sent: AtomicU64,
}

struct StreamState {
    inner: Arc<BlobCore>,
    /// `None` when nothing more is read.
    pin: Option<Pin>,
    pieces: VecDeque<StreamPiece>,
    pages: Option<(Box<PagePlan>, Range<u64>)>,
    reading: Option<ContentStream>,
}

impl StreamSlot {
    /// Ends a stream whose reader is too slow, because its pin keeps everything that is forgotten since it began. `false` if the
    /// stream is to be looked at again.
    pub(crate) fn end_if_slow(&self, now: Duration) -> bool {
        let (age, sent) = (now.saturating_sub(self.began), self.sent.load(Ordering::Relaxed));
        let at_rate = |rate: u64| Duration::from_secs(sent / rate);
        if age < SLOW_TIME_MAX + at_rate(SLOW_RATE_MIN) && age < STREAM_TIME_MAX + at_rate(STREAM_RATE_MIN) {
            return false;
        }
        // Somebody is reading just now.
        let Ok(mut state) = self.state.try_lock() else { return false };
        state.stop();
        true
    }
}

impl BlobStream {
    /// How many bytes it has in all.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next piece; `None` at the end. After an error there is nothing more.
    pub async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        let slot = self.slot.clone();
        let mut state = slot.state.lock().await;
        let is_ended = state.pin.is_none() && self.left > 0;
        match state.next_piece().await {
            Ok(Some(piece)) => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                slot.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
                if self.left == 0 {
                    state.stop();
                } else if !self.is_watched {
                    self.is_watched = true;
                    state.inner.streams.watch(&slot);
                }
                Some(Ok(piece))
            }
            Ok(None) if self.left > 0 => {
                self.left = 0;
                state.stop();
                Some(Err(match is_ended {
                    true => {
                        let why = "the reader was too slow: what it reads is no longer kept";
                        ServiceError::with_source(ErrorCode::OperationTimedOut, why)
                    }
                    false => crate::service::damaged_row(),
                }))
            }
            Ok(None) => None,
            Err(error) => {
                self.left = 0;
                state.stop();
                Some(Err(error))
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

impl StreamState {
    fn stop(&mut self) {
        (self.pin, self.reading, self.pages) = (None, None, None);
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
                    let Some(pin) = self.pin.clone() else { return Ok(None) };
                    let contents = self.inner.contents.clone();
                    self.reading = Some(ContentStream::new(contents, parts, range, pin));
                }
                Some(StreamPiece::Node(node, range)) => {
                    let Some(pin) = &self.pin else { return Ok(None) };
                    let entries = self.inner.read_node(&node, pin).await?;
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
}

#[async_trait]
impl Upload for BlobStream {
    async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        BlobStream::next(self).await
    }
}

/// The streams that sent something and have more to send.
#[derive(Default)]
pub(crate) struct LongStreams(std::sync::Mutex<Vec<Weak<StreamSlot>>>);

impl LongStreams {
    fn watch(&self, slot: &Arc<StreamSlot>) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended are taken off when the list would grow, so it has twice as many as there are streams at most.
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
            let count = streams.len();
            streams.reserve(count.max(16));
        }
        streams.push(Arc::downgrade(slot));
    }

    /// Ends the streams whose readers are too slow.
    pub(crate) fn end_slow(&self, now: Duration) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.upgrade().is_some_and(|stream| !stream.end_if_slow(now)));
    }
}
