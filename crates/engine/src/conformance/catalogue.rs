//! Promises about tables: the catalogue, dropped tables, and the settings.

use super::*;
use crate::{Found, TablePath, TableRecord, TableRows};

fn path<'a>(owner: &'a str, name: &'a str) -> TablePath<'a> {
    TablePath::new(space(owner), name)
}

async fn record(s: &Subject, namespace: &str, name: &str) -> Option<(TableId, Vec<u8>)> {
    let row = s.get(TableId::CATALOGUE, namespace, name).await?;
    let record = TableRecord::read(&row.value).expect("the catalogue holds records");
    Some((record.id, record.payload.to_vec()))
}

pub(super) async fn a_table_is_created_once(s: Subject) {
    let id = s.engine.create_table(space("n"), "t", "payload".into()).await.expect("created");
    assert!(id >= TableId::FIRST);
    assert_eq!(record(&s, "n", "t").await, Some((id, b"payload".to_vec())));
    let version = s.get(TableId::CATALOGUE, "n", "t").await.expect("it is there").version;

    let again = s.engine.create_table(space("n"), "t", "other".into()).await;
    assert_eq!(again, Err(CommitError::Precondition { op: 0, found: Found::Present(version) }));
    assert_eq!(record(&s, "n", "t").await, Some((id, b"payload".to_vec())));
}

pub(super) async fn a_table_created_again_has_a_new_id_and_no_rows(s: Subject) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = s.table("t").await;
        s.put(id, "p", "r", "v").await;
        assert_eq!(s.engine.drop_table(space("conformance"), "t").await, Ok(id));
        assert_eq!(record(&s, "conformance", "t").await, None);
        ids.push(id);
    }
    let last = s.table("t").await;
    assert!(s.keys(last, &[KeyRange::all()]).await.is_empty());
    ids.push(last);
    assert!(ids.is_sorted_by(|a, b| a < b), "ids are never given again: {ids:?}");
}

pub(super) async fn dropping_what_is_not_there_says_so(s: Subject) {
    let absent = Err(CommitError::Precondition { op: 0, found: Found::Absent });
    assert_eq!(s.engine.drop_table(space("n"), "t").await, absent);
    s.engine.create_table(space("n"), "t", Bytes::new()).await.expect("created");
    assert_eq!(s.engine.drop_table(space("other"), "t").await, absent);
    assert!(s.engine.drop_table(space("n"), "t").await.is_ok());
    assert_eq!(s.engine.drop_table(space("n"), "t").await, absent);
}

pub(super) async fn commits_to_a_dropped_table_are_refused(s: Subject) {
    let table = s.table("t").await;
    let version = s.put(table, "p", "r", "v").await;
    s.engine.drop_table(space("conformance"), "t").await.expect("dropped");
    for (expect, effect) in [
        (Expect::Any, put("v")),
        (Expect::Absent, put("v")),
        (Expect::Exactly(version), Effect::Delete),
        (Expect::Any, Effect::CheckOnly),
    ] {
        assert_eq!(s.try_one(table, "r", expect, effect).await, Err(CommitError::TableGone));
    }
    // A new table of the same name is a different table.
    let next = s.table("t").await;
    assert_eq!(s.try_one(table, "r", Expect::Any, put("v")).await, Err(CommitError::TableGone));
    s.put(next, "p", "r", "v").await;
}

pub(super) async fn a_table_that_never_was_takes_no_commits(s: Subject) {
    let table = s.table("t").await;
    for id in [TableId(table.0 + 1), TableId(2), TableId(15), TableId(u64::MAX - 1)] {
        assert_eq!(s.try_one(id, "r", Expect::Any, put("v")).await, Err(CommitError::TableGone), "{id:?}");
    }
}

pub(super) async fn the_catalogue_is_not_committed_to(s: Subject) {
    let table = s.table("t").await;
    let commit = Commit::one(TableId::CATALOGUE, "conformance", op("t", Expect::Any, Effect::Delete));
    assert_eq!(s.engine.commit(commit).await, Err(CommitError::TableGone));
    assert_eq!(record(&s, "conformance", "t").await, Some((table, Vec::new())));
}

pub(super) async fn namespaces_are_separate(s: Subject) {
    let a = s.engine.create_table(space("a"), "t", "1".into()).await.expect("created");
    let b = s.engine.create_table(space("b"), "t", "2".into()).await.expect("created");
    assert_ne!(a, b);
    s.put(a, "p", "r", "in a").await;
    assert_eq!(s.get(b, "p", "r").await, None);
    assert_eq!(s.engine.drop_table(space("a"), "t").await, Ok(a));
    assert_eq!(record(&s, "b", "t").await, Some((b, b"2".to_vec())));
    s.put(b, "p", "r", "in b").await;
}

pub(super) async fn the_catalogue_lists_tables_in_order(s: Subject) {
    for name in ["zebra", "apple", "mango"] {
        s.engine.create_table(space("n"), name, Bytes::new()).await.expect("created");
        s.engine.create_table(space("other"), name, Bytes::new()).await.expect("created");
    }
    s.engine.drop_table(space("n"), "mango").await.expect("dropped");
    let of_n = KeyRange::rows("n", std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    assert_eq!(s.keys(TableId::CATALOGUE, &[of_n]).await, ["n/apple", "n/zebra"]);
}

pub(super) async fn tables_are_separate(s: Subject) {
    let tables = [s.table("a").await, s.table("b").await, s.table("c").await];
    for table in tables {
        s.put(table, "p", "r", &table.0.to_string()).await;
    }
    s.try_one(tables[1], "r", Expect::Present, Effect::Delete).await.expect("deleted");
    assert_eq!(s.keys(tables[0], &[KeyRange::all()]).await, ["p/r"]);
    assert!(s.keys(tables[1], &[KeyRange::all()]).await.is_empty());
    assert_eq!(s.value(tables[2], "p", "r").await, Some(tables[2].0.to_string()));
}

pub(super) async fn settings_are_a_table_that_is_always_there(s: Subject) {
    let table = s.table("t").await;
    let version = s.put(TableId::SETTINGS, "owner", "cors", "rules").await;
    let expected = Some(Row { version, value: "rules".into() });
    assert_eq!(s.get(TableId::SETTINGS, "owner", "cors").await, expected);
    assert_eq!(s.keys(TableId::SETTINGS, &[KeyRange::all()]).await, ["owner/cors"]);
    assert_eq!(s.get(table, "owner", "cors").await, None);
    assert_eq!(s.get(TableId::CATALOGUE, "owner", "cors").await, None);
    let stale = op("cors", Expect::Absent, put("new"));
    let outcome = s.engine.commit(Commit::one(TableId::SETTINGS, "owner", stale)).await;
    assert_eq!(outcome, Err(CommitError::Precondition { op: 0, found: Found::Present(version) }));
}

pub(super) async fn of_racing_creations_one_wins(s: Subject) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let engine = s.engine.clone();
            tokio::spawn(async move { engine.create_table(space("n"), "t", Bytes::new()).await })
        })
        .collect();
    let mut winners = Vec::new();
    for task in tasks {
        match task.await.expect("the task ends") {
            Ok(id) => winners.push(id),
            Err(CommitError::Precondition { op: 0, found: Found::Present(_) }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(record(&s, "n", "t").await.map(|(id, _)| id), Some(winners[0]));
}

pub(super) async fn a_renamed_table_keeps_its_id_and_rows(s: Subject) {
    let id = s.engine.create_table(space("n"), "old", "1".into()).await.expect("created");
    let version = s.put(id, "p", "r", "v").await;
    let (from, to) = (path("n", "old"), path("other", "new"));
    assert_eq!(s.engine.rename_table(from, to, "2".into()).await, Ok(id));
    assert_eq!(record(&s, "n", "old").await, None);
    assert_eq!(record(&s, "other", "new").await, Some((id, b"2".to_vec())));
    assert_eq!(s.get(id, "p", "r").await, Some(Row { version, value: "v".into() }));
    assert!(s.put(id, "p", "r", "w").await > version);
    assert_eq!(s.engine.drop_table(space("other"), "new").await, Ok(id));
}

pub(super) async fn a_table_is_not_renamed_over_another(s: Subject) {
    let a = s.engine.create_table(space("n"), "a", "1".into()).await.expect("created");
    let b = s.engine.create_table(space("n"), "b", "2".into()).await.expect("created");
    let version = s.get(TableId::CATALOGUE, "n", "b").await.expect("it is there").version;
    let taken = s.engine.rename_table(path("n", "a"), path("n", "b"), Bytes::new()).await;
    assert_eq!(taken, Err(CommitError::Precondition { op: 1, found: Found::Present(version) }));
    let absent = s.engine.rename_table(path("n", "c"), path("n", "d"), Bytes::new()).await;
    assert_eq!(absent, Err(CommitError::Precondition { op: 0, found: Found::Absent }));
    assert_eq!(record(&s, "n", "a").await, Some((a, b"1".to_vec())));
    assert_eq!(record(&s, "n", "b").await, Some((b, b"2".to_vec())));
}

pub(super) async fn a_replaced_payload_leaves_the_rows(s: Subject) {
    let id = s.engine.create_table(space("n"), "t", "1".into()).await.expect("created");
    let version = s.put(id, "p", "r", "v").await;
    let replaced = s.engine.replace_table(path("n", "t"), Expect::Present, "2".into(), TableRows::Keep).await;
    assert_eq!(replaced, Ok(id));
    assert_eq!(record(&s, "n", "t").await, Some((id, b"2".to_vec())));
    assert_eq!(s.get(id, "p", "r").await, Some(Row { version, value: "v".into() }));
    assert!(s.put(id, "p", "r", "w").await > version);
}

pub(super) async fn rows_are_dropped_and_the_name_stays(s: Subject) {
    let second = Namespace::new(SECOND, "n");
    let id = s.engine.create_table(second, "t", "1".into()).await.expect("created");
    s.put(id, "p", "r", "v").await;
    let replaced =
        s.engine.replace_table(TablePath::new(second, "t"), Expect::Any, "2".into(), TableRows::Drop);
    let fresh = replaced.await.expect("replaced");
    assert!(fresh > id && fresh.family() == SECOND, "{fresh:?} after {id:?}");
    assert_eq!(record(&s, &second.partition(), "t").await, Some((fresh, b"2".to_vec())));
    assert!(s.keys(fresh, &[KeyRange::all()]).await.is_empty());
    assert_eq!(s.try_one(id, "r", Expect::Any, put("v")).await, Err(CommitError::TableGone));
    s.put(fresh, "p", "r", "w").await;
    assert_eq!(s.engine.drop_table(second, "t").await, Ok(fresh));
}

pub(super) async fn a_record_is_replaced_only_as_expected(s: Subject) {
    let (name, new) = (path("n", "t"), || Bytes::from("new"));
    let absent = Err(CommitError::Precondition { op: 0, found: Found::Absent });
    for rows in [TableRows::Keep, TableRows::Drop] {
        assert_eq!(s.engine.replace_table(name, Expect::Any, new(), rows).await, absent);
    }
    let id = s.engine.create_table(space("n"), "t", "1".into()).await.expect("created");
    s.put(id, "p", "r", "v").await;
    let version = s.get(TableId::CATALOGUE, "n", "t").await.expect("it is there").version;
    let other = Version::new(version.ticks() + 1).expect("above zero");
    let stale = Err(CommitError::Precondition { op: 0, found: Found::Present(version) });
    for rows in [TableRows::Keep, TableRows::Drop] {
        assert_eq!(s.engine.replace_table(name, Expect::Exactly(other), new(), rows).await, stale);
    }
    assert_eq!(record(&s, "n", "t").await, Some((id, b"1".to_vec())));
    assert_eq!(s.value(id, "p", "r").await, Some("v".to_owned()));
    let replaced = s.engine.replace_table(name, Expect::Exactly(version), new(), TableRows::Keep).await;
    assert_eq!(replaced, Ok(id));
}
