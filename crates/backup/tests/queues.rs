//! Queues come back as they were; a backup of format 1 still reads; crafted queues are held to the rules of requests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::sync::Arc;
use std::time::Duration;

use backup::{BackupError, BackupReader, LoadReport, LoadSelection, SaveOptions, SelectedName, load, save};
use engine::env::{Clock, FakeClock};
use engine::memory::MemoryEngine;
use engine::{Engine, Families};
use protocol::ErrorCode;
use protocol::common::service_properties::ServiceProperties;
use protocol::common::{AccountName, Metadata, StoredPolicy};
use protocol::queue::QueueName;
use queues::{NewMessage, QueueService, TakenMessage};

const FAMILIES: Families =
    Families::NONE.with(tables::FAMILY, tables::VALUE_RULES).with(queues::FAMILY, queues::VALUE_RULES);
const HALF_MINUTE: Duration = Duration::from_secs(30);

struct Store {
    engine: Arc<MemoryEngine>,
    clock: Arc<FakeClock>,
    queues: QueueService,
}

impl Store {
    fn new() -> Store {
        Store::with(Arc::new(FakeClock::default()))
    }

    fn with(clock: Arc<FakeClock>) -> Store {
        let engine = Arc::new(MemoryEngine::new(FAMILIES, clock.clone()));
        let queues = QueueService::new(engine.clone(), clock.clone());
        Store { engine, clock, queues }
    }

    async fn create(&self, account: &str, queue: &str, metadata: &[(&str, &str)]) {
        let metadata = Metadata::read(metadata.iter().copied()).unwrap();
        self.queues.create_queue(&of(account), &named(queue), &metadata).await.unwrap();
    }

    async fn put(&self, account: &str, queue: &str, text: &str, visibility: Duration, ttl: Option<Duration>) {
        let message = NewMessage { text: text.to_owned().into(), visibility, time_to_live: ttl };
        self.queues.put_message(&of(account), &named(queue), message).await.unwrap();
    }

    async fn take(&self, account: &str, queue: &str) -> Vec<TakenMessage> {
        let (account, queue) = (of(account), named(queue));
        self.queues
            .get_messages(&account, &queue, 32, HALF_MINUTE, engine::Share::COMMON, &mut |_| true)
            .await
            .unwrap()
    }

    async fn count(&self, account: &str, queue: &str) -> u64 {
        self.queues.properties(&of(account), &named(queue)).await.unwrap().message_count
    }

    async fn saved(&self) -> Vec<u8> {
        let mut file = Vec::new();
        save(&*self.engine, None, &*self.clock, SaveOptions { rate_bytes_max: 0 }, &mut file).await.unwrap();
        file
    }

    async fn load(&self, file: &[u8], selection: &LoadSelection) -> Result<LoadReport, BackupError> {
        load(&*self.engine, None, BackupReader::open(file)?, selection, &mut |_, _| {}).await
    }

    /// Every queue's rows agree with each other. Returns the numbers of queues and messages.
    async fn check(&self) -> (u64, u64) {
        let snapshot = self.engine.snapshot().await.unwrap();
        let report = queues::check_queues(&*snapshot).await.unwrap();
        assert_eq!(report.findings, [""; 0]);
        (report.queue_count, report.message_count)
    }
}

fn of(account: &str) -> AccountName {
    AccountName::parse(account).unwrap()
}

fn named(queue: &str) -> QueueName {
    QueueName::parse(queue).unwrap()
}

fn texts(messages: &[TakenMessage]) -> Vec<&str> {
    messages.iter().map(|message| std::str::from_utf8(&message.text).unwrap()).collect()
}

fn one(name: &str, account: Option<&str>, new_name: Option<&str>) -> LoadSelection {
    LoadSelection::Queue(SelectedName {
        account: account.map(str::to_owned),
        name: name.to_owned(),
        new_name: new_name.map(str::to_owned),
    })
}

async fn sample() -> Store {
    let store = Store::new();
    store.create("alice", "jobs", &[("Color", "red")]).await;
    store.create("alice", "none", &[]).await;
    store.create("bob", "jobs", &[]).await;
    for number in 0..3000 {
        let ttl = (number % 2 == 0).then_some(Duration::from_secs(3600));
        store.put("bob", "jobs", &format!("{number}"), Duration::ZERO, ttl).await;
    }
    store.put("alice", "jobs", "before clearing", Duration::ZERO, None).await;
    let policy = StoredPolicy { id: "one".into(), start: None, expiry: None, permission: None };
    store.queues.set_policies(&of("alice"), &named("jobs"), &[policy]).await.unwrap();
    // Its policies stay with it, although it gets another id.
    store.queues.clear_messages(&of("alice"), &named("jobs")).await.unwrap();
    store.put("alice", "jobs", "first \u{1F600}\r\n", Duration::ZERO, Some(Duration::from_secs(600))).await;
    store.put("alice", "jobs", "second", Duration::ZERO, None).await;
    store.put("alice", "jobs", "later", Duration::from_secs(100), None).await;
    store.put("alice", "jobs", "short", Duration::ZERO, Some(Duration::from_secs(1))).await;
    store
}

#[tokio::test]
async fn queues_come_back_with_messages_metadata_policies_and_properties() {
    let source = sample().await;
    let account = of("alice");
    let mut held = source.take("alice", "jobs").await;
    held.retain(|message| message.text != "short");
    source.queues.catalogue().update_properties(&account, Default::default()).await.unwrap();
    let file = source.saved().await;
    BackupReader::open(&file[..]).unwrap().verify().unwrap();

    source.clock.advance(Duration::from_secs(5));
    let target = Store::with(source.clock.clone());
    let report = target.load(&file, &LoadSelection::All).await.unwrap();
    assert_eq!((report.counts.queue_count, report.counts.message_count), (3, 3004));
    assert_eq!(report.counts.properties_count, 1);
    assert_eq!(report.accounts, ["alice", "bob"]);
    assert_eq!(target.check().await, (3, 3004));
    assert!(target.queues.catalogue().has_properties(&account).await.unwrap());

    let properties = target.queues.properties(&account, &named("jobs")).await.unwrap();
    assert_eq!(properties.metadata.items().collect::<Vec<_>>(), [("Color", "red")]);
    // One has expired meanwhile.
    assert_eq!(properties.message_count, 3);
    assert_eq!((target.count("alice", "none").await, target.count("bob", "jobs").await), (0, 3000));
    let policies = target.queues.policies(&account, &named("jobs")).await.unwrap();
    assert_eq!(policies.iter().map(|policy| policy.id.as_str()).collect::<Vec<_>>(), ["one"]);

    // What was taken stays invisible as long as before, with its count and its times; and in order.
    assert!(target.take("alice", "jobs").await.is_empty());
    source.clock.advance(HALF_MINUTE);
    let again = target.take("alice", "jobs").await;
    assert_eq!(texts(&again), ["first \u{1F600}\r\n", "second"]);
    for (before, after) in held.iter().zip(&again) {
        assert_eq!((before.id, before.inserted, before.expires), (after.id, after.inserted, after.expires));
        assert_eq!((before.dequeue_count, after.dequeue_count), (1, 2));
    }
    source.clock.advance(Duration::from_secs(70));
    assert_eq!(texts(&target.take("alice", "jobs").await), ["first \u{1F600}\r\n", "second", "later"]);
}

#[tokio::test]
async fn receipts_of_a_whole_restore_still_work_and_those_of_a_single_queue_may_not() {
    let source = sample().await;
    let held = source.take("alice", "jobs").await;
    let file = source.saved().await;
    let target = Store::with(source.clock.clone());
    target.load(&file, &LoadSelection::All).await.unwrap();
    let (account, queue) = (of("alice"), named("jobs"));
    target.queues.delete_message(&account, &queue, held[0].id, held[0].receipt).await.unwrap();
    target.check().await;

    // In a store whose versions are behind, the messages get versions of that store.
    let behind = Store::new();
    behind.load(&file, &one("jobs", Some("alice"), None)).await.unwrap();
    let deleted = behind.queues.delete_message(&account, &queue, held[0].id, held[0].receipt).await;
    assert_eq!(deleted.unwrap_err().code, ErrorCode::MessageNotFound);
}

#[tokio::test]
async fn one_queue_comes_back_under_another_name_beside_the_old_one() {
    let store = sample().await;
    let file = store.saved().await;
    let report = store.load(&file, &one("jobs", Some("bob"), Some("jobs-2"))).await.unwrap();
    assert_eq!((report.counts.queue_count, report.counts.message_count), (1, 3000));
    assert_eq!((report.counts.table_count, report.counts.properties_count), (0, 0));
    assert_eq!(store.check().await, (4, 6004));
    let copied = store.take("bob", "jobs-2").await;
    assert_eq!(texts(&copied), texts(&store.take("bob", "jobs").await));

    let refused = async |selection: LoadSelection| match store.load(&file, &selection).await {
        Err(BackupError::Refused(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    let taken = refused(one("jobs", Some("bob"), Some("jobs-2"))).await;
    assert!(taken.contains("has a queue 'jobs-2' already"), "{taken}");
    assert!(refused(one("nothing", None, None)).await.contains("no queue 'nothing'"));
    assert!(refused(one("jobs", Some("bob"), Some("Jobs"))).await.contains("not the name of a queue"));
    let table = SelectedName { account: None, name: "jobs".into(), new_name: None };
    assert!(refused(LoadSelection::Table(table)).await.contains("no table 'jobs'"));
}

#[tokio::test]
async fn a_backup_with_queues_from_a_clock_ahead_does_not_move_the_store() {
    let ahead = Arc::new(FakeClock::default());
    ahead.advance(Duration::from_secs(100 * 365 * 24 * 3600));
    let source = Store::with(ahead);
    source.create("alice", "jobs", &[]).await;
    source.put("alice", "jobs", "a", Duration::ZERO, None).await;
    let file = source.saved().await;
    let store = sample().await;
    store.load(&file, &one("jobs", None, Some("copy"))).await.unwrap();
    let last = store.engine.snapshot().await.unwrap().last_version().unwrap();
    assert!(last.ticks() < store.clock.now_ticks() + 100_000_000, "{last:?}");
    store.check().await;
}

/// A message of a crafted backup, with the fields in the order of the file.
#[derive(Clone)]
struct Crafted {
    version: u64,
    visible: u64,
    id: u128,
    inserted: u64,
    expires: u64,
    text: Vec<u8>,
}

const GOOD: Crafted = Crafted { version: 9, visible: 5, id: 7, inserted: 5, expires: 50, text: Vec::new() };

fn number(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn text(text: &[u8]) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_le_bytes(), text].concat()
}

fn queue(account: &str, name: &str, metadata: &[(&str, &str)], policies: Option<&str>) -> (u8, Vec<u8>) {
    let policies = policies.map_or(vec![0], |policies| [vec![1], text(policies.as_bytes())].concat());
    let mut raw = [text(account.as_bytes()), text(name.as_bytes()), policies].concat();
    raw.extend(u32::try_from(metadata.len()).unwrap().to_le_bytes());
    for (name, value) in metadata {
        raw.extend([text(name.as_bytes()), text(value.as_bytes())].concat());
    }
    (7, raw)
}

fn messages(messages: &[Crafted]) -> (u8, Vec<u8>) {
    let raw = messages.iter().flat_map(|message| {
        let id = message.id.to_be_bytes().to_vec();
        let times = [number(message.inserted), number(message.expires)].concat();
        let ends = [vec![0; 4], text(&message.text)].concat();
        [number(message.version), number(message.visible), id, times, ends].concat()
    });
    (8, raw.collect())
}

fn head() -> (u8, Vec<u8>) {
    (1, [number(7), number(1000), number(2), text(b"0.1.0")].concat())
}

/// The blocks between head and end, as a file.
fn file(blocks: &[(u8, Vec<u8>)], counts: [u64; 5]) -> Vec<u8> {
    let end = (5, [counts, [0; 5]].concat().into_iter().flat_map(number).collect());
    let all = [&[head()], blocks, &[end]].concat();
    backup::framed(all.iter().map(|(kind, raw)| (*kind, &raw[..])))
}

async fn loaded(file: &[u8]) -> Result<LoadReport, BackupError> {
    let store = Store::new();
    let loaded = store.load(file, &LoadSelection::All).await;
    if loaded.is_err() {
        let known = store.queues.catalogue().account_content(&of("alice")).await.unwrap();
        assert_eq!(known.container_count, 0, "nothing of a refused backup appears");
    } else {
        store.check().await;
    }
    loaded
}

#[tokio::test]
async fn a_crafted_queue_is_held_to_the_rules_of_requests() {
    let check =
        async |blocks: &[(u8, Vec<u8>)], counts: [u64; 5], part: &str| match loaded(&file(blocks, counts))
            .await
        {
            Ok(_) => assert_eq!(part, ""),
            Err(error) => {
                let sentence = error.to_string();
                assert!(!part.is_empty() && sentence.contains(part), "{part}: {sentence}");
                assert!(sentence.len() < 1000 && !sentence.contains(char::is_control), "{sentence}");
            }
        };
    let jobs = || queue("alice", "jobs", &[], None);
    let with = async |crafted: &[Crafted], part: &str| {
        let count = crafted.len() as u64;
        check(&[jobs(), messages(crafted)], [0, 0, 0, 1, count], part).await;
    };
    with(&[GOOD, Crafted { id: 8, ..GOOD }], "").await;
    let longest = vec![b'x'; 64 * 1024];
    with(&[Crafted { text: longest.clone(), ..GOOD }], "").await;
    with(&[Crafted { text: [longest, b"x".to_vec()].concat(), ..GOOD }], "longer than 64 KiB").await;
    with(&[Crafted { text: b"a\x01".to_vec(), ..GOOD }], "XML").await;
    with(&[Crafted { text: b"\xff".to_vec(), ..GOOD }], "cannot be decoded").await;
    with(&[Crafted { version: 1001, ..GOOD }], "greater than the last one").await;
    with(&[Crafted { version: 0, ..GOOD }], "cannot be decoded").await;
    with(&[Crafted { visible: u64::MAX, ..GOOD }], "year 9999").await;
    with(&[Crafted { expires: 5, ..GOOD }], "expires before").await;
    with(&[Crafted { id: 8, ..GOOD }, GOOD], "not in order").await;
    with(&[GOOD, GOOD], "not in order").await;
    // Two messages that share an id and so an expiry row.
    with(&[GOOD, Crafted { visible: 6, ..GOOD }], "is there twice").await;

    check(&[queue("alice", "Jobs", &[], None)], [0, 0, 0, 1, 0], "name of a queue").await;
    check(&[queue("alice", "a--b", &[], None)], [0, 0, 0, 1, 0], "name of a queue").await;
    check(&[queue("!restoring", "jobs", &[], None)], [0, 0, 0, 1, 0], "name of an account").await;
    check(&[jobs(), jobs()], [0, 0, 0, 2, 0], "twice").await;
    check(&[queue("alice", "jobs", &[("a-b", "c")], None)], [0, 0, 0, 1, 0], "metadata").await;
    check(&[queue("alice", "jobs", &[("a", "b"), ("A", "c")], None)], [0, 0, 0, 1, 0], "metadata").await;
    check(&[queue("alice", "jobs", &[], Some("junk"))], [0, 0, 0, 1, 0], "access policies").await;
    let letters = "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>rd</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    check(&[queue("alice", "jobs", &[], Some(letters))], [0, 0, 0, 1, 0], "access policies").await;
    let properties =
        |kind| (kind, [text(b"alice"), text(&ServiceProperties::default().to_stored())].concat());
    check(&[properties(6), jobs()], [1, 0, 0, 1, 0], "").await;
    check(&[jobs(), properties(6)], [1, 0, 0, 1, 0], "come after").await;
    check(&[jobs(), properties(2)], [1, 0, 0, 1, 0], "come after").await;
    let table = (3, [text(b"alice"), text(b"People"), vec![0]].concat());
    check(&[table.clone(), jobs()], [0, 1, 0, 1, 0], "").await;
    check(&[jobs(), table.clone()], [0, 1, 0, 1, 0], "comes after a queue").await;
    check(&[messages(&[GOOD])], [0, 0, 0, 0, 1], "messages come before any queue").await;
    check(&[table, messages(&[GOOD])], [0, 1, 0, 0, 1], "messages come before any queue").await;
    check(&[jobs(), messages(&[GOOD])], [0, 0, 0, 1, 2], "counts at the end").await;
}

#[tokio::test]
async fn a_backup_of_an_older_format_reads_as_ever_and_holds_no_more_than_it_did() {
    let of_format = |format: u8, blocks: &[(u8, Vec<u8>)], counts: &[u64]| {
        let end = (5, counts.iter().flat_map(|count| number(*count)).collect());
        let all = [&[head()], blocks, &[end]].concat();
        let file = backup::framed(all.iter().map(|(kind, raw)| (*kind, &raw[..])));
        let (_, blocks) = file.split_at("lazulite backup, format 3\n".len());
        [format!("lazulite backup, format {format}\n").as_bytes(), blocks].concat()
    };
    let old = |blocks: &[(u8, Vec<u8>)], counts: &[u64]| of_format(1, blocks, counts);
    let table = (3, [text(b"alice"), text(b"People"), vec![0]].concat());
    let report = loaded(&old(std::slice::from_ref(&table), &[0, 1, 0])).await.unwrap();
    assert_eq!((report.counts.table_count, report.counts.queue_count), (1, 0));
    assert!(loaded(&old(&[table], &[0, 1, 0, 0, 0])).await.is_err());
    let queue = old(&[queue("alice", "jobs", &[], None)], &[0, 0, 0]);
    assert!(loaded(&queue).await.unwrap_err().to_string().contains("a kind that its format lacks"));
    let with_queues = |blocks: &[(u8, Vec<u8>)], counts: &[u64]| of_format(2, blocks, counts);
    let report = loaded(&with_queues(&[queue_of_alice()], &[0, 0, 0, 1, 0])).await.unwrap();
    assert_eq!(report.counts.queue_count, 1);
    let container = (10, [text(b"alice"), text(b"pictures"), vec![0], text(b"record")].concat());
    let container = with_queues(&[container], &[0, 0, 0, 0, 0]);
    assert!(loaded(&container).await.unwrap_err().to_string().contains("a kind that its format lacks"));
}

fn queue_of_alice() -> (u8, Vec<u8>) {
    queue("alice", "jobs", &[], None)
}

#[tokio::test]
async fn any_flipped_byte_and_any_cut_is_found() {
    let store = Store::new();
    store.create("alice", "jobs", &[("a", "b")]).await;
    for number in 0..5 {
        store.put("alice", "jobs", &format!("{number}"), Duration::ZERO, Some(HALF_MINUTE)).await;
    }
    let file = store.saved().await;
    let verify = |bytes: &[u8]| BackupReader::open(bytes).and_then(BackupReader::verify);
    verify(&file).unwrap();
    for at in 0..file.len() {
        assert!(verify(&file[..at]).is_err(), "cut at {at}");
        let mut flipped = file.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(verify(&flipped).is_err(), "byte {at}");
    }
}
