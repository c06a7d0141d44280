//! Tests the tests: the trials meant for a planted bug (`engine::seeded`) must catch it, and must pass with the
//! same build when no bug is switched on.
//!
//! Owns: building the server and the trials with the feature `seeded-bugs`, and the table of results. The build has a
//! target directory of its own, so that no ordinary binary is ever replaced by one with bugs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lexopt::{Arg, Parser, ValueExt as _};

use crate::Error;
use crate::histories::{self, Options};
use crate::{blob_crash, blob_histories, crash, employees, power, queue_crash, queue_histories};

const HELP: &str = "\
Usage: lazulite-trials seeded-bugs [OPTIONS]     (run it inside the workspace: it builds)

  --seed S           seed of the first history and episode (default 1)
  --only BUG         only this bug, and no run without bugs
  --server PATH      not used: this trial builds its own
";

/// A bug that is not caught within this many histories counts as missed.
const HISTORY_COUNT_MAX: u64 = 300;
/// A few seconds' worth, for the run without a bug.
const HISTORY_COUNT_WITHOUT: u64 = 40;
const OPERATION_COUNT_MAX: u64 = 400_000;
const ROUND_COUNT_MAX: usize = 60;
const ROUND_COUNT_WITHOUT: usize = 5;
const CONNECTION_COUNT: usize = 8;
const STATE_COUNT: usize = 300;
const JOB_COUNT: usize = 2;
const FOUND_CHARACTER_COUNT_MAX: usize = 110;

/// Names the bug that a build with the feature carries. This build does not know the bugs, so they are names here; the
/// one with them refuses a name that it does not know.
const VARIABLE: &str = "LAZULITE_SEEDED_BUG";

/// The trials that must catch each bug.
const TRIALS: [(&str, &[Trial]); 15] = [
    ("answer-before-sync", &[Trial::Power]),
    ("answer-before-write", &[Trial::Crash]),
    ("broken-etag", &[Trial::Histories, Trial::Simulate, Trial::BlobHistories]),
    ("empty-clearing", &[Trial::QueueHistories, Trial::QueueSimulate, Trial::QueueCrash]),
    ("half-deletion", &[Trial::QueueHistories, Trial::QueueSimulate, Trial::QueueCrash, Trial::Power]),
    ("hasty-sweep", &[Trial::BlobCrash]),
    ("passing-front", &[Trial::QueueSimulate, Trial::QueueCrash]),
    ("short-hiding", &[Trial::QueueHistories, Trial::QueueSimulate, Trial::QueueCrash]),
    ("split-batch", &[Trial::Histories, Trial::Simulate, Trial::Crash]),
    ("split-outbox", &[Trial::Employees, Trial::QueueCrash, Trial::Power]),
    ("stale-read", &[Trial::Histories, Trial::BlobHistories]),
    ("unchecked-take", &[Trial::QueueSimulate, Trial::QueueCrash]),
    ("uncounted-take", &[Trial::QueueHistories, Trial::QueueSimulate, Trial::QueueCrash, Trial::Power]),
    ("unsynced-content", &[Trial::Power]),
    ("version-reuse", &[Trial::Simulate]),
];

#[cfg(feature = "seeded-bugs")]
const _: () = assert!(TRIALS.len() == engine::seeded::Bug::ALL.len(), "every bug has its trials");

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    Histories,
    Simulate,
    QueueSimulate,
    Crash,
    Power,
    QueueHistories,
    QueueCrash,
    Employees,
    BlobHistories,
    BlobCrash,
}

impl Trial {
    const ALL: [Trial; 10] = [
        Trial::Histories,
        Trial::Simulate,
        Trial::QueueSimulate,
        Trial::Crash,
        Trial::Power,
        Trial::QueueHistories,
        Trial::QueueCrash,
        Trial::Employees,
        Trial::BlobHistories,
        Trial::BlobCrash,
    ];

    fn name(self) -> &'static str {
        match self {
            Trial::Histories => "histories",
            Trial::Simulate => "simulate",
            Trial::QueueSimulate => "queue-simulate",
            Trial::Crash => "crash",
            Trial::Power => "power",
            Trial::QueueHistories => "queue-histories",
            Trial::QueueCrash => "queue-crash",
            Trial::Employees => "employees",
            Trial::BlobHistories => "blob-histories",
            Trial::BlobCrash => "blob-crash",
        }
    }
}

/// How a trial ended.
struct Ending {
    caught: bool,
    /// How far it got.
    after: String,
    /// The first line of what it found.
    found: String,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut seed, mut only) = (1, None);
    while let Some(option) = options.next()? {
        match option {
            Arg::Long("seed") => seed = options.value()?.parse()?,
            Arg::Long("only") => only = Some(options.value()?.string()?),
            Arg::Long("server") => drop(options.value()?),
            Arg::Long("help") | Arg::Short('h') => {
                print!("{HELP}");
                return Ok(true);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let binaries = build()?;
    let mut lines = Vec::new();
    let mut is_good = true;
    for (bug, trials) in TRIALS.into_iter().filter(|(bug, _)| only.as_deref().is_none_or(|only| only == *bug))
    {
        for trial in trials {
            let ending = binaries.try_one(*trial, Some(bug), seed)?;
            is_good &= ending.caught;
            lines.push(line(bug, *trial, &ending, true));
        }
    }
    for trial in Trial::ALL.into_iter().filter(|_| only.is_none()) {
        let ending = binaries.try_one(trial, None, seed)?;
        is_good &= !ending.caught;
        lines.push(line("(none)", trial, &ending, false));
    }
    println!("\n{:<20} {:<15} {:<11} {:<32} what it saw", "bug", "trial", "verdict", "after");
    println!("{}", lines.join("\n"));
    println!(
        "{}",
        if is_good { "HELD: every planted bug was caught, and only those" } else { "FAILED: see above" }
    );
    Ok(is_good)
}

fn line(bug: &str, trial: Trial, ending: &Ending, is_planted: bool) -> String {
    let verdict = match (ending.caught, is_planted) {
        (true, true) => "caught",
        (false, true) => "NOT CAUGHT",
        (false, false) => "passes",
        (true, false) => "FAILS",
    };
    format!("{bug:<20} {:<15} {verdict:<11} {:<32} {}", trial.name(), ending.after, ending.found)
}

struct Binaries {
    server: PathBuf,
    trials: PathBuf,
}

/// Builds beside the directory of this binary.
fn build() -> Result<Binaries, Error> {
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(Path::parent).ok_or("this binary lies in no target directory")?;
    let target = target.join("seeded-bugs");
    println!("building the server and the trials with planted bugs in them");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--package", "lazulite", "--package", "trials", "--package", "shim"])
        .args(["--features", "lazulite/seeded-bugs,trials/seeded-bugs", "--target-dir"])
        .arg(&target)
        .status()?;
    if !status.success() {
        return Err("the build with planted bugs failed".into());
    }
    let binary = |name: &str| target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    Ok(Binaries { server: binary("lazulite"), trials: binary("lazulite-trials") })
}

impl Binaries {
    fn try_one(&self, trial: Trial, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        println!("{} with {}", trial.name(), bug.unwrap_or("no bug"));
        match trial {
            Trial::Histories => self.histories(bug, seed),
            Trial::Simulate | Trial::QueueSimulate => self.simulate(trial.name(), bug, seed),
            Trial::Crash => self.crash(bug, seed),
            Trial::Power => self.power(bug, seed),
            Trial::QueueHistories => self.queue_histories(bug, seed),
            Trial::QueueCrash => self.queue_crash(bug, seed),
            Trial::Employees => self.employees(bug, seed),
            Trial::BlobHistories => self.blob_histories(bug, seed),
            Trial::BlobCrash => self.blob_crash(bug, seed),
        }
    }

    fn histories(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let report = histories::observe(&Options {
            server: self.server.clone(),
            history_count: if bug.is_some() { HISTORY_COUNT_MAX } else { HISTORY_COUNT_WITHOUT },
            seed,
            environment: environment(bug),
            keeps_evidence: false,
        })?;
        let found = report.violation.as_deref().and_then(|violation| violation.lines().nth(2));
        Ok(Ending {
            caught: !report.is_good(),
            after: format!("{} histories, {} operations", report.history_count, report.operation_count),
            found: found.unwrap_or_default().to_owned(),
        })
    }

    /// In a process of its own, because the engine reads its bug only once.
    fn simulate(&self, name: &str, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let output = Command::new(&self.trials)
            .args([name, "--operations", &OPERATION_COUNT_MAX.to_string(), "--seed", &seed.to_string()])
            .env(VARIABLE, bug.unwrap_or_default())
            .stderr(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let starting = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
        let failure = starting("FAILED: ");
        // A trial that could not run has caught nothing.
        if failure.is_none() && starting("HELD").is_none() {
            return Err(format!("the simulation did not end: {}\n{text}", output.status).into());
        }
        let operations = starting("operations").unwrap_or_default().trim();
        Ok(Ending {
            caught: failure.is_some() && !output.status.success(),
            after: format!("{} operations", operations.split(' ').next().unwrap_or_default()),
            found: shortened(failure.unwrap_or_default()),
        })
    }

    fn crash(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let verdict = crash::rounds(&crash::Settings {
            server: self.server.clone(),
            rounds: if bug.is_some() { ROUND_COUNT_MAX } else { ROUND_COUNT_WITHOUT },
            connections: CONNECTION_COUNT,
            seed,
            environment: environment(bug),
        })?;
        let after = format!("{} rounds, {} writes", verdict.rounds, verdict.acknowledged);
        Ok(ending(&verdict.broken, after, verdict.kept))
    }

    fn power(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let verdict = power::states(&power::Settings {
            server: self.server.clone(),
            states: STATE_COUNT,
            jobs: JOB_COUNT,
            seed,
            environment: environment(bug),
        })?;
        if let Some(reason) = verdict.skipped {
            return Err(reason.into());
        }
        let after = format!("{} of {} states broken", verdict.broken.len(), verdict.states);
        Ok(ending(&verdict.broken, after, verdict.kept))
    }

    fn queue_histories(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let verdict = queue_histories::histories(&queue_histories::Settings {
            server: self.server.clone(),
            history_count: if bug.is_some() { HISTORY_COUNT_MAX } else { HISTORY_COUNT_WITHOUT },
            seed,
            environment: environment(bug),
        })?;
        let after = format!("{} histories, {} operations", verdict.histories, verdict.operations);
        Ok(ending(&verdict.broken, after, verdict.kept))
    }

    fn queue_crash(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let verdict = queue_crash::rounds(&queue_crash::Settings {
            server: self.server.clone(),
            rounds: if bug.is_some() { ROUND_COUNT_MAX } else { ROUND_COUNT_WITHOUT },
            connections: 2 * CONNECTION_COUNT,
            seed,
            environment: environment(bug),
        })?;
        let after = format!("{} rounds, {} operations", verdict.rounds, verdict.operations);
        Ok(ending(&verdict.broken, after, verdict.kept))
    }

    fn blob_histories(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let verdict = blob_histories::histories(&blob_histories::Settings {
            server: self.server.clone(),
            history_count: if bug.is_some() { HISTORY_COUNT_MAX } else { HISTORY_COUNT_WITHOUT },
            seed,
            environment: environment(bug),
        })?;
        let after = format!("{} histories, {} operations", verdict.histories, verdict.operations);
        Ok(ending(&verdict.broken, after, verdict.kept))
    }

    fn blob_crash(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let verdict = blob_crash::rounds(&blob_crash::Settings {
            server: self.server.clone(),
            rounds: if bug.is_some() { ROUND_COUNT_MAX } else { ROUND_COUNT_WITHOUT },
            connections: CONNECTION_COUNT,
            seed,
            environment: environment(bug),
        })?;
        let after = format!("{} rounds, {} kills", verdict.rounds, verdict.kills);
        Ok(ending(&verdict.broken, after, verdict.kept))
    }

    fn employees(&self, bug: Option<&str>, seed: u64) -> Result<Ending, Error> {
        let verdict = employees::rounds(&employees::Settings {
            server: self.server.clone(),
            rounds: if bug.is_some() { ROUND_COUNT_MAX } else { ROUND_COUNT_WITHOUT },
            seed,
            environment: environment(bug),
        })?;
        let after = format!("{} kills of the server", verdict.server_kills);
        Ok(ending(&verdict.broken, after, verdict.kept))
    }
}

fn environment(bug: Option<&str>) -> Vec<(String, String)> {
    vec![(VARIABLE.to_owned(), bug.unwrap_or_default().to_owned())]
}

/// Deletes the kept store: it only shows a known bug.
fn ending(broken: &[String], after: String, kept: Option<PathBuf>) -> Ending {
    if let Some(kept) = kept
        && let Err(error) = std::fs::remove_dir_all(&kept)
    {
        println!("cannot delete {}: {error}", kept.display());
    }
    let found = broken.first().and_then(|broken| broken.lines().next()).unwrap_or_default();
    Ending { caught: !broken.is_empty(), after, found: shortened(found) }
}

fn shortened(text: &str) -> String {
    text.chars().take(FOUND_CHARACTER_COUNT_MAX).collect()
}
