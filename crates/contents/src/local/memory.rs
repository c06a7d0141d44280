//! The memory of writers, bounded over all of them.
//!
//! Every writer has room for one block of its own, so it always gets on, however slow the others are. What it takes beyond
//! that comes from one pool; when the pool is empty, writers make do with their own blocks and write shorter pieces.
//! So all writers together hold at most [`POOL_BYTES`] and [`WRITER_COUNT_MAX`] blocks.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::format::BLOCK_BYTES;

/// What all writers share: 64 MiB.
pub const POOL_BYTES: usize = 64 * 1024 * 1024;
/// Writers at the same time. More are refused.
pub const WRITER_COUNT_MAX: usize = 2048;
/// A writer writes in pieces of this size, if there is memory.
pub const PIECE_BYTES: usize = 4 * BLOCK_BYTES;

const POOL_BLOCKS: usize = POOL_BYTES / BLOCK_BYTES;
const PIECE_BLOCKS: u32 = (PIECE_BYTES / BLOCK_BYTES) as u32;

#[derive(Debug)]
pub(crate) struct Memory {
    pool: Arc<Semaphore>,
    writers: Arc<Semaphore>,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory {
            pool: Arc::new(Semaphore::new(POOL_BLOCKS)),
            writers: Arc::new(Semaphore::new(WRITER_COUNT_MAX)),
        }
    }

    /// `None` when there are too many writers.
    pub(crate) fn writer(&self) -> Option<WriterMemory> {
        let writer = self.writers.clone().try_acquire_owned().ok()?;
        let own = Arc::new(Semaphore::new(1));
        Some(WriterMemory { pool: self.pool.clone(), own, _writer: writer })
    }
}

#[derive(Debug)]
pub(crate) struct WriterMemory {
    pool: Arc<Semaphore>,
    /// Free unless a piece in the writer's own block is on its way to the disk.
    own: Arc<Semaphore>,
    _writer: OwnedSemaphorePermit,
}

/// Bytes that are gathered for one write, and the memory that they may take.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    pub(crate) bytes_max: usize,
    permits: Vec<OwnedSemaphorePermit>,
}

impl WriterMemory {
    /// `None` when neither the writer's own block nor a piece of the pool is free.
    pub(crate) fn try_piece(&self) -> Option<Piece> {
        if let Ok(permit) = self.own.clone().try_acquire_owned() {
            return Some(Piece { bytes: Vec::new(), bytes_max: BLOCK_BYTES, permits: vec![permit] });
        }
        let permit = self.pool.clone().try_acquire_many_owned(PIECE_BLOCKS).ok()?;
        Some(Piece { bytes: Vec::new(), bytes_max: PIECE_BYTES, permits: vec![permit] })
    }

    /// Waits until the writer's own block was written.
    pub(crate) async fn piece(&self) -> Option<Piece> {
        let permit = self.own.clone().acquire_owned().await.ok()?;
        Some(Piece { bytes: Vec::new(), bytes_max: BLOCK_BYTES, permits: vec![permit] })
    }

    /// Lets a full piece grow, if there is memory.
    pub(crate) fn try_grow(&self, piece: &mut Piece) -> bool {
        if piece.bytes_max == PIECE_BYTES {
            return false;
        }
        let Ok(permit) = self.pool.clone().try_acquire_many_owned(PIECE_BLOCKS - 1) else { return false };
        piece.permits.push(permit);
        piece.bytes_max = PIECE_BYTES;
        true
    }
}

impl Piece {
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() == self.bytes_max
    }

    pub(crate) fn room(&self) -> usize {
        self.bytes_max - self.bytes.len()
    }

    /// Adds what there is room for; a hint tells how much more will come.
    pub(crate) fn add(&mut self, bytes: &[u8], expected: u64) {
        if self.bytes.capacity() < self.bytes.len() + bytes.len() {
            // As much as will come, or twice what there is, but never more than this piece may take.
            let expected = expected.min(self.room() as u64) as usize;
            self.bytes.reserve_exact(expected.max(self.bytes.len()).max(bytes.len()).min(self.room()));
        }
        self.bytes.extend_from_slice(bytes);
    }
}
