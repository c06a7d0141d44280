//! An engine that fails on demand, for tests of the layers above.
//!
//! [`FaultEngine`] passes every call on to the engine it wraps, unless its [`Faults`] handle was told otherwise.
//! Without faults it keeps every promise of that engine.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

use crate::keys::{Key, KeyRange, OwnedKey};
use crate::{
    Budget, Commit, CommitError, Engine, Expect, Load, Namespace, ReadError, Row, Sink, Snapshot, TableId,
    TablePath, TableRows, Version,
};

pub struct FaultEngine {
    inner: Arc<dyn Engine>,
    faults: Faults,
}

impl FaultEngine {
    pub fn new(inner: Arc<dyn Engine>) -> (FaultEngine, Faults) {
        let faults = Faults { reads: Arc::new(Door::new()), writes: Arc::new(Door::new()) };
        (FaultEngine { inner, faults: faults.clone() }, faults)
    }
}

/// Says what goes wrong next. Reads are `get`, `scan` and `snapshot`; all other calls are writes.
#[derive(Clone)]
pub struct Faults {
    reads: Arc<Door<ReadError>>,
    writes: Arc<Door<WriteFault>>,
}

#[derive(Clone)]
enum WriteFault {
    Fail(CommitError),
    /// The write happens, but the caller is not told.
    LoseAnswer,
}

impl Faults {
    /// The next `count` reads fail.
    pub fn fail_reads(&self, count: usize, error: ReadError) {
        self.reads.plan(count, error);
    }

    /// The next `count` writes fail and change nothing; with `CommitError::Busy`, an overload.
    pub fn fail_writes(&self, count: usize, error: CommitError) {
        self.writes.plan(count, WriteFault::Fail(error));
    }

    /// The next `count` writes are passed on and then reported as `CommitError::Unknown`.
    pub fn lose_write_answers(&self, count: usize) {
        self.writes.plan(count, WriteFault::LoseAnswer);
    }

    /// Every read from now on takes this much longer.
    pub fn delay_reads(&self, by: Duration) {
        self.reads.lock().delay = by;
    }

    /// Every write from now on takes this much longer.
    pub fn delay_writes(&self, by: Duration) {
        self.writes.lock().delay = by;
    }

    /// Reads wait from now on, until they are released.
    pub fn hold_reads(&self) {
        self.reads.hold(true);
    }

    pub fn release_reads(&self) {
        self.reads.hold(false);
    }

    /// Writes wait from now on, before anything happens, until they are released.
    pub fn hold_writes(&self) {
        self.writes.hold(true);
    }

    pub fn release_writes(&self) {
        self.writes.hold(false);
    }

    /// Returns once `count` reads are held.
    pub async fn until_reads_held(&self, count: usize) {
        self.reads.until_waiting(count).await;
    }

    /// Returns once `count` writes are held.
    pub async fn until_writes_held(&self, count: usize) {
        self.writes.until_waiting(count).await;
    }

    /// Reads that arrived so far, the failed ones included.
    pub fn read_count(&self) -> usize {
        self.reads.lock().passed
    }

    /// Writes that arrived so far, the failed ones included.
    pub fn write_count(&self) -> usize {
        self.writes.lock().passed
    }
}

/// A gate that all calls of one kind pass.
struct Door<F> {
    state: Mutex<DoorState<F>>,
    held: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

struct DoorState<F> {
    planned: VecDeque<F>,
    delay: Duration,
    passed: usize,
}

impl<F: Clone> Door<F> {
    fn new() -> Door<F> {
        Door {
            state: Mutex::new(DoorState { planned: VecDeque::new(), delay: Duration::ZERO, passed: 0 }),
            held: watch::Sender::new(false),
            waiting: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, DoorState<F>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn plan(&self, count: usize, fault: F) {
        self.lock().planned.extend(std::iter::repeat_n(fault, count));
    }

    fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    async fn until_waiting(&self, count: usize) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting >= count).await;
    }

    /// Waits as told; returns the fault that was planned for this call.
    async fn pass(&self) -> Option<F> {
        let (fault, delay) = {
            let mut state = self.lock();
            state.passed += 1;
            (state.planned.pop_front(), state.delay)
        };
        if *self.held.borrow() {
            let waiting = HeldCall::enter(&self.waiting);
            let _ = self.held.subscribe().wait_for(|held| !held).await;
            drop(waiting);
        }
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        fault
    }
}

/// Counts a held call, even if its caller gives up.
struct HeldCall<'a>(&'a watch::Sender<usize>);

impl<'a> HeldCall<'a> {
    fn enter(count: &'a watch::Sender<usize>) -> HeldCall<'a> {
        count.send_modify(|count| *count += 1);
        HeldCall(count)
    }
}

impl Drop for HeldCall<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl FaultEngine {
    async fn write<T>(&self, call: impl Future<Output = Result<T, CommitError>>) -> Result<T, CommitError> {
        match self.faults.writes.pass().await {
            None => call.await,
            Some(WriteFault::Fail(error)) => Err(error),
            Some(WriteFault::LoseAnswer) => {
                call.await?;
                Err(CommitError::Unknown("the answer was lost".to_owned()))
            }
        }
    }
}

#[async_trait]
impl Engine for FaultEngine {
    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        match self.faults.reads.pass().await {
            None => self.inner.get(table, key).await,
            Some(error) => Err(error),
        }
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        match self.faults.reads.pass().await {
            None => self.inner.scan(table, ranges, budget, sink).await,
            Some(error) => Err(error),
        }
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.write(self.inner.commit(commit)).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        self.write(self.inner.commit_all(commits)).await
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.write(self.inner.create_table(namespace, name, payload)).await
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        self.write(self.inner.drop_table(namespace, name)).await
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.write(self.inner.rename_table(from, to, payload)).await
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        self.write(self.inner.replace_table(path, expect, payload, rows)).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        match self.faults.reads.pass().await {
            None => self.inner.snapshot().await,
            Some(error) => Err(error),
        }
    }

    async fn load(&self, load: Load) -> Result<(), CommitError> {
        self.write(self.inner.load(load)).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
