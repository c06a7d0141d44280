//! Space: given back when contents are forgotten, and errors that say so when there is none.

use std::path::Path;
use std::time::Duration;

use contents::local::ExtentUsage;
use contents::{ContentError, ContentStore, Gauges};

use crate::disk::Disk;
use crate::support::*;

#[cfg(unix)]
fn allocated(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn forgetting_gives_space_back_to_the_file_system() {
    let directory = tempfile::tempdir().unwrap();
    let contents = local(directory.path());
    let (kept, gone) =
        (write(&*contents, &bytes(1, MIB)).await, write(&*contents, &bytes(2, 20 * MIB)).await);
    let small = write(&*contents, &bytes(3, 200 * KIB)).await;
    let before = allocated(directory.path());
    contents.forget(&gone).await.unwrap();
    contents.forget(&small).await.unwrap();
    // Punching happens in the background.
    contents.close().await;
    let after = allocated(directory.path());
    assert!(before - after >= 20 * MIB as u64 + 200 * KIB as u64, "{before} to {after}");
    assert!(read(&contents, &kept).await == bytes(1, MIB));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn short_contents_give_space_back_together() {
    let directory = tempfile::tempdir().unwrap();
    let contents = local(directory.path());
    let mut all = Vec::new();
    for seed in 0..200 {
        all.extend(write(&*contents, &bytes(seed, 10_000)).await);
    }
    let before = allocated(directory.path());
    contents.forget(&all[..100]).await.unwrap();
    contents.close().await;
    let after = allocated(directory.path());
    assert!(before - after >= 100 * 12_288, "{before} to {after}");
    assert_eq!(stored(&*contents).await, all[100..]);
}

#[tokio::test]
async fn usage_tells_which_extents_are_nearly_empty() {
    let disk = Disk::new();
    disk.cannot_punch();
    let contents = on_disk(&disk);
    let mut all = Vec::new();
    for seed in 0..20 {
        all.extend(write(&*contents, &bytes(seed, 200 * KIB)).await);
    }
    contents.forget(&all[1..10]).await.unwrap();
    let usage: Vec<ExtentUsage> = contents.usage().await.unwrap();
    assert_eq!(usage.iter().map(|extent| extent.chunk_count.unwrap()).sum::<u64>(), 11);
    assert_eq!(usage[0].chunk_count, Some(1));
    assert!(usage[0].allocated_bytes >= usage[0].size_bytes && !usage[0].is_active);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_sweep_gives_back_what_an_earlier_process_forgot() {
    let disk = Disk::new();
    disk.cannot_punch();
    let contents = on_disk(&disk);
    let (gone, kept) = (write(&*contents, &bytes(1, MIB / 2)).await, write(&*contents, &bytes(2, 10)).await);
    contents.forget(&gone).await.unwrap();
    contents.close().await;
    drop(contents);
    disk.can_punch();
    let contents = on_disk(&disk);
    let before = disk.used();
    assert_eq!(sweep(&*contents, &kept).await, 0);
    assert!(before - disk.used() >= MIB as u64 / 2);
}

#[tokio::test]
async fn an_extent_in_which_nothing_lives_is_removed() {
    for cannot_punch in [false, true] {
        let disk = Disk::new();
        if cannot_punch {
            disk.cannot_punch();
        }
        let contents = on_disk(&disk);
        let mut all = Vec::new();
        for seed in 0..60 {
            all.extend(write(&*contents, &bytes(seed, 200 * KIB)).await);
        }
        let count = disk.names().len();
        assert!(count >= 6, "{count}");
        contents.forget(&all).await.unwrap();
        contents.close().await;
        // Only the one that is being filled is left.
        assert_eq!(disk.names().len(), 1);
    }
}

#[tokio::test]
async fn extents_of_an_earlier_process_are_removed_too() {
    let disk = Disk::new();
    let mut all = Vec::new();
    let contents = on_disk(&disk);
    for seed in 0..60 {
        all.extend(write(&*contents, &bytes(seed, 200 * KIB)).await);
    }
    drop(contents);
    let contents = on_disk(&disk);
    let (last, rest) = all.split_last().unwrap();
    contents.forget(rest).await.unwrap();
    assert_eq!(disk.names().len(), 1);
    assert_eq!(stored(&*contents).await, [*last]);
    drop(contents);
    // Nobody told the store; a sweep finds out.
    let contents = on_disk(&disk);
    assert_eq!(sweep(&*contents, &[]).await, 1);
}

#[tokio::test]
async fn the_rest_of_a_reservation_is_used_or_given_back() {
    let disk = Disk::new();
    let contents = std::sync::Arc::new(contents::LocalContents::open_files(disk.clone(), options()).unwrap());
    // Reserves more than it needs, because nobody says how long it is.
    for seed in 0..40 {
        let mut writer = contents.writer(None);
        writer.push(bytes(seed, 300 * KIB)).await.unwrap();
        writer.finish().await.unwrap();
    }
    contents.close().await;
    let stored = 40 * 300 * KIB as u64;
    // Beside it, each lane has made room for a little more.
    let used = contents.gauges().extent_bytes;
    assert!(used < stored + 40 * 8192 + 5 * 4096, "{used} for {stored}");
}

/// The write of a writer that was dropped hangs while a sweep runs.
#[tokio::test]
async fn an_abandoned_chunk_is_counted_once() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    let long = || contents.writer(Some(700 * KIB as u64));
    // Both in the first lane, so they share an extent.
    let mut writer = long();
    writer.push(bytes(1, 700 * KIB)).await.unwrap();
    let kept = writer.finish().await.unwrap().contents;
    for _ in 1..contents::local::LANE_COUNT {
        drop(long());
    }
    let mut writer = long();
    writer.push(bytes(2, 300 * KIB)).await.unwrap();
    disk.hold_writes(true);
    let pushed = tokio::time::timeout(Duration::from_millis(50), writer.push(bytes(3, 300 * KIB))).await;
    drop((pushed, writer));
    let mut sweep = contents.sweep().await.unwrap();
    loop {
        let mut batch = next(&mut *sweep).await;
        if batch.is_empty() {
            break;
        }
        batch.retain(|content| !kept.contains(content));
        sweep.forget(&batch).await.unwrap();
    }
    drop(sweep);
    disk.hold_writes(false);
    contents.close().await;
    // Others fill the extent, which then could be removed.
    for seed in 0..20 {
        write(&*contents, &bytes(seed, MIB)).await;
    }
    contents.close().await;
    assert!(try_read(&contents, &kept, 0..u64::MAX).await.unwrap() == bytes(1, 700 * KIB));
    let usage = contents.usage().await.unwrap();
    assert_eq!(usage[0].chunk_count, Some(1));
}

#[tokio::test]
async fn a_full_disk_is_an_error_that_says_so_and_breaks_nothing() {
    for cannot_allocate in [false, true] {
        let disk = Disk::new();
        if cannot_allocate {
            disk.cannot_allocate();
        }
        disk.set_capacity(6 * MIB as u64);
        let contents = on_disk(&disk);
        let mut kept = Vec::new();
        let mut refused = 0;
        for seed in 0..40 {
            let length = [10_000, 400_000][seed as usize % 2];
            match try_write(&*contents, &bytes(seed, length), 50_000).await {
                Ok(written) => kept.push((written.contents, seed, length)),
                Err(ContentError::NoRoom(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused > 5 && kept.len() > 8, "{refused} refused, {} kept", kept.len());
        for (list, seed, length) in &kept {
            assert!(read(&contents, list).await == bytes(*seed, *length));
        }
        // Room comes back.
        let (gone, _, _) = kept.remove(1);
        contents.forget(&gone).await.unwrap();
        contents.close().await;
        if !cannot_allocate {
            write(&*contents, &bytes(1, 10_000)).await;
        }
        drop(contents);
        let contents = on_disk(&disk);
        for (list, seed, length) in &kept {
            assert!(read(&contents, list).await == bytes(*seed, *length));
        }
    }
}

#[tokio::test]
async fn abandoned_writers_on_a_full_disk_give_their_space_back() {
    let disk = Disk::new();
    disk.set_capacity(8 * MIB as u64);
    let contents = on_disk(&disk);
    for round in 0..30 {
        let mut writers = Vec::new();
        loop {
            let mut writer = contents.writer(None);
            if writer.push(bytes(1, 600_000)).await.is_err() {
                break;
            }
            writers.push(writer);
            assert!(writers.len() < 20, "the disk is never full");
        }
        assert!(!writers.is_empty(), "round {round}");
        drop(writers);
        contents.close().await;
    }
    let list = write(&*contents, &bytes(1, MIB)).await;
    assert!(read(&contents, &list).await == bytes(1, MIB));
}

#[tokio::test]
async fn memory_has_a_bound_too() {
    let contents = memory(1_000_000);
    let first = write(&*contents, &bytes(1, 600_000)).await;
    let refused = try_write(&*contents, &bytes(2, 600_000), 10_000).await;
    assert!(matches!(refused, Err(ContentError::NoRoom(_))));
    contents.forget(&first).await.unwrap();
    write(&*contents, &bytes(2, 900_000)).await;
    let Gauges { extent_bytes, written_bytes, .. } = contents.gauges();
    assert_eq!((extent_bytes, written_bytes), (900_000, 1_500_000));
}
