//! Reads a range of one chunk, block by block, and checks every block.
//!
//! A reader holds at most one piece, and only until it is handed over; between two pieces it holds the head of its chunk.
//! What is in the memory of the operating system is read at once; the rest is read by a bounded number of threads.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;

use super::LocalStore;
use super::extents::ExtentState;
use super::files::ExtentFile;
use super::format::{self, BLOCK_BYTES, ChunkHead, ChunkPlace, ChunkState, UNIT_BYTES, round_up};
use crate::{ContentError, ContentReader, ContentRef, Pin};

/// A reader returns pieces of this size, at most.
pub const READ_BYTES: usize = 2 * BLOCK_BYTES;

pub(crate) struct LocalReader {
    store: Arc<LocalStore>,
    content: ContentRef,
    range: Range<u64>,
    head: Option<Arc<ChunkHead>>,
    _pin: Pin,
}

impl LocalReader {
    pub(crate) fn new(
        store: Arc<LocalStore>,
        content: ContentRef,
        range: Range<u64>,
        pin: Pin,
    ) -> LocalReader {
        let range = range.start..range.end.min(content.length);
        LocalReader { store, content, range, head: None, _pin: pin }
    }

    async fn read(&self, range: Range<u64>) -> Result<(Arc<ChunkHead>, Bytes), ContentError> {
        let (place, _) = ChunkPlace::of(&self.content);
        let extent = self.store.extents.get(place.extent).ok_or(ContentError::NotFound)?;
        let (content, head) = (self.content, self.head.clone());
        if let Some(file) = self.store.extents.opened(place.extent) {
            let source = ChunkSource { file, extent: extent.clone(), is_cached_only: true };
            if let Some(read) = source.read(&content, head.clone(), range.clone())? {
                return Ok(read);
            }
        }
        let closed = |_| ContentError::Unavailable("the store is closed".to_owned());
        let permit = self.store.reads.clone().acquire_owned().await.map_err(closed)?;
        let store = self.store.clone();
        let work = move || {
            let _permit = permit;
            let file = store.extents.file(place.extent)?;
            let source = ChunkSource { file, extent, is_cached_only: false };
            let read = source.read(&content, head, range)?;
            read.ok_or_else(|| ContentError::Io("the disk did not answer".to_owned()))
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| ContentError::Io(error.to_string()))?
    }
}

#[async_trait]
impl ContentReader for LocalReader {
    async fn next(&mut self) -> Option<Result<Bytes, ContentError>> {
        if self.range.is_empty() {
            return None;
        }
        // Pieces end where blocks end, so no block is read twice.
        let start = self.range.start;
        let end = (start / BLOCK_BYTES as u64 * BLOCK_BYTES as u64 + READ_BYTES as u64).min(self.range.end);
        match self.read(start..end).await {
            Ok((head, bytes)) => {
                self.range.start = end;
                self.head = Some(head);
                self.store.read.fetch_add(end - start, Ordering::Relaxed);
                Some(Ok(bytes))
            }
            Err(error) => {
                self.range = 0..0;
                Some(Err(error))
            }
        }
    }
}

struct ChunkSource {
    file: Arc<dyn ExtentFile>,
    extent: Arc<ExtentState>,
    /// Reads only what needs no disk.
    is_cached_only: bool,
}

impl ChunkSource {
    /// `None` when this needs the disk, and may not.
    fn fill(&self, offset: u64, out: &mut [u8]) -> Result<Option<()>, ContentError> {
        if self.is_cached_only {
            return Ok(self.file.read_cached(offset, out)?.then_some(()));
        }
        match self.file.read(offset, out) {
            Ok(()) => Ok(Some(())),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("the file ends before the content does"))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn damaged(&self, what: &str) -> ContentError {
        ContentError::Damaged(format!("{}: {what}", format::name(self.extent.number)))
    }

    fn read(
        &self,
        content: &ContentRef,
        head: Option<Arc<ChunkHead>>,
        range: Range<u64>,
    ) -> Result<Option<(Arc<ChunkHead>, Bytes)>, ContentError> {
        if content.length > format::CHUNK_BYTES_MAX {
            return Err(ContentError::NotFound);
        }
        let (place, _) = ChunkPlace::of(content);
        let blocks = range.start / BLOCK_BYTES as u64 * BLOCK_BYTES as u64
            ..round_up(range.end, BLOCK_BYTES as u64).min(content.length);
        let size = (blocks.end - blocks.start) as usize;
        let head_bytes = format::head_bytes(content.length);
        // A put has its bytes right behind its head, so a short one takes one read.
        let data_offset = round_up(head_bytes as u64, 8) as usize;
        let (head, bytes, at) = match head {
            None if size as u64 == content.length
                && data_offset as u64 + content.length <= READ_BYTES as u64 =>
            {
                let mut bytes = vec![0; data_offset + size];
                if self.fill(place.offset(), &mut bytes)?.is_none() {
                    return Ok(None);
                }
                let head = Arc::new(self.head(content, &bytes[..head_bytes])?);
                if head.data_offset as usize == data_offset {
                    (head, bytes, data_offset)
                } else {
                    let offset = place.offset() + u64::from(head.data_offset);
                    if self.fill(offset, &mut bytes[..size])?.is_none() {
                        return Ok(None);
                    }
                    (head, bytes, 0)
                }
            }
            head => {
                let head = match head {
                    Some(head) => head,
                    None => {
                        let mut bytes = vec![0; head_bytes];
                        if self.fill(place.offset(), &mut bytes)?.is_none() {
                            return Ok(None);
                        }
                        Arc::new(self.head(content, &bytes)?)
                    }
                };
                let mut bytes = vec![0; size];
                let offset = place.offset() + u64::from(head.data_offset) + blocks.start;
                if self.fill(offset, &mut bytes)?.is_none() {
                    return Ok(None);
                }
                (head, bytes, 0)
            }
        };
        let first = (blocks.start / BLOCK_BYTES as u64) as usize;
        for (number, block) in bytes[at..at + size].chunks(BLOCK_BYTES).enumerate() {
            let number = first + number;
            if head.checksums.get(number) != Some(&format::block_checksum(head.nonce, number, block)) {
                let offset = place.offset() + u64::from(head.data_offset) + (number * BLOCK_BYTES) as u64;
                return Err(self.damaged(&format!("the block at {offset} does not match its checksum")));
            }
        }
        let start = at + (range.start - blocks.start) as usize;
        let bytes = Bytes::from(bytes).slice(start..start + (range.end - range.start) as usize);
        Ok(Some((head, bytes)))
    }

    /// The head of the content, from what lies at its place.
    fn head(&self, content: &ContentRef, bytes: &[u8]) -> Result<ChunkHead, ContentError> {
        let (place, nonce) = ChunkPlace::of(content);
        match ChunkHead::read(self.extent.salt, place, bytes) {
            Some(head) if head.nonce != nonce || head.state != ChunkState::Complete => {
                Err(ContentError::NotFound)
            }
            Some(head) if u64::from(head.length) != content.length => Err(self
                .damaged(&format!("the chunk at {} has another length than its reference", place.offset()))),
            Some(head) => Ok(head),
            // Punched, or never written.
            None if super::walk::is_zero(bytes) => Err(ContentError::NotFound),
            None => Err(self.damaged(&format!(
                "the head of the chunk at {} does not match its checksum",
                place.offset()
            ))),
        }
    }
}

const _: () = assert!(READ_BYTES as u64 > UNIT_BYTES, "a short content is read at once");
