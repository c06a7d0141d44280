//! Moves of tables that do not come to their end: the mover is killed, the table is dropped, a writer never ends.
//!
//! A lock that the test holds stops the mover at a known step.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use engine::{Commit, CommitError, Engine, Expect, TableId};
use engine_postgres::PostgresEngine;
use testkit::{Postgres, Stopwatch};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use support::moves::{SPACE, move_now, new_table, op, place_of, put, rows_of, two_movers};
use support::{Database, postgres_or_skip};

/// Where the mover stands when it is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The relation is made and the fence marked; writers that have not seen the mark are waited for.
    Begin,
    Copy,
    /// Everything is copied; the writers are about to be stopped.
    BeforeFreeze,
    /// Nobody writes; those who still do are waited for.
    Frozen,
    /// The new place is set, and not committed.
    Switch,
}

struct Stopped {
    /// Ends its transaction, and with it the lock, when it is dropped.
    lock: Option<Client>,
    mover: JoinHandle<bool>,
}

struct Stage {
    server: Arc<Postgres>,
    database: Database,
    engines: Arc<[PostgresEngine; 2]>,
    table: TableId,
}

impl Stage {
    async fn new(server: &Arc<Postgres>) -> Stage {
        let (database, engines) = two_movers(server, 50).await;
        let table = new_table(&engines[0], "t", 100).await;
        Stage { server: server.clone(), database, engines, table }
    }

    fn sql(&self, text: &str) -> String {
        let filled = text.replace("{s}", &self.database.schema).replace("{t}", &self.table.0.to_string());
        self.server.sql(&filled).unwrap()
    }

    /// A transaction that holds a lock.
    async fn lock(&self, text: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let filled = text.replace("{s}", &self.database.schema).replace("{t}", &self.table.0.to_string());
        client.batch_execute(&format!("BEGIN; {filled}")).await.unwrap();
        client
    }

    async fn until(&self, what: &str, text: &str) {
        for _ in 0..1000 {
            if self.sql(text) == "t" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never came to this: {what}");
    }

    /// Starts a move and stops it at a step. Each step is reached through the ones before.
    async fn stop_at(&self, step: Step) -> Stopped {
        // As a writer would hold it.
        let writer = "LOCK TABLE {s}.rows IN ROW EXCLUSIVE MODE";
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'lazulite mover {s}' \
                     AND wait_event_type = 'Lock')";
        let begun = self.lock(writer).await;
        let engines = self.engines.clone();
        let mover = tokio::spawn(async move { engines[0].move_large_table().await });
        self.until("a mark", "SELECT moves_to IS NOT NULL FROM {s}.fences WHERE table_id = {t}").await;
        if step == Step::Begin {
            return Stopped { lock: Some(begun), mover };
        }
        if step == Step::Copy {
            let relation = self.sql("SELECT '{s}.rows_' || max(place) FROM {s}.places");
            let lock = self.lock(&format!("LOCK TABLE {relation} IN SHARE MODE")).await;
            drop(begun);
            self.until("a copy", waits).await;
            return Stopped { lock: Some(lock), mover };
        }
        if step == Step::Switch {
            let lock = self.lock("SELECT FROM {s}.places FOR UPDATE").await;
            drop(begun);
            self.until("a switch", waits).await;
            return Stopped { lock: Some(lock), mover };
        }
        let fence = self.lock("SELECT FROM {s}.fences WHERE table_id = {t} FOR UPDATE").await;
        drop(begun);
        self.until("the end", waits).await;
        if step == Step::BeforeFreeze {
            return Stopped { lock: Some(fence), mover };
        }
        let frozen = self.lock(writer).await;
        drop(fence);
        self.until("a frozen table", "SELECT is_frozen FROM {s}.fences WHERE table_id = {t}").await;
        Stopped { lock: Some(frozen), mover }
    }

    /// A write, and how long it took.
    async fn write(&self, row: &str, value: &str) -> Duration {
        let started = Stopwatch::start();
        let commit = Commit::one(self.table, "p", op(row, Expect::Any, put(value)));
        self.engines[1].commit(commit).await.unwrap();
        started.elapsed()
    }

    async fn value_of(&self, row: &str) -> Option<Vec<u8>> {
        let rows = rows_of(&self.engines[0], self.table).await;
        rows.into_iter().find(|(key, ..)| &*key.row == row).map(|(_, _, value)| value)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_mover_that_is_killed_in_any_step_leaves_the_table_as_it_was() {
    let Some(server) = postgres_or_skip("a_mover_that_is_killed_in_any_step_leaves_the_table_as_it_was")
    else {
        return;
    };
    for step in [Step::Begin, Step::Copy, Step::BeforeFreeze, Step::Frozen, Step::Switch] {
        let stage = Stage::new(&server).await;
        stage.write("before", "1").await;
        let Stopped { lock, mover } = stage.stop_at(step).await;
        if matches!(step, Step::Begin | Step::Copy | Step::BeforeFreeze) {
            // Nobody waits for a copy.
            let took = stage.write("during", "1").await;
            assert!(took < Duration::from_secs(10), "{step:?}: {took:?}");
            assert_eq!(stage.value_of("during").await.unwrap(), b"1");
        }
        // Readers never wait.
        assert_eq!(stage.value_of("before").await.unwrap(), b"1");
        let killed = stage.sql(
            "SELECT bool_and(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE application_name = 'lazulite mover {s}'",
        );
        assert_eq!(killed, "t", "{step:?}");
        let took = stage.write("after", "1").await;
        println!("{step:?}: the first write after the mover's death took {took:?}");
        assert!(took < Duration::from_secs(10), "{step:?}: {took:?}");
        drop(lock);
        assert!(!mover.await.unwrap(), "{step:?}");
        // The first relation was the dead mover's. The front ends have movers of their own, which may have come already.
        assert_ne!(place_of(&server, &stage.database, stage.table), Some(1), "{step:?}");
        stage.write("before", "2").await;
        move_now(&server, &stage.database, &stage.engines[1], stage.table).await;
        stage.write("after", "2").await;
        for (row, value) in [("before", "2"), ("after", "2")] {
            assert_eq!(stage.value_of(row).await.unwrap(), value.as_bytes(), "{step:?}");
        }
        let relations = stage.sql(
            "SELECT count(*) FROM pg_class WHERE relname ~ '^rows_[0-9]+$' AND relnamespace = '{s}'::regnamespace",
        );
        assert_eq!(relations, "1", "{step:?}: what the dead mover made is gone");
        let extra = usize::from(matches!(step, Step::Begin | Step::Copy | Step::BeforeFreeze));
        assert_eq!(rows_of(&stage.engines[0], stage.table).await.len(), 102 + extra, "{step:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_front_end_that_dies_leaves_its_move_to_the_server_or_to_the_next_one() {
    let Some(server) = postgres_or_skip("a_front_end_that_dies_leaves_its_move") else { return };
    for step in [Step::Begin, Step::Copy, Step::Frozen, Step::Switch] {
        let stage = Stage::new(&server).await;
        let Stopped { lock, mover } = stage.stop_at(step).await;
        mover.abort();
        let _ = mover.await;
        drop(lock);
        let took = stage.write("after", "1").await;
        println!("{step:?}: the first write after the front end's death took {took:?}");
        assert!(took < Duration::from_secs(10), "{step:?}: {took:?}");
        move_now(&server, &stage.database, &stage.engines[1], stage.table).await;
        assert_eq!(stage.value_of("after").await.unwrap(), b"1", "{step:?}");
        assert_eq!(rows_of(&stage.engines[1], stage.table).await.len(), 101, "{step:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_table_that_is_dropped_in_any_step_of_its_move_is_gone() {
    let Some(server) = postgres_or_skip("a_table_that_is_dropped_in_any_step_of_its_move_is_gone") else {
        return;
    };
    for step in [Step::Begin, Step::Copy, Step::Frozen, Step::Switch] {
        let stage = Stage::new(&server).await;
        let Stopped { lock, mover } = stage.stop_at(step).await;
        let engines = stage.engines.clone();
        let dropping = tokio::spawn(async move { engines[1].drop_table(SPACE, "t").await });
        if step != Step::Switch {
            // Only a switch that is about to be committed holds the fence.
            assert_eq!(dropping.await.unwrap(), Ok(stage.table), "{step:?}");
            drop(lock);
        } else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(lock);
            assert_eq!(dropping.await.unwrap(), Ok(stage.table), "{step:?}");
        }
        mover.await.unwrap();
        let written = Commit::one(stage.table, "p", op("r", Expect::Any, put("never")));
        for engine in &*stage.engines {
            assert_eq!(engine.commit(written.clone()).await, Err(CommitError::TableGone), "{step:?}");
            assert!(rows_of(engine, stage.table).await.is_empty(), "{step:?}");
        }
        // Another front end's round may hold the lock of the sweep for a moment.
        stage.engines[0].sweep().await;
        stage.engines[1].sweep().await;
        let left = stage.sql("SELECT (SELECT count(*) FROM {s}.places) + (SELECT count(*) FROM {s}.rows)");
        assert_eq!(left, "0", "{step:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_writer_that_does_not_end_keeps_the_table_where_it_is_and_others_write_on() {
    let Some(server) = postgres_or_skip("a_writer_that_does_not_end_keeps_the_table_where_it_is") else {
        return;
    };
    let stage = Stage::new(&server).await;
    let Stopped { lock, mover } = stage.stop_at(Step::Frozen).await;
    let took = stage.write("after", "1").await;
    println!("writers waited {took:?} for a mover that waits for a writer");
    assert!(took < Duration::from_secs(12), "{took:?}");
    assert!(!mover.await.unwrap());
    assert_eq!(place_of(&server, &stage.database, stage.table), Some(0), "the mover has given up");
    assert_eq!(
        stage.sql("SELECT is_frozen OR moves_to IS NOT NULL FROM {s}.fences WHERE table_id = {t}"),
        "f"
    );
    assert_eq!(stage.sql("SELECT count(*) FROM {s}.places"), "0");
    drop(lock);
    assert_eq!(rows_of(&stage.engines[0], stage.table).await.len(), 101);
}
