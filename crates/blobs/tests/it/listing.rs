//! Lists seek: they do not walk what they do not show.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blobs::{BlobEntry, BlobOptions, BlobPlace, NewBlob, NewContainer, Preconditions};
use engine::env::{Clock, FakeClock};
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Budget, Engine, Flow, Key, KeyRange, OwnedKey, ReadError, Share, Sink, TableId, Version};
use protocol::blob::block_list::BlockSource;
use protocol::blob::list_parameters::FindBlobsParameters;
use protocol::blob::{BlobName, ContainerName, Tags};
use protocol::common::query::Query;

use crate::support::*;

/// Counts the rows that scans look at.
struct Counting {
    inner: MemoryEngine,
    rows: Arc<AtomicU64>,
}

struct CountingSink<'s>(&'s mut dyn Sink, &'s AtomicU64);

impl Sink for CountingSink<'_> {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.row(key, version, value)
    }
}

#[async_trait]
impl Wrapper for Counting {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        self.inner.scan(table, ranges, budget, &mut CountingSink(sink, &self.rows)).await
    }
}

async fn counting() -> (Setup, Arc<AtomicU64>) {
    let clock = Arc::new(FakeClock::default());
    let rows = Arc::new(AtomicU64::new(0));
    let engine = Counting { inner: MemoryEngine::new(FAMILIES, clock.clone()), rows: rows.clone() };
    let setup = setup_on(Arc::new(Wrapped(engine)), memory_contents(), clock, BlobOptions::default()).await;
    (setup, rows)
}

#[tokio::test]
async fn a_delimiter_skips_everything_below_a_prefix_in_one_step() {
    let (setup, rows) = counting().await;
    for directory in 0..10 {
        for file in 0..200 {
            setup.put(&format!("d{directory}/{file:04}"), b"x").await;
        }
    }
    setup.put("last", b"x").await;
    rows.store(0, Ordering::Relaxed);
    let page = setup.list("delimiter=/").await;
    assert_eq!(page.entries.len(), 11);
    assert!(page.next.is_none());
    let seen = rows.load(Ordering::Relaxed);
    assert!(seen < 40, "{seen} rows for 11 entries");
}

#[tokio::test]
async fn a_page_costs_the_same_wherever_it_begins() {
    let (setup, rows) = counting().await;
    for number in 0..3000 {
        setup.put(&format!("n{number:05}"), b"x").await;
    }
    rows.store(0, Ordering::Relaxed);
    let page = setup.list("prefix=n02&maxresults=50").await;
    assert_eq!(page.entries.len(), 50);
    assert!(rows.load(Ordering::Relaxed) < 60, "{rows:?}");
    assert_eq!(page.next.unwrap().name, "n02050");
}

#[tokio::test]
async fn staged_blocks_segments_and_snapshots_are_skipped() {
    let (setup, rows) = counting().await;
    let name = BlobName::parse("a").unwrap();
    setup.put("a", b"x").await;
    for number in 0..300 {
        let mut body = Pieces::of(b"block");
        let pre = Preconditions::default();
        setup.service.put_block(setup.place(&name), &block_id(number), body.body(), pre).await.unwrap();
    }
    for _ in 0..100 {
        setup.service.snapshot_blob(setup.place(&name), None, Preconditions::default()).await.unwrap();
    }
    setup.put("b", b"x").await;
    rows.store(0, Ordering::Relaxed);
    assert_eq!(setup.list_all("").await, ["a", "b"]);
    assert!(rows.load(Ordering::Relaxed) < 40, "{rows:?}");
    assert_eq!(setup.list_all("include=snapshots&maxresults=7").await.len(), 102);
}

#[tokio::test]
async fn pages_join_without_gaps_or_repetitions() {
    let setup = setup().await;
    let names = ["a", "a/1", "a/2", "a/b/c", "a0", "b/", "b/x", "c", "ä/1", "ä/2", "\u{10000}/x", "\u{e000}"];
    for name in names {
        setup.put(name, name.as_bytes()).await;
    }
    let flat = setup.list_all("").await;
    let mut sorted = names.to_vec();
    sorted.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    assert_eq!(flat, sorted);
    let grouped = ["a", "a/*", "a0", "b/*", "c", "ä/*", "\u{10000}/*", "\u{e000}"];
    for count in 1..15 {
        assert_eq!(setup.list_all(&format!("maxresults={count}")).await, sorted, "{count}");
        assert_eq!(setup.list_all(&format!("delimiter=/&maxresults={count}")).await, grouped, "{count}");
    }
    assert_eq!(setup.list_all("prefix=a/&delimiter=/&maxresults=1").await, ["a/1", "a/2", "a/b/*"]);
    assert_eq!(setup.list_all("prefix=a/&startfrom=a/2").await, ["a/2", "a/b/c"]);
    assert!(setup.list_all("prefix=zz").await.is_empty());
}

#[tokio::test]
async fn a_page_that_ends_with_the_last_prefix_has_no_next_one() {
    let setup = setup().await;
    for name in ["a/1", "a/2", "a/3"] {
        setup.put(name, b"").await;
    }
    let page = setup.list("delimiter=/&maxresults=1").await;
    assert!(matches!(&page.entries[..], [BlobEntry::Prefix(prefix)] if prefix == "a/"));
    assert!(page.next.is_none());
}

#[tokio::test]
async fn a_blob_of_staged_blocks_is_listed_only_on_demand() {
    let setup = setup().await;
    let name = BlobName::parse("staged").unwrap();
    let pre = Preconditions::default();
    setup
        .service
        .put_block(setup.place(&name), &block_id(1), Pieces::of(b"x").body(), pre.clone())
        .await
        .unwrap();
    assert!(setup.list_all("").await.is_empty());
    assert_eq!(setup.list_all("include=uncommittedblobs").await, ["staged"]);
    let blocks = vec![(BlockSource::Latest, block_id(1))];
    setup.service.put_block_list(setup.place(&name), blocks, NewBlob::default(), pre).await.unwrap();
    assert_eq!(setup.list_all("").await, ["staged"]);
}

/// Every row takes a second.
struct Slow {
    inner: MemoryEngine,
    clock: Arc<FakeClock>,
}

struct SlowSink<'s>(&'s mut dyn Sink, &'s FakeClock);

impl Sink for SlowSink<'_> {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.1.advance(Duration::from_secs(1));
        self.0.row(key, version, value)
    }
}

#[async_trait]
impl Wrapper for Slow {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        match table {
            TableId::CATALOGUE => self.inner.scan(table, ranges, budget, sink).await,
            _ => self.inner.scan(table, ranges, budget, &mut SlowSink(sink, &self.clock)).await,
        }
    }
}

#[tokio::test]
async fn a_search_that_takes_long_has_pages_and_finds_everything_once() {
    let clock = Arc::new(FakeClock::default());
    let engine = Slow { inner: MemoryEngine::new(FAMILIES, clock.clone()), clock: clock.clone() };
    let setup =
        setup_on(Arc::new(Wrapped(engine)), memory_contents(), clock.clone(), BlobOptions::default()).await;
    let mut expected = Vec::new();
    for container in ["aaa", "bbb", "ccc", "ddd"] {
        let name = ContainerName::parse(container).unwrap();
        setup.service.create_container(&setup.account, &name, NewContainer::default()).await.unwrap();
        for number in 0..7 {
            let blob = BlobName::parse(&format!("{number}")).unwrap();
            let place = BlobPlace { account: &setup.account, container: &name, blob: &blob };
            let tags = Tags::read([("k", if number % 2 == 0 { "v" } else { "w" })]).unwrap();
            let new = NewBlob { tags, ..NewBlob::default() };
            let pre = Preconditions::default();
            setup.service.put_block_blob(place, Pieces::of(b"x").body(), new, pre).await.unwrap();
            if number % 2 == 0 {
                expected.push(format!("{container}/{number}"));
            }
        }
    }
    let (mut found, mut marker, mut page_count) = (Vec::new(), String::new(), 0);
    loop {
        let began = clock.monotonic();
        let text = format!("where=%22k%22%3D%27v%27&marker={marker}");
        let parameters = FindBlobsParameters::read(&Query::split(&text).with_lower_names()).unwrap();
        let page = setup.service.find_blobs(&setup.account, None, &parameters, Share::COMMON).await.unwrap();
        assert!(clock.monotonic() - began <= Duration::from_secs(20), "{:?}", clock.monotonic() - began);
        found.extend(page.blobs.iter().map(|blob| format!("{}/{}", blob.container, blob.name)));
        page_count += 1;
        match page.next {
            Some(next) => marker = next.write().replace('+', "%2B").replace('=', "%3D").replace('/', "%2F"),
            None => break,
        }
    }
    assert_eq!(found, expected);
    assert!(page_count > 1, "{page_count}");
}
