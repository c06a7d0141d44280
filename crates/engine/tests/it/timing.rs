//! Numbers for people, not assertions: `cargo test --release -p engine timing -- --ignored --nocapture`.

use std::sync::Arc;

use engine::env::{Clock, SystemClock};
use engine::local::{LocalEngine, LocalOptions};
use engine::memory::MemoryEngine;
use engine::{Commit, Effect, Engine, Expect, Key, KeyRange, Op, TableId};

use crate::support::*;

const ROW_COUNT: usize = 100_000;

async fn fill(engine: &dyn Engine) -> TableId {
    let table = table(engine, "t").await;
    let value = "x".repeat(200);
    for from in (0..ROW_COUNT).step_by(100) {
        let op = |n: usize| {
            let effect = Effect::Put(value.clone().into());
            Op { row: format!("row-{n:08}").into(), expect: Expect::Any, effect }
        };
        let ops = (from..from + 100).map(op).collect();
        commit(engine, Commit { table, partition: "partition".into(), ops }).await.unwrap();
    }
    table
}

async fn measure(name: &str, engine: &dyn Engine) {
    let clock = SystemClock::new();
    let table = fill(engine).await;
    println!("{name}: filled with {ROW_COUNT} rows in {:?}", clock.monotonic());
    let mut random = fastrand::Rng::with_seed(1);
    let rows: Vec<String> = (0..100_000).map(|_| format!("row-{:08}", random.usize(0..ROW_COUNT))).collect();
    for round in 0..3 {
        let started = clock.monotonic();
        for row in &rows {
            let row = engine.get(table, Key { partition: "partition", row }).await.unwrap();
            assert!(row.is_some());
        }
        let each = (clock.monotonic() - started) / rows.len() as u32;
        println!("{name}: get, round {round}: {} ns", each.as_nanos());
    }
    for _ in 0..2 {
        let started = clock.monotonic();
        let mut sink = Count(0);
        engine.scan(table, &[KeyRange::all()], GENEROUS, &mut sink).await.unwrap();
        let took = clock.monotonic() - started;
        println!("{name}: scan: {} ns a row", took.as_nanos() / sink.0 as u128);
    }
}

struct Count(usize);

impl engine::Sink for Count {
    fn row(&mut self, _: Key<'_>, _: engine::Version, _: &[u8]) -> engine::Flow {
        self.0 += 1;
        engine::Flow::Continue
    }
}

async fn measure_writers(engine: Arc<LocalEngine>) {
    let clock = SystemClock::new();
    let table = table(&*engine, "writers").await;
    for writers in [1_usize, 64] {
        let before = engine.stats();
        let started = clock.monotonic();
        let each = 4_000 / writers;
        let tasks: Vec<_> = (0..writers)
            .map(|writer| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    for n in 0..each {
                        let row = format!("{writers}-{writer}-{n}");
                        commit(&*engine, put(table, "p", &row, "some value")).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let took = clock.monotonic() - started;
        let groups = engine.stats().group_count - before.group_count;
        let rate = (writers * each) as f64 / took.as_secs_f64();
        println!("local: {writers} writers: {rate:.0} commits a second in {groups} groups");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints measurements"]
async fn timing() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    measure("memory", &MemoryEngine::new(engine::conformance::merge, clock.clone())).await;
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions::new(engine::conformance::merge, clock);
    let local = Arc::new(LocalEngine::open(directory.path(), options).unwrap());
    measure("local", &*local).await;
    measure_writers(local).await;
}
