//! Stores of every released format open as they are, and can hold a second family.

use std::path::{Path, PathBuf};

use engine::{Engine, Family, Key, Namespace, TableId, TableRecord};
use engine_local::check_directory;
use tempfile::TempDir;

use crate::support::*;

const OWNER: &str = "devstoreaccount1";
const FIRST: Namespace<'static> = Namespace::new(Family::FIRST, OWNER);
const SECOND: Namespace<'static> = Namespace::new(Family(1), OWNER);

fn copy_of(name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let location = directory.path().join("data");
    std::fs::create_dir(&location).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    for entry in std::fs::read_dir(fixture).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), location.join(entry.file_name())).unwrap();
    }
    (directory, location)
}

async fn id_of(engine: &dyn Engine, namespace: Namespace<'_>, name: &str) -> Option<TableId> {
    let row = engine.get(TableId::CATALOGUE, Key::new(&namespace.partition(), name)).await.unwrap()?;
    Some(TableRecord::read(&row.value).unwrap().id)
}

#[tokio::test]
async fn a_store_from_before_families_holds_the_first_and_takes_a_second() {
    for name in [
        "store-format-2-closed",
        "store-format-2-killed",
        "store-format-3-closed",
        "store-format-3-killed",
        "store-format-4-closed",
        "store-format-4-killed",
    ] {
        let (_directory, location) = copy_of(name);
        let engine = open(&location);
        let every = id_of(&engine, FIRST, "every").await.unwrap();
        assert!(every.family() == Family::FIRST && every == TableId(every.counter()), "{name}: {every:?}");
        let before = all(&engine, every).await.unwrap();
        assert_eq!(before.len(), 6, "{name}");

        let second = engine.create_table(SECOND, "every", "".into()).await.unwrap();
        assert_eq!(second.family(), SECOND.family, "{name}");
        assert!(second.counter() > every.counter(), "{name}");
        commit(&engine, put(second, "p", "r", "a")).await.unwrap();
        let doomed = engine.create_table(SECOND, "doomed", "".into()).await.unwrap();
        commit(&engine, put(doomed, "p", "r", "a")).await.unwrap();
        engine.drop_table(SECOND, "doomed").await.unwrap();
        engine.close().await;
        drop(engine);

        let checked = check_directory(&location, 0, &engine::conformance::FAMILIES).unwrap();
        assert_eq!(checked.findings, Vec::<String>::new(), "{name}");
        assert_eq!((checked.table_count, checked.row_count), (3, 7), "{name}");
        let engine = open(&location);
        assert_eq!(id_of(&engine, FIRST, "every").await, Some(every), "{name}");
        assert_eq!(id_of(&engine, SECOND, "every").await, Some(second), "{name}");
        assert_eq!(all(&engine, every).await.unwrap(), before, "{name}");
        assert_eq!(value(&engine, second, "r").await.as_deref(), Some("a"), "{name}");
        let next = engine.create_table(FIRST, "next", "".into()).await.unwrap();
        assert!(next.counter() > second.counter() && next.family() == Family::FIRST, "{name}");
        eventually("the dropped table is swept", async || engine.check().dropped_table_count == 0).await;
        assert_eq!(all(&engine, second).await.unwrap().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_check_asks_the_rules_of_the_family() {
    use engine::{Families, ValueRules};
    let directory = tempfile::tempdir().unwrap();
    let location = directory.path();
    let engine = open(location);
    for namespace in [FIRST, SECOND, Namespace::new(Family(2), OWNER)] {
        let table = engine.create_table(namespace, "t", "".into()).await.unwrap();
        commit(&engine, put(table, "p", "r", &format!("of {}", namespace.family.0))).await.unwrap();
    }
    engine.close().await;
    drop(engine);
    let rules =
        |is_sound| ValueRules { merge: |_, patch| Ok(bytes::Bytes::copy_from_slice(patch)), is_sound };
    let families = Families::NONE
        .with(FIRST.family, rules(|value| value == b"of 0"))
        .with(SECOND.family, rules(|value| value == b"something else"));
    let checked = check_directory(location, 0, &families).unwrap();
    assert_eq!(checked.finding_count, 1);
    assert!(checked.findings[0].contains("the value does not read"), "{:?}", checked.findings);
    assert!(checked.findings[0].contains(&format!("{OWNER}/1/")), "{:?}", checked.findings);
}
