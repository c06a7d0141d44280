//! `lazulite check`: verifies a store, served or not, or a backup file.
//!
//! Promises exit codes that scripts can rely on: 0 for sound, 1 for not checked, 2 for damage found. The checks
//! themselves belong to `engine-local` and to the crates `queues` and `backup`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use backup::{BackupError, BackupReader};
use engine::env::SystemClock;
use engine::{Engine, Family};
use engine_local::{CheckReport, LocalEngine, OpenError, ahead_of_clock, check_directory};
use queues::QueueReport;

use crate::backup::{described, read_through};
use crate::control::{self, ControlRequest};
use crate::place::{EngineAddress, StoreChoice};
use crate::progress::Progress;
use crate::{check_engine, remote, store};

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
    pub dropped_table_count: u64,
    pub dropped_row_count: u64,
    pub last_version_ticks: u64,
    pub finding_count: u64,
    pub findings: Vec<String>,
}

impl StoreReport {
    /// Joins what the engine and the services have found. `queues`: an error says why they could not be read.
    fn new(report: CheckReport, queues: Result<QueueReport, String>) -> StoreReport {
        let counts = |family: Family| report.families.get(&family).copied().unwrap_or_default();
        let mut joined = StoreReport {
            table_count: counts(tables::FAMILY).table_count,
            entity_count: counts(tables::FAMILY).row_count,
            queue_count: counts(queues::FAMILY).table_count,
            message_count: 0,
            dropped_table_count: report.dropped_table_count,
            dropped_row_count: report.dropped_row_count,
            last_version_ticks: report.last_version_ticks,
            finding_count: report.finding_count,
            findings: report.findings,
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
        joined
    }

    /// The counts as a server sends them, on one line.
    pub fn to_line(&self) -> String {
        self.counts().map(|count| count.to_string()).join(" ")
    }

    fn counts(&self) -> [u64; 8] {
        [
            self.table_count,
            self.entity_count,
            self.queue_count,
            self.message_count,
            self.dropped_table_count,
            self.dropped_row_count,
            self.last_version_ticks,
            self.finding_count,
        ]
    }

    fn from_line(line: &str) -> Option<StoreReport> {
        let counts: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
        let &[table_count, entity_count, queue_count, message_count, tables, rows, version, found] =
            counts.as_slice()
        else {
            return None;
        };
        Some(StoreReport {
            table_count,
            entity_count,
            queue_count,
            message_count,
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

/// Checks a store that is open.
pub async fn check_open(engine: &LocalEngine) -> StoreReport {
    let report = engine.check();
    let queues = check_queues(engine, &report).await;
    StoreReport::new(report, queues)
}

/// Not if the engine has found damage: then nothing can be said about the rows that are left.
async fn check_queues(engine: &LocalEngine, report: &CheckReport) -> Result<QueueReport, String> {
    if report.finding_count > 0 || !report.families.contains_key(&queues::FAMILY) {
        return Ok(QueueReport::default());
    }
    let snapshot = engine.snapshot().await.map_err(|error| error.to_string())?;
    queues::check_queues(&*snapshot).await.map_err(|error| error.to_string())
}

/// Checks the queues of a store that nobody has open.
fn with_queues(report: CheckReport, location: &Path) -> Result<StoreReport, String> {
    if report.finding_count > 0 || !report.families.contains_key(&queues::FAMILY) {
        return Ok(StoreReport::new(report, Ok(QueueReport::default())));
    }
    let started = || "a server was started on the store meanwhile: check again".to_owned();
    let engine = store::open(location)?.ok_or_else(started)?;
    let queues = store::wait_for(async {
        let queues = check_queues(&engine, &report).await;
        engine.close().await;
        queues
    })?;
    Ok(StoreReport::new(report, queues))
}

fn check_store(location: &Path) -> Result<ExitCode, String> {
    store::require(location)?;
    let progress = Progress::start();
    let (checked, how) = match check_directory(location, CACHE_BYTES_MAX, &server::FAMILIES) {
        Ok(checked) => (with_queues(checked, location)?, "at rest"),
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
        check_engine::check(&*snapshot).await
    })?;
    Ok(print(&address.name(), "as of one moment", &checked, &progress))
}

fn print(name: &str, how: &str, checked: &StoreReport, progress: &Progress) -> ExitCode {
    for finding in &checked.findings {
        println!("{finding}");
    }
    let StoreReport { table_count, entity_count, queue_count, message_count, .. } = checked;
    let StoreReport { dropped_table_count, dropped_row_count, finding_count, .. } = checked;
    println!(
        "{name}, {how}: {table_count} tables, {entity_count} entities, {queue_count} queues, {message_count} messages looked at in {:.1} s",
        progress.elapsed().as_secs_f64()
    );
    if *dropped_table_count > 0 {
        println!(
            "{dropped_row_count} rows of {dropped_table_count} deleted tables or queues are still to be cleared away"
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
            dropped_table_count: 5,
            dropped_row_count: 6,
            last_version_ticks: 7,
            finding_count: 8,
            findings: Vec::new(),
        };
        assert_eq!(StoreReport::from_line(&report.to_line()), Some(report));
        for line in ["", "1 2 3 4 5 6 7", "1 2 3 4 5 6 7 x", "1 2 3 4 5 6 7 8 9"] {
            assert_eq!(StoreReport::from_line(line), None, "{line}");
        }
    }
}
