//! Commits that fail, that nobody knows the outcome of, or that another process comes before.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blobs::{
    BlobOptions, BlobService, CopyFrom, CopyRequest, Deletion, NewBlob, NewContainer, PageQuery,
    Preconditions,
};
use engine::env::FakeClock;
use engine::wrapper::Wrapped;
use protocol::ErrorCode;
use protocol::blob::block_list::BlockSource;
use protocol::blob::conditions::{AppendConditions, Conditions};
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{LeaseDuration, LeaseRequest};
use protocol::blob::properties::{DeleteSnapshots, PropertiesChange};
use protocol::blob::{BlobName, ContainerAcl};
use protocol::common::StoredPolicy;

use crate::support::*;
use crate::tricks::{Trick, tricky_setup};

fn name(text: &str) -> BlobName {
    BlobName::parse(text).unwrap()
}

const PAGES_BYTES: u64 = 8 << 20;

/// A page blob with long and short pages in both of its segments.
async fn put_pages(setup: &Setup, blob: &str, byte: u8) {
    let blob = name(blob);
    let pre = Preconditions::default;
    setup.service.put_page_blob(setup.place(&blob), PAGES_BYTES, 0, NewBlob::default(), pre()).await.unwrap();
    write_pages(setup, &blob, byte).await;
}

async fn write_pages(setup: &Setup, blob: &BlobName, byte: u8) {
    for (start, length) in [(0, 512), (8192, 65_536), (5 << 20, 65_536)] {
        let bytes = vec![byte; length as usize];
        let mut body = Pieces::of(&bytes);
        let range = start..start + length;
        let put = setup.service.put_pages(
            setup.place(blob),
            range,
            body.body(),
            Default::default(),
            Preconditions::default(),
        );
        put.await.unwrap();
    }
}

fn source<'a>(setup: &'a Setup, blob: &'a BlobName) -> CopyFrom<'a> {
    CopyFrom {
        place: setup.place(blob),
        revision: Revision::Base,
        conditions: Conditions::default(),
        encryption: Default::default(),
    }
}

/// The different bytes that a blob has. One of each page is looked at.
async fn bytes_of(setup: &Setup, blob: &str) -> Vec<u8> {
    let read = setup.read(blob, Revision::Base).await.unwrap();
    let found: BTreeSet<u8> = read.iter().step_by(512).copied().collect();
    found.into_iter().collect()
}

#[tokio::test]
async fn a_copy_of_pages_that_does_not_finish_is_never_seen() {
    for keeps_versions in [false, true] {
        let options = BlobOptions { keeps_versions, ..BlobOptions::default() };
        let (setup, engine) = tricky_setup(options).await;
        let (from, to) = (name("from"), name("to"));
        put_pages(&setup, "from", 1).await;
        put_pages(&setup, "to", 2).await;
        // The segments are committed, and the blob's row is not.
        engine.play([Trick::Pass, Trick::Fail]);
        let request = CopyRequest::default();
        let pre = Preconditions::default;
        let copied = setup.service.copy_blob(source(&setup, &from), setup.place(&to), request, pre()).await;
        assert_eq!(code(copied), ErrorCode::InternalError);
        for _ in 0..20 {
            let snapshot = setup.service.snapshot_blob(setup.place(&to), None, pre()).await.unwrap().snapshot;
            setup.service.set_metadata(setup.place(&to), Default::default(), pre()).await.unwrap();
            assert_eq!(bytes_of(&setup, "to").await, [0, 2]);
            let taken = setup.read("to", Revision::Snapshot(snapshot)).await.unwrap();
            assert!(taken.iter().step_by(512).all(|byte| [0, 2].contains(byte)));
        }
        let request = CopyRequest::default();
        setup.service.copy_blob(source(&setup, &to), setup.place(&to), request, pre()).await.unwrap();
        assert_eq!(bytes_of(&setup, "to").await, [0, 2]);
        // A new blob of the same name does not see it either.
        let deletion = Deletion { snapshots: Some(DeleteSnapshots::Include), ..Deletion::default() };
        setup.service.delete_blob(setup.place(&to), Revision::Base, deletion, pre()).await.unwrap();
        put_pages(&setup, "to", 3).await;
        for _ in 0..20 {
            setup.service.snapshot_blob(setup.place(&to), None, pre()).await.unwrap();
            assert_eq!(bytes_of(&setup, "to").await, [0, 3]);
        }
    }
}

#[tokio::test]
async fn a_copy_of_pages_that_another_process_changes_has_its_bytes() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    let (from, to) = (name("from"), name("to"));
    put_pages(&setup, "from", 1).await;
    // Another process overwrites the source and sweeps, after the copy has read the segments.
    let other = setup.clone();
    let change = async move {
        let blob = name("from");
        write_pages(&other, &blob, 4).await;
        other.service.sweep().await.unwrap();
    };
    engine.play([Trick::After(Box::pin(change))]);
    let (request, pre) = (CopyRequest::default(), Preconditions::default());
    setup.service.copy_blob(source(&setup, &from), setup.place(&to), request, pre).await.unwrap();
    assert_eq!(bytes_of(&setup, "to").await, [0, 4]);
    assert_eq!(setup.service.check(true).await.unwrap().finding_count, 0);
}

/// Every operation that stores contents and then commits a row with them.
#[tokio::test]
async fn what_a_late_commit_names_is_still_there() {
    for operation in 0..5 {
        let (setup, engine) = tricky_setup(BlobOptions::default()).await;
        let blob = name("late");
        let (place, pre) = (setup.place(&blob), Preconditions::default());
        let mut body = Pieces::of(&[7; 100_000]);
        let expected: Vec<u8> = match operation {
            0 => {
                engine.play([Trick::Postpone]);
                let put = setup.service.put_block_blob(place, body.body(), NewBlob::default(), pre).await;
                assert_eq!(code(put), ErrorCode::OperationTimedOut);
                vec![7]
            }
            1 => {
                setup.service.put_append_blob(place, NewBlob::default(), pre.clone()).await.unwrap();
                engine.play([Trick::Postpone]);
                let append = AppendConditions::default();
                let appended = setup.service.append_block(place, body.body(), append, pre).await;
                assert_eq!(code(appended), ErrorCode::OperationTimedOut);
                vec![7]
            }
            2 => {
                // Short appends that move to the store of contents together.
                setup.service.put_append_blob(place, NewBlob::default(), pre.clone()).await.unwrap();
                let bytes = [9; 5000];
                let (mut first, mut second) = (Pieces::of(&bytes), Pieces::of(&bytes));
                let append = AppendConditions::default();
                setup.service.append_block(place, first.body(), append, pre.clone()).await.unwrap();
                engine.play([Trick::Postpone]);
                let append = AppendConditions::default();
                let appended = setup.service.append_block(place, second.body(), append, pre).await;
                assert_eq!(code(appended), ErrorCode::OperationTimedOut);
                vec![9]
            }
            3 => {
                let put = setup.service.put_page_blob(place, PAGES_BYTES, 0, NewBlob::default(), pre.clone());
                put.await.unwrap();
                engine.play([Trick::Postpone]);
                let mut body = Pieces::of(&[7; 65_536]);
                let sequence = Default::default();
                let put = setup.service.put_pages(place, 0..65_536, body.body(), sequence, pre).await;
                assert_eq!(code(put), ErrorCode::OperationTimedOut);
                vec![0, 7]
            }
            _ => {
                engine.play([Trick::Postpone]);
                let put = setup.service.put_block(place, &block_id(1), body.body(), pre).await;
                assert_eq!(code(put), ErrorCode::OperationTimedOut);
                vec![7]
            }
        };
        setup.clock.advance(Duration::from_secs(3600));
        setup.service.sweep().await.unwrap();
        engine.catch_up().await;
        if operation == 4 {
            let (list, pre) = (vec![(BlockSource::Latest, block_id(1))], Preconditions::default());
            setup.service.put_block_list(place, list, NewBlob::default(), pre).await.unwrap();
        }
        assert_eq!(bytes_of(&setup, "late").await, expected, "operation {operation}");
        assert_eq!(setup.service.check(true).await.unwrap().finding_count, 0, "operation {operation}");
    }
}

#[tokio::test]
async fn a_list_of_blocks_that_is_committed_late_is_still_there() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    let blob = name("late");
    let mut list = Vec::new();
    for number in 0..600 {
        let (id, mut body) = (block_id(number), Pieces::of(b"x"));
        setup
            .service
            .put_block(setup.place(&blob), &id, body.body(), Preconditions::default())
            .await
            .unwrap();
        list.push((BlockSource::Latest, id));
    }
    engine.play([Trick::Postpone]);
    let (new, pre) = (NewBlob::default(), Preconditions::default());
    let put = setup.service.put_block_list(setup.place(&blob), list, new, pre).await;
    assert_eq!(code(put), ErrorCode::OperationTimedOut);
    setup.service.sweep().await.unwrap();
    engine.catch_up().await;
    assert_eq!(setup.read("late", Revision::Base).await.unwrap().len(), 600);
}

#[tokio::test]
async fn on_a_shared_engine_a_commit_that_never_happened_leaves_nothing() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    let service: BlobService = setup.service.clone().sharing_its_engine();
    let setup = Setup { service, ..setup };
    engine.play([Trick::Postpone]);
    let put = setup.try_put("never", &[1; 100_000], Preconditions::default()).await;
    assert_eq!(code(put), ErrorCode::OperationTimedOut);
    assert_eq!(setup.service.sweep().await.unwrap().forgotten_content_count, 0);
    setup.clock.advance(Duration::from_secs(25 * 3600));
    assert_eq!(setup.service.sweep().await.unwrap().forgotten_content_count, 1);
}

#[tokio::test]
async fn a_list_of_blocks_beside_an_overwrite_is_refused_and_does_not_fail() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    let blob = name("overwritten");
    let mut list = Vec::new();
    for number in 0..600 {
        let (id, mut body) = (block_id(number), Pieces::of(b"x"));
        setup
            .service
            .put_block(setup.place(&blob), &id, body.body(), Preconditions::default())
            .await
            .unwrap();
        list.push((BlockSource::Latest, id));
    }
    let (new, pre) = (NewBlob::default, Preconditions::default);
    setup.service.put_block_list(setup.place(&blob), list, new(), pre()).await.unwrap();
    let other = setup.clone();
    let overwrite = async move {
        other.put("overwritten", b"short").await;
    };
    *engine.after_read.lock().unwrap() = Some(Box::pin(overwrite));
    let list = vec![(BlockSource::Latest, block_id(7))];
    let put = setup.service.put_block_list(setup.place(&blob), list, new(), pre()).await;
    assert_eq!(code(put), ErrorCode::InvalidBlockList);
    assert_eq!(setup.read("overwritten", Revision::Base).await.unwrap(), &b"short"[..]);
}

async fn write_page(setup: &Setup, at: u64) {
    let (mut body, blob) = (Pieces::of(&[1; 512]), name("cut"));
    let (range, pre) = (at..at + 512, Preconditions::default());
    setup.service.put_pages(setup.place(&blob), range, body.body(), Default::default(), pre).await.unwrap();
}

async fn set_size(setup: &Setup, blob: &BlobName, size: u64) {
    let change = PropertiesChange { page_blob_bytes: Some(size), ..PropertiesChange::default() };
    setup.service.set_properties(setup.place(blob), change, Preconditions::default()).await.unwrap();
}

#[tokio::test]
async fn pages_that_were_cut_off_do_not_come_back() {
    const SEGMENT: u64 = 4 << 20;
    // In one commit, and in several.
    for segment_count in [2, 200] {
        let (setup, engine) = tricky_setup(BlobOptions::default()).await;
        let blob = name("cut");
        let (new, pre) = (NewBlob::default, Preconditions::default);
        let size = segment_count * SEGMENT;
        setup.service.put_page_blob(setup.place(&blob), size, 0, new(), pre()).await.unwrap();
        for segment in 0..segment_count {
            write_page(&setup, segment * SEGMENT).await;
        }
        // Others make it longer and write there, and write into what is cut off, before the first and before the last commit.
        let interfere = || {
            let other = setup.clone();
            Trick::After(Box::pin(async move {
                set_size(&other, &name("cut"), size + SEGMENT).await;
                write_page(&other, SEGMENT).await;
                write_page(&other, size).await;
            }))
        };
        let (first, second) = (interfere(), interfere());
        engine.play([first, Trick::Pass, Trick::Pass, Trick::Pass, Trick::Pass, second]);
        set_size(&setup, &blob, SEGMENT).await;
        engine.tricks.lock().unwrap().clear();
        let size_now = setup.read("cut", Revision::Base).await.unwrap().len() as u64;
        set_size(&setup, &blob, size + SEGMENT).await;
        let read = setup.read("cut", Revision::Base).await.unwrap();
        let found: Vec<u64> =
            (0..read.len()).step_by(512).filter(|at| read[*at] != 0).map(|at| at as u64).collect();
        assert_eq!((size_now, found), (SEGMENT, vec![0]), "{segment_count} segments");
    }
}

#[tokio::test]
async fn a_block_that_is_staged_beside_a_sweep_of_old_ones_stays() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    let stage = async |setup: &Setup, number: u32| {
        let (blob, mut body) = (name("staged"), Pieces::of(b"x"));
        let pre = Preconditions::default();
        setup.service.put_block(setup.place(&blob), &block_id(number), body.body(), pre).await.unwrap();
    };
    stage(&setup, 1).await;
    setup.clock.advance(Duration::from_secs(8 * 24 * 3600));
    let other = setup.clone();
    engine.play([Trick::After(Box::pin(async move { stage(&other, 2).await }))]);
    for _ in 0..2 {
        setup.service.sweep().await.unwrap();
    }
    let (list, pre) = (vec![(BlockSource::Latest, block_id(2))], Preconditions::default());
    let blob = name("staged");
    setup.service.put_block_list(setup.place(&blob), list, NewBlob::default(), pre).await.unwrap();
    assert_eq!(setup.read("staged", Revision::Base).await.unwrap(), &b"x"[..]);
}

/// The server that undeletes has a clock that is behind.
#[tokio::test]
async fn a_page_blob_that_is_undeleted_beside_a_sweep_has_all_its_pages() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    keep_deleted(&setup).await;
    let blob = name("undeleted");
    let (new, pre) = (NewBlob::default(), Preconditions::default);
    let segment_count = 150;
    setup.service.put_page_blob(setup.place(&blob), segment_count << 22, 0, new, pre()).await.unwrap();
    for segment in 0..segment_count {
        let mut body = Pieces::of(&[1; 512]);
        let range = segment << 22..(segment << 22) + 512;
        setup
            .service
            .put_pages(setup.place(&blob), range, body.body(), Default::default(), pre())
            .await
            .unwrap();
    }
    let deleted = setup.service.delete_blob(setup.place(&blob), Revision::Base, Deletion::default(), pre());
    deleted.await.unwrap();
    let behind = Arc::new(FakeClock::default());
    let other = BlobService::new(
        Arc::new(Wrapped(engine.clone())),
        setup.service.contents().clone(),
        behind,
        BlobOptions::default(),
    );
    let other = Setup { service: other, ..setup.clone() };
    setup.clock.advance(Duration::from_secs(3 * 24 * 3600));
    engine.play([Trick::After(Box::pin(async move {
        let blob = name("undeleted");
        other.service.undelete_blob(other.place(&blob)).await.unwrap();
    }))]);
    setup.service.sweep().await.unwrap();
    let ranges =
        setup.service.page_ranges(setup.place(&blob), Revision::Base, all_pages(), &pre()).await.unwrap();
    assert_eq!(ranges.ranges.len() as u64, segment_count);
}

fn all_pages() -> PageQuery {
    PageQuery { range: None, previous: None, marker: None, count_max: 10_000 }
}

#[tokio::test]
async fn more_snapshots_than_one_commit_changes_are_deleted_and_restored() {
    let setup = setup().await;
    keep_deleted(&setup).await;
    setup.put("many", b"x").await;
    let blob = name("many");
    let pre = Preconditions::default;
    for _ in 0..250 {
        setup.service.snapshot_blob(setup.place(&blob), None, pre()).await.unwrap();
    }
    let refused =
        setup.service.delete_blob(setup.place(&blob), Revision::Base, Deletion::default(), pre()).await;
    assert_eq!(code(refused), ErrorCode::SnapshotsPresent);
    let deletion = Deletion { snapshots: Some(DeleteSnapshots::Include), ..Deletion::default() };
    setup.service.delete_blob(setup.place(&blob), Revision::Base, deletion, pre()).await.unwrap();
    assert_eq!(setup.list_all("include=snapshots").await.len(), 0);
    setup.service.undelete_blob(setup.place(&blob)).await.unwrap();
    assert_eq!(setup.list_all("include=snapshots").await.len(), 251);
}

#[tokio::test]
async fn a_container_that_is_leased_beside_its_deletion_stays() {
    for container_retention_days in [None, Some(7)] {
        let options = BlobOptions { container_retention_days, ..BlobOptions::default() };
        let (setup, engine) = tricky_setup(options).await;
        setup.put("x", b"1").await;
        let other = setup.clone();
        let lease = async move {
            let request = LeaseRequest::Acquire { duration: LeaseDuration::Infinite, proposed: None };
            let (account, container) = (&other.account, &other.container);
            other.service.lease_container(account, container, request, &Conditions::default()).await.unwrap();
        };
        *engine.before_replacing.lock().unwrap() = Some(Box::pin(lease));
        let (account, container) = (&setup.account, &setup.container);
        let deleted = setup.service.delete_container(account, container, None, &Conditions::default()).await;
        assert_eq!(code(deleted), ErrorCode::LeaseIdMissing);
        assert_eq!(setup.read("x", Revision::Base).await.unwrap(), &b"1"[..]);
    }
}

#[tokio::test]
async fn a_deletion_that_was_cut_short_is_finished_by_others() {
    for container_retention_days in [None, Some(7)] {
        for finisher in 0..3 {
            let options = BlobOptions { container_retention_days, ..BlobOptions::default() };
            let (setup, engine) = tricky_setup(options).await;
            setup.put("x", &[1; 10_000]).await;
            let (service, account, container) = (&setup.service, &setup.account, &setup.container);
            engine.fails_renaming.store(true, Ordering::Relaxed);
            let deleted = service.delete_container(account, container, None, &Conditions::default()).await;
            assert_eq!(code(deleted), ErrorCode::InternalError);
            engine.fails_renaming.store(false, Ordering::Relaxed);
            let found = service.container_properties(account, container, None).await;
            assert_eq!(code(found), ErrorCode::ContainerBeingDeleted);
            let created = service.create_container(account, container, NewContainer::default()).await;
            assert_eq!(code(created), ErrorCode::ContainerBeingDeleted);
            setup.clock.advance(Duration::from_secs(11 * 60));
            match finisher {
                0 => {
                    service.delete_container(account, container, None, &Conditions::default()).await.unwrap()
                }
                1 => drop(service.sweep().await.unwrap()),
                _ => {}
            }
            service.create_container(account, container, NewContainer::default()).await.unwrap();
            assert_eq!(code(setup.read("x", Revision::Base).await), ErrorCode::BlobNotFound);
            let kept = u64::from(container_retention_days.is_some());
            setup.clock.advance(Duration::from_secs(25 * 3600));
            service.sweep().await.unwrap();
            assert_eq!(service.check(true).await.unwrap().content_count, kept, "finisher {finisher}");
        }
    }
}

#[tokio::test]
async fn an_acl_that_is_refused_is_not_set() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    let (service, account, container) = (&setup.service, &setup.account, &setup.container);
    let request = LeaseRequest::Acquire { duration: LeaseDuration::Infinite, proposed: None };
    let conditions = Conditions::default();
    let leased = service.lease_container(account, container, request, &conditions).await.unwrap();
    let (other, id) = (setup.clone(), leased.outcome.id.unwrap());
    // The lease is released while the request is under way.
    engine.play([Trick::After(Box::pin(async move {
        let (request, conditions) = (LeaseRequest::Release { id }, Conditions::default());
        let (account, container) = (&other.account, &other.container);
        other.service.lease_container(account, container, request, &conditions).await.unwrap();
    }))]);
    let policy = StoredPolicy { id: "policy".to_owned(), ..StoredPolicy::default() };
    let acl = ContainerAcl { policies: vec![policy], ..ContainerAcl::default() };
    let set = service.set_container_acl(account, container, &acl, Some(id), &conditions).await;
    let now = service.container_acl(account, container, None).await.unwrap();
    assert_eq!(now.policies.len(), usize::from(set.is_ok()), "{set:?}");
}

#[tokio::test]
async fn contents_are_not_swept_while_another_process_reads_older_rows() {
    let (setup, engine) = tricky_setup(BlobOptions::default()).await;
    let setup = Setup { service: setup.service.clone().sharing_its_engine(), ..setup };
    setup.put("x", &[1; 10_000]).await;
    setup.put("x", &[2; 10_000]).await;
    engine.has_older.store(true, Ordering::Relaxed);
    assert_eq!(setup.service.sweep().await.unwrap().forgotten_content_count, 0);
    engine.has_older.store(false, Ordering::Relaxed);
    assert_eq!(setup.service.sweep().await.unwrap().forgotten_content_count, 1);
}
