//! Large queues, measured on Lazulite alone: what a take costs when ten million messages wait, when a million at the front
//! are invisible or expired, and how long a count and a clearing take.

use std::time::Duration;

use loadgen::measure::{Sample, probe};
use loadgen::queue_request::QueueSigner;
use loadgen::workload::{TableShape, Workload, WorkloadKind};
use loadgen::{Error, clock, queue, table};

use crate::compare;
use crate::options::Options;
use crate::plan::{MANY_CONNECTIONS, SMALL_ENTITIES};
use crate::results::{Run, fact};
use crate::system::{DataDirectory, Programs, System, SystemKind};

const LOAD_TIME_MAX: Duration = Duration::from_secs(3600);
/// Messages in front of those that can be taken.
const FRONT_COUNT: u64 = 1_000_000;
/// Longer than it takes to put them.
const FRONT_TIME_TO_LIVE: Duration = Duration::from_secs(120);
const INVISIBLE_TIME: Duration = Duration::from_secs(24 * 3600);

pub fn run(options: &Options, programs: &Programs, data: &DataDirectory, run: &mut Run) -> Result<(), Error> {
    let server = System::start(SystemKind::Durable, programs, &data.0)?;
    let endpoint = server.endpoint_of(WorkloadKind::Take);
    let few = TableShape::one_partition(SMALL_ENTITIES);
    let many = TableShape::one_partition(options.large_entities);
    let front_count = FRONT_COUNT.min(options.large_entities);

    for name in ["few", "many", "invisible", "expired"] {
        queue::create(endpoint, name)?;
    }
    let fill = |name: &str, count: u64, options: &[(&str, &str)]| {
        eprintln!("putting {count} messages into '{name}'");
        queue::fill_with(endpoint, name, count, options, LOAD_TIME_MAX, None, |_| {})
    };
    // Those that expire first, so that they have expired when they are needed.
    let time_to_live = FRONT_TIME_TO_LIVE.as_secs().to_string();
    let started = clock::now();
    fill("expired", front_count, &[("messagettl", &time_to_live)])?;
    fill("expired", SMALL_ENTITIES, &[])?;
    let invisible = INVISIBLE_TIME.as_secs().to_string();
    fill("invisible", front_count, &[("visibilitytimeout", &invisible)])?;
    fill("invisible", SMALL_ENTITIES, &[])?;
    fill("few", SMALL_ENTITIES, &[])?;
    let left = FRONT_TIME_TO_LIVE.saturating_sub(clock::now().duration_since(started));
    std::thread::sleep(left + Duration::from_secs(1));
    measure(
        options,
        &server,
        run,
        &[("few", few, fact::TAKE_FEW_CPU_US), ("expired", few, fact::TAKE_EXPIRED_CPU_US)],
    )?;
    measure(options, &server, run, &[("invisible", few, fact::TAKE_INVISIBLE_CPU_US)])?;
    queue::delete(endpoint, "invisible")?;
    queue::delete(endpoint, "expired")?;

    let filled = fill("many", many.entities, &[])?;
    run.facts.insert(fact::PUT_MESSAGES_PER_SECOND.to_owned(), filled.entities_per_second());
    measure(
        options,
        &server,
        run,
        &[("few", few, fact::TAKE_FEW_CPU_US), ("many", many, fact::TAKE_MANY_CPU_US)],
    )?;

    let signer = QueueSigner::of(endpoint)?;
    for (name, request, status) in [
        (fact::COUNT_MS, signer.request("GET", "/many", &[("comp", "metadata")], ""), 200),
        (fact::CLEAR_MS, signer.clear("many"), 204),
    ] {
        let asked = clock::now();
        table::ask_for(endpoint, &request, status)?;
        run.facts.insert(name.to_owned(), clock::now().duration_since(asked).as_secs_f64() * 1000.0);
    }
    if let Some(bytes) = server.memory_bytes("VmHWM:") {
        run.facts.insert(fact::QUEUE_PEAK_BYTES.to_owned(), bytes as f64);
    }
    Ok(())
}

/// Takes messages from these queues, in turn within every round, and notes the processor time of each.
fn measure(
    options: &Options,
    server: &System,
    run: &mut Run,
    queues: &[(&str, TableShape, &str)],
) -> Result<(), Error> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); queues.len()];
    for round in 0..options.rounds {
        eprintln!("takes: round {} of {}", round + 1, options.rounds);
        for ((name, shape, _), samples) in queues.iter().zip(&mut samples) {
            let workload =
                Workload { kind: WorkloadKind::Take, shape: *shape, connections: MANY_CONNECTIONS };
            probe(&workload, server.endpoint_of(workload.kind), name, &server.counter)?;
            samples.push(compare::measure_on(server, &workload, name, None, None, options.seconds)?);
        }
    }
    for ((_, _, figure), samples) in queues.iter().zip(&samples) {
        if let Some(cpu) = Sample::median(samples).and_then(|sample| sample.server_cpu_us) {
            eprintln!("    {figure}: {cpu:.0} us");
            run.facts.insert((*figure).to_owned(), cpu);
        }
    }
    Ok(())
}
