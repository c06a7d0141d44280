//! `lazulite check`: verifies a store, served or not, or a backup file.
//!
//! Promises exit codes that scripts can rely on: 0 for sound, 1 for not checked, 2 for damage found. The checks
//! themselves belong to `engine-local` and to the crate `backup`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use backup::{BackupError, BackupReader};
use engine::env::SystemClock;
use engine_local::{CheckReport, OpenError, ahead_of_clock, check_directory};

use crate::backup::read_through;
use crate::control::{self, ControlRequest};
use crate::progress::Progress;
use crate::store;

const DAMAGED: u8 = 2;
const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

pub fn run(backup: Option<&Path>, location: &Path) -> Result<ExitCode, String> {
    match backup {
        Some(file) => check_backup(file),
        None => check_store(location),
    }
}

fn check_store(location: &Path) -> Result<ExitCode, String> {
    store::require(location)?;
    let progress = Progress::start();
    let (checked, how) = match check_directory(location, CACHE_BYTES_MAX, &server::FAMILIES) {
        Ok(checked) => (checked, "at rest"),
        Err(OpenError::Locked(_)) => (ask_server(location)?, "while it is being served"),
        Err(error @ (OpenError::Damaged { .. } | OpenError::OtherStore { .. })) => {
            println!("{error}");
            return Ok(ExitCode::from(DAMAGED));
        }
        Err(error) => return Err(error.to_string()),
    };
    for finding in &checked.findings {
        println!("{}", location.join(finding).display());
    }
    let CheckReport { table_count, row_count, dropped_table_count, dropped_row_count, finding_count, .. } =
        checked;
    println!(
        "{}, {how}: {table_count} tables, {row_count} entities looked at in {:.1} s",
        location.display(),
        progress.elapsed().as_secs_f64()
    );
    if dropped_table_count > 0 {
        println!(
            "{dropped_row_count} rows of {dropped_table_count} deleted tables are still to be cleared away"
        );
    }
    if let Some(ahead) = ahead_of_clock(checked.last_version_ticks, &SystemClock::new()) {
        println!("{ahead} (docs/guide.md, Troubleshooting)");
    }
    if finding_count == 0 {
        println!("sound");
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "DAMAGED: {finding_count} findings. Stop the server, keep a copy of the directory, restore from a backup."
    );
    Ok(ExitCode::from(DAMAGED))
}

fn ask_server(location: &Path) -> Result<CheckReport, String> {
    let mut lines = control::connect(location, &ControlRequest::Check)?.answer()?.lines();
    let cut = || "the server's answer is cut short".to_owned();
    let counts = lines.next().and_then(Result::ok).ok_or_else(cut)?;
    let counts: Vec<u64> = counts.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [table_count, row_count, dropped_table_count, dropped_row_count, finding_count, last_version_ticks] =
        counts[..]
    else {
        return Err(cut());
    };
    let findings = lines.map_while(Result::ok).collect();
    Ok(CheckReport {
        table_count,
        row_count,
        dropped_table_count,
        dropped_row_count,
        finding_count,
        findings,
        last_version_ticks,
    })
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
            println!(
                "{}: {} tables, {} entities, made by Lazulite {program_version}: sound",
                file.display(),
                counts.table_count,
                counts.row_count,
            );
            Ok(ExitCode::SUCCESS)
        }
        Err(BackupError::Io(error)) => Err(format!("{}: {error}", file.display())),
        Err(error) => {
            println!("{}: {error}", file.display());
            Ok(ExitCode::from(DAMAGED))
        }
    }
}
