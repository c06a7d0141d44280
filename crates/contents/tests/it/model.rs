//! Random operations against a plain model, with restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use contents::{ContentRef, ContentStore, Pin};
use fastrand::Rng;

use crate::disk::Disk;
use crate::support::*;

const STEPS: usize = 150;

#[derive(Default)]
struct Model {
    kept: BTreeMap<u64, (Vec<ContentRef>, Bytes)>,
    next: u64,
}

impl Model {
    async fn step(
        &mut self,
        contents: &Arc<impl ContentStore>,
        random: &mut Rng,
        pins: &mut Vec<(Pin, Vec<ContentRef>, Bytes)>,
    ) {
        let any = |random: &mut Rng, kept: &BTreeMap<u64, _>| {
            kept.keys().nth(random.usize(..kept.len().max(1))).copied()
        };
        match random.u8(..10) {
            0..4 => {
                self.next += 1;
                let length = [1, 5_000, 70_000, 300_000, 1_500_000][random.usize(..5)];
                let mut bytes = bytes(self.next, random.usize(1..=length));
                if random.u8(..8) == 0 {
                    bytes = vec![0; bytes.len()].into();
                }
                let list =
                    try_write(&**contents, &bytes, random.usize(1_000..200_000)).await.unwrap().contents;
                self.kept.insert(self.next, (list, bytes));
            }
            4 => {
                let mut writer = contents.writer(None);
                writer.push(bytes(1, random.usize(..1_000_000))).await.unwrap();
            }
            5..7 => {
                if let Some((list, bytes)) = any(random, &self.kept).and_then(|key| self.kept.remove(&key)) {
                    if random.bool() {
                        pins.push((contents.pin(), list.clone(), bytes));
                    }
                    contents.forget(&list).await.unwrap();
                }
            }
            7 => {
                for (_pin, list, bytes) in pins.drain(..) {
                    assert!(read(contents, &list).await == bytes, "what is pinned can be read");
                }
            }
            8 => {
                let keep: Vec<ContentRef> = self.kept.values().flat_map(|(list, _)| list.clone()).collect();
                // What is pinned is stored still, and forgotten twice.
                sweep(&**contents, &keep).await;
            }
            _ => {
                if let Some((list, bytes)) = any(random, &self.kept).map(|key| self.kept[&key].clone()) {
                    let start = random.usize(..bytes.len());
                    let end = random.usize(start..=bytes.len());
                    let read = try_read(contents, &list, start as u64..end as u64).await.unwrap();
                    assert!(read == bytes[start..end]);
                }
            }
        }
    }

    async fn check(&self, contents: &Arc<impl ContentStore>) {
        for (list, bytes) in self.kept.values() {
            assert!(read(contents, list).await == *bytes);
        }
        let mut keep: Vec<ContentRef> = self.kept.values().flat_map(|(list, _)| list.clone()).collect();
        sweep(&**contents, &keep).await;
        let mut found = stored(&**contents).await;
        found.sort();
        keep.sort();
        assert_eq!(found, keep);
    }
}

#[tokio::test]
async fn memory_does_what_the_model_does() {
    for seed in 0..3 {
        let (mut random, mut model, mut pins) = (Rng::with_seed(seed), Model::default(), Vec::new());
        let contents = memory(1 << 40);
        for _ in 0..STEPS {
            model.step(&contents, &mut random, &mut pins).await;
        }
        drop(pins);
        model.check(&contents).await;
    }
}

#[cfg(feature = "objects")]
#[tokio::test]
async fn objects_do_what_the_model_does_across_restarts() {
    let (mut random, mut model) = (Rng::with_seed(3), Model::default());
    let objects: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    for _ in 0..3 {
        let contents = crate::objects::on(objects.clone()).await;
        let mut pins = Vec::new();
        for _ in 0..STEPS / 2 {
            model.step(&contents, &mut random, &mut pins).await;
        }
        drop(pins);
        contents.close().await;
        model.check(&contents).await;
    }
}

#[tokio::test]
async fn a_directory_does_what_the_model_does_across_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let (mut random, mut model) = (Rng::with_seed(7), Model::default());
    for _ in 0..4 {
        let contents = local_small(directory.path());
        let mut pins = Vec::new();
        for _ in 0..STEPS / 2 {
            model.step(&contents, &mut random, &mut pins).await;
        }
        drop(pins);
        contents.close().await;
        model.check(&contents).await;
    }
}

#[tokio::test]
async fn a_disk_that_cannot_punch_does_what_the_model_does_across_restarts() {
    for seed in 0..2 {
        let (disk, mut random, mut model) = (Disk::new(), Rng::with_seed(seed), Model::default());
        if seed == 0 {
            disk.cannot_punch();
        }
        for _ in 0..3 {
            let contents = on_disk(&disk);
            let mut pins = Vec::new();
            for _ in 0..STEPS / 2 {
                model.step(&contents, &mut random, &mut pins).await;
            }
            drop(pins);
            contents.close().await;
            model.check(&contents).await;
        }
    }
}
