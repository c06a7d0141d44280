//! Contents in memory: the reference for tests, and what a server without a disk uses.
//!
//! Nothing here survives the process. A bound on the bytes of all contents takes the place of the disk's size.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use crate::guards::{Guards, Hold, PendingContent, Pin, SweepGuard};
use crate::{
    ContentError, ContentId, ContentReader, ContentRef, ContentStore, ContentWriter, Gauges,
    SWEEP_BATCH_COUNT_MAX, StoredContent, Sweep, UnixMilliseconds, Written,
};

/// Contents are kept, and read, in pieces of this size.
const PIECE_BYTES: usize = 256 * 1024;

pub struct MemoryContents {
    store: Arc<MemoryStore>,
    guards: Arc<Guards>,
}

struct MemoryStore {
    stored: Mutex<BTreeMap<ContentId, Stored>>,
    bytes_max: u64,
    /// Bytes of stored contents, and of those that are being written.
    used: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
    now: UnixMilliseconds,
}

#[derive(Clone)]
struct Stored {
    number: u64,
    length: u64,
    pieces: Arc<[Bytes]>,
    written_unix_ms: u64,
}

impl MemoryStore {
    fn stored(&self) -> MutexGuard<'_, BTreeMap<ContentId, Stored>> {
        self.stored.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn forget(&self, contents: &[ContentRef]) {
        let mut stored = self.stored();
        for content in contents {
            if let Some(gone) = stored.remove(&content.id) {
                self.used.fetch_sub(gone.length, Ordering::Relaxed);
            }
        }
    }
}

impl MemoryContents {
    /// Takes contents of `bytes_max` together.
    pub fn new(bytes_max: u64, now: UnixMilliseconds) -> MemoryContents {
        let store = Arc::new(MemoryStore {
            stored: Mutex::default(),
            bytes_max,
            used: AtomicU64::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            now,
        });
        let releasing = store.clone();
        MemoryContents { store, guards: Guards::new(move |contents| releasing.forget(&contents)) }
    }
}

#[async_trait]
impl ContentStore for MemoryContents {
    fn writer(&self, _expected_bytes: Option<u64>) -> Box<dyn ContentWriter> {
        Box::new(MemoryWriter {
            store: self.store.clone(),
            guards: self.guards.clone(),
            pending: Some(self.guards.begin_writer()),
            pieces: Vec::new(),
            last: BytesMut::new(),
            length: 0,
        })
    }

    fn pin(&self) -> Pin {
        self.guards.pin()
    }

    fn open(&self, content: &ContentRef, range: Range<u64>, pin: Pin) -> Box<dyn ContentReader> {
        let found =
            self.store.stored().get(&content.id).filter(|stored| stored.length == content.length).cloned();
        let range = range.start..range.end.min(content.length);
        Box::new(MemoryReader { store: self.store.clone(), found, range, _pin: pin })
    }

    fn hold(&self, contents: &[ContentRef]) -> Hold {
        self.guards.hold(contents)
    }

    async fn forget(&self, contents: &[ContentRef]) -> Result<(), ContentError> {
        self.store.forget(&self.guards.forget(contents));
        Ok(())
    }

    async fn sweep(&self) -> Result<Box<dyn Sweep>, ContentError> {
        let guard = self.guards.begin_sweep();
        Ok(Box::new(MemorySweep {
            store: self.store.clone(),
            guards: self.guards.clone(),
            guard,
            after: None,
        }))
    }

    fn gauges(&self) -> Gauges {
        let (pin_count, deferred_count, left_to_sweep_count) = self.guards.counts();
        Gauges {
            extent_count: 1,
            extent_bytes: self.store.used.load(Ordering::Relaxed),
            pin_count,
            deferred_count,
            left_to_sweep_count,
            written_bytes: self.store.written.load(Ordering::Relaxed),
            read_bytes: self.store.read.load(Ordering::Relaxed),
            ..Gauges::default()
        }
    }

    async fn close(&self) {}
}

struct MemoryWriter {
    store: Arc<MemoryStore>,
    guards: Arc<Guards>,
    /// `None` once the content is stored.
    pending: Option<PendingContent>,
    pieces: Vec<Bytes>,
    last: BytesMut,
    length: u64,
}

#[async_trait]
impl ContentWriter for MemoryWriter {
    async fn push(&mut self, mut bytes: Bytes) -> Result<(), ContentError> {
        let size = bytes.len() as u64;
        let used = self.store.used.fetch_add(size, Ordering::Relaxed) + size;
        self.length += size;
        if used > self.store.bytes_max {
            return Err(ContentError::NoRoom(format!(
                "contents in memory may have {} bytes",
                self.store.bytes_max
            )));
        }
        // Copied, because a short slice may belong to a large buffer.
        while !bytes.is_empty() {
            let part = bytes.split_to(bytes.len().min(PIECE_BYTES - self.last.len()));
            self.last.extend_from_slice(&part);
            if self.last.len() == PIECE_BYTES {
                self.pieces.push(std::mem::take(&mut self.last).freeze());
            }
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<Written, ContentError> {
        if !self.last.is_empty() {
            let last = std::mem::take(&mut self.last).freeze();
            self.pieces.push(last);
        }
        let pending = self.pending.take().expect("a writer finishes once");
        if self.length == 0 {
            return Ok(Written { contents: Vec::new(), pending });
        }
        let number = self.guards.next_number();
        let content = ContentRef::new(ContentId(u128::from(number).to_le_bytes()), self.length);
        let pieces = std::mem::take(&mut self.pieces).into();
        let stored = Stored { number, length: self.length, pieces, written_unix_ms: (self.store.now)() };
        self.store.stored().insert(content.id, stored);
        self.store.written.fetch_add(self.length, Ordering::Relaxed);
        Ok(Written { contents: vec![content], pending })
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        if self.pending.is_some() {
            self.store.used.fetch_sub(self.length, Ordering::Relaxed);
        }
    }
}

struct MemoryReader {
    store: Arc<MemoryStore>,
    found: Option<Stored>,
    range: Range<u64>,
    _pin: Pin,
}

#[async_trait]
impl ContentReader for MemoryReader {
    async fn next(&mut self) -> Option<Result<Bytes, ContentError>> {
        if self.range.is_empty() {
            return None;
        }
        let Some(found) = &self.found else {
            self.range = 0..0;
            return Some(Err(ContentError::NotFound));
        };
        let within = (self.range.start % PIECE_BYTES as u64) as usize;
        let piece = &found.pieces[(self.range.start / PIECE_BYTES as u64) as usize];
        let size = (piece.len() - within).min((self.range.end - self.range.start) as usize);
        self.range.start += size as u64;
        self.store.read.fetch_add(size as u64, Ordering::Relaxed);
        Some(Ok(piece.slice(within..within + size)))
    }
}

struct MemorySweep {
    store: Arc<MemoryStore>,
    guards: Arc<Guards>,
    guard: SweepGuard,
    after: Option<ContentId>,
}

#[async_trait]
impl Sweep for MemorySweep {
    async fn next(&mut self) -> Result<Vec<StoredContent>, ContentError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let stored = self.store.stored();
        let rest = stored.range((self.after.map_or(Unbounded, Excluded), Unbounded));
        let covered = rest.filter(|(_, stored)| self.guard.covers(stored.number));
        let content = |(id, stored): (&ContentId, &Stored)| StoredContent {
            content: ContentRef::new(*id, stored.length),
            written_unix_ms: stored.written_unix_ms,
            is_complete: true,
        };
        let batch: Vec<StoredContent> = covered.take(SWEEP_BATCH_COUNT_MAX).map(content).collect();
        drop(stored);
        self.after = batch.last().map(|last| last.content.id).or(self.after);
        Ok(batch)
    }

    async fn forget(&mut self, contents: &[ContentRef]) -> Result<usize, ContentError> {
        let free = self.guard.not_held(contents).ok_or(ContentError::SweepOverrun)?;
        self.store.forget(&self.guards.forget(&free));
        Ok(contents.len() - free.len())
    }
}
