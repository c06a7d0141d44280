//! Reads a range of an object: one request, block by block, each checked.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use object_store::{GetOptions, GetRange};

use super::frame::{BLOCK_BYTES, block_sizes, frame_offset, object_bytes, read_frame};
use super::sweep::{self, ResultStream};
use super::{ObjectInner, from_object};
use crate::guards::Pin;
use crate::{ContentError, ContentReader, ContentRef};

/// A connection that breaks half way is made anew, so often.
const TRY_COUNT_MAX: usize = 3;

pub(crate) struct ObjectReader {
    inner: Arc<ObjectInner>,
    content: ContentRef,
    /// What is still to be read.
    range: Range<u64>,
    stream: Option<ResultStream<Bytes>>,
    /// Bytes that came, from the beginning of the next block on.
    buffer: BytesMut,
    try_count: usize,
    _pin: Pin,
}

impl ObjectReader {
    pub(crate) fn new(
        inner: Arc<ObjectInner>,
        content: ContentRef,
        range: Range<u64>,
        pin: Pin,
    ) -> ObjectReader {
        let range = range.start..range.end.min(content.length);
        ObjectReader { inner, content, range, stream: None, buffer: BytesMut::new(), try_count: 0, _pin: pin }
    }

    fn damaged(&self, what: &str) -> ContentError {
        ContentError::Damaged(format!("{}: {what}", self.inner.path(self.content.id)))
    }

    async fn begin(&mut self) -> Result<(), ContentError> {
        let length = self.content.length;
        let (first, end) = (self.range.start / BLOCK_BYTES, self.range.end.div_ceil(BLOCK_BYTES));
        let size = object_bytes(length);
        let range = frame_offset(first)..frame_offset(end).min(size);
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let path = self.inner.path(self.content.id);
        let got = self.inner.objects.get_opts(&path, options).await.map_err(from_object)?;
        if got.meta.size != size || got.range != range {
            return Err(self.damaged("the object has another size than its reference"));
        }
        self.buffer.clear();
        self.stream = Some(got.into_stream());
        Ok(())
    }

    async fn try_next(&mut self) -> Result<Bytes, ContentError> {
        let block = self.range.start / BLOCK_BYTES;
        let (bytes, frame_bytes) = block_sizes(block, self.content.length);
        while self.buffer.len() < frame_bytes {
            if self.stream.is_none() {
                self.begin().await?;
            }
            let Some(stream) = &mut self.stream else { continue };
            let broken = match sweep::next(stream).await {
                Some(Ok(piece)) => {
                    self.buffer.extend_from_slice(&piece);
                    continue;
                }
                Some(Err(error)) => from_object(error),
                None => self.damaged("the object ends too early"),
            };
            self.stream = None;
            self.try_count += 1;
            if self.try_count >= TRY_COUNT_MAX {
                return Err(broken);
            }
        }
        let frame = self.buffer.split_to(frame_bytes).freeze();
        if read_frame(self.content.id, block, &frame).is_none() {
            return Err(self.damaged(&format!("block {block} does not match its checksum")));
        }
        let begin = block * BLOCK_BYTES;
        let from = (self.range.start - begin) as usize;
        let to = (self.range.end - begin).min(bytes as u64) as usize;
        self.range.start = begin + to as u64;
        Ok(frame.slice(from..to))
    }
}

#[async_trait]
impl ContentReader for ObjectReader {
    async fn next(&mut self) -> Option<Result<Bytes, ContentError>> {
        if self.range.is_empty() {
            return None;
        }
        let outcome = self.try_next().await;
        match &outcome {
            Ok(piece) => drop(self.inner.read.fetch_add(piece.len() as u64, Ordering::Relaxed)),
            Err(_) => self.range = 0..0,
        }
        Some(outcome)
    }
}
