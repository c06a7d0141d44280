//! The large run: what ten million entities in one table cost on PostgreSQL, through one front end.
//!
//! Loads them, sends the same requests to a small and a large table in turn, drops the large one, and waits for its space.

use std::time::Duration;

use loadgen::measure::probe;
use loadgen::workload::{TableShape, Workload, WorkloadKind};
use loadgen::{Error, clock, table};

use super::database::Database;
use super::results::{Contender, Figures, Keeper, ScaleOutCell, ScaleOutRun, fact};
use super::{fleet, report};
use crate::compare;
use crate::options::Options;
use crate::plan::MANY_CONNECTIONS;
use crate::system::{DataDirectory, Programs, System};

pub const SMALL_ENTITIES: u64 = 10_000;
const LOAD_TIME_MAX: Duration = Duration::from_secs(2 * 3600);
/// For so long it is waited for the space of the large table.
const SPACE_TIME_MAX: Duration = Duration::from_secs(900);
/// Back when no more than this share of the large table is left.
const SPACE_LEFT_MAX: f64 = 0.05;
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub fn run(
    options: &Options,
    programs: &Programs,
    data: &DataDirectory,
    run: &mut ScaleOutRun,
) -> Result<(), Error> {
    let database = Database::alone()?;
    run.postgres = database.version()?;
    let front_end = System::start_front_end(programs, &data.0, &database.url())?;
    let small = TableShape::one_partition(SMALL_ENTITIES);
    let large = TableShape::one_partition(options.large_entities);
    compare::make_table(&front_end, &table_of(small), small, LOAD_TIME_MAX)?;
    let before = database.bytes()?;
    eprintln!("loading {} entities", large.label());
    let start = clock::now();
    let rate = compare::fill_table(&front_end, &table_of(large), large, LOAD_TIME_MAX)?;
    let mut note = |name: &str, figure: f64| run.facts.insert(name.to_owned(), figure);
    note(fact::LOAD_ENTITIES_PER_SECOND, rate);
    note(fact::LOAD_S, clock::now().duration_since(start).as_secs_f64());
    eprintln!("settling");
    database.settle()?;
    let full = database.bytes()?;
    note(fact::DATABASE_BYTES, full);
    for kind in [WorkloadKind::Read, WorkloadKind::Page] {
        sizes(options, &front_end, &database, kind, &[small, large], run)?;
    }
    drop_table(&front_end, &database, &table_of(large), before, full, run)?;
    front_end.stop()
}

fn table_of(shape: TableShape) -> String {
    Workload { kind: WorkloadKind::Read, shape, connections: 1 }.table()
}

/// The same requests to each table, in turn within every round.
fn sizes(
    options: &Options,
    front_end: &System,
    database: &Database,
    kind: WorkloadKind,
    shapes: &[TableShape],
    run: &mut ScaleOutRun,
) -> Result<(), Error> {
    eprintln!("{} by size", kind.what());
    let mut measured = vec![Vec::new(); shapes.len()];
    for _ in 0..options.rounds {
        for (shape, measured) in shapes.iter().zip(&mut measured) {
            let workload = Workload { kind, shape: *shape, connections: MANY_CONNECTIONS };
            let table = table_of(*shape);
            probe(&workload, &front_end.endpoint, &table, &front_end.counter)?;
            measured.push(fleet::measure(&[front_end], Some(database), &workload, &table, options.seconds)?);
        }
    }
    for (shape, measured) in shapes.iter().zip(&measured) {
        let figures = Figures::median(measured);
        eprint!("{:>8}", shape.label());
        report::say(Contender::FrontEnd, figures.as_ref(), None);
        run.cells.push(ScaleOutCell {
            workload: kind.name().to_owned(),
            entities: shape.entities,
            keeper: Keeper::Alone,
            contender: Contender::FrontEnd,
            figures,
            not_measured: None,
        });
    }
    Ok(())
}

/// From the request to its answer, and from there until the file system has the space again.
fn drop_table(
    front_end: &System,
    database: &Database,
    name: &str,
    before: f64,
    full: f64,
    run: &mut ScaleOutRun,
) -> Result<(), Error> {
    eprintln!("dropping the large table");
    let start = clock::now();
    table::delete(&front_end.endpoint, name)?;
    let answered = clock::now();
    let drop_ms = answered.duration_since(start).as_secs_f64() * 1000.0;
    run.facts.insert(fact::DROP_MS.to_owned(), drop_ms);
    eprintln!("    answered after {drop_ms:.1} ms; waiting for the space");
    loop {
        let kept = (database.bytes()? - before).max(0.0);
        let waited = clock::now().duration_since(answered);
        if kept <= (full - before) * SPACE_LEFT_MAX {
            run.facts.insert(fact::SPACE_BACK_S.to_owned(), waited.as_secs_f64());
            return Ok(());
        }
        if waited > SPACE_TIME_MAX {
            run.facts.insert(fact::SPACE_KEPT_BYTES.to_owned(), kept);
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
