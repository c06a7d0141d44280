//! What the specification says of single operations.

use std::time::Duration;

use blobs::{
    BlobEntry, BlobOptions, CopyFrom, CopyRequest, CopyTags, Deletion, NewBlob, PageQuery, Preconditions,
    TierSet, UploadBody,
};
use engine::Share;
use protocol::ErrorCode;
use protocol::blob::checksum::{ContentDigest, ExpectedChecksums};
use protocol::blob::conditions::{Conditions, ETags, SequenceConditions};
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{LeaseDuration, LeaseRequest};
use protocol::blob::list_parameters::FindBlobsParameters;
use protocol::blob::properties::{AccessTier, BlobType};
use protocol::blob::{BlobName, Tags};
use protocol::common::guid::Guid;
use protocol::common::query::Query;

use crate::support::*;

fn name(text: &str) -> BlobName {
    BlobName::parse(text).unwrap()
}

fn with_lease(id: Option<Guid>) -> Preconditions {
    Preconditions { lease: id, ..Preconditions::default() }
}

fn must_be_new() -> Conditions {
    Conditions { if_none_match: Some(ETags::Any), ..Conditions::default() }
}

#[tokio::test]
async fn a_lease_comes_before_conditions_and_its_id_lifts_them() {
    let setup = setup().await;
    setup.put("x", b"1").await;
    let blob = name("x");
    let request = LeaseRequest::Acquire { duration: LeaseDuration::Fixed(15), proposed: None };
    let leased = setup.service.lease_blob(setup.place(&blob), request, Conditions::default()).await.unwrap();
    let pre = Preconditions { conditions: must_be_new(), ..Preconditions::default() };
    assert_eq!(code(setup.try_put("x", b"2", pre).await), ErrorCode::LeaseIdMissing);
    let pre =
        Preconditions { conditions: must_be_new(), lease: leased.outcome.id, ..Preconditions::default() };
    setup.try_put("x", b"3", pre).await.unwrap();
    let other = with_lease(Some(Guid([9; 16])));
    assert_eq!(code(setup.try_put("x", b"4", other).await), ErrorCode::LeaseIdMismatchWithBlobOperation);
    setup.clock.advance(Duration::from_secs(16));
    assert_eq!(code(setup.try_put("x", b"5", with_lease(leased.outcome.id)).await), ErrorCode::LeaseLost);
    setup.put("x", b"6").await;
    assert_eq!(
        code(setup.try_put("new", b"", with_lease(leased.outcome.id)).await),
        ErrorCode::LeaseNotPresentWithBlobOperation
    );
}

#[tokio::test]
async fn a_blob_does_not_change_its_type_and_keeps_its_creation_time() {
    let setup = setup().await;
    setup.put("x", b"1").await;
    let blob = name("x");
    let place = setup.place(&blob);
    let pre = Preconditions::default();
    let first = setup.service.blob_properties(place, Revision::Base, &pre).await.unwrap();
    let put = setup.service.put_append_blob(place, NewBlob::default(), pre.clone()).await;
    assert_eq!(code(put), ErrorCode::InvalidBlobType);
    setup.clock.advance(Duration::from_secs(5));
    setup.put("x", b"2").await;
    let second = setup.service.blob_properties(place, Revision::Base, &pre).await.unwrap();
    let (first, second) = (first.committed.unwrap(), second.committed.unwrap());
    assert_eq!(first.created, second.created);
    assert!(first.last_modified < second.last_modified);
    assert_eq!(second.http.content_md5, ContentDigest::of(b"2", true, false).md5);
}

#[tokio::test]
async fn a_body_with_other_checksums_or_too_many_bytes_changes_nothing() {
    let setup = setup().await;
    setup.put("x", b"old").await;
    let blob = name("x");
    for length in [10, 50_000] {
        let bytes = vec![7; length];
        let mut pieces = Pieces::of(&bytes);
        let expected = ExpectedChecksums { md5: Some([0; 16]), ..ExpectedChecksums::default() };
        let body = UploadBody { expected, ..pieces.body() };
        let put = setup.service.put_block_blob(
            setup.place(&blob),
            body,
            NewBlob::default(),
            Preconditions::default(),
        );
        assert_eq!(code(put.await), ErrorCode::Md5Mismatch);
        let mut pieces = Pieces::of(&bytes);
        let body = UploadBody { bytes_max: 9, expected_bytes: None, ..pieces.body() };
        let put = setup.service.put_block_blob(
            setup.place(&blob),
            body,
            NewBlob::default(),
            Preconditions::default(),
        );
        assert_eq!(code(put.await), ErrorCode::RequestBodyTooLarge);
    }
    assert_eq!(setup.read("x", Revision::Base).await.unwrap(), &b"old"[..]);
    assert_eq!(setup.service.check(true).await.unwrap().content_count, 0);
}

#[tokio::test]
async fn a_caller_that_may_only_create_does_not_overwrite() {
    let setup = setup().await;
    let pre = Preconditions { create_only: true, ..Preconditions::default() };
    setup.try_put("x", b"1", pre.clone()).await.unwrap();
    assert_eq!(code(setup.try_put("x", b"2", pre).await), ErrorCode::UnauthorizedBlobOverwrite);
}

#[tokio::test]
async fn deleted_blobs_come_back_with_their_snapshots() {
    let setup = setup().await;
    keep_deleted(&setup).await;
    let blob = name("x");
    let place = setup.place(&blob);
    let pre = Preconditions::default();
    setup.put("x", &vec![1; 20_000]).await;
    setup.put("x", &vec![2; 20_000]).await;
    let deleted =
        setup.service.delete_blob(place, Revision::Base, Deletion::default(), pre.clone()).await.unwrap();
    assert!(!deleted.is_permanent);
    assert_eq!(code(setup.read("x", Revision::Base).await), ErrorCode::BlobNotFound);
    assert!(setup.list_all("").await.is_empty());
    let page = setup.list("include=deleted").await;
    let [BlobEntry::Blob(view)] = &page.entries[..] else { panic!("{page:?}") };
    assert_eq!(view.deleted.unwrap().remaining_days, 1);
    setup.service.sweep().await.unwrap();
    setup.service.undelete_blob(place).await.unwrap();
    assert_eq!(setup.read("x", Revision::Base).await.unwrap(), vec![2; 20_000]);
    let page = setup.list("include=snapshots").await;
    let [BlobEntry::Blob(old), BlobEntry::Blob(_)] = &page.entries[..] else { panic!("{page:?}") };
    let old = Revision::Snapshot(old.snapshot.unwrap());
    assert_eq!(setup.read("x", old).await.unwrap(), vec![1; 20_000]);
    let deletion = Deletion {
        snapshots: Some(protocol::blob::properties::DeleteSnapshots::Include),
        ..Deletion::default()
    };
    setup.service.delete_blob(place, Revision::Base, deletion, pre).await.unwrap();
    setup.clock.advance(Duration::from_secs(3 * 24 * 3600));
    for _ in 0..2 {
        setup.service.sweep().await.unwrap();
    }
    assert_eq!(code(setup.service.undelete_blob(place).await), ErrorCode::BlobNotFound);
    let report = setup.service.check(true).await.unwrap();
    assert_eq!((report.blob_count, report.content_count, report.unnamed_count), (0, 0, 0));
}

#[tokio::test]
async fn versions_keep_what_was_overwritten_and_deleted() {
    let setup = setup_with(BlobOptions { keeps_versions: true, ..BlobOptions::default() }).await;
    let first = setup.put("x", &vec![1; 20_000]).await.stamp.version.unwrap();
    let second = setup.put("x", b"second").await.stamp.version.unwrap();
    assert_eq!(setup.read("x", Revision::Version(first)).await.unwrap(), vec![1; 20_000]);
    assert_eq!(setup.read("x", Revision::Version(second)).await.unwrap(), &b"second"[..]);
    let blob = name("x");
    let pre = Preconditions::default();
    setup
        .service
        .delete_blob(setup.place(&blob), Revision::Base, Deletion::default(), pre.clone())
        .await
        .unwrap();
    setup.service.sweep().await.unwrap();
    assert_eq!(code(setup.read("x", Revision::Base).await), ErrorCode::BlobNotFound);
    assert_eq!(setup.read("x", Revision::Version(second)).await.unwrap(), &b"second"[..]);
    assert_eq!(setup.list_all("include=versions").await, ["x", "x"]);
    let version = Revision::Version(first);
    setup.service.delete_blob(setup.place(&blob), version, Deletion::default(), pre).await.unwrap();
    assert_eq!(code(setup.read("x", version).await), ErrorCode::BlobNotFound);
    setup.service.sweep().await.unwrap();
    assert_eq!(setup.service.check(true).await.unwrap().unnamed_count, 0);
}

#[tokio::test]
async fn a_copy_shares_its_contents_and_outlives_its_source() {
    let setup = setup().await;
    let (from, to) = (name("from"), name("to"));
    setup.put("from", &vec![5; 100_000]).await;
    let source = CopyFrom {
        place: setup.place(&from),
        revision: Revision::Base,
        conditions: Conditions::default(),
        encryption: Default::default(),
    };
    let tags = Tags::read([("tag", "value")]).unwrap();
    let request = CopyRequest {
        source_url: "http://x/from".into(),
        is_synchronous: true,
        tags: CopyTags::Replace(tags),
        ..CopyRequest::default()
    };
    let pre = Preconditions::default();
    let copied = setup.service.copy_blob(source, setup.place(&to), request, pre.clone()).await.unwrap();
    assert_eq!(copied.checksums.crc64, ContentDigest::of(&vec![5; 100_000], false, true).crc64);
    setup
        .service
        .delete_blob(setup.place(&from), Revision::Base, Deletion::default(), pre.clone())
        .await
        .unwrap();
    setup.service.sweep().await.unwrap();
    assert_eq!(setup.read("to", Revision::Base).await.unwrap(), vec![5; 100_000]);
    let view = setup.service.blob_properties(setup.place(&to), Revision::Base, &pre).await.unwrap();
    assert_eq!(view.committed.unwrap().copy.unwrap().progress(), "100000/100000");
    let aborted = setup.service.abort_copy(setup.place(&to), copied.copy_id, None).await;
    assert_eq!(code(aborted), ErrorCode::NoPendingCopyOperation);
    setup.put("to", b"").await;
    setup.service.sweep().await.unwrap();
    let report = setup.service.check(true).await.unwrap();
    assert_eq!((report.content_count, report.unnamed_count), (0, 0));
}

#[tokio::test]
async fn blobs_are_found_by_their_tags() {
    let setup = setup().await;
    for number in 0..10 {
        let blob = name(&format!("n{number}"));
        setup.put(blob.as_str(), b"").await;
        let tags = Tags::read([("even", if number % 2 == 0 { "yes" } else { "no" })]).unwrap();
        setup
            .service
            .set_tags(setup.place(&blob), Revision::Base, tags, Preconditions::default())
            .await
            .unwrap();
    }
    let find = |query: String| {
        let setup = &setup;
        async move {
            let parameters = FindBlobsParameters::read(&Query::split(&query)).unwrap();
            setup.service.find_blobs(&setup.account, None, &parameters, Share::COMMON).await.unwrap()
        }
    };
    let page = find("where=even%3D%27yes%27&maxresults=3".to_owned()).await;
    let names: Vec<&str> = page.blobs.iter().map(|found| &*found.name).collect();
    assert_eq!(names, ["n0", "n2", "n4"]);
    let marker = page.next.unwrap().write().replace('=', "%3D");
    let page = find(format!("where=even%3D%27yes%27&marker={marker}")).await;
    let names: Vec<&str> = page.blobs.iter().map(|found| &*found.name).collect();
    assert_eq!((names, page.next), (vec!["n6", "n8"], None));
}

#[tokio::test]
async fn an_archived_blob_is_not_read_until_it_is_back() {
    let after = Duration::from_secs(100);
    let setup = setup_with(BlobOptions { rehydrates_after: Some(after), ..BlobOptions::default() }).await;
    setup.put("x", b"cold").await;
    let blob = name("x");
    let place = setup.place(&blob);
    let pre = Preconditions::default;
    let set = |tier| setup.service.set_tier(place, Revision::Base, tier, None, pre());
    assert_eq!(set(AccessTier::Archive).await.unwrap(), TierSet::Done);
    assert_eq!(code(setup.read("x", Revision::Base).await), ErrorCode::BlobArchived);
    assert_eq!(code(setup.try_put("x", b"2", pre()).await), ErrorCode::BlobArchived);
    assert_eq!(set(AccessTier::Hot).await.unwrap(), TierSet::Rehydrating);
    assert_eq!(code(setup.read("x", Revision::Base).await), ErrorCode::BlobArchived);
    setup.clock.advance(after + Duration::from_secs(1));
    assert_eq!(setup.read("x", Revision::Base).await.unwrap(), &b"cold"[..]);
    let view = setup.service.blob_properties(place, Revision::Base, &pre()).await.unwrap();
    assert_eq!((view.tier.unwrap().tier, view.blob_type), (AccessTier::Hot, BlobType::Block));
}

#[tokio::test]
async fn a_snapshot_of_pages_keeps_them_and_tells_the_difference() {
    let setup = setup().await;
    let blob = name("disk");
    let place = setup.place(&blob);
    let (pre, sequence) = (Preconditions::default, SequenceConditions::default());
    let size = 10 * 1024 * 1024;
    setup.service.put_page_blob(place, size, 0, NewBlob::default(), pre()).await.unwrap();
    let write = async |start: u64, bytes: &[u8]| {
        let range = start..start + bytes.len() as u64;
        setup.service.put_pages(place, range, Pieces::of(bytes).body(), sequence, pre()).await.unwrap();
    };
    write(0, &[1; 1024]).await;
    // Over the border of two segments.
    write(4 * 1024 * 1024 - 8192, &[2; 16384]).await;
    let taken = setup.service.snapshot_blob(place, None, pre()).await.unwrap().snapshot;
    write(512, &[3; 512]).await;
    setup.service.clear_pages(place, 4 * 1024 * 1024..4 * 1024 * 1024 + 512, sequence, pre()).await.unwrap();
    let old = setup.read("disk", Revision::Snapshot(taken)).await.unwrap();
    assert!(old[..1024] == [1; 1024] && old[4 * 1024 * 1024..][..512] == [2; 512]);
    let new = setup.read("disk", Revision::Base).await.unwrap();
    assert!(
        new[..512] == [1; 512] && new[512..1024] == [3; 512] && new[4 * 1024 * 1024..][..512] == [0; 512]
    );
    let query = |previous, count_max| PageQuery { previous, range: None, marker: None, count_max };
    let all = setup.service.page_ranges(place, Revision::Base, query(None, 2), &pre()).await.unwrap();
    let ranges: Vec<_> = all.ranges.iter().map(|found| found.range.clone()).collect();
    assert_eq!(ranges, [0..1024, 4 * 1024 * 1024 - 8192..4 * 1024 * 1024]);
    assert_eq!(all.next, Some(4 * 1024 * 1024 + 512));
    let diff =
        setup.service.page_ranges(place, Revision::Base, query(Some(taken), 10), &pre()).await.unwrap();
    let ranges: Vec<_> = diff.ranges.iter().map(|found| (found.range.clone(), found.is_cleared)).collect();
    assert_eq!(ranges, [(512..1024, false), (4 * 1024 * 1024..4 * 1024 * 1024 + 512, true)]);
    let beyond = setup.service.clear_pages(place, size..size + 512, sequence, pre()).await;
    assert_eq!(code(beyond), ErrorCode::InvalidPageRange);
}

/// A page that was cut short goes on with the entry that did not fit.
#[tokio::test]
async fn every_entry_can_begin_the_next_page() {
    for options in [BlobOptions::default(), BlobOptions { keeps_versions: true, ..BlobOptions::default() }] {
        let setup = setup_with(options).await;
        for name_text in ["a", "b"] {
            let blob = name(name_text);
            for content in [b"1", b"2", b"3"] {
                setup.put(name_text, content).await;
                setup
                    .service
                    .snapshot_blob(setup.place(&blob), None, Preconditions::default())
                    .await
                    .unwrap();
            }
        }
        let query = "include=snapshots,versions";
        let all = setup.list(query).await.entries;
        assert!(all.len() >= 8, "{}", all.len());
        for (at, entry) in all.iter().enumerate() {
            let marker = entry.marker().write().replace('=', "%3D");
            let rest = setup.list(&format!("{query}&marker={marker}")).await.entries;
            assert_eq!(rest.len(), all.len() - at, "{entry:?}");
            assert_eq!(rest[0].marker(), entry.marker());
        }
    }
}
