//! Random operations against a plain model: names with bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use blobs::{BlobOptions, CopyFrom, CopyRequest, Deletion, NewBlob, PageQuery, Preconditions};
use protocol::ErrorCode;
use protocol::blob::BlobName;
use protocol::blob::block_list::BlockSource;
use protocol::blob::conditions::{AppendConditions, Conditions, SequenceConditions};
use protocol::blob::identifier::Revision;
use protocol::blob::properties::{BlobType, BlockListType, DeleteSnapshots, PropertiesChange};
use protocol::blob::range::ByteRange;
use protocol::common::{DateTime, Metadata};

use crate::support::*;

const NAMES: [&str; 5] = ["a", "a/b", "a/c", "b", "page"];
const PAGE: usize = 512;

#[derive(Clone, Default)]
struct ModelBlob {
    live: Option<ModelContent>,
    staged: BTreeMap<u32, Vec<u8>>,
    snapshots: Vec<(DateTime, ModelContent)>,
}

#[derive(Clone)]
struct ModelContent {
    blob_type: BlobType,
    bytes: Vec<u8>,
    blocks: Vec<(u32, Vec<u8>)>,
    metadata: Metadata,
    /// Pages that were written.
    written: Vec<bool>,
    etag: u64,
}

struct Run {
    setup: Setup,
    random: fastrand::Rng,
    blobs: BTreeMap<&'static str, ModelBlob>,
    last_etag: u64,
}

fn type_of(name: &str) -> BlobType {
    match name {
        "b" => BlobType::Append,
        "page" => BlobType::Page,
        _ => BlobType::Block,
    }
}

impl Run {
    fn length(&mut self) -> usize {
        let longest = [1, 600, 9_000, 20_000, 300_000][self.random.usize(..5)];
        self.random.usize(..longest) + 1
    }

    /// A new content with an ETag that is greater than all before.
    fn set(&mut self, name: &'static str, etag: u64, mut content: ModelContent) {
        assert!(etag > self.last_etag, "ETags grow");
        self.last_etag = etag;
        content.etag = etag;
        self.blobs.entry(name).or_default().live = Some(content);
    }

    fn content(&self, name: &str) -> Option<ModelContent> {
        self.blobs.get(name).and_then(|blob| blob.live.clone())
    }

    async fn step(&mut self) {
        let name = NAMES[self.random.usize(..NAMES.len())];
        let setup = self.setup.clone();
        let blob = BlobName::parse(name).unwrap();
        let place = setup.place(&blob);
        let pre = Preconditions::default();
        self.setup.clock.advance(Duration::from_millis(self.random.u64(..3)));
        match (self.random.u32(..100), type_of(name)) {
            (0..12, BlobType::Block) => {
                let length = self.length() - 1;
                let bytes = random_bytes(&mut self.random, length);
                let put = setup.put(name, &bytes).await;
                self.set(name, put.stamp.etag.0, block(bytes, Vec::new()));
                self.blobs.get_mut(name).unwrap().staged.clear();
            }
            (0..4, BlobType::Append) => {
                let stamp = setup.service.put_append_blob(place, NewBlob::default(), pre).await.unwrap();
                let content = ModelContent { blob_type: BlobType::Append, ..block(Vec::new(), Vec::new()) };
                self.set(name, stamp.etag.0, content);
            }
            (0..4, BlobType::Page) => {
                let size = self.random.usize(..20_000) * PAGE;
                let put = setup.service.put_page_blob(place, size as u64, 0, NewBlob::default(), pre);
                let stamp = put.await.unwrap();
                let content = ModelContent {
                    blob_type: BlobType::Page,
                    written: vec![false; size / PAGE],
                    ..block(vec![0; size], Vec::new())
                };
                self.set(name, stamp.etag.0, content);
            }
            (12..30, BlobType::Block) => {
                let number = self.random.u32(..6);
                let length = self.length();
                let bytes = random_bytes(&mut self.random, length);
                let mut body = Pieces::of(&bytes);
                setup.service.put_block(place, &block_id(number), body.body(), pre).await.unwrap();
                self.blobs.entry(name).or_default().staged.insert(number, bytes);
            }
            (30..42, BlobType::Block) => self.commit_blocks(name).await,
            (4..50, BlobType::Append) => {
                let length = self.length();
                let bytes = random_bytes(&mut self.random, length);
                let mut body = Pieces::of(&bytes);
                let outcome =
                    setup.service.append_block(place, body.body(), AppendConditions::default(), pre).await;
                match self.content(name) {
                    Some(mut content) => {
                        let appended = outcome.unwrap();
                        assert_eq!(appended.offset, content.bytes.len() as u64);
                        content.bytes.extend(bytes);
                        self.set(name, appended.stamp.etag.0, content);
                    }
                    None => assert_eq!(code(outcome), ErrorCode::BlobNotFound),
                }
            }
            (4..50, BlobType::Page) => self.change_pages(name).await,
            (50..58, _) => {
                let outcome = setup.service.snapshot_blob(place, None, pre).await;
                match self.content(name) {
                    Some(content) => {
                        let taken = outcome.unwrap();
                        assert_eq!(taken.stamp.etag.0, content.etag);
                        self.blobs.get_mut(name).unwrap().snapshots.push((taken.snapshot, content));
                    }
                    None => assert_eq!(code(outcome), ErrorCode::BlobNotFound),
                }
            }
            (58..64, _) => self.delete(name).await,
            (64..70, _) => {
                let metadata = Metadata::read([("Key", &*self.random.u32(..).to_string())]).unwrap();
                let outcome = setup.service.set_metadata(place, metadata.clone(), pre).await;
                match self.content(name) {
                    Some(content) => {
                        self.set(name, outcome.unwrap().etag.0, ModelContent { metadata, ..content })
                    }
                    None => assert_eq!(code(outcome), ErrorCode::BlobNotFound),
                }
            }
            (70..78, _) => self.copy(name).await,
            (78..80, _) => {
                setup.service.sweep().await.unwrap();
            }
            _ => self.check_blob(name).await,
        }
    }

    async fn commit_blocks(&mut self, name: &'static str) {
        let blob = BlobName::parse(name).unwrap();
        let model = self.blobs.entry(name).or_default().clone();
        let committed: BTreeMap<u32, Vec<u8>> =
            model.live.iter().flat_map(|live| live.blocks.iter().cloned()).collect();
        let mut list = Vec::new();
        let mut blocks = Vec::new();
        for _ in 0..self.random.usize(..8) {
            let number = self.random.u32(..6);
            let source = [BlockSource::Latest, BlockSource::Committed, BlockSource::Uncommitted]
                [self.random.usize(..3)];
            let (old, new) = (committed.get(&number), model.staged.get(&number));
            let found = match source {
                BlockSource::Latest => new.or(old),
                BlockSource::Committed => old,
                BlockSource::Uncommitted => new,
            };
            list.push((source, block_id(number)));
            blocks.push(found.map(|bytes| (number, bytes.clone())));
        }
        let blocks: Option<Vec<_>> = blocks.into_iter().collect();
        let setup = self.setup.clone();
        let put = setup.service.put_block_list(
            setup.place(&blob),
            list,
            NewBlob::default(),
            Preconditions::default(),
        );
        let outcome = put.await;
        match blocks {
            Some(blocks) => {
                let bytes = blocks.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
                self.set(name, outcome.unwrap().etag.0, block(bytes, blocks));
                self.blobs.get_mut(name).unwrap().staged.clear();
            }
            None => assert_eq!(code(outcome), ErrorCode::InvalidBlockList),
        }
    }

    async fn change_pages(&mut self, name: &'static str) {
        let Some(mut content) = self.content(name) else { return };
        let blob = BlobName::parse(name).unwrap();
        let setup = self.setup.clone();
        let place = setup.place(&blob);
        let (sequence, pre) = (SequenceConditions::default(), Preconditions::default());
        let count = content.written.len();
        if count == 0 || self.random.u32(..20) == 0 {
            let size = self.random.usize(..20_000) * PAGE;
            let change =
                PropertiesChange { page_blob_bytes: Some(size as u64), ..PropertiesChange::default() };
            let set = setup.service.set_properties(place, change, pre).await.unwrap();
            content.bytes.resize(size, 0);
            content.written.resize(size / PAGE, false);
            return self.set(name, set.stamp.etag.0, content);
        }
        let first = self.random.usize(..count);
        let longest = [4, 100, 8192][self.random.usize(..3)];
        let last = (first + 1 + self.random.usize(..longest)).min(count);
        let range = (first * PAGE) as u64..(last * PAGE) as u64;
        if self.random.u32(..4) == 0 {
            let range = if self.random.u32(..8) == 0 { 0..content.bytes.len() as u64 } else { range };
            let cleared = setup.service.clear_pages(place, range.clone(), sequence, pre).await.unwrap();
            let range = range.start as usize..range.end as usize;
            content.bytes[range.clone()].fill(0);
            content.written[range.start / PAGE..range.end / PAGE].fill(false);
            return self.set(name, cleared.stamp.etag.0, content);
        }
        let bytes = random_bytes(&mut self.random, (range.end - range.start) as usize);
        let mut body = Pieces::of(&bytes);
        let written =
            setup.service.put_pages(place, range.clone(), body.body(), sequence, pre).await.unwrap();
        content.bytes[range.start as usize..range.end as usize].copy_from_slice(&bytes);
        content.written[first..last].fill(true);
        self.set(name, written.stamp.etag.0, content);
    }

    async fn delete(&mut self, name: &'static str) {
        let blob = BlobName::parse(name).unwrap();
        let setup = self.setup.clone();
        let snapshots =
            [None, Some(DeleteSnapshots::Include), Some(DeleteSnapshots::Only)][self.random.usize(..3)];
        let deletion = Deletion { snapshots, ..Deletion::default() };
        let delete =
            setup.service.delete_blob(setup.place(&blob), Revision::Base, deletion, Preconditions::default());
        let outcome = delete.await;
        let model = self.blobs.entry(name).or_default();
        if model.live.is_none() {
            match model.staged.is_empty() {
                true => assert_eq!(code(outcome), ErrorCode::BlobNotFound),
                false => assert!(outcome.unwrap().is_permanent),
            }
            model.staged.clear();
        } else if snapshots.is_none() && !model.snapshots.is_empty() {
            assert_eq!(code(outcome), ErrorCode::SnapshotsPresent);
        } else {
            outcome.unwrap();
            model.snapshots.clear();
            if snapshots != Some(DeleteSnapshots::Only) {
                *model = ModelBlob::default();
            }
        }
    }

    async fn copy(&mut self, name: &'static str) {
        let others: Vec<&'static str> =
            NAMES.into_iter().filter(|other| type_of(other) == type_of(name)).collect();
        let from = others[self.random.usize(..others.len())];
        let model = self.blobs.get(from).cloned().unwrap_or_default();
        let (revision, content) = match model.snapshots.last() {
            Some((moment, content)) if self.random.bool() => {
                (Revision::Snapshot(*moment), Some(content.clone()))
            }
            _ => (Revision::Base, model.live),
        };
        let (source, target) = (BlobName::parse(from).unwrap(), BlobName::parse(name).unwrap());
        let setup = self.setup.clone();
        let source = CopyFrom {
            place: setup.place(&source),
            revision,
            conditions: Conditions::default(),
            encryption: Default::default(),
        };
        let place = setup.place(&target);
        let copy = setup.service.copy_blob(source, place, CopyRequest::default(), Preconditions::default());
        let outcome = copy.await;
        match content {
            Some(content) => {
                self.set(name, outcome.unwrap().stamp.etag.0, content);
                self.blobs.get_mut(name).unwrap().staged.clear();
            }
            None => assert_eq!(code(outcome), ErrorCode::BlobNotFound),
        }
    }

    /// Reads a blob, its snapshots, ranges of it, and its lists.
    async fn check_blob(&mut self, name: &'static str) {
        let model = self.blobs.get(name).cloned().unwrap_or_default();
        let blob = BlobName::parse(name).unwrap();
        let setup = self.setup.clone();
        let place = setup.place(&blob);
        let pre = Preconditions::default();
        let mut all: Vec<_> =
            model.snapshots.iter().map(|(at, content)| (Revision::Snapshot(*at), content)).collect();
        all.extend(model.live.iter().map(|content| (Revision::Base, content)));
        if model.live.is_none() {
            assert_eq!(code(setup.read(name, Revision::Base).await), ErrorCode::BlobNotFound);
        }
        for (revision, content) in all {
            assert!(setup.read(name, revision).await.unwrap() == content.bytes, "{name} {revision:?}");
            let view = setup.service.blob_properties(place, revision, &pre).await.unwrap();
            let committed = view.committed.unwrap();
            assert_eq!(
                (committed.etag.0, committed.metadata),
                (content.etag_of(revision, committed.etag.0), content.metadata.clone())
            );
            if !content.bytes.is_empty() {
                let start = self.random.usize(..content.bytes.len());
                let end = (start + 1 + self.random.usize(..50_000)).min(content.bytes.len());
                let range = ByteRange { first: start as u64, last: Some(end as u64 - 1) };
                let open = setup.service.open_blob(place, revision, Some(range), &pre).await.unwrap();
                let read = open.stream(start as u64..end as u64).collect().await.unwrap();
                assert!(read == content.bytes[start..end], "{name} {start}..{end}");
            }
            if content.blob_type == BlobType::Block {
                let list = setup.service.block_list(place, revision, BlockListType::All, &pre).await.unwrap();
                let committed =
                    content.blocks.iter().map(|(number, bytes)| (block_id(*number), bytes.len() as u64));
                assert_eq!(list.committed, committed.collect::<Vec<_>>());
                let mut uncommitted = list.uncommitted.clone();
                uncommitted.sort();
                let staged = model.staged.iter().filter(|_| revision.is_base());
                let staged = staged.map(|(number, bytes)| (block_id(*number), bytes.len() as u64));
                assert_eq!(uncommitted, staged.collect::<Vec<_>>());
            }
            if content.blob_type == BlobType::Page {
                let query = PageQuery { previous: None, range: None, marker: None, count_max: 10_000 };
                let listed = setup.service.page_ranges(place, revision, query, &pre).await.unwrap();
                let mut written = vec![false; content.written.len()];
                for found in &listed.ranges {
                    written[found.range.start as usize / PAGE..found.range.end as usize / PAGE].fill(true);
                }
                assert!(written == content.written && listed.next.is_none());
            }
        }
    }

    async fn check_all(&mut self) {
        for name in NAMES {
            self.check_blob(name).await;
        }
        let live: Vec<&str> = NAMES
            .into_iter()
            .filter(|name| self.blobs.get(name).is_some_and(|blob| blob.live.is_some()))
            .collect();
        assert_eq!(self.setup.list_all("").await, live);
    }
}

impl ModelContent {
    /// A snapshot has the ETag that the blob had.
    fn etag_of(&self, _: Revision, _: u64) -> u64 {
        self.etag
    }
}

fn block(bytes: Vec<u8>, blocks: Vec<(u32, Vec<u8>)>) -> ModelContent {
    ModelContent {
        blob_type: BlobType::Block,
        bytes,
        blocks,
        metadata: Metadata::default(),
        written: Vec::new(),
        etag: 0,
    }
}

async fn run(setup: Setup, seed: u64, step_count: usize) {
    let mut run = Run { setup, random: fastrand::Rng::with_seed(seed), blobs: BTreeMap::new(), last_etag: 0 };
    for _ in 0..step_count {
        run.step().await;
    }
    run.check_all().await;
    // After two days nothing that is garbage may still be in use.
    run.setup.clock.advance(Duration::from_secs(2 * 24 * 3600));
    tokio::time::sleep(Duration::from_millis(20)).await;
    run.setup.service.sweep().await.unwrap();
    run.setup.service.sweep().await.unwrap();
    // What a sweep forgets is forgotten in the background.
    run.setup.service.contents().close().await;
    let report = run.setup.service.check(true).await.unwrap();
    assert_eq!((report.finding_count, report.unnamed_count), (0, 0), "seed {seed}: {:?}", report.findings);
    run.check_all().await;
}

#[tokio::test]
async fn random_operations_agree_with_the_model_in_memory() {
    for seed in 0..12 {
        run(setup().await, seed, 250).await;
    }
}

#[tokio::test]
async fn random_operations_agree_with_the_model_on_a_disk() {
    for seed in 100..103 {
        let directory = tempfile::tempdir().unwrap();
        run(local_setup(directory.path(), BlobOptions::default()).await, seed, 200).await;
    }
}

#[tokio::test]
async fn random_operations_agree_with_the_model_when_versions_are_kept() {
    let options = BlobOptions { keeps_versions: true, ..BlobOptions::default() };
    for seed in 200..206 {
        run(setup_with(options).await, seed, 200).await;
    }
}
