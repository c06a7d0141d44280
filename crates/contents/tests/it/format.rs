//! The bytes on the disk are those of docs/contents.md.

use std::sync::Arc;

use bytes::Bytes;
use contents::local::DIRECTORY;
use contents::{
    CONTENT_REF_BYTES, ContentId, ContentStore, ContentsOptions, LocalContents, UnixMilliseconds,
};

use crate::support::*;

const SALT: u64 = 0x5555_4444_3333_2222;

fn checksum(parts: &[&[u8]]) -> [u8; 4] {
    crc32fast::hash(&parts.concat()).to_le_bytes()
}

#[tokio::test]
async fn a_short_content_lies_on_the_disk_as_the_page_says() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join(DIRECTORY);
    let now: UnixMilliseconds = Arc::new(|| 1_700_000_000_123);
    // The same number for the nonce and for the salt.
    let contents =
        LocalContents::open(&directory, ContentsOptions::new(STORE, Arc::new(|| SALT), now)).unwrap();
    let list = write(&contents, &Bytes::from_static(b"hello")).await;
    let encoded: [u8; CONTENT_REF_BYTES] = list[0].encode();
    let expected =
        [&[1, 5, 0, 0, 0, 0, 0, 0][..], &1u32.to_le_bytes(), &1u32.to_le_bytes(), &SALT.to_le_bytes()]
            .concat();
    assert_eq!(encoded[..], expected);
    let id: ContentId = list[0].id();
    assert_eq!(id.as_bytes()[..], expected[8..]);

    let file = std::fs::read(directory.join("extent-0000000001.bytes")).unwrap();
    let head =
        [&b"LZLEXTN1"[..], &1u32.to_le_bytes(), &[0; 4], &STORE.to_le_bytes(), &SALT.to_le_bytes(), &[0; 4]]
            .concat();
    assert_eq!(file[..36], head);
    assert_eq!(file[36..40], checksum(&[&head]));
    assert_eq!(file[2048..2088], file[..40]);
    assert!(file[40..2048].iter().chain(&file[2088..4096]).all(|byte| *byte == 0));

    let block = checksum(&[&SALT.to_le_bytes(), &0u32.to_le_bytes(), b"hello"]);
    let rest = [
        &SALT.to_le_bytes()[..],
        &5u32.to_le_bytes(),
        &48u32.to_le_bytes(),
        &4096u32.to_le_bytes(),
        &[0; 4],
        &1_700_000_000_123u64.to_le_bytes(),
        &block,
    ]
    .concat();
    let chunk = &file[4096..];
    assert_eq!(chunk[..4], *b"LZLC");
    assert_eq!(
        chunk[4..8],
        checksum(&[&SALT.to_le_bytes(), &1u32.to_le_bytes(), &1u32.to_le_bytes(), b"LZLC", &rest])
    );
    assert_eq!(chunk[8..44], rest);
    assert_eq!(chunk[48..53], *b"hello");

    contents.forget(&list).await.unwrap();
    let file = std::fs::read(directory.join("extent-0000000001.bytes")).unwrap();
    assert_eq!(file[4096..4100], *b"LZLX");
}
