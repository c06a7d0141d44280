//! Folding: writes recent rows into the tree (`fold_rows.rs`); after that the log no longer needs their records. It
//! runs on a thread of its own, or on the commit thread between two groups.
//!
//! Promises: the last transaction also stores the last record that it contains, so after a crash no record is missed,
//! and applying one twice changes nothing. A segment of the log is kept for one more fold than necessary. A full disk or
//! a damaged page stops folding, but commits continue until memory is full. This is the only place that writes to the
//! tree, so it also reopens the file and sweeps dropped tables.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::catch_panic::catch_panic;
use crate::commit_log::Segments;
use crate::disk::is_full;
use crate::fold_rows::{FoldRows, TransactionSize};
use crate::shared::{FoldRequest, SharedState};
use crate::store::Reopening;
use crate::sweep::{Swept, sweep_slice};
use crate::tree_error::is_damage;
use crate::view::Frozen;
use engine::env::Clock;

/// After this long without a commit, fold everything in memory.
const IDLE_TIME: Duration = Duration::from_secs(1);
/// The pause after a failed fold. It doubles up to the maximum, because every attempt closes the tree's file and
/// disturbs its readers.
const RETRY_TIME: Duration = Duration::from_millis(250);
const RETRY_TIME_MAX: Duration = Duration::from_secs(5);
/// How often to look whether the store's path still leads to it, and whether there is space for a reserve.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(1);
/// Slices to sweep before looking for rows to fold.
const SLICES_PER_TURN_MAX: u32 = 4;

pub(crate) struct Folder {
    pub(crate) shared: Arc<SharedState>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reopening: Reopening,
    pub(crate) recent_bytes_max: usize,
    /// There is no thread that makes the files of the log.
    pub(crate) makes_spares: bool,
    pub(crate) transaction_size: TransactionSize,
    pub(crate) sweep_pending: bool,
    /// The last record in the tree.
    pub(crate) folded: u64,
    pub(crate) seen_sequence: u64,
    pub(crate) is_stuck: bool,
    pub(crate) retry_time: Duration,
    pub(crate) housekeeping_at: Option<Duration>,
    /// Folded rows that a reader may still hold. Freeing them takes milliseconds, so they are freed here and not by
    /// the reader that happens to be the last.
    pub(crate) retired: Vec<Arc<Frozen>>,
}

/// Why a fold failed.
enum FoldFailure {
    /// The file is not open for writing.
    Closed,
    Tree(redb::Error),
}

impl FoldFailure {
    /// redb panics on pages that it does not understand. Its transaction is then as if it had never begun.
    fn panicked() -> FoldFailure {
        FoldFailure::Tree(redb::Error::Corrupted("a panic while it was written".to_owned()))
    }
}

impl<E: Into<redb::Error>> From<E> for FoldFailure {
    fn from(error: E) -> FoldFailure {
        FoldFailure::Tree(error.into())
    }
}

impl Folder {
    /// Returns when it is asked to end, after folding everything if that is possible.
    pub(crate) fn run(mut self) {
        loop {
            let asked = self.shared.wait_until_asked(self.pause());
            if catch_unwind(AssertUnwindSafe(|| self.turn(asked))).is_err() {
                self.shared.poison("the folding thread panicked");
            }
            if asked.end {
                break;
            }
        }
        self.shared.tell_folding(|folding| folding.has_ended = true);
    }

    fn pause(&self) -> Duration {
        match () {
            () if self.is_stuck => self.retry_time,
            () if self.sweep_pending && !self.shared.is_poisoned() => Duration::ZERO,
            () => IDLE_TIME,
        }
    }

    /// For folding on the commit thread: does what was asked, if anything.
    pub(crate) fn turn_if_asked(&mut self) {
        let asked = self.shared.wait_until_asked(Duration::ZERO);
        if asked != FoldRequest::default() {
            self.turn(asked);
        }
    }

    /// Does what was asked, and what is due anyway.
    pub(crate) fn turn(&mut self, asked: FoldRequest) {
        self.retired.retain(|frozen| Arc::strong_count(frozen) > 1 || Arc::strong_count(&frozen.recent) > 1);
        if asked.reopen {
            self.reopen_after_damage();
        }
        self.keep_house();
        if self.shared.is_poisoned() {
            return;
        }
        if self.makes_spares
            && self.segments.wants_spare()
            && !self.is_stuck
            && let Err(error) = self.segments.make_spare()
        {
            // The commit thread tries again when it needs the file, and then reports a failure.
            log::warn!("the file for the next segment of the commit log cannot be made: {error}");
        }
        let view = self.shared.view();
        // The pauses between the slices of a sweep are too short to mean that the store is idle.
        let has_waited = asked == FoldRequest::default() && !self.sweep_pending && !self.is_stuck;
        let is_idle = has_waited && view.sequence == self.seen_sequence;
        self.seen_sequence = view.sequence;
        if self.is_stuck {
            // What was deleted since need not be folded at all.
            self.shared.merge_into_frozen(2 * self.recent_bytes_max);
        }
        let is_due = is_idle || asked.fold || asked.end || view.active.size_bytes() >= self.recent_bytes_max;
        // Rows of an earlier fold that failed go first.
        if (is_due || view.frozen.is_some())
            && let Some(frozen) = self.shared.freeze()
        {
            self.fold(&frozen);
        }
        if asked.end
            && !self.is_stuck
            && let Some(frozen) = self.shared.freeze()
        {
            self.fold(&frozen);
        }
        // The rest is swept after the next opening.
        let is_stuck_folding = self.is_stuck && self.shared.view().frozen.is_some();
        if self.sweep_pending && !asked.end && !is_stuck_folding {
            self.sweep();
        }
    }

    /// Refuses all writes from now on if the store's path leads elsewhere: the next server would not find them. Makes
    /// the reserve for a full disk, when nothing else needs the space.
    fn keep_house(&mut self) {
        let now = self.clock.monotonic();
        let is_due = |last: Duration| now.saturating_sub(last) >= HOUSEKEEPING_INTERVAL;
        if !self.housekeeping_at.is_none_or(is_due) {
            return;
        }
        self.housekeeping_at = Some(now);
        if let Err(cause) = self.segments.check_place() {
            self.shared.refuse_writes(&cause);
        } else if !self.is_stuck {
            self.make_reserve();
        }
    }

    fn make_reserve(&self) {
        // A regular end needs no reserve, and a store that is opened for a moment need not make one.
        if !self.shared.folding().asked.end
            && let Err(error) = self.segments.make_reserve()
        {
            log::debug!("the reserve for a full disk cannot be made: {error}");
        }
    }

    fn reopen_after_damage(&self) {
        if !self.shared.is_poisoned() {
            log::error!(
                "damage was found: reopening the store's file. Run 'lazulite check' to see what is damaged."
            );
            self.reopen();
            self.has_lost_sync("reopening the store's file");
        }
        // Count it even if nothing was done: a thread waits for it.
        self.shared.tell_folding(|folding| folding.reopen_count += 1);
    }

    fn fold(&mut self, frozen: &Arc<Frozen>) {
        if !self.is_stuck {
            self.make_reserve();
        }
        let (started, size_bytes) = (self.clock.monotonic(), frozen.recent.size_bytes());
        self.shared.note_folding(true);
        let written = catch_unwind(AssertUnwindSafe(|| self.write(frozen)));
        self.shared.note_folding(false);
        self.shared.add_fold_time(self.clock.monotonic().saturating_sub(started));
        match written {
            Ok(Ok(dropped_any)) => {
                self.sweep_pending |= dropped_any;
                self.folded_until(frozen);
                let took = self.clock.monotonic().saturating_sub(started).as_secs_f64().max(0.001);
                let rate = (size_bytes as f64 / took) as u64;
                self.shared.tell_folding(|folding| folding.bytes_per_second = rate.max(1));
            }
            Ok(Err(failure)) => {
                self.failed("folding commits into the tree", failure);
                // The transaction may have been committed all the same; the reopened file tells.
                if !self.shared.is_poisoned() && self.shared.folded().is_ok_and(|until| until == frozen.until)
                {
                    self.sweep_pending = true;
                    self.folded_until(frozen);
                }
            }
            Err(_) => self.failed("folding commits into the tree", FoldFailure::panicked()),
        }
    }

    /// Writes the rows; returns whether a table was dropped.
    fn write(&mut self, frozen: &Frozen) -> Result<bool, FoldFailure> {
        let mut rows = FoldRows::new(frozen);
        loop {
            let transaction = match self.shared.begin_write() {
                Some(begun) => begun?,
                None if self.reopen() => self.shared.begin_write().ok_or(FoldFailure::Closed)??,
                None => return Err(FoldFailure::Closed),
            };
            let written_bytes = || self.reopening.written_bytes.load(Ordering::Relaxed);
            let (before, row_count_max) = (written_bytes(), self.transaction_size.row_count_max());
            let is_full = |row_count| row_count >= row_count_max || written_bytes() != before;
            let (row_count, is_done) = rows.write(transaction, is_full)?;
            self.transaction_size.learn(row_count, written_bytes() - before);
            if is_done {
                return Ok(rows.drops_any());
            }
            // Readers let go of the tree's older pages, so the next transaction can use them.
            self.shared.publish_base(false)?;
        }
    }

    fn folded_until(&mut self, frozen: &Arc<Frozen>) {
        if let Err(error) = self.shared.publish_base(true) {
            // Readers keep using the rows in memory until the tree can be opened.
            self.failed("opening the tree with what was folded", error.into());
            return;
        }
        self.works_again();
        self.shared.count_fold();
        self.retired.push(frozen.clone());
        let before = std::mem::replace(&mut self.folded, frozen.until);
        if let Err(error) = self.segments.forget_until(before) {
            log::warn!("an old segment of the commit log cannot be removed: {error}");
        }
        self.shared.tell_folding(|_| {});
    }

    fn sweep(&mut self) {
        for _ in 0..SLICES_PER_TURN_MAX {
            let Some(transaction) = self.shared.begin_write() else {
                if self.reopen() {
                    continue;
                }
                return self.failed("sweeping a dropped table", FoldFailure::Closed);
            };
            let swept = catch_unwind(AssertUnwindSafe(|| sweep_slice(transaction?)));
            match swept {
                Ok(Ok(Swept { row_count, more })) => {
                    self.sweep_pending = more;
                    self.works_again();
                    self.shared.count_swept(row_count);
                    if !more {
                        return;
                    }
                    if let Err(error) = self.shared.publish_base(false) {
                        return self.failed("opening the tree after a sweep", error.into());
                    }
                }
                Ok(Err(error)) => return self.failed("sweeping a dropped table", FoldFailure::Tree(error)),
                Err(_) => return self.failed("sweeping a dropped table", FoldFailure::panicked()),
            }
        }
    }

    /// Decides what a failure means: try again later, or poison the engine.
    fn failed(&mut self, what: &str, failure: FoldFailure) {
        match failure {
            FoldFailure::Closed => {}
            FoldFailure::Tree(error) if self.may_reopen(&error) => {
                match &error {
                    redb::Error::Io(cause) if is_full(cause) => {
                        self.shared.note_full(cause);
                        // The next attempt may have it: folding is what makes room in the log.
                        self.segments.release_spares();
                    }
                    error if !self.is_stuck => log::error!("{what}: {error}"),
                    _ => {}
                }
                self.reopen();
            }
            FoldFailure::Tree(error) => return self.shared.poison(&format!("{what}: {error}")),
        }
        // Opening the file syncs it, and that may have failed too. Then no later attempt can succeed.
        if self.has_lost_sync(what) {
            return;
        }
        self.retry_time = if self.is_stuck { (2 * self.retry_time).min(RETRY_TIME_MAX) } else { RETRY_TIME };
        self.is_stuck = true;
        self.shared.tell_folding(|folding| folding.is_stuck = true);
    }

    /// Poisons the engine if a sync of the tree's file ever failed.
    fn has_lost_sync(&self, what: &str) -> bool {
        let has_failed = self.reopening.sync_failure.has_happened();
        if has_failed {
            self.shared.poison(&format!("{what}: a sync of the tree's file failed"));
        }
        has_failed
    }

    fn works_again(&mut self) {
        if std::mem::take(&mut self.is_stuck) {
            self.shared.tell_folding(|folding| folding.is_stuck = false);
        }
        self.shared.note_space();
    }

    /// Whether the failure leaves the file as it was, so that reopening it shows the last transaction.
    fn may_reopen(&self, error: &redb::Error) -> bool {
        let is_harmless = match error {
            redb::Error::Io(cause) => is_full(cause) || is_damage(cause),
            redb::Error::PreviousIo | redb::Error::DatabaseClosed | redb::Error::Corrupted(_) => true,
            _ => false,
        };
        is_harmless && !self.reopening.sync_failure.has_happened()
    }

    /// Reopens the file; returns whether it is open for writing.
    fn reopen(&self) -> bool {
        catch_panic(|| self.shared.reopen(&self.reopening)).unwrap_or(false)
    }
}
