//! What every implementation promises, on all of them.

use std::sync::Arc;

use bytes::Bytes;
use contents::{ContentError, ContentRef, ContentStore, Hold, PendingContent, verify};

use crate::disk::Disk;
use crate::support::*;

macro_rules! on_all {
    ($($name:ident),+ $(,)?) => {
        mod on_memory {$(
            #[tokio::test]
            async fn $name() {
                super::$name(crate::support::memory(1 << 30)).await;
            }
        )+}
        mod on_a_directory {$(
            #[tokio::test]
            async fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::$name(crate::support::local_small(directory.path())).await;
            }
        )+}
        mod on_a_disk_that_cannot_punch {$(
            #[tokio::test]
            async fn $name() {
                let disk = super::Disk::new();
                disk.cannot_punch();
                super::$name(crate::support::on_disk(&disk)).await;
            }
        )+}
        #[cfg(feature = "objects")]
        mod on_objects_in_memory {$(
            #[tokio::test]
            async fn $name() {
                super::$name(crate::objects::in_memory().await.0).await;
            }
        )+}
        #[cfg(feature = "objects")]
        mod on_objects_in_a_directory {$(
            #[tokio::test]
            async fn $name() {
                let directory = tempfile::tempdir().unwrap();
                super::$name(crate::objects::in_directory(directory.path()).await).await;
            }
        )+}
        #[cfg(feature = "objects")]
        mod on_a_real_s3_server {$(
            #[tokio::test]
            async fn $name() {
                let Some(server) = crate::s3_server::S3Server::start(stringify!($name)) else { return };
                super::$name(server.contents().await).await;
            }
        )+}
    };
}

on_all!(
    what_is_written_is_read,
    ranges_are_cut_at_both_ends,
    an_empty_content_has_no_parts,
    what_is_forgotten_is_not_found,
    forgetting_twice_or_something_else_is_no_error,
    a_pin_keeps_bytes_until_it_is_dropped,
    an_abandoned_writer_leaves_nothing,
    a_cancelled_finish_leaves_nothing,
    a_sweep_sees_everything_but_pending_contents,
    a_sweep_does_not_forget_what_is_held,
    references_survive_encoding,
    a_writer_without_a_hint_or_with_a_wrong_one_writes_the_same,
);

async fn what_is_written_is_read(contents: Arc<impl ContentStore>) {
    for (seed, length) in
        [1, 4096, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 256 * KIB, 256 * KIB + 1, MIB, 5 * MIB + 7]
            .into_iter()
            .enumerate()
    {
        let bytes = bytes(seed as u64, length);
        for piece in [1000, 64 * KIB, 10 * MIB] {
            let written = try_write(&*contents, &bytes, piece).await.unwrap();
            assert_eq!(written.contents.iter().map(ContentRef::length).sum::<u64>(), length as u64);
            written.pending.adopt();
            assert!(read(&contents, &written.contents).await == bytes, "{length} in pieces of {piece}");
            for content in &written.contents {
                verify(&*contents, content).await.unwrap();
            }
        }
    }
}

async fn ranges_are_cut_at_both_ends(contents: Arc<impl ContentStore>) {
    let length = 3 * MIB + 12_345;
    let bytes = bytes(1, length);
    let list = write(&*contents, &bytes).await;
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let start = random.usize(..length + 10);
        let longest = [2, 70_000, length][random.usize(..3)];
        let end = start + random.usize(..longest);
        let expected = &bytes[start.min(length)..end.min(length)];
        assert!(
            try_read(&contents, &list, start as u64..end as u64).await.unwrap() == expected,
            "{start}..{end}"
        );
    }
    assert!(try_read(&contents, &list, 9..9).await.unwrap().is_empty());
    assert!(try_read(&contents, &list, u64::MAX - 1..u64::MAX).await.unwrap().is_empty());
}

async fn an_empty_content_has_no_parts(contents: Arc<impl ContentStore>) {
    assert!(contents.writer(None).finish().await.unwrap().contents.is_empty());
    let mut writer = contents.writer(Some(0));
    writer.push(Bytes::new()).await.unwrap();
    assert!(writer.finish().await.unwrap().contents.is_empty());
    assert!(read(&contents, &[]).await.is_empty());
}

async fn what_is_forgotten_is_not_found(contents: Arc<impl ContentStore>) {
    for length in [1, 100 * KIB, MIB] {
        let (gone, kept) = (bytes(1, length), bytes(2, length));
        let (gone_list, kept_list) = (write(&*contents, &gone).await, write(&*contents, &kept).await);
        contents.forget(&gone_list).await.unwrap();
        assert_eq!(try_read(&contents, &gone_list, 0..1).await, Err(ContentError::NotFound));
        assert!(read(&contents, &kept_list).await == kept);
    }
}

async fn forgetting_twice_or_something_else_is_no_error(contents: Arc<impl ContentStore>) {
    let list = write(&*contents, &bytes(1, 10)).await;
    contents.forget(&list).await.unwrap();
    contents.forget(&list).await.unwrap();
    for byte in [0, 1, 0xff] {
        let other = ContentRef::decode(&[[1].as_slice(), &[byte; 23]].concat()).unwrap();
        contents.forget(&[other]).await.unwrap();
        assert_eq!(try_read(&contents, &[other], 0..1).await.unwrap_or_default(), b"");
    }
}

async fn a_pin_keeps_bytes_until_it_is_dropped(contents: Arc<impl ContentStore>) {
    let bytes = bytes(1, 2 * MIB);
    let list = write(&*contents, &bytes).await;
    let pin = contents.pin();
    let mut reader = contents.open(&list[0], 0..list[0].length(), pin.clone());
    let mut all = reader.next().await.unwrap().unwrap().to_vec();
    contents.forget(&list).await.unwrap();
    assert_eq!(contents.gauges().deferred_count, list.len() as u64);
    all.extend(rest(&mut *reader).await);
    assert!(all == bytes[..all.len()] && all.len() as u64 == list[0].length());
    drop(reader);
    assert_eq!(contents.gauges().deferred_count, list.len() as u64);
    drop(pin);
    contents.close().await;
    assert_eq!(contents.gauges().deferred_count, 0);
    assert_eq!(try_read(&contents, &list, 0..1).await, Err(ContentError::NotFound));
}

async fn an_abandoned_writer_leaves_nothing(contents: Arc<impl ContentStore>) {
    for length in [10, 100 * KIB, 3 * MIB] {
        let writer = begin(&*contents, bytes(1, length)).await;
        drop(writer);
    }
    contents.close().await;
    assert!(stored(&*contents).await.is_empty());
}

async fn a_cancelled_finish_leaves_nothing(contents: Arc<impl ContentStore>) {
    for length in [10, 3 * MIB] {
        let mut writer = contents.writer(None);
        writer.push(bytes(1, length)).await.unwrap();
        let mut finish = writer.finish();
        // Polls it once.
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(finish.as_mut().poll(context))).await;
        drop(finish);
        if let std::task::Poll::Ready(written) = polled {
            contents.forget(&written.unwrap().contents).await.unwrap();
        }
    }
    contents.close().await;
    assert!(stored(&*contents).await.is_empty());
}

async fn a_sweep_sees_everything_but_pending_contents(contents: Arc<impl ContentStore>) {
    let mut expected = Vec::new();
    for seed in 0..20 {
        expected.extend(write(&*contents, &bytes(seed, 50_000 * seed as usize + 1)).await);
    }
    let pending = try_write(&*contents, &bytes(1, 10), 10).await.unwrap();
    let mut writer = contents.writer(None);
    writer.push(bytes(2, MIB)).await.unwrap();
    let after = write(&*contents, &bytes(3, 10)).await;
    let mut found = stored(&*contents).await;
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let late = contents.sweep().await.unwrap();
    let written = writer.finish().await.unwrap();
    drop(late);
    let (pending_list, written_list) = (pending.contents, written.contents);
    [pending.pending, written.pending].into_iter().for_each(PendingContent::adopt);
    expected.extend(pending_list.iter().chain(&written_list).chain(&after));
    let mut found = stored(&*contents).await;
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(sweep(&*contents, &expected).await, 0);
    assert_eq!(sweep(&*contents, &pending_list).await, expected.len() - 1);
    assert_eq!(stored(&*contents).await, pending_list);
}

async fn a_sweep_does_not_forget_what_is_held(contents: Arc<impl ContentStore>) {
    let (first, second) = (write(&*contents, &bytes(1, 10)).await, write(&*contents, &bytes(2, 10)).await);
    let mut sweep = contents.sweep().await.unwrap();
    let all = next(&mut *sweep).await;
    let hold: Hold = contents.hold(&first);
    drop(hold);
    assert_eq!(sweep.forget(&all).await.unwrap(), 1);
    drop(sweep);
    assert_eq!(stored(&*contents).await, first);
    assert_eq!(try_read(&contents, &second, 0..1).await, Err(ContentError::NotFound));
}

async fn references_survive_encoding(contents: Arc<impl ContentStore>) {
    let bytes = bytes(1, 3 * MIB);
    let list = write(&*contents, &bytes).await;
    let decoded: Vec<ContentRef> =
        list.iter().map(|content| ContentRef::decode(&content.encode()).unwrap()).collect();
    assert_eq!(list, decoded);
    assert!(read(&contents, &decoded).await == bytes);
}

async fn a_writer_without_a_hint_or_with_a_wrong_one_writes_the_same(contents: Arc<impl ContentStore>) {
    for hint in [None, Some(0), Some(1), Some(700_000), Some(u64::MAX)] {
        for length in [1, 300_000, 3 * MIB + 1] {
            let bytes = bytes(length as u64, length);
            let mut writer = contents.writer(hint);
            for piece in bytes.chunks(33_333) {
                writer.push(Bytes::copy_from_slice(piece)).await.unwrap();
            }
            let written = writer.finish().await.unwrap();
            assert!(read(&contents, &written.contents).await == bytes, "{hint:?}, {length}");
        }
    }
}
