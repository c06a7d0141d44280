//! The commit log after a crash: what is replayed, cut or refused, and what is left on the disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fs, io};

use engine::env::FakeClock;
use engine::{Commit, CommitError, Effect, Engine, Expect, Op, TableId};
use engine_local::{Access, AnyFile, DirectoryFiles, DirectoryLock, StoreFiles};
use engine_local::{LocalEngine, OpenError};
use redb::backends::FileBackend;

use crate::support::*;

/// The offsets of the first record and of the seal in a segment.
const RECORDS_OFFSET: usize = 4096;
const SEAL_OFFSET: usize = 512;

/// A store with this many commits, row `n` in commit `n`, none of them folded, as a killed process leaves it.
async fn unfolded(count: usize) -> (tempfile::TempDir, TableId) {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    let engine = LocalEngine::open(directory.path(), options).unwrap();
    let table = table(&engine, "t").await;
    for n in 0..count {
        commit(&engine, put(table, "p", &format!("{n:04}"), &n.to_string())).await.unwrap();
    }
    assert_eq!(engine.stats().fold_count, 0);
    // The seal is written when the commit thread is idle.
    let newest = segments(directory.path()).pop().unwrap();
    eventually("the log is sealed", async || {
        fs::read(&newest).unwrap()[SEAL_OFFSET + 8..][..8] == (count as u64 + 1).to_le_bytes()
    })
    .await;
    (killed(directory.path()), table)
}

fn refused(directory: &Path) -> String {
    match LocalEngine::open(directory, options(&Arc::new(FakeClock::default()))) {
        Err(error @ OpenError::Damaged { .. }) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
}

fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// The offsets at which the records of a segment begin.
fn records(bytes: &[u8]) -> Vec<usize> {
    (RECORDS_OFFSET..bytes.len() - 4).step_by(8).filter(|at| &bytes[*at..*at + 4] == b"LZLR").collect()
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let (store, table) = unfolded(100).await;
    let engine = open(store.path());
    let rows = all(&engine, table).await.unwrap();
    assert_eq!(rows.len(), 100);
    assert_eq!(value(&engine, table, "0099").await.as_deref(), Some("99"));
    let version = commit(&engine, put(table, "p", "new", "v")).await.unwrap();
    assert!(rows.iter().all(|row| row.2 < version.ticks()));
    assert_eq!(engine.check().findings, Vec::<String>::new());
    engine.close().await;
    drop(engine);
    let engine = open(store.path());
    assert_eq!((all(&engine, table).await.unwrap().len(), engine.stats().recent_bytes), (101, 0));
}

#[tokio::test]
async fn a_record_that_was_being_written_is_cut() {
    let (store, table) = unfolded(10).await;
    let file = &segments(store.path())[0];
    // The power failed before the seal was on the disk, and half of the last record is there.
    change(file, |bytes| {
        bytes[SEAL_OFFSET..SEAL_OFFSET + 16].fill(0);
        let last = *records(bytes).last().unwrap();
        bytes[last + 40..last + 64].fill(0);
    });
    let engine = open(store.path());
    assert_eq!(all(&engine, table).await.unwrap().len(), 9);
    commit(&engine, put(table, "p", "new", "v")).await.unwrap();
    let again = killed(store.path());
    let engine = open(again.path());
    assert_eq!(value(&engine, table, "new").await.as_deref(), Some("v"));
    assert_eq!(all(&engine, table).await.unwrap().len(), 10);
}

#[tokio::test]
async fn damage_is_refused_wherever_it_is() {
    for (what, how) in [
        ("the first record", (|bytes, records| bytes[records[0] + 30] ^= 1) as fn(&mut Vec<u8>, &[usize])),
        ("one in the middle", |bytes, records| bytes[records[5] + 8] ^= 1),
        ("the last one, which the seal knows", |bytes, records| bytes[records[10] + 50] ^= 1),
        ("several, wiped out", |bytes, records| bytes[records[7]..records[10] + 64].fill(0)),
        ("the end, cut off", |bytes, records| bytes.truncate(records[9])),
        ("the head", |bytes, _| bytes[9] ^= 1),
    ] {
        let (store, _) = unfolded(10).await;
        let file = &segments(store.path())[0];
        change(file, |bytes| {
            let records = records(bytes);
            assert_eq!(records.len(), 11, "the table, then ten rows");
            how(bytes, &records);
        });
        let refusal = refused(store.path());
        assert!(refusal.contains("commits-00000000000000000001.log"), "{what}: {refusal}");
    }
}

#[tokio::test]
async fn a_log_that_is_missing_is_refused() {
    let (store, _) = unfolded(3).await;
    fs::remove_file(&segments(store.path())[0]).unwrap();
    assert!(refused(store.path()).contains("the commit log (commits-….log) is missing"));
}

#[tokio::test]
async fn damage_to_records_that_are_in_the_tree_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let table = table(&engine, "t").await;
    commit(&engine, put(table, "p", "r", "v")).await.unwrap();
    engine.close().await;
    drop(engine);
    change(&segments(directory.path())[0], |bytes| {
        for at in records(bytes) {
            bytes[at + 30] ^= 1;
        }
    });
    let engine = open(directory.path());
    assert_eq!(value(&engine, table, "r").await.as_deref(), Some("v"));
    commit(&engine, put(table, "p", "new", "v")).await.unwrap();
    let engine = open(killed(directory.path()).path());
    assert_eq!(value(&engine, table, "new").await.as_deref(), Some("v"));
}

#[tokio::test]
async fn the_log_does_not_grow_with_what_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&Arc::new(FakeClock::default()));
    (options.folds_between_groups, options.recent_bytes_max) = (true, 4 * 1024 * 1024);
    let engine = LocalEngine::open(directory.path(), options).unwrap();
    let table = table(&engine, "t").await;
    let value = "x".repeat(100_000);
    for n in 0..20 {
        let op = |row: usize| Op {
            row: row.to_string().into(),
            expect: Expect::Any,
            effect: Effect::Put(format!("{n}{value}").into()),
        };
        let work = Commit { table, partition: "p".into(), ops: (0..50).map(op).collect() };
        engine.commit(work).await.unwrap();
    }
    // A hundred megabytes have passed through the log.
    let bytes: u64 = segments(directory.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(bytes <= 4 * 16 * 1024 * 1024, "{bytes}");
    let copy = killed(directory.path());
    let engine = open(copy.path());
    let rows = all(&engine, table).await.unwrap();
    assert!(rows.len() == 50 && rows.iter().all(|row| row.3.starts_with(b"19xxx")), "{}", rows.len());
}

#[tokio::test]
async fn an_opening_makes_the_name_of_the_last_segment_durable() {
    let (store, table) = unfolded(3).await;
    let files = WatchedFiles::new(store.path());
    files.fails.store(true, Ordering::Release);
    let open = || LocalEngine::open_on(store.path(), options(&Arc::new(FakeClock::default())), files.clone());
    assert!(open().is_err());
    files.fails.store(false, Ordering::Release);
    assert_eq!(all(&open().unwrap(), table).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_segment_that_cannot_be_begun_takes_no_space() {
    let directory = tempfile::tempdir().unwrap();
    let files = WatchedFiles::new(directory.path());
    let engine =
        LocalEngine::open_on(directory.path(), options(&Arc::new(FakeClock::default())), files.clone());
    let engine = engine.unwrap();
    let table = table(&engine, "t").await;
    files.refuses_segments.store(true, Ordering::Release);
    let long = "x".repeat(100_000);
    assert_eq!(commit(&engine, put(table, "p", "long", &long)).await, Err(CommitError::Busy));
    assert!(!directory.path().join("commits.hasty").exists());
    files.refuses_segments.store(false, Ordering::Release);
    commit(&engine, put(table, "p", "long", &long)).await.unwrap();
    assert_eq!(all(&open(killed(directory.path()).path()), table).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_busy_log_makes_and_removes_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let files = WatchedFiles::new(directory.path());
    let mut options = options(&Arc::new(FakeClock::default()));
    (options.folds_between_groups, options.recent_bytes_max) = (true, 40 * 1024 * 1024);
    let engine = LocalEngine::open_on(directory.path(), options, files.clone()).unwrap();
    let table = table(&engine, "t").await;
    let value = "x".repeat(1_000_000);
    let mut change_counts = Vec::new();
    for round in 0..5 {
        for n in 0..50 {
            commit(&engine, put(table, "p", &format!("{round}{n}"), &value)).await.unwrap();
        }
        change_counts.push(files.change_count.load(Ordering::Acquire));
    }
    assert!(engine.stats().fold_count >= 5);
    // Fifty megabytes a round are more than three segments. After three rounds there are enough of them.
    assert!(change_counts[0] >= 4, "{change_counts:?}");
    assert_eq!(change_counts[4], change_counts[2], "{change_counts:?}");
    assert!(count_spares(directory.path()) >= 1);
    // What a kill leaves is removed by the next opening.
    let copy = killed(directory.path());
    drop(open(copy.path()));
    assert_eq!(count_spares(copy.path()), 0);
    engine.close().await;
    assert_eq!(count_spares(directory.path()), 0);
}

fn count_spares(directory: &Path) -> usize {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("commits.spare")).count()
}

#[tokio::test]
async fn a_missing_segment_is_refused_whichever_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    let engine = LocalEngine::open(directory.path(), options).unwrap();
    let table = table(&engine, "t").await;
    let value = "x".repeat(1_000_000);
    for n in 0..20 {
        commit(&engine, put(table, "p", &n.to_string(), &value)).await.unwrap();
    }
    let count = segments(directory.path()).len();
    assert!(count >= 3, "{count}");
    for missing in 0..count {
        let copy = killed(directory.path());
        let path = &segments(copy.path())[missing];
        fs::remove_file(path).unwrap();
        refused(copy.path());
    }
    assert_eq!(all(&open(killed(directory.path()).path()), table).await.unwrap().len(), 20);
}

/// Files that cannot become segments, or whose names cannot be made durable, on demand. Counts files that are made or removed.
#[derive(Debug)]
struct WatchedFiles {
    files: DirectoryFiles<fn(FileBackend) -> FileBackend>,
    fails: AtomicBool,
    refuses_segments: AtomicBool,
    change_count: AtomicUsize,
}

impl WatchedFiles {
    fn new(directory: &Path) -> Arc<WatchedFiles> {
        let files = DirectoryFiles::new(directory);
        Arc::new(WatchedFiles {
            files,
            fails: AtomicBool::new(false),
            refuses_segments: AtomicBool::new(false),
            change_count: AtomicUsize::new(0),
        })
    }
}

impl StoreFiles for WatchedFiles {
    fn names(&self) -> io::Result<Vec<String>> {
        self.files.names()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile> {
        if matches!(access, Access::Create | Access::CreateLater) {
            self.change_count.fetch_add(1, Ordering::AcqRel);
        }
        self.files.open(name, access)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        match self.refuses_segments.load(Ordering::Acquire) && to.ends_with(".log") {
            true => Err(io::Error::other("no file becomes a segment, as it was told")),
            false => self.files.rename(from, to),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_count.fetch_add(1, Ordering::AcqRel);
        self.files.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        match self.fails.load(Ordering::Acquire) {
            true => Err(io::Error::other("the directory does not sync, as it was told to")),
            false => self.files.sync(),
        }
    }

    fn read(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.files.read(name, bytes_max)
    }

    fn try_lock(&self, name: &str) -> io::Result<Option<DirectoryLock>> {
        self.files.try_lock(name)
    }
}

#[tokio::test]
async fn after_a_segment_that_could_not_be_begun_nothing_goes_into_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let files = WatchedFiles::new(directory.path());
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    let engine = LocalEngine::open_on(directory.path(), options, files.clone()).unwrap();
    let table = table(&engine, "t").await;
    commit(&engine, put(table, "p", "kept", "v")).await.unwrap();
    files.fails.store(true, Ordering::Release);
    // One record that is too long for the first segment, and one that would still fit there.
    let long = "x".repeat(100_000);
    assert_eq!(commit(&engine, put(table, "p", "long", &long)).await, Err(CommitError::Busy));
    assert_eq!(commit(&engine, put(table, "p", "short", "v")).await, Err(CommitError::Busy));
    assert_eq!(value(&engine, table, "short").await, None);
    assert!(!engine.stats().poisoned);
    files.fails.store(false, Ordering::Release);
    commit(&engine, put(table, "p", "short", "v")).await.unwrap();
    commit(&engine, put(table, "p", "long", &long)).await.unwrap();

    let engine = open(killed(directory.path()).path());
    let rows: Vec<String> = all(&engine, table).await.unwrap().into_iter().map(|row| row.1).collect();
    assert_eq!(rows, ["kept", "long", "short"]);
}
