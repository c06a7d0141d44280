//! A saved store comes back as it was; a damaged backup is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::sync::Arc;
use std::time::Duration;

use backup::{BackupError, BackupReader, Content, SaveOptions, Selection, load, save};
use bytes::Bytes;
use catalogue::Setting;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::{
    Budget, Commit, Effect, Engine, Expect, Flow, Key, KeyRange, Namespace, Op, OwnedKey, Sink, TableId,
    Version,
};

const FAST: SaveOptions = SaveOptions { rate_bytes_max: 0 };

fn memory() -> MemoryEngine {
    MemoryEngine::new(tables::FAMILIES, Arc::new(FakeClock::default()))
}

/// A record with one Int32 property, `n`.
fn record(n: i32) -> Bytes {
    let mut bytes = vec![1, 40, 0, 0, 0, 1, 1, b'n', 2];
    bytes.extend_from_slice(&n.to_le_bytes());
    bytes.into()
}

async fn put(engine: &dyn Engine, table: TableId, partition: &str, row: &str, value: Bytes) {
    let op = Op { row: row.into(), expect: Expect::Any, effect: Effect::Put(value) };
    engine.commit(Commit::one(table, partition, op)).await.unwrap();
}

async fn put_setting(engine: &dyn Engine, setting: &Setting, value: &'static str) {
    let key = setting.key();
    put(engine, TableId::SETTINGS, &key.partition, &key.row, value.into()).await;
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
        put(&engine, people, &format!("p{}", n % 7), &format!("r{n:05}"), record(n)).await;
    }
    for row in ["", "\u{FFFF}", "\u{FFFE}", "😀", "\u{E000}", "é"] {
        put(&engine, other, "", row, record(1)).await;
    }
    put_setting(&engine, &Setting::Policies(people), "policies of people").await;
    put_setting(&engine, &Setting::Policies(empty), "policies of empty").await;
    put_setting(&engine, &Setting::ServiceProperties("alice".into()), "properties of alice").await;
    engine
}

async fn bytes_of(engine: &dyn Engine) -> Vec<u8> {
    let mut file = Vec::new();
    save(engine, &FakeClock::default(), FAST, &mut file).await.unwrap();
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
    let budget = Budget { rows_examined_max: u64::MAX, time_max: Duration::MAX };
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
    selection: &Selection,
) -> Result<backup::Loaded, BackupError> {
    load(engine, BackupReader::open(file)?, selection, &mut |_, _| {}).await
}

#[tokio::test]
async fn everything_comes_back_with_its_versions_policies_and_properties() {
    let source = sample().await;
    let file = bytes_of(&source).await;
    let target = memory();
    let loaded = restore(&target, &file, &Selection::All).await.unwrap();
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
    assert_eq!(setting(&target, properties).await.unwrap(), "properties of alice");

    // New versions are greater than those of the source, even with a clock far behind.
    let last = source.snapshot().await.unwrap().last_version().unwrap();
    let (people, _) = table(&target, "alice", "people").await.unwrap();
    put(&target, people, "p", "new", record(1)).await;
    assert!(target.snapshot().await.unwrap().last_version().unwrap() > last);
}

#[tokio::test]
async fn one_table_comes_back_under_another_name_beside_the_old_one() {
    let engine = sample().await;
    let file = bytes_of(&engine).await;
    let one = |name: &str, new_name: Option<&str>, account: Option<&str>| Selection::Table {
        account: account.map(str::to_owned),
        name: name.to_owned(),
        new_name: new_name.map(str::to_owned),
    };
    let loaded = restore(&engine, &file, &one("PEOPLE", Some("Copy"), Some("alice"))).await.unwrap();
    assert_eq!((loaded.counts.table_count, loaded.counts.row_count), (1, 20_000));
    let (old, _) = table(&engine, "alice", "people").await.unwrap();
    let (new, shown) = table(&engine, "alice", "copy").await.unwrap();
    assert_eq!(shown, "Copy");
    assert!(rows(&engine, old).await == rows(&engine, new).await);
    assert_eq!(setting(&engine, Setting::Policies(new)).await.unwrap(), "policies of people");

    let refused = |outcome: Result<backup::Loaded, BackupError>| match outcome {
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
                put(&*engine, table, "p6", &format!("new {number}"), record(0)).await;
                put(&*engine, table, "p0", "r00000", record(-1)).await;
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
    save(&*engine, &FakeClock::default(), FAST, &mut out).await.unwrap();
    assert!(out.change_count > 5 && rows(&*engine, people).await != before);
    let target = memory();
    restore(&target, &out.file, &Selection::All).await.unwrap();
    let (copy, _) = table(&target, "alice", "people").await.unwrap();
    assert!(rows(&target, copy).await == before);
    assert!(table(&target, "bob", "people").await.is_some());
}

#[tokio::test]
async fn any_flipped_byte_and_any_cut_is_found() {
    let engine = memory();
    let id = engine.create_table(Namespace::new(tables::FAMILY, "alice"), "t", "T".into()).await.unwrap();
    for n in 0..30 {
        put(&engine, id, "p", &format!("{n:02}"), record(n)).await;
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
    assert!(matches!(verify(b"lazulite backup, format 2\n"), Err(BackupError::NewerFormat(2))));
}

#[tokio::test]
async fn a_damaged_backup_leaves_no_table() {
    let source = sample().await;
    let mut file = bytes_of(&source).await;
    let late = file.len() - 60;
    file[late] ^= 1;
    let target = memory();
    assert!(matches!(restore(&target, &file, &Selection::All).await, Err(BackupError::Damaged { .. })));
    for (account, name) in [("alice", "people"), ("alice", "empty"), ("bob", "people")] {
        assert_eq!(table(&target, account, name).await, None);
    }
}

#[tokio::test]
async fn a_table_of_a_family_that_a_backup_cannot_hold_is_not_left_out() {
    let engine = sample().await;
    let queues = Namespace::new(engine::Family(1), "alice");
    engine.create_table(queues, "people", Bytes::new()).await.unwrap();
    let mut file = Vec::new();
    let saved =
        backup::save(&engine, &FakeClock::default(), SaveOptions { rate_bytes_max: 0 }, &mut file).await;
    assert!(matches!(&saved, Err(BackupError::Engine(what)) if what.contains("family 1")), "{saved:?}");
    engine.drop_table(queues, "people").await.unwrap();
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
