//! Helpers for these tests: short forms of commits and reads, and stores in temporary directories.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::{FakeClock, SystemClock};
use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Family, Flow, Key, KeyRange, Namespace, Op,
    ReadError, Row, Sink, TableId, Version,
};
use engine_local::{LocalEngine, LocalOptions};

/// The namespace of the tables in these tests.
pub const N: Namespace<'static> = Namespace::new(Family::FIRST, "n");

pub const GENEROUS: Budget = Budget::UNBOUNDED;

pub fn options(clock: &Arc<FakeClock>) -> LocalOptions {
    LocalOptions::new(FAMILIES, clock.clone())
}

/// With the real time.
pub fn system_options() -> LocalOptions {
    LocalOptions::new(FAMILIES, Arc::new(SystemClock::new()))
}

pub fn open(directory: &Path) -> LocalEngine {
    LocalEngine::open(directory, options(&Arc::new(FakeClock::default()))).unwrap()
}

pub fn put(table: TableId, partition: &str, row: &str, value: &str) -> Commit {
    let effect = Effect::Put(Bytes::copy_from_slice(value.as_bytes()));
    Commit::one(table, partition, Op { row: row.into(), expect: Expect::Any, effect })
}

pub async fn table(engine: &dyn Engine, name: &str) -> TableId {
    engine.create_table(N, name, Bytes::new()).await.unwrap()
}

pub async fn commit(engine: &dyn Engine, commit: Commit) -> Result<Version, CommitError> {
    engine.commit(commit).await
}

pub async fn get(engine: &dyn Engine, table: TableId, row: &str) -> Result<Option<Row>, ReadError> {
    engine.get(table, Key { partition: "p", row }).await
}

pub async fn value(engine: &dyn Engine, table: TableId, row: &str) -> Option<String> {
    get(engine, table, row).await.unwrap().map(|row| String::from_utf8(row.value.to_vec()).unwrap())
}

/// Every row of a table: partition, row, version, value.
pub type Rows = Vec<(String, String, u64, Vec<u8>)>;

#[derive(Default)]
pub struct Collect(pub Rows);

impl Sink for Collect {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.0.push((key.partition.to_owned(), key.row.to_owned(), version.ticks(), value.to_vec()));
        Flow::Continue
    }
}

pub async fn all(engine: &dyn Engine, table: TableId) -> Result<Rows, ReadError> {
    let mut sink = Collect::default();
    assert_eq!(engine.scan(table, &[KeyRange::all()], GENEROUS, &mut sink).await?, None);
    Ok(sink.0)
}

/// On a single-threaded runtime: lets every spawned task run as far as it can, so that its commit is queued.
pub async fn let_tasks_run() {
    // The runtime polls about sixty other tasks before it returns to the one that yields.
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Waits for something that a background thread is about to do.
pub async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    for _ in 0..2_000 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("this did not happen: {what}");
}

/// Copies the store's files while it is open: what a killed process leaves.
pub fn killed(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

pub fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    names.sort();
    names
}
