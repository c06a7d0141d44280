//! Helpers for these tests: stores, short forms of writing and reading.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use contents::local::ExtentFiles;
use contents::{
    ContentError, ContentReader, ContentRef, ContentStore, ContentStream, ContentWriter, ContentsOptions,
    LocalContents, MemoryContents, StoredContent, Sweep, Written,
};

pub const STORE: u64 = 0x1234;
pub const KIB: usize = 1024;
pub const MIB: usize = 1024 * 1024;

/// Numbers that differ from call to call and from store to store, and time that passes with every call.
pub fn options() -> ContentsOptions {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let time = AtomicU64::new(1_700_000_000_000);
    let random = || NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ContentsOptions::new(STORE, Arc::new(random), Arc::new(move || time.fetch_add(1, Ordering::Relaxed)))
}

pub fn small_options() -> ContentsOptions {
    ContentsOptions { extent_bytes: 2 * MIB as u64, ..options() }
}

pub fn local(directory: &Path) -> Arc<LocalContents> {
    Arc::new(LocalContents::open(directory, options()).unwrap())
}

pub fn local_small(directory: &Path) -> Arc<LocalContents> {
    Arc::new(LocalContents::open(directory, small_options()).unwrap())
}

pub fn on_disk(files: &Arc<impl ExtentFiles>) -> Arc<LocalContents> {
    Arc::new(LocalContents::open_files(files.clone(), small_options()).unwrap())
}

pub fn memory(bytes_max: u64) -> Arc<MemoryContents> {
    Arc::new(MemoryContents::new(bytes_max, Arc::new(|| 5)))
}

/// Bytes that differ from place to place.
pub fn bytes(seed: u64, length: usize) -> Bytes {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes.into()
}

/// Writes in pieces of this size.
pub async fn try_write(
    contents: &dyn ContentStore,
    bytes: &Bytes,
    piece: usize,
) -> Result<Written, ContentError> {
    let mut writer = contents.writer(Some(bytes.len() as u64));
    let mut rest = bytes.clone();
    while !rest.is_empty() {
        let piece = rest.split_to(piece.min(rest.len()));
        writer.push(piece).await?;
    }
    writer.finish().await
}

pub async fn write(contents: &dyn ContentStore, bytes: &Bytes) -> Vec<ContentRef> {
    try_write(contents, bytes, 100_000).await.unwrap().contents
}

pub async fn try_read(
    contents: &Arc<impl ContentStore>,
    list: &[ContentRef],
    range: std::ops::Range<u64>,
) -> Result<Vec<u8>, ContentError> {
    let contents: Arc<dyn ContentStore> = contents.clone();
    let pin = contents.pin();
    let mut stream = ContentStream::new(contents, list.into(), range, pin);
    let mut all = Vec::new();
    while let Some(piece) = stream.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

pub async fn read(contents: &Arc<impl ContentStore>, list: &[ContentRef]) -> Vec<u8> {
    try_read(contents, list, 0..u64::MAX).await.unwrap()
}

/// What a reader has still to return.
pub async fn rest(reader: &mut dyn ContentReader) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = reader.next().await {
        all.extend_from_slice(&piece.unwrap());
    }
    all
}

/// Writes without finishing.
pub async fn begin(contents: &dyn ContentStore, bytes: Bytes) -> Box<dyn ContentWriter> {
    let mut writer = contents.writer(None);
    writer.push(bytes).await.unwrap();
    writer
}

/// The next that a sweep enumerates.
pub async fn next(sweep: &mut dyn Sweep) -> Vec<ContentRef> {
    let batch: Vec<StoredContent> = sweep.next().await.unwrap();
    batch.iter().map(|stored| stored.content).collect()
}

/// Everything that a sweep enumerates.
pub async fn stored(contents: &dyn ContentStore) -> Vec<ContentRef> {
    let mut sweep = contents.sweep().await.unwrap();
    let mut all = Vec::new();
    loop {
        let batch = next(&mut *sweep).await;
        if batch.is_empty() {
            return all;
        }
        all.extend(batch);
    }
}

/// Forgets everything that is not in this list.
pub async fn sweep(contents: &dyn ContentStore, keep: &[ContentRef]) -> usize {
    let mut sweep = contents.sweep().await.unwrap();
    let mut count = 0;
    loop {
        let batch = next(&mut *sweep).await;
        if batch.is_empty() {
            contents.close().await;
            return count;
        }
        let gone: Vec<ContentRef> = batch.into_iter().filter(|content| !keep.contains(content)).collect();
        count += gone.len() - sweep.forget(&gone).await.unwrap();
    }
}
