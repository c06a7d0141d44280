//! Sweeps forget what no row names, and nothing else.

use std::time::Duration;

use blobs::{NewBlob, Preconditions};
use protocol::ErrorCode;
use protocol::blob::BlobName;
use protocol::blob::block_list::BlockSource;
use protocol::blob::conditions::Conditions;
use protocol::blob::identifier::Revision;
use protocol::blob::properties::BlockListType;

use crate::support::*;

#[tokio::test]
async fn staged_blocks_are_gone_after_a_week() {
    let setup = setup().await;
    let name = BlobName::parse("staged").unwrap();
    let pre = Preconditions::default();
    setup
        .service
        .put_block(setup.place(&name), &block_id(1), Pieces::of(b"x").body(), pre.clone())
        .await
        .unwrap();
    setup.clock.advance(Duration::from_secs(6 * 24 * 3600));
    setup.service.sweep().await.unwrap();
    let list = setup.service.block_list(setup.place(&name), Revision::Base, BlockListType::All, &pre).await;
    assert_eq!(list.unwrap().uncommitted.len(), 1);
    setup.clock.advance(Duration::from_secs(2 * 24 * 3600));
    for _ in 0..2 {
        setup.service.sweep().await.unwrap();
    }
    let list = setup.service.block_list(setup.place(&name), Revision::Base, BlockListType::All, &pre).await;
    assert_eq!(code(list), ErrorCode::BlobNotFound);
    assert_eq!(setup.service.check(true).await.unwrap().unnamed_count, 0);
}

#[tokio::test]
async fn the_contents_of_a_deleted_container_are_forgotten() {
    let setup = setup().await;
    setup.put("large", &vec![1; 100_000]).await;
    setup
        .service
        .delete_container(&setup.account, &setup.container, None, &Conditions::default())
        .await
        .unwrap();
    assert_eq!(setup.service.check(true).await.unwrap().unnamed_count, 1);
    let report = setup.service.sweep().await.unwrap();
    assert_eq!((report.forgotten_content_count, report.forgotten_bytes), (1, 100_000));
}

#[tokio::test]
async fn a_list_of_many_blocks_is_kept_in_nodes_and_survives_a_sweep() {
    let setup = setup().await;
    let name = BlobName::parse("many").unwrap();
    let pre = Preconditions::default();
    let mut list = Vec::new();
    for number in 0..3000u32 {
        let mut body = Pieces::of(&number.to_be_bytes());
        setup
            .service
            .put_block(setup.place(&name), &block_id(number), body.body(), pre.clone())
            .await
            .unwrap();
        list.push((BlockSource::Uncommitted, block_id(number)));
    }
    setup.service.put_block_list(setup.place(&name), list, NewBlob::default(), pre.clone()).await.unwrap();
    for _ in 0..2 {
        setup.service.sweep().await.unwrap();
    }
    let read = setup.read("many", Revision::Base).await.unwrap();
    assert!(read.chunks(4).enumerate().all(|(number, bytes)| bytes == (number as u32).to_be_bytes()));
    // A list that takes over blocks of the old one, and drops most.
    let list = vec![(BlockSource::Committed, block_id(2999)), (BlockSource::Latest, block_id(7))];
    setup.service.put_block_list(setup.place(&name), list, NewBlob::default(), pre).await.unwrap();
    setup.service.sweep().await.unwrap();
    let read = setup.read("many", Revision::Base).await.unwrap();
    assert_eq!(read, [2999u32.to_be_bytes(), 7u32.to_be_bytes()].concat());
    let report = setup.service.check(true).await.unwrap();
    assert_eq!((report.content_count, report.unnamed_count, report.finding_count), (2, 0, 0));
}

#[tokio::test]
async fn a_reader_that_trickles_does_not_keep_what_is_forgotten() {
    let setup = setup().await;
    setup.put("large", &vec![1; 4_000_000]).await;
    let name = BlobName::parse("large").unwrap();
    let pre = Preconditions::default();
    let open = async || {
        let open = setup.service.open_blob(setup.place(&name), Revision::Base, None, &pre).await;
        open.unwrap().stream(0..4_000_000)
    };
    let (mut slow, mut unread, mut quick) = (open().await, open().await, open().await);
    let (first, _) = (slow.next().await.unwrap().unwrap(), quick.next().await.unwrap().unwrap());
    assert!(first.len() < 4_000_000, "it is one of several pieces");
    // Until it has sent something, a stream belongs to a request that is being answered.
    assert!(unread.next().await.is_some());
    setup.clock.advance(Duration::from_secs(9 * 60));
    setup.service.sweep().await.unwrap();
    while let Some(piece) = quick.next().await {
        piece.unwrap();
    }
    assert_eq!(setup.service.contents().gauges().pin_count, 2, "what is read to its end needs no pin");
    setup.clock.advance(Duration::from_secs(3600));
    setup.service.sweep().await.unwrap();
    assert_eq!(setup.service.contents().gauges().pin_count, 0);
    assert_eq!(code(slow.next().await.unwrap()), ErrorCode::OperationTimedOut);
    assert!(
        slow.next().await.is_none() && code(unread.next().await.unwrap()) == ErrorCode::OperationTimedOut
    );
}
