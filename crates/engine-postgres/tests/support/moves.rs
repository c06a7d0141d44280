//! What the tests of moving tables share: tables of a size, and ways to read them whole.

use std::sync::Arc;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::{Clock, SystemClock};
use engine::keys::{Key, KeyRange, OwnedKey};
use engine::{Budget, Commit, Effect, Engine, Expect, Family, Flow, Namespace, Op, Sink, TableId, Version};
use engine_postgres::PostgresEngine;
use testkit::Postgres;

use super::Database;

pub const SPACE: Namespace<'static> = Namespace::new(Family::FIRST, "moves");

/// Two front ends that give tables from so many rows on a relation of their own.
pub async fn two_movers(server: &Postgres, row_count_min: u64) -> (Database, Arc<[PostgresEngine; 2]>) {
    let database = Database::fresh(server);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut options = database.options(FAMILIES, clock);
    options.own_relation_row_count_min = row_count_min;
    let first = PostgresEngine::connect(options.clone()).await.unwrap();
    let second = PostgresEngine::connect(options).await.unwrap();
    (database, Arc::new([first, second]))
}

/// A table with so many rows in the partition `seed`.
pub async fn new_table(engine: &PostgresEngine, name: &str, row_count: usize) -> TableId {
    let table = engine.create_table(SPACE, name, Bytes::new()).await.unwrap();
    let rows: Vec<String> = (0..row_count).map(|row| format!("{row:06}")).collect();
    for rows in rows.chunks(100) {
        let ops = rows.iter().map(|row| op(row, Expect::Absent, put("seed"))).collect();
        engine.commit(Commit { table, partition: "seed".into(), ops }).await.unwrap();
    }
    table
}

pub fn op(row: &str, expect: Expect, effect: Effect) -> Op {
    Op { row: row.into(), expect, effect }
}

pub fn put(value: &str) -> Effect {
    Effect::Put(Bytes::copy_from_slice(value.as_bytes()))
}

#[derive(Default)]
pub struct Collect(pub Vec<(OwnedKey, Version, Vec<u8>)>);

impl Sink for Collect {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.0.push((key.into(), version, value.to_vec()));
        Flow::Continue
    }
}

/// All rows, from one view.
pub async fn rows_of(engine: &PostgresEngine, table: TableId) -> Vec<(OwnedKey, Version, Vec<u8>)> {
    let mut sink = Collect::default();
    assert_eq!(engine.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, &mut sink).await, Ok(None));
    sink.0
}

/// One page, and the range that the next one is for.
pub async fn page(
    engine: &PostgresEngine,
    table: TableId,
    range: KeyRange,
    row_count: u64,
) -> (Vec<(OwnedKey, Version, Vec<u8>)>, Option<KeyRange>) {
    let mut sink = Collect::default();
    let budget = Budget { rows_examined_max: row_count, ..Budget::UNBOUNDED };
    let next = engine.scan(table, &[range], budget, &mut sink).await.unwrap();
    (sink.0, next.map(|key| KeyRange::from_key(&key.partition, &key.row)))
}

/// Where a table is, or nothing if it is gone.
pub fn place_of(server: &Postgres, database: &Database, table: TableId) -> Option<u64> {
    let place = format!("SELECT place FROM {}.fences WHERE table_id = {}", database.schema, table.0);
    server.sql(&place).unwrap().parse().ok()
}

/// Moves until the table is elsewhere: the front ends have movers of their own, which may be quicker.
pub async fn move_now(server: &Postgres, database: &Database, engine: &PostgresEngine, table: TableId) {
    for _ in 0..100 {
        if place_of(server, database, table) != Some(0) {
            return;
        }
        engine.move_large_table().await;
    }
    panic!("the table does not move");
}
