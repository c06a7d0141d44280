//! Tables that get relations of their own while they are used: the contract holds, nothing is lost, doubled or old.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::{FAMILIES, run_all};
use engine::env::{Clock, SystemClock};
use engine::keys::{Key, KeyRange, OwnedKey};
use engine::wrapper::{Wrapped, Wrapper};
use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Found, Load, Row, TableId, TablePath, TableRows,
    Version,
};
use engine_postgres::{PostgresEngine, schema_sql};
use testkit::Stopwatch;

use support::moves::{Collect, SPACE, move_now, new_table, op, page, put, rows_of, two_movers};
use support::{Database, postgres_or_skip};

fn names(key: &OwnedKey) -> (&str, &str) {
    (&key.partition, &key.row)
}

/// Every call goes to another front end than the call before, and a mover is always at work.
struct Alternating {
    engines: Arc<[PostgresEngine; 2]>,
    next: AtomicUsize,
}

#[async_trait::async_trait]
impl Wrapper for Alternating {
    fn inner(&self) -> &dyn Engine {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.engines[turn % self.engines.len()]
    }

    async fn close(&self) {
        for engine in &*self.engines {
            engine.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_front_ends_keep_the_contract_while_tables_move() {
    let Some(server) = postgres_or_skip("two_front_ends_keep_the_contract_while_tables_move") else { return };
    let moved_count = Arc::new(AtomicUsize::new(0));
    run_all(async |families, clock| {
        let database = Database::fresh(&server);
        let mut options = database.options(families, clock.clone());
        options.own_relation_row_count_min = 2;
        let first = PostgresEngine::connect(options.clone()).await.unwrap();
        let second = PostgresEngine::connect(options).await.unwrap();
        let engines = Arc::new([first, second]);
        let (weak, moved_count) = (Arc::downgrade(&engines), moved_count.clone());
        tokio::spawn(async move {
            for turn in 0.. {
                let Some(engines) = weak.upgrade() else { return };
                let engine: &PostgresEngine = &engines[turn % 2];
                moved_count.fetch_add(usize::from(engine.move_large_table().await), Ordering::Relaxed);
                engine.sweep().await;
                drop(engines);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        Arc::new(Wrapped(Alternating { engines, next: AtomicUsize::new(0) })) as Arc<dyn Engine>
    })
    .await;
    println!("{} tables moved", moved_count.load(Ordering::Relaxed));
    assert!(moved_count.load(Ordering::Relaxed) > 0, "no table moved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_or_old_while_a_table_moves() {
    const WRITER_COUNT: usize = 4;
    let Some(server) = postgres_or_skip("nothing_is_lost_or_doubled_or_old_while_a_table_moves") else {
        return;
    };
    let (database, engines) = two_movers(&server, 50).await;
    for round in 0..5 {
        let table = new_table(&engines[0], &format!("t{round}"), 200).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let merged_count = Arc::new(AtomicUsize::new(0));
        let writers: Vec<_> = (0..WRITER_COUNT)
            .map(|writer| {
                let (engines, is_over) = (engines.clone(), is_over.clone());
                let merged_count = merged_count.clone();
                tokio::spawn(async move {
                    // What this writer knows to be true of its own rows.
                    let mut ledger: BTreeMap<String, Option<(Version, String)>> = BTreeMap::new();
                    let mut turn = 0;
                    while !is_over.load(Ordering::SeqCst) || turn < 20 {
                        turn += 1;
                        let engine = &engines[(turn + writer) % 2];
                        let row = format!("w{writer}.{:02}", turn * 7 % 23);
                        let (value, old) = (format!("{turn}"), ledger.get(&row).cloned().flatten());
                        let expect = match (&old, turn % 3) {
                            (None, 0) => Expect::Absent,
                            (Some((version, _)), 0) => Expect::Exactly(*version),
                            (Some(_), 1) => Expect::Present,
                            _ => Expect::Any,
                        };
                        let deletes = turn % 5 == 0;
                        let effect = if deletes { Effect::Delete } else { put(&value) };
                        let mut ops = vec![op(&row, expect, effect)];
                        if turn % 4 == 0 {
                            let merge = Effect::Merge("x".into());
                            ops.push(op("counter", Expect::Any, merge));
                        }
                        if turn % 7 == 0 {
                            ops.push(op(&format!("w{writer}.pair"), Expect::Any, put(&value)));
                        }
                        let has_merge = turn % 4 == 0;
                        let commit = Commit { table, partition: "p".into(), ops };
                        let version = match engine.commit(commit).await {
                            Ok(version) => version,
                            Err(error) => panic!("round {round}, turn {turn}: {error} for {old:?}"),
                        };
                        assert!(old.as_ref().is_none_or(|(before, _)| version > *before));
                        merged_count.fetch_add(usize::from(has_merge), Ordering::SeqCst);
                        let new = (!deletes).then(|| (version, value.clone()));
                        ledger.insert(row.clone(), new.clone());
                        if turn % 7 == 0 {
                            ledger.insert(format!("w{writer}.pair"), Some((version, value)));
                        }
                        // A row that must be absent is refused when it is there, and that is no write.
                        if new.is_some() {
                            let again = Commit::one(table, "p", op(&row, Expect::Absent, put("never")));
                            let refused = engines[turn % 2].commit(again).await;
                            let found = Found::Present(version);
                            assert_eq!(refused, Err(CommitError::Precondition { op: 0, found }));
                        }
                        let read =
                            engines[(turn + writer + 1) % 2].get(table, Key { partition: "p", row: &row });
                        let read = read.await.unwrap();
                        let read =
                            read.map(|row| (row.version, String::from_utf8(row.value.to_vec()).unwrap()));
                        assert_eq!(read, new, "round {round}: {row} after turn {turn}");
                    }
                    (ledger, turn)
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|reader: usize| {
                let (engines, is_over) = (engines.clone(), is_over.clone());
                tokio::spawn(async move {
                    let mut count = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        // The table always has its 200 first rows, in order, whatever its place is: in one view, and
                        // page by page from both front ends.
                        let rows = rows_of(&engines[reader], table).await;
                        let first = rows.iter().filter(|row| &*row.0.partition == "seed").count();
                        assert_eq!(first, 200);
                        assert!(
                            rows.windows(2).all(|two| names(&two[0].0) < names(&two[1].0)),
                            "in order, and no row twice"
                        );
                        let (mut start, mut paged_count) = (Some(KeyRange::all()), 0);
                        while let Some(range) = start {
                            let (rows, next) = page(&engines[count % 2], table, range, 30).await;
                            paged_count += rows.iter().filter(|row| &*row.0.partition == "seed").count();
                            start = next;
                            count += 1;
                        }
                        assert_eq!(paged_count, 200);
                    }
                    count
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        move_now(&server, &database, &engines[round % 2], table).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        engines[0].sweep().await;
        is_over.store(true, Ordering::SeqCst);
        let mut expected: BTreeMap<String, (Version, String)> = BTreeMap::new();
        let mut turn_count = 0;
        for writer in writers {
            let (ledger, count) = writer.await.unwrap();
            turn_count += count;
            expected.extend(ledger.into_iter().filter_map(|(row, value)| Some((row, value?))));
        }
        for reader in readers {
            assert!(reader.await.unwrap() > 0);
        }
        println!("round {round}: {turn_count} commits");
        for engine in &*engines {
            let mut found = BTreeMap::new();
            for (key, version, value) in rows_of(engine, table).await {
                if &*key.partition != "p" {
                    continue;
                }
                if &*key.row == "counter" {
                    assert_eq!(value.len(), merged_count.load(Ordering::SeqCst), "every merge once");
                } else {
                    found.insert(key.row.into_string(), (version, String::from_utf8(value).unwrap()));
                }
            }
            assert_eq!(found, expected, "round {round}");
        }
        let left = format!("SELECT count(*) FROM {}.rows WHERE table_id = {}", database.schema, table.0);
        assert_eq!(server.sql(&left).unwrap(), "0", "what the table left behind is removed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commits_reach_over_places() {
    let Some(server) = postgres_or_skip("commits_reach_over_places") else { return };
    let (database, engines) = two_movers(&server, 50).await;
    let large = new_table(&engines[0], "large", 100).await;
    let small = new_table(&engines[0], "small", 1).await;
    move_now(&server, &database, &engines[0], large).await;
    assert!(!engines[0].move_large_table().await, "the other one is small");
    let long = "\u{e123}".repeat(1000);
    let both = |expect, effect: Effect| {
        let of = |table, rows: &[&str]| Commit {
            table,
            partition: "p".into(),
            ops: rows.iter().map(|row| op(row, expect, effect.clone())).collect(),
        };
        vec![of(large, &["a", "b", &long]), of(small, &["m", &long])]
    };
    let count = async |value: &str| {
        let mut count = 0;
        for table in [large, small] {
            let rows = rows_of(&engines[1], table).await;
            count += rows.iter().filter(|row| row.2 == value.as_bytes()).count();
        }
        count
    };
    // The second front end has not heard of the move.
    engines[1].commit_all(both(Expect::Absent, put("1"))).await.unwrap();
    assert_eq!(count("1").await, 5);
    for engine in &*engines {
        assert!(engine.commit_all(both(Expect::Absent, put("never"))).await.is_err());
        let mut half = both(Expect::Present, put("never"));
        half[1].ops.push(op("missing", Expect::Present, put("never")));
        assert!(engine.commit_all(half).await.is_err());
    }
    assert_eq!((count("1").await, count("never").await), (5, 0), "all or nothing");
    engines[0].commit_all(both(Expect::Present, Effect::Merge("2".into()))).await.unwrap();
    assert_eq!(count("12").await, 5);
    // Front ends that race over both places: each of the five rows gets every merge once.
    let racing: Vec<_> = (0..4)
        .map(|n| {
            let (engines, commits) = (engines.clone(), both(Expect::Present, Effect::Merge("3".into())));
            tokio::spawn(async move {
                for _ in 0..5 {
                    engines[n % 2].commit_all(commits.clone()).await.unwrap();
                }
            })
        })
        .collect();
    for one in racing {
        one.await.unwrap();
    }
    assert_eq!(count(&format!("12{}", "3".repeat(20))).await, 5);
    engines[1].commit_all(both(Expect::Present, Effect::Delete)).await.unwrap();
    assert_eq!(rows_of(&engines[0], large).await.len(), 100);
    assert_eq!(rows_of(&engines[0], small).await.len(), 1);
    engines[1].drop_table(SPACE, "large").await.unwrap();
    let gone = engines[0].commit_all(both(Expect::Any, put("never"))).await;
    assert_eq!(gone, Err(CommitError::TableGone));
    engines[1].sweep().await;
    // Now the relation is gone too, and this front end still believes in it.
    let gone = engines[0].commit(Commit::one(large, "p", op("a", Expect::Any, put("never")))).await;
    assert_eq!(gone, Err(CommitError::TableGone));
    assert_eq!(engines[0].get(large, Key { partition: "seed", row: "000001" }).await, Ok(None));
    assert!(rows_of(&engines[0], large).await.is_empty());
    let (rows, next) = page(&engines[0], large, KeyRange::all(), 10).await;
    assert!(rows.is_empty() && next.is_none());
    assert_eq!(rows_of(&engines[0], small).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_view_tells_whether_an_older_one_may_be_held() {
    let Some(server) = postgres_or_skip("a_view_tells_whether_an_older_one_may_be_held") else { return };
    let (_database, engines) = two_movers(&server, 50).await;
    let first = engines[0].snapshot().await.unwrap();
    assert!(!first.may_have_older());
    let second = engines[1].snapshot().await.unwrap();
    assert!(second.may_have_older() && !first.may_have_older());
    drop((first, second));
    // The server notices in its own time that a session has ended.
    for _ in 0..100 {
        if !engines[1].snapshot().await.unwrap().may_have_older() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("views that are over count as held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn views_from_before_a_move_stay_as_they_were() {
    let Some(server) = postgres_or_skip("views_from_before_a_move_stay_as_they_were") else { return };
    let (database, engines) = two_movers(&server, 50).await;
    let table = new_table(&engines[0], "t", 100).await;
    let before = engines[1].snapshot().await.unwrap();
    move_now(&server, &database, &engines[0], table).await;
    let between = engines[1].snapshot().await.unwrap();
    engines[0].commit(Commit::one(table, "seed", op("later", Expect::Absent, put("v")))).await.unwrap();
    let until = engines[0].snapshot().await.unwrap().last_version().unwrap();
    let rows = vec![(
        Key { partition: "seed", row: "loaded" }.into(),
        Row { version: Version::new(7).unwrap(), value: "v".into() },
    )];
    engines[1].load(Load { table, rows, versions_until: until }).await.unwrap();
    engines[0].sweep().await;
    for (view, expected_count) in [(&before, 100), (&between, 100)] {
        let mut sink = Collect::default();
        view.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, &mut sink).await.unwrap();
        assert_eq!(sink.0.len(), expected_count);
    }
    assert_eq!(rows_of(&engines[0], table).await.len(), 102);
    // Nothing is dropped under a view either.
    let path = TablePath::new(SPACE, "t");
    let emptied = engines[1].replace_table(path, Expect::Any, Bytes::new(), TableRows::Drop).await.unwrap();
    engines[0].sweep().await;
    let mut sink = Collect::default();
    between.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, &mut sink).await.unwrap();
    assert_eq!(sink.0.len(), 100);
    drop((before, between));
    assert!(rows_of(&engines[0], emptied).await.is_empty());
    let relations = format!(
        "SELECT count(*) FROM pg_class WHERE relname ~ '^rows_[0-9]+$' AND relnamespace = '{}'::regnamespace",
        database.schema
    );
    // The server notices the end of the views' sessions a moment later.
    for _ in 0..100 {
        engines[0].sweep().await;
        if server.sql(&relations).unwrap() == "0" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the relation of the emptied table is still there");
}

/// The documented least rights do not include creating anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_to_create_tables_stay_shared() {
    let Some(server) = postgres_or_skip("without_the_right_to_create_tables_stay_shared") else { return };
    let database = Database::fresh(&server);
    let schema = &database.schema;
    server.sql(&schema_sql(schema).unwrap()).unwrap();
    let grants = format!(
        "CREATE ROLE modest LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO modest; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO modest; \
         GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO modest"
    );
    server.sql(&grants).unwrap();
    let url = server.url().replace("//postgres:", "//modest:").replace(server.password(), "x");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut options = Database { url, schema: schema.clone() }.options(FAMILIES, clock);
    (options.creates_schema, options.own_relation_row_count_min) = (false, 50);
    let engine = PostgresEngine::connect(options).await.unwrap();
    let table = new_table(&engine, "t", 100).await;
    assert!(!engine.move_large_table().await);
    assert_eq!(rows_of(&engine, table).await.len(), 100);
    // With the right to create and nothing more, it moves.
    server.sql(&format!("GRANT CREATE ON SCHEMA {schema} TO modest")).unwrap();
    move_now(&server, &database, &engine, table).await;
    assert_eq!(rows_of(&engine, table).await.len(), 100);
    engine.drop_table(SPACE, "t").await.unwrap();
    engine.sweep().await;
    assert_eq!(server.sql(&format!("SELECT count(*) FROM {schema}.places")).unwrap(), "0");
    let left = server.sql(&format!("SELECT count(*) FROM {schema}.rows")).unwrap();
    assert_eq!(left, "0");
}

/// With `LAZULITE_RELATION_ROWS=500000` it prints what docs/decisions/0016-postgres.md says, and takes minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_go_on_during_a_move_and_space_comes_back_with_the_drop() {
    let Some(server) = postgres_or_skip("writers_go_on_during_a_move_and_space_comes_back_with_the_drop")
    else {
        return;
    };
    let asked = std::env::var("LAZULITE_RELATION_ROWS").ok().and_then(|rows| rows.parse().ok());
    let row_count: u64 = asked.unwrap_or(10_000);
    let fill = |database: &Database, table: TableId, row_count: u64| {
        let text = format!(
            "INSERT INTO {}.rows SELECT {}, i, 0, int4send((i * 31 % 1000)::int), int4send(i::int), \
             decode(repeat('ab', 300), 'hex') FROM generate_series(1::bigint, {row_count}) i",
            database.schema, table.0
        );
        server.sql(&text).unwrap();
    };
    let (database, engines) = two_movers(&server, row_count / 2).await;
    let table = new_table(&engines[0], "writers", 1).await;
    fill(&database, table, row_count);
    let is_over = Arc::new(AtomicBool::new(false));
    let is_moving = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer: usize| {
            let (engines, is_over, is_moving) = (engines.clone(), is_over.clone(), is_moving.clone());
            tokio::spawn(async move {
                let mut times: Vec<(bool, Duration)> = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    let started = Stopwatch::start();
                    let row = format!("w{writer}.{}", times.len() % 100);
                    let commit = Commit::one(table, "p", op(&row, Expect::Any, put("v")));
                    engines[writer % 2].commit(commit).await.unwrap();
                    let took = started.elapsed();
                    // So that the sessions of readers are open too, as they are in a server.
                    if times.len().is_multiple_of(10) {
                        engines[writer % 2].get(table, Key { partition: "p", row: &row }).await.unwrap();
                    }
                    times.push((is_moving.load(Ordering::SeqCst), took));
                }
                times
            })
        })
        .collect();
    tokio::time::sleep(if asked.is_some() { Duration::from_secs(10) } else { Duration::from_secs(3) }).await;
    is_moving.store(true, Ordering::SeqCst);
    let started = Stopwatch::start();
    move_now(&server, &database, &engines[0], table).await;
    println!("{row_count} rows: the move took {:.1?}", started.elapsed());
    is_over.store(true, Ordering::SeqCst);
    let mut times = Vec::new();
    for writer in writers {
        times.extend(writer.await.unwrap());
    }
    for moves in [false, true] {
        let mut some: Vec<Duration> =
            times.iter().filter(|time| time.0 == moves).map(|time| time.1).collect();
        some.sort_unstable();
        let (Some(middle), Some(longest)) = (some.get(some.len() / 2), some.last()) else { continue };
        println!(
            "moves: {moves}: {} commits by 4 writers, median {middle:.1?}, longest {longest:.1?}",
            some.len()
        );
    }
    for own in [false, true] {
        let (database, engines) = two_movers(&server, if own { row_count } else { u64::MAX }).await;
        let table = new_table(&engines[0], "dropped", 1).await;
        fill(&database, table, row_count * 2);
        if own {
            move_now(&server, &database, &engines[0], table).await;
            engines[0].sweep().await;
        }
        let size = format!(
            "SELECT sum(pg_total_relation_size(oid)) / 1024 FROM pg_class WHERE relkind = 'r' \
             AND relnamespace = '{}'::regnamespace",
            database.schema
        );
        server.sql("CHECKPOINT").unwrap();
        // The sessions are open when the time counts.
        new_table(&engines[1], "another", 1).await;
        engines[1].drop_table(SPACE, "another").await.unwrap();
        let size = || -> f64 { server.sql(&size).unwrap().parse().unwrap() };
        let before = size();
        let started = Stopwatch::start();
        engines[1].drop_table(SPACE, "dropped").await.unwrap();
        let dropped = started.elapsed();
        let started = Stopwatch::start();
        let left =
            format!("SELECT count(*) FROM {}.dropped d JOIN {0}.rows USING (table_id)", database.schema);
        let places = format!("SELECT count(*) FROM {}.places", database.schema);
        while server.sql(&left).unwrap() != "0" || server.sql(&places).unwrap() != "0" {
            engines[0].sweep().await;
        }
        let (swept, after) = (started.elapsed(), size());
        println!(
            "{} rows, own relation: {own}: dropped in {dropped:.1?}, swept in {swept:.1?}; {before:.0} KiB before, {after:.0} \
             KiB after",
            row_count * 2
        );
        assert!(after < before * 0.8 || !own, "{before} KiB before, {after} KiB after");
    }
}
