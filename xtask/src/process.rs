//! Processes: runs tools, keeps their output, and knows where programs and the repository are.
//!
//! Promises: a tool's output is both shown and returned, or goes to a log file, so that its test cases can be counted.
//! Bytes that are not UTF-8 never stop the gate. Counting is the work of `counts` and `cases`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

pub struct Finished {
    pub succeeded: bool,
    pub output: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Cargo's target directory, wherever it is configured to be. This program is inside it, at `debug/xtask`.
pub fn target_directory() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let directory = program.parent().and_then(Path::parent);
    directory.map(Path::to_owned).ok_or_else(|| format!("{} is not in a target directory", program.display()))
}

/// A program's file name on this system.
pub fn program_name(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// Where `cargo build --release` puts a program.
pub fn release_program(name: &str) -> Result<PathBuf, String> {
    Ok(target_directory()?.join("release").join(program_name(name)))
}

/// The packages that `cargo test` is given, and every command that wants to use what it built. The engine on PostgreSQL has a
/// step of its own.
pub const TESTED_PACKAGES: [&str; 3] = ["--workspace", "--exclude", "lazulite-engine-postgres"];

/// Builds every release program that the gate runs: the server, its trials with the library that records file operations for
/// them, and the measurement of costs. Always all of them, because cargo builds a package anew when others beside it ask
/// for other features of what they share.
pub fn build_release_programs() -> Result<bool, String> {
    let packages = ["lazulite", "trials", "shim", "cost"].map(|package| format!("--package={package}"));
    Ok(run(cargo().args(["build", "--release"]).args(packages))?.succeeded)
}

pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end. Standard output is shown line by line and returned; standard error is only shown.
pub fn run(command: &mut Command) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        // Lossy on purpose: a test that prints bytes outside UTF-8 must not stop the gate.
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|error| format!("cannot read what {name} prints: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            output.push_str(&line);
            output.push('\n');
        }
    }
    let status = child.wait().map_err(|error| format!("cannot wait for {name}: {error}"))?;
    note_end(&name, status.success(), &output);
    Ok(Finished { succeeded: status.success(), output })
}

/// What the commands that failed said about it. In a long output it is far up, or lost.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// A command that fails in a hundred places is looked into by itself.
const FAILURE_LINE_COUNT_MAX: usize = 20;

/// Remembers what a command said if it failed.
fn note_end(name: &str, succeeded: bool, output: &str) {
    if succeeded {
        return;
    }
    let mut failures = lock_failures();
    failures.push(format!("{name}:"));
    failures.extend(telling_lines(output).take(FAILURE_LINE_COUNT_MAX).map(|line| format!("  {line}")));
}

fn lock_failures() -> std::sync::MutexGuard<'static, Vec<String>> {
    FAILURES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Every command that failed so far, and what it said on its standard output.
pub fn failures() -> Vec<String> {
    lock_failures().clone()
}

/// The lines that name what failed: of `cargo test`, of our trials, and of the clients' test runners.
fn telling_lines(output: &str) -> impl Iterator<Item = &str> {
    const MARKS: [&str; 7] = ["FAILED", "panicked at", "BROKEN", "Error: ", "error: ", "--- FAIL", "not ok "];
    output.lines().filter(|line| MARKS.iter().any(|mark| line.contains(mark)))
}

/// Runs a command to its end without showing anything. All its output goes to the file `log` and is returned.
pub fn run_quietly(command: &mut Command, log: &Path) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (out, errors) = log_files(log)?;
    command.stdin(Stdio::null()).stdout(out).stderr(errors);
    let status = command.status().map_err(|error| format!("cannot start {name}: {error}"))?;
    let bytes = std::fs::read(log).map_err(|error| format!("cannot read {}: {error}", log.display()))?;
    let output = String::from_utf8_lossy(&bytes).into_owned();
    note_end(&name, status.success(), &output);
    Ok(Finished { succeeded: status.success(), output })
}

/// Two handles to one new log file, for standard output and standard error.
pub fn log_files(path: &Path) -> Result<(File, File), String> {
    let file = create(path)?;
    let other = file.try_clone().map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok((file, other))
}

/// Creates a file, and its directory when that is missing.
pub fn create(path: &Path) -> Result<File, String> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    }
    File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()))
}

/// The output of a command that succeeds; `None` when the program is missing or fails.
pub fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The only place in xtask that reads the clock.
pub fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "xtask times its own steps; nothing here is simulated")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_and_nothing_else() {
        let output = "test a ... ok\ntest b ... FAILED\nthread 'b' panicked at b.rs:1:2:\n    held:   c\n    BROKEN: d\nok 1 e\nnot ok 2 f\n";
        let lines: Vec<_> = telling_lines(output).collect();
        assert_eq!(
            lines,
            ["test b ... FAILED", "thread 'b' panicked at b.rs:1:2:", "    BROKEN: d", "not ok 2 f"]
        );
    }
}
