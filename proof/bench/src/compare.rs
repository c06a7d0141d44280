//! The comparison: fills the tables and measures each workload on every system.
//!
//! Systems take turns within every round, so that other load on the machine affects all of them alike. If another
//! system fails or takes too long, that cell is recorded as not measured; a failure of Lazulite ends the run.
//! Leaves to others: starting the systems (`system.rs`) and choosing the workloads (`plan.rs`).

use std::collections::HashMap;
use std::time::Duration;

use loadgen::endpoint::MeasuredService;
use loadgen::measure::{Measurement, Pass, Sample, probe};
use loadgen::table::Filled;
use loadgen::workload::{TableShape, Workload};
use loadgen::{Error, queue, table};

use crate::options::Options;
use crate::plan;
use crate::results::{Cell, Run};
use crate::rivals::{Rival, RivalCell, Rivalry};
use crate::system::{System, SystemKind};

/// Generous, because Azurite gets slower with every row.
const FILL_TIME_MAX: Duration = Duration::from_secs(240);
/// Time between two progress reports while a table is filled.
const PROGRESS_STEP: Duration = Duration::from_secs(10);

pub struct Comparison<'a> {
    options: &'a Options,
    systems: &'a [System],
    rivals: Vec<Box<dyn Rival>>,
    /// For each system and table name: `Ok` if the table is filled, otherwise why it is not.
    tables: HashMap<(SystemKind, String), Result<(), String>>,
}

impl<'a> Comparison<'a> {
    pub fn new(options: &'a Options, systems: &'a [System]) -> Comparison<'a> {
        Comparison { options, systems, rivals: Vec::new(), tables: HashMap::new() }
    }

    /// Measures these too, where they have something like the workload.
    pub fn with_rivals(self, rivals: Vec<Box<dyn Rival>>) -> Comparison<'a> {
        Comparison { rivals, ..self }
    }

    /// Registers a table that is already filled.
    pub fn is_filled(&mut self, kind: SystemKind, table: &str) {
        self.tables.insert((kind, format!("{:?} {table}", MeasuredService::Table)), Ok(()));
    }

    pub fn run(&mut self, workloads: &[Workload], run: &mut Run) -> Result<(), Error> {
        for (index, workload) in workloads.iter().enumerate() {
            eprintln!(
                "[{} of {}] {}, {} entities or messages, {} connections",
                index + 1,
                workloads.len(),
                workload.kind.what(),
                workload.shape.label(),
                workload.connections
            );
            let (cells, rivals) = self.measure(workload)?;
            run.cells.extend(cells);
            run.rivals.extend(rivals);
            if self
                .systems
                .iter()
                .any(|system| plan::connections(workload, system.kind) != workload.connections)
            {
                run.notes.push(plan::AZURITE_TAKES.to_owned());
            }
        }
        Ok(())
    }

    fn measure(&mut self, workload: &Workload) -> Result<(Vec<Cell>, Vec<RivalCell>), Error> {
        let mut runners = Vec::new();
        for system in self.systems {
            if system.kind == SystemKind::Hello && !plan::has_ceiling(workload.kind) {
                continue;
            }
            let ready = self.prepare(workload, system);
            runners.push(Runner { system, ready, samples: Vec::new(), half_load: Vec::new() });
        }
        let mut rivalry = Rivalry::new(&mut self.rivals, workload, self.options);
        for _ in 0..self.options.rounds {
            for runner in &mut runners {
                runner.measure(workload, self.options.seconds);
                if let (SystemKind::Durable, Some(own)) = (runner.system.kind, runner.samples.last()) {
                    rivalry.measure(own.requests_per_second, self.options.seconds);
                }
            }
        }
        let mut cells = Vec::new();
        for runner in runners {
            let not_measured = runner.ready.err();
            if let (Some(why), SystemKind::Durable | SystemKind::InMemory) =
                (&not_measured, runner.system.kind)
            {
                return Err(
                    format!("{} on {}: {why}", workload.kind.name(), runner.system.kind.what()).into()
                );
            }
            let sample = if not_measured.is_none() { Sample::median(&runner.samples) } else { None };
            if let Some(sample) = &sample {
                eprintln!(
                    "    {:20} {:>10.0} requests/s, p99 {:.0} us",
                    runner.system.kind.what(),
                    sample.requests_per_second,
                    sample.p99_us
                );
            }
            if let Some(why) = &not_measured {
                eprintln!("    {:20} not measured: {why}", runner.system.kind.what());
            }
            cells.push(Cell {
                workload: workload.kind.name().to_owned(),
                entities: workload.shape.entities,
                partitions: workload.shape.partitions,
                connections: workload.connections,
                system: runner.system.kind,
                sample,
                half_load: Sample::median(&runner.half_load),
                not_measured,
            });
        }
        Ok((cells, rivalry.finish()))
    }

    /// Fills the table and probes it for one right answer. An error says why it cannot be measured.
    fn prepare(&mut self, workload: &Workload, system: &System) -> Result<Option<Pass>, String> {
        if system.kind == SystemKind::Hello {
            return Ok(None);
        }
        let name = workload.table();
        // A table and a queue of one name are two things.
        let place = format!("{:?} {name}", workload.kind.service());
        let made = self.tables.entry((system.kind, place)).or_insert_with(|| {
            let made = match workload.kind.service() {
                MeasuredService::Table => make_table(system, &name, workload.shape, FILL_TIME_MAX),
                MeasuredService::Queue => make_queue(system, workload, &name, FILL_TIME_MAX),
            };
            made.map_err(|error| one_line(&error.to_string()))
        });
        made.clone()?;
        probe(workload, system.endpoint_of(workload.kind), &name, &system.counter)
            .map_err(|error| one_line(&error.to_string()))
    }
}

/// One system in one workload.
struct Runner<'a> {
    system: &'a System,
    /// The probe's result; after the first failure, why this system is left out.
    ready: Result<Option<Pass>, String>,
    samples: Vec<Sample>,
    half_load: Vec<Sample>,
}

impl Runner<'_> {
    fn measure(&mut self, workload: &Workload, seconds: Duration) {
        let Ok(pass) = self.ready else { return };
        let table = workload.table();
        let connections = plan::connections(workload, self.system.kind);
        let workload = &Workload { connections, ..*workload };
        let sample = match measure_on(self.system, workload, &table, pass, None, seconds) {
            Ok(sample) => sample,
            Err(error) => {
                self.ready = Err(one_line(&error.to_string()));
                return;
            }
        };
        self.samples.push(sample);
        if plan::has_half_load(workload) {
            let rate = sample.requests_per_second / 2.0;
            match measure_on(self.system, workload, &table, pass, Some(rate), seconds) {
                Ok(sample) => self.half_load.push(sample),
                Err(error) => eprintln!("    {}: no latency at half load: {error}", self.system.kind.what()),
            }
        }
    }
}

/// One measurement after a warm-up of a third of its length: in the closed loop, or at the given rate.
pub fn measure_on(
    system: &System,
    workload: &Workload,
    table: &str,
    pass: Option<Pass>,
    rate: Option<f64>,
    seconds: Duration,
) -> Result<Sample, Error> {
    Measurement {
        workload,
        endpoint: system.endpoint_of(workload.kind),
        table,
        counter: &system.counter,
        rate,
        warm_up: seconds / 3,
        seconds,
        process: Some(system.process_of(workload.kind)),
        accepts_all: system.kind == SystemKind::Hello,
        tolerates_closing: system.kind == SystemKind::Azurite,
        pass,
        stop: None,
    }
    .run()
}

/// Creates a queue and puts as many messages into it as the workload wants.
pub fn make_queue(system: &System, workload: &Workload, name: &str, time_max: Duration) -> Result<(), Error> {
    let endpoint = system.endpoint_of(workload.kind);
    queue::create(endpoint, name)?;
    let count = workload.shape.entities;
    if count > 0 {
        let filled = queue::fill(endpoint, name, count, time_max, None, |_| {})?;
        let rate = filled.entities_per_second();
        eprintln!("    {:20} loaded with {count} messages, {rate:.0}/s", system.kind.what());
    }
    Ok(())
}

/// Creates a table and fills it.
pub fn make_table(system: &System, name: &str, shape: TableShape, time_max: Duration) -> Result<(), Error> {
    fill_table(system, name, shape, time_max).map(|_| ())
}

/// Creates a table and fills it, printing progress if it takes long. Returns the entities loaded per second.
pub fn fill_table(system: &System, name: &str, shape: TableShape, time_max: Duration) -> Result<f64, Error> {
    fill_watched(system, name, shape, time_max, |_| {})
}

/// The same. `watch` sees how much is loaded, about once a second and at the end.
pub fn fill_watched(
    system: &System,
    name: &str,
    shape: TableShape,
    time_max: Duration,
    mut watch: impl FnMut(&Filled),
) -> Result<f64, Error> {
    table::create(&system.endpoint, name)?;
    if shape.entities == 0 {
        return Ok(0.0);
    }
    let mut said = Duration::ZERO;
    let filled = table::fill(&system.endpoint, name, shape, time_max, None, |filled| {
        watch(filled);
        if filled.took - said > PROGRESS_STEP {
            said = filled.took;
            let percent = filled.entities * 100 / shape.entities;
            let rate = filled.entities_per_second();
            eprintln!("    {percent:3} %  {} entities loaded, {rate:.0}/s", filled.entities);
        }
    })?;
    watch(&filled);
    let rate = filled.entities_per_second();
    eprintln!("    {:20} loaded with {} entities, {rate:.0}/s", system.kind.what(), shape.label());
    Ok(rate)
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join(" ")
}
