//! `cargo xtask crash|power|damage|…`: builds the server and the trials in release mode and lets a trial run.
//!
//! What a trial does is the business of `proof/trials`; its arguments are passed on untouched, after the path of
//! the server's binary.

use std::process::Command;

use crate::process::{self, cargo};
use crate::test::server_binary;

/// The names that `cargo xtask` passes on.
pub const TRIALS: [&str; 10] = [
    "crash",
    "power",
    "damage",
    "disk",
    "histories",
    "simulate",
    "seeded-bugs",
    "overload",
    "soak",
    "backup",
];

/// A bounded slice of each, for the gate: name, what it shows, arguments. The seeds are fixed, so that a failure is the
/// change's and not the day's; the long forms take new ones.
pub const SLICES: [(&str, &str, &[&str]); 8] = [
    ("crash", "kill -9 under a mixed load, checked against a ledger", &["--rounds", "12", "--seed", "1"]),
    ("power", "states that a power cut could leave, each opened", &["--states", "500", "--seed", "1"]),
    ("damage", "bytes flipped or lost at rest", &["--states", "300", "--seed", "1"]),
    ("disk", "a full disk, a read-only directory, no file handles", &[]),
    (
        "histories",
        "concurrent histories, checked for linearizability",
        &["--histories", "100", "--seed", "1"],
    ),
    ("simulate", "engine and rules against a model", &["--operations", "300000", "--seed", "1"]),
    ("backup", "a backup under load, restored and compared", &["--entities", "20000"]),
    ("overload", "heavy clients beside light ones", &["--only", "heavy", "--seconds", "3", "--seed", "1"]),
];

pub fn run(trial: &str, arguments: &[String]) -> Result<bool, String> {
    println!("==> building the server and the trials");
    if !build()? {
        return Ok(false);
    }
    let status = command(trial)?
        .args(arguments)
        .status()
        .map_err(|error| format!("cannot start the trial {trial}: {error}"))?;
    Ok(status.success())
}

/// Builds the server, the trials, and what records file operations for them.
pub fn build() -> Result<bool, String> {
    let packages = ["lazulite", "trials", "shim"].map(|package| format!("--package={package}"));
    Ok(process::run(cargo().args(["build", "--release"]).args(packages))?.succeeded)
}

/// A trial of what was built, ready to take its arguments.
pub fn command(trial: &str) -> Result<Command, String> {
    let server = server_binary()?;
    let trials = server.with_file_name(format!("lazulite-trials{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(trials);
    command.arg(trial).arg("--server").arg(server).current_dir(process::root());
    Ok(command)
}
