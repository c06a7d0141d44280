//! What the engine does in a second over a given database, and how long each thing takes.
//!
//! `cargo run --release -p lazulite-engine-postgres --example figures -- postgres://… [clients] [seconds] [rows]`
//!
//! `cargo run --release -p lazulite-engine-postgres --example figures -- cluster [clients] [seconds] [rows]`
//!
//! Prints one line for each kind of work: how often it was done in a second, and its median and 99th percentile. It
//! works in a schema of its own, `lazulite_figures`, which it leaves behind. Over a server with a synchronous
//! standby, point reads and pages wait for barriers (`leadership.rs`); compare with one that has none. `cluster` starts
//! three nodes under Patroni and measures reads there, with and without etcd's key.

#![allow(clippy::unwrap_used, reason = "a program for figures that cannot go on stops where it stands")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::{Clock, SystemClock};
use engine::keys::{Key, KeyRange};
use engine::{
    Budget, Commit, Effect, Engine, Expect, Family, Flow, Namespace, Op, Share, Sink, TableId, Version,
};
use engine_postgres::{PostgresEngine, PostgresOptions};

const VALUE_BYTES: usize = 1_000;
const BATCH_ROW_COUNT: u64 = 100;
const PAGE_ROW_COUNT: u64 = 1_000;

#[derive(Clone)]
struct Bench {
    engine: Arc<PostgresEngine>,
    clock: Arc<dyn Clock>,
    table: TableId,
    client_count: u64,
    time: Duration,
    row_count: u64,
}

#[derive(Clone, Copy)]
enum Work {
    Read,
    Insert,
    Replace,
    Merge,
    Batch,
    Page,
}

struct Ignore;

impl Sink for Ignore {
    fn row(&mut self, _: Key<'_>, _: Version, _: &[u8]) -> Flow {
        Flow::Continue
    }
}

fn value() -> Bytes {
    Bytes::from(vec![b'x'; VALUE_BYTES])
}

fn name(number: u64) -> String {
    format!("{number:012}")
}

fn put(row: String, expect: Expect) -> Op {
    Op { row: row.into(), expect, effect: Effect::Put(value()) }
}

impl Bench {
    /// `client` is a name that no other client has had.
    async fn once(&self, work: Work, client: &str, count: u64) {
        let known = fastrand::u64(0..self.row_count);
        let fresh = format!("{client}.{count}");
        let commit = |op: Op| Commit::one(self.table, "p", op);
        match work {
            Work::Read => {
                let row = self.engine.get(self.table, Key { partition: "p", row: &name(known) }).await;
                assert!(row.unwrap().is_some());
            }
            Work::Insert => {
                self.engine.commit(commit(put(format!("i{fresh}"), Expect::Absent))).await.unwrap();
            }
            Work::Replace => {
                self.engine.commit(commit(put(name(known), Expect::Any))).await.unwrap();
            }
            Work::Merge => {
                let effect = Effect::Merge("+".into());
                let op = Op { row: format!("m{client}").into(), expect: Expect::Any, effect };
                self.engine.commit(commit(op)).await.unwrap();
            }
            Work::Batch => {
                let ops = (0..BATCH_ROW_COUNT).map(|n| put(format!("{count}.{n}"), Expect::Absent)).collect();
                let partition = format!("b{client}").into();
                self.engine.commit(Commit { table: self.table, partition, ops }).await.unwrap();
            }
            Work::Page => {
                let range = KeyRange::from_key("p", &name(known.saturating_sub(PAGE_ROW_COUNT)));
                let budget = Budget {
                    rows_examined_max: PAGE_ROW_COUNT,
                    time_max: Duration::from_secs(5),
                    share: Share::COMMON,
                };
                self.engine.scan(self.table, &[range], budget, &mut Ignore).await.unwrap();
            }
        }
    }

    async fn measure(&self, what: &str, work: Work, client_count: u64) {
        let started = self.clock.monotonic();
        let clients: Vec<_> = (0..client_count)
            .map(|client| {
                let bench = self.clone();
                tokio::spawn(async move {
                    let client = format!("{}.{client}", started.as_nanos());
                    let mut times = Vec::new();
                    let mut now = bench.clock.monotonic();
                    while now - started < bench.time {
                        bench.once(work, &client, times.len() as u64).await;
                        let done = bench.clock.monotonic();
                        times.push(done - now);
                        now = done;
                    }
                    times
                })
            })
            .collect();
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.await.unwrap());
        }
        let seconds = (self.clock.monotonic() - started).as_secs_f64();
        times.sort_unstable();
        let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "{what:28} {client_count:4} clients {:10.0} /s   median {:8.3} ms   99 % {:8.3} ms",
            times.len() as f64 / seconds,
            at(0.5),
            at(0.99)
        );
    }

    async fn fill(&self) {
        let numbers: Vec<u64> = (0..self.row_count).collect();
        for chunk in numbers.chunks(BATCH_ROW_COUNT as usize) {
            let ops = chunk.iter().map(|number| put(name(*number), Expect::Any)).collect();
            self.engine.commit(Commit { table: self.table, partition: "p".into(), ops }).await.unwrap();
        }
    }
}

impl Bench {
    /// Over a database, in a table of its own with that many rows.
    async fn start(url: &str, (client_count, seconds, row_count): (u64, u64, u64)) -> Bench {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let mut options = PostgresOptions::new(url, FAMILIES, clock.clone());
        options.schema = "lazulite_figures".to_owned();
        let engine = Arc::new(PostgresEngine::connect(options).await.unwrap());
        let table_name = format!("t{}", clock.now_ticks());
        let table = engine.create_table(Namespace::new(Family::FIRST, "figures"), &table_name, Bytes::new());
        let (table, time) = (table.await.unwrap(), Duration::from_secs(seconds));
        let bench = Bench { engine, clock, table, client_count, time, row_count };
        let filling = bench.clock.monotonic();
        bench.fill().await;
        println!("{row_count} rows of {VALUE_BYTES} bytes filled in {:?}", bench.clock.monotonic() - filling);
        bench
    }

    async fn measure_all(&self, kinds: &[(&str, Work)]) {
        for (what, work) in kinds {
            self.measure(what, *work, 1).await;
            self.measure(what, *work, self.client_count).await;
        }
    }
}

#[cfg(target_os = "linux")]
async fn measure_cluster(numbers: (u64, u64, u64)) {
    use testkit::cluster::{Cluster, Place};
    let cluster = Cluster::start(Place::Loopback).unwrap();
    let with_key = format!("{}?etcd=http://{}{}", cluster.url(), cluster.etcd_addr(), cluster.keys_path());
    let barriers = Bench::start(&cluster.url(), numbers).await;
    let key = Bench::start(&with_key, numbers).await;
    for _ in 0..2 {
        barriers.measure_all(&[("point read, barriers", Work::Read), ("page, barriers", Work::Page)]).await;
        key.measure_all(&[("point read, etcd's key", Work::Read), ("page, etcd's key", Work::Page)]).await;
    }
}

#[cfg(not(target_os = "linux"))]
async fn measure_cluster(_: (u64, u64, u64)) {
    println!("a cluster needs Linux");
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(url) = arguments.next() else {
        println!("give the URL of a database, or `cluster`, and perhaps: clients, seconds, rows");
        return;
    };
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let numbers = (number(64), number(5), number(10_000).max(1));
    if url == "cluster" {
        return measure_cluster(numbers).await;
    }
    let bench = Bench::start(&url, numbers).await;
    let kinds = [
        ("point read", Work::Read),
        ("insert", Work::Insert),
        ("replace", Work::Replace),
        ("merge", Work::Merge),
        ("batch of 100 inserts", Work::Batch),
        ("page of 1000", Work::Page),
    ];
    bench.measure_all(&kinds).await;
}
