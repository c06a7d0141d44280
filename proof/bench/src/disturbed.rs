//! Point reads under disturbance: their latency while one client scans a whole table and many insert.
//!
//! Reads are sent in the open loop at a modest rate, so that they wait for the other load and not for each other. Quiet
//! and disturbed slices alternate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadgen::Error;
use loadgen::generator::{Generator, LoadModel};
use loadgen::measure::{Measurement, Sample, median};
use loadgen::workload::{TableShape, Workload, WorkloadKind};

use crate::compare;
use crate::results::{Run, fact};
use crate::system::System;

const READS_PER_SECOND: f64 = 500.0;
const READ_CONNECTIONS: usize = 8;
const INSERT_CONNECTIONS: usize = 16;
const FILL_TIME_MAX: Duration = Duration::from_secs(120);
/// Slices are longer than other measurements: a p99 is only reliable with many answers beyond it.
const SLICE_FACTOR: u32 = 2;

pub fn run(
    system: &System,
    shape: TableShape,
    rounds: usize,
    seconds: Duration,
    run: &mut Run,
) -> Result<(), Error> {
    eprintln!("point reads beside a table scan and inserts");
    let table = "disturbed";
    compare::make_table(system, table, shape, FILL_TIME_MAX)?;
    compare::make_table(system, "disturbing", TableShape::one_partition(0), FILL_TIME_MAX)?;
    let seconds = seconds * SLICE_FACTOR;
    let (mut quiet, mut disturbed, mut inserts, mut scanned) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        quiet.push(read(system, table, shape, seconds)?.p99_us);
        let stop = Arc::new(AtomicBool::new(false));
        let sample = std::thread::scope(|scope| -> Result<Sample, Error> {
            let inserting = scope.spawn(|| {
                let shape = TableShape::one_partition(0);
                let workload =
                    Workload { kind: WorkloadKind::Insert, shape, connections: INSERT_CONNECTIONS };
                disturb(system, &workload, "disturbing", &stop)
            });
            let scanning = scope.spawn(|| {
                let workload = Workload { kind: WorkloadKind::Scan, shape, connections: 1 };
                disturb(system, &workload, table, &stop)
            });
            let sample = read(system, table, shape, seconds);
            stop.store(true, Ordering::Relaxed);
            let joined = |thread: std::thread::ScopedJoinHandle<'_, Result<f64, Error>>| {
                thread.join().map_err(|_| "a generator panicked")?
            };
            inserts.push(joined(inserting)?);
            scanned.push(joined(scanning)? * loadgen::workload::PAGE_ENTITY_COUNT as f64);
            sample
        })?;
        disturbed.push(sample.p99_us);
    }
    for (name, figures) in [
        (fact::QUIET_P99_US, quiet),
        (fact::DISTURBED_P99_US, disturbed),
        (fact::DISTURBING_INSERTS_PER_SECOND, inserts),
        (fact::DISTURBING_SCANNED_PER_SECOND, scanned),
    ] {
        run.facts.insert(name.to_owned(), median(figures));
    }
    Ok(())
}

fn read(system: &System, table: &str, shape: TableShape, seconds: Duration) -> Result<Sample, Error> {
    Measurement {
        workload: &Workload { kind: WorkloadKind::Read, shape, connections: READ_CONNECTIONS },
        endpoint: &system.endpoint,
        table,
        counter: &system.counter,
        rate: Some(READS_PER_SECOND),
        warm_up: seconds / 6,
        seconds,
        process: None,
        accepts_all: false,
        tolerates_closing: false,
        pass: None,
        stop: None,
    }
    .run()
}

/// Runs a workload until it is stopped. Returns its requests per second.
fn disturb(system: &System, workload: &Workload, table: &str, stop: &Arc<AtomicBool>) -> Result<f64, Error> {
    let mut requests = workload.requests(&system.endpoint, table, &system.counter)?;
    let mut generator = Generator::open(system.endpoint.address, workload.connections, 1)?;
    generator.set_load_model(LoadModel::Closed);
    let (mut took, mut count) = (Duration::ZERO, 0);
    while !stop.load(Ordering::Relaxed) {
        took += generator.run_for(Duration::from_millis(100), &mut *requests)?;
        let tally = generator.take();
        tally.only_accepted()?;
        count += tally.all().accepted.total();
    }
    generator.finish(&mut *requests)?;
    Ok(count as f64 / took.as_secs_f64().max(1e-9))
}
