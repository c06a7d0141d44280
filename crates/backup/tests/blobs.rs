//! Blobs come back as they were, with their snapshots, versions, staged blocks and pages; crafted rows are held to the rules of
//! requests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use backup::{BackupError, BackupReader, LoadReport, LoadSelection, SaveOptions, SelectedName, load, save};
use blobs::{
    BlobEntry, BlobOptions, BlobPlace, BlobService, CopyFrom, CopyRequest, CopyTags, Deletion, NewBlob,
    NewContainer, Preconditions, Upload, UploadBody,
};
use bytes::Bytes;
use contents::{ContentStore, ContentsOptions, LocalContents, MemoryContents};
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::{Engine, Families, Share};
use protocol::ServiceError;
use protocol::blob::block_list::BlockSource;
use protocol::blob::checksum::ExpectedChecksums;
use protocol::blob::conditions::{AppendConditions, Conditions, SequenceConditions};
use protocol::blob::container_list::ListContainersParameters;
use protocol::blob::encryption::Encryption;
use protocol::blob::identifier::{BlockId, Revision};
use protocol::blob::lease::{LeaseDuration, LeaseRequest};
use protocol::blob::list_parameters::ListBlobsParameters;
use protocol::blob::properties::{BlockListType, HttpProperties, PublicAccess};
use protocol::blob::{BlobName, ContainerAcl, ContainerName, Tags};
use protocol::common::query::Query;
use protocol::common::service_properties::{DeleteRetention, ExtensionUpdate, PropertiesUpdate};
use protocol::common::{AccountName, Metadata, StoredPolicy};

const FAMILIES: Families = Families::NONE
    .with(tables::FAMILY, tables::VALUE_RULES)
    .with(queues::FAMILY, queues::VALUE_RULES)
    .with(blobs::FAMILY, blobs::VALUE_RULES);

struct Store {
    engine: Arc<MemoryEngine>,
    contents: Arc<dyn ContentStore>,
    clock: Arc<FakeClock>,
    blobs: BlobService,
}

fn memory() -> Arc<dyn ContentStore> {
    Arc::new(MemoryContents::new(1 << 30, Arc::new(|| 5)))
}

/// With short chunks, so that contents have many parts.
fn local(directory: &Path) -> Arc<dyn ContentStore> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let random = || NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let options = ContentsOptions::new(7, Arc::new(random), Arc::new(|| 5));
    let options = ContentsOptions { extent_bytes: 2 * 1024 * 1024, ..options };
    Arc::new(LocalContents::open(directory, options).unwrap())
}

impl Store {
    fn new(contents: Arc<dyn ContentStore>, clock: Arc<FakeClock>) -> Store {
        let engine = Arc::new(MemoryEngine::new(FAMILIES, clock.clone()));
        let options = BlobOptions { container_retention_days: Some(3), ..BlobOptions::default() };
        let blobs = BlobService::new(engine.clone(), contents.clone(), clock.clone(), options);
        Store { engine, contents, clock, blobs }
    }

    async fn saved(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let options = SaveOptions { rate_bytes_max: 0 };
        save(&*self.engine, Some(&self.contents), &*self.clock, options, &mut file).await.unwrap();
        file
    }

    async fn load(&self, file: &[u8], selection: &LoadSelection) -> Result<LoadReport, BackupError> {
        let backup = BackupReader::open(file)?;
        load(&*self.engine, Some(&self.contents), backup, selection, &mut |_, _| {}).await
    }

    async fn put(&self, container: &str, blob: &str, bytes: &[u8]) {
        let (account, container, blob) = (account(), named(container), blob_named(blob));
        let place = BlobPlace { account: &account, container: &container, blob: &blob };
        let new = NewBlob {
            http: HttpProperties { content_type: Some("text/x".into()), ..HttpProperties::default() },
            metadata: Metadata::read([("Colour", "red")]).unwrap(),
            tags: Tags::read([("project", "one")]).unwrap(),
            ..NewBlob::default()
        };
        let mut pieces = Pieces::of(bytes);
        self.blobs.put_block_blob(place, pieces.body(), new, Preconditions::default()).await.unwrap();
    }

    async fn stage(&self, container: &str, blob: &str, number: u32, bytes: &[u8]) {
        let (account, container, blob) = (account(), named(container), blob_named(blob));
        let place = BlobPlace { account: &account, container: &container, blob: &blob };
        let mut pieces = Pieces::of(bytes);
        let pre = Preconditions::default();
        self.blobs.put_block(place, &block_id(number), pieces.body(), pre).await.unwrap();
    }

    /// Everything that callers can see, in words.
    async fn story(&self) -> Vec<String> {
        let query = Query::split("include=metadata,deleted,system").with_lower_names();
        let all = ListContainersParameters::read(&query, &account()).unwrap();
        let page = self.blobs.list_containers(&account(), &all, Share::COMMON).await.unwrap();
        let mut story = Vec::new();
        for container in page.containers {
            story.push(format!("{container:?}"));
            if container.deleted.is_none() {
                let name = named(&container.name);
                let acl = self.blobs.container_acl(&account(), &name, None).await.unwrap();
                story.push(format!("{:?}", acl.policies));
                story.extend(self.blobs_of(&name).await);
            }
        }
        story.push(format!("{:?}", self.blobs.catalogue().properties(&account()).await.unwrap()));
        story
    }

    async fn blobs_of(&self, container: &ContainerName) -> Vec<String> {
        let account = account();
        let include = "include=snapshots,metadata,uncommittedblobs,copy,deleted,tags,versions";
        let all = ListBlobsParameters::read(&Query::split(include).with_lower_names()).unwrap();
        let page = self.blobs.list_blobs(&account, container, &all, Share::COMMON).await.unwrap();
        let mut story = Vec::new();
        for entry in page.entries {
            let BlobEntry::Blob(view) = entry else { panic!("there is no delimiter") };
            story.push(format!("{view:?}"));
            if view.deleted.is_some() {
                continue;
            }
            let blob = blob_named(&view.name);
            let place = BlobPlace { account: &account, container, blob: &blob };
            let revision = match (view.snapshot, view.version.filter(|_| !view.is_current_version)) {
                (Some(moment), _) => Revision::Snapshot(moment),
                (None, Some(moment)) => Revision::Version(moment),
                (None, None) => Revision::Base,
            };
            let pre = Preconditions::default();
            if view.committed.is_some() {
                let open = self.blobs.open_blob(place, revision, None, &pre).await.unwrap();
                let size = open.size();
                let bytes = open.stream(0..size).collect().await.unwrap();
                assert_eq!(bytes.len() as u64, size);
                story.push(format!("{size} bytes, {:08x}", crc32fast::hash(&bytes)));
            }
            if let Ok(blocks) = self.blobs.block_list(place, revision, BlockListType::All, &pre).await {
                let (committed, staged) = (blocks.committed.len(), blocks.uncommitted.len());
                let checksum = crc32fast::hash(format!("{blocks:?}").as_bytes());
                story.push(format!("{committed} blocks, {staged} staged, {checksum:08x}"));
            }
        }
        story
    }
}

struct Pieces(VecDeque<Bytes>);

impl Pieces {
    fn of(bytes: &[u8]) -> Pieces {
        Pieces(bytes.chunks(100_000).map(Bytes::copy_from_slice).collect())
    }

    fn body(&mut self) -> UploadBody<'_> {
        let expected_bytes = Some(self.0.iter().map(|piece| piece.len() as u64).sum());
        let expected = ExpectedChecksums::default();
        UploadBody { source: self, expected_bytes, bytes_max: u64::MAX, expected, with_md5: false }
    }
}

#[async_trait]
impl Upload for Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        self.0.pop_front().map(Ok)
    }
}

fn account() -> AccountName {
    AccountName::parse("alice").unwrap()
}

fn named(container: &str) -> ContainerName {
    ContainerName::parse(container).unwrap()
}

fn blob_named(blob: &str) -> BlobName {
    BlobName::parse(blob).unwrap()
}

fn block_id(number: u32) -> BlockId {
    BlockId::from_bytes(&number.to_be_bytes()).unwrap()
}

fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

/// A store with everything that a blob can be.
async fn sample(contents: Arc<dyn ContentStore>) -> Store {
    let store = Store::new(contents, Arc::new(FakeClock::default()));
    let account = account();
    let blobs = &store.blobs;
    let pre = Preconditions::default();
    for container in ["backup", "pictures", "gone"] {
        let new = NewContainer {
            metadata: Metadata::read([("of", container)]).unwrap(),
            public_access: Some(PublicAccess::Blob),
            ..NewContainer::default()
        };
        blobs.create_container(&account, &named(container), new).await.unwrap();
    }
    let policy = StoredPolicy { id: "p".into(), ..StoredPolicy::default() };
    let acl = ContainerAcl { public_access: Some(PublicAccess::Container), policies: vec![policy] };
    let free = Conditions::default();
    blobs.set_container_acl(&account, &named("pictures"), &acl, None, &free).await.unwrap();
    let retention = DeleteRetention { days: Some(7), ..DeleteRetention::default() };
    let extension = ExtensionUpdate { delete_retention: Some(retention), ..ExtensionUpdate::default() };
    let update = PropertiesUpdate { extension, ..PropertiesUpdate::default() };
    blobs.catalogue().update_properties(&account, update).await.unwrap();

    store.put("gone", "x", &bytes_of(1, 50_000)).await;
    blobs.delete_container(&account, &named("gone"), None, &free).await.unwrap();

    let pictures = named("pictures");
    let place = |blob: &'static str| (blob_named(blob), blob);
    store.put("pictures", "empty", b"").await;
    store.put("pictures", "a/short", b"short").await;
    store.put("pictures", "long", &bytes_of(2, 5_000_000)).await;
    let (long, _) = place("long");
    let long = BlobPlace { account: &account, container: &pictures, blob: &long };
    blobs.snapshot_blob(long, None, pre.clone()).await.unwrap();
    store.clock.advance(Duration::from_secs(1));
    blobs.snapshot_blob(long, None, pre.clone()).await.unwrap();
    let acquire = LeaseRequest::Acquire { duration: LeaseDuration::Infinite, proposed: None };
    blobs.lease_blob(long, acquire, free.clone()).await.unwrap();
    for container in ["pictures", "backup"] {
        let (container, copy) = (named(container), blob_named("copy"));
        let to = BlobPlace { account: &account, container: &container, blob: &copy };
        let from = CopyFrom {
            place: long,
            revision: Revision::Base,
            conditions: free.clone(),
            encryption: Encryption::default(),
        };
        let request =
            CopyRequest { source_url: "http://x/y".into(), tags: CopyTags::Copy, ..CopyRequest::default() };
        blobs.copy_blob(from, to, request, pre.clone()).await.unwrap();
    }
    store.put("pictures", "deleted", &bytes_of(3, 20_000)).await;
    let (deleted, _) = place("deleted");
    let deleted = BlobPlace { account: &account, container: &pictures, blob: &deleted };
    blobs.delete_blob(deleted, Revision::Base, Deletion::default(), pre.clone()).await.unwrap();

    let blocks = blob_named("blocks");
    let blocks = BlobPlace { account: &account, container: &pictures, blob: &blocks };
    let mut list = Vec::new();
    for number in 0..1500 {
        store.stage("pictures", "blocks", number, &bytes_of(u64::from(number), 10)).await;
        list.push((BlockSource::Uncommitted, block_id(number)));
    }
    // Twice in the list.
    list.push((BlockSource::Uncommitted, block_id(3)));
    blobs.put_block_list(blocks, list, NewBlob::default(), pre.clone()).await.unwrap();
    store.stage("pictures", "blocks", 9999, &bytes_of(4, 300_000)).await;
    store.stage("pictures", "staged", 1, &bytes_of(5, 9_000)).await;

    let log = blob_named("log");
    let log = BlobPlace { account: &account, container: &pictures, blob: &log };
    blobs.put_append_blob(log, NewBlob::default(), pre.clone()).await.unwrap();
    for number in 0..40 {
        let mut pieces = Pieces::of(&bytes_of(number, 700));
        blobs.append_block(log, pieces.body(), AppendConditions::default(), pre.clone()).await.unwrap();
    }

    let disk = blob_named("disk");
    let disk = BlobPlace { account: &account, container: &pictures, blob: &disk };
    blobs.put_page_blob(disk, 1 << 24, 7, NewBlob::default(), pre.clone()).await.unwrap();
    let write = async |seed: u64, at: u64, length: usize| {
        let mut pieces = Pieces::of(&bytes_of(seed, length));
        let range = at..at + length as u64;
        let always = SequenceConditions::default();
        blobs.put_pages(disk, range, pieces.body(), always, pre.clone()).await.unwrap();
    };
    write(1, 0, 4 << 20).await;
    write(2, 8 << 20, 512).await;
    blobs.snapshot_blob(disk, None, pre.clone()).await.unwrap();
    write(3, 1 << 20, 1 << 20).await;
    write(4, 512, 512).await;
    store
}

/// The same lines; the first one that differs is shown.
#[track_caller]
fn same(left: &[String], right: &[String]) {
    let differs = left.iter().zip(right).find(|(left, right)| left != right);
    assert_eq!((differs, left.len()), (None, right.len()));
}

async fn sound(store: &Store) {
    let report = store.blobs.check(true).await.unwrap();
    assert_eq!((report.findings, report.unnamed_count), (Vec::new(), 0));
}

#[tokio::test]
async fn everything_comes_back_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let source = sample(memory()).await;
    let file = source.saved().await;
    let story = source.story().await;
    assert!(story.len() > 30, "{story:#?}");
    let target = Store::new(local(directory.path()), source.clock.clone());
    let report = target.load(&file, &LoadSelection::All).await.unwrap();
    assert_eq!(report.counts, BackupReader::open(&file[..]).unwrap().verify().unwrap().1);
    assert_eq!(report.accounts, ["alice"]);
    same(&target.story().await, &story);
    sound(&target).await;
    target.blobs.sweep().await.unwrap();
    same(&target.story().await, &story);
    // And back, from contents that have several parts.
    let again = Store::new(memory(), source.clock.clone());
    again.load(&target.saved().await, &LoadSelection::All).await.unwrap();
    same(&again.story().await, &story);
    sound(&again).await;
}

#[tokio::test]
async fn what_a_container_shares_is_carried_once() {
    let source = sample(memory()).await;
    let (_, counts) = BackupReader::open(&source.saved().await[..]).unwrap().verify().unwrap();
    // The long blob, its snapshots and its copy beside it: once. Its copy in the other container: once more. 4 MiB and 1 MiB of pages.
    let shared = 2 * 5_000_000 + (5 << 20);
    let others = 50_000 + 20_000 + 1500 * 10 + 300_000 + 9_000 + 40 * 700;
    assert!(counts.content_bytes <= shared + others, "{counts:?}");
    assert!(counts.content_bytes > shared, "{counts:?}");
}

#[tokio::test]
async fn one_container_is_restored_beside_the_others() {
    let store = sample(memory()).await;
    let file = store.saved().await;
    let before = store.blobs_of(&named("pictures")).await;
    let one = |name: &str, new_name: Option<&str>| {
        let new_name = new_name.map(str::to_owned);
        LoadSelection::Container(SelectedName { account: None, name: name.to_owned(), new_name })
    };
    let refused = async |selection: LoadSelection| match store.load(&file, &selection).await {
        Err(BackupError::Refused(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    assert!(refused(one("pictures", None)).await.contains("has a container 'pictures' already"));
    assert!(refused(one("other", None)).await.contains("no container 'other'"));
    assert!(refused(one("pictures", Some("-"))).await.contains("'-' is not the name of a container"));
    let report = store.load(&file, &one("pictures", Some("monday"))).await.unwrap();
    assert_eq!((report.counts.container_count, report.counts.properties_count), (1, 0));
    same(&store.blobs_of(&named("monday")).await, &before);
    // The other one may go: what they have is not shared between them.
    let free = Conditions::default();
    store.blobs.delete_container(&account(), &named("pictures"), None, &free).await.unwrap();
    store.clock.advance(Duration::from_secs(4 * 24 * 3600));
    for _ in 0..2 {
        store.blobs.sweep().await.unwrap();
    }
    let bytes =
        |story: Vec<String>| story.into_iter().filter(|line| line.contains(" bytes, ")).collect::<Vec<_>>();
    same(&bytes(store.blobs_of(&named("monday")).await), &bytes(before));
    sound(&store).await;
}

#[tokio::test]
async fn a_load_that_fails_leaves_nothing_that_a_sweep_does_not_find() {
    let source = sample(memory()).await;
    let mut file = source.saved().await;
    let late = file.len() - 100;
    file[late] ^= 1;
    let target = Store::new(memory(), source.clock.clone());
    assert!(matches!(target.load(&file, &LoadSelection::All).await, Err(BackupError::Damaged { .. })));
    assert!(target.story().await.len() == 1, "only properties");
    let report = target.blobs.sweep().await.unwrap();
    assert!(report.forgotten_bytes > 10_000_000, "{report:?}");
    sound(&target).await;
}

#[tokio::test]
async fn writes_and_sweeps_during_a_backup_and_a_restore_harm_neither() {
    let source = Arc::new(sample(memory()).await);
    let busy = |store: Arc<Store>| async move {
        for round in 0..20u64 {
            store.put("backup", "busy", &bytes_of(round, 30_000)).await;
            store.put("backup", &format!("new{round}"), &bytes_of(round, 20_000)).await;
            store.blobs.sweep().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let (_, file) = tokio::join!(busy(source.clone()), source.saved());
    let target = Arc::new(Store::new(memory(), source.clock.clone()));
    let metadata = NewContainer::default();
    target.blobs.create_container(&account(), &named("other"), metadata).await.unwrap();
    let sweeping = async {
        for _ in 0..50 {
            target.blobs.sweep().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let (_, loaded) = tokio::join!(sweeping, target.load(&file, &LoadSelection::All));
    loaded.unwrap();
    // Past every moment that the busy source has given out.
    source.clock.advance(Duration::from_secs(1));
    same(&target.blobs_of(&named("pictures")).await, &source.blobs_of(&named("pictures")).await);
    sound(&target).await;
    sound(&source).await;
}

#[tokio::test]
async fn a_backup_without_a_store_of_contents_is_refused() {
    let source = sample(memory()).await;
    let fast = SaveOptions { rate_bytes_max: 0 };
    let saved = save(&*source.engine, None, &*source.clock, fast, &mut Vec::new()).await;
    assert!(saved.unwrap_err().to_string().contains("contents of blobs"));
    let file = source.saved().await;
    let target = Store::new(memory(), source.clock.clone());
    let backup = BackupReader::open(&file[..]).unwrap();
    let loaded = load(&*target.engine, None, backup, &LoadSelection::All, &mut |_, _| {}).await;
    assert!(loaded.unwrap_err().to_string().contains("contents of blobs"));
    assert!(
        target.engine.snapshot().await.unwrap().row_count().unwrap() < 3,
        "nothing is left but properties"
    );
}

/// A backup of one container with these blocks, and the counts of its end.
fn crafted(record: &[u8], blocks: Vec<(u8, Vec<u8>)>, counts: [u64; 5]) -> Vec<u8> {
    let number = |number: u64| number.to_le_bytes().to_vec();
    let text = |text: &[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
    let head = [number(5), number(1 << 60), number(5), text(b"0.1.0")].concat();
    let container = [text(b"alice"), text(b"pictures"), vec![0], text(record)].concat();
    let end = [[0; 5], counts].concat().into_iter().flat_map(number).collect();
    let all = [vec![(1, head), (10, container)], blocks, vec![(5, end)]].concat();
    backup::framed(all.iter().map(|(kind, raw)| (*kind, &raw[..])))
}

fn piece(number: u64, flags: u8, bytes: &[u8]) -> (u8, Vec<u8>) {
    (11, [&number.to_le_bytes()[..], &[flags], bytes].concat())
}

fn row(blob: &str, row: &str, value: &[u8]) -> Vec<u8> {
    let text = |text: &[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
    [9u64.to_le_bytes().to_vec(), text(blob.as_bytes()), text(row.as_bytes()), text(value)].concat()
}

#[tokio::test]
async fn crafted_rows_are_held_to_the_rules_of_requests() {
    // A record and a row of a blob with one content of 10 bytes, from a real backup.
    let source = Store::new(memory(), Arc::new(FakeClock::default()));
    source.blobs.create_container(&account(), &named("pictures"), NewContainer::default()).await.unwrap();
    source.put("pictures", "x", &[7; 9_000]).await;
    let file = source.saved().await;
    let mut reader = BackupReader::open(&file[..]).unwrap();
    let (mut record, mut value) = (Vec::new(), Vec::new());
    while let Some(content) = reader.next_content().unwrap() {
        match content {
            backup::Content::Container(container) => record = container.record,
            backup::Content::BlobRows(mut rows) => value = rows.next().unwrap().record.to_vec(),
            _ => {}
        }
    }
    let check = async |blocks: Vec<(u8, Vec<u8>)>, counts: [u64; 5], part: &str| {
        let file = crafted(&record, blocks, counts);
        let target = Store::new(memory(), Arc::new(FakeClock::default()));
        match target.load(&file, &LoadSelection::All).await {
            Ok(_) => assert_eq!(part, "", "it was taken"),
            Err(error) => {
                assert!(!part.is_empty() && error.to_string().contains(part), "{part}: {error}");
                assert_eq!(target.story().await.len(), 1, "nothing appeared");
            }
        }
    };
    let content = || piece(0, 1, &[7; 9_000]);
    let rows = |rows: &[Vec<u8>]| (12, rows.concat());
    let good = row("x", "T", &value);
    let one = [1, 1, 1, 1, 9_000];
    check(vec![content(), rows(std::slice::from_ref(&good))], one, "").await;
    let halves = vec![piece(0, 0, &[7; 4_000]), piece(0, 1, &[7; 5_000]), rows(std::slice::from_ref(&good))];
    check(halves, one, "").await;
    check(vec![content(), rows(std::slice::from_ref(&good))], [1, 1, 1, 1, 8_999], "counts at the end").await;
    check(vec![rows(std::slice::from_ref(&good))], [1, 1, 1, 0, 0], "a content that is not before it").await;
    let short = vec![piece(0, 1, &[7; 8_999]), rows(std::slice::from_ref(&good))];
    check(short, [1, 1, 1, 1, 8_999], "another length").await;
    let twice = vec![content(), rows(&[good.clone(), row("y", "T", &value)])];
    check(twice, [1, 2, 2, 1, 9_000], "a content that is not before it").await;
    check(vec![piece(1, 1, &[7; 9_000])], [1, 0, 0, 1, 9_000], "out of order").await;
    let open = vec![piece(0, 0, &[7; 9_000]), rows(std::slice::from_ref(&good))];
    check(open, [1, 1, 1, 0, 9_000], "not complete").await;
    let mixed = vec![piece(0, 0, &[7; 4_000]), piece(0, 3, &[7; 5_000])];
    check(mixed, [1, 0, 0, 1, 9_000], "do not agree").await;
    check(vec![piece(0, 1, b"")], [1, 0, 0, 1, 0], "cannot be decoded").await;
    check(vec![piece(0, 5, b"x")], [1, 0, 0, 1, 1], "cannot be decoded").await;
    for (blob, name) in [("x", "S0000000000000001"), ("x", "V0"), ("x", "t"), ("x", "")] {
        check(vec![content(), rows(&[row(blob, name, &value)])], [1, 1, 0, 1, 9_000], "no row of a blob")
            .await;
    }
    check(vec![content(), rows(&[row("", "T", &value)])], one, "not the name of a blob").await;
    check(vec![content(), rows(&[row("x", "T", &value[..40])])], one, "no row of a blob").await;
    let unordered = vec![content(), rows(&[row("y", "T", &value), good.clone()])];
    check(unordered, [1, 2, 2, 1, 9_000], "not in order").await;
    // Every byte of the value, changed: refused, or a row that can be read and swept.
    for at in 0..value.len() {
        let mut other = value.clone();
        other[at] ^= 0x41;
        let file = crafted(&record, vec![content(), rows(&[row("x", "T", &other)])], one);
        let target = Store::new(memory(), Arc::new(FakeClock::default()));
        if target.load(&file, &LoadSelection::All).await.is_ok() {
            target.story().await;
            target.blobs.sweep().await.unwrap();
            sound(&target).await;
        }
    }
}
