//! The Rust client beside the raw load generator, on the same server with the same number of connections: point reads one
//! by one, and entities loaded in transactions of a hundred.
//!
//! The generator sends requests that were signed in advance and barely looks at the answers. The client signs each request,
//! parses each answer into a struct, and keeps its promises about retries, so the ratio shows what all this costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lazulite_client::{BulkMode, DateTime, Entity, TableClient, TableServiceClient};
use loadgen::measure::{median, probe};
use loadgen::workload::{TableShape, Workload, WorkloadKind, loaded_key};
use loadgen::{Error, clock};

use crate::compare;
use crate::options::Options;
use crate::plan::{EMPTY, MANY_CONNECTIONS, USUAL_ENTITIES};
use crate::results::{Run, fact};
use crate::system::{DataDirectory, Programs, System, SystemKind};

const LOAD_TIME_MAX: Duration = Duration::from_secs(600);
/// Entities in one call of `bulk`, spread over so many partitions.
const BULK_ENTITY_COUNT: usize = 20_000;
const BULK_PARTITION_COUNT: usize = 20;

/// The generator's entity, with its nine properties of six types.
#[derive(Entity)]
#[entity(rename_all = "PascalCase")]
struct Person {
    #[entity(partition_key)]
    partition: String,
    #[entity(row_key)]
    row: String,
    name: String,
    city: String,
    age: i32,
    score: f64,
    active: bool,
    visits: i64,
    since: DateTime,
    note: String,
    group: String,
}

pub fn run(options: &Options, programs: &Programs, data: &DataDirectory, run: &mut Run) -> Result<(), Error> {
    let server = System::start(SystemKind::Durable, programs, &data.0)?;
    let shape = TableShape::one_partition(USUAL_ENTITIES);
    let reads = Workload { kind: WorkloadKind::Read, shape, connections: MANY_CONNECTIONS };
    let batches = Workload { kind: WorkloadKind::Batch, shape: EMPTY, connections: MANY_CONNECTIONS };
    compare::make_table(&server, &reads.table(), shape, LOAD_TIME_MAX)?;
    compare::make_table(&server, "batches", EMPTY, LOAD_TIME_MAX)?;
    probe(&reads, &server.endpoint, &reads.table(), &server.counter)?;

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let service = TableServiceClient::from_connection_string(&connection_string(&server))?;
    let table = service.table(&reads.table())?;
    runtime.block_on(service.create_table("bulk"))?;
    let bulk = service.table("bulk")?;

    let (mut read_ratios, mut load_ratios) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        let raw = compare::measure_on(&server, &reads, &reads.table(), None, None, options.seconds)?;
        let own = runtime.block_on(read(&table, &shape, options.seconds))?;
        eprintln!("    point reads a second: generator {:.0}, client {own:.0}", raw.requests_per_second);
        read_ratios.push(own / raw.requests_per_second);
        let raw = compare::measure_on(&server, &batches, "batches", None, None, options.seconds)?;
        let own = runtime.block_on(load(&bulk, round, options.seconds))?;
        eprintln!("    entities loaded a second: generator {:.0}, client {own:.0}", raw.entities_per_second);
        load_ratios.push(own / raw.entities_per_second);
    }
    run.facts.insert(fact::CLIENT_READ_RATIO.to_owned(), median(read_ratios));
    run.facts.insert(fact::CLIENT_BULK_RATIO.to_owned(), median(load_ratios));
    server.stop()
}

fn connection_string(server: &System) -> String {
    let loadgen::endpoint::Endpoint { address, account, key, base_path, .. } = &server.endpoint;
    format!("AccountName={account};AccountKey={key};TableEndpoint=http://{address}{base_path}")
}

/// Point reads a second, by as many tasks as the generator has connections.
async fn read(table: &TableClient, shape: &TableShape, time: Duration) -> Result<f64, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let (reads, is_counted) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = Vec::new();
    for task in 0..MANY_CONNECTIONS as u64 {
        let (table, entities) = (table.clone(), shape.entities);
        let (stop, reads, is_counted) = (stop.clone(), reads.clone(), is_counted.clone());
        tasks.push(tokio::spawn(async move {
            let mut number = task * 7919;
            while !stop.load(Ordering::Relaxed) {
                number = (number * 6_364_136_223 + 1_442_695_041) % entities;
                let person: Person = table
                    .get(&TableShape::one_partition(entities).partition(number), &loaded_key(number))
                    .await?;
                debug_assert_eq!(person.age, 36);
                if is_counted.load(Ordering::Relaxed) {
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok::<(), lazulite_client::Error>(())
        }));
    }
    tokio::time::sleep(time / 3).await;
    is_counted.store(true, Ordering::Relaxed);
    let start = clock::now();
    tokio::time::sleep(time).await;
    let count = reads.load(Ordering::Relaxed);
    let took = clock::now().duration_since(start);
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    Ok(count as f64 / took.as_secs_f64())
}

/// Entities loaded a second by `bulk`, for at least this time.
async fn load(table: &TableClient, round: usize, time: Duration) -> Result<f64, Error> {
    let since = DateTime::parse("2020-01-02T03:04:05.678Z").ok_or("a date")?;
    let (mut loaded, mut took, mut call) = (0, Duration::ZERO, 0);
    while took < time {
        let people: Vec<Person> = (0..BULK_ENTITY_COUNT)
            .map(|number| Person {
                partition: format!("p{}", number % BULK_PARTITION_COUNT),
                row: format!("{round:03}{call:05}{number:08}"),
                name: "Ada Lovelace".to_owned(),
                city: "London".to_owned(),
                age: 36,
                score: 99.5,
                active: true,
                visits: 1_234_567_890_123,
                since,
                note: "the quick brown fox".to_owned(),
                group: format!("{:02}", number % 100),
            })
            .collect();
        let start = clock::now();
        let report = table.bulk(&people, BulkMode::Insert).parallel(MANY_CONNECTIONS).send().await;
        took += clock::now().duration_since(start);
        loaded += report.into_result()?;
        call += 1;
    }
    Ok(loaded as f64 / took.as_secs_f64())
}
