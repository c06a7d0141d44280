//! Blobs: short ones beside hello world and Azurite, long ones beside `dd` and a bare file server, memory under a
//! hundred long uploads, and lists of ten million names.
//!
//! Every system gets the same load in turn within each round, and medians count, as in the usual run. Promises: a failure
//! of Lazulite ends the run; a long content is compared byte for byte before it is measured.

pub mod report;
mod short;
pub mod targets;
mod transfer;
mod uploads;

use std::time::Duration;

use loadgen::{Error, blob, table};

use self::transfer::Long;
use crate::options::Options;
use crate::plan::MANY_CONNECTIONS;
use crate::results::{Cell, Run, fact};
use crate::system::{DataDirectory, Programs, System, SystemKind};

/// What a short blob contains.
const SHORT_BYTES: usize = 4096;
/// Blobs that are read. Few enough for Azurite to load.
const READ_BLOB_COUNT: u64 = 5_000;
const LONG_BYTES: u64 = 64 << 20;
/// Long blobs are moved on one connection, and on so many.
const FEW_CONNECTIONS: usize = 4;
const UPLOAD_COUNT: usize = 100;
const UPLOAD_BYTES: u64 = 256 << 20;
/// In a quick run.
const UPLOAD_BYTES_QUICK: u64 = UPLOAD_BYTES / 10;
/// Lists are compared between containers of so many names, and of as many as a large table has entities.
const FEW_NAMES: u64 = 10_000;
/// Azurite needs it for the blobs that are read.
const FILL_TIME_MAX: Duration = Duration::from_secs(300);
const LARGE_FILL_TIME_MAX: Duration = Duration::from_secs(3 * 3600);
const PROGRESS_STEP: Duration = Duration::from_secs(10);

/// The container of everything but long lists.
const CONTAINER: &str = "measured";

/// What is measured with many requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlobWork {
    Put,
    Get,
    List,
}

impl BlobWork {
    const ALL: [BlobWork; 3] = [BlobWork::Put, BlobWork::Get, BlobWork::List];

    /// The name in result files.
    pub fn name(self) -> &'static str {
        match self {
            BlobWork::Put => "put-blob",
            BlobWork::Get => "get-blob",
            BlobWork::List => "list-blobs",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            BlobWork::Put => "put a blob of 4 KiB",
            BlobWork::Get => "get a blob of 4 KiB",
            BlobWork::List => "list 1,000 names",
        }
    }

    pub fn from_name(name: &str) -> Option<BlobWork> {
        BlobWork::ALL.into_iter().find(|work| work.name() == name)
    }
}

pub fn run(options: &Options, programs: &Programs, data: &DataDirectory, run: &mut Run) -> Result<(), Error> {
    // Before the servers start, because one of them serves its file.
    transfer::write_file(data, LONG_BYTES)?;
    let mut systems = Vec::new();
    for kind in [SystemKind::Durable, SystemKind::Hello, SystemKind::HelloLong, SystemKind::FileServer] {
        systems.push(System::start(kind, programs, &data.0)?);
    }
    let azurite = match (&options.azurite, options.quick) {
        (_, true) => Err("this is a quick run".to_owned()),
        (Ok(_), false) => System::start_azurite_blobs(programs, &data.0).map_err(|error| error.to_string()),
        (Err(why), false) => Err(why.clone()),
    };
    match azurite {
        Ok(azurite) => systems.push(azurite),
        Err(why) => {
            eprintln!("\n*** AZURITE IS NOT MEASURED: {why} ***\n");
            run.notes.push(format!("Azurite was not measured: {why}."));
        }
    }
    for system in systems.iter().filter(|system| keeps_blobs(system.kind)) {
        blob::create(&system.blob_endpoint, CONTAINER)?;
    }
    short::compare(options, &systems, run)?;
    Long { options, systems: &systems, data, bytes: LONG_BYTES }.compare(run)?;
    run.processes = systems.iter().map(System::cost).collect();
    systems.into_iter().try_for_each(System::stop)?;
    // Its disk space is needed for the uploads.
    let durable = data.0.join(SystemKind::Durable.name());
    std::fs::remove_dir_all(&durable)
        .map_err(|error| format!("cannot remove {}: {error}", durable.display()))?;
    let bytes = if options.quick { UPLOAD_BYTES_QUICK } else { UPLOAD_BYTES };
    uploads::run(programs, data, bytes, run)
}

/// The others answer everything alike.
fn keeps_blobs(kind: SystemKind) -> bool {
    matches!(kind, SystemKind::Durable | SystemKind::Azurite)
}

/// Lists of a thousand names in a small container and in a large one. Both are filled with puts of empty blobs.
pub fn run_large(
    options: &Options,
    programs: &Programs,
    data: &DataDirectory,
    run: &mut Run,
) -> Result<(), Error> {
    let system = System::start(SystemKind::Durable, programs, &data.0)?;
    let sizes = [FEW_NAMES, options.large_entities];
    for count in sizes {
        blob::create(&system.blob_endpoint, &container_of(count))?;
        let filled = fill(&system, &container_of(count), &[], count, LARGE_FILL_TIME_MAX)?;
        run.facts.insert(fact::LOAD_BLOBS_PER_SECOND.to_owned(), filled);
    }
    run.facts.insert(fact::DISK_BYTES.to_owned(), data.bytes() as f64);
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        for (count, samples) in sizes.into_iter().zip(&mut samples) {
            samples.push(short::measure_lists(&system, &container_of(count), count, options.seconds)?);
        }
    }
    for (count, samples) in sizes.into_iter().zip(samples) {
        run.cells.push(short::cell(BlobWork::List, count, 1, SystemKind::Durable, Ok(samples)));
    }
    run.processes = vec![system.cost()];
    system.stop()
}

fn container_of(count: u64) -> String {
    format!("names{count}")
}

/// Puts so many blobs, and reports progress if it takes long. Returns how many a second.
fn fill(system: &System, container: &str, body: &[u8], count: u64, time_max: Duration) -> Result<f64, Error> {
    let mut said = Duration::ZERO;
    let progress = |filled: &table::Filled| {
        if filled.took - said > PROGRESS_STEP {
            said = filled.took;
            let rate = filled.entities_per_second();
            eprintln!(
                "    {:3} %  {} blobs put, {rate:.0}/s",
                filled.entities * 100 / count,
                filled.entities
            );
        }
    };
    let filled = blob::fill(&system.blob_endpoint, container, body, count, time_max, progress)?;
    let rate = filled.entities_per_second();
    eprintln!("    {:20} loaded with {count} blobs, {rate:.0}/s", system.kind.what());
    Ok(rate)
}

/// Says what a cell has measured.
fn say(cell: &Cell) {
    let what = cell.system.what();
    match (&cell.sample, &cell.not_measured) {
        (Some(sample), _) => eprintln!(
            "    {what:20} {:>10.0} requests/s, p99 {:.0} us, CPU {:.1} us",
            sample.requests_per_second,
            sample.p99_us,
            sample.server_cpu_us.unwrap_or_default()
        ),
        (None, why) => {
            eprintln!("    {what:20} not measured: {}", why.as_deref().unwrap_or("no reason known"))
        }
    }
}
