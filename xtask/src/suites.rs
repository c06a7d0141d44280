//! Runs the suites of the official clients, current and older, unmodified, against a real server, and reads their
//! results.
//!
//! Promises: each suite gets a server of its own; a server that does not stop well counts as a failure. Set-ups mostly
//! wait for downloads, so [`SetUps`] runs them in the background. What each needs is the business of `set_up`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use crate::cases::{self, Case};
use crate::counts::Counts;
use crate::process;
use crate::server::Server;
use crate::set_up::{SetUp, set_up};
use crate::toolchains::Missing;

/// Name and client, in the order they run.
pub const SUITES: [(&str, &str); 11] = [
    (
        "python",
        "the azure-data-tables, azure-storage-queue and azure-storage-blob SDKs for Python, against the server",
    ),
    (
        "javascript",
        "the @azure/data-tables, storage-queue and storage-blob SDKs for JavaScript, against the server",
    ),
    ("go", "the aztables, azqueue and azblob SDKs for Go, against the server"),
    (
        "java",
        "the azure-data-tables, azure-storage-queue and azure-storage-blob SDKs for Java, against the server",
    ),
    ("rust-sdk", "the azure_data_tables SDK for Rust, against the server"),
    ("python-old", "the older azure-cosmosdb-table client for Python, against the server"),
    ("javascript-old", "the older azure-storage client for JavaScript, against the server"),
    ("go-old", "the older azure-sdk-for-go/storage client for Go, against the server"),
    ("java-old", "the older azure-storage client for Java, against the server"),
    ("browser", "the explorer, and pages of another origin, in a real browser against the server"),
    ("programs", "rclone, restic, azcopy and adlfs with pandas, against the server"),
];

/// A suite that is ready to run.
pub struct Suite {
    pub command: Command,
    /// Whether the output is shown while it runs, or only when it fails.
    pub is_shown: bool,
    pub report: Report,
}

/// Where to read the test cases afterwards. `Go` and `Cargo` read the output; `Go` maps each test to its area.
pub enum Report {
    /// A report file, or a directory of them.
    Junit(PathBuf),
    Node(PathBuf),
    Go(BTreeMap<String, String>),
    Cargo,
}

impl Report {
    fn read(&self, output: &str) -> Result<Vec<Case>, String> {
        match self {
            Report::Junit(path) if path.is_dir() => {
                let mut found = Vec::new();
                for file in files(path, ".xml")? {
                    found.extend(cases::from_junit(&read(&file)?));
                }
                Ok(found)
            }
            Report::Junit(path) => Ok(cases::from_junit(&read(path).unwrap_or_default())),
            Report::Node(path) => Ok(cases::from_node_reporter(&read(path).unwrap_or_default())),
            Report::Go(areas) => Ok(cases::from_go_test(output, areas)),
            Report::Cargo => Ok(cases::from_cargo_test(output)),
        }
    }

    /// Deletes the old report, which would otherwise count for a runner that wrote none.
    fn clear(&self) {
        if let Report::Junit(path) | Report::Node(path) = self {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

pub struct Ran {
    pub cases: Vec<Case>,
    /// Includes failures outside the cases: an unexplained exit, a server that did not stop well.
    pub counts: Counts,
}

/// The set-ups, done in the background one after another in the order given.
pub struct SetUps(BTreeMap<String, Receiver<SetUp>>);

impl SetUps {
    pub fn start(names: Vec<String>) -> SetUps {
        let mut receivers = BTreeMap::new();
        let mut senders = Vec::new();
        for name in names {
            let (sender, receiver) = mpsc::channel();
            senders.push((name.clone(), sender));
            receivers.insert(name, receiver);
        }
        std::thread::spawn(move || {
            for (name, sender) in senders {
                let _ = sender.send(set_up(&name));
            }
        });
        SetUps(receivers)
    }

    /// Waits for the set-up, then runs the suite against a new server.
    pub fn run(&self, name: &str, server: &Path) -> Result<Result<Ran, Missing>, String> {
        let receiver = self.0.get(name).ok_or_else(|| format!("the suite '{name}' was not set up"))?;
        let ready = receiver.recv().map_err(|_| format!("the set-up of '{name}' ended without a result"))?;
        match ready? {
            Ok(suite) => run(name, suite, server).map(Ok),
            Err(missing) => Ok(Err(missing)),
        }
    }
}

/// Sets up one suite and runs it against a new server, with these variables.
pub fn run_alone(
    name: &str,
    server: &Path,
    variables: &[(&str, &str)],
) -> Result<Result<Ran, Missing>, String> {
    match set_up(name)? {
        Ok(mut suite) => {
            suite.command.envs(variables.iter().copied());
            run(name, suite, server).map(Ok)
        }
        Err(missing) => Ok(Err(missing)),
    }
}

fn run(name: &str, suite: Suite, binary: &Path) -> Result<Ran, String> {
    let Suite { mut command, is_shown, report } = suite;
    let server = Server::start(binary, &directory()?.join(format!("{name}-server")))?;
    let log = server.log().to_owned();
    server.describe(&mut command);
    // For tests that start a server of their own, with other options. They run in a folder of their own, too.
    command.env("LAZULITE_SERVER", fs::canonicalize(binary).unwrap_or_else(|_| binary.to_owned()));
    report.clear();
    let finished = if is_shown {
        process::run(&mut command)?
    } else {
        process::run_quietly(&mut command, &directory()?.join(format!("{name}.log")))?
    };
    if !is_shown && !finished.succeeded {
        println!("{}", finished.output);
    }
    let cases = report.read(&finished.output)?;
    let mut counts = cases::counts(&cases).of_run(finished.succeeded);
    if let Err(message) = server.stop() {
        println!("{message}");
        counts += Counts::ONE_FAILED;
    }
    if counts.failed > 0 {
        println!("the server's log: {}", log.display());
    }
    Ok(Ran { cases, counts })
}

/// Runs a suite against servers that another program starts. `host` is the command of that program, which runs the
/// command that follows its arguments and tells it where the servers are.
pub fn run_hosted(name: &str, mut host: Command) -> Result<Result<Ran, Missing>, String> {
    let Suite { command, report, .. } = match set_up(name)? {
        Ok(suite) => suite,
        Err(missing) => return Ok(Err(missing)),
    };
    host.arg("--").arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        host.current_dir(folder);
    }
    host.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    report.clear();
    let finished = process::run(&mut host)?;
    let cases = report.read(&finished.output)?;
    let counts = cases::counts(&cases).of_run(finished.succeeded);
    Ok(Ok(Ran { cases, counts }))
}

/// The folder of a suite's tests.
pub fn tests(name: &str) -> PathBuf {
    process::root().join("tests").join("sdk").join(name)
}

/// Where suites keep their downloads, builds and reports.
pub fn directory() -> Result<PathBuf, String> {
    Ok(process::target_directory()?.join("sdk"))
}

/// The files of a folder whose names end with `end`, sorted.
pub fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found.sort();
    Ok(found)
}

pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
