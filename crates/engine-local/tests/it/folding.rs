//! Folding in several transactions, and what goes on beside it.

use std::path::Path;
use std::sync::Arc;

use engine::env::FakeClock;
use engine::{Commit, Effect, Engine, Expect, Op, TableId};
use engine_local::{LocalEngine, LocalOptions};

use crate::disk::{Behaviour, Disk, open_failing};
use crate::support::*;

/// A fold of the rows below changes several times as many pages as half of this cache holds.
const SMALL_CACHE_BYTES: usize = 128 * 1024;
const ROW_COUNT: usize = 600;

fn folding_options() -> LocalOptions {
    let mut options = options(&Arc::new(FakeClock::default()));
    (options.folds_between_groups, options.cache_bytes_max) = (true, SMALL_CACHE_BYTES);
    // No syncs but those of transactions.
    options.unsynced_bytes_max = u64::MAX;
    options
}

/// Commits these effects, a hundred rows at a time.
async fn change(engine: &LocalEngine, table: TableId, effects: impl Iterator<Item = (usize, Effect)>) {
    let ops: Vec<Op> = effects
        .map(|(n, effect)| Op { row: format!("{n:05}").into(), expect: Expect::Any, effect })
        .collect();
    for ops in ops.chunks(100) {
        engine.commit(Commit { table, partition: "p".into(), ops: ops.to_vec() }).await.unwrap();
    }
}

fn long_value(text: &str) -> Effect {
    Effect::Put(text.repeat(400).into())
}

/// A store with two tables whose rows are in the tree.
async fn folded_store() -> (tempfile::TempDir, TableId, TableId) {
    let directory = tempfile::tempdir().unwrap();
    let engine = LocalEngine::open(directory.path(), folding_options()).unwrap();
    let (kept, dropped) = (table(&engine, "kept").await, table(&engine, "dropped").await);
    change(&engine, kept, (0..ROW_COUNT).map(|n| (2 * n, long_value("a")))).await;
    change(&engine, dropped, (0..ROW_COUNT).map(|n| (n, long_value("b")))).await;
    engine.close().await;
    drop(engine);
    (directory, kept, dropped)
}

/// Changes many rows, makes a table and drops another, which has everything folded. The disk fails after this many syncs
/// of the fold. Returns the rows that were acknowledged, the new table, and whether the disk failed.
async fn fold_until(
    directory: &Path,
    sync_count: u32,
    kept: TableId,
    dropped: TableId,
) -> (Rows, TableId, bool) {
    let disk = Disk::default();
    let engine = open_failing(directory, folding_options(), &disk);
    change(&engine, kept, (0..ROW_COUNT).map(|n| (2 * n + 1, long_value("c")))).await;
    change(&engine, kept, (0..ROW_COUNT).step_by(5).map(|n| (2 * n, Effect::Delete))).await;
    change(&engine, dropped, (0..ROW_COUNT).map(|n| (n, long_value("d")))).await;
    let new = table(&engine, "new").await;
    change(&engine, new, (0..ROW_COUNT).map(|n| (n, long_value("e")))).await;
    assert_eq!(engine.stats().fold_count, 0);
    let rows = all(&engine, kept).await.unwrap();
    // The first sync is that of the log.
    disk.fail_after_syncs(1 + sync_count);
    engine.drop_table(N, "dropped").await.unwrap();
    // After the fold the dropped table is swept, and that may fail too.
    let has_failed = engine.stats().fold_count == 0;
    assert!(engine.stats().poisoned || !has_failed);
    // After a failed sync redb reads only what is in its cache.
    if let Ok(now) = all(&engine, kept).await {
        assert_eq!(now, rows, "readers see the same whatever the fold does");
    }
    (rows, new, has_failed)
}

#[tokio::test]
async fn a_fold_that_is_cut_between_its_transactions_loses_nothing_and_is_completed() {
    let (store, kept, dropped) = folded_store().await;
    // Every place at the beginning, and every fifth later: a store is opened three times for each.
    for sync_count in (1..=10).chain((11..).step_by(5)) {
        let store = killed(store.path());
        let (rows, new, has_failed) = fold_until(store.path(), sync_count, kept, dropped).await;
        let store = killed(store.path());
        for round in 0..2 {
            let engine = LocalEngine::open(store.path(), folding_options()).unwrap();
            assert_eq!(all(&engine, kept).await.unwrap(), rows, "after {sync_count} syncs");
            assert_eq!(all(&engine, new).await.unwrap().len(), ROW_COUNT, "after {sync_count} syncs");
            assert!(engine.drop_table(N, "dropped").await.is_err(), "after {sync_count} syncs");
            assert_eq!(engine.check().findings, Vec::<String>::new(), "after {sync_count} syncs");
            // No id is given out twice, although the last transaction alone stores the counters.
            assert!(table(&engine, &format!("another{round}")).await > new);
            engine.close().await;
        }
        if !has_failed {
            // A single transaction has three syncs.
            assert!(sync_count > 20, "only {sync_count} syncs: that was one transaction");
            return;
        }
    }
}

#[tokio::test]
async fn a_failed_sync_in_the_middle_of_a_transaction_is_not_forgiven() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let mut options = folding_options();
    // Every write is synced.
    options.unsynced_bytes_max = 1;
    let engine = open_failing(directory.path(), options, &disk);
    let id = table(&engine, "t").await;
    table(&engine, "other").await;
    change(&engine, id, (0..50).map(|n| (n, long_value("a")))).await;
    // The log's, and the first of the fold's. The disk works again afterwards, but what it lost is unknown.
    disk.fail_after_syncs(2);
    engine.drop_table(N, "other").await.unwrap();
    disk.syncs(Behaviour::Work);
    assert!(engine.stats().poisoned);
    assert_eq!(engine.stats().fold_count, 0);
    assert_eq!(all(&engine, id).await.unwrap().len(), 50);
    let store = killed(directory.path());
    assert_eq!(all(&open(store.path()), id).await.unwrap().len(), 50);
}

#[tokio::test]
async fn the_log_gets_its_next_file_while_a_fold_takes_long() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let engine = open_failing(directory.path(), system_options(), &disk);
    let id = table(&engine, "t").await;
    table(&engine, "other").await;
    let spare = directory.path().join("commits.spare");
    let value = "v".repeat(60_000);
    commit(&engine, put(id, "p", "first", &value)).await.unwrap();
    eventually("the second segment is made in advance", async || spare.exists()).await;

    disk.tree_writes(Behaviour::Stall);
    engine.drop_table(N, "other").await.unwrap();
    eventually("the fold stalls", async || disk.is_stalled()).await;
    for n in 0..90 {
        commit(&engine, put(id, "p", &format!("{n}"), &value)).await.unwrap();
    }
    eventually("the third segment is made in advance", async || spare.exists()).await;
    assert!(disk.is_stalled());
    let lengths: Vec<u64> =
        segments(directory.path()).iter().map(|file| file.metadata().unwrap().len()).collect();
    assert_eq!(lengths, [64 * 1024, 16 * 1024 * 1024]);
    disk.tree_writes(Behaviour::Work);
    engine.close().await;
    assert_eq!(all(&engine, id).await.unwrap().len(), 91);
}
