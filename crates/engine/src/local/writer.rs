//! The commit pipeline: one thread that takes everything that waits, makes it durable with one sync, publishes
//! it and answers all. While one group syncs, the next one forms in the queue.
//!
//! Promises: a caller hears of success only after the sync; readers see only what is durable, and see it before
//! its caller hears; no caller is left without an answer, whatever fails. A commit that finds no space is refused, and
//! writes go on when there is some. After any other failed commit nobody knows what the disk holds, so the engine is
//! poisoned: reads go on from the last durable view, writes are refused until the store is reopened.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

use super::disk::is_out_of_space;
use super::group::{Applied, Group, Numbers, Work};
use super::guard::guarded;
use super::shared::Shared;
use super::store::Reopening;
use super::sweep::{Swept, sweep_slice};
use super::trouble::is_damage;
use crate::env::Clock;
use crate::seeded::{self, Bug};
use crate::{Commit, CommitError, Effect, Expect, MergeFn};

/// More would make the first callers of a group wait for the last.
const GROUP_JOB_COUNT_MAX: usize = 512;
/// What of the large ones goes into one group: with more, everybody would wait for them.
const GROUP_LARGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// A batch of a hundred ordinary entities is large, a single entity mostly not.
const SMALL_JOB_BYTES_MAX: usize = 16 * 1024;
/// Under load, how many groups go by before one slice of a dropped table is swept.
const SWEEP_GROUP_INTERVAL: u32 = 8;
/// Between the halves of a commit, where that bug is planted.
const SEEDED_PAUSE: Duration = Duration::from_millis(2);

/// One thing to do, and who waits for it.
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) size_bytes: usize,
    pub(super) answer: oneshot::Sender<Result<u64, CommitError>>,
}

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) merge: MergeFn,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) numbers: Numbers,
    pub(super) sweep_pending: bool,
    pub(super) groups_since_sweep: u32,
    /// A sweep found no space: the next one waits until a group has found some.
    pub(super) sweep_later: bool,
    /// Where it is `None`, any failure is for good.
    pub(super) reopening: Option<Reopening>,
    pub(super) is_out_of_space: bool,
    /// A group is tried once more after a reader has met damage, not for ever.
    pub(super) is_retrying: bool,
    /// Taken from the channel and not yet in a group.
    pub(super) waiting: Waiting,
    /// Tells whoever closes the engine that this thread is done; dropping it tells them too.
    pub(super) done: watch::Sender<bool>,
}

/// How a group failed as a whole.
enum Failure {
    /// The file is not open for writing, because there is no space.
    Closed,
    /// No transaction begins: redb has locked itself after an earlier error.
    Refused(redb::Error),
    /// Rolled back before anything was made durable.
    Before(redb::Error),
    /// While it was made durable; with what each job would have heard.
    During(redb::Error, Vec<Result<u64, CommitError>>),
}

/// Jobs in the order they came, small ones apart from large ones: a small write goes with the next group, however many
/// large ones wait. Callers wait for their answers, so nobody sees the order of two that waited together.
#[derive(Default)]
pub(super) struct Waiting {
    small: VecDeque<Job>,
    large: VecDeque<Job>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    fn push(&mut self, job: Job) {
        let line = if job.size_bytes <= SMALL_JOB_BYTES_MAX { &mut self.small } else { &mut self.large };
        line.push_back(job);
    }

    /// At least one, if any waits.
    fn take_group(&mut self) -> Vec<Job> {
        let small_count = self.small.len().min(GROUP_JOB_COUNT_MAX);
        let mut jobs: Vec<Job> = self.small.drain(..small_count).collect();
        let mut bytes: usize = 0;
        while let Some(job) = self.large.front() {
            if bytes > 0 && bytes + job.size_bytes > GROUP_LARGE_BYTES_MAX {
                break;
            }
            bytes += job.size_bytes;
            jobs.extend(self.large.pop_front());
        }
        jobs
    }
}

/// What to do next.
enum Next {
    Group(Vec<Job>),
    Sweep,
    End,
}

impl Writer {
    /// Returns when every sender is gone and the queue is empty.
    pub(super) fn run(mut self) {
        loop {
            match self.next() {
                Next::Group(jobs) => self.run_group(jobs),
                Next::Sweep => self.run_sweep(),
                Next::End => break,
            }
        }
        // Nobody is listening when the engine was dropped without being closed.
        let _ = self.done.send(true);
    }

    fn next(&mut self) -> Next {
        let sweep = self.sweep_pending && !self.shared.is_poisoned();
        if sweep && self.groups_since_sweep >= SWEEP_GROUP_INTERVAL {
            return Next::Sweep;
        }
        if self.waiting.is_empty() {
            let first = if sweep {
                match self.jobs.try_recv() {
                    Ok(job) => job,
                    Err(TryRecvError::Empty) => return Next::Sweep,
                    // What is not swept yet is swept after the next opening.
                    Err(TryRecvError::Disconnected) => return Next::End,
                }
            } else {
                match self.jobs.blocking_recv() {
                    Some(job) => job,
                    None => return Next::End,
                }
            };
            self.waiting.push(first);
        }
        while let Ok(job) = self.jobs.try_recv() {
            self.waiting.push(job);
        }
        Next::Group(self.waiting.take_group())
    }

    fn run_group(&mut self, mut jobs: Vec<Job>) {
        if seeded::is(Bug::SplitBatch) {
            self.run_first_halves(&mut jobs);
        }
        self.groups_since_sweep = self.groups_since_sweep.saturating_add(1);
        if jobs.iter().any(|job| matches!(job.work, Work::Reopen)) && !self.shared.is_poisoned() {
            log::error!(
                "a reader met damage: the store's file is opened anew. 'lazulite check' says what is damaged."
            );
            self.reopen();
        }
        let size_bytes = jobs.iter().map(|job| job.size_bytes).sum();
        let results = self.results(&mut jobs);
        debug_assert_eq!(jobs.len(), results.len());
        // First, so that a caller who hears back finds room for its next commit.
        self.shared.release(size_bytes);
        for (job, result) in jobs.into_iter().zip(results) {
            // A caller that went away does not mind.
            let _ = job.answer.send(result);
        }
    }

    fn results(&mut self, jobs: &mut [Job]) -> Vec<Result<u64, CommitError>> {
        let job_count = jobs.len();
        let everyone = |error: CommitError| (0..job_count).map(|_| Err(error.clone())).collect();
        if self.shared.is_poisoned() {
            return everyone(CommitError::Poisoned);
        }
        match catch_unwind(AssertUnwindSafe(|| self.commit_group(jobs))) {
            Ok(Ok(results)) => results,
            Ok(Err(Failure::Closed)) => everyone(CommitError::Busy),
            Ok(Err(Failure::During(error, results))) if self.may_reopen(&error) => {
                // The file tells whether the group is in it: every change takes a version.
                match self.reopen_full() {
                    Some(last_version) if last_version == self.numbers.last_version => results,
                    _ => everyone(CommitError::Busy),
                }
            }
            Ok(Err(Failure::Before(error) | Failure::Refused(error))) if self.may_reopen(&error) => {
                if is_out_of_space(&error) {
                    self.reopen_full();
                    return everyone(CommitError::Busy);
                }
                // Something in the file is damaged, or was found damaged by a reader.
                log::error!("a group of {job_count} commits was rolled back: {error}");
                let is_latched = matches!(error, redb::Error::PreviousIo);
                if self.reopen().is_none() {
                    return everyone(CommitError::Busy);
                }
                match jobs {
                    // Whoever touches the damage fails alone.
                    [_, _, ..] => jobs.chunks_mut(1).flat_map(|job| self.results(job)).collect(),
                    _ if is_latched && !self.is_retrying => {
                        self.is_retrying = true;
                        let results = self.results(jobs);
                        self.is_retrying = false;
                        results
                    }
                    _ => everyone(CommitError::Storage(format!("damaged data: {error}"))),
                }
            }
            Ok(Err(Failure::Before(error))) => {
                log::error!("a group of {job_count} commits was rolled back: {error}");
                everyone(CommitError::Storage(error.to_string()))
            }
            Ok(Err(Failure::Refused(error))) => {
                self.shared.poison(&error.to_string());
                everyone(CommitError::Poisoned)
            }
            Ok(Err(Failure::During(error, results))) => {
                self.shared.poison(&error.to_string());
                // A job that changed nothing still may have looked at what another one of the group wrote, so
                // what it found is not to be told; that it changed nothing is certain.
                let unsure = |result: Result<u64, CommitError>| match result {
                    Ok(_) => Err(CommitError::Unknown(error.to_string())),
                    Err(_) => Err(CommitError::Poisoned),
                };
                results.into_iter().map(unsure).collect()
            }
            Err(_) => {
                self.shared.poison("the commit thread panicked");
                everyone(CommitError::Unknown("the commit thread panicked".to_owned()))
            }
        }
    }

    fn commit_group(&mut self, jobs: &mut [Job]) -> Result<Vec<Result<u64, CommitError>>, Failure> {
        let transaction = match self.shared.begin_write() {
            Some(begun) => begun,
            None if self.reopen_full().is_some() => self.shared.begin_write().ok_or(Failure::Closed)?,
            None => return Err(Failure::Closed),
        };
        let transaction = transaction.map_err(Failure::Refused)?;
        let mut group =
            Group::open(&transaction, self.merge, &*self.clock, self.numbers).map_err(Failure::Before)?;
        let mut results = Vec::with_capacity(jobs.len());
        for job in jobs.iter() {
            results.push(group.apply(&job.work).map_err(Failure::Before)?);
        }
        let Applied { numbers, changed, dropped_any } = group.finish().map_err(Failure::Before)?;
        // Also when nothing was written: a version once handed out is not handed out again.
        self.numbers = numbers;
        if !changed {
            transaction.abort().map_err(|error| Failure::Before(error.into()))?;
            return Ok(results);
        }
        if seeded::is(Bug::AnswerBeforeSync) {
            answer_too_early(jobs, &results);
        }
        if let Err(error) = transaction.commit() {
            return Err(match error {
                redb::CommitError::TransactionPoisoned => Failure::Before(error.into()),
                error => Failure::During(error.into(), results),
            });
        }
        if std::mem::take(&mut self.is_out_of_space) {
            log::warn!("the store's file takes writes again");
        }
        self.sweep_pending |= std::mem::take(&mut self.sweep_later);
        self.shared.count_group(jobs.len());
        self.sweep_pending |= dropped_any;
        self.publish();
        Ok(results)
    }

    /// Whether the failure leaves the file as it was, so that opening it again shows the last commit.
    fn may_reopen(&self, error: &redb::Error) -> bool {
        let is_harmless = is_out_of_space(error)
            || matches!(error, redb::Error::PreviousIo)
            || matches!(error, redb::Error::Io(cause) if is_damage(cause));
        let sync_failed = |reopening: &Reopening| reopening.sync_failed.load(Ordering::Acquire);
        is_harmless && self.reopening.as_ref().is_some_and(|reopening| !sync_failed(reopening))
    }

    /// Opens the file anew because it takes no more.
    fn reopen_full(&mut self) -> Option<u64> {
        if !std::mem::replace(&mut self.is_out_of_space, true) {
            log::error!(
                "the store's file takes no more: the disk is full, a quota is used up, or the file system is read-only. \
                 Writes are refused (503) until that has changed; make room, no restart is needed. Reads go on, and \
                 nothing that was acknowledged is lost."
            );
        }
        self.reopen()
    }

    /// Opens the file anew; the last version in it, if it is open for writing now.
    fn reopen(&self) -> Option<u64> {
        let reopening = self.reopening.as_ref()?;
        let opened = guarded(|| self.shared.reopen(reopening).then(|| self.shared.last_version()));
        opened.ok()?.and_then(Result::ok)
    }

    /// The planted bug: half of each commit with several ops is made durable and shown to readers by itself.
    fn run_first_halves(&mut self, jobs: &mut [Job]) {
        for job in jobs {
            let Work::Commit(commit) = &mut job.work else { continue };
            if commit.ops.len() < 2 {
                continue;
            }
            let half = commit.ops.len() / 2;
            let first = Commit { ops: commit.ops[..half].to_vec(), ..commit.clone() };
            let first = Job { work: Work::Commit(first), size_bytes: 0, answer: oneshot::channel().0 };
            if self.results(&mut [first]).iter().all(Result::is_ok) {
                for op in &mut commit.ops[..half] {
                    (op.expect, op.effect) = (Expect::Any, Effect::CheckOnly);
                }
            }
            std::thread::sleep(SEEDED_PAUSE);
        }
    }

    /// Without a new view readers would miss what callers are about to hear of, so then there is none at all.
    fn publish(&self) {
        if let Err(error) = self.shared.publish() {
            self.shared.poison(&format!("the new view does not open: {error}"));
        }
    }

    fn run_sweep(&mut self) {
        self.groups_since_sweep = 0;
        let Some(transaction) = self.shared.begin_write() else {
            (self.sweep_pending, self.sweep_later) = (false, true);
            return;
        };
        match catch_unwind(AssertUnwindSafe(|| sweep_slice(transaction?))) {
            Ok(Ok(Swept { row_count, more })) => {
                self.sweep_pending = more;
                self.shared.count_swept(row_count);
                if more {
                    self.publish();
                }
            }
            Ok(Err(error)) if self.may_reopen(&error) => {
                (self.sweep_pending, self.sweep_later) = (false, true);
                if is_out_of_space(&error) {
                    self.reopen_full();
                } else {
                    log::error!("sweeping a dropped table: {error}");
                    self.reopen();
                }
            }
            Ok(Err(error)) => self.shared.poison(&format!("sweeping a dropped table: {error}")),
            Err(_) => self.shared.poison("sweeping a dropped table panicked"),
        }
    }
}

/// The planted bug: what is about to be made durable is told already.
fn answer_too_early(jobs: &mut [Job], results: &[Result<u64, CommitError>]) {
    for (job, result) in jobs.iter_mut().zip(results) {
        let answer = std::mem::replace(&mut job.answer, oneshot::channel().0);
        let _ = answer.send(result.clone());
    }
}
