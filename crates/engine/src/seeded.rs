//! Planted bugs, in builds with the feature `seeded-bugs` alone: each breaks one promise of the contract on purpose, to
//! show that the trials would notice.
//!
//! A process carries at most one, whose name it reads from the environment once. [`wrap`] gives an engine the bugs that can
//! be had from outside it; the embedded engine, the queues and the contents have modules of the same name for the others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::keys::{Key, KeyRange, OwnedKey};
use crate::wrapper::{Wrapped, Wrapper};
use crate::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Flow, ReadError, Row, Sink, Snapshot, TableId,
    Version,
};

/// Names the bug that the process carries; unset or empty, it carries none.
const VARIABLE: &str = "LAZULITE_SEEDED_BUG";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// Callers hear of success while the log's sync is still to come.
    AnswerBeforeSync,
    /// Callers hear of success while the record of the log is still on its way to the file.
    AnswerBeforeWrite,
    /// Any row that is there satisfies an expectation of one version.
    BrokenEtag,
    /// Now and then a queue that is cleared keeps everything.
    EmptyClearing,
    /// A deletion leaves what it deletes where it is, if that has a moment at which it expires.
    HalfDeletion,
    /// A sweep of contents forgets what is about to get a row.
    HastySweep,
    /// The front of a queue moves on over places that are about to be filled.
    PassingFront,
    /// What is taken from a queue is hidden for half of the time.
    ShortHiding,
    /// A commit of several ops becomes two durable groups, with a pause between them.
    SplitBatch,
    /// Commits that belong together are made one after the other, with a pause between them.
    SplitOutbox,
    /// Now and then a read after an acknowledged commit does not see it.
    StaleRead,
    /// Who takes from a queue does not check that nobody else has changed what is taken.
    UncheckedTake,
    /// Now and then a take does not raise the dequeue count.
    UncountedTake,
    /// Rows name contents that nobody synced.
    UnsyncedContent,
    /// The last version is not restored when the store is opened.
    VersionReuse,
}

impl Bug {
    pub const ALL: [Bug; 15] = [
        Bug::AnswerBeforeSync,
        Bug::AnswerBeforeWrite,
        Bug::BrokenEtag,
        Bug::EmptyClearing,
        Bug::HalfDeletion,
        Bug::HastySweep,
        Bug::PassingFront,
        Bug::ShortHiding,
        Bug::SplitBatch,
        Bug::SplitOutbox,
        Bug::StaleRead,
        Bug::UncheckedTake,
        Bug::UncountedTake,
        Bug::UnsyncedContent,
        Bug::VersionReuse,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Bug::AnswerBeforeSync => "answer-before-sync",
            Bug::AnswerBeforeWrite => "answer-before-write",
            Bug::BrokenEtag => "broken-etag",
            Bug::EmptyClearing => "empty-clearing",
            Bug::HalfDeletion => "half-deletion",
            Bug::HastySweep => "hasty-sweep",
            Bug::PassingFront => "passing-front",
            Bug::ShortHiding => "short-hiding",
            Bug::SplitBatch => "split-batch",
            Bug::SplitOutbox => "split-outbox",
            Bug::StaleRead => "stale-read",
            Bug::UncheckedTake => "unchecked-take",
            Bug::UncountedTake => "uncounted-take",
            Bug::UnsyncedContent => "unsynced-content",
            Bug::VersionReuse => "version-reuse",
        }
    }
}

/// Whether this process carries the bug.
pub fn is(bug: Bug) -> bool {
    carried() == Some(bug)
}

/// What everybody who starts this build must know.
pub fn warning() -> String {
    let carries = match carried() {
        Some(bug) => format!("and now breaks its promises on purpose: {}", bug.name()),
        None => format!("none of them switched on ({VARIABLE})"),
    };
    format!("THIS BUILD CARRIES PLANTED BUGS, {carries}. Never keep data in it.")
}

fn carried() -> Option<Bug> {
    static CARRIED: OnceLock<Option<Bug>> = OnceLock::new();
    *CARRIED.get_or_init(|| {
        let name = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
        let bug = Bug::ALL.into_iter().find(|bug| bug.name() == name);
        // A trial of a bug that is not there would pass, and prove nothing.
        Some(bug.unwrap_or_else(|| panic!("{VARIABLE}={name}, but there is no such bug")))
    })
}

/// The engine with the bug that this process carries, if it can be had from outside.
pub fn wrap(engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
    Arc::new(Wrapped(SeededEngine { engine, commit_count: AtomicU32::new(0), stale: Mutex::new(None) }))
}

/// Between the halves of a split commit.
const SPLIT_PAUSE: Duration = Duration::from_millis(2);
/// One of so many commits is not seen by the next read of its table.
const STALE_COMMIT_INTERVAL: u32 = 8;

struct SeededEngine {
    engine: Arc<dyn Engine>,
    commit_count: AtomicU32,
    /// A table, and the state before its last commit.
    stale: Mutex<Option<(TableId, Arc<dyn Snapshot>)>>,
}

impl SeededEngine {
    /// Half of a commit with several ops is made durable and shown to readers by itself.
    async fn commit_first_half(&self, commit: &mut Commit) {
        let half = commit.ops.len() / 2;
        if half == 0 {
            return;
        }
        let first = Commit { ops: commit.ops[..half].to_vec(), ..commit.clone() };
        if self.engine.commit(first).await.is_ok() {
            for op in &mut commit.ops[..half] {
                (op.expect, op.effect) = (Expect::Any, Effect::CheckOnly);
            }
        }
        std::thread::sleep(SPLIT_PAUSE);
    }

    async fn keep_stale(&self, table: TableId) {
        if !self.commit_count.fetch_add(1, Ordering::Relaxed).is_multiple_of(STALE_COMMIT_INTERVAL) {
            return;
        }
        if let Ok(snapshot) = self.engine.snapshot().await {
            *self.stale.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some((table, snapshot));
        }
    }

    /// The state before the last commit, for one read.
    fn take_stale(&self, table: TableId) -> Option<Arc<dyn Snapshot>> {
        let mut stale = self.stale.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (_, snapshot) = stale.take_if(|(of, _)| *of == table)?;
        Some(snapshot)
    }
}

struct One(Option<Row>);

impl Sink for One {
    fn row(&mut self, _: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.0 = Some(Row { version, value: Bytes::copy_from_slice(value) });
        Flow::Continue
    }
}

#[async_trait]
impl Wrapper for SeededEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        let Some(stale) = self.take_stale(table) else { return self.engine.get(table, key).await };
        let range = [KeyRange::point(key.partition, key.row)];
        let mut one = One(None);
        let budget = Budget { rows_examined_max: 1, ..Budget::UNBOUNDED };
        stale.scan(table, &range, budget, &mut one).await?;
        Ok(one.0)
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        match self.take_stale(table) {
            Some(stale) => stale.scan(table, ranges, budget, sink).await,
            None => self.engine.scan(table, ranges, budget, sink).await,
        }
    }

    async fn commit(&self, mut commit: Commit) -> Result<Version, CommitError> {
        match carried() {
            Some(Bug::BrokenEtag) => {
                for op in &mut commit.ops {
                    if let Expect::Exactly(_) = op.expect {
                        op.expect = Expect::Present;
                    }
                }
            }
            Some(Bug::SplitBatch) => self.commit_first_half(&mut commit).await,
            Some(Bug::StaleRead) => self.keep_stale(commit.table).await,
            _ => {}
        }
        self.engine.commit(commit).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        if carried() != Some(Bug::SplitOutbox) {
            return self.engine.commit_all(commits).await;
        }
        let mut last = Err(CommitError::Invalid("no commits".to_owned()));
        for commit in commits {
            last = Ok(self.engine.commit(commit).await?);
            std::thread::sleep(SPLIT_PAUSE);
        }
        last
    }
}
