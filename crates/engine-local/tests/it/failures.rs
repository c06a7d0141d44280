//! A disk that fails: what callers hear, and what the store holds afterwards.

use std::path::Path;
use std::sync::Arc;

use engine::env::FakeClock;
use engine::{
    Commit, CommitError, Effect, Engine, Expect, Flow, Key, KeyRange, Op, ReadError, Sink, TableId, Version,
};
use engine_local::LocalEngine;

use crate::disk::{Behaviour, Disk, open_failing};
use crate::support::*;

async fn open_on(directory: &Path, disk: &Disk) -> (Arc<LocalEngine>, TableId) {
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    let engine = open_failing(directory, options, disk);
    let id = table(&engine, "t").await;
    (Arc::new(engine), id)
}

/// What must be true after any failure: writes are refused, reads show the last durable state, and all of that state
/// is there after reopening.
async fn check_poisoned(directory: &Path, disk: &Disk, engine: Arc<LocalEngine>, table: TableId) {
    assert!(engine.stats().poisoned);
    // The disk recovers, but that must not matter: it is unknown what was lost.
    disk.syncs(Behaviour::Work);
    disk.writes(Behaviour::Work);
    assert_eq!(commit(&*engine, put(table, "p", "late", "v")).await, Err(CommitError::Poisoned));
    assert_eq!(engine.create_table(N, "late", "".into()).await, Err(CommitError::Poisoned));
    assert_eq!(engine.drop_table(N, "t").await, Err(CommitError::Poisoned));

    assert_eq!(value(&*engine, table, "kept").await.as_deref(), Some("v"));
    assert_eq!(value(&*engine, table, "unsure").await, None);
    assert_eq!(all(&*engine, table).await.unwrap().len(), 1);
    engine.close().await;
    drop(engine);

    let engine = open(directory);
    assert_eq!(value(&engine, table, "kept").await.as_deref(), Some("v"));
    assert_eq!(value(&engine, table, "late").await, None);
    let unsure = value(&engine, table, "unsure").await;
    assert!(unsure.is_none() || unsure.as_deref() == Some("v"), "{unsure:?}");
    commit(&engine, put(table, "p", "new", "v")).await.unwrap();
    assert_eq!(value(&engine, table, "new").await.as_deref(), Some("v"));
}

#[tokio::test]
async fn a_failed_sync_poisons_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = open_on(directory.path(), &disk).await;
    commit(&*engine, put(table, "p", "kept", "v")).await.unwrap();
    disk.syncs(Behaviour::Fail);
    let outcome = commit(&*engine, put(table, "p", "unsure", "v")).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    check_poisoned(directory.path(), &disk, engine, table).await;
}

#[tokio::test]
async fn a_failed_write_poisons_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = open_on(directory.path(), &disk).await;
    commit(&*engine, put(table, "p", "kept", "v")).await.unwrap();
    disk.writes(Behaviour::Fail);
    let outcome = commit(&*engine, put(table, "p", "unsure", "v")).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_) | CommitError::Storage(_))), "{outcome:?}");
    // If the group was rolled back before its commit, the next write finds the engine poisoned.
    let _ = commit(&*engine, put(table, "p", "unsure", "v")).await;
    check_poisoned(directory.path(), &disk, engine, table).await;
}

#[tokio::test]
async fn a_panic_in_the_commit_thread_poisons_and_answers_everybody() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = open_on(directory.path(), &disk).await;
    commit(&*engine, put(table, "p", "kept", "v")).await.unwrap();
    disk.syncs(Behaviour::Panic);
    let outcome = commit(&*engine, put(table, "p", "unsure", "v")).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    check_poisoned(directory.path(), &disk, engine, table).await;
}

#[tokio::test]
async fn all_jobs_of_a_failed_group_and_of_the_queue_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = open_on(directory.path(), &disk).await;
    commit(&*engine, put(table, "p", "kept", "v")).await.unwrap();
    disk.syncs(Behaviour::Stall);
    let spawn = |work: Commit| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.commit(work).await })
    };
    let first = spawn(put(table, "p", "unsure", "v"));
    eventually("the commit thread waits for the disk", async || disk.is_stalled()).await;
    let rest: Vec<_> = (0..20).map(|n| spawn(put(table, "p", &format!("queued {n}"), "v"))).collect();
    let_tasks_run().await;
    disk.syncs(Behaviour::Fail);
    assert!(matches!(first.await.unwrap(), Err(CommitError::Unknown(_))));
    for task in rest {
        assert_eq!(task.await.unwrap(), Err(CommitError::Poisoned));
    }
    assert_eq!(engine.stats().queued_bytes, 0);
    check_poisoned(directory.path(), &disk, engine, table).await;
}

#[tokio::test]
async fn a_job_that_changed_nothing_in_a_failed_group_is_not_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = open_on(directory.path(), &disk).await;
    commit(&*engine, put(table, "p", "kept", "v")).await.unwrap();
    disk.syncs(Behaviour::Stall);
    let spawn = |row: &str, expect: Expect| {
        let op = Op { row: row.into(), expect, effect: Effect::Put("v".into()) };
        let (engine, work) = (engine.clone(), Commit::one(table, "p", op));
        tokio::spawn(async move { engine.commit(work).await })
    };
    // The group that stalled is durable; the one after it is not.
    let plug = spawn("kept", Expect::Any);
    eventually("the commit thread waits for the disk", async || disk.is_stalled()).await;
    let insert = spawn("unsure", Expect::Absent);
    let loser = spawn("unsure", Expect::Absent);
    let_tasks_run().await;
    disk.fail_after_syncs(1);
    plug.await.unwrap().unwrap();
    assert!(matches!(insert.await.unwrap(), Err(CommitError::Unknown(_))));
    assert_eq!(loser.await.unwrap(), Err(CommitError::Poisoned));
    check_poisoned(directory.path(), &disk, engine, table).await;
}

/// Folds recent rows after each commit.
fn open_folding(directory: &Path, disk: &Disk) -> LocalEngine {
    let mut options = options(&Arc::new(FakeClock::default()));
    (options.folds_between_groups, options.recent_bytes_max) = (true, 1);
    open_failing(directory, options, disk)
}

#[tokio::test]
async fn a_full_disk_refuses_writes_while_it_is_full_and_takes_them_again_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let engine = open_folding(directory.path(), &disk);
    let table = table(&engine, "t").await;
    let mut versions = Vec::new();
    for round in 0..3 {
        versions.push(commit(&engine, put(table, "p", &format!("kept{round}"), "v")).await.unwrap());
        disk.writes(Behaviour::Full);
        for _ in 0..3 {
            assert_eq!(commit(&engine, put(table, "p", "refused", "v")).await, Err(CommitError::Busy));
            assert_eq!(engine.drop_table(N, "t").await, Err(CommitError::Busy));
            assert_eq!(engine.create_table(N, "new", "".into()).await, Err(CommitError::Busy));
        }
        assert!(!engine.stats().poisoned);
        assert_eq!(all(&engine, table).await.unwrap().len(), round + 1, "reads go on");
        assert_eq!(value(&engine, table, "kept0").await.as_deref(), Some("v"));
        disk.writes(Behaviour::Work);
    }
    versions.push(commit(&engine, put(table, "p", "after", "v")).await.unwrap());
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    engine.close().await;
    drop(engine);
    let engine = open(directory.path());
    assert_eq!(all(&engine, table).await.unwrap().len(), 4);
    assert_eq!(value(&engine, table, "refused").await, None);
}

#[tokio::test]
async fn a_sync_that_fails_for_want_of_space_is_not_forgiven() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let engine = open_folding(directory.path(), &disk);
    let table = table(&engine, "t").await;
    commit(&engine, put(table, "p", "kept", "v")).await.unwrap();
    disk.syncs(Behaviour::Full);
    let outcome = commit(&engine, put(table, "p", "unsure", "v")).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    check_poisoned(directory.path(), &disk, Arc::new(engine), table).await;
}

#[tokio::test]
async fn a_group_that_was_durable_before_the_disk_was_full_is_answered_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let engine = open_folding(directory.path(), &disk);
    let table = table(&engine, "t").await;
    // The disk fills up at every single write of a commit in turn: the answer must match what is stored.
    for after in 0..40 {
        disk.writes_full_after(after);
        let row = format!("r{after}");
        let outcome = commit(&engine, put(table, "p", &row, "v")).await;
        disk.writes(Behaviour::Work);
        match outcome {
            Ok(_) => {}
            Err(CommitError::Busy) => assert_eq!(value(&engine, table, &row).await, None, "{after}"),
            Err(other) => panic!("{after}: {other}"),
        }
        let found = value(&engine, table, &row).await.is_some();
        assert_eq!(found, outcome.is_ok(), "{after}");
        commit(&engine, put(table, "p", "between", "v")).await.unwrap();
    }
}

fn delete(table: TableId, row: &str) -> Commit {
    Commit::one(table, "p", Op { row: row.into(), expect: Expect::Present, effect: Effect::Delete })
}

#[tokio::test]
async fn a_full_disk_accepts_deletions_while_folding_finds_no_space() {
    fill_and_delete(1024 * 1024).await;
}

#[tokio::test]
async fn a_full_disk_accepts_deletions_while_the_log_finds_no_space() {
    fill_and_delete(64 * 1024 * 1024).await;
}

async fn fill_and_delete(recent_bytes_max: usize) {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let mut options = system_options();
    options.recent_bytes_max = recent_bytes_max;
    let engine = open_failing(directory.path(), options, &disk);
    let (kept, dropped) = (table(&engine, "kept").await, table(&engine, "dropped").await);
    commit(&engine, put(dropped, "p", "r", "v")).await.unwrap();
    eventually("the reserve is there", async || directory.path().join("commits.reserve").exists()).await;
    let long = "x".repeat(50_000);
    // The first segment is small.
    commit(&engine, put(dropped, "p", "long", &long.repeat(2))).await.unwrap();
    disk.forbid_growth(true);
    let mut rows = Vec::new();
    let mut refusal_count = 0;
    while refusal_count < 20 {
        let row = format!("{:05}", rows.len());
        match commit(&engine, put(kept, "p", &row, &long)).await {
            Ok(_) => rows.push(row),
            Err(error) => {
                assert_eq!(error, CommitError::Busy);
                refusal_count += 1;
            }
        }
    }
    assert!(rows.len() > 10, "{}", rows.len());

    let left = rows.split_off(rows.len() - 5);
    for row in &rows {
        commit(&engine, delete(kept, row)).await.unwrap();
    }
    engine.drop_table(N, "dropped").await.unwrap();
    let found = async |engine: &LocalEngine| -> Vec<String> {
        all(engine, kept).await.unwrap().into_iter().map(|row| row.1).collect()
    };
    assert_eq!(found(&engine).await, left);
    let crashed = killed(directory.path());
    let reopened = open(crashed.path());
    assert_eq!(found(&reopened).await, left);
    assert_eq!(reopened.check().findings, Vec::<String>::new());
    assert_eq!(commit(&reopened, put(dropped, "p", "r", "v")).await, Err(CommitError::TableGone));

    disk.forbid_growth(false);
    eventually("writes are accepted again", async || {
        commit(&engine, put(kept, "p", "new", &long)).await.is_ok()
    })
    .await;
    eventually("there is a reserve again", async || directory.path().join("commits.reserve").exists()).await;
    assert!(!engine.stats().poisoned);
    assert_eq!(engine.check().findings, Vec::<String>::new());
}

#[tokio::test]
async fn a_panic_while_folding_stops_folding_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let engine = open_failing(directory.path(), system_options(), &disk);
    let table = table(&engine, "t").await;
    commit(&engine, put(table, "p", "kept", "v")).await.unwrap();
    disk.tree_writes(Behaviour::Panic);
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    commit(&engine, put(table, "p", "other", "v")).await.unwrap();
    assert_eq!(value(&engine, table, "kept").await.as_deref(), Some("v"));
    assert!(!engine.stats().poisoned);
    disk.tree_writes(Behaviour::Work);
    eventually("it is folded", async || engine.stats().recent_bytes == 0).await;
    assert_eq!(all(&engine, table).await.unwrap().len(), 2);
    assert_eq!(engine.check().findings, Vec::<String>::new());
}

#[tokio::test]
async fn a_sync_that_fails_while_the_tree_is_reopened_poisons_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let engine = open_failing(directory.path(), system_options(), &disk);
    let table = table(&engine, "t").await;
    eventually("everything is folded", async || engine.stats().recent_bytes == 0).await;
    commit(&engine, put(table, "p", "kept", "v")).await.unwrap();
    // Folding finds no space, so the file is opened anew, which syncs it.
    disk.tree_writes(Behaviour::Full);
    disk.syncs(Behaviour::Fail);
    eventually("it is told", async || engine.stats().poisoned).await;
    assert_eq!(value(&engine, table, "kept").await.as_deref(), Some("v"));
    disk.tree_writes(Behaviour::Work);
    disk.syncs(Behaviour::Work);
    engine.close().await;
    drop(engine);
    let engine = open(directory.path());
    assert_eq!(value(&engine, table, "kept").await.as_deref(), Some("v"));
}

/// Something that panics where redb reads the file: a store whose rows are in no cache, and a disk that panics.
async fn with_panicking_reads(directory: &Path, disk: &Disk) -> (LocalEngine, TableId) {
    let engine = open(directory);
    let table = table(&engine, "t").await;
    for first in (0..5_000).step_by(100) {
        let put = |number| Op {
            row: format!("{number:05}").into(),
            expect: Expect::Any,
            effect: Effect::Put("a value of some length".into()),
        };
        let ops = (first..first + 100).map(put).collect();
        commit(&engine, Commit { table, partition: "p".into(), ops }).await.unwrap();
    }
    engine.close().await;
    drop(engine);
    let engine = open_failing(directory, system_options(), disk);
    disk.reads(Behaviour::Panic);
    (engine, table)
}

/// The disk recovers, and so does everything else, without a restart.
async fn check_recovered(engine: &LocalEngine, disk: &Disk, table: TableId) {
    disk.reads(Behaviour::Work);
    // While the file is being reopened, readers are told to come back.
    let all_are_read = async || all(engine, table).await.is_ok_and(|rows| rows.len() == 5_000);
    eventually("all rows are read again", all_are_read).await;
    assert!(get(engine, table, "02500").await.unwrap().is_some());
    commit(engine, put(table, "p", "new", "v")).await.unwrap();
    assert!(!engine.stats().poisoned);
    assert_eq!(engine.check().findings, Vec::<String>::new());
}

#[tokio::test]
async fn a_panic_while_a_row_is_read_is_damage_and_harms_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = with_panicking_reads(directory.path(), &disk).await;
    let outcome = get(&engine, table, "02500").await;
    assert!(matches!(&outcome, Err(ReadError::Damaged(what)) if what.contains("is broken")), "{outcome:?}");
    check_recovered(&engine, &disk, table).await;
}

#[tokio::test]
async fn a_panic_during_a_scan_is_damage_and_harms_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = with_panicking_reads(directory.path(), &disk).await;
    let outcome = all(&engine, table).await;
    assert!(matches!(&outcome, Err(ReadError::Damaged(what)) if what.contains("is broken")), "{outcome:?}");
    check_recovered(&engine, &disk, table).await;
}

#[tokio::test]
async fn a_panic_during_a_backup_is_damage_and_harms_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let (engine, table) = with_panicking_reads(directory.path(), &disk).await;
    let snapshot = engine.snapshot().await.unwrap();
    let mut sink = Collect::default();
    let outcome = snapshot.scan(table, &[KeyRange::all()], GENEROUS, &mut sink).await;
    assert!(matches!(&outcome, Err(ReadError::Damaged(_))), "{outcome:?}");
    drop(snapshot);
    check_recovered(&engine, &disk, table).await;
}

#[tokio::test]
async fn a_panic_of_the_sink_is_its_callers_own() {
    struct Panicking;
    impl Sink for Panicking {
        fn row(&mut self, _: Key<'_>, _: Version, _: &[u8]) -> Flow {
            panic!("as it was told to");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(open(directory.path()));
    let table = table(&*engine, "t").await;
    commit(&*engine, put(table, "p", "r", "v")).await.unwrap();
    let scanning = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.scan(table, &[KeyRange::all()], GENEROUS, &mut Panicking).await })
    };
    assert!(scanning.await.unwrap_err().is_panic());
    assert_eq!(all(&*engine, table).await.unwrap().len(), 1);
}
