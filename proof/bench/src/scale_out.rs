//! Front ends on PostgreSQL: beside `pgbench`, the embedded engine and Azurite, with and without a synchronous standby.
//!
//! Every contender gets the same load in turn within each round, and medians count, as in the usual run. The part with the
//! standby comes after the other one, so that agents and standbys do not disturb it; `pgbench` is measured in both.
//! Promises: a failure of Lazulite or PostgreSQL ends the run; what is not installed is named in the notes.

pub mod database;
mod document;
mod fleet;
mod large;
pub mod pgbench;
mod report;
pub mod results;
mod verdicts;

use std::time::Duration;

use loadgen::measure::probe;
use loadgen::workload::{TableShape, Workload, WorkloadKind};
use loadgen::{Error, process};

use crate::compare;
use crate::machine::{self, Machine};
use crate::options::{Options, PlanName};
use crate::plan::{EMPTY, MANY_CONNECTIONS, QUICK_ENTITIES, USUAL};
use crate::results::write_file;
use crate::system::{DataDirectory, Programs, System, SystemKind};

use self::database::Database;
use self::pgbench::Pgbench;
use self::results::{Contender, Figures, Keeper, ScaleOutCell, ScaleOutResults, ScaleOutRun};

/// Azurite needs it for the usual table.
const FILL_TIME_MAX: Duration = Duration::from_secs(240);

pub fn run(options: &Options) -> Result<(), Error> {
    let run = measure(options)?;
    let is_large = options.plan == PlanName::ScaleOutLarge;
    let results = match &options.write {
        Some(directory) => document::write(run, is_large, directory)?,
        None if is_large => ScaleOutResults { large: Some(run), ..ScaleOutResults::default() },
        None => ScaleOutResults { compared: Some(run), ..ScaleOutResults::default() },
    };
    let shown = if is_large { &results.large } else { &results.compared };
    let mut text = shown.as_ref().map(report::tables).unwrap_or_default();
    text.push_str(&verdicts::table(&results));
    println!("{text}");
    if let Some(path) = &options.out {
        write_file(path, &text)?;
    }
    Ok(())
}

fn measure(options: &Options) -> Result<ScaleOutRun, Error> {
    let data = DataDirectory::create(options.data.as_deref())?;
    let programs =
        Programs { server: options.server.clone(), azurite: options.azurite.as_ref().ok().cloned() };
    let with_azurite = options.plan == PlanName::ScaleOut;
    let mut run = ScaleOutRun {
        command: options.command.clone(),
        commit: machine::commit(),
        // Where testkit keeps PostgreSQL's data.
        machine: Machine::describe(
            &std::env::temp_dir(),
            programs.azurite.as_deref().filter(|_| with_azurite),
        ),
        postgres: String::new(),
        rounds: options.rounds,
        seconds: options.seconds.as_secs_f64(),
        load_average_before: process::load_average(),
        cells: Vec::new(),
        facts: Default::default(),
        notes: Vec::new(),
    };
    if run.machine.file_system == "tmpfs" {
        let place = std::env::temp_dir();
        return Err(format!(
            "{} is in memory, where a sync costs nothing and proves nothing: set TMPDIR to a directory on a disk",
            place.display()
        )
        .into());
    }
    if options.plan == PlanName::ScaleOutLarge {
        large::run(options, &programs, &data, &mut run)?;
        return Ok(run);
    }
    compare_alone(options, &programs, &data, &mut run)?;
    compare_with_standby(options, &programs, &data, &mut run)?;
    Ok(run)
}

/// One PostgreSQL, and the systems that do without.
fn compare_alone(
    options: &Options,
    programs: &Programs,
    data: &DataDirectory,
    run: &mut ScaleOutRun,
) -> Result<(), Error> {
    eprintln!("==> one PostgreSQL");
    let database = Database::alone()?;
    run.postgres = database.version()?;
    let front_ends = front_ends(programs, data, &[&database.url(), &database.url()])?;
    let embedded = System::start(SystemKind::Durable, programs, &data.0)?;
    let azurite = azurite(options, programs, data, run);
    let mut part = Part::new(options, Keeper::Alone, &database);
    part.prepare(&front_ends[0], data)?;
    part.load(&embedded)?;
    part.enter(Contender::FrontEnd, vec![&front_ends[0]]);
    part.enter(Contender::TwoFrontEnds, front_ends.iter().collect());
    part.enter(Contender::Embedded, vec![&embedded]);
    if let Some(azurite) = &azurite {
        match part.load(azurite) {
            Ok(()) => part.enter(Contender::Azurite, vec![azurite]),
            Err(error) => not_measured("AZURITE", &error.to_string(), run),
        }
    }
    part.run(run)?;
    drop(part);
    for system in front_ends.into_iter().chain([embedded]) {
        system.stop()?;
    }
    Ok(())
}

/// A leader with a synchronous standby. Reads wait for a commit there, unless the leader's key in etcd is asked.
fn compare_with_standby(
    options: &Options,
    programs: &Programs,
    data: &DataDirectory,
    run: &mut ScaleOutRun,
) -> Result<(), Error> {
    eprintln!("==> PostgreSQL with a synchronous standby");
    let database = match Database::with_standby() {
        Ok(database) => database,
        Err(error) => {
            not_measured("PostgreSQL with a synchronous standby", &error.to_string(), run);
            return Ok(());
        }
    };
    let plain = front_ends(programs, data, &[&database.url()])?;
    let url = database.url_with_lease().unwrap_or_default();
    let with_lease = match front_ends(programs, data, &[&url, &url]) {
        Ok(with_lease) => with_lease,
        Err(error) => {
            not_measured("A front end that asks etcd", &error.to_string(), run);
            Vec::new()
        }
    };
    let mut all: Vec<System> = plain.into_iter().chain(with_lease).collect();
    share_counter(&mut all);
    let mut part = Part::new(options, Keeper::WithStandby, &database);
    part.prepare(&all[0], data)?;
    part.enter(Contender::FrontEnd, vec![&all[0]]);
    if let [_, first, second] = &all[..] {
        part.enter(Contender::FrontEndWithLease, vec![first]);
        part.enter(Contender::TwoFrontEnds, vec![first, second]);
    }
    part.run(run)?;
    drop(part);
    all.into_iter().try_for_each(System::stop)
}

fn azurite(
    options: &Options,
    programs: &Programs,
    data: &DataDirectory,
    run: &mut ScaleOutRun,
) -> Option<System> {
    let started = match &options.azurite {
        Ok(_) => System::start(SystemKind::Azurite, programs, &data.0).map_err(|error| error.to_string()),
        Err(why) => Err(why.clone()),
    };
    started.map_err(|why| not_measured("Azurite", &why, run)).ok()
}

fn not_measured(what: &str, why: &str, run: &mut ScaleOutRun) {
    let why =
        why.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join(" ");
    eprintln!("\n*** NOT MEASURED: {what}: {why} ***\n");
    run.notes.push(format!("{what} was not measured: {why}."));
}

fn front_ends(programs: &Programs, data: &DataDirectory, urls: &[&str]) -> Result<Vec<System>, Error> {
    let started = urls.iter().map(|url| System::start_front_end(programs, &data.0, url));
    let mut all: Vec<System> = started.collect::<Result<_, Error>>()?;
    share_counter(&mut all);
    Ok(all)
}

/// Those on one database insert into one table, so no key may come twice.
fn share_counter(all: &mut [System]) {
    if let [first, others @ ..] = all {
        others.iter_mut().for_each(|other| other.counter = first.counter.clone());
    }
}

/// The contenders over one database.
struct Part<'a> {
    options: &'a Options,
    keeper: Keeper,
    database: &'a Database,
    shape: TableShape,
    pgbench: Option<Pgbench>,
    contenders: Vec<(Contender, Vec<&'a System>)>,
}

impl<'a> Part<'a> {
    fn new(options: &'a Options, keeper: Keeper, database: &'a Database) -> Part<'a> {
        let shape = if options.quick { TableShape::one_partition(QUICK_ENTITIES) } else { USUAL };
        Part { options, keeper, database, shape, pgbench: None, contenders: Vec::new() }
    }

    /// In this order within every round: those that only read come first, as in the usual run.
    fn workloads(&self) -> [Workload; 4] {
        [
            (WorkloadKind::Read, self.shape),
            (WorkloadKind::Page, self.shape),
            (WorkloadKind::Insert, EMPTY),
            (WorkloadKind::Batch, EMPTY),
        ]
        .map(|(kind, shape)| Workload { kind, shape, connections: MANY_CONNECTIONS })
    }

    /// Fills the tables of the front ends, and then that of `pgbench` with bodies of the same size.
    fn prepare(&mut self, front_end: &System, data: &DataDirectory) -> Result<(), Error> {
        self.load(front_end)?;
        let sizes =
            "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY octet_length(body)) FROM lazulite.rows";
        let body_bytes = self.database.sql(sizes)?.parse()?;
        let scripts = data.0.join("pgbench");
        self.pgbench = Some(Pgbench::prepare(self.database, &scripts, self.shape.entities, body_bytes)?);
        self.database.settle()
    }

    fn load(&self, system: &System) -> Result<(), Error> {
        let mut made = Vec::new();
        for workload in self.workloads() {
            if !made.contains(&workload.table()) {
                compare::make_table(system, &workload.table(), workload.shape, FILL_TIME_MAX)?;
                made.push(workload.table());
            }
        }
        Ok(())
    }

    fn enter(&mut self, contender: Contender, systems: Vec<&'a System>) {
        self.contenders.push((contender, systems));
    }

    fn run(&self, run: &mut ScaleOutRun) -> Result<(), Error> {
        for workload in self.workloads() {
            eprintln!("{}, {} connections", workload.kind.what(), workload.connections);
            // Or one would come by itself, while somebody is measured.
            self.database.sql("CHECKPOINT")?;
            self.compare(&workload, run)?;
        }
        Ok(())
    }

    fn compare(&self, workload: &Workload, run: &mut ScaleOutRun) -> Result<(), Error> {
        let table = workload.table();
        for system in self.contenders.iter().flat_map(|(_, systems)| systems) {
            probe(workload, &system.endpoint, &table, &system.counter)?;
        }
        let mut plain = Vec::new();
        let mut measured: Vec<Result<Vec<Figures>, String>> =
            self.contenders.iter().map(|_| Ok(Vec::new())).collect();
        for _ in 0..self.options.rounds {
            if let Some(pgbench) = &self.pgbench {
                let figures = pgbench.measure(
                    self.database,
                    workload.kind,
                    workload.connections,
                    self.options.seconds,
                )?;
                plain.extend(figures);
            }
            for ((contender, systems), measured) in self.contenders.iter().zip(&mut measured) {
                let Ok(so_far) = measured else { continue };
                let database = (keeper(*contender, self.keeper) == self.keeper).then_some(self.database);
                match fleet::measure(systems, database, workload, &table, self.options.seconds) {
                    Ok(figures) => so_far.push(figures),
                    // Azurite may fail; Lazulite may not.
                    Err(error) if *contender == Contender::Azurite => *measured = Err(error.to_string()),
                    Err(error) => {
                        return Err(format!("{}, {}: {error}", workload.kind.what(), contender.what()).into());
                    }
                }
            }
        }
        let pgbench = (Contender::Pgbench, Ok(plain));
        let others = self.contenders.iter().map(|(contender, _)| *contender).zip(measured);
        for (contender, measured) in [pgbench].into_iter().chain(others) {
            let (figures, not_measured) = match measured {
                Ok(all) => (Figures::median(&all), None),
                Err(why) => (None, Some(why)),
            };
            if figures.is_none() && not_measured.is_none() {
                continue;
            }
            report::say(contender, figures.as_ref(), not_measured.as_deref());
            run.cells.push(ScaleOutCell {
                workload: workload.kind.name().to_owned(),
                entities: workload.shape.entities,
                keeper: keeper(contender, self.keeper),
                contender,
                figures,
                not_measured,
            });
        }
        Ok(())
    }
}

fn keeper(contender: Contender, of_part: Keeper) -> Keeper {
    match contender {
        Contender::Embedded => Keeper::Embedded,
        Contender::Azurite => Keeper::Azurite,
        _ => of_part,
    }
}
