//! The large run: what ten or a hundred million entities cost, measured on Lazulite alone.
//!
//! Loads them, restarts the server, sends the same requests to small tables and the large one in turn, inserts at random for
//! a minute, drops the large table, and records memory throughout. Promises: begins only if the disk has room.

mod dropped;
mod load;
pub mod report;
pub mod targets;

use std::time::Duration;

use loadgen::Error;
use loadgen::measure::{Sample, probe};
use loadgen::workload::{TableShape, Workload, WorkloadKind};

use crate::compare::{self, Comparison};
use crate::options::{Options, PlanName};
use crate::plan::{self, MANY_CONNECTIONS, SMALL_ENTITIES, USUAL_ENTITIES};
use crate::results::{Cell, Run, fact};
use crate::system::{DataDirectory, Programs, System, SystemKind};

const LOAD_TIME_MAX: Duration = Duration::from_secs(3 * 3600);
/// What a hundred million are compared with.
pub const TEN_THOUSAND: u64 = 10_000;
const SUSTAINED: Duration = Duration::from_secs(60);

pub fn run(options: &Options, programs: &Programs, data: &DataDirectory, run: &mut Run) -> Result<(), Error> {
    let large = TableShape::one_partition(options.large_entities);
    load::check_space(large, &data.0)?;
    let server = System::start(SystemKind::Durable, programs, &data.0)?;
    let table = Workload { kind: WorkloadKind::Read, shape: large, connections: 1 }.table();
    load::run(&server, &table, large, LOAD_TIME_MAX, run)?;
    server.stop()?;
    run.facts.insert(fact::DISK_BYTES.to_owned(), data.bytes() as f64);

    let server = System::start(SystemKind::Durable, programs, &data.0)?;
    run.facts.insert(fact::RESTART_MS.to_owned(), server.first_answer.as_secs_f64() * 1000.0);
    if let Some(bytes) = server.idle_bytes {
        run.facts.insert(fact::LOADED_IDLE_BYTES.to_owned(), bytes as f64);
    }
    let server = [server];
    let every = plan::workloads(options);
    if !every.is_empty() {
        // First, while the table has exactly the entities that were loaded.
        let mut comparison = Comparison::new(options, &server);
        comparison.is_filled(SystemKind::Durable, &table);
        comparison.run(&every, run)?;
    }
    sizes(options, &server[0], &table, large, run)?;

    if !options.is_partial() || options.only.contains(&WorkloadKind::Insert) {
        sustained(&server[0], &table, large, run)?;
    }
    if let Some(bytes) = server[0].memory_bytes("VmHWM:") {
        run.facts.insert(fact::LOADED_PEAK_BYTES.to_owned(), bytes as f64);
    }
    if !options.is_partial() {
        dropped::run(&server[0], &table, data, run)?;
    }
    run.processes.push(server[0].cost());
    Ok(())
}

/// A minute of random inserts: their rate and the longest wait. Then a minute at half that rate, in the open loop.
fn sustained(server: &System, table: &str, large: TableShape, run: &mut Run) -> Result<(), Error> {
    eprintln!("a minute of random inserts among {} entities", large.label());
    let inserts = Workload { kind: WorkloadKind::Insert, shape: large, connections: MANY_CONNECTIONS };
    let sample = compare::measure_on(server, &inserts, table, None, None, SUSTAINED)?;
    for (name, figure) in [
        (fact::SUSTAINED_PER_SECOND, sample.requests_per_second),
        (fact::SUSTAINED_LONGEST_US, sample.longest_us),
        (fact::SUSTAINED_GAP_US, sample.gap_longest_us),
    ] {
        run.facts.insert(name.to_owned(), figure);
    }
    let rate = sample.requests_per_second / 2.0;
    eprintln!("a minute of random inserts at {rate:.0} per second");
    let sample = compare::measure_on(server, &inserts, table, None, Some(rate), SUSTAINED)?;
    for (name, figure) in [
        (fact::HALF_LOAD_PER_SECOND, rate),
        (fact::HALF_LOAD_P99_US, sample.p99_us),
        (fact::HALF_LOAD_P999_US, sample.p999_us),
        (fact::HALF_LOAD_LONGEST_US, sample.longest_us),
    ] {
        run.facts.insert(name.to_owned(), figure);
    }
    Ok(())
}

/// Sends the same requests to tables of different sizes, in turn within every round.
fn sizes(
    options: &Options,
    server: &System,
    large_table: &str,
    large: TableShape,
    run: &mut Run,
) -> Result<(), Error> {
    let small = match options.plan {
        PlanName::Huge => &[TEN_THOUSAND][..],
        _ => &[SMALL_ENTITIES, USUAL_ENTITIES],
    };
    let mut shapes: Vec<TableShape> = small.iter().copied().map(TableShape::one_partition).collect();
    shapes.push(large);
    for (kind, connections) in [
        (WorkloadKind::Read, MANY_CONNECTIONS),
        (WorkloadKind::Page, 1),
        (WorkloadKind::Insert, MANY_CONNECTIONS),
    ] {
        if options.is_partial() && !options.only.contains(&kind) {
            continue;
        }
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); shapes.len()];
        for round in 0..options.rounds {
            eprintln!("{} by size: round {} of {}", kind.what(), round + 1, options.rounds);
            for (shape, samples) in shapes.iter().zip(&mut samples) {
                let workload = Workload { kind, shape: *shape, connections };
                let table = if *shape == large {
                    large_table.to_owned()
                } else {
                    // Inserts would make a small table grow, so each round has its own.
                    let table = format!("sizes{}{}round{round}", kind.name(), shape.entities);
                    compare::make_table(server, &table, *shape, LOAD_TIME_MAX)?;
                    table
                };
                probe(&workload, &server.endpoint, &table, &server.counter)?;
                samples.push(compare::measure_on(server, &workload, &table, None, None, options.seconds)?);
            }
        }
        for (shape, samples) in shapes.iter().zip(&samples) {
            run.cells.push(Cell {
                workload: kind.name().to_owned(),
                entities: shape.entities,
                partitions: shape.partitions,
                connections,
                system: SystemKind::Durable,
                sample: Sample::median(samples),
                half_load: None,
                not_measured: None,
            });
        }
    }
    Ok(())
}
