//! Promises about snapshots and loads: how a backup is taken and restored.

use super::*;
use crate::{Load, Snapshot};

async fn rows_of(snapshot: &dyn Snapshot, table: TableId) -> Vec<(OwnedKey, Version, Vec<u8>)> {
    let mut sink = Collect::default();
    assert_eq!(read(snapshot.scan(table, &[KeyRange::all()], GENEROUS, &mut sink).await), None);
    sink.rows
}

fn owned(partition: &str, row: &str) -> OwnedKey {
    Key { partition, row }.into()
}

pub(super) async fn a_snapshot_stays_as_it_was(s: Subject) {
    let table = s.table("t").await;
    let version = s.put(table, "p", "a", "old").await;
    let last = s.put(table, "p", "b", "old").await;
    let snapshot = read(s.engine.snapshot().await);
    s.put(table, "p", "a", "new").await;
    s.put(table, "p", "c", "new").await;
    s.try_one(table, "b", Expect::Present, Effect::Delete).await.expect("deleted");
    s.engine.drop_table(space("conformance"), "t").await.expect("dropped");
    let rows = rows_of(&*snapshot, table).await;
    assert_eq!(rows, [(owned("p", "a"), version, b"old".to_vec()), (owned("p", "b"), last, b"old".to_vec())]);
    assert_eq!(snapshot.last_version(), Some(last));
    assert_eq!(rows_of(&*snapshot, TableId::CATALOGUE).await.len(), 1);
}

pub(super) async fn a_snapshot_holds_every_table(s: Subject) {
    assert_eq!(read(s.engine.snapshot().await).last_version(), None);
    let (a, b) = (s.table("a").await, s.table("b").await);
    s.put(a, "p", "r", "in a").await;
    s.put(b, "p", "r", "in b").await;
    s.put(TableId::SETTINGS, "p", "r", "a setting").await;
    let snapshot = read(s.engine.snapshot().await);
    for (table, value) in [(a, "in a"), (b, "in b"), (TableId::SETTINGS, "a setting")] {
        assert_eq!(rows_of(&*snapshot, table).await[0].2, value.as_bytes());
    }
    // Three rows, and two tables in the catalogue; the engine may count rows of its own too.
    let row_count = read(snapshot.row_count());
    assert!((5..=20).contains(&row_count), "{row_count}");
}

pub(super) async fn loaded_rows_keep_their_versions_and_later_ones_are_greater(s: Subject) {
    let table = s.table("t").await;
    let now = s.put(table, "p", "r", "here").await;
    let version = |ticks: u64| Version::new(now.ticks() + ticks).expect("a version");
    let rows = vec![
        (owned("p", "a"), Row { version: version(700), value: "1".into() }),
        (owned("q", "b"), Row { version: Version::new(5).expect("a version"), value: "2".into() }),
    ];
    let load = Load { table, rows: rows.clone(), versions_until: version(900) };
    s.engine.load(load).await.expect("loaded");
    for (key, row) in rows {
        assert_eq!(s.get(table, &key.partition, &key.row).await, Some(row));
    }
    assert!(s.put(table, "p", "a", "3").await > version(900));
    assert_eq!(s.keys(table, &[KeyRange::all()]).await, ["p/a", "p/r", "q/b"]);

    // A load without rows still moves the last version.
    let load = Load { table, rows: Vec::new(), versions_until: version(5_000) };
    s.engine.load(load).await.expect("loaded");
    assert!(s.put(table, "p", "a", "4").await > version(5_000));
}

pub(super) async fn a_load_needs_a_table(s: Subject) {
    let table = s.table("t").await;
    s.engine.drop_table(space("conformance"), "t").await.expect("dropped");
    let version = Version::new(7).expect("a version");
    let rows = vec![(owned("p", "r"), Row { version, value: Bytes::new() })];
    for table in [table, TableId(table.0 + 1), TableId::CATALOGUE] {
        let load = Load { table, rows: rows.clone(), versions_until: version };
        assert_eq!(s.engine.load(load).await, Err(CommitError::TableGone));
    }
    let load = Load { table: TableId::SETTINGS, rows: rows.clone(), versions_until: version };
    s.engine.load(load).await.expect("settings are loaded too");
    assert_eq!(s.get(TableId::SETTINGS, "p", "r").await, Some(rows[0].1.clone()));
}
