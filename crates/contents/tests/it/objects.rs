//! Contents in an object store: what is particular to them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use contents::object::{LONG_OBJECT_BYTES, OBJECT_BYTES_MAX, POOL_BYTES, SHORT_OBJECT_COUNT_MAX};
use contents::{ContentError, ContentRef, ContentStore, ObjectContents, ObjectOptions, ObjectPlace};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt};

use crate::support::*;

fn object_options() -> ObjectOptions {
    let local = options();
    // Objects of an earlier process count as old.
    ObjectOptions { foreign_age: Duration::ZERO, ..ObjectOptions::new(STORE, local.random, local.now) }
}

pub async fn on(objects: Arc<dyn ObjectStore>) -> Arc<ObjectContents> {
    Arc::new(ObjectContents::open(objects, "some/prefix", object_options()).await.unwrap())
}

pub async fn in_memory() -> (Arc<ObjectContents>, Arc<InMemory>) {
    let objects = Arc::new(InMemory::new());
    (on(objects.clone()).await, objects)
}

pub async fn in_directory(directory: &Path) -> Arc<ObjectContents> {
    let place = ObjectPlace::parse(&format!("file://{}", directory.display())).unwrap();
    on(place.connect(&[]).unwrap()).await
}

/// The name of the object that has a content.
fn path_of(content: &ContentRef) -> ObjectPath {
    let id = format!("{:?}", content.id());
    ObjectPath::from(format!("some/prefix/{STORE:016x}/{}/{id}", &id[30..]))
}

#[tokio::test]
async fn a_long_content_is_several_objects_of_a_bounded_size() {
    let (contents, objects) = in_memory().await;
    let bytes = bytes(1, 20 * MIB + 5);
    let list = write(&*contents, &bytes).await;
    let lengths: Vec<u64> = list.iter().map(ContentRef::length).collect();
    assert_eq!(lengths, [OBJECT_BYTES_MAX, OBJECT_BYTES_MAX, 4 * MIB as u64 + 5]);
    for content in &list {
        let meta = objects.head(&path_of(content)).await.unwrap();
        assert_eq!(meta.size, content.length() + 4 * content.length().div_ceil(64 * KIB as u64));
    }
    assert!(read(&contents, &list).await == bytes);
}

#[tokio::test]
async fn any_changed_byte_and_any_other_size_is_an_error_and_never_other_bytes() {
    let (contents, objects) = in_memory().await;
    let bytes = bytes(1, 200 * KIB);
    let list = write(&*contents, &bytes).await;
    let path = path_of(&list[0]);
    let whole = objects.get(&path).await.unwrap().bytes().await.unwrap();
    for at in (0..whole.len()).step_by(997) {
        let mut changed = whole.to_vec();
        changed[at] ^= 0x40;
        objects.put(&path, changed.into()).await.unwrap();
        let read = try_read(&contents, &list, 0..u64::MAX).await;
        assert!(matches!(read, Err(ContentError::Damaged(_))), "{at}: {:?}", read.map(|bytes| bytes.len()));
    }
    for other in [&whole[..whole.len() - 1], &whole[..64 * KIB + 4], &[&whole[..], b"x"].concat()] {
        objects.put(&path, Bytes::copy_from_slice(other).into()).await.unwrap();
        let read = try_read(&contents, &list, 0..10).await;
        assert!(matches!(read, Err(ContentError::Damaged(_))), "{read:?}");
    }
    // Another content under this one's name.
    let other = write(&*contents, &crate::support::bytes(2, 200 * KIB)).await;
    let other = objects.get(&path_of(&other[0])).await.unwrap().bytes().await.unwrap();
    objects.put(&path, other.into()).await.unwrap();
    assert!(matches!(try_read(&contents, &list, 0..10).await, Err(ContentError::Damaged(_))));
    objects.put(&path, whole.into()).await.unwrap();
    assert!(read(&contents, &list).await == bytes);
}

#[tokio::test]
async fn many_writers_share_their_memory_and_none_waits_for_another_ones_client() {
    let (contents, _) = in_memory().await;
    let piece = bytes(1, 4 * MIB);
    // So many would need four times the memory that there is, and none of them is finished.
    let count = (4 * POOL_BYTES / piece.len() as u64) as usize;
    let mut writers = Vec::new();
    for _ in 0..count {
        let mut writer = contents.writer(None);
        let pushed = tokio::time::timeout(Duration::from_secs(30), writer.push(piece.clone())).await;
        pushed.expect("nobody waits for memory").unwrap();
        writers.push(writer);
    }
    for writer in writers {
        let written = writer.finish().await.unwrap();
        assert_eq!(written.contents.iter().map(ContentRef::length).sum::<u64>(), piece.len() as u64);
        assert!(read(&contents, &written.contents).await == piece);
        contents.forget(&written.contents).await.unwrap();
    }
}

#[tokio::test]
async fn a_content_has_few_objects_however_short_memory_is() {
    let (contents, _) = in_memory().await;
    // Clients that have sent a lot and send no more. The first block of each needs no memory of the pool, so one more takes the rest.
    let block = 64 * KIB as u64;
    let count = POOL_BYTES / OBJECT_BYTES_MAX;
    let mut slow = Vec::new();
    for length in (0..count).map(|_| OBJECT_BYTES_MAX).chain([(count + 1) * block]) {
        let mut writer = contents.writer(None);
        writer.push(vec![0; length as usize].into()).await.unwrap();
        slow.push(writer);
    }
    let mut writer = contents.writer(None);
    let piece = bytes(1, 64 * KIB);
    let count = SHORT_OBJECT_COUNT_MAX;
    for _ in 0..count {
        let pushed = tokio::time::timeout(Duration::from_secs(30), writer.push(piece.clone())).await;
        pushed.expect("short objects need no memory").unwrap();
    }
    // From here on it waits, until another one's memory is free.
    let long = 3 * LONG_OBJECT_BYTES as usize;
    let rest = bytes(2, long);
    assert!(tokio::time::timeout(Duration::from_millis(50), writer.push(rest.clone())).await.is_err());
    drop(writer);
    let mut writer = contents.writer(None);
    for _ in 0..count {
        writer.push(piece.clone()).await.unwrap();
    }
    drop(slow.remove(0));
    let pushed = tokio::time::timeout(Duration::from_secs(30), writer.push(rest)).await;
    pushed.expect("there is memory").unwrap();
    let written = writer.finish().await.unwrap();
    let longs = written.contents.iter().filter(|content| content.length() >= LONG_OBJECT_BYTES).count();
    assert!(
        (2..=3).contains(&longs) && written.contents.len() <= count + 4,
        "{longs} of {}",
        written.contents.len()
    );
}

#[tokio::test]
async fn objects_of_other_processes_are_swept_when_they_are_old() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let first = on(objects.clone()).await;
    let list = write(&*first, &bytes(1, 10)).await;
    // The store tells real times; a clock that is an hour ahead of them sees objects that are an hour old.
    let now = 1_000 * std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 3_600_000;
    for (age, count) in [(Duration::from_secs(24 * 3600), 0), (Duration::from_secs(1800), 1)] {
        let options = ObjectOptions { foreign_age: age, now: Arc::new(move || now), ..object_options() };
        let second = ObjectContents::open(objects.clone(), "some/prefix", options).await.unwrap();
        assert_eq!(stored(&second).await.len(), count);
    }
    assert_eq!(stored(&*first).await, list, "its own are known by their numbers");
}

#[tokio::test]
async fn stores_that_share_a_bucket_do_not_see_each_other() {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let first = on(objects.clone()).await;
    let list = write(&*first, &bytes(1, 10)).await;
    let options = ObjectOptions { store: 99, ..object_options() };
    let second = Arc::new(ObjectContents::open(objects, "some/prefix", options).await.unwrap());
    assert!(stored(&*second).await.is_empty());
    assert_eq!(try_read(&second, &list, 0..1).await, Err(ContentError::NotFound));
}

#[tokio::test]
async fn a_content_that_is_put_slowly_is_put_several_objects_at_a_time() {
    let config = ThrottleConfig { wait_put_per_call: Duration::from_secs(2), ..ThrottleConfig::default() };
    let contents = on(Arc::new(ThrottledStore::new(InMemory::new(), config))).await;
    let bytes = bytes(1, 32 * MIB);
    let began = tokio::time::Instant::now();
    let list = write(&*contents, &bytes).await;
    assert_eq!(list.len(), 4);
    assert!(began.elapsed() < Duration::from_secs(6), "one after the other: {:?}", began.elapsed());
}
