//! What a store holds after it was closed and opened again, and which directories can be opened.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::env::FakeClock;
use engine::{CommitError, Effect, Engine, Expect, Found, Op, TableId, TableRecord};
use engine_local::{LocalEngine, OpenError, ahead_of_clock};

use crate::support::*;

fn refusal(directory: &std::path::Path) -> OpenError {
    match LocalEngine::open(directory, options(&Arc::new(FakeClock::default()))) {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(FakeClock::default());
    let engine = LocalEngine::open(directory.path(), options(&clock)).unwrap();
    let kept = table(&engine, "kept").await;
    let dropped = table(&engine, "dropped").await;
    for n in 0..300 {
        commit(&engine, put(kept, "p", &format!("{n:03}"), &n.to_string())).await.unwrap();
    }
    let last = commit(&engine, put(TableId::SETTINGS, "s", "r", "setting")).await.unwrap();
    engine.drop_table(N, "dropped").await.unwrap();
    let rows = all(&engine, kept).await.unwrap();
    let catalogue = all(&engine, TableId::CATALOGUE).await.unwrap();
    engine.close().await;
    drop(engine);

    // The clock is an hour back: versions still continue from the last one.
    clock.step_back(Duration::from_secs(3600));
    let engine = LocalEngine::open(directory.path(), options(&clock)).unwrap();
    assert_eq!(all(&engine, kept).await.unwrap(), rows);
    assert_eq!(all(&engine, TableId::CATALOGUE).await.unwrap(), catalogue);
    assert_eq!(all(&engine, TableId::SETTINGS).await.unwrap()[0].3, b"setting");
    assert_eq!(commit(&engine, put(dropped, "p", "r", "v")).await, Err(CommitError::TableGone));
    let next = commit(&engine, put(kept, "p", "new", "v")).await.unwrap();
    assert_eq!(next.ticks(), last.ticks() + 2, "the drop took one");
    assert!(table(&engine, "dropped").await > dropped, "ids are not given again");
    let taken = engine.create_table(N, "kept", Bytes::new()).await;
    assert!(matches!(taken, Err(CommitError::Precondition { op: 0, found: Found::Present(_) })));
}

#[tokio::test]
async fn dropping_the_engine_finishes_what_was_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(open(directory.path()));
    let table = table(&*engine, "t").await;
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let engine = engine.clone();
            tokio::spawn(async move { commit(&*engine, put(table, "p", &n.to_string(), "v")).await })
        })
        .collect();
    let mut acknowledged = 0;
    for task in tasks {
        acknowledged += usize::from(task.await.unwrap().is_ok());
    }
    drop(engine);
    let engine = open(directory.path());
    assert_eq!((acknowledged, all(&engine, table).await.unwrap().len()), (50, 50));
}

#[tokio::test]
async fn closing_waits_for_commits_that_were_queued() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(open(directory.path()));
    let table = table(&*engine, "t").await;
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let engine = engine.clone();
            tokio::spawn(async move { commit(&*engine, put(table, "p", &n.to_string(), "v")).await })
        })
        .collect();
    let_tasks_run().await;
    engine.close().await;
    let durable = all(&*engine, table).await.unwrap().len();
    let mut acknowledged = 0;
    for task in tasks {
        acknowledged += usize::from(task.await.unwrap().is_ok());
    }
    assert_eq!((acknowledged, durable), (50, 50));
}

#[tokio::test]
async fn a_store_is_opened_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::Locked(_)), "{error}");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(engine);
    open(directory.path());
}

#[test]
fn a_missing_directory_is_created() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("some/where");
    let engine = open(&store);
    let marker = format!("lazulite store, format 4\nid {}\n", engine.store_id());
    drop(engine);
    assert_eq!(fs::read_to_string(store.join("LAZULITE")).unwrap(), marker);
    assert!(store.join("tables.redb").is_file());
    let mut names: Vec<_> = fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["LAZULITE", "commits-00000000000000000001.log", "lock", "tables.redb"]);
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.txt"), "precious").unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::Foreign(_)), "{error}");
    let names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["thesis.txt"]);
}

#[test]
fn a_file_is_not_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refusal(&file);
    assert!(matches!(error, OpenError::NotADirectory(_)), "{error}");
}

#[test]
fn another_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    fs::write(directory.path().join("LAZULITE"), "lazulite store, format 5\nwhatever\n").unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::NewerFormat { format: 5, .. }), "{error}");
    fs::write(directory.path().join("LAZULITE"), "lazulite store, format 1\n").unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::OlderFormat { format: 1, .. }), "{error}");
    fs::write(directory.path().join("LAZULITE"), "something else\n").unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_creation_that_was_cut_short_is_done_again() {
    let whole = tempfile::tempdir().unwrap();
    drop(open(whole.path()));
    let cut = |leave: &[&str]| {
        let directory = tempfile::tempdir().unwrap();
        for name in leave {
            match *name {
                "tables.redb" => {
                    fs::copy(whole.path().join(name), directory.path().join(name)).unwrap();
                }
                // A file that was only half written.
                name => fs::write(directory.path().join(name), "half").unwrap(),
            }
        }
        drop(open(directory.path()));
        let marker = fs::read_to_string(directory.path().join("LAZULITE")).unwrap();
        assert!(marker.starts_with("lazulite store, format 4\nid "), "{marker}");
    };
    cut(&["lock"]);
    cut(&["lock", "tables.redb.new"]);
    cut(&["lock", "tables.redb"]);
    cut(&["lock", "tables.redb", "LAZULITE.new"]);
}

#[test]
fn a_store_without_its_tables_is_damaged_not_empty() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    fs::remove_file(directory.path().join("tables.redb")).unwrap();
    let error = refusal(directory.path());
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert!(!directory.path().join("tables.redb").exists());
}

#[tokio::test]
async fn the_catalogue_keeps_payloads() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let id = engine.create_table(N, "t", "payload".into()).await.unwrap();
    let touch = Op { row: "r".into(), expect: Expect::Absent, effect: Effect::Merge("x".into()) };
    engine.commit(engine::Commit::one(id, "p", touch)).await.unwrap();
    drop(engine);
    let engine = open(directory.path());
    let rows = all(&engine, TableId::CATALOGUE).await.unwrap();
    let record = TableRecord::read(&rows[0].3).unwrap();
    assert_eq!((record.id, record.payload), (id, &b"payload"[..]));
    assert_eq!(value(&engine, id, "r").await.as_deref(), Some("x"));
}

#[tokio::test]
async fn versions_far_ahead_of_the_clock_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let (now, day) = (Arc::new(FakeClock::default()), Duration::from_secs(24 * 3600));
    let ahead = Arc::new(FakeClock::default());
    ahead.advance(3650 * day + Duration::from_secs(3600));
    let engine = LocalEngine::open(directory.path(), options(&ahead)).unwrap();
    table(&engine, "t").await;
    let told = |engine: &LocalEngine| ahead_of_clock(engine.check().last_version_ticks, &*now);
    assert!(told(&engine).unwrap().contains("by 3650 days, 1 hours and 0 minutes"), "{:?}", told(&engine));
    drop(engine);
    let engine = LocalEngine::open(directory.path(), options(&now)).unwrap();
    assert!(told(&engine).is_some(), "it stays so");
    assert_eq!(ahead_of_clock(engine.check().last_version_ticks, &*ahead), None);
}
