//! The official SDKs, unmodified, against a real server.
//!
//! Each suite prepares itself (a Python environment under the target directory, `node_modules` beside the tests)
//! from versions pinned in the repository, and again only when those change. A toolchain that is not installed
//! means the suite is skipped, by name; a set-up that fails is a failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::counts::{self, Counts};
use crate::process::{self, Server};

const NODE_MAJOR_MIN: u32 = 20;

pub enum Outcome {
    Ran(Counts),
    Skipped(String),
}

/// Runs the suite called `name` against `binary`.
pub fn run(name: &str, binary: &Path) -> Result<Outcome, String> {
    let prepared = match name {
        "python" => prepare_python()?,
        "javascript" => prepare_javascript()?,
        other => return Err(format!("there is no SDK suite called '{other}'")),
    };
    let suite = match prepared {
        Ok(suite) => suite,
        Err(missing) => return Ok(Outcome::Skipped(missing)),
    };

    let server =
        Server::start(binary, &process::target_directory()?.join("sdk").join(format!("{name}-server")))?;
    let log = server.log().to_owned();
    let mut command = suite.command;
    command.env("LAZULITE_CONNECTION_STRING", server.connection_string());
    // The server is on this machine, whatever proxy the environment names.
    command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    let finished = process::run(&mut command)?;
    let mut counts = (suite.count)(&finished.output).of_run(finished.succeeded);
    if let Err(message) = server.stop() {
        println!("{message}");
        counts += Counts::ONE_FAILED;
    }
    if counts.failed > 0 {
        println!("the server's log: {}", log.display());
    }
    Ok(Outcome::Ran(counts))
}

struct Suite {
    command: Command,
    count: fn(&str) -> Counts,
}

/// A suite that is ready to run, or the name of what is not installed.
type Prepared = Result<Suite, String>;

fn prepare_python() -> Result<Prepared, String> {
    let Some(python) = ["python3", "python"].into_iter().find(|name| {
        let check = "import sys; sys.exit(sys.version_info < (3, 11))";
        process::answer(Command::new(name).args(["-c", check])).is_some()
    }) else {
        return Ok(Err("python3 (3.11 or newer) is not installed".to_owned()));
    };
    if process::answer(Command::new(python).args(["-c", "import venv, ensurepip"])).is_none() {
        return Ok(Err("the venv module of python3 is not installed".to_owned()));
    }

    let tests = process::root().join("tests").join("sdk").join("python");
    let environment = process::target_directory()?.join("sdk").join("python");
    let environment_python = if cfg!(windows) {
        environment.join("Scripts").join("python.exe")
    } else {
        environment.join("bin").join("python")
    };
    let requirements = tests.join("requirements.txt");
    let version = process::answer(Command::new(python).arg("--version")).unwrap_or_default();
    let wanted = format!("{version}\n{}", read(&requirements)?);
    let stamp = environment.join("installed.txt");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
        println!("preparing a Python environment in {}", environment.display());
        must_run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&environment))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        must_run(Command::new(&environment_python).args(install).arg(&requirements))?;
        write(&stamp, &wanted)?;
    }

    let mut command = Command::new(environment_python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(tests);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(Ok(Suite { command, count: counts::from_pytest }))
}

fn prepare_javascript() -> Result<Prepared, String> {
    let Some(version) = process::answer(Command::new("node").arg("--version")) else {
        return Ok(Err("node is not installed".to_owned()));
    };
    let major: u32 =
        version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    if major < NODE_MAJOR_MIN {
        return Ok(Err(format!("node {version} is too old, {NODE_MAJOR_MIN} or newer is needed")));
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    if process::answer(Command::new(npm).arg("--version")).is_none() {
        return Ok(Err("npm is not installed".to_owned()));
    }

    let tests = process::root().join("tests").join("sdk").join("javascript");
    let wanted = read(&tests.join("package-lock.json"))?;
    let stamp = tests.join("node_modules").join(".installed-lock.json");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&wanted) {
        println!("installing the JavaScript packages in {}", tests.join("node_modules").display());
        let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
        must_run(Command::new(npm).args(install).current_dir(&tests))?;
        write(&stamp, &wanted)?;
    }

    let mut files: Vec<PathBuf> = fs::read_dir(&tests)
        .map_err(|error| format!("cannot list {}: {error}", tests.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    files.sort();
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=spec"]).args(files).current_dir(tests);
    Ok(Ok(Suite { command, count: counts::from_node_test }))
}

fn must_run(command: &mut Command) -> Result<(), String> {
    let finished = process::run(command)?;
    if !finished.succeeded {
        return Err(format!("set-up failed: {command:?}"));
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
