//! A saved store comes back as it was; a damaged backup is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::sync::Arc;

use backup::{BackupError, BackupReader, Content, LoadSelection, SaveOptions, SelectedName, load, save};
use bytes::Bytes;
use catalogue::Setting;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::{
    Budget, Commit, Effect, Engine, Expect, Flow, Key, KeyRange, Namespace, Op, OwnedKey, Sink, TableId,
    Version,
};
use protocol::common::StoredPolicy;
use protocol::common::acl::write_acl;
use protocol::common::service_properties::ServiceProperties;

const FAST: SaveOptions = SaveOptions { rate_bytes_max: 0 };

fn memory() -> MemoryEngine {
    MemoryEngine::new(tables::FAMILIES, Arc::new(FakeClock::default()))
}

/// The record of an entity with one Int32 property, `n`.
fn record(partition: &str, row: &str, n: i32) -> Vec<u8> {
    let keys = partition.encode_utf16().count() + row.encode_utf16().count();
    let size = u32::try_from(4 + 2 * keys + 34 + 14).unwrap();
    [&[1], &size.to_le_bytes()[..], &[1, 1, b'n', 2], &n.to_le_bytes()].concat()
}

async fn put_entity(engine: &dyn Engine, table: TableId, partition: &str, row: &str, n: i32) {
    put(engine, table, partition, row, record(partition, row, n).into()).await;
}

async fn put(engine: &dyn Engine, table: TableId, partition: &str, row: &str, value: Bytes) {
    let op = Op { row: row.into(), expect: Expect::Any, effect: Effect::Put(value) };
    engine.commit(Commit::one(table, partition, op)).await.unwrap();
}

async fn put_setting(engine: &dyn Engine, setting: &Setting, value: Vec<u8>) {
    let key = setting.key();
    put(engine, TableId::SETTINGS, &key.partition, &key.row, value.into()).await;
}

/// One stored policy with this id.
fn policies(id: &str) -> Vec<u8> {
    write_acl(&[StoredPolicy { id: id.to_owned(), start: None, expiry: None, permission: None }])
}

async fn sample() -> MemoryEngine {
    let engine = memory();
    let people = engine
        .create_table(Namespace::new(tables::FAMILY, "alice"), "people", "People".into())
        .await
        .unwrap();
    let empty =
        engine.create_table(Namespace::new(tables::FAMILY, "alice"), "empty", "empty".into()).await.unwrap();
    let other =
        engine.create_table(Namespace::new(tables::FAMILY, "bob"), "people", "PEOPLE".into()).await.unwrap();
    for n in 0..20_000 {
        put_entity(&engine, people, &format!("p{}", n % 7), &format!("r{n:05}"), n).await;
    }
    for row in ["", "\u{FFFF}", "\u{FFFE}", "😀", "\u{E000}", "é"] {
        put_entity(&engine, other, "", row, 1).await;
    }
    put_setting(&engine, &Setting::Policies(people), policies("of people")).await;
    put_setting(&engine, &Setting::Policies(empty), policies("of empty")).await;
    let properties = ServiceProperties::default().to_stored();
    put_setting(&engine, &Setting::ServiceProperties("alice".into()), properties).await;
    engine
}

async fn bytes_of(engine: &dyn Engine) -> Vec<u8> {
    let mut file = Vec::new();
    save(engine, None, &FakeClock::default(), FAST, &mut file).await.unwrap();
    file
}

#[derive(Default, PartialEq, Eq, Debug)]
struct Rows(Vec<(OwnedKey, Version, Vec<u8>)>);

impl Sink for Rows {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.0.push((key.into(), version, value.to_vec()));
        Flow::Continue
    }
}

async fn rows(engine: &dyn Engine, table: TableId) -> Rows {
    let mut rows = Rows::default();
    let budget = Budget::UNBOUNDED;
    engine.scan(table, &[KeyRange::all()], budget, &mut rows).await.unwrap();
    rows
}

async fn table(engine: &dyn Engine, account: &str, name: &str) -> Option<(TableId, String)> {
    let row = engine.get(TableId::CATALOGUE, Key::new(account, name)).await.unwrap()?;
    let record = engine::TableRecord::read(&row.value).unwrap();
    Some((record.id, String::from_utf8(record.payload.to_vec()).unwrap()))
}

async fn setting(engine: &dyn Engine, setting: Setting) -> Option<Bytes> {
    let key = setting.key();
    engine.get(TableId::SETTINGS, key.as_key()).await.unwrap().map(|row| row.value)
}

async fn restore(
    engine: &dyn Engine,
    file: &[u8],
    selection: &LoadSelection,
) -> Result<backup::LoadReport, BackupError> {
    load(engine, None, BackupReader::open(file)?, selection, &mut |_, _| {}).await
}

#[tokio::test]
async fn everything_comes_back_with_its_versions_policies_and_properties() {
    let source = sample().await;
    let file = bytes_of(&source).await;
    let target = memory();
    let loaded = restore(&target, &file, &LoadSelection::All).await.unwrap();
    assert_eq!((loaded.counts.table_count, loaded.counts.row_count), (3, 20_006));
    assert_eq!(loaded.accounts, ["alice", "bob"]);
    for (account, name, shown) in
        [("alice", "people", "People"), ("alice", "empty", "empty"), ("bob", "people", "PEOPLE")]
    {
        let (old, _) = table(&source, account, name).await.unwrap();
        let (new, payload) = table(&target, account, name).await.unwrap();
        assert_eq!(payload, shown);
        assert!(rows(&source, old).await == rows(&target, new).await, "{account}/{name}");
        assert_eq!(
            setting(&source, Setting::Policies(old)).await,
            setting(&target, Setting::Policies(new)).await
        );
    }
    let properties = Setting::ServiceProperties("alice".into());
    assert_eq!(setting(&target, properties).await.unwrap(), ServiceProperties::default().to_stored());

    // New versions are greater than those of the source, even with a clock far behind.
    let last = source.snapshot().await.unwrap().last_version().unwrap();
    let (people, _) = table(&target, "alice", "people").await.unwrap();
    put_entity(&target, people, "p", "new", 1).await;
    assert!(target.snapshot().await.unwrap().last_version().unwrap() > last);
}

#[tokio::test]
async fn one_table_comes_back_under_another_name_beside_the_old_one() {
    let engine = sample().await;
    let file = bytes_of(&engine).await;
    let one = |name: &str, new_name: Option<&str>, account: Option<&str>| {
        LoadSelection::Table(SelectedName {
            account: account.map(str::to_owned),
            name: name.to_owned(),
            new_name: new_name.map(str::to_owned),
        })
    };
    let loaded = restore(&engine, &file, &one("PEOPLE", Some("Copy"), Some("alice"))).await.unwrap();
    assert_eq!((loaded.counts.table_count, loaded.counts.row_count), (1, 20_000));
    let (old, _) = table(&engine, "alice", "people").await.unwrap();
    let (new, shown) = table(&engine, "alice", "copy").await.unwrap();
    assert_eq!(shown, "Copy");
    assert!(rows(&engine, old).await == rows(&engine, new).await);
    assert_eq!(setting(&engine, Setting::Policies(new)).await.unwrap(), policies("of people"));

    let refused = |outcome: Result<backup::LoadReport, BackupError>| match outcome {
        Err(BackupError::Refused(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    let taken = restore(&engine, &file, &one("people", Some("copy"), Some("alice"))).await;
    assert!(refused(taken).contains("has a table 'copy' already"));
    let unknown = restore(&engine, &file, &one("nothing", None, None)).await;
    assert!(refused(unknown).contains("no table 'nothing'"));
    let bad = restore(&engine, &file, &one("people", Some("1st"), None)).await;
    assert!(refused(bad).contains("not the name of a table"));
    // The next load drops what the refused ones left behind.
    restore(&engine, &file, &one("empty", Some("empty2"), None)).await.unwrap();
    let hidden = rows(&engine, TableId::CATALOGUE)
        .await
        .0
        .iter()
        .filter(|(key, ..)| key.partition.starts_with('!'))
        .count();
    assert_eq!(hidden, 0);
}

/// Receives a backup's bytes, and changes the store at each write.
struct Meddling {
    engine: Arc<MemoryEngine>,
    table: TableId,
    file: Vec<u8>,
    change_count: usize,
}

impl std::io::Write for Meddling {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.extend_from_slice(bytes);
        self.change_count += 1;
        let (engine, table, number) = (self.engine.clone(), self.table, self.change_count);
        let change = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                put_entity(&*engine, table, "p6", &format!("new {number}"), 0).await;
                put_entity(&*engine, table, "p0", "r00000", -1).await;
                let op = Op { row: "r19998".into(), expect: Expect::Any, effect: Effect::Delete };
                engine.commit(Commit::one(table, "p6", op)).await.unwrap();
                let _ = engine.drop_table(Namespace::new(tables::FAMILY, "bob"), "people").await;
            });
        };
        std::thread::spawn(change).join().unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_backup_shows_one_moment_whatever_is_written_meanwhile() {
    let engine = Arc::new(sample().await);
    let (people, _) = table(&*engine, "alice", "people").await.unwrap();
    let before = rows(&*engine, people).await;
    let mut out = Meddling { engine: engine.clone(), table: people, file: Vec::new(), change_count: 0 };
    save(&*engine, None, &FakeClock::default(), FAST, &mut out).await.unwrap();
    assert!(out.change_count > 5 && rows(&*engine, people).await != before);
    let target = memory();
    restore(&target, &out.file, &LoadSelection::All).await.unwrap();
    let (copy, _) = table(&target, "alice", "people").await.unwrap();
    assert!(rows(&target, copy).await == before);
    assert!(table(&target, "bob", "people").await.is_some());
}

#[tokio::test]
async fn any_flipped_byte_and_any_cut_is_found() {
    let engine = memory();
    let id = engine.create_table(Namespace::new(tables::FAMILY, "alice"), "tab", "Tab".into()).await.unwrap();
    for n in 0..30 {
        put_entity(&engine, id, "p", &format!("{n:02}"), n).await;
    }
    let file = bytes_of(&engine).await;
    BackupReader::open(&file[..]).unwrap().verify().unwrap();
    let verify = |bytes: &[u8]| BackupReader::open(bytes).and_then(BackupReader::verify);
    for at in 0..file.len() {
        assert!(verify(&file[..at]).is_err(), "cut at {at}");
        for bit in [0, 3, 7] {
            let mut flipped = file.clone();
            flipped[at] ^= 1 << bit;
            assert!(verify(&flipped).is_err(), "byte {at}, bit {bit}");
        }
    }
    let longer = [&file[..], b"x"].concat();
    assert!(matches!(verify(&longer), Err(BackupError::Damaged { .. })));
    assert!(matches!(verify(b"PK\x03\x04"), Err(BackupError::Foreign)));
    assert!(matches!(verify(b""), Err(BackupError::Foreign)));
    assert!(matches!(verify(b"lazulite backup, format 4\n"), Err(BackupError::NewerFormat(4))));
}

#[tokio::test]
async fn a_damaged_backup_leaves_no_table() {
    let source = sample().await;
    let mut file = bytes_of(&source).await;
    let late = file.len() - 60;
    file[late] ^= 1;
    let target = memory();
    assert!(matches!(restore(&target, &file, &LoadSelection::All).await, Err(BackupError::Damaged { .. })));
    for (account, name) in [("alice", "people"), ("alice", "empty"), ("bob", "people")] {
        assert_eq!(table(&target, account, name).await, None);
    }
}

#[tokio::test]
async fn a_table_of_a_family_that_a_backup_cannot_hold_is_not_left_out() {
    let engine = sample().await;
    let others = Namespace::new(engine::Family(3), "alice");
    engine.create_table(others, "people", Bytes::new()).await.unwrap();
    let mut file = Vec::new();
    let saved =
        backup::save(&engine, None, &FakeClock::default(), SaveOptions { rate_bytes_max: 0 }, &mut file)
            .await;
    assert!(matches!(&saved, Err(BackupError::Engine(what)) if what.contains("family 3")), "{saved:?}");
    engine.drop_table(others, "people").await.unwrap();
    bytes_of(&engine).await;
}

#[tokio::test]
async fn a_reader_gives_what_the_format_says() {
    let file = bytes_of(&sample().await).await;
    let mut reader = BackupReader::open(&file[..]).unwrap();
    assert_eq!(reader.head().program_version, env!("CARGO_PKG_VERSION"));
    let mut story = Vec::new();
    while let Some(content) = reader.next_content().unwrap() {
        story.push(match content {
            Content::Properties { account, .. } => format!("properties of {account}"),
            Content::Table(table) => format!("table {}/{}", table.account, table.name),
            Content::Rows(rows) => {
                assert!(rows.clone().count() > 0);
                "rows".to_owned()
            }
            other @ (Content::QueueProperties { .. } | Content::Queue(_) | Content::Messages(_)) => {
                panic!("{other:?}");
            }
            other @ (Content::BlobProperties { .. }
            | Content::Container(_)
            | Content::Piece(_)
            | Content::BlobRows(_)) => {
                panic!("{other:?}");
            }
            Content::End(end) => {
                format!("end {} {} {}", end.properties_count, end.table_count, end.row_count)
            }
        });
    }
    story.dedup();
    assert_eq!(
        story,
        [
            "properties of alice",
            "table alice/empty",
            "table alice/People",
            "rows",
            "table bob/PEOPLE",
            "rows",
            "end 1 3 20006"
        ]
    );
}

/// A backup made by hand, with correct checksums.
struct Crafted {
    last_version: u64,
    program: &'static str,
    properties: Vec<(&'static str, Vec<u8>)>,
    tables: Vec<(&'static str, &'static str, Option<Vec<u8>>)>,
    /// Of the last table: version, keys and record.
    rows: Vec<(u64, String, String, Vec<u8>)>,
}

impl Crafted {
    fn new() -> Crafted {
        Crafted {
            last_version: 1000,
            program: "0.1.0",
            properties: Vec::new(),
            tables: vec![("alice", "People", None)],
            rows: Vec::new(),
        }
    }

    fn row(mut self, version: u64, partition: &str, row: &str) -> Crafted {
        self.rows.push((version, partition.to_owned(), row.to_owned(), record(partition, row, 1)));
        self
    }

    fn file(&self) -> Vec<u8> {
        let number = |number: u64| number.to_le_bytes().to_vec();
        let bytes = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_le_bytes(), bytes].concat();
        let text = |text: &str| bytes(text.as_bytes());
        let head = [number(7), number(self.last_version), number(2), text(self.program)].concat();
        let mut blocks = vec![(1, head)];
        for (account, properties) in &self.properties {
            blocks.push((2, [text(account), bytes(properties)].concat()));
        }
        for (account, name, policies) in &self.tables {
            let policies = policies.as_ref().map_or(vec![0], |policies| [vec![1], bytes(policies)].concat());
            blocks.push((3, [text(account), text(name), policies].concat()));
        }
        for (version, partition, row, record) in &self.rows {
            blocks.push((4, [number(*version), text(partition), text(row), bytes(record)].concat()));
        }
        let counts = [self.properties.len(), self.tables.len(), self.rows.len(), 0, 0, 0, 0, 0, 0, 0];
        blocks.push((5, counts.map(|count| number(count as u64)).concat()));
        backup::framed(blocks.iter().map(|(kind, raw)| (*kind, &raw[..])))
    }
}

#[tokio::test]
async fn a_backup_may_hold_only_what_requests_could_have_stored() {
    let check = async |crafted: Crafted, part: &str| {
        let file = crafted.file();
        let verified = BackupReader::open(&file[..]).and_then(BackupReader::verify);
        let engine = sample().await;
        let before = engine.snapshot().await.unwrap().last_version();
        let one = LoadSelection::Table(SelectedName {
            account: None,
            name: "People".into(),
            new_name: Some("New".into()),
        });
        for selection in [LoadSelection::All, one] {
            let target = memory();
            let loaded = restore(&target, &file, &selection).await;
            if part.is_empty() {
                assert!(loaded.is_ok(), "{loaded:?}");
                continue;
            }
            let sentence = loaded.unwrap_err().to_string();
            assert!(sentence.contains(part) && sentence.len() < 1_000, "{part}: {sentence}");
            assert!(!sentence.contains(char::is_control), "{sentence}");
            assert_eq!(table(&target, "alice", "people").await, None);
            assert!(restore(&engine, &file, &selection).await.is_err());
        }
        match verified {
            Ok(_) => assert_eq!(part, ""),
            Err(error) => assert!(!part.is_empty() && error.to_string().contains(part), "{error}"),
        }
        let tolerant = BackupReader::open(&file[..]).unwrap().tolerant();
        assert!(tolerant.verify().is_ok(), "{part}: the file itself is whole");
        // A table to load into is created before its rows are read, which takes a version. No more may happen.
        let after = engine.snapshot().await.unwrap().last_version();
        assert!(after.unwrap().ticks() < before.unwrap().ticks() + 100, "{before:?} {after:?}");
    };
    let new = Crafted::new;
    check(new().row(1000, "p", "r"), "").await;
    check(new().row(1000, &"k".repeat(512), &"k".repeat(512)), "").await;
    check(new().row(7, &"k".repeat(100_000), "r"), "exceeds the maximum").await;
    check(new().row(7, "p", &"k".repeat(513)), "RowKey \"kkk").await;
    for forbidden in ["a/b", "a#b", "a\\b", "a?b", "\u{1}", "\u{7F}", "\u{85}"] {
        check(new().row(7, forbidden, "r"), "out of range").await;
        check(new().row(7, "p", forbidden), "the entity of table people of alice with PartitionKey \"p\"")
            .await;
    }
    check(new().row(u64::MAX, "p", "r"), "is greater than the last one").await;
    check(new().row(1001, "p", "r"), "is greater than the last one").await;
    for last_version in [u64::MAX, 3_155_378_975_999_999_999, backup::VERSION_TICKS_MAX + 1] {
        check(Crafted { last_version, ..new() }.row(last_version, "p", "r"), "after the year 9000").await;
    }
    let mut lying = new().row(7, "p", "r");
    lying.rows[0].3[1] += 1;
    check(lying, "form").await;
    let mut junk = new().row(7, "p", "r");
    junk.rows[0].3 = b"junk".to_vec();
    check(junk, "decoded").await;

    let with_policies =
        |document: &[u8]| Crafted { tables: vec![("alice", "People", Some(document.into()))], ..new() };
    check(with_policies(&policies("one")), "").await;
    check(with_policies(b"junk"), "access policies").await;
    check(with_policies(&policies(&"x".repeat(65))), "access policies").await;
    let with_properties =
        |account, document: &[u8]| Crafted { properties: vec![(account, document.into())], ..new() };
    check(with_properties("alice", &ServiceProperties::default().to_stored()), "").await;
    check(with_properties("alice", b"<StorageServiceProperties/>"), "service properties of \"alice\"").await;
    check(with_properties("!restoring", b""), "name of an account").await;
    check(Crafted { program: "\u{1b}[2J", ..new() }, "name of a version").await;

    let with_tables = |tables: &[(&'static str, &'static str)]| Crafted {
        tables: tables.iter().map(|(account, name)| (*account, *name, None)).collect(),
        ..new()
    };
    check(with_tables(&[("alice", "People"), ("bob", "Any")]), "").await;
    check(with_tables(&[("alice", "1st"), ("alice", "People")]), "name of a table").await;
    check(with_tables(&[("alice", "People"), ("alice", "tables")]), "name of a table").await;
    check(with_tables(&[("!restoring", "People")]), "name of an account").await;
    check(with_tables(&[("alice", "PEOPLE"), ("alice", "People")]), "twice").await;
    check(with_tables(&[("bob", "Any"), ("alice", "People")]), "out of order").await;
}

#[tokio::test]
async fn one_table_from_a_clock_ahead_does_not_move_the_clock_of_the_store() {
    // 2100-01-01T00:00:00Z.
    let ahead = 662_380_416_000_000_000;
    let file = Crafted { last_version: ahead, ..Crafted::new() }
        .row(5, "p", "old")
        .row(ahead, "p", "zukunft")
        .file();
    let engine = sample().await;
    let before = engine.snapshot().await.unwrap().last_version().unwrap();
    let one = LoadSelection::Table(SelectedName {
        account: None,
        name: "People".into(),
        new_name: Some("Copy".into()),
    });
    restore(&engine, &file, &one).await.unwrap();
    let after = engine.snapshot().await.unwrap().last_version().unwrap();
    assert!(after.ticks() < before.ticks() + 100, "{before:?} {after:?}");
    let (copy, _) = table(&engine, "alice", "copy").await.unwrap();
    let found = rows(&engine, copy).await.0;
    assert_eq!(found[0].1.ticks(), 5, "a version of the past is kept");
    assert!(found[1].1 > before && found[1].1 <= after, "a version of the future becomes one of the store");
    put_entity(&engine, copy, "p", "zukunft", 2).await;
    assert!(rows(&engine, copy).await.0[1].1 > found[1].1, "and a new ETag differs from it");

    // An empty store takes the versions over with everything else.
    let empty = memory();
    restore(&empty, &file, &LoadSelection::All).await.unwrap();
    assert!(empty.snapshot().await.unwrap().last_version().unwrap().ticks() > ahead);
}
