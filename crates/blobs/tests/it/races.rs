//! Several callers at once: one of them wins, and nothing is lost.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use blobs::{BlobOptions, CopyFrom, CopyRequest, Deletion, NewBlob, Preconditions};
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Commit, CommitError, Engine, Version};
use protocol::ErrorCode;
use protocol::blob::BlobName;
use protocol::blob::block_list::BlockSource;
use protocol::blob::conditions::{AppendConditions, Conditions, ETags};
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{LeaseDuration, LeaseRequest};
use protocol::blob::properties::DeleteSnapshots;
use protocol::blob::range::ByteRange;
use tokio::task::JoinSet;

use crate::support::*;

const TASK_COUNT: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_one_creates_a_blob_that_must_be_new() {
    let setup = setup().await;
    for length in [10, 20_000] {
        let mut tasks = JoinSet::new();
        for task in 0..TASK_COUNT {
            let setup = setup.clone();
            tasks.spawn(async move {
                let conditions = Conditions { if_none_match: Some(ETags::Any), ..Conditions::default() };
                let pre = Preconditions { conditions, ..Preconditions::default() };
                let bytes = vec![task as u8; length];
                setup.try_put(&format!("new{length}"), &bytes, pre).await.map(|_| task)
            });
        }
        let outcomes = tasks.join_all().await;
        let winners: Vec<usize> =
            outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).copied().collect();
        assert_eq!(winners.len(), 1, "{winners:?}");
        for outcome in outcomes {
            assert!(outcome.is_ok() || code(outcome) == ErrorCode::BlobAlreadyExists);
        }
        let read = setup.read(&format!("new{length}"), Revision::Base).await.unwrap();
        assert_eq!(read, vec![winners[0] as u8; length]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_one_acquires_a_lease() {
    let setup = setup().await;
    setup.put("leased", b"x").await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASK_COUNT {
        let setup = setup.clone();
        tasks.spawn(async move {
            let name = BlobName::parse("leased").unwrap();
            let request = LeaseRequest::Acquire { duration: LeaseDuration::Infinite, proposed: None };
            setup.service.lease_blob(setup.place(&name), request, Conditions::default()).await
        });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for outcome in outcomes {
        assert!(outcome.is_ok() || code(outcome) == ErrorCode::LeaseAlreadyPresent);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_from_many_tasks_are_all_there_and_none_is_torn() {
    let setup = setup().await;
    let name = BlobName::parse("log").unwrap();
    let pre = Preconditions::default;
    setup.service.put_append_blob(setup.place(&name), NewBlob::default(), pre()).await.unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..TASK_COUNT {
        let setup = setup.clone();
        tasks.spawn(async move {
            let name = BlobName::parse("log").unwrap();
            let mut offsets = Vec::new();
            for number in 0..20 {
                let bytes = vec![task as u8; if number % 5 == 0 { 9_000 } else { 300 }];
                let mut body = Pieces::of(&bytes);
                let append = AppendConditions::default();
                let appended = setup.service.append_block(
                    setup.place(&name),
                    body.body(),
                    append,
                    Preconditions::default(),
                );
                offsets.push((appended.await.unwrap().offset, bytes));
            }
            offsets
        });
    }
    let all: Vec<(u64, Vec<u8>)> = tasks.join_all().await.into_iter().flatten().collect();
    let read = setup.read("log", Revision::Base).await.unwrap();
    assert_eq!(read.len(), all.iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
    for (offset, bytes) in all {
        assert!(read[offset as usize..].starts_with(&bytes));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_append_at_a_position_wins() {
    let setup = setup().await;
    let name = BlobName::parse("log").unwrap();
    setup
        .service
        .put_append_blob(setup.place(&name), NewBlob::default(), Preconditions::default())
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..TASK_COUNT {
        let setup = setup.clone();
        tasks.spawn(async move {
            let name = BlobName::parse("log").unwrap();
            let append = AppendConditions { position: Some(0), size_max: None };
            let mut body = Pieces::of(b"first");
            setup
                .service
                .append_block(setup.place(&name), body.body(), append, Preconditions::default())
                .await
        });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for outcome in outcomes {
        assert!(outcome.is_ok() || code(outcome) == ErrorCode::AppendPositionConditionNotMet);
    }
    assert_eq!(setup.read("log", Revision::Base).await.unwrap(), &b"first"[..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn blocks_that_are_staged_at_once_are_all_committed() {
    let setup = setup().await;
    let mut tasks = JoinSet::new();
    for task in 0..TASK_COUNT as u32 {
        let setup = setup.clone();
        tasks.spawn(async move {
            let name = BlobName::parse("blocks").unwrap();
            let mut body = Pieces::of(&[task as u8; 1000]);
            let id = block_id(task);
            setup
                .service
                .put_block(setup.place(&name), &id, body.body(), Preconditions::default())
                .await
                .unwrap();
        });
    }
    tasks.join_all().await;
    let name = BlobName::parse("blocks").unwrap();
    let list = (0..TASK_COUNT as u32).map(|number| (BlockSource::Uncommitted, block_id(number))).collect();
    setup
        .service
        .put_block_list(setup.place(&name), list, NewBlob::default(), Preconditions::default())
        .await
        .unwrap();
    let read = setup.read("blocks", Revision::Base).await.unwrap();
    assert_eq!(read.chunks(1000).map(|block| block[0]).collect::<HashSet<_>>().len(), TASK_COUNT);
}

/// Lets others go first before every commit, so that races that are rare become frequent.
struct Yielding(MemoryEngine);

#[async_trait]
impl Wrapper for Yielding {
    fn inner(&self) -> &dyn Engine {
        &self.0
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        for _ in 0..fastrand::u32(..6) {
            tokio::task::yield_now().await;
        }
        self.0.commit(commit).await
    }
}

/// Everything that shares or takes over contents, at once and with sweeps: at the end every row has its bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sweeps_never_forget_what_a_row_names() {
    for seed in 0..4u64 {
        let clock = Arc::new(FakeClock::default());
        let engine = Arc::new(Wrapped(Yielding(MemoryEngine::new(FAMILIES, clock.clone()))));
        let setup = setup_on(engine, memory_contents(), clock, BlobOptions::default()).await;
        let mut tasks = JoinSet::new();
        for task in 0..8u64 {
            let setup = setup.clone();
            tasks.spawn(async move { mix(&setup, seed * 100 + task).await });
        }
        let sweeper = setup.clone();
        tasks.spawn(async move {
            for _ in 0..40 {
                sweeper.service.sweep().await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        tasks.join_all().await;
        let report = setup.service.check(true).await.unwrap();
        assert_eq!(report.finding_count, 0, "{:?}", report.findings);
        setup.clock.advance(Duration::from_secs(8 * 24 * 3600));
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            setup.service.sweep().await.unwrap();
        }
        let report = setup.service.check(true).await.unwrap();
        assert_eq!((report.finding_count, report.unnamed_count), (0, 0), "{:?}", report.findings);
    }
}

async fn mix(setup: &Setup, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let names = ["a", "b", "c"].map(|name| BlobName::parse(name).unwrap());
    for _ in 0..80 {
        if random.u32(..4) == 0 {
            mix_pages(setup, &mut random).await;
            continue;
        }
        let (name, other) = (&names[random.usize(..3)], &names[random.usize(..3)]);
        let (place, pre) = (setup.place(name), Preconditions::default());
        let number = random.u32(..4);
        // Refusals are fine: others have changed the blob meanwhile.
        match random.u32(..8) {
            0 => drop(setup.put(name.as_str(), &random_bytes(&mut random, 10_000)).await),
            1 | 2 => {
                let bytes = random_bytes(&mut random, 500);
                let mut body = Pieces::of(&bytes);
                setup.service.put_block(place, &block_id(number), body.body(), pre).await.unwrap();
            }
            3 | 4 => {
                let list =
                    (0..random.u32(1..4)).map(|_| (BlockSource::Latest, block_id(random.u32(..4)))).collect();
                let _ = setup.service.put_block_list(place, list, NewBlob::default(), pre).await;
            }
            5 => {
                let source = CopyFrom {
                    place: setup.place(other),
                    revision: Revision::Base,
                    conditions: Conditions::default(),
                    encryption: Default::default(),
                };
                let _ = setup.service.copy_blob(source, place, CopyRequest::default(), pre).await;
            }
            6 => drop(setup.service.snapshot_blob(place, None, pre).await),
            _ => {
                let deletion = Deletion { snapshots: Some(DeleteSnapshots::Include), ..Deletion::default() };
                let _ = setup.service.delete_blob(place, Revision::Base, deletion, pre).await;
            }
        }
        match setup.read(name.as_str(), Revision::Base).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code, ErrorCode::BlobNotFound, "{error:?}"),
        }
    }
}

async fn mix_pages(setup: &Setup, random: &mut fastrand::Rng) {
    let names = ["p", "q"].map(|name| BlobName::parse(name).unwrap());
    let (name, other) = (&names[random.usize(..2)], &names[random.usize(..2)]);
    let (place, pre) = (setup.place(name), Preconditions::default());
    match random.u32(..10) {
        0 => drop(setup.service.put_page_blob(place, 16 << 20, 0, NewBlob::default(), pre).await),
        1..6 => {
            let start = random.u64(..8) * (2 << 20);
            let bytes = random_bytes(random, 8192);
            let mut body = Pieces::of(&bytes);
            let range = start..start + 8192;
            let _ = setup.service.put_pages(place, range, body.body(), Default::default(), pre).await;
        }
        6 | 7 => {
            let source = CopyFrom {
                place: setup.place(other),
                revision: Revision::Base,
                conditions: Conditions::default(),
                encryption: Default::default(),
            };
            let _ = setup.service.copy_blob(source, place, CopyRequest::default(), pre).await;
        }
        8 => drop(setup.service.snapshot_blob(place, None, pre).await),
        _ => {
            let deletion = Deletion { snapshots: Some(DeleteSnapshots::Include), ..Deletion::default() };
            let _ = setup.service.delete_blob(place, Revision::Base, deletion, pre).await;
        }
    }
    let range = Some(ByteRange { first: 0, last: None });
    match setup.service.open_blob(setup.place(name), Revision::Base, range, &Preconditions::default()).await {
        Ok(open) => assert_eq!(open.stream(0..16 << 20).collect().await.unwrap().len(), 16 << 20),
        Err(error) => assert_eq!(error.code, ErrorCode::BlobNotFound, "{error:?}"),
    }
}

/// A reader sees one content or the other, and never a mixture, while writers overwrite and a sweep runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_see_whole_contents_while_others_overwrite() {
    let setup = setup().await;
    setup.put("hot", &vec![0; 300_000]).await;
    let mut tasks = JoinSet::new();
    for task in 0..4u8 {
        let writer = setup.clone();
        tasks.spawn(async move {
            for number in 0..30usize {
                writer.put("hot", &vec![task * 30 + number as u8; 100_000 + number * 10_000]).await;
            }
        });
        let reader = setup.clone();
        tasks.spawn(async move {
            for _ in 0..60 {
                let read = reader.read("hot", Revision::Base).await.unwrap();
                assert!(read.iter().all(|byte| *byte == read[0]), "a mixture");
            }
        });
    }
    let sweeper = setup.clone();
    tasks.spawn(async move {
        for _ in 0..20 {
            sweeper.service.sweep().await.unwrap();
        }
    });
    tasks.join_all().await;
    setup.service.sweep().await.unwrap();
    let report = setup.service.check(true).await.unwrap();
    assert_eq!((report.finding_count, report.unnamed_count), (0, 0), "{:?}", report.findings);
}

/// A caller that goes away leaves a blob that is old or new as a whole, and nothing that a sweep does not find.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dropped_request_changes_all_or_nothing() {
    let clock = Arc::new(FakeClock::default());
    let engine = Arc::new(Wrapped(Yielding(MemoryEngine::new(FAMILIES, clock.clone()))));
    let setup = setup_on(engine, memory_contents(), clock, BlobOptions::default()).await;
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..200u32 {
        let length = [100, 20_000, 400_000][random.usize(..3)];
        let bytes = vec![number as u8; length];
        let put = setup.try_put("x", &bytes, Preconditions::default());
        let polls = random.usize(..12);
        let mut put = std::pin::pin!(put);
        for _ in 0..polls {
            let polled = std::future::poll_fn(|context| Poll::Ready(put.as_mut().poll(context))).await;
            if polled.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if number % 10 == 0 {
            setup.service.sweep().await.unwrap();
        }
        match setup.read("x", Revision::Base).await {
            Ok(read) => assert!(read.iter().all(|byte| *byte == read[0])),
            Err(error) => assert_eq!(error.code, ErrorCode::BlobNotFound, "{error:?}"),
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    setup.service.sweep().await.unwrap();
    let report = setup.service.check(true).await.unwrap();
    assert_eq!((report.finding_count, report.unnamed_count), (0, 0), "{:?}", report.findings);
}
