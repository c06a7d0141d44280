//! The state that readers, callers, the commit thread and the folding thread share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use engine::{EngineGauges, Health};
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::commit_log::Counters;
use crate::disk::is_full;
use crate::group::ChangedRows;
use crate::recent::Recent;
use crate::store::{META, META_FOLDED, ROWS, Reopening, begin_write};
use crate::view::{Base, Frozen, View};
use crate::waiting::SMALL_REQUEST_BYTES_MAX;

/// Statistics since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalStats {
    /// Groups made durable, each as one record of the log.
    pub group_count: u64,
    /// Requests in those groups, including those whose expectations failed.
    pub request_count: u64,
    /// Folds of recent rows into the tree.
    pub fold_count: u64,
    /// Rows of dropped tables that were removed from the tree.
    pub swept_row_count: u64,
    /// Bytes of requests that wait or are under way.
    pub queued_bytes: u64,
    /// Bytes of recent rows that are not yet folded.
    pub recent_bytes: u64,
    pub poisoned: bool,
}

pub(crate) struct SharedState {
    /// The current view stays open between commits: opening a transaction and a table costs more than reading a row.
    view: RwLock<Arc<View>>,
    /// Held while recent rows are added and published, and while they are frozen, so that no row is added to a frozen
    /// set.
    adding: Mutex<()>,
    poisoned: AtomicBool,
    /// The last write found no space.
    is_full: AtomicBool,
    queued_bytes: AtomicUsize,
    queued_count: AtomicUsize,
    group_count: AtomicU64,
    request_count: AtomicU64,
    sync_nanos: AtomicU64,
    fold_count: AtomicU64,
    fold_nanos: AtomicU64,
    is_folding: AtomicBool,
    swept_row_count: AtomicU64,
    /// When a reader last asked for the file to be reopened: milliseconds plus one, or 0 for never.
    reopen_asked_at_ms: AtomicU64,
    held: RwLock<TreeFile>,
    folding: Mutex<FoldStatus>,
    /// Signals a new fold request.
    asked: Condvar,
    /// Signals a change of the fold status.
    done: Condvar,
}

/// What the folding thread is asked to do, and how it is doing.
#[derive(Default, Debug)]
pub(crate) struct FoldStatus {
    pub(crate) asked: FoldRequest,
    /// How often the file was reopened.
    pub(crate) reopen_count: u64,
    /// The last fold failed and will be tried again.
    pub(crate) is_stuck: bool,
    /// The speed of the last fold; 0 before the first.
    pub(crate) bytes_per_second: u64,
    pub(crate) has_ended: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct FoldRequest {
    pub(crate) reopen: bool,
    /// Fold everything in memory soon.
    pub(crate) fold: bool,
    /// Look whether there is enough to fold, or whether the log wants a spare segment.
    pub(crate) look: bool,
    pub(crate) end: bool,
}

/// Readers ask for a reopening at most this often: a damaged block that is read again and again must not keep the
/// file closed for everybody else.
const REOPEN_INTERVAL_MS: u64 = 500;

/// The open file of the tree.
enum TreeFile {
    Writable(Database),
    /// The file does not open for writing at the moment. What redb writes here stays in memory and is lost.
    ReadOnly(Database),
    Nothing,
}

impl SharedState {
    pub(crate) fn new(
        database: Database,
        recent: Recent,
        sequence: u64,
        counters: Counters,
    ) -> Result<SharedState, redb::Error> {
        let base = Arc::new(database.begin_read()?.open_table(ROWS)?);
        let view = View { sequence, active: Arc::new(recent), frozen: None, base, counters };
        Ok(SharedState {
            view: RwLock::new(Arc::new(view)),
            adding: Mutex::new(()),
            poisoned: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            queued_bytes: AtomicUsize::new(0),
            queued_count: AtomicUsize::new(0),
            group_count: AtomicU64::new(0),
            request_count: AtomicU64::new(0),
            sync_nanos: AtomicU64::new(0),
            fold_count: AtomicU64::new(0),
            fold_nanos: AtomicU64::new(0),
            is_folding: AtomicBool::new(false),
            swept_row_count: AtomicU64::new(0),
            reopen_asked_at_ms: AtomicU64::new(0),
            held: RwLock::new(TreeFile::Writable(database)),
            folding: Mutex::default(),
            asked: Condvar::new(),
            done: Condvar::new(),
        })
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.view.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    fn replace_view(&self, view: View) {
        let view = Arc::new(view);
        let mut current = self.view.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let old = std::mem::replace(&mut *current, view);
        drop(current);
        // The last holder of a view ends its transaction, which takes a lock of redb's. Do that outside our own lock.
        drop(old);
    }

    fn lock_adding(&self) -> MutexGuard<'_, ()> {
        self.adding.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Shows readers the rows that a durable record wrote.
    pub(crate) fn publish(&self, sequence: u64, written: ChangedRows, counters: Counters) {
        let _adding = self.lock_adding();
        let view = self.view();
        for (key, row) in written {
            view.active.add(sequence, key.into_boxed_slice(), row);
        }
        self.replace_view(View { sequence, counters, ..(*view).clone() });
    }

    /// Freezes the recent rows, so that they can be folded. Returns those that are frozen already, if any; `None` if
    /// there are no recent rows.
    pub(crate) fn freeze(&self) -> Option<Arc<Frozen>> {
        let _adding = self.lock_adding();
        let view = self.view();
        if view.frozen.is_some() || view.active.is_empty() {
            return view.frozen.clone();
        }
        let frozen =
            Arc::new(Frozen { recent: view.active.clone(), until: view.sequence, counters: view.counters });
        let active = Arc::new(Recent::default());
        self.replace_view(View { active, frozen: Some(frozen.clone()), ..(*view).clone() });
        Some(frozen)
    }

    /// Adds the rows that were written since to those that are frozen, unless that makes more than this many bytes. A
    /// fold that found no space then has less to do, if rows or tables were deleted in the meantime.
    pub(crate) fn merge_into_frozen(&self, bytes_max: usize) {
        let _adding = self.lock_adding();
        let view = self.view();
        let Some(frozen) = view.frozen.as_ref().filter(|_| !view.active.is_empty()) else { return };
        let merged = Recent::default();
        for recent in [&*view.active, &*frozen.recent] {
            for (entry, row) in recent.iter() {
                // The first change of a key is the newest.
                if !merged.holds(entry.key()) {
                    merged.add(view.sequence, entry.key().clone(), row);
                }
            }
        }
        if merged.size_bytes() > bytes_max.max(frozen.recent.size_bytes()) {
            return;
        }
        let (until, counters) = (view.sequence, view.counters);
        let frozen = Some(Arc::new(Frozen { recent: Arc::new(merged), until, counters }));
        self.replace_view(View { active: Arc::new(Recent::default()), frozen, ..(*view).clone() });
    }

    /// Shows readers the tree as it is now. `is_folded`: the frozen rows are in it. If the tree does not open,
    /// readers keep their view, which is just as right: the older tree, and everything written since.
    pub(crate) fn publish_base(&self, is_folded: bool) -> Result<(), redb::Error> {
        let base = Arc::new(self.open_base()?);
        let _adding = self.lock_adding();
        let view = self.view();
        let frozen = view.frozen.clone().filter(|_| !is_folded);
        self.replace_view(View { base, frozen, ..(*view).clone() });
        Ok(())
    }

    fn open_base(&self) -> Result<Base, redb::Error> {
        Ok(self.begin_read()?.open_table(ROWS)?)
    }

    /// A read transaction over all of the tree, not only the rows.
    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, redb::Error> {
        match &*self.held.read().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            TreeFile::Writable(database) | TreeFile::ReadOnly(database) => Ok(database.begin_read()?),
            TreeFile::Nothing => Err(redb::Error::DatabaseClosed),
        }
    }

    /// The last record that is durably folded.
    pub(crate) fn folded(&self) -> Result<u64, redb::Error> {
        let meta = self.begin_read()?.open_table(META)?;
        Ok(meta.get(META_FOLDED)?.map_or(0, |sequence| sequence.value()))
    }

    /// `None`: the file is not open for writing.
    pub(crate) fn begin_write(&self) -> Option<Result<WriteTransaction, redb::Error>> {
        match &*self.held.read().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            TreeFile::Writable(database) => Some(begin_write(database)),
            TreeFile::ReadOnly(_) | TreeFile::Nothing => None,
        }
    }

    /// Whether a reader that met an error may ask for the file to be reopened. Never after a failed write: what the
    /// file shows then may not be durable.
    pub(crate) fn may_reopen_for_readers(&self, now: Duration) -> bool {
        if self.is_poisoned() {
            return false;
        }
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let last = self.reopen_asked_at_ms.load(Ordering::Acquire);
        let is_due = last == 0 || now.saturating_sub(last) >= REOPEN_INTERVAL_MS;
        is_due
            && self
                .reopen_asked_at_ms
                .compare_exchange(last, now, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// Closes the tree's file and opens it again, for reading at least; returns whether it is open for writing.
    /// Readers that are under way find their view closed.
    pub(crate) fn reopen(&self, reopening: &Reopening) -> bool {
        let mut held = self.held.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        *held = TreeFile::Nothing;
        *held = match (reopening.writable)() {
            Ok(database) => TreeFile::Writable(database),
            Err(error) => {
                log::warn!("the store does not open for writing: {error}");
                match (reopening.read_only)() {
                    Ok(database) => TreeFile::ReadOnly(database),
                    Err(error) => {
                        log::error!("the store does not open for reading either: {error}");
                        TreeFile::Nothing
                    }
                }
            }
        };
        let is_writable = matches!(*held, TreeFile::Writable(_));
        drop(held);
        self.publish_base(false).is_ok() && is_writable
    }

    pub(crate) fn folding(&self) -> MutexGuard<'_, FoldStatus> {
        self.folding.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn ask(&self, ask: impl FnOnce(&mut FoldRequest)) {
        ask(&mut self.folding().asked);
        self.asked.notify_all();
    }

    /// Waits at most this long for a request, and takes it.
    pub(crate) fn wait_until_asked(&self, time_max: Duration) -> FoldRequest {
        let is_idle = |folding: &mut FoldStatus| folding.asked == FoldRequest::default();
        let waited = self.asked.wait_timeout_while(self.folding(), time_max, is_idle);
        let mut folding = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(folding, _)| folding);
        // A request to end stays in place.
        let asked = folding.asked;
        folding.asked = FoldRequest { end: asked.end, ..FoldRequest::default() };
        asked
    }

    /// Changes the status, and wakes the threads that wait for it.
    pub(crate) fn tell_folding(&self, change: impl FnOnce(&mut FoldStatus)) {
        change(&mut self.folding());
        self.done.notify_all();
    }

    pub(crate) fn is_folding_stuck(&self) -> bool {
        self.folding().is_stuck
    }

    /// Waits at most this long for a change of the fold status.
    pub(crate) fn wait_for_folding(&self, time_max: Duration) {
        drop(self.done.wait_timeout(self.folding(), time_max));
    }

    /// Waits at most this long while the condition holds.
    pub(crate) fn wait_while_folding(&self, time_max: Duration, condition: impl Fn(&FoldStatus) -> bool) {
        drop(self.done.wait_timeout_while(self.folding(), time_max, |folding| condition(folding)));
    }

    /// Logs once that there is no space.
    pub(crate) fn note_full(&self, cause: &std::io::Error) {
        if !self.is_full.swap(true, Ordering::AcqRel) {
            let why = match is_full(cause) {
                true => "the disk is full, a quota is used up, or the file system is read-only",
                false => "no file can be created",
            };
            log::error!(
                "the store cannot be written: {why} ({cause}). Writes are refused (503) until there is space; no restart is \
                 needed. Reads continue, and no acknowledged write is lost. Free space on the disk, or delete rows or \
                 tables: deletions are still accepted."
            );
        }
    }

    /// Logs once that there is space again.
    pub(crate) fn note_space(&self) {
        if self.is_full.load(Ordering::Acquire) && self.is_full.swap(false, Ordering::AcqRel) {
            log::warn!("the store can be written again");
        }
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Poisons the engine because its directory is not the one that others find.
    pub(crate) fn refuse_writes(&self, cause: &str) {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            log::error!(
                "{cause}. Writes are refused, because whoever looks at that path does not see them. Every write that was \
                 acknowledged is in the directory that this server opened, and reads continue from it. Stop the server, \
                 put the right directory in place, and start it again."
            );
        }
    }

    pub(crate) fn poison(&self, cause: &str) {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            log::error!(
                "writing to the store failed: {cause}. Writes are refused until the server is restarted. Check the disk \
                 (space, health, kernel log), then restart. Every acknowledged write is kept; a write that was under way \
                 has either happened or not."
            );
        }
    }

    /// Reserves room in the queue. A request above the bound passes when it is alone, so that it is possible at all.
    /// An eighth of the room is kept for small requests, so that large ones do not shut them out while they wait.
    pub(crate) fn try_reserve(&self, size_bytes: usize, size_bytes_max: usize) -> bool {
        let room = size_bytes_max / 8;
        let small_bytes_max = SMALL_REQUEST_BYTES_MAX.min(room / 8);
        let bytes_max = if size_bytes <= small_bytes_max { size_bytes_max } else { size_bytes_max - room };
        let reserve = |queued: usize| {
            let sum = queued.checked_add(size_bytes)?;
            (queued == 0 || sum <= bytes_max).then_some(sum)
        };
        let is_reserved =
            self.queued_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, reserve).is_ok();
        self.queued_count.fetch_add(usize::from(is_reserved), Ordering::Relaxed);
        is_reserved
    }

    /// Gives back the room of so many requests.
    pub(crate) fn release(&self, request_count: usize, size_bytes: usize) {
        self.queued_bytes.fetch_sub(size_bytes, Ordering::AcqRel);
        self.queued_count.fetch_sub(request_count, Ordering::Relaxed);
    }

    /// `took`: to write and sync the group's record.
    pub(crate) fn count_group(&self, request_count: usize, took: Duration) {
        self.group_count.fetch_add(1, Ordering::Relaxed);
        self.request_count.fetch_add(request_count as u64, Ordering::Relaxed);
        self.sync_nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_folding(&self, is_folding: bool) {
        self.is_folding.store(is_folding, Ordering::Relaxed);
    }

    pub(crate) fn add_fold_time(&self, took: Duration) {
        self.fold_nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_fold(&self) {
        self.fold_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_swept(&self, row_count: u64) {
        self.swept_row_count.fetch_add(row_count, Ordering::Relaxed);
    }

    /// Everything but the sizes of files.
    pub(crate) fn gauges(&self) -> EngineGauges {
        let view = self.view();
        let seconds = |nanos: &AtomicU64| nanos.load(Ordering::Relaxed) as f64 / 1e9;
        EngineGauges {
            health: match (self.is_poisoned(), self.is_full.load(Ordering::Relaxed)) {
                (true, _) => Health::Poisoned,
                (_, true) => Health::Full,
                _ => Health::Ready,
            },
            group_count: self.group_count.load(Ordering::Relaxed),
            commit_count: self.request_count.load(Ordering::Relaxed),
            sync_seconds: seconds(&self.sync_nanos),
            queue_count: self.queued_count.load(Ordering::Relaxed) as u64,
            queue_bytes: self.queued_bytes.load(Ordering::Relaxed) as u64,
            recent_count: view.recent_count() as u64,
            recent_bytes: view.recent_bytes() as u64,
            fold_count: self.fold_count.load(Ordering::Relaxed),
            fold_seconds: seconds(&self.fold_nanos),
            is_folding: self.is_folding.load(Ordering::Relaxed),
            log_bytes: 0,
            tree_bytes: 0,
        }
    }

    pub(crate) fn stats(&self) -> LocalStats {
        let recent_bytes = self.view().recent_bytes();
        LocalStats {
            group_count: self.group_count.load(Ordering::Relaxed),
            request_count: self.request_count.load(Ordering::Relaxed),
            fold_count: self.fold_count.load(Ordering::Relaxed),
            swept_row_count: self.swept_row_count.load(Ordering::Relaxed),
            queued_bytes: self.queued_bytes.load(Ordering::Relaxed) as u64,
            recent_bytes: recent_bytes as u64,
            poisoned: self.is_poisoned(),
        }
    }
}
