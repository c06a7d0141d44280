//! Contents in a directory: append-only files of chunks (docs/contents.md, docs/decisions/0017-contents.md).
//!
//! A store has a few lanes; each fills one extent after the other (`lane.rs`). Short contents go into a lane of their own,
//! many with one write and one sync (`puts.rs`). Long ones are written chunk by chunk as they come (`writer.rs`), and
//! wait at the end for a sync that they share (`sync.rs`). A reference says where its chunk lies, so there is no index,
//! neither in memory nor on the disk: reading is one seek (`reader.rs`), and opening a store looks only at extents that were
//! being filled. Forgotten chunks are punched out of their extent (`reclaim.rs`).
//!
//! Leaves to others: that only one process has the store open. The tables' store, beside which it lies, holds that lock.

mod dead;
mod extents;
mod files;
mod format;
mod lane;
mod memory;
mod open;
mod puts;
mod reader;
mod reclaim;
mod sweep;
mod sync;
mod walk;
mod writer;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};

pub use self::extents::OPEN_FILE_COUNT_MAX;
pub use self::files::{ExtentFile, ExtentFiles, FileAccess};
pub use self::format::CHUNK_BYTES_MAX;
pub use self::memory::{PIECE_BYTES, POOL_BYTES, WRITER_COUNT_MAX};
pub use self::open::ContentsOpenError;
pub use self::reader::READ_BYTES;

use self::extents::{ExtentState, Extents};
use self::files::ExtentDirectory;
use self::lane::{ExtentLane, Placement};
use self::memory::Memory;
use self::puts::PutQueue;
use self::reader::LocalReader;
use self::reclaim::Job;
use self::sweep::LocalSweep;
use self::writer::LocalWriter;
use crate::guards::{Guards, Hold, Pin, SweepGuard};
use crate::{
    ContentError, ContentReader, ContentRef, ContentStore, ContentWriter, Gauges, Sweep, UnixMilliseconds,
};

/// The directory beside the tables.
pub const DIRECTORY: &str = "contents";
/// An extent is filled up to this length.
pub(crate) const EXTENT_BYTES: u64 = 512 * 1024 * 1024;
/// The shortest extents that an option may ask for.
pub(crate) const EXTENT_BYTES_MIN: u64 = 2 * 1024 * 1024;
/// Lanes for long contents.
pub const LANE_COUNT: usize = 4;
/// Short contents that are written with one sync.
pub(crate) const PUT_GROUP_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Threads that wait for writes and for reads. Syncs have one more each lane.
pub(crate) const WRITE_THREAD_COUNT_MAX: usize = 8;
pub(crate) const READ_THREAD_COUNT_MAX: usize = 32;

#[derive(Clone)]
pub struct ContentsOptions {
    /// The id of the store. Every extent carries it, and an extent of another store is refused.
    pub store: u64,
    /// Unpredictable numbers.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub now: UnixMilliseconds,
    pub extent_bytes: u64,
}

impl ContentsOptions {
    pub fn new(
        store: u64,
        random: Arc<dyn Fn() -> u64 + Send + Sync>,
        now: UnixMilliseconds,
    ) -> ContentsOptions {
        ContentsOptions { store, random, now, extent_bytes: EXTENT_BYTES }
    }
}

impl fmt::Debug for ContentsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentsOptions {{ store: {:016x}, extent_bytes: {} }}", self.store, self.extent_bytes)
    }
}

/// What all writers and readers of a store share.
pub(crate) struct LocalStore {
    options: ContentsOptions,
    extents: Arc<Extents>,
    guards: Arc<Guards>,
    /// Added to the number of a chunk it gives the chunk's nonce.
    nonce_base: u64,
    extent_bytes: u64,
    chunk_bytes_max: u64,
    put_group_bytes: usize,
    puts: PutQueue,
    put_lane: ExtentLane,
    lanes: Vec<ExtentLane>,
    next_lane: AtomicUsize,
    memory: Memory,
    writes: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    reclaim: mpsc::Sender<Job>,
    written: AtomicU64,
    read: AtomicU64,
}

impl LocalStore {
    /// Leaves the work to the background thread.
    fn reclaim(&self, job: Job) {
        // It lives as long as the store, unless it panicked; then the next sweep does its work.
        let _ = self.reclaim.send(job);
    }

    fn consider(&self, extent: &Arc<ExtentState>) {
        self.reclaim(Job::Consider(extent.clone()));
    }

    fn next_nonce(&self) -> u64 {
        self.nonce_base.wrapping_add(self.guards.next_number())
    }

    fn ask_sync(&self, placement: &Placement) -> u64 {
        placement.extent.group.ask(&placement.file, &self.extents.health)
    }

    /// Whether a sweep may forget the chunk with this nonce.
    fn covers(&self, guard: &SweepGuard, nonce: u64) -> bool {
        // A number that was not given away yet belongs to an earlier process.
        let number = nonce.wrapping_sub(self.nonce_base);
        #[cfg(feature = "seeded-bugs")]
        if crate::seeded::sweeps_pending() {
            return true;
        }
        guard.covers(number) || !self.guards.has_number(number)
    }

    async fn forget(&self, contents: &[ContentRef]) -> Result<(), ContentError> {
        let contents = self.guards.forget(contents);
        if contents.is_empty() {
            return Ok(());
        }
        let (reply, outcome) = oneshot::channel();
        self.reclaim(Job::Forget { contents, reply: Some(reply) });
        outcome.await.unwrap_or_else(|_| Err(ContentError::Io("the background thread has ended".to_owned())))
    }
}

/// The contents in a directory. Its futures need a Tokio runtime.
pub struct LocalContents {
    store: Arc<LocalStore>,
}

/// How much of an extent is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentUsage {
    pub number: u32,
    /// From its beginning to the end of its last chunk.
    pub size_bytes: u64,
    /// What it takes on the disk.
    pub allocated_bytes: u64,
    /// Chunks that are not forgotten, if they were counted.
    pub chunk_count: Option<u64>,
    pub is_active: bool,
}

impl LocalContents {
    /// Opens the store in this directory, or creates it. Waits for the disk.
    pub fn open(directory: &Path, options: ContentsOptions) -> Result<LocalContents, ContentsOpenError> {
        LocalContents::open_files(Arc::new(ExtentDirectory::open(directory)?), options)
    }

    /// For tests that simulate a disk.
    pub fn open_files(
        files: Arc<dyn ExtentFiles>,
        options: ContentsOptions,
    ) -> Result<LocalContents, ContentsOpenError> {
        let extent_bytes = options.extent_bytes.max(EXTENT_BYTES_MIN);
        let found = open::open(&files, &options, extent_bytes)?;
        let extents = Arc::new(Extents::new(files, found.extents, found.last_number));
        let reclaim = reclaim::start(extents.clone())?;
        let releasing = reclaim.clone();
        let guards = Guards::new(move |contents| drop(releasing.send(Job::Forget { contents, reply: None })));
        let mut resumed = found.active.into_iter().map(ExtentLane::resume);
        let put_lane = resumed.next().unwrap_or_default();
        let store = LocalStore {
            nonce_base: (options.random)(),
            options,
            extents,
            guards,
            extent_bytes,
            chunk_bytes_max: CHUNK_BYTES_MAX.min(extent_bytes / 2),
            put_group_bytes: PUT_GROUP_BYTES_MAX.min(extent_bytes / 4) as usize,
            puts: PutQueue::default(),
            put_lane,
            lanes: (0..LANE_COUNT).map(|_| resumed.next().unwrap_or_default()).collect(),
            next_lane: AtomicUsize::new(0),
            memory: Memory::new(),
            writes: Arc::new(Semaphore::new(WRITE_THREAD_COUNT_MAX)),
            reads: Arc::new(Semaphore::new(READ_THREAD_COUNT_MAX)),
            reclaim,
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
        };
        Ok(LocalContents { store: Arc::new(store) })
    }

    /// How full the extents are. An extent with few chunks takes little space, unless the file system cannot punch holes:
    /// then write its contents anew, and forget the old ones. Opens every file for a moment.
    pub async fn usage(&self) -> Result<Vec<ExtentUsage>, ContentError> {
        let store = self.store.clone();
        let usage = move |extent: Arc<ExtentState>| {
            let file = store.extents.file(extent.number)?;
            Ok(ExtentUsage {
                number: extent.number,
                size_bytes: extent.end(),
                allocated_bytes: file.allocated_bytes()?,
                chunk_count: extent.chunks(),
                is_active: extent.is_active(),
            })
        };
        let all = self.store.extents.all();
        let work = move || all.into_iter().map(usage).collect();
        tokio::task::spawn_blocking(work).await.map_err(|error| ContentError::Io(error.to_string()))?
    }
}

#[async_trait]
impl ContentStore for LocalContents {
    fn writer(&self, expected_bytes: Option<u64>) -> Box<dyn ContentWriter> {
        Box::new(LocalWriter::new(self.store.clone(), expected_bytes))
    }

    fn pin(&self) -> Pin {
        self.store.guards.pin()
    }

    fn open(&self, content: &ContentRef, range: Range<u64>, pin: Pin) -> Box<dyn ContentReader> {
        Box::new(LocalReader::new(self.store.clone(), *content, range, pin))
    }

    fn hold(&self, contents: &[ContentRef]) -> Hold {
        self.store.guards.hold(contents)
    }

    async fn forget(&self, contents: &[ContentRef]) -> Result<(), ContentError> {
        self.store.forget(contents).await
    }

    async fn sweep(&self) -> Result<Box<dyn Sweep>, ContentError> {
        Ok(Box::new(LocalSweep::new(self.store.clone())))
    }

    fn gauges(&self) -> Gauges {
        let (pin_count, deferred_count, left_to_sweep_count) = self.store.guards.counts();
        let extents = self.store.extents.all();
        Gauges {
            extent_count: extents.len() as u64,
            extent_bytes: extents.iter().map(|extent| extent.end()).sum(),
            open_file_count: self.store.extents.open_file_count() as u64,
            pin_count,
            deferred_count,
            left_to_sweep_count,
            written_bytes: self.store.written.load(Ordering::Relaxed),
            read_bytes: self.store.read.load(Ordering::Relaxed),
            sync_count: self.store.extents.health.sync_count.load(Ordering::Relaxed),
        }
    }

    async fn close(&self) {
        let store = self.store.clone();
        let _ = tokio::task::spawn_blocking(move || store.puts.wait_until_idle()).await;
        // Those of writers that were dropped.
        drop(self.store.writes.acquire_many(WRITE_THREAD_COUNT_MAX as u32).await);
        let (reply, done) = oneshot::channel();
        self.store.reclaim(Job::Flush(reply));
        let _ = done.await;
    }
}
