//! Contents: immutable bytes, written as a stream, read by range, and forgotten.
//!
//! A [`ContentStore`] promises: what [`ContentWriter::finish`] returned survives a power cut; a read returns the bytes that
//! were written, or an error, never other bytes; a range read touches only what it needs; memory is bounded by named
//! constants, however large a content is and however many are read. Writers and readers of one store do not wait for
//! each other, except for the disk and for those bounds.
//!
//! The caller keeps the references ([`ContentRef`]) in rows of its own, and commits a row only after `finish`. So a crash
//! leaves bytes without a row, never a row without bytes. A [`Sweep`] finds such bytes. Three guards keep bytes from being
//! forgotten too early: a [`Pin`] for those who read, a [`PendingContent`] for those who are about to commit a row, and a
//! [`Hold`] for those who are about to commit a row with a reference that another row has.
//!
//! Leaves to others: what the bytes mean, who may read them, which references are in use, and the time.

mod error;
mod guards;
pub mod local;
mod memory;
#[cfg(feature = "objects")]
pub mod object;
mod reading;
mod reference;
#[cfg(feature = "seeded-bugs")]
mod seeded;

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

pub use error::ContentError;
pub use guards::{Hold, PendingContent, Pin};
pub use local::{ContentsOptions, LocalContents};
pub use memory::MemoryContents;
#[cfg(feature = "objects")]
pub use object::{ObjectContents, ObjectOptions, ObjectPlace};
pub use reading::{ContentStream, verify};
pub use reference::{CONTENT_REF_BYTES, ContentId, ContentRef};

/// How many contents a [`Sweep`] returns at a time.
pub(crate) const SWEEP_BATCH_COUNT_MAX: usize = 1_000;

/// Tells the time in milliseconds since 1970. Contents carry it, so that a sweep knows their age.
pub type UnixMilliseconds = std::sync::Arc<dyn Fn() -> u64 + Send + Sync>;

#[async_trait]
pub trait ContentStore: Send + Sync + 'static {
    /// Begins a new content. `expected_bytes` is a hint about its length; any other length is fine too.
    fn writer(&self, expected_bytes: Option<u64>) -> Box<dyn ContentWriter>;

    /// Keeps everything that is not forgotten yet readable until the pin is dropped. Take it before reading the row that
    /// has the references: then nothing that the row names can be forgotten in between.
    fn pin(&self) -> Pin;

    /// Reads a range of one content; the part of the range behind its end is left out. [`ContentStream`] reads a list.
    fn open(&self, content: &ContentRef, range: Range<u64>, pin: Pin) -> Box<dyn ContentReader>;

    /// Keeps sweeps from forgetting these contents: those that run, and those that begin before the hold is dropped. For a
    /// second row with the same references: hold them, then read again that the first row still has them, then commit, then
    /// drop the hold.
    fn hold(&self, contents: &[ContentRef]) -> Hold;

    /// Forgets contents, at once or when the last pin from before this call is dropped. What is forgotten already, or was
    /// never here, is no error. After a crash a forgotten content may be back, until the next sweep.
    async fn forget(&self, contents: &[ContentRef]) -> Result<(), ContentError>;

    /// Begins to enumerate what is stored.
    async fn sweep(&self) -> Result<Box<dyn Sweep>, ContentError>;

    fn gauges(&self) -> Gauges;

    /// Returns when everything that happens in the background is done. Nothing breaks without it when the process ends; but
    /// before a store is opened a second time in one process, close it and drop all of it.
    async fn close(&self);
}

/// A content that is being written. Dropping it abandons the content and gives its space back.
#[async_trait]
pub trait ContentWriter: Send {
    /// Adds bytes. Waits when the disk is slower than the caller. After an error the writer is of no further use.
    async fn push(&mut self, bytes: Bytes) -> Result<(), ContentError>;

    /// Makes the content durable. Its bytes are those of the returned contents, one after the other; a content of no bytes
    /// has none.
    async fn finish(self: Box<Self>) -> Result<Written, ContentError>;
}

#[async_trait]
pub trait ContentReader: Send {
    /// The next piece of the range; `None` at its end. After an error there is nothing more.
    async fn next(&mut self) -> Option<Result<Bytes, ContentError>>;
}

/// Contents that are durable, and not yet in a row.
#[derive(Debug)]
pub struct Written {
    pub contents: Vec<ContentRef>,
    /// Keep it until the commit of the row has an outcome, and no cancelled request can drop it before that. If the commit
    /// cannot tell its outcome, drop it when the commit can no longer happen.
    pub pending: PendingContent,
}

/// Enumerates what was stored and not pending when the sweep began. To find what no row names: begin the sweep, then take
/// a consistent view of all rows, then forget what is enumerated here and not named there.
#[async_trait]
pub trait Sweep: Send {
    /// The next contents, a thousand at most; none at the end.
    async fn next(&mut self) -> Result<Vec<StoredContent>, ContentError>;

    /// Forgets these contents, except those that were held at any time since the sweep began. Returns how many it left.
    async fn forget(&mut self, contents: &[ContentRef]) -> Result<usize, ContentError>;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredContent {
    pub content: ContentRef,
    pub written_unix_ms: u64,
    /// `false` for the beginning of a content whose writer died. No row can name it.
    pub is_complete: bool,
}

/// What a store is doing.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Gauges {
    /// Files, or places of another kind.
    pub extent_count: u64,
    /// The length of all files. Holes count; see [`local::LocalContents::usage`].
    pub extent_bytes: u64,
    pub open_file_count: u64,
    pub pin_count: u64,
    /// Contents that are forgotten when pins are dropped.
    pub deferred_count: u64,
    /// Contents that were left to the next sweep, because too many were deferred.
    pub left_to_sweep_count: u64,
    /// Bytes of content that were made durable, and that were read.
    pub written_bytes: u64,
    pub read_bytes: u64,
    pub sync_count: u64,
}
