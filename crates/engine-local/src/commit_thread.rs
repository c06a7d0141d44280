//! The commit pipeline: one thread that takes every waiting request, makes the group durable with one log record and
//! one sync, shows it to readers and answers. While one group syncs, the next one forms in the queue.
//!
//! Promises: a caller hears of success only after the sync. Readers see only durable changes, and see them before the
//! caller hears. Every caller gets an answer, whatever fails. A group that finds no space on the disk is refused, except
//! for what only removes rows or tables, and writing resumes when there is space. After any other failed write the content of the disk is unknown, so the
//! engine is poisoned: reads continue from the last durable view, and writes are refused until the store is reopened.
//! Memory for recent rows is bounded: near the bound, commits slow down to the speed of folding, and large requests wait
//! while small ones go on (`waiting`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::commit_log::{AppendError, CommitLog, Counters, RecordBuilder, Segments, SpaceUse};
use crate::fold::Folder;
use crate::group::{Group, KnownTables};
use crate::shared::{FoldRequest, SharedState};
use crate::waiting::{QueuedRequest, RequestOutcome, TakenGroup, WaitingRequests};
use engine::env::Clock;
use engine::{CommitError, Families};

/// Writes are busy while groups have this many requests. With fewer callers, each would only wait longer.
const BUSY_GROUP_COUNT_MIN: usize = 8;
/// How long to wait for more requests while writes are busy. The system wakes the thread some 50 µs later.
const GATHER_TIME: Duration = Duration::from_micros(50);
/// Fold after this many bytes of log, even if they concern few rows: a row that is rewritten all the time takes
/// little memory but much log.
const UNFOLDED_LOG_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The assumed speed of folding, until the first fold is measured.
const FOLD_BYTES_PER_SECOND: u64 = 20_000_000;
/// A group is delayed by at most this long to let folding keep up.
const SLOWDOWN_MAX: Duration = Duration::from_millis(50);
/// Large requests pause for at most this long after one of them. Small ones do not wait for that.
const LARGE_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long to sleep while only large requests wait, before looking for small ones.
const LARGE_PAUSE_STEP: Duration = Duration::from_millis(1);
/// A group waits at most this long for memory to become free; then it is refused.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(10);
const ROOM_WAIT_STEP: Duration = Duration::from_millis(50);
/// A group waits at most this long for the tree's file to be reopened.
const REOPEN_WAIT_MAX: Duration = Duration::from_secs(5);

pub(crate) struct CommitThread {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) requests: mpsc::Receiver<QueuedRequest>,
    pub(crate) families: Families,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: Counters,
    pub(crate) known_tables: KnownTables,
    pub(crate) log: CommitLog,
    pub(crate) record: RecordBuilder,
    pub(crate) recent_bytes_max: usize,
    pub(crate) folding: FoldRunner,
    pub(crate) segments: Arc<Segments>,
    /// `None` if this thread folds: then it makes the files of the log too.
    pub(crate) spare_thread: Option<JoinHandle<()>>,
    /// Requests taken from the channel that are not in a group yet.
    pub(crate) waiting: WaitingRequests,
    /// Bytes appended to the log since it last asked for a fold.
    pub(crate) unfolded_log_bytes: usize,
    /// Requests in the last group.
    pub(crate) last_group_count: usize,
    /// Tells the closing engine that this thread is done; dropping it tells the same.
    pub(crate) done: watch::Sender<bool>,
}

/// Which thread folds.
pub(crate) enum FoldRunner {
    OwnThread(JoinHandle<()>),
    /// This thread, between two groups: the same commits then make the same files, whatever the time.
    CommitThread(Box<Folder>),
}

impl CommitThread {
    /// Returns when every sender is gone, the queue is empty and everything is folded.
    pub(crate) fn run(mut self) {
        while let Some(taken) = self.next_group() {
            self.run_group(taken);
        }
        let end = FoldRequest { end: true, ..FoldRequest::default() };
        match self.folding {
            FoldRunner::CommitThread(mut folder) => folder.turn(end),
            FoldRunner::OwnThread(thread) => {
                self.shared.ask(|asked| *asked = end);
                if thread.join().is_err() {
                    log::error!("the folding thread panicked");
                }
            }
        }
        self.segments.end_wishes();
        if self.spare_thread.is_some_and(|thread| thread.join().is_err()) {
            log::error!("the thread that makes the files of the commit log panicked");
        }
        // Files in waiting are of no use to a store that is closed, and the next opening would have to remove them.
        self.segments.release_spares();
        // Nobody is listening when the engine was dropped without being closed.
        let _ = self.done.send(true);
    }

    /// `None`: the engine is closed, and no request is left.
    fn next_group(&mut self) -> Option<TakenGroup> {
        loop {
            if self.waiting.is_empty() {
                let first = match self.requests.try_recv() {
                    Ok(queued) => queued,
                    Err(_) => {
                        if self.folds_apart() {
                            self.log.seal();
                        }
                        self.requests.blocking_recv()?
                    }
                };
                self.waiting.push(first);
            }
            if self.is_gathering() {
                std::thread::sleep(GATHER_TIME);
            }
            while let Ok(queued) = self.requests.try_recv() {
                self.waiting.push(queued);
            }
            let takes_large = self.may_take_large();
            let taken = self.waiting.take_group(takes_large);
            if !taken.requests.is_empty() {
                self.last_group_count = taken.requests.len();
                return Some(taken);
            }
            std::thread::sleep(LARGE_PAUSE_STEP);
            self.waiting.has_slept(LARGE_PAUSE_STEP);
        }
    }

    /// Whether large requests may join the next group. While they pause, or wait for room, small ones go on.
    fn may_take_large(&mut self) -> bool {
        if !self.waiting.has_large() || !self.folds_apart() || self.shared.is_poisoned() {
            return true;
        }
        let (recent_bytes, now) = (self.recent_bytes(), self.clock.monotonic());
        // A fold that has just begun took the rows for which the large ones pause.
        if recent_bytes < self.recent_bytes_max {
            return true;
        }
        if !self.waiting.pause_rest(now).is_zero() {
            return false;
        }
        let has_room = recent_bytes < self.recent_bytes_max + self.large_excess_bytes_max();
        if has_room || self.shared.is_folding_stuck() || !self.waiting.waits_for_room(now) {
            return true;
        }
        self.let_fold(false);
        false
    }

    /// Whether folding has a thread of its own. If not, the same commits must make the same groups, whatever the time.
    fn folds_apart(&self) -> bool {
        matches!(self.folding, FoldRunner::OwnThread(_))
    }

    /// Whether to wait a little for more requests. On a fast disk a group is synced before the callers of the one before
    /// have sent their next requests, and a sync costs as much for few requests as for many.
    fn is_gathering(&self) -> bool {
        let is_busy = self.last_group_count >= BUSY_GROUP_COUNT_MIN;
        is_busy && self.requests.len() < self.last_group_count / 2 && self.folds_apart()
    }

    fn run_group(&mut self, taken: TakenGroup) {
        if let FoldRunner::CommitThread(folder) = &mut self.folding {
            folder.turn_if_asked();
        }
        let results = self.results(&taken);
        let TakenGroup { requests, small_bytes, large_bytes } = taken;
        debug_assert_eq!(requests.len(), results.len());
        // Release the bytes before answering, so that a caller finds room for its next commit.
        self.shared.release(requests.len(), small_bytes + large_bytes);
        for (queued, result) in requests.into_iter().zip(results) {
            // The caller may have gone away.
            let _ = queued.answer.send(result);
        }
    }

    fn results(&mut self, taken: &TakenGroup) -> Vec<RequestOutcome> {
        let requests = &taken.requests[..];
        let request_count = requests.len();
        let everyone = |error: CommitError| (0..request_count).map(|_| Err(error.clone())).collect();
        if self.shared.is_poisoned() {
            return everyone(CommitError::Poisoned);
        }
        let space_use = match self.make_room(taken) {
            true => SpaceUse::Any,
            // Deletions take little memory, and they may be what makes room. They have a bound of their own.
            false if self.recent_bytes() < 2 * self.recent_bytes_max + self.recent_bytes_max / 4 => {
                SpaceUse::Frees
            }
            false => return everyone(CommitError::Busy),
        };
        match catch_unwind(AssertUnwindSafe(|| self.commit_group(requests, space_use))) {
            Ok(Some(results)) => results,
            // There is no space for the whole group.
            Ok(None) => match catch_unwind(AssertUnwindSafe(|| self.commit_group(requests, SpaceUse::Frees)))
            {
                Ok(results) => results.unwrap_or_else(|| everyone(CommitError::Busy)),
                Err(_) => {
                    self.shared.poison("the commit thread panicked");
                    everyone(CommitError::Unknown("the commit thread panicked".to_owned()))
                }
            },
            Err(_) => {
                self.shared.poison("the commit thread panicked");
                everyone(CommitError::Unknown("the commit thread panicked".to_owned()))
            }
        }
    }

    /// Makes the changes of these requests durable; with [`SpaceUse::Frees`], of those that free space alone, and the
    /// others are refused. `None`: there is no space, and nothing has changed.
    fn commit_group(
        &mut self,
        requests: &[QueuedRequest],
        space_use: SpaceUse,
    ) -> Option<Vec<RequestOutcome>> {
        self.record.clear();
        let mut group = Group {
            view: self.shared.view(),
            families: &self.families,
            clock: &*self.clock,
            counters: self.counters,
            known_tables: &mut self.known_tables,
            record: &mut self.record,
            written: Default::default(),
            dropped_any: false,
            met_closed_file: Default::default(),
        };
        let mut results = Vec::with_capacity(requests.len());
        for queued in requests {
            if space_use == SpaceUse::Frees && !queued.request.frees_space() {
                results.push(Err(CommitError::Busy));
                continue;
            }
            let mut result = group.apply(&queued.request);
            if group.met_closed_file.take() {
                reopen(&self.shared, &mut self.folding, &mut group);
                // A request that touches the damage itself fails again, alone.
                result = group.apply(&queued.request);
                if group.met_closed_file.take() {
                    reopen(&self.shared, &mut self.folding, &mut group);
                }
            }
            results.push(result);
        }
        let Group { counters, written, dropped_any, .. } = group;
        // Keep the counters even if nothing was written: a version is never handed out twice.
        self.counters = counters;
        if self.record.is_empty() {
            return Some(results);
        }
        let started = self.clock.monotonic();
        let (sequence, record_bytes) = match self.log.append(&mut self.record, counters, space_use) {
            Ok(appended) => appended,
            Err(AppendError::NoRoom(error)) => {
                self.known_tables.clear();
                self.shared.note_full(&error);
                return None;
            }
            Err(AppendError::Displaced(cause)) => {
                self.shared.refuse_writes(&cause);
                return Some(requests.iter().map(|_| Err(CommitError::Poisoned)).collect());
            }
            Err(AppendError::Lost(error)) => {
                self.shared.poison(&error.to_string());
                // A request that failed may have seen what another one of the group wrote, so its finding must not be
                // told. It certainly changed nothing.
                let unsure = |result: RequestOutcome| match result {
                    Ok(_) => Err(CommitError::Unknown(error.to_string())),
                    Err(_) => Err(CommitError::Poisoned),
                };
                return Some(results.into_iter().map(unsure).collect());
            }
        };
        self.unfolded_log_bytes += record_bytes;
        let took = self.clock.monotonic().saturating_sub(started);
        self.shared.count_group(requests.len(), took);
        self.shared.publish(sequence, written, counters);
        if space_use == SpaceUse::Any && !self.shared.is_folding_stuck() {
            self.shared.note_space();
        }
        if let FoldRunner::CommitThread(_) = self.folding {
            // Seal here and not when idle: when the thread is idle depends on the time.
            self.log.seal();
        }
        self.let_fold(dropped_any || space_use == SpaceUse::Frees);
        Some(results)
    }

    /// Folds if it is due, or asks the folding thread to.
    fn let_fold(&mut self, dropped_any: bool) {
        let is_long = self.unfolded_log_bytes >= UNFOLDED_LOG_BYTES_MAX;
        let must_fold = dropped_any || is_long;
        let makes_spare = self.spare_thread.is_none() && self.log.wants_spare();
        let is_due = must_fold || makes_spare || self.recent_bytes() >= self.recent_bytes_max;
        if !is_due {
            return;
        }
        if is_long {
            self.unfolded_log_bytes = 0;
        }
        let asked = FoldRequest { fold: must_fold, look: true, ..FoldRequest::default() };
        match &mut self.folding {
            FoldRunner::CommitThread(folder) => folder.turn(asked),
            FoldRunner::OwnThread(_) => self.shared.ask(|now| {
                now.look = true;
                now.fold |= must_fold;
            }),
        }
    }

    /// Bytes of the recent rows that no fold has taken yet.
    fn recent_bytes(&self) -> usize {
        self.shared.view().active.size_bytes()
    }

    /// Waits until recent rows may grow by this group; `false` if that takes too long. Between the bound and twice the
    /// bound the delay grows, faster and faster, so commits settle at the speed of folding instead of stopping. What
    /// large requests cost delays large requests only.
    fn make_room(&mut self, taken: &TakenGroup) -> bool {
        let bytes_max = self.recent_bytes_max;
        let mut waited = Duration::ZERO;
        loop {
            let recent_bytes = self.recent_bytes();
            if recent_bytes < bytes_max {
                return true;
            }
            self.let_fold(false);
            if recent_bytes < 2 * bytes_max {
                let excess_bytes = recent_bytes - bytes_max;
                let mut delayed_bytes = taken.small_bytes + taken.large_bytes;
                if taken.large_bytes > 0 && self.folds_apart() {
                    let pause = self.slowdown(taken.large_bytes, excess_bytes, self.large_excess_bytes_max());
                    self.waiting.pause_large(self.clock.monotonic(), pause.min(LARGE_PAUSE_MAX));
                    delayed_bytes = taken.small_bytes;
                }
                std::thread::sleep(self.slowdown(delayed_bytes, excess_bytes, bytes_max).min(SLOWDOWN_MAX));
                return true;
            }
            if self.shared.is_folding_stuck() || self.shared.is_poisoned() || waited >= ROOM_WAIT_MAX {
                return false;
            }
            self.shared.wait_for_folding(ROOM_WAIT_STEP);
            waited += ROOM_WAIT_STEP;
        }
    }

    /// By how much recent rows may pass their bound because of large requests. The last quarter is for small ones.
    fn large_excess_bytes_max(&self) -> usize {
        self.recent_bytes_max / 4 * 3
    }

    /// How long to wait for folding to keep up with this many bytes.
    fn slowdown(&self, size_bytes: usize, excess_bytes: usize, excess_bytes_max: usize) -> Duration {
        let bytes_per_second = match self.shared.folding().bytes_per_second {
            0 => FOLD_BYTES_PER_SECOND,
            rate => rate,
        };
        // Half way between the two bounds, commits are as fast as the last fold. If this one is slower, they settle nearer to
        // the upper bound.
        let free_bytes = excess_bytes_max.saturating_sub(excess_bytes).max(1);
        let share = excess_bytes as f64 / free_bytes as f64;
        let seconds = size_bytes as f64 / bytes_per_second as f64 * share;
        Duration::from_secs_f64(seconds.min(LARGE_PAUSE_MAX.as_secs_f64()))
    }
}

/// Has the tree's file reopened, and gives the group a view of it.
fn reopen(shared: &SharedState, folding: &mut FoldRunner, group: &mut Group<'_>) {
    match folding {
        FoldRunner::CommitThread(folder) => {
            folder.turn(FoldRequest { reopen: true, ..FoldRequest::default() })
        }
        FoldRunner::OwnThread(_) => {
            let count = shared.folding().reopen_count;
            shared.ask(|asked| asked.reopen = true);
            shared.wait_while_folding(REOPEN_WAIT_MAX, |folding| {
                folding.reopen_count == count && !folding.has_ended
            });
        }
    }
    group.view = shared.view();
}
