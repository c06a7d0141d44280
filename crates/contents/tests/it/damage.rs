//! Damage is an error, never wrong bytes, and never a panic.

use contents::{ContentError, ContentStore, LocalContents};
use fastrand::Rng;

use crate::disk::Disk;
use crate::support::*;

#[tokio::test]
async fn a_damaged_byte_is_an_error_or_does_no_harm() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    let mut all = Vec::new();
    for (seed, length) in [5, 4_096, 100_000, 250_000, 700_000, 1_200_000].into_iter().enumerate() {
        let bytes = bytes(seed as u64, length);
        all.push((write(&*contents, &bytes).await, bytes));
    }
    contents.close().await;
    let mut random = Rng::with_seed(1);
    let (mut errors, mut refused) = (0, 0);
    for round in 0..600 {
        let names = Disk::names(&disk);
        let name = &names[random.usize(..names.len())];
        let size = disk.size(name);
        // Every other one hits a head.
        let offset = if round % 2 == 0 {
            random.usize(..size)
        } else {
            random.usize(..size / 4096) * 4096 + random.usize(..64)
        };
        let mask = 1 << random.u8(..8);
        disk.damage(name, offset, mask);
        // Sometimes the damage is found by a store that was open before, sometimes by a new one.
        let reopened = LocalContents::open_files(disk.clone(), small_options()).map(std::sync::Arc::new);
        if let Ok(reopened) = &reopened {
            stored(&**reopened).await;
        } else {
            refused += 1;
        }
        for contents in [Some(&contents), reopened.as_ref().ok()].into_iter().flatten() {
            for (list, bytes) in &all {
                match try_read(contents, list, 0..u64::MAX).await {
                    Ok(found) => assert!(found == *bytes, "{name} at {offset}"),
                    Err(ContentError::Damaged(_) | ContentError::NotFound) => errors += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
        drop(reopened);
        disk.damage(name, offset, mask);
    }
    assert!(errors > 300, "the damage was found {errors} times");
    // One damaged copy of an extent's head does not matter.
    assert_eq!(refused, 0);
    for (list, bytes) in &all {
        assert!(read(&contents, list).await == *bytes);
    }
}

#[tokio::test]
async fn damage_in_one_block_leaves_the_others_readable() {
    let disk = Disk::new();
    let contents = on_disk(&disk);
    let bytes = bytes(1, 600_000);
    let list = write(&*contents, &bytes).await;
    let name = &Disk::names(&disk)[0];
    // The head of the extent, the head of the chunk, and the second block.
    assert!(disk.damage(name, 4096 + 4096 + 70_000, 1));
    let damaged = try_read(&contents, &list, 70_000..70_001).await;
    assert!(matches!(damaged, Err(ContentError::Damaged(_))), "{damaged:?}");
    assert!(try_read(&contents, &list, 0..65_536).await.unwrap() == bytes[..65_536]);
    assert!(try_read(&contents, &list, 131_072..600_000).await.unwrap() == bytes[131_072..]);
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let contents = local(directory.path());
    let list = write(&*contents, &bytes(1, 600_000)).await;
    drop(contents);
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        std::fs::File::options().write(true).open(entry.unwrap().path()).unwrap().set_len(100_000).unwrap();
    }
    let contents = local(directory.path());
    let cut = try_read(&contents, &list, 0..u64::MAX).await;
    assert!(matches!(cut, Err(ContentError::Damaged(_))), "{cut:?}");
    assert!(write(&*contents, &bytes(2, 600_000)).await != list);
}

#[tokio::test]
async fn random_files_are_refused_or_empty() {
    let mut random = Rng::with_seed(2);
    for _ in 0..50 {
        let directory = tempfile::tempdir().unwrap();
        let mut noise = vec![0; random.usize(..20_000)];
        random.fill(&mut noise);
        std::fs::write(directory.path().join("extent-0000000001.bytes"), &noise).unwrap();
        std::fs::write(directory.path().join("something else"), &noise).unwrap();
        if let Ok(contents) = LocalContents::open(directory.path(), options()) {
            assert!(stored(&contents).await.is_empty());
            contents.close().await;
        }
    }
}
