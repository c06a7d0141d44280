//! Short blobs and lists: many requests on many connections.

use std::time::Duration;

use loadgen::blob;
use loadgen::generator::{Generator, Requests, Tally};
use loadgen::measure::Sample;
use loadgen::{Error, clock, process, table};

use super::{
    BlobWork, CONTAINER, FILL_TIME_MAX, MANY_CONNECTIONS, READ_BLOB_COUNT, SHORT_BYTES, fill, keeps_blobs,
    say,
};
use crate::options::Options;
use crate::results::{Cell, Run};
use crate::system::{System, SystemKind};

/// Of what is put, so that it differs from what is read.
const PUT_BYTE: u8 = b'p';
const READ_BYTE: u8 = b'r';

pub fn compare(options: &Options, systems: &[System], run: &mut Run) -> Result<(), Error> {
    for system in systems.iter().filter(|system| keeps_blobs(system.kind)) {
        fill(system, CONTAINER, &[READ_BYTE; SHORT_BYTES], READ_BLOB_COUNT, FILL_TIME_MAX)?;
        check_content(system)?;
    }
    for work in [BlobWork::Get, BlobWork::Put] {
        eprintln!("{}, {MANY_CONNECTIONS} connections", work.what());
        let of_work = |system: &&System| match system.kind {
            SystemKind::FileServer => false,
            // What a put is answered with is short everywhere.
            SystemKind::HelloLong => work == BlobWork::Get,
            _ => true,
        };
        let systems: Vec<&System> = systems.iter().filter(of_work).collect();
        let mut measured: Vec<Result<Vec<Sample>, String>> = systems.iter().map(|_| Ok(Vec::new())).collect();
        for _ in 0..options.rounds {
            for (system, measured) in systems.iter().zip(&mut measured) {
                let Ok(samples) = measured else { continue };
                match measure(system, work, options.seconds) {
                    Ok(sample) => samples.push(sample),
                    // Azurite may fail; Lazulite may not.
                    Err(error) if system.kind == SystemKind::Azurite => *measured = Err(error.to_string()),
                    Err(error) => {
                        return Err(format!("{}, {}: {error}", work.what(), system.kind.what()).into());
                    }
                }
            }
        }
        for (system, measured) in systems.iter().zip(measured) {
            let cell = cell(work, READ_BLOB_COUNT, MANY_CONNECTIONS, system.kind, measured);
            say(&cell);
            run.cells.push(cell);
        }
    }
    Ok(())
}

pub fn cell(
    work: BlobWork,
    blobs: u64,
    connections: usize,
    system: SystemKind,
    measured: Result<Vec<Sample>, String>,
) -> Cell {
    let (sample, not_measured) = match measured {
        Ok(samples) => (Sample::median(&samples), None),
        Err(why) => (None, Some(why.lines().take(3).collect::<Vec<_>>().join(" "))),
    };
    let workload = work.name().to_owned();
    Cell {
        workload,
        entities: blobs,
        partitions: 1,
        connections,
        system,
        sample,
        half_load: None,
        not_measured,
    }
}

/// Statuses alone could hide that what is read is something else.
fn check_content(system: &System) -> Result<(), Error> {
    let mut request = Vec::new();
    blob::gets(&system.blob_endpoint, CONTAINER, READ_BLOB_COUNT)?.next(0, &mut request);
    let answer = table::ask_for(&system.blob_endpoint, &request, 200)?;
    let expected = String::from_utf8_lossy(&[READ_BYTE; SHORT_BYTES]).into_owned();
    match answer.ends_with(&format!("\r\n\r\n{expected}")) {
        true => Ok(()),
        false => Err(format!("{} gives another content than was put", system.kind.what()).into()),
    }
}

fn measure(system: &System, work: BlobWork, seconds: Duration) -> Result<Sample, Error> {
    let endpoint = &system.blob_endpoint;
    let requests = match work {
        BlobWork::Put => blob::puts(endpoint, CONTAINER, &[PUT_BYTE; SHORT_BYTES], &system.counter)?,
        _ => blob::gets(endpoint, CONTAINER, READ_BLOB_COUNT)?,
    };
    send(system, requests, MANY_CONNECTIONS, seconds)
}

/// Lists of a thousand names, one after the other.
pub fn measure_lists(
    system: &System,
    container: &str,
    count: u64,
    seconds: Duration,
) -> Result<Sample, Error> {
    let mut requests = blob::lists(&system.blob_endpoint, container, count)?;
    let mut request = Vec::new();
    requests.next(0, &mut request);
    let answer = table::ask_for(&system.blob_endpoint, &request, 200)?;
    if answer.matches("<Name>").count() as u64 != blob::LISTED_COUNT {
        return Err("a list does not have a thousand names".into());
    }
    send(system, requests, 1, seconds)
}

/// One measurement in the closed loop, after a warm-up of a third of its length.
fn send(
    system: &System,
    mut requests: Box<dyn Requests>,
    connections: usize,
    seconds: Duration,
) -> Result<Sample, Error> {
    let mut requests = Accepting { requests: &mut *requests, accepts_all: !keeps_blobs(system.kind) };
    let judge = |tally: &Tally| tally.only_accepted();
    let mut generator = Generator::open(system.blob_endpoint.address, connections, 1)?;
    generator.run_for(seconds / 3, &mut requests)?;
    generator.finish(&mut requests)?;
    judge(&generator.take())?;
    let used = || (process::cpu(system.process()), process::own_cpu());
    let before = used();
    let start = clock::now();
    generator.run_for(seconds, &mut requests)?;
    let took = clock::now().duration_since(start).as_secs_f64();
    let after = used();
    let tally = generator.take();
    generator.finish(&mut requests)?;
    judge(&tally)?;
    let all = tally.all();
    let count = all.accepted.total() as f64;
    if count == 0.0 {
        return Err(format!("no answer within {seconds:?}").into());
    }
    let spent = |before: Option<Duration>, after: Option<Duration>| {
        Some(after?.saturating_sub(before?).as_secs_f64())
    };
    let per_second = count / took;
    Ok(Sample {
        requests_per_second: per_second,
        entities_per_second: per_second,
        examined_per_second: per_second,
        p50_us: all.accepted.percentile_us(0.5),
        p99_us: all.accepted.percentile_us(0.99),
        p999_us: all.accepted.percentile_us(0.999),
        longest_us: all.accepted.longest().as_secs_f64() * 1e6,
        gap_longest_us: tally.gap_longest.as_secs_f64() * 1e6,
        server_cpu_us: spent(before.0, after.0).map(|seconds| seconds * 1e6 / count),
        generator_busy: spent(before.1, after.1).map(|seconds| seconds / took),
        not_sent: tally.not_sent,
        unanswered: all.broken,
    })
}

/// Wraps a source of requests so that, if wanted, any answer is accepted.
struct Accepting<'a> {
    requests: &'a mut dyn Requests,
    accepts_all: bool,
}

impl Requests for Accepting<'_> {
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.requests.next(connection, out)
    }

    fn accepts(&self, status: u16) -> bool {
        self.accepts_all || self.requests.accepts(status)
    }
}
