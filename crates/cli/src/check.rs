//! `lazulite check`: verifies a store, served or not, or a backup file.
//!
//! Promises exit codes that scripts can rely on: 0 for sound, 1 for not checked, 2 for damage found. The checks
//! themselves belong to `engine-local` and to the crates `queues`, `blobs` and `backup`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use backup::{BackupError, BackupReader};
use blobs::{BlobOptions, BlobReport, BlobService};
use engine::env::{Clock, SystemClock};
use engine::{Engine, Family};
use engine_local::{CheckReport, LocalEngine, OpenError, ahead_of_clock, check_directory};
use queues::QueueReport;

use crate::backup::{described, read_through};
use crate::control::{self, ControlRequest};
use crate::place::{EngineAddress, StoreChoice};
use crate::progress::Progress;
use crate::store::{self, OpenStore};
use crate::{account_data, check_engine, contents_place, remote};

const DAMAGED: u8 = 2;
const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

pub fn run(backup: Option<&Path>, place: &StoreChoice) -> Result<ExitCode, String> {
    match (backup, place) {
        (Some(file), _) => check_backup(file),
        (None, StoreChoice::Directory(location)) => check_store(location),
        (None, StoreChoice::Engine(address)) => check_remote(address),
    }
}

/// What a check of a store has found, of all services.
#[derive(Default, PartialEq, Debug)]
pub struct StoreReport {
    pub table_count: u64,
    pub entity_count: u64,
    pub queue_count: u64,
    pub message_count: u64,
    pub container_count: u64,
    pub blob_count: u64,
    /// Bytes that blobs have outside of their rows.
    pub content_bytes: u64,
    /// Bytes that no blob has.
    pub unnamed_bytes: u64,
    pub dropped_table_count: u64,
    pub dropped_row_count: u64,
    pub last_version_ticks: u64,
    pub finding_count: u64,
    pub findings: Vec<String>,
}

impl StoreReport {
    /// Joins what the engine and the services have found. An error says why they could not be read.
    fn new(
        report: CheckReport,
        queues: Result<QueueReport, String>,
        blobs: Result<BlobReport, String>,
    ) -> StoreReport {
        let counts = |family: Family| report.families.get(&family).copied().unwrap_or_default();
        let mut joined = StoreReport {
            table_count: counts(tables::FAMILY).table_count,
            entity_count: counts(tables::FAMILY).row_count,
            queue_count: counts(queues::FAMILY).table_count,
            container_count: counts(blobs::FAMILY).table_count,
            dropped_table_count: report.dropped_table_count,
            dropped_row_count: report.dropped_row_count,
            last_version_ticks: report.last_version_ticks,
            finding_count: report.finding_count,
            findings: report.findings,
            ..StoreReport::default()
        };
        match queues {
            Ok(queues) => {
                joined.message_count = queues.message_count;
                joined.finding_count += queues.finding_count;
                joined.findings.extend(queues.findings.iter().map(|found| in_the_tree(found)));
            }
            Err(cause) => {
                joined.finding_count += 1;
                joined.findings.push(in_the_tree(&format!("reading the queues stopped: {cause}")));
            }
        }
        match blobs {
            Ok(blobs) => {
                joined.blob_count = blobs.blob_count;
                joined.content_bytes = blobs.content_bytes;
                joined.unnamed_bytes = blobs.unnamed_bytes;
                joined.finding_count += blobs.finding_count;
                joined.findings.extend(blobs.findings.iter().map(|found| in_the_contents(found)));
            }
            Err(cause) => {
                joined.finding_count += 1;
                joined.findings.push(in_the_contents(&format!("reading the blobs stopped: {cause}")));
            }
        }
        joined
    }

    /// The counts as a server sends them, on one line.
    pub fn to_line(&self) -> String {
        self.counts().map(|count| count.to_string()).join(" ")
    }

    fn counts(&self) -> [u64; 12] {
        [
            self.table_count,
            self.entity_count,
            self.queue_count,
            self.message_count,
            self.container_count,
            self.blob_count,
            self.content_bytes,
            self.unnamed_bytes,
            self.dropped_table_count,
            self.dropped_row_count,
            self.last_version_ticks,
            self.finding_count,
        ]
    }

    fn from_line(line: &str) -> Option<StoreReport> {
        let counts: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
        let (services, rest) = counts.split_at_checked(8)?;
        let &[table_count, entity_count, queue_count, message_count, containers, blobs, bytes, unnamed] =
            services
        else {
            return None;
        };
        let &[tables, rows, version, found] = rest else { return None };
        Some(StoreReport {
            table_count,
            entity_count,
            queue_count,
            message_count,
            container_count: containers,
            blob_count: blobs,
            content_bytes: bytes,
            unnamed_bytes: unnamed,
            dropped_table_count: tables,
            dropped_row_count: rows,
            last_version_ticks: version,
            finding_count: found,
            findings: Vec::new(),
        })
    }
}

fn in_the_tree(finding: &str) -> String {
    format!("tables.redb: {finding}")
}

fn in_the_contents(finding: &str) -> String {
    format!("{}: {finding}", contents_place::DIRECTORY)
}

/// Checks a store that is open.
pub async fn check_open(store: &OpenStore, clock: Arc<dyn Clock>) -> StoreReport {
    let report = store.engine.check();
    let queues = check_queues(&store.engine, &report).await;
    let blobs = check_blobs(store, &report, clock).await;
    StoreReport::new(report, queues, blobs)
}

/// Reads every byte of every blob. Not if the engine has found damage.
async fn check_blobs(
    store: &OpenStore,
    report: &CheckReport,
    clock: Arc<dyn Clock>,
) -> Result<BlobReport, String> {
    let has_containers = report.families.contains_key(&blobs::FAMILY);
    if report.finding_count > 0 {
        return Ok(BlobReport::default());
    }
    let Some(contents) = &store.contents else {
        return match has_containers {
            true => Err("the contents of blobs are not there".to_owned()),
            false => Ok(BlobReport::default()),
        };
    };
    let options = BlobOptions::default();
    let service = BlobService::new(store.engine.clone(), contents.clone(), clock, options);
    service.check(true).await.map_err(account_data::sentence)
}

/// Not if the engine has found damage: then nothing can be said about the rows that are left.
async fn check_queues(engine: &LocalEngine, report: &CheckReport) -> Result<QueueReport, String> {
    if report.finding_count > 0 || !report.families.contains_key(&queues::FAMILY) {
        return Ok(QueueReport::default());
    }
    let snapshot = engine.snapshot().await.map_err(|error| error.to_string())?;
    queues::check_queues(&*snapshot).await.map_err(|error| error.to_string())
}

/// Checks the queues and blobs of a store that nobody has open.
fn with_services(report: CheckReport, location: &Path) -> Result<StoreReport, String> {
    let has = |family: Family| report.families.contains_key(&family);
    let has_contents = contents_place::is_there(location);
    if report.finding_count > 0 || !(has(queues::FAMILY) || has(blobs::FAMILY) || has_contents) {
        return Ok(StoreReport::new(report, Ok(QueueReport::default()), Ok(BlobReport::default())));
    }
    let started = || "a server was started on the store meanwhile: check again".to_owned();
    let engine = store::open(location)?.ok_or_else(started)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let engine = Arc::new(engine);
    let (queues, blobs) = store::runtime()?.block_on(async {
        let contents = contents_place::open_if_there(location, &engine, clock.clone()).await;
        let queues = check_queues(&engine, &report).await;
        let blobs = match contents {
            Ok(contents) => {
                let store = OpenStore { engine: engine.clone(), contents };
                let blobs = check_blobs(&store, &report, clock).await;
                store.close().await;
                blobs
            }
            Err(cause) => Err(cause),
        };
        engine.close().await;
        (queues, blobs)
    });
    Ok(StoreReport::new(report, queues, blobs))
}

fn check_store(location: &Path) -> Result<ExitCode, String> {
    store::require(location)?;
    let progress = Progress::start();
    let (checked, how) = match check_directory(location, CACHE_BYTES_MAX, &server::FAMILIES) {
        Ok(checked) => (with_services(checked, location)?, "at rest"),
        Err(OpenError::Locked(_)) => (ask_server(location)?, "while it is being served"),
        Err(error @ (OpenError::Damaged { .. } | OpenError::OtherStore { .. })) => {
            println!("{error}");
            return Ok(ExitCode::from(DAMAGED));
        }
        Err(error) => return Err(error.to_string()),
    };
    let findings: Vec<String> =
        checked.findings.iter().map(|finding| location.join(finding).display().to_string()).collect();
    Ok(print(&location.display().to_string(), how, &StoreReport { findings, ..checked }, &progress))
}

fn check_remote(address: &EngineAddress) -> Result<ExitCode, String> {
    let progress = Progress::start();
    let checked = remote::work_on(address, async |engine| {
        let snapshot = engine.snapshot().await.map_err(|error| error.to_string())?;
        let mut report = check_engine::check(&*snapshot).await?;
        drop(snapshot);
        check_shared_blobs(engine, &mut report).await?;
        Ok(report)
    })?;
    Ok(print(&address.name(), "as of one moment", &checked, &progress))
}

/// Reads every byte of every blob. Not if damage was found.
async fn check_shared_blobs(engine: Arc<dyn Engine>, report: &mut StoreReport) -> Result<(), String> {
    if report.finding_count > 0 {
        return Ok(());
    }
    let Some(contents) = contents_place::open_of_engine(&*engine).await? else {
        if report.container_count > 0 {
            report.finding_count += 1;
            report.findings.push("nothing says where the contents of blobs are".to_owned());
        }
        return Ok(());
    };
    let (clock, options) = (Arc::new(SystemClock::new()), BlobOptions::default());
    let service = BlobService::new(engine, contents.clone(), clock, options).sharing_its_engine();
    let checked = service.check(true).await;
    contents.close().await;
    let blobs = checked.map_err(account_data::sentence)?;
    report.blob_count = blobs.blob_count;
    report.content_bytes = blobs.content_bytes;
    report.unnamed_bytes = blobs.unnamed_bytes;
    report.finding_count += blobs.finding_count;
    report.findings.extend(blobs.findings.iter().map(|found| in_the_contents(found)));
    Ok(())
}

fn print(name: &str, how: &str, checked: &StoreReport, progress: &Progress) -> ExitCode {
    for finding in &checked.findings {
        println!("{finding}");
    }
    let StoreReport { table_count, entity_count, queue_count, message_count, .. } = checked;
    let StoreReport { dropped_table_count, dropped_row_count, finding_count, .. } = checked;
    let StoreReport { container_count, blob_count, content_bytes, unnamed_bytes, .. } = checked;
    let blobs = match container_count {
        0 => String::new(),
        _ => format!(
            ", {container_count} containers, {blob_count} blobs with {content_bytes} bytes beside their rows"
        ),
    };
    println!(
        "{name}, {how}: {table_count} tables, {entity_count} entities, {queue_count} queues, {message_count} messages{blobs} \
         looked at in {:.1} s",
        progress.elapsed().as_secs_f64()
    );
    if *unnamed_bytes > 0 {
        println!("{unnamed_bytes} bytes that no blob has any more are still to be given back");
    }
    if *dropped_table_count > 0 {
        println!(
            "{dropped_row_count} rows of {dropped_table_count} deleted tables, queues or containers are still to be cleared away"
        );
    }
    if let Some(ahead) = ahead_of_clock(checked.last_version_ticks, &SystemClock::new()) {
        println!("{ahead} (docs/guide.md, Troubleshooting)");
    }
    if *finding_count == 0 {
        println!("sound");
        return ExitCode::SUCCESS;
    }
    println!(
        "DAMAGED: {finding_count} findings. Stop the server, keep a copy of the data, restore from a backup."
    );
    ExitCode::from(DAMAGED)
}

fn ask_server(location: &Path) -> Result<StoreReport, String> {
    let mut lines = control::connect(location, &ControlRequest::Check)?.answer()?.lines();
    let cut = || "the server's answer is cut short".to_owned();
    let counts = lines.next().and_then(Result::ok).ok_or_else(cut)?;
    let report = StoreReport::from_line(&counts).ok_or_else(cut)?;
    Ok(StoreReport { findings: lines.map_while(Result::ok).collect(), ..report })
}

fn check_backup(file: &Path) -> Result<ExitCode, String> {
    let mut progress = Progress::start();
    let opened = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let read = || -> Result<_, BackupError> {
        let mut backup = BackupReader::open(BufReader::new(opened))?;
        let counts = read_through(&mut backup, &mut progress)?;
        Ok((backup.head().program_version.clone(), counts))
    };
    let outcome = read();
    progress.clear();
    match outcome {
        Ok((program_version, counts)) => {
            println!("{}: {}, made by Lazulite {program_version}: sound", file.display(), described(&counts));
            Ok(ExitCode::SUCCESS)
        }
        Err(BackupError::Io(error)) => Err(format!("{}: {error}", file.display())),
        Err(error) => {
            println!("{}: {error}", file.display());
            Ok(ExitCode::from(DAMAGED))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_as_they_were_written() {
        let report = StoreReport {
            table_count: 1,
            entity_count: 2,
            queue_count: 3,
            message_count: 4,
            container_count: 5,
            blob_count: 6,
            content_bytes: 7,
            unnamed_bytes: 8,
            dropped_table_count: 9,
            dropped_row_count: 10,
            last_version_ticks: 11,
            finding_count: 12,
            findings: Vec::new(),
        };
        assert_eq!(StoreReport::from_line(&report.to_line()), Some(report));
        for line in ["", "1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8 9 10 11", "1 2 3 4 5 6 7 8 9 10 11 12 13"] {
            assert_eq!(StoreReport::from_line(line), None, "{line}");
        }
    }
}
