//! The commit thread: groups, bounds, and the sweep of dropped tables.

use std::sync::Arc;
use std::time::Duration;

use engine::env::FakeClock;
use engine::{Commit, CommitError, Effect, Engine, Expect, Op, TableId};
use engine_local::{LocalEngine, LocalOptions};

use crate::disk::{Behaviour, Disk, open_failing};
use crate::support::*;

/// An engine whose disk the test controls, and a table in it.
async fn on_disk(
    change: impl FnOnce(&mut LocalOptions),
) -> (tempfile::TempDir, Disk, Arc<LocalEngine>, TableId) {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    change(&mut options);
    let engine = open_failing(directory.path(), options, &disk);
    let id = table(&engine, "t").await;
    (directory, disk, Arc::new(engine), id)
}

fn spawn(
    engine: &Arc<LocalEngine>,
    work: Commit,
) -> tokio::task::JoinHandle<Result<engine::Version, CommitError>> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.commit(work).await })
}

async fn stalled(disk: &Disk) {
    eventually("the commit thread waits for the disk", async || disk.is_stalled()).await;
}

#[tokio::test]
async fn commits_that_wait_become_one_group() {
    let (_directory, disk, engine, table) = on_disk(|_| {}).await;
    let before = engine.stats();
    disk.syncs(Behaviour::Stall);
    let first = spawn(&engine, put(table, "p", "first", "v"));
    stalled(&disk).await;
    let rest: Vec<_> = (0..64).map(|n| spawn(&engine, put(table, "p", &n.to_string(), "v"))).collect();
    let_tasks_run().await;
    // Nothing is visible or acknowledged before the sync.
    assert_eq!(get(&*engine, table, "first").await, Ok(None));
    assert!(!first.is_finished());
    disk.syncs(Behaviour::Work);
    first.await.unwrap().unwrap();
    for task in rest {
        task.await.unwrap().unwrap();
    }
    let after = engine.stats();
    assert_eq!(after.group_count - before.group_count, 2, "the first one, then all that waited");
    assert_eq!(after.request_count - before.request_count, 65);
    assert_eq!(after.queued_bytes, 0);
    assert_eq!(all(&*engine, table).await.unwrap().len(), 65);
}

#[tokio::test]
async fn later_commits_of_a_group_see_earlier_ones() {
    let (_directory, disk, engine, table) = on_disk(|_| {}).await;
    disk.syncs(Behaviour::Stall);
    let plug = spawn(&engine, put(table, "p", "plug", "v"));
    stalled(&disk).await;
    let one = |row: &str, expect, effect| {
        spawn(&engine, Commit::one(table, "p", Op { row: row.into(), expect, effect }))
    };
    let insert = one("r", Expect::Absent, Effect::Put("a".into()));
    let merge = one("r", Expect::Present, Effect::Merge("b".into()));
    let loser = one("r", Expect::Absent, Effect::Put("c".into()));
    let delete = one("plug", Expect::Present, Effect::Delete);
    let gone = one("plug", Expect::Present, Effect::Delete);
    let_tasks_run().await;
    disk.syncs(Behaviour::Work);
    plug.await.unwrap().unwrap();
    insert.await.unwrap().unwrap();
    let merged = merge.await.unwrap().unwrap();
    let found = engine::Found::Present(merged);
    assert_eq!(loser.await.unwrap(), Err(CommitError::Precondition { op: 0, found }));
    delete.await.unwrap().unwrap();
    let found = engine::Found::Absent;
    assert_eq!(gone.await.unwrap(), Err(CommitError::Precondition { op: 0, found }));
    assert_eq!(value(&*engine, table, "r").await.as_deref(), Some("ab"));
}

#[tokio::test]
async fn a_table_dropped_in_a_group_is_gone_for_the_rest_of_it() {
    let (_directory, disk, engine, table) = on_disk(|_| {}).await;
    disk.syncs(Behaviour::Stall);
    let plug = spawn(&engine, put(table, "p", "plug", "v"));
    stalled(&disk).await;
    let before = spawn(&engine, put(table, "p", "before", "v"));
    let dropping = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drop_table(N, "t").await }
    });
    let_tasks_run().await;
    let after = spawn(&engine, put(table, "p", "after", "v"));
    let_tasks_run().await;
    disk.syncs(Behaviour::Work);
    plug.await.unwrap().unwrap();
    before.await.unwrap().unwrap();
    assert_eq!(dropping.await.unwrap(), Ok(table));
    assert_eq!(after.await.unwrap(), Err(CommitError::TableGone));
}

#[tokio::test]
async fn a_group_that_changes_nothing_needs_no_disk() {
    let (_directory, disk, engine, table) = on_disk(|_| {}).await;
    let version = commit(&*engine, put(table, "p", "r", "v")).await.unwrap();
    let before = engine.stats();
    disk.syncs(Behaviour::Fail);
    disk.writes(Behaviour::Fail);
    let check = |expect| Commit::one(table, "p", Op { row: "r".into(), expect, effect: Effect::CheckOnly });
    assert!(commit(&*engine, check(Expect::Present)).await.unwrap() > version);
    let found = engine::Found::Present(version);
    assert_eq!(
        commit(&*engine, check(Expect::Absent)).await,
        Err(CommitError::Precondition { op: 0, found })
    );
    assert_eq!(commit(&*engine, put(TableId(999), "p", "r", "v")).await, Err(CommitError::TableGone));
    disk.syncs(Behaviour::Work);
    disk.writes(Behaviour::Work);
    assert_eq!(engine.stats(), before);
    commit(&*engine, put(table, "p", "r", "v")).await.unwrap();
}

#[tokio::test]
async fn a_full_queue_answers_busy_and_empties_again() {
    let (_directory, disk, engine, table) = on_disk(|options| options.commit_queue_max = 2).await;
    disk.syncs(Behaviour::Stall);
    let mut waiting = vec![spawn(&engine, put(table, "p", "under way", "v"))];
    stalled(&disk).await;
    waiting.push(spawn(&engine, put(table, "p", "queued 1", "v")));
    waiting.push(spawn(&engine, put(table, "p", "queued 2", "v")));
    let_tasks_run().await;
    assert_eq!(commit(&*engine, put(table, "p", "too many", "v")).await, Err(CommitError::Busy));
    assert_eq!(engine.drop_table(N, "t").await, Err(CommitError::Busy));
    disk.syncs(Behaviour::Work);
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    commit(&*engine, put(table, "p", "later", "v")).await.unwrap();
    assert_eq!(value(&*engine, table, "too many").await, None);
}

#[tokio::test]
async fn the_queue_is_bounded_in_bytes_too() {
    let (_directory, disk, engine, table) = on_disk(|options| options.commit_queue_bytes_max = 100_000).await;
    let big = "x".repeat(60_000);
    let huge = "x".repeat(200_000);
    // Even the biggest commit passes when it is alone.
    commit(&*engine, put(table, "p", "huge", &huge)).await.unwrap();
    disk.syncs(Behaviour::Stall);
    let first = spawn(&engine, put(table, "p", "first", &big));
    stalled(&disk).await;
    assert_eq!(commit(&*engine, put(table, "p", "second", &big)).await, Err(CommitError::Busy));
    let small = spawn(&engine, put(table, "p", "small", "v"));
    let_tasks_run().await;
    disk.syncs(Behaviour::Work);
    first.await.unwrap().unwrap();
    small.await.unwrap().unwrap();
    commit(&*engine, put(table, "p", "second", &big)).await.unwrap();
    assert_eq!(engine.stats().queued_bytes, 0);
}

#[tokio::test]
async fn a_small_commit_does_not_wait_until_there_is_room_for_large_ones() {
    const BOUND: usize = 16 << 20;
    const LARGE_COUNT: usize = 300;
    const SMALL_COUNT: usize = 5;
    let value = "x".repeat(200_000);
    let change = |options: &mut LocalOptions| {
        *options = LocalOptions {
            recent_bytes_max: BOUND,
            commit_queue_bytes_max: 2 * LARGE_COUNT * value.len(),
            ..system_options()
        };
    };
    let (_directory, disk, engine, table) = on_disk(change).await;
    // No fold ends, so memory fills up.
    disk.tree_writes(Behaviour::Stall);
    let large: Vec<_> =
        (0..LARGE_COUNT).map(|n| spawn(&engine, put(table, "p", &format!("large {n}"), &value))).collect();
    let finished = || large.iter().filter(|task| task.is_finished()).count();
    // What is being folded, and the part of the rest that is for large commits too.
    let room_bytes = (BOUND + BOUND / 4 * 7) as u64;
    eventually("the room for large ones is used up", async || engine.stats().recent_bytes >= room_bytes)
        .await;
    for n in 0..SMALL_COUNT {
        let small = put(table, "p", &format!("small {n}"), "v");
        let committed = tokio::time::timeout(Duration::from_secs(2), commit(&*engine, small)).await;
        committed.expect("it need not wait for the large ones").unwrap();
    }
    assert!(finished() < LARGE_COUNT, "large ones still wait");
    disk.tree_writes(Behaviour::Work);
    for task in large {
        task.await.unwrap().unwrap();
    }
    assert_eq!(all(&*engine, table).await.unwrap().len(), SMALL_COUNT + LARGE_COUNT);
}

#[tokio::test]
async fn large_commits_that_wait_leave_room_in_the_queue_for_small_ones() {
    let (_directory, disk, engine, table) =
        on_disk(|options| options.commit_queue_bytes_max = 16 << 20).await;
    disk.syncs(Behaviour::Stall);
    let mut waiting = vec![spawn(&engine, put(table, "p", "plug", "v"))];
    stalled(&disk).await;
    // Each is as long as a batch of a hundred ordinary rows. Together they would fill the queue.
    let value = "x".repeat(100_000);
    let large: Vec<_> =
        (0..200).map(|n| spawn(&engine, put(table, "p", &format!("large {n}"), &value))).collect();
    for _ in 0..10 {
        let_tasks_run().await;
    }
    waiting.extend((0..50).map(|n| spawn(&engine, put(table, "p", &format!("small {n}"), "v"))));
    let_tasks_run().await;
    disk.syncs(Behaviour::Work);
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    let mut refused = 0;
    for task in large {
        refused += usize::from(task.await.unwrap() == Err(CommitError::Busy));
    }
    assert!((30..100).contains(&refused), "{refused} large ones find no room");
}

async fn fill(engine: &LocalEngine, table: TableId, count: usize) {
    for from in (0..count).step_by(100) {
        let op = |n: usize| Op {
            row: format!("{n:06}").into(),
            expect: Expect::Any,
            effect: Effect::Put("value".into()),
        };
        let ops = (from..count.min(from + 100)).map(op).collect();
        commit(engine, Commit { table, partition: "p".into(), ops }).await.unwrap();
    }
}

/// A closed store with these tables and this many rows in each, all of them in the tree.
async fn filled(tables: &[(&str, usize)]) -> (tempfile::TempDir, Vec<TableId>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let mut ids = Vec::new();
    for (name, count) in tables {
        ids.push(table(&engine, name).await);
        fill(&engine, ids[ids.len() - 1], *count).await;
    }
    engine.close().await;
    (directory, ids)
}

#[tokio::test]
async fn the_rows_of_a_dropped_table_are_swept() {
    let (directory, ids) = filled(&[("doomed", 1234), ("kept", 300), ("next", 100)]).await;
    let engine = open(directory.path());
    engine.drop_table(N, "doomed").await.unwrap();
    engine.drop_table(N, "next").await.unwrap();
    // The next table is swept only when the first one is finished.
    eventually("the rows are swept", async || engine.stats().swept_row_count == 1334).await;
    for gone in [ids[0], ids[2]] {
        eventually("the rows are gone", async || all(&engine, gone).await.unwrap().is_empty()).await;
    }
    assert_eq!(all(&engine, ids[1]).await.unwrap().len(), 300);
    assert_eq!(engine.stats().swept_row_count, 1334);
    assert!(!engine.stats().poisoned);
}

#[tokio::test]
async fn rows_that_were_never_in_the_tree_go_without_a_sweep() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let (doomed, kept) = (table(&engine, "doomed").await, table(&engine, "kept").await);
    fill(&engine, doomed, 300).await;
    fill(&engine, kept, 200).await;
    engine.drop_table(N, "doomed").await.unwrap();
    eventually("the rows are gone", async || all(&engine, doomed).await.unwrap().is_empty()).await;
    assert_eq!(engine.stats().swept_row_count, 0);
    engine.close().await;
    drop(engine);
    let engine = open(directory.path());
    assert_eq!(all(&engine, kept).await.unwrap().len(), 200);
    assert_eq!(engine.check().findings, Vec::<String>::new());
}

#[tokio::test]
async fn a_sweep_goes_on_under_load() {
    let (directory, ids) = filled(&[("doomed", 3000), ("kept", 1)]).await;
    let engine = open(directory.path());
    engine.drop_table(N, "doomed").await.unwrap();
    let mut count = 0;
    while engine.stats().swept_row_count < 3000 {
        commit(&engine, put(ids[1], "p", &format!("load {count}"), "v")).await.unwrap();
        count += 1;
        assert!(count < 1_000_000, "it never ends");
    }
    assert_eq!(all(&engine, ids[1]).await.unwrap().len(), 1 + count);
}

#[tokio::test]
async fn a_sweep_goes_on_after_reopening() {
    let (directory, ids) = filled(&[("doomed", 2_000)]).await;
    let disk = Disk::default();
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    let engine = open_failing(directory.path(), options, &disk);
    // The drop is in the log and in the tree, whose transactions sync twice. The sweep after it fails.
    disk.fail_after_syncs(3);
    engine.drop_table(N, "doomed").await.unwrap();
    eventually("the sweep fails", async || engine.stats().poisoned).await;
    assert_eq!(engine.stats().swept_row_count, 0);
    drop(engine);

    let engine = open(directory.path());
    eventually("the rows are gone", async || all(&engine, ids[0]).await.unwrap().is_empty()).await;
    assert_eq!(engine.stats().swept_row_count, 2_000);
}
