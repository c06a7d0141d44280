//! Bytes that changed on the disk are found and never served.

use std::fs;
use std::path::Path;

use engine::{CommitError, Engine, KeyRange, ReadError, TableId};
use engine_local::{LocalEngine, row_bytes};
use redb::{ReadableTable, TableDefinition};

use crate::support::*;

const ROWS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");

/// A store with the rows `a`, `b` and `c` in one table, closed.
async fn store(directory: &Path) -> TableId {
    let engine = open(directory);
    let table = table(&engine, "t").await;
    for row in ["a", "b", "c"] {
        commit(&engine, put(table, "p", row, &format!("the value of {row}"))).await.unwrap();
    }
    engine.close().await;
    table
}

/// Changes the stored bytes of row `b` through redb, without the engine, so that all checksums but the row's own
/// agree.
fn change(directory: &Path, how: impl Fn(&mut Vec<u8>)) {
    let database = engine_local::open_file(directory).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut rows = transaction.open_table(ROWS).unwrap();
        let key = rows
            .iter()
            .unwrap()
            .map(|entry| entry.unwrap().0.value().to_vec())
            .find(|key| key.ends_with(b"p\0b"))
            .unwrap();
        let mut stored = rows.get(&key[..]).unwrap().unwrap().value().to_vec();
        how(&mut stored);
        rows.insert(&key[..], &stored[..]).unwrap();
    }
    transaction.commit().unwrap();
}

async fn check_damaged(engine: &LocalEngine, table: TableId) {
    let Err(ReadError::Damaged(what)) = get(engine, table, "b").await else {
        panic!("a damaged row was served");
    };
    assert!(what.contains(&format!("table {}", table.0)) && what.contains("\"b\""), "{what}");
    assert!(matches!(all(engine, table).await, Err(ReadError::Damaged(_))));

    // The writer neither checks an expectation against it nor merges into it.
    let op = |expect, effect| engine::Commit::one(table, "p", engine::Op { row: "b".into(), expect, effect });
    let merge = op(engine::Expect::Any, engine::Effect::Merge("x".into()));
    assert!(matches!(commit(engine, merge).await, Err(CommitError::Storage(_))));
    let check = op(engine::Expect::Present, engine::Effect::CheckOnly);
    assert!(matches!(commit(engine, check).await, Err(CommitError::Storage(_))));

    // Its neighbours are intact, and a new value repairs it.
    assert_eq!(value(engine, table, "a").await.as_deref(), Some("the value of a"));
    let mut sink = Collect::default();
    let above = [KeyRange::from_key("p", "c")];
    engine.scan(table, &above, GENEROUS, &mut sink).await.unwrap();
    assert_eq!(sink.0.len(), 1);
    commit(engine, put(table, "p", "b", "new")).await.unwrap();
    assert_eq!(all(engine, table).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_flipped_bit_in_any_part_of_a_row_is_found() {
    // In the version, in the checksum, in the payload.
    for position in [0, 7, 8, 11, 12, 20] {
        let directory = tempfile::tempdir().unwrap();
        let table = store(directory.path()).await;
        change(directory.path(), |stored| stored[position] ^= 0x10);
        check_damaged(&open(directory.path()), table).await;
    }
}

#[tokio::test]
async fn a_row_cut_short_or_grown_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let table = store(directory.path()).await;
    change(directory.path(), |stored| stored.truncate(5));
    check_damaged(&open(directory.path()), table).await;
    change(directory.path(), |stored| stored.push(0));
    check_damaged(&open(directory.path()), table).await;
}

/// Repeats the read until the file has been reopened, if it must be.
async fn eventually(engine: &LocalEngine, table: TableId, row: &str) -> Option<engine::Row> {
    for _ in 0..100 {
        match get(engine, table, row).await {
            Err(ReadError::Busy) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            found => return found.unwrap(),
        }
    }
    panic!("{row} is never read");
}

#[tokio::test]
async fn a_byte_flipped_in_the_file_itself_is_found_and_the_rest_stays_readable() {
    let directory = tempfile::tempdir().unwrap();
    let engine = LocalEngine::open(directory.path(), system_options()).unwrap();
    let table = table(&engine, "t").await;
    for number in 0..200 {
        let ops = (0..50).map(|n| {
            let effect = engine::Effect::Put(format!("the value of {number:03}-{n:02}").into());
            engine::Op { row: format!("{number:03}-{n:02}").into(), expect: engine::Expect::Any, effect }
        });
        commit(&engine, engine::Commit { table, partition: "p".into(), ops: ops.collect() }).await.unwrap();
    }
    engine.close().await;
    drop(engine);
    let file = directory.path().join("tables.redb");
    let mut bytes = fs::read(&file).unwrap();
    let needle = b"the value of 100-25";
    let places: Vec<usize> =
        (0..bytes.len() - needle.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    assert!(!places.is_empty());
    // The bytes also occur in pages that are free or reused. The live copy is the one whose damage is noticed.
    let mut damaged = None;
    for place in places {
        bytes[place] ^= 1;
        fs::write(&file, &bytes).unwrap();
        if let Ok(engine) = LocalEngine::open(directory.path(), system_options())
            && get(&engine, table, "100-25").await.is_err()
        {
            damaged = Some(engine);
            break;
        }
        bytes[place] ^= 1;
    }
    let engine = damaged.expect("one of them is live");
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    for _ in 0..3 {
        let Err(ReadError::Damaged(what)) = get(&engine, table, "100-25").await else {
            panic!("a damaged row was served");
        };
        assert!(what.contains("tables.redb") && what.contains(&format!("table {}", table.0)), "{what}");
        assert!(eventually(&engine, table, "000-00").await.is_some());
        assert!(eventually(&engine, table, "199-49").await.is_some());
        tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    }
    assert!(all(&engine, table).await.is_err(), "a listing without the damaged page is no listing");
    assert!(eventually(&engine, table, "000-00").await.is_some());

    // Writes elsewhere continue; a write to the damaged row fails alone.
    commit(&engine, put(table, "p", "000-00", "new")).await.unwrap();
    let lost = commit(&engine, put(table, "p", "100-25", "new")).await;
    assert!(matches!(&lost, Err(CommitError::Storage(what)) if what.contains("damaged")), "{lost:?}");
    commit(&engine, put(table, "p", "199-49", "new")).await.unwrap();
    assert!(!engine.stats().poisoned);
    let checked = engine.check();
    assert!(checked.finding_count > 0 && checked.findings[0].contains("tables.redb"), "{checked:?}");
}

#[tokio::test]
async fn a_file_that_is_no_database_does_not_open() {
    let directory = tempfile::tempdir().unwrap();
    store(directory.path()).await;
    let file = directory.path().join("tables.redb");
    let whole = fs::read(&file).unwrap();
    let refuse = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let clock = std::sync::Arc::new(engine::env::FakeClock::default());
        assert!(LocalEngine::open(directory.path(), options(&clock)).is_err());
    };
    refuse(b"not a database");
    refuse(&whole[..100]);
    refuse(&whole[..whole.len() / 2]);
    let mut zeroed = whole.clone();
    zeroed[..4096].fill(0);
    refuse(&zeroed);
    fs::write(&file, &whole).unwrap();
    drop(open(directory.path()));
}

/// The entry of the catalogue for a table.
fn named(table: TableId) -> Vec<u8> {
    engine::TableRecord { id: table, payload: b"t" }.write().to_vec()
}

/// Writes a sound row through redb, without the engine, which would never write such a one.
fn plant(directory: &Path, table: TableId, partition: &str, row: &str, value: &[u8]) {
    let key = engine::keys::encode(table, engine::Key { partition, row });
    let mut stored = vec![0; row_bytes::size_bytes(value)];
    row_bytes::write(&mut stored, &key, engine::Version::new(1).unwrap(), value);
    let database = engine_local::open_file(directory).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(ROWS).unwrap().insert(&key[..], &stored[..]).unwrap();
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_check_finds_a_table_of_a_family_that_cannot_exist() {
    /// The list of tables that are not dropped.
    const LIVE: TableId = TableId(2);
    for family in [16, 255u8] {
        let directory = tempfile::tempdir().unwrap();
        let known = store(directory.path()).await;
        let table = TableId(u64::from(family) << 56 | known.counter());
        assert_eq!(TableId::in_family(engine::Family(family), known.counter()), None);
        let partition = format!("n/{family}");
        plant(directory.path(), LIVE, "", &format!("{:020}", table.0), b"");
        plant(directory.path(), TableId::CATALOGUE, &partition, "t", &named(table));
        plant(directory.path(), table, "p", "r", b"a row that nobody can ask for");

        let engine = open(directory.path());
        let text = format!("{partition}/t is table {} of family {family}, which is not", table.0);
        let checked = engine.check();
        assert!(checked.findings.iter().any(|finding| finding.contains(&text)), "{:?}", checked.findings);
        // It is in nobody's way.
        assert_eq!(all(&engine, known).await.unwrap().len(), 3);
        commit(&engine, put(known, "p", "d", "v")).await.unwrap();
    }
}

#[tokio::test]
async fn a_check_finds_a_table_whose_name_is_in_the_namespace_of_another_family() {
    let directory = tempfile::tempdir().unwrap();
    let table = store(directory.path()).await;
    plant(directory.path(), TableId::CATALOGUE, "n/1", "t", &named(table));
    let checked = open(directory.path()).check();
    let text = format!("n/1/t is table {} of family 0, which is not the family of its namespace", table.0);
    assert!(checked.findings.iter().any(|finding| finding.contains(&text)), "{:?}", checked.findings);
}
