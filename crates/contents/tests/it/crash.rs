//! Power cuts at every change of the disk, and disks that stop working.

use std::sync::Arc;

use bytes::Bytes;
use contents::{ContentError, ContentRef, ContentStore, LocalContents};
use fastrand::Rng;

use crate::disk::Disk;
use crate::support::*;

/// Short and long contents, one after the other and side by side; some are forgotten. Returns what was acknowledged, and
/// not asked to be forgotten.
async fn work(contents: &Arc<LocalContents>, seed: u64) -> Vec<(Vec<ContentRef>, Bytes)> {
    let mut random = Rng::with_seed(seed);
    let mut kept: Vec<(Vec<ContentRef>, Bytes)> = Vec::new();
    for step in 0..6 {
        let tasks: Vec<_> = (0..4)
            .map(|task| {
                let contents = contents.clone();
                let length = [1, 9_000, 70_000, 400_000, 1_200_000][random.usize(..5)];
                let bytes = match random.u8(..5) {
                    0 => vec![0; length].into(),
                    _ => bytes(step * 10 + task, length),
                };
                tokio::spawn(async move {
                    let written = try_write(&*contents, &bytes, 50_000).await.ok()?;
                    Some((written.contents, bytes))
                })
            })
            .collect();
        for task in tasks {
            kept.extend(task.await.unwrap());
        }
        if !kept.is_empty() && random.bool() {
            let (list, _) = kept.swap_remove(random.usize(..kept.len()));
            let _ = contents.forget(&list).await;
        }
        let mut abandoned = contents.writer(None);
        let _ = abandoned.push(bytes(99, 600_000)).await;
    }
    contents.close().await;
    kept
}

async fn check(disk: &Arc<Disk>, kept: &[(Vec<ContentRef>, Bytes)], what: &str) {
    let contents = on_disk(disk);
    for (list, bytes) in kept {
        let found =
            try_read(&contents, list, 0..u64::MAX).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found == *bytes, "{what}");
    }
    // Later contents take nothing from earlier ones, and a sweep leaves nothing else.
    let mut all = kept.to_vec();
    for (seed, length) in [(1, 10), (2, 300_000), (3, 900_000)] {
        let bytes = bytes(seed, length);
        all.push((write(&*contents, &bytes).await, bytes));
    }
    let mut keep: Vec<ContentRef> = all.iter().flat_map(|(list, _)| list.clone()).collect();
    sweep(&*contents, &keep).await;
    let mut found = stored(&*contents).await;
    found.sort();
    keep.sort();
    assert_eq!(found, keep, "{what}");
    drop(contents);
    let contents = on_disk(disk);
    for (list, bytes) in &all {
        assert!(read(&contents, list).await == *bytes, "{what}, after a sweep and a restart");
    }
}

async fn cut_everywhere(cannot_punch: bool) {
    let whole = Disk::new();
    work(&on_disk(&whole), 0).await;
    let changes = whole.changes();
    let mut random = Rng::with_seed(1);
    for after in (0..changes + 5).step_by(if cannot_punch { 19 } else { 7 }) {
        let disk = Disk::new();
        if cannot_punch {
            disk.cannot_punch();
        }
        disk.fail_after(after);
        let Ok(contents) = LocalContents::open_files(disk.clone(), small_options()) else { continue };
        let kept = work(&Arc::new(contents), after).await;
        check(&disk.crash(&mut random), &kept, &format!("power cut after {after} of {changes} changes"))
            .await;
    }
}

#[tokio::test]
async fn no_acknowledged_byte_is_lost_in_a_power_cut() {
    cut_everywhere(false).await;
}

#[tokio::test]
async fn no_acknowledged_byte_is_lost_in_a_power_cut_where_holes_cannot_be_punched() {
    cut_everywhere(true).await;
}

#[tokio::test]
async fn a_store_survives_power_cut_after_power_cut() {
    let mut random = Rng::with_seed(3);
    for seed in 0..3 {
        let (mut disk, mut kept) = (Disk::new(), Vec::new());
        for round in 0..5 {
            disk.fail_after(random.u64(..150));
            if let Ok(contents) = LocalContents::open_files(disk.clone(), small_options()) {
                kept.extend(work(&Arc::new(contents), seed * 10 + round).await);
            }
            disk = disk.crash(&mut random);
        }
        check(&disk, &kept, &format!("seed {seed}")).await;
    }
}

#[tokio::test]
async fn after_a_failed_sync_writes_are_refused_and_reads_go_on() {
    for length in [10, MIB] {
        let disk = Disk::new();
        let contents = on_disk(&disk);
        let list = write(&*contents, &bytes(1, length)).await;
        disk.fail_syncs(true);
        let failed = try_write(&*contents, &bytes(2, length), 10_000).await;
        assert!(matches!(failed, Err(ContentError::Unavailable(_))), "{failed:?}");
        disk.fail_syncs(false);
        let refused = try_write(&*contents, &bytes(2, length), 10_000).await;
        assert!(matches!(refused, Err(ContentError::Unavailable(_))), "{refused:?}");
        assert!(read(&contents, &list).await == bytes(1, length));
        drop(contents);
        let contents = on_disk(&disk);
        assert!(read(&contents, &list).await == bytes(1, length));
        write(&*contents, &bytes(2, length)).await;
    }
}

#[tokio::test]
async fn after_a_failed_write_others_go_on_in_another_extent() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    for length in [10, MIB] {
        let list = write(&*contents, &bytes(1, length)).await;
        disk.fail_writes(true);
        let failed = try_write(&*contents, &bytes(2, length), 10_000).await;
        assert!(matches!(failed, Err(ContentError::Io(_))), "{failed:?}");
        disk.fail_writes(false);
        let next = write(&*contents, &bytes(3, length)).await;
        assert!(read(&contents, &list).await == bytes(1, length));
        assert!(read(&contents, &next).await == bytes(3, length));
    }
}

#[tokio::test]
async fn a_store_of_another_id_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    write(&*local(directory.path()), &bytes(1, 10)).await;
    let other = contents::ContentsOptions { store: STORE + 1, ..options() };
    let refused = LocalContents::open(directory.path(), other);
    assert!(matches!(refused, Err(contents::local::ContentsOpenError::OtherStore { store: STORE, .. })));
    assert!(LocalContents::open(directory.path(), options()).is_ok());
}
