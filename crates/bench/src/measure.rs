//! The run: start the systems, fill their tables, measure each workload in turn, collect the report.
//!
//! Systems take turns within every round, so that whatever else the machine does is shared fairly among them.

use std::collections::HashSet;
use std::time::Duration;

use bench::Error;
use bench::load::Load;
use bench::request::Signer;
use bench::system::{self, DataDirectory, Kind, System};
use bench::workload::{self, Workload};

use crate::Options;
use crate::report::{Memory, Report, Row};

const FILL_CONNECTIONS: usize = 16;
const FILL_TIMEOUT: Duration = Duration::from_secs(14 * 60);

/// One measurement of one workload on one system.
#[derive(Clone, Copy)]
pub struct Sample {
    pub requests_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub server_cpu_us: Option<f64>,
    /// Share of one core that the generator used.
    pub generator_busy: Option<f64>,
}

pub fn run(options: &Options) -> Result<String, Error> {
    let workloads = select(options)?;
    let load_average = system::load_average();
    let data = DataDirectory::create(options.data.as_deref())?;
    let mut systems = Vec::new();
    for kind in Kind::ALL {
        systems.push(System::start(kind, &options.server, &data.0)?);
    }
    // How many entities each system was given by the insert workloads; the tables differ, the numbers never repeat.
    let mut counters = vec![0u64; systems.len()];
    let mut filled = HashSet::new();
    let mut rows = Vec::new();
    for workload in &workloads {
        let connections = match options.connections {
            Some(count) if workload.connections == 64 => count,
            _ => workload.connections,
        };
        if filled.insert(workload.table()) {
            prepare_table(workload, &systems)?;
        }
        for (system, counter) in systems.iter().zip(&mut counters) {
            probe(workload, system, counter)?;
        }
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); systems.len()];
        for round in 0..options.rounds {
            eprintln!("{}: round {} of {}", workload.name, round + 1, options.rounds);
            for (index, system) in systems.iter().enumerate() {
                let sample = measure(workload, system, connections, &mut counters[index], options.seconds)
                    .map_err(|error| format!("{} on {}: {error}", workload.name, system.kind.name()))?;
                samples[index].push(sample);
            }
        }
        for (system, samples) in systems.iter().zip(&samples) {
            rows.push(Row {
                workload: workload.what,
                entities_per_request: workload.entities_per_request(),
                system: system.kind,
                connections,
                sample: median(samples),
            });
        }
    }
    let memory = systems.iter().map(Memory::of).collect();
    let restart = restart_durable(systems, options, &data)?;
    Ok(Report { rounds: options.rounds, seconds: options.seconds, load_average, rows, memory, restart }
        .to_string())
}

fn select(options: &Options) -> Result<Vec<Workload>, Error> {
    if let Some(unknown) = options.only.iter().find(|name| !workload::ALL.iter().any(|w| w.name == **name)) {
        return Err(format!("there is no workload called '{unknown}'").into());
    }
    let wanted = |workload: &Workload| match options.only.is_empty() {
        true => !(options.quick && workload.entities >= 1_000_000),
        false => options.only.iter().any(|name| name == workload.name),
    };
    Ok(workload::ALL.into_iter().filter(wanted).collect())
}

/// Creates the workload's table on every server and fills it.
fn prepare_table(workload: &Workload, systems: &[System]) -> Result<(), Error> {
    for system in systems.iter().filter(|system| system.kind != Kind::Hello) {
        system.ask(&Signer::new()?.create_table(&workload.table()), 204)?;
        let entities = workload.entities;
        if entities == 0 {
            continue;
        }
        eprintln!("filling {} with {entities} entities, {}", workload.table(), system.kind.name());
        let mut counter = 0;
        let mut source = workload::fill(&workload.table(), &mut counter, entities)?;
        let mut load = Load::open(system.address, FILL_CONNECTIONS, &mut *source, Some(202))?;
        load.run_for(FILL_TIMEOUT)?;
        load.finish()?;
        let transactions = load.histogram().total();
        if transactions * 100 != entities {
            return Err(format!("{} of {entities} entities were loaded in time", transactions * 100).into());
        }
    }
    Ok(())
}

/// Sends one request and looks at the answer itself: a status alone can hide an empty page.
fn probe(workload: &Workload, system: &System, counter: &mut u64) -> Result<(), Error> {
    let mut request = Vec::new();
    workload.source(counter)?.next(&mut request);
    let answer =
        system.ask(&request, workload.status).map_err(|error| format!("{}: {error}", workload.name))?;
    if system.kind != Kind::Hello && !workload.is_right(&answer) {
        let shown: String = answer.chars().take(2000).collect();
        return Err(format!("{} on {}: a wrong answer:\n{shown}", workload.name, system.kind.name()).into());
    }
    Ok(())
}

fn measure(
    workload: &Workload,
    system: &System,
    connections: usize,
    counter: &mut u64,
    seconds: Duration,
) -> Result<Sample, Error> {
    let expected = (system.kind != Kind::Hello).then_some(workload.status);
    let mut source = workload.source(counter)?;
    let mut load = Load::open(system.address, connections, &mut *source, expected)?;
    load.run_for(seconds / 3)?;

    let (server_before, own_before) = (system.cpu(), system::own_cpu());
    let took = load.run_for(seconds)?;
    let (server_after, own_after) = (system.cpu(), system::own_cpu());

    let histogram = load.histogram();
    let requests = histogram.total() as f64;
    let used = |before: Option<Duration>, after: Option<Duration>| Some((after? - before?).as_secs_f64());
    let sample = Sample {
        requests_per_second: requests / took.as_secs_f64(),
        p50_us: histogram.percentile_us(0.5),
        p99_us: histogram.percentile_us(0.99),
        server_cpu_us: used(server_before, server_after).map(|seconds| seconds * 1e6 / requests.max(1.0)),
        generator_busy: used(own_before, own_after).map(|seconds| seconds / took.as_secs_f64()),
    };
    load.finish()?;
    Ok(sample)
}

/// The median of each number by itself.
fn median(samples: &[Sample]) -> Sample {
    let middle = |number: &dyn Fn(&Sample) -> f64| {
        let mut numbers: Vec<f64> = samples.iter().map(number).collect();
        numbers.sort_by(f64::total_cmp);
        let upper = numbers[numbers.len() / 2];
        let lower = numbers[(numbers.len() - 1) / 2];
        (lower + upper) / 2.0
    };
    let optional = |number: &dyn Fn(&Sample) -> Option<f64>| {
        let all_known = samples.iter().all(|sample| number(sample).is_some());
        all_known.then(|| middle(&|sample| number(sample).unwrap_or_default()))
    };
    Sample {
        requests_per_second: middle(&|sample| sample.requests_per_second),
        p50_us: middle(&|sample| sample.p50_us),
        p99_us: middle(&|sample| sample.p99_us),
        server_cpu_us: optional(&|sample| sample.server_cpu_us),
        generator_busy: optional(&|sample| sample.generator_busy),
    }
}

/// Stops the durable server with all its data and starts it again: from start to first answer.
fn restart_durable(systems: Vec<System>, options: &Options, data: &DataDirectory) -> Result<Duration, Error> {
    for system in systems {
        system.stop()?;
    }
    let again = System::start(Kind::Durable, &options.server, &data.0)?;
    let first_answer = again.first_answer;
    again.stop()?;
    Ok(first_answer)
}
