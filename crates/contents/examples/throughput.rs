//! What contents cost beside plain files, as ratios within one run.
//!
//! `cargo run --release -p lazulite-contents --example throughput [DIRECTORY]` works in a temporary directory below
//! DIRECTORY, which should be on the disk that matters.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use contents::{ContentRef, ContentStore, ContentStream, ContentsOptions, LocalContents};

const LONG_BYTES: usize = 64 * 1024 * 1024;
const SHORT_BYTES: usize = 4 * 1024;
const SHORT_COUNT: usize = 20_000;
const IN_FLIGHT: usize = 64;
const ROUNDS: usize = 7;
/// As a server receives them.
const PUSH_BYTES: usize = 64 * 1024;

// An example may look at the clock; the library may not.
#[allow(clippy::disallowed_methods)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn noise(length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    bytes.into()
}

/// As `dd bs=1M conv=fdatasync` does.
fn plain_write(directory: &Path, bytes: &[u8]) -> Duration {
    let path = directory.join("plain");
    let start = now();
    let mut file = File::create(&path).expect("a file");
    for part in bytes.chunks(1024 * 1024) {
        file.write_all(part).expect("a write");
    }
    file.sync_data().expect("a sync");
    let took = start.elapsed();
    std::fs::remove_file(path).expect("removing a file");
    took
}

async fn write(contents: &dyn ContentStore, bytes: &Bytes) -> Vec<ContentRef> {
    let mut writer = contents.writer(Some(bytes.len() as u64));
    let mut rest = bytes.clone();
    while !rest.is_empty() {
        let part = rest.split_to(rest.len().min(PUSH_BYTES));
        writer.push(part).await.expect("a write");
    }
    let written = writer.finish().await.expect("a sync");
    written.pending.adopt();
    written.contents
}

async fn read(contents: &Arc<LocalContents>, list: &[ContentRef]) -> usize {
    let pin = contents.pin();
    let mut stream = ContentStream::new(contents.clone(), list.into(), 0..u64::MAX, pin);
    let mut count = 0;
    while let Some(piece) = stream.next().await {
        count += piece.expect("a read").len();
    }
    count
}

/// Writes of the size of a short content, each with its own sync, one after the other.
fn plain_syncs(directory: &Path, bytes: &[u8], count: usize) -> f64 {
    let mut file = File::create(directory.join("syncs")).expect("a file");
    file.set_len((count * bytes.len()) as u64).expect("a length");
    let start = now();
    for _ in 0..count {
        file.write_all(bytes).expect("a write");
        file.sync_data().expect("a sync");
    }
    count as f64 / start.elapsed().as_secs_f64()
}

async fn puts(contents: &Arc<LocalContents>, bytes: &Bytes) -> (f64, Vec<Vec<ContentRef>>) {
    let start = now();
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (contents, bytes) = (contents.clone(), bytes.clone());
            tokio::spawn(async move {
                let mut lists = Vec::new();
                for _ in 0..SHORT_COUNT / IN_FLIGHT {
                    lists.push(write(&*contents, &bytes).await);
                }
                lists
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("a task"));
    }
    (all.len() as f64 / start.elapsed().as_secs_f64(), all)
}

fn main() {
    let parent = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let directory = tempfile::tempdir_in(parent).expect("a directory");
    let path = directory.path();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let options = ContentsOptions::new(1, Arc::new(|| fastrand::u64(..)), Arc::new(|| 0));
    let contents = Arc::new(LocalContents::open(&path.join("contents"), options).expect("a store"));
    let long = noise(LONG_BYTES);
    let mib = LONG_BYTES as f64 / 1024.0 / 1024.0;

    // In turns, so that both meet the same disk.
    let (mut plain, mut ours, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(plain_write(path, &long));
        let start = now();
        lists.push(runtime.block_on(async {
            tokio::spawn({
                let (contents, long) = (contents.clone(), long.clone());
                async move { write(&*contents, &long).await }
            })
            .await
            .expect("a task")
        }));
        ours.push(start.elapsed());
    }
    let (plain, ours) = (median(plain), median(ours));
    println!(
        "64 MiB written and synced: {:.0} MiB/s, plain {:.0} MiB/s, ratio {:.2}",
        mib / ours,
        mib / plain,
        plain / ours
    );

    // From the memory of the operating system, as both would be served.
    let file_path = path.join("plain");
    std::fs::write(&file_path, &long).expect("a file");
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for list in &lists {
        let mut file = File::open(&file_path).expect("a file");
        let start = now();
        let mut count = 0;
        while count < LONG_BYTES {
            let mut piece = vec![0; contents::local::READ_BYTES];
            count += file.read(&mut piece).expect("a read");
            std::hint::black_box(Bytes::from(piece));
        }
        plain.push(start.elapsed());
        let start = now();
        let (contents, list) = (contents.clone(), list.clone());
        assert_eq!(
            runtime.block_on(async {
                tokio::spawn(async move { read(&contents, &list).await }).await.expect("a task")
            }),
            LONG_BYTES
        );
        ours.push(start.elapsed());
    }
    let (plain, ours) = (median(plain), median(ours));
    println!(
        "64 MiB read and checked: {:.0} MiB/s, plain {:.0} MiB/s, ratio {:.2}",
        mib / ours,
        mib / plain,
        plain / ours
    );

    let short = noise(SHORT_BYTES);
    let syncs = plain_syncs(path, &short, 500);
    let before = contents.gauges().sync_count;
    let (rate, lists) = runtime.block_on(puts(&contents, &short));
    let groups = contents.gauges().sync_count - before;
    println!(
        "4 KiB written and synced, {IN_FLIGHT} at once: {rate:.0}/s, one write and sync after the other {syncs:.0}/s, ratio {:.1}; {:.1} a sync",
        rate / syncs,
        lists.len() as f64 / groups as f64
    );

    let start = now();
    let sum: usize = runtime.block_on(async {
        let contents = contents.clone();
        let lists = lists.clone();
        tokio::spawn(async move {
            let mut sum = 0;
            for list in &lists {
                sum += read(&contents, list).await;
            }
            sum
        })
        .await
        .expect("a task")
    });
    assert_eq!(sum, lists.len() * SHORT_BYTES);
    println!(
        "4 KiB read and checked: {:.2} us each",
        start.elapsed().as_secs_f64() * 1e6 / lists.len() as f64
    );

    let start = now();
    let all: Vec<ContentRef> = lists.into_iter().flatten().collect();
    runtime.block_on(contents.forget(&all)).expect("forgetting");
    println!("4 KiB forgotten: {:.2} us each", start.elapsed().as_secs_f64() * 1e6 / all.len() as f64);
}
