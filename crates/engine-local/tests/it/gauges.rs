//! What the engine says about itself.

use std::sync::Arc;

use engine::env::FakeClock;
use engine::{CommitError, Engine, Health};

use crate::disk::{Behaviour, Disk, open_failing};
use crate::support::*;

#[tokio::test]
async fn the_engine_counts_its_groups_and_knows_its_size() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let table = table(&engine, "t").await;
    let before = engine.gauges();
    for row in 0..10 {
        commit(&engine, put(table, "p", &row.to_string(), "v")).await.unwrap();
    }
    let after = engine.gauges();
    assert_eq!(after.health, Health::Ready);
    assert_eq!((after.group_count - before.group_count, after.commit_count - before.commit_count), (10, 10));
    assert_eq!((after.queue_count, after.queue_bytes, after.recent_count - before.recent_count), (0, 0, 10));
    assert!(after.recent_bytes > 0 && after.sync_seconds >= before.sync_seconds);
    let on_disk = |is_log: bool| -> u64 {
        let entries = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
        let ours = entries.filter(|entry| match entry.file_name().to_str().unwrap() {
            name if name.starts_with("commits") => is_log,
            name => !is_log && name == "tables.redb",
        });
        ours.map(|entry| entry.metadata().unwrap().len()).sum()
    };
    eventually("the sizes are those of the files", async || {
        let gauges = engine.gauges();
        (gauges.log_bytes, gauges.tree_bytes) == (on_disk(true), on_disk(false))
    })
    .await;
    assert!(engine.gauges().log_bytes > 0 && engine.gauges().tree_bytes > 0);
    engine.close().await;
    assert_eq!(engine.gauges().health, Health::Closed);
}

#[tokio::test]
async fn a_full_disk_and_a_failed_sync_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    let engine = open_failing(directory.path(), options, &disk);
    let table = table(&engine, "t").await;
    disk.writes(Behaviour::Full);
    assert_eq!(commit(&engine, put(table, "p", "r", "v")).await, Err(CommitError::Busy));
    assert_eq!(engine.gauges().health, Health::Full);
    disk.writes(Behaviour::Work);
    commit(&engine, put(table, "p", "r", "v")).await.unwrap();
    assert_eq!(engine.gauges().health, Health::Ready);
    disk.syncs(Behaviour::Fail);
    commit(&engine, put(table, "p", "r", "v")).await.unwrap_err();
    assert_eq!(engine.gauges().health, Health::Poisoned);
}
