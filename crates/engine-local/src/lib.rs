//! The embedded engine on disk: a commit log, the rows of recent commits in memory, and redb's tree below them.
//!
//! Promises: everything the contract asks for. An acknowledged write survives a crash and a power cut. Every row that
//! is given out is checked against its checksum. [`LocalOptions`] bounds the memory.
//!
//! | file | what it knows |
//! |---|---|
//! | `store.rs` | the directory: how a store is found, created, opened |
//! | `marker.rs`, `store_id.rs` | which store it is |
//! | `commit_log/` | the commit log |
//! | `commit_thread.rs` | the commit thread |
//! | `group.rs` | what a group of requests does |
//! | `recent.rs` | the rows that are not yet in the tree |
//! | `fold.rs`, `fold_rows.rs` | how those rows get into the tree |
//! | `view.rs` | what a reader sees |
//! | `row_bytes.rs` | a row's bytes in the tree |
//! | `checksum_file.rs` | the checksums below the tree |
//! | `paced_sync.rs` | how the tree's file is synced in small steps |
//! | `spare_thread.rs` | who makes the next file of the log |
//! | `sweep.rs` | how the space of a dropped table comes back |
//! | `snapshot.rs` | a view that a backup holds |
//! | `check.rs` | whether a store is sound |

mod bloom_filter;
mod catch_panic;
mod check;
mod checksum_cache;
mod checksum_file;
mod commit_log;
mod commit_thread;
mod contained_scan;
mod directory;
mod directory_files;
mod disk;
mod fold;
mod fold_rows;
mod group;
mod marker;
mod paced_sync;
mod recent;
/// Public for the fuzzer alone.
#[doc(hidden)]
pub mod row_bytes;
#[cfg(feature = "seeded-bugs")]
mod seeded;
mod shared;
mod snapshot;
mod spare_thread;
mod store;
mod store_id;
mod sweep;
mod tree_error;
mod upgrade;
mod view;
mod waiting;
mod waiting_blocks;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;

use async_trait::async_trait;
use bytes::Bytes;
use redb::backends::FileBackend;
use redb::{StorageBackend, StorageError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

pub use crate::directory::DirectoryLock;
pub use crate::directory_files::{Access, AnyFile, DirectoryFiles, StoreFiles};
use engine::env::Clock;
use engine::keys::{self, Key, KeyRange, OwnedKey};
use engine::lane::Lane;
use engine::pace::Pace;
use engine::{
    Budget, Commit, CommitError, Engine, EngineGauges, Expect, Families, Health, Load, Namespace, ReadError,
    Row, Sink, Snapshot, TableId, TablePath, TableRows, Version,
};

use crate::catch_panic::catch_panic;
use crate::commit_log::Segments;
use crate::commit_thread::{CommitThread, FoldRunner};
use crate::contained_scan::contained_scan;
use crate::fold::Folder;
use crate::fold_rows::TransactionSize;
use crate::group::{Applied, KnownTables, WriteRequest};
use crate::shared::SharedState;
use crate::snapshot::LocalSnapshot;
use crate::store::{Store, TABLES, TreeTuning};
use crate::store_id::StorePlace;
use crate::tree_error::TreeError;
use crate::view::View;
use crate::waiting::{QueuedRequest, WaitingRequests};

pub use crate::check::{CheckReport, FamilyCounts, check_directory};
#[doc(hidden)]
pub use crate::commit_log::record::fuzzed as log_record;
pub use crate::marker::MARKER;
pub use crate::shared::LocalStats;
#[doc(hidden)]
pub use crate::store::open_file;
pub use crate::store::{OpenError, is_store, is_store_file};

#[derive(Clone)]
pub struct LocalOptions {
    pub families: Families,
    pub clock: Arc<dyn Clock>,
    /// How many commits may wait. Further ones are answered with `Busy`.
    pub commit_queue_max: usize,
    /// How many bytes of commits may wait or be under way. Further ones are answered with `Busy`.
    pub commit_queue_bytes_max: usize,
    /// Bytes of the tree's pages in memory. Memory grows with use, not at the start.
    pub cache_bytes_max: usize,
    /// Bytes of recent rows in memory before they are folded into the tree. New rows gather while a fold runs. If
    /// folding cannot keep up, memory may reach four times this bound.
    pub recent_bytes_max: usize,
    /// Bytes of the tree's file that are written and not synced. A commit that comes meanwhile waits for them, so this
    /// decides how long it waits. With less, folding takes longer.
    pub unsynced_bytes_max: u64,
    /// About how many bytes of pages a transaction of a fold changes. They are in memory until they are written.
    pub transaction_bytes_max: u64,
    /// Folds on the commit thread between two groups, not on a thread of its own: for deterministic runs.
    pub folds_between_groups: bool,
}

impl LocalOptions {
    pub fn new(families: Families, clock: Arc<dyn Clock>) -> LocalOptions {
        LocalOptions {
            families,
            clock,
            commit_queue_max: 6000,
            commit_queue_bytes_max: 16 * 1024 * 1024,
            cache_bytes_max: 112 * 1024 * 1024,
            recent_bytes_max: 40 * 1024 * 1024,
            unsynced_bytes_max: 128 * 1024,
            transaction_bytes_max: 8 * 1024 * 1024,
            folds_between_groups: false,
        }
    }
}

/// From this difference on, a store whose versions are ahead of the clock is reported.
const AHEAD_TICKS_MIN: u64 = 10 * 60 * TICKS_PER_SECOND;
const TICKS_PER_SECOND: u64 = 10_000_000;

/// A sentence about versions that are far ahead of the clock; `None` if they are not.
pub fn ahead_of_clock(last_version_ticks: u64, clock: &dyn Clock) -> Option<String> {
    let ahead = last_version_ticks.saturating_sub(clock.now_ticks());
    let (hours, minutes) = (ahead / TICKS_PER_SECOND / 3600, ahead / TICKS_PER_SECOND / 60 % 60);
    (ahead >= AHEAD_TICKS_MIN).then(|| {
        format!(
            "Timestamps are ahead of the clock by {} days, {} hours and {minutes} minutes, because the clock was ahead once: \
             until it catches up, every change gets the next 100 ns after the last one",
            hours / 24,
            hours % 24
        )
    })
}

pub struct LocalEngine {
    /// `None` once closed.
    requests: RwLock<Option<mpsc::Sender<QueuedRequest>>>,
    done: watch::Receiver<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    families: Families,
    clock: Arc<dyn Clock>,
    slow_lane: Lane,
    commit_queue_bytes_max: usize,
    shared: Arc<SharedState>,
    place: StorePlace,
    segments: Arc<Segments>,
    /// Dropped after `shared`, which holds the open file.
    _lock: DirectoryLock,
}

impl LocalEngine {
    /// Opens the store in this directory, or creates one if the directory is empty or missing.
    pub fn open(directory: &Path, options: LocalOptions) -> Result<LocalEngine, OpenError> {
        LocalEngine::open_on(directory, options, Arc::new(DirectoryFiles::new(directory)))
    }

    /// Like [`LocalEngine::open`], with a layer between the store and its files: tests use it to make the disk fail.
    #[doc(hidden)]
    pub fn open_wrapped<B: StorageBackend>(
        directory: &Path,
        options: LocalOptions,
        wrap: impl Fn(FileBackend) -> B + Send + Sync + 'static,
    ) -> Result<LocalEngine, OpenError> {
        LocalEngine::open_on(directory, options, Arc::new(DirectoryFiles::wrapped(directory, wrap)))
    }

    /// Like [`LocalEngine::open`], but with these files in place of the directory's.
    #[doc(hidden)]
    pub fn open_on(
        directory: &Path,
        options: LocalOptions,
        files: Arc<dyn StoreFiles>,
    ) -> Result<LocalEngine, OpenError> {
        #[cfg(feature = "seeded-bugs")]
        let files = seeded::files(files);
        let tuning = TreeTuning {
            cache_bytes_max: options.cache_bytes_max,
            unsynced_bytes_max: options.unsynced_bytes_max,
        };
        let store = store::open(directory, tuning, &files)?;
        let Store { place, database, recent, counters, folded, replayed, sweep_pending, reopening, lock } =
            store;
        #[cfg(feature = "seeded-bugs")]
        let counters = seeded::counters(counters);
        if let Some(ahead) = ahead_of_clock(counters.last_version, &*options.clock) {
            log::warn!("{}: {ahead}", directory.display());
        }
        let damaged = |error: redb::Error| OpenError::Damaged {
            path: directory.to_owned(),
            cause: format!("{TABLES}: {error}"),
        };
        let shared = catch_panic(|| SharedState::new(database, recent, replayed.last, counters))
            .unwrap_or_else(|_| Err(redb::Error::Corrupted("its structure is broken".to_owned())));
        let shared = Arc::new(shared.map_err(damaged)?);
        let (sender, requests) = mpsc::channel(options.commit_queue_max.max(1));
        let (done, done_receiver) = watch::channel(false);
        let folder = Folder {
            shared: shared.clone(),
            segments: replayed.segments.clone(),
            clock: options.clock.clone(),
            reopening,
            recent_bytes_max: options.recent_bytes_max,
            makes_spares: options.folds_between_groups,
            transaction_size: TransactionSize::new(options.transaction_bytes_max),
            sweep_pending,
            folded,
            seen_sequence: 0,
            is_stuck: false,
            retry_time: Default::default(),
            housekeeping_at: None,
            retired: Vec::new(),
        };
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
            spawned.map_err(|source| OpenError::Io { path: directory.to_owned(), source })
        };
        let segments = replayed.segments;
        // Without a commit thread nobody else would end the others.
        let end_others = || {
            shared.ask(|asked| asked.end = true);
            segments.end_wishes();
        };
        let (folding, spare_thread) = if options.folds_between_groups {
            (FoldRunner::CommitThread(Box::new(folder)), None)
        } else {
            let fold_thread = spawn("lazulite-fold", Box::new(move || folder.run()))?;
            let (shared, segments) = (shared.clone(), segments.clone());
            let make_spares = move || spare_thread::run(&shared, &segments);
            let spare_thread =
                spawn("lazulite-spare", Box::new(make_spares)).inspect_err(|_| end_others())?;
            (FoldRunner::OwnThread(fold_thread), Some(spare_thread))
        };
        let commit_thread = CommitThread {
            shared: shared.clone(),
            requests,
            families: options.families,
            clock: options.clock.clone(),
            counters,
            known_tables: KnownTables::default(),
            log: replayed.log,
            record: Default::default(),
            recent_bytes_max: options.recent_bytes_max,
            folding,
            segments: segments.clone(),
            spare_thread,
            waiting: WaitingRequests::default(),
            unfolded_log_bytes: 0,
            last_group_count: 0,
            done,
        };
        let thread =
            spawn("lazulite-commit", Box::new(move || commit_thread.run())).inspect_err(|_| end_others())?;
        Ok(LocalEngine {
            requests: RwLock::new(Some(sender)),
            done: done_receiver,
            thread: Mutex::new(Some(thread)),
            families: options.families,
            clock: options.clock,
            slow_lane: Lane::with_half_of_the_processors(),
            commit_queue_bytes_max: options.commit_queue_bytes_max,
            shared,
            place,
            segments,
            _lock: lock,
        })
    }

    /// The id that every file of the store carries.
    pub fn store_id(&self) -> String {
        self.place.id.to_string()
    }

    pub fn stats(&self) -> LocalStats {
        self.shared.stats()
    }

    /// Gives up some of the space that is kept for a full disk, so that a small file can be written beside the store.
    /// Returns whether there was any.
    pub fn release_some_space(&self) -> bool {
        self.segments.release_some().unwrap_or(false)
    }

    /// Reads a small file that others keep in the store's directory. Like the store's own files, it is that of the open
    /// directory, wherever the path leads by now.
    pub fn read_beside(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.place.files.read(name, bytes_max)
    }

    /// Replaces such a file, durably: a reader finds the old content or the new one. Only its owner can read it.
    pub fn replace_beside(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        directory_files::replace(&*self.place.files, name, &format!(".{name}.tmp"), bytes)
    }

    pub fn remove_beside(&self, name: &str) -> io::Result<()> {
        self.place.files.remove(name)
    }

    /// Queues the request and waits until it is durable.
    async fn submit(&self, request: WriteRequest) -> Result<Applied, CommitError> {
        let answer = self.enqueue(request)?;
        let lost = |_| Err(CommitError::Unknown("the commit thread ended before it answered".to_owned()));
        answer.await.unwrap_or_else(lost)
    }

    fn enqueue(
        &self,
        request: WriteRequest,
    ) -> Result<oneshot::Receiver<Result<Applied, CommitError>>, CommitError> {
        if self.shared.is_poisoned() {
            return Err(CommitError::Poisoned);
        }
        let requests = self.requests.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(requests) = &*requests else {
            return Err(CommitError::Storage("the engine is closed".to_owned()));
        };
        let size_bytes = request.size_bytes();
        if !self.shared.try_reserve(size_bytes, self.commit_queue_bytes_max) {
            return Err(CommitError::Busy);
        }
        let (answer, receiver) = oneshot::channel();
        match requests.try_send(QueuedRequest { request, size_bytes, answer }) {
            Ok(()) => Ok(receiver),
            Err(error) => {
                self.shared.release(1, size_bytes);
                Err(match error {
                    TrySendError::Full(_) => CommitError::Busy,
                    TrySendError::Closed(_) => CommitError::Poisoned,
                })
            }
        }
    }

    /// Reads from the latest view.
    fn read<T>(&self, read: impl Fn(&View) -> Result<T, TreeError>) -> Result<T, TreeError> {
        // Blocks are checked before redb sees them, so it should never panic. If it does, the others must not suffer.
        let attempt = || {
            let read = AssertUnwindSafe(|| read(&self.shared.view()));
            catch_unwind(read).unwrap_or_else(|_| Err(TreeError::panicked()))
        };
        match attempt() {
            // The file was reopened in the meantime, so the latest view is a different one.
            Err(TreeError::Storage(StorageError::DatabaseClosed)) => attempt(),
            outcome => outcome,
        }
    }

    fn find(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        let key = keys::encode(table, key);
        self.read(|view| view.get(&key)).map_err(|error| self.read_error(error, table))
    }

    /// Turns the error into what the caller is told. If redb has closed the file because of it, asks for the file to
    /// be reopened.
    fn read_error(&self, error: TreeError, table: TableId) -> ReadError {
        if error.closes_the_file() && self.shared.may_reopen_for_readers(self.clock.monotonic()) {
            self.shared.ask(|asked| asked.reopen = true);
        }
        error.into_read_error(table)
    }

    /// Takes no more requests. The commit thread ends after the last one.
    fn stop_accepting(&self) {
        *self.requests.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    }
}

#[async_trait]
impl Engine for LocalEngine {
    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        self.find(table, key)
    }

    fn get_now(&self, table: TableId, key: Key<'_>) -> Option<Result<Option<Row>, ReadError>> {
        Some(self.find(table, key))
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let pace = Pace::new(&*self.clock, budget, Some(&self.slow_lane));
        let view = self.shared.view();
        let scanned = contained_scan(&view, table, ranges, pace, sink).await;
        scanned.map_err(|error| self.read_error(error, table))
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        Ok(self.submit(WriteRequest::Commit(commit)).await?.version)
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        Ok(self.submit(WriteRequest::CommitAll(commits)).await?.version)
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let key = namespace.encode(name)?;
        self.submit(WriteRequest::CreateTable { family: namespace.family, key, payload })
            .await
            .map(|applied| applied.table)
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        let key = namespace.encode(name)?;
        self.submit(WriteRequest::DropTable { key }).await.map(|applied| applied.table)
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let (from, to) = TablePath::encode_renaming(from, to)?;
        self.submit(WriteRequest::RenameTable { from, to, payload }).await.map(|applied| applied.table)
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        let key = path.namespace.encode(path.name)?;
        self.submit(WriteRequest::ReplaceTable { key, expect, payload, rows })
            .await
            .map(|applied| applied.table)
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        Ok(Arc::new(LocalSnapshot { view: self.shared.view(), clock: self.clock.clone() }))
    }

    async fn load(&self, load: Load) -> Result<(), CommitError> {
        self.submit(WriteRequest::Load(load)).await.map(|_| ())
    }

    async fn close(&self) {
        self.stop_accepting();
        // An error means that the thread has ended, which is what we wait for.
        let _ = self.done.clone().wait_for(|done| *done).await;
    }

    fn gauges(&self) -> EngineGauges {
        let is_closed = self.requests.read().unwrap_or_else(|poisoned| poisoned.into_inner()).is_none();
        let gauges = self.shared.gauges();
        EngineGauges {
            health: if is_closed { Health::Closed } else { gauges.health },
            log_bytes: self.segments.size_bytes(),
            tree_bytes: self.place.files.size_bytes(TABLES).unwrap_or(0),
            ..gauges
        }
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        self.stop_accepting();
        let thread = self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            log::error!("the commit thread panicked");
        }
    }
}
