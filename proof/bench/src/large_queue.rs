//! Large queues, measured on Lazulite alone: what a take costs when ten million messages wait, when a million at the front
//! are invisible or expired, and how long a count and a clearing take.

use std::time::Duration;

use loadgen::queue_request::QueueSigner;
use loadgen::{Error, clock, process, queue, table};

use crate::options::Options;
use crate::results::{Run, fact};
use crate::system::{DataDirectory, Programs, System, SystemKind};

const LOAD_TIME_MAX: Duration = Duration::from_secs(3600);
/// Messages in the small queue, and behind the front of the others. Each measurement takes as many.
const FEW_COUNT: u64 = 1_000;
/// Messages in front of those that can be taken.
const FRONT_COUNT: u64 = 1_000_000;
/// Longer than it takes to put them.
const FRONT_TIME_TO_LIVE: Duration = Duration::from_secs(120);
const INVISIBLE_TIME: Duration = Duration::from_secs(24 * 3600);
/// A measurement of a thousand takes lasts some hundredths of a second; the processor's clock ticks a hundred times a
/// second.
const MEASUREMENTS_PER_ROUND: usize = 5;

const QUEUES: [(&str, &str); 4] = [
    ("few", fact::TAKE_FEW_CPU_US),
    ("many", fact::TAKE_MANY_CPU_US),
    ("invisible", fact::TAKE_INVISIBLE_CPU_US),
    ("expired", fact::TAKE_EXPIRED_CPU_US),
];

pub fn run(options: &Options, programs: &Programs, data: &DataDirectory, run: &mut Run) -> Result<(), Error> {
    let server = System::start(SystemKind::Durable, programs, &data.0)?;
    let endpoint = &server.queue_endpoint;
    let front_count = FRONT_COUNT.min(options.large_entities);
    for (name, _) in QUEUES {
        queue::create(endpoint, name)?;
    }
    let fill = |name: &str, count: u64, options: &[(&str, &str)]| {
        eprintln!("putting {count} messages into '{name}'");
        queue::fill_with(endpoint, name, count, options, LOAD_TIME_MAX, None, |_| {})
    };
    let filled = fill("many", options.large_entities, &[])?;
    run.facts.insert(fact::PUT_MESSAGES_PER_SECOND.to_owned(), filled.entities_per_second());
    let time_to_live = FRONT_TIME_TO_LIVE.as_secs().to_string();
    fill("expired", front_count, &[("messagettl", &time_to_live)])?;
    let last_put = clock::now();
    let invisible = INVISIBLE_TIME.as_secs().to_string();
    fill("invisible", front_count, &[("visibilitytimeout", &invisible)])?;
    for name in ["few", "invisible", "expired"] {
        fill(name, FEW_COUNT, &[])?;
    }
    let left = FRONT_TIME_TO_LIVE.saturating_sub(clock::now().duration_since(last_put));
    eprintln!("waiting {} s until messages have expired", left.as_secs());
    std::thread::sleep(left + Duration::from_secs(1));
    measure_takes(options, &server, run)?;

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
    server.stop()
}

/// Takes from all queues in turn and notes the server's processor time for each. What was taken is put again, so that
/// every queue keeps its size.
fn measure_takes(options: &Options, server: &System, run: &mut Run) -> Result<(), Error> {
    let endpoint = &server.queue_endpoint;
    let cpu = || process::cpu(server.process()).ok_or("the server's processor time cannot be read");
    let mut spent = [Duration::ZERO; QUEUES.len()];
    let measurement_count = options.rounds * MEASUREMENTS_PER_ROUND;
    // The first one warms up and does not count.
    for number in 0..=measurement_count {
        for ((name, _), spent) in QUEUES.iter().zip(&mut spent) {
            let before = cpu()?;
            queue::drain(endpoint, name, FEW_COUNT, LOAD_TIME_MAX)?;
            if number > 0 {
                *spent += cpu()?.saturating_sub(before);
            }
            queue::fill(endpoint, name, FEW_COUNT, LOAD_TIME_MAX, None, |_| {})?;
        }
    }
    for ((_, figure), spent) in QUEUES.iter().zip(spent) {
        let each_us = spent.as_secs_f64() * 1e6 / (measurement_count as u64 * FEW_COUNT) as f64;
        eprintln!("    {figure}: {each_us:.0} us");
        run.facts.insert((*figure).to_owned(), each_us);
    }
    Ok(())
}
