//! Many at once, and what each costs.

use std::sync::Arc;

use bytes::Bytes;
use contents::local::{OPEN_FILE_COUNT_MAX, POOL_BYTES, READ_BYTES, WRITER_COUNT_MAX};
use contents::{ContentError, ContentStore};

use crate::disk::Disk;
use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_at_once_all_write_their_own_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let contents = local(directory.path());
    let tasks: Vec<_> = (0..300u64)
        .map(|seed| {
            let contents = contents.clone();
            tokio::spawn(async move {
                let length = [100, 50_000, 300_000, 1_000_000][seed as usize % 4];
                let list = write(&*contents, &bytes(seed, length)).await;
                (list, seed, length)
            })
        })
        .collect();
    for task in tasks {
        let (list, seed, length) = task.await.unwrap();
        assert!(read(&contents, &list).await == bytes(seed, length), "{seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_contents_share_syncs() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    write(&*contents, &bytes(1, 1)).await;
    let before = disk.sync_count();
    let tasks: Vec<_> = (0..500u64)
        .map(|seed| {
            let contents = contents.clone();
            tokio::spawn(async move { write(&*contents, &bytes(seed, 100)).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let syncs = disk.sync_count() - before;
    assert!(syncs < 400, "{syncs} syncs for 500 contents");
}

#[tokio::test]
async fn a_small_range_reads_few_bytes() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    let long = write(&*contents, &bytes(1, MIB - 65_536)).await;
    let short = write(&*contents, &bytes(2, 4_096)).await;
    disk.take_read_bytes();
    try_read(&contents, &long, 500_000..500_010).await.unwrap();
    let bytes = disk.take_read_bytes();
    assert!(bytes <= 64 * 1024 + 4096, "{bytes}");
    try_read(&contents, &short, 0..4_096).await.unwrap();
    let bytes = disk.take_read_bytes();
    assert!(bytes <= 4_096 + 64, "{bytes}");
    read(&contents, &long).await;
    let bytes = disk.take_read_bytes();
    assert!(bytes <= MIB as u64, "{bytes}: nothing is read twice");
}

#[tokio::test]
async fn opening_a_store_reads_little_of_full_extents() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    for seed in 0..100 {
        write(&*contents, &bytes(seed, 200 * KIB)).await;
    }
    drop(contents);
    disk.take_read_bytes();
    let contents = on_disk(&disk);
    let bytes = disk.take_read_bytes();
    // One extent was being filled: 2 MiB at most. Of the others the heads are read.
    assert!(bytes <= 2 * MIB as u64 + 64 * 4096, "{bytes}");
    assert!(contents.gauges().extent_count > 8);
}

#[tokio::test]
async fn few_files_are_open() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    let mut all = Vec::new();
    for seed in 0..OPEN_FILE_COUNT_MAX as u64 + 30 {
        // Each fills an extent.
        all.push(write(&*contents, &bytes(seed, 2 * MIB - 300 * KIB)).await);
    }
    for _ in 0..2 {
        for list in &all {
            try_read(&contents, list, 0..10).await.unwrap();
        }
    }
    assert!(disk.names().len() > OPEN_FILE_COUNT_MAX);
    assert!(contents.gauges().open_file_count as usize <= OPEN_FILE_COUNT_MAX);
    assert!(disk.open_most() <= OPEN_FILE_COUNT_MAX + 8, "{}", disk.open_most());
}

/// Resident memory of this process.
#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_slow_readers_cost_their_buffers() {
    let directory = tempfile::tempdir().unwrap();
    let contents = local(directory.path());
    let list = write(&*contents, &bytes(1, 32 * MIB)).await;
    let before = resident_bytes();
    let mut readers = Vec::new();
    for number in 0..1_000 {
        let content = &list[number % list.len()];
        let mut reader = contents.open(content, 0..content.length(), contents.pin());
        let piece = reader.next().await.unwrap().unwrap();
        readers.push((reader, piece));
    }
    let taken = resident_bytes().saturating_sub(before);
    assert!(taken < 1_000 * (READ_BYTES + 16 * KIB) + 64 * MIB, "{taken}");
    // Those who wait without a piece cost next to nothing.
    let waiting: Vec<_> = readers.into_iter().map(|(reader, _)| reader).collect();
    assert_eq!(contents.gauges().pin_count, 1_000);
    drop(waiting);
    assert_eq!(contents.gauges().pin_count, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_stall_do_not_stop_others() {
    let directory = tempfile::tempdir().unwrap();
    let contents = local(directory.path());
    // They take the whole pool, and then send nothing more.
    let mut stalled = Vec::new();
    for seed in 0..(POOL_BYTES / (192 * KIB) + 20) as u64 {
        let mut writer = contents.writer(None);
        writer.push(bytes(seed, 250 * KIB)).await.unwrap();
        stalled.push(writer);
    }
    let bytes = bytes(1, 3 * MIB);
    let list =
        tokio::time::timeout(std::time::Duration::from_secs(60), write(&*contents, &bytes)).await.unwrap();
    assert!(read(&contents, &list).await == bytes);
}

#[tokio::test]
async fn too_many_writers_are_refused() {
    let contents = on_disk(&Disk::new());
    let writers: Vec<_> = (0..WRITER_COUNT_MAX).map(|_| contents.writer(None)).collect();
    let mut refused = contents.writer(None);
    assert_eq!(refused.push(Bytes::from_static(b"a")).await, Err(ContentError::Busy));
    drop(writers);
    write(&*contents, &bytes(1, 10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_beside_writers_forgets_nothing_of_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let contents = local_small(directory.path());
    let rows: Arc<std::sync::Mutex<Vec<contents::ContentRef>>> = Arc::default();
    let writers: Vec<_> = (0..8u64)
        .map(|task| {
            let (contents, rows) = (contents.clone(), rows.clone());
            tokio::spawn(async move {
                for step in 0..12 {
                    let length = [2_000, 400_000][step as usize % 2];
                    let written =
                        try_write(&*contents, &bytes(task * 100 + step, length), 60_000).await.unwrap();
                    tokio::task::yield_now().await;
                    rows.lock().unwrap().extend(&written.contents);
                    written.pending.adopt();
                }
            })
        })
        .collect();
    while writers.iter().any(|writer| !writer.is_finished()) {
        let mut sweep = contents.sweep().await.unwrap();
        let keep = rows.lock().unwrap().clone();
        loop {
            let batch = sweep.next().await.unwrap();
            if batch.is_empty() {
                break;
            }
            let gone: Vec<_> =
                batch.iter().map(|stored| stored.content).filter(|content| !keep.contains(content)).collect();
            assert!(gone.is_empty());
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let rows = rows.lock().unwrap().clone();
    for content in &rows {
        contents::verify(&*contents, content).await.unwrap();
    }
    assert_eq!(stored(&*contents).await.len(), rows.len());
}
