//! Front ends that get in each other's way: of racing writers one wins, nobody waits for ever, nothing is written to a
//! table after its drop.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::{Clock, FakeClock, SystemClock};
use engine::keys::{Key, KeyRange, OwnedKey};
use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Family, Flow, Found, Namespace, Op, Sink, TableId,
    Version,
};
use engine_postgres::PostgresEngine;
use testkit::Postgres;

use support::{Database, postgres_or_skip};

const SPACE: Namespace<'static> = Namespace::new(Family::FIRST, "racing");

async fn two_front_ends(server: &Postgres) -> (Database, [Arc<PostgresEngine>; 2], TableId) {
    let database = Database::fresh(server);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    // At the same time, so that they race for the schema too.
    let connect = || PostgresEngine::connect(database.options(FAMILIES, clock.clone()));
    let (first, second) = tokio::join!(connect(), connect());
    let engines = [first.unwrap(), second.unwrap()].map(Arc::new);
    let table = engines[0].create_table(SPACE, "t", Bytes::new()).await.unwrap();
    (database, engines, table)
}

fn op(row: &str, expect: Expect, effect: Effect) -> Op {
    Op { row: row.into(), expect, effect }
}

fn put(value: &str) -> Effect {
    Effect::Put(Bytes::copy_from_slice(value.as_bytes()))
}

/// The keys of a table as `row` names of all partitions.
async fn rows_of(engine: &PostgresEngine, table: TableId) -> Vec<(OwnedKey, Version, Vec<u8>)> {
    struct Collect(Vec<(OwnedKey, Version, Vec<u8>)>);
    impl Sink for Collect {
        fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
            self.0.push((key.into(), version, value.to_vec()));
            Flow::Continue
        }
    }
    let mut sink = Collect(Vec::new());
    assert_eq!(engine.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, &mut sink).await, Ok(None));
    sink.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_four_inserters_one_wins_each_of_300_keys() {
    let Some(server) = postgres_or_skip("of_four_inserters_one_wins_each_of_300_keys") else { return };
    let (_, engines, table) = two_front_ends(&server).await;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let engine = engines[writer % 2].clone();
            tokio::spawn(async move {
                let mut won = Vec::new();
                for key in 0..300 {
                    // Every third commit is a batch, which takes the other road.
                    let mut ops = vec![op(&format!("k{key}"), Expect::Absent, put(&writer.to_string()))];
                    if key % 3 == 0 {
                        ops.push(op(&format!("second{key}"), Expect::Absent, put(&writer.to_string())));
                    }
                    match engine.commit(Commit { table, partition: "p".into(), ops }).await {
                        Ok(version) => won.push((key, version)),
                        Err(CommitError::Precondition { op: 0, found: Found::Present(_) }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                won
            })
        })
        .collect();
    let mut won = Vec::new();
    for writer in writers {
        won.extend(writer.await.unwrap());
    }
    let mut keys: Vec<usize> = won.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..300).collect::<Vec<_>>(), "every key has one winner");
    let mut versions: Vec<Version> = won.iter().map(|(_, version)| *version).collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 300, "no two commits share a version");
    assert_eq!(rows_of(&engines[0], table).await.len(), 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_in_opposite_order_do_not_wait_in_a_circle() {
    let Some(server) = postgres_or_skip("batches_in_opposite_order_do_not_wait_in_a_circle") else { return };
    let (_, engines, table) = two_front_ends(&server).await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'";
    let before = server.sql(deadlocks).unwrap();
    let writers: Vec<_> = (0..8)
        .map(|writer: usize| {
            let engine = engines[writer % 2].clone();
            tokio::spawn(async move {
                for round in 0..15 {
                    let mut ops: Vec<Op> = (0..20)
                        .map(|key| op(&format!("k{key:02}"), Expect::Any, put(&format!("{writer}.{round}"))))
                        .collect();
                    // Some rows come and go, so that inserts meet updates.
                    if round % 2 == 0 {
                        ops[7].effect = Effect::Delete;
                        ops[13].effect = Effect::Delete;
                    }
                    if writer.is_multiple_of(2) {
                        ops.reverse();
                    }
                    engine.commit(Commit { table, partition: "p".into(), ops }).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    // All rows of the last commit are of one writer and one round.
    let rows = rows_of(&engines[1], table).await;
    assert!(rows.len() >= 18);
    assert!(rows.iter().all(|row| row.1 == rows[0].1 && row.2 == rows[0].2), "{rows:?}");
    tokio::time::sleep(Duration::from_millis(1500)).await; // The server's counters are a second late.
    assert_eq!(server.sql(deadlocks).unwrap(), before);
}

/// Of two rows exactly one is there at any time. Whoever looks at both in one commit sees that, however the commits wait
/// for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_waited_sees_what_appeared_meanwhile() {
    let Some(server) = postgres_or_skip("a_commit_that_waited_sees_what_appeared_meanwhile") else { return };
    let (_, engines, table) = two_front_ends(&server).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let commit = |ops: Vec<Op>| Commit { table, partition: "p".into(), ops };
    engines[0].commit(Commit::one(table, "p", op("a", Expect::Absent, put("")))).await.unwrap();
    let turners: Vec<_> = (0..4)
        .map(|turner: usize| {
            let (engine, is_over) = (engines[turner % 2].clone(), is_over.clone());
            tokio::spawn(async move {
                let mut turned_count = 0;
                while !is_over.load(Ordering::SeqCst) {
                    for (from, to) in [("a", "b"), ("b", "a")] {
                        let ops =
                            vec![op(from, Expect::Present, Effect::Delete), op(to, Expect::Absent, put(""))];
                        match engine.commit(Commit { table, partition: "p".into(), ops }).await {
                            Ok(_) => turned_count += 1,
                            Err(CommitError::Precondition { op: 0, found: Found::Absent }) => {}
                            Err(other) => panic!("turning from {from} to {to}: {other:?}"),
                        }
                    }
                }
                turned_count
            })
        })
        .collect();
    for round in 0..300 {
        let engine = &engines[round % 2];
        let neither = vec![
            op("a", Expect::Absent, Effect::CheckOnly),
            op("b", Expect::Absent, Effect::CheckOnly),
            op("c", Expect::Any, put("")),
        ];
        let refused = engine.commit(commit(neither)).await;
        assert!(matches!(refused, Err(CommitError::Precondition { op: 0 | 1, .. })), "{refused:?}");
        let both = vec![op("a", Expect::Present, put("")), op("b", Expect::Present, put(""))];
        let refused = engine.commit(commit(both)).await;
        assert!(matches!(refused, Err(CommitError::Precondition { op: 0 | 1, .. })), "{refused:?}");
        let only_b = vec![op("a", Expect::Any, Effect::Delete), op("b", Expect::Any, put(""))];
        engine.commit(commit(only_b)).await.unwrap();
        let rows = rows_of(engine, table).await;
        assert_eq!(rows.len(), 1, "round {round}: {rows:?}");
    }
    is_over.store(true, Ordering::SeqCst);
    let mut turned_count = 0;
    for turner in turners {
        turned_count += turner.await.unwrap();
    }
    assert!(turned_count > 100, "{turned_count}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_acknowledged_that_began_after_the_drop() {
    let Some(server) = postgres_or_skip("nothing_is_acknowledged_that_began_after_the_drop") else { return };
    let (database, engines, _) = two_front_ends(&server).await;
    for round in 0..5 {
        let name = format!("dropped{round}");
        let table = engines[0].create_table(SPACE, &name, Bytes::new()).await.unwrap();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let acknowledged_count = Arc::new(AtomicUsize::new(0));
        let writers: Vec<_> = (0..4)
            .map(|writer: usize| {
                let (engine, is_dropped) = (engines[writer % 2].clone(), is_dropped.clone());
                let acknowledged_count = acknowledged_count.clone();
                tokio::spawn(async move {
                    for key in 0.. {
                        let began_after_drop = is_dropped.load(Ordering::SeqCst);
                        let ops = (0..1 + key % 2)
                            .map(|n| op(&format!("w{writer}.{key}.{n}"), Expect::Any, put("v")))
                            .collect();
                        match engine.commit(Commit { table, partition: "p".into(), ops }).await {
                            Ok(_) => {
                                assert!(!began_after_drop, "acknowledged after the drop");
                                acknowledged_count.fetch_add(1, Ordering::SeqCst);
                            }
                            Err(CommitError::TableGone) => break,
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        while acknowledged_count.load(Ordering::SeqCst) < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(engines[1].drop_table(SPACE, &name).await, Ok(table));
        is_dropped.store(true, Ordering::SeqCst);
        assert!(rows_of(&engines[0], table).await.is_empty(), "nobody sees rows of a dropped table");
        for writer in writers {
            writer.await.unwrap();
        }
    }
    engines[0].sweep().await;
    let left = format!("SELECT count(*) FROM {}.rows WHERE table_id > 1", database.schema);
    assert_eq!(server.sql(&left).unwrap(), "0", "the space comes back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn versions_grow_although_the_clocks_of_the_front_ends_disagree() {
    let Some(server) = postgres_or_skip("versions_grow_although_the_clocks_of_the_front_ends_disagree")
    else {
        return;
    };
    let database = Database::fresh(&server);
    let (ahead, behind) = (FakeClock::default(), FakeClock::default());
    behind.step_back(Duration::from_secs(3600));
    let mut engines = Vec::new();
    for clock in [ahead, behind] {
        engines.push(PostgresEngine::connect(database.options(FAMILIES, Arc::new(clock))).await.unwrap());
    }
    let table = engines[0].create_table(SPACE, "t", Bytes::new()).await.unwrap();
    let mut last = None;
    for round in 0..40 {
        let engine = &engines[round % 3 % 2];
        let effect = if round % 4 == 3 { Effect::Delete } else { put("v") };
        let commit = Commit::one(table, "p", op("r", Expect::Any, effect));
        let version = Some(engine.commit(commit).await.unwrap());
        assert!(version > last, "round {round}: {version:?} after {last:?}");
        last = version;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_longer_than_a_btree_entry_are_keys_like_others() {
    let Some(server) = postgres_or_skip("keys_longer_than_a_btree_entry_are_keys_like_others") else {
        return;
    };
    let (database, engines, table) = two_front_ends(&server).await;
    let engine = &engines[0];
    // A thousand characters of three bytes each; some differ only at their end, some only at their start.
    let long = |start: &str, end: &str| format!("{start}{}{end}", "\u{e123}".repeat(1000));
    let mut names =
        vec!["a".to_owned(), "b".to_owned(), long("a", ""), long("a", "1"), long("a", "2"), long("", "z")];
    names.extend((0..30).map(|n| long("m", &format!("{:02}", n * 7 % 30))));
    let ops = |expect, effect: Effect| -> Vec<Op> {
        names.iter().map(|row| op(row, expect, effect.clone())).collect()
    };
    for name in &names[..6] {
        let one = |expect, effect| Commit::one(table, name, op(name, expect, effect));
        engine.commit(one(Expect::Absent, put("1"))).await.unwrap();
        let again = engine.commit(one(Expect::Absent, put("2"))).await;
        assert!(
            matches!(again, Err(CommitError::Precondition { op: 0, found: Found::Present(_) })),
            "{again:?}"
        );
        let version = engine.commit(one(Expect::Any, put("2"))).await.unwrap();
        engine.commit(one(Expect::Exactly(version), Effect::Merge("3".into()))).await.unwrap();
        let row = engines[1].get(table, Key { partition: name, row: name }).await.unwrap().unwrap();
        assert_eq!(&row.value[..], b"23");
        engine.commit(one(Expect::Exactly(row.version), Effect::Delete)).await.unwrap();
        assert_eq!(engine.get(table, Key { partition: name, row: name }).await, Ok(None));
    }
    let batch = |ops| Commit { table, partition: "p".into(), ops };
    engine.commit(batch(ops(Expect::Absent, put("1")))).await.unwrap();
    engine.commit(batch(ops(Expect::Present, put("2")))).await.unwrap();
    let failed = engine.commit(batch(ops(Expect::Absent, put("3")))).await;
    assert!(matches!(failed, Err(CommitError::Precondition { op: 0, .. })), "{failed:?}");
    let found: Vec<String> =
        rows_of(engine, table).await.into_iter().map(|(key, ..)| key.row.into()).collect();
    let mut sorted = names.clone();
    sorted.sort_by_key(|name| name.encode_utf16().collect::<Vec<_>>());
    assert_eq!(found, sorted);
    // Page by page: every page resumes at the very key.
    let (mut ranges, mut paged) = (vec![KeyRange::all()], Vec::new());
    struct Names<'a>(&'a mut Vec<String>);
    impl Sink for Names<'_> {
        fn row(&mut self, key: Key<'_>, _: Version, _: &[u8]) -> Flow {
            self.0.push(key.row.to_owned());
            Flow::Continue
        }
    }
    let budget = Budget { rows_examined_max: 4, ..Budget::UNBOUNDED };
    while let Some(next) = engine.scan(table, &ranges, budget, &mut Names(&mut paged)).await.unwrap() {
        ranges = vec![KeyRange::from_key(&next.partition, &next.row)];
    }
    assert_eq!(paged, sorted);
    engine.commit(batch(ops(Expect::Present, Effect::Delete))).await.unwrap();
    assert!(rows_of(engine, table).await.is_empty());
    let left = server.sql(&format!("SELECT count(*) FROM {}.long_rows", database.schema)).unwrap();
    assert_eq!(left, "0");
}
