//! Writes one content: a short one as a put among others, a long one as a series of chunks.
//!
//! Space for a chunk is reserved when it begins, and its bytes are written as they come, so a writer holds a few pieces and
//! never a whole chunk. The head says *begun* until the chunk is complete. The first chunk is short and each further one
//! twice as long, so nobody reserves much more than they sent. Promises: whatever a writer that is dropped has written
//! is given back, once its last write has ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use super::LocalStore;
use super::files::ExtentFile;
use super::format::{self, BLOCK_BYTES, ChunkHead, ChunkState, UNIT_BYTES, round_up};
use super::lane::Placement;
use super::memory::{PIECE_BYTES, Piece, WriterMemory};
use super::puts::{self, Put};
use super::reclaim::Job;
use crate::error::is_full;
use crate::guards::PendingContent;
use crate::{ContentError, ContentRef, ContentWriter, Written};

/// The first chunk of a long content, unless the content is expected to be shorter.
const FIRST_CHUNK_BYTES: u64 = 4 * 1024 * 1024;
/// Writes of one writer that are on their way.
const WRITE_AHEAD_COUNT: usize = 2;
/// After this many bytes a sync begins while further bytes come, so that the last one has less to do.
const SYNC_AHEAD_BYTES: u64 = 8 * 1024 * 1024;

pub(crate) struct LocalWriter {
    store: Arc<LocalStore>,
    /// `None` when there are too many writers.
    memory: Option<WriterMemory>,
    pending: Option<PendingContent>,
    lane: usize,
    /// How many more bytes are expected.
    expected: Option<u64>,
    piece: Option<Piece>,
    chunk: Option<OpenChunk>,
    next_chunk_bytes: u64,
    in_flight: VecDeque<JoinHandle<Result<BlockChecksums, ContentError>>>,
    unsynced: u64,
    done: Vec<ContentRef>,
    touched: Vec<Placement>,
    failed: Option<ContentError>,
}

/// The checksums of some blocks, and the number of the first.
type BlockChecksums = (usize, Vec<u32>);

struct OpenChunk {
    space: Arc<ChunkSpace>,
    nonce: u64,
    written_unix_ms: u64,
    /// How many bytes of content it may have, and has.
    bytes_max: u64,
    bytes: u64,
    checksums: Vec<u32>,
}

/// The space of a chunk that is being written. The last who holds it gives it back, unless the chunk was completed.
struct ChunkSpace {
    store: Arc<LocalStore>,
    placement: Placement,
    /// How much of the placement is still its own. Behind that another chunk may begin.
    own_bytes: AtomicU64,
    is_complete: AtomicBool,
    /// A write may outlive its writer. If a sweep could forget the chunk meanwhile, it would be counted as gone twice.
    _pending: PendingContent,
}

impl Drop for ChunkSpace {
    fn drop(&mut self) {
        if !*self.is_complete.get_mut() {
            let placement = Placement { bytes: *self.own_bytes.get_mut(), ..self.placement.clone() };
            self.store.reclaim(Job::Abandon { placement, chunks: 1 });
        }
    }
}

impl LocalWriter {
    pub(crate) fn new(store: Arc<LocalStore>, expected: Option<u64>) -> LocalWriter {
        let lane = store.next_lane.fetch_add(1, Ordering::Relaxed) % store.lanes.len();
        LocalWriter {
            memory: store.memory.writer(),
            pending: Some(store.guards.begin_writer()),
            lane,
            expected,
            piece: None,
            chunk: None,
            next_chunk_bytes: FIRST_CHUNK_BYTES.min(store.chunk_bytes_max),
            in_flight: VecDeque::new(),
            unsynced: 0,
            done: Vec::new(),
            touched: Vec::new(),
            failed: None,
            store,
        }
    }

    /// A piece to gather bytes in.
    async fn take_piece(&mut self) -> Result<Piece, ContentError> {
        if let Some(piece) = self.piece.take() {
            return Ok(piece);
        }
        loop {
            let memory = self.memory.as_ref().ok_or(ContentError::Busy)?;
            if let Some(piece) = memory.try_piece() {
                return Ok(piece);
            }
            if self.in_flight.is_empty() {
                return memory.piece().await.ok_or(ContentError::Busy);
            }
            self.join_oldest().await?;
        }
    }

    async fn add(&mut self, mut bytes: Bytes) -> Result<(), ContentError> {
        while !bytes.is_empty() {
            let mut piece = self.take_piece().await?;
            if piece.is_full() && !self.memory.as_ref().is_some_and(|memory| memory.try_grow(&mut piece)) {
                self.write(piece).await?;
                continue;
            }
            let part = bytes.split_to(bytes.len().min(piece.room()));
            piece.add(&part, self.expected.unwrap_or(0));
            self.expected = self.expected.map(|expected| expected.saturating_sub(part.len() as u64));
            self.piece = Some(piece);
        }
        Ok(())
    }

    /// Writes a piece into chunks. All pieces but the last of a content consist of whole blocks.
    async fn write(&mut self, piece: Piece) -> Result<(), ContentError> {
        let piece = Arc::new(piece);
        let mut at = 0;
        while at < piece.bytes.len() {
            let rest = piece.bytes.len() - at;
            let chunk = match &mut self.chunk {
                Some(chunk) => chunk,
                none => {
                    let expected = self.expected.unwrap_or(0).saturating_add(rest as u64);
                    let pending = again(&self.pending);
                    let chunk =
                        begin(&self.store, pending, self.lane, self.next_chunk_bytes, expected).await?;
                    self.next_chunk_bytes = (self.next_chunk_bytes * 2).min(self.store.chunk_bytes_max);
                    none.insert(chunk)
                }
            };
            let size = rest.min((chunk.bytes_max - chunk.bytes) as usize);
            let part = at..at + size;
            let (space, nonce, position) = (chunk.space.clone(), chunk.nonce, chunk.bytes);
            chunk.bytes += size as u64;
            at += size;
            let is_full = chunk.bytes == chunk.bytes_max;
            let permit = acquire(&self.store.writes).await?;
            let piece = piece.clone();
            self.in_flight.push_back(tokio::task::spawn_blocking(move || {
                let outcome = space.write_blocks(nonce, position, &piece.bytes[part]);
                // In this order: who has all permits knows that everything before is given back.
                drop((piece, space));
                drop(permit);
                outcome
            }));
            self.unsynced += size as u64;
            if self.in_flight.len() >= WRITE_AHEAD_COUNT {
                self.join_oldest().await?;
            }
            if is_full {
                self.complete().await?;
            } else if self.unsynced >= SYNC_AHEAD_BYTES {
                self.unsynced = 0;
                if let Some(chunk) = &self.chunk {
                    self.store.ask_sync(&chunk.space.placement);
                }
            }
        }
        Ok(())
    }

    async fn join_oldest(&mut self) -> Result<(), ContentError> {
        let Some(oldest) = self.in_flight.front_mut() else { return Ok(()) };
        // Not taken off before it has ended: this future may be dropped.
        let outcome = oldest.await;
        self.in_flight.pop_front();
        let (first, checksums) = outcome.map_err(|error| ContentError::Io(error.to_string()))??;
        if let Some(chunk) = &mut self.chunk {
            chunk.checksums.resize(chunk.checksums.len().max(first + checksums.len()), 0);
            chunk.checksums[first..first + checksums.len()].copy_from_slice(&checksums);
        }
        Ok(())
    }

    /// Writes the head of the chunk.
    async fn complete(&mut self) -> Result<(), ContentError> {
        while !self.in_flight.is_empty() {
            self.join_oldest().await?;
        }
        let Some(chunk) = self.chunk.take() else { return Ok(()) };
        debug_assert_eq!(chunk.checksums.len(), format::block_count(chunk.bytes));
        let used = round_up(UNIT_BYTES + chunk.bytes, UNIT_BYTES);
        let head = ChunkHead {
            state: ChunkState::Complete,
            nonce: chunk.nonce,
            length: chunk.bytes as u32,
            data_offset: UNIT_BYTES as u32,
            space: used as u32,
            written_unix_ms: chunk.written_unix_ms,
            checksums: chunk.checksums,
        };
        let space = chunk.space.clone();
        let (store, lane) = (self.store.clone(), self.lane);
        let content = blocking(&self.store.writes, move || {
            let placement = &space.placement;
            space.write_head(&head)?;
            // Only now: after a crash the old head would still claim all of the space. And not by the writer, who may be
            // dropped meanwhile.
            space.own_bytes.store(used, Ordering::Release);
            let rest = placement.bytes - used;
            if rest > 0 && !store.lanes[lane].give_back(placement, used) {
                let rest = Placement { offset: placement.offset + used, bytes: rest, ..placement.clone() };
                store.reclaim(Job::Abandon { placement: rest, chunks: 0 });
            }
            Ok(placement.place().content(head.nonce, head.length.into()))
        })
        .await?;
        // From here on the writer forgets it, if it is dropped.
        self.done.push(content);
        chunk.space.is_complete.store(true, Ordering::Release);
        let placement = &chunk.space.placement;
        if !self.touched.iter().any(|touched| Arc::ptr_eq(&touched.extent, &placement.extent)) {
            self.touched.push(placement.clone());
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), ContentError> {
        self.store.extents.health.check()?;
        let piece = self.piece.take();
        let is_short = self.chunk.is_none() && self.done.is_empty();
        if let Some(piece) = piece {
            if is_short {
                let content = put(&self.store, again(&self.pending), piece).await?;
                self.done.push(content);
                return Ok(());
            }
            self.write(piece).await?;
        }
        self.complete().await?;
        let tickets: Vec<u64> = self.touched.iter().map(|placement| self.store.ask_sync(placement)).collect();
        for (placement, ticket) in self.touched.iter().zip(tickets) {
            placement.extent.group.wait(ticket).await?;
        }
        self.store.written.fetch_add(self.done.iter().map(|content| content.length).sum(), Ordering::Relaxed);
        Ok(())
    }
}

/// For what may outlive the writer.
fn again(pending: &Option<PendingContent>) -> PendingContent {
    pending.as_ref().expect("a writer that is not finished has a guard").again()
}

async fn acquire(semaphore: &Arc<Semaphore>) -> Result<tokio::sync::OwnedSemaphorePermit, ContentError> {
    semaphore
        .clone()
        .acquire_owned()
        .await
        .map_err(|_| ContentError::Unavailable("the store is closed".to_owned()))
}

async fn blocking<T: Send + 'static>(
    semaphore: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ContentError> {
    let permit = acquire(semaphore).await?;
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| ContentError::Io(error.to_string()))?
}

/// Reserves space for a chunk, and says in it that the chunk has begun.
async fn begin(
    store: &Arc<LocalStore>,
    pending: PendingContent,
    lane: usize,
    bytes_max: u64,
    expected: u64,
) -> Result<OpenChunk, ContentError> {
    // Whole blocks, and at least a piece.
    let expected = round_up(expected.clamp(PIECE_BYTES as u64, bytes_max), BLOCK_BYTES as u64);
    // Without a hint, as much as the chunk may have.
    let bytes_max = if expected > PIECE_BYTES as u64 { bytes_max.min(expected) } else { bytes_max };
    let owned = store.clone();
    let work = move || {
        let placement = owned.lanes[lane].reserve(&owned, UNIT_BYTES + bytes_max, 1)?;
        let nonce = owned.next_nonce();
        let written_unix_ms = (owned.options.now)();
        let own_bytes = AtomicU64::new(placement.bytes);
        let is_complete = AtomicBool::new(false);
        let space =
            Arc::new(ChunkSpace { store: owned, placement, own_bytes, is_complete, _pending: pending });
        space.write_head(&ChunkHead {
            state: ChunkState::Begun,
            nonce,
            length: 0,
            data_offset: UNIT_BYTES as u32,
            space: (UNIT_BYTES + bytes_max) as u32,
            written_unix_ms,
            checksums: Vec::new(),
        })?;
        Ok(OpenChunk { space, nonce, written_unix_ms, bytes_max, bytes: 0, checksums: Vec::new() })
    };
    blocking(&store.writes, work).await
}

impl ChunkSpace {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), ContentError> {
        let file: &dyn ExtentFile = &*self.placement.file;
        file.write(offset, bytes).map_err(|error| {
            if !is_full(&error) {
                self.store.lanes.iter().for_each(|lane| lane.leave(&self.store, &self.placement.extent));
            }
            error.into()
        })
    }

    /// Writes bytes of the content, and returns their checksums.
    fn write_blocks(&self, nonce: u64, position: u64, bytes: &[u8]) -> Result<BlockChecksums, ContentError> {
        self.write(self.placement.offset + UNIT_BYTES + position, bytes)?;
        let first = (position / BLOCK_BYTES as u64) as usize;
        let blocks = bytes.chunks(BLOCK_BYTES).enumerate();
        Ok((first, blocks.map(|(at, block)| format::block_checksum(nonce, first + at, block)).collect()))
    }

    fn write_head(&self, head: &ChunkHead) -> Result<(), ContentError> {
        // The rest of the unit is written too, so that the disk needs not read it first.
        let mut unit = vec![0; UNIT_BYTES as usize];
        head.write(self.placement.extent.salt, self.placement.place(), &mut unit);
        self.write(self.placement.offset, &unit)
    }
}

async fn put(
    store: &Arc<LocalStore>,
    pending: PendingContent,
    piece: Piece,
) -> Result<ContentRef, ContentError> {
    let (reply, outcome) = oneshot::channel();
    let written_unix_ms = (store.options.now)();
    puts::add(store, Put { piece, nonce: store.next_nonce(), written_unix_ms, reply, _pending: pending });
    outcome.await.map_err(|_| ContentError::Io("the write ended without an outcome".to_owned()))?
}

#[async_trait]
impl ContentWriter for LocalWriter {
    async fn push(&mut self, bytes: Bytes) -> Result<(), ContentError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // Until there is an outcome: if this future is dropped, some bytes are missing.
        self.failed = Some(ContentError::Io("an earlier write was cancelled".to_owned()));
        let outcome = self.add(bytes).await;
        self.failed = outcome.clone().err();
        outcome
    }

    async fn finish(mut self: Box<Self>) -> Result<Written, ContentError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.end().await?;
        let contents = std::mem::take(&mut self.done);
        let pending = self.pending.take().expect("a writer finishes once");
        Ok(Written { contents, pending })
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        let contents = std::mem::take(&mut self.done);
        if !contents.is_empty() {
            self.store.reclaim(Job::Forget { contents, reply: None });
        }
    }
}
