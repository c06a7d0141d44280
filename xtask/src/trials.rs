//! `cargo xtask crash|power|damage|…`: builds the server and the trials in release mode and runs one trial.
//!
//! `proof/trials` decides what a trial does. It gets the path of the server's binary, then the arguments, unchanged.

use std::process::Command;

use crate::process;

/// The names that `cargo xtask` passes on.
pub const TRIALS: [&str; 16] = [
    "crash",
    "queue-crash",
    "blob-crash",
    "employees",
    "power",
    "damage",
    "disk",
    "histories",
    "queue-histories",
    "blob-histories",
    "simulate",
    "queue-simulate",
    "seeded-bugs",
    "overload",
    "soak",
    "backup",
];

/// A bounded slice of each trial for the gate: name, what it shows, arguments. The seeds are fixed, so that a failure
/// comes from the change under test. The long forms use new seeds.
pub const SLICES: [(&str, &str, &[&str]); 14] = [
    ("crash", "kill -9 under a mixed load, checked against a ledger", &["--rounds", "12", "--seed", "1"]),
    (
        "queue-crash",
        "kill -9 under queue operations, checked against a ledger of messages",
        &["--rounds", "10", "--seed", "1"],
    ),
    (
        "blob-crash",
        "kill -9 while blobs are written, read and swept, checked against a ledger of every byte",
        &["--rounds", "12", "--seed", "1"],
    ),
    (
        "employees",
        "a transaction through a queue, with workers and a server that die",
        &["--rounds", "20", "--seed", "1"],
    ),
    ("power", "states that a power cut could leave, each opened", &["--states", "250", "--seed", "1"]),
    ("damage", "bytes flipped or lost at rest", &["--states", "150", "--seed", "1"]),
    ("disk", "a full disk, a read-only directory, no file handles, a replaced directory", &[]),
    (
        "histories",
        "concurrent histories, checked for linearizability",
        &["--histories", "100", "--seed", "1"],
    ),
    (
        "queue-histories",
        "concurrent histories of queue operations, checked for order",
        &["--histories", "60", "--seed", "1"],
    ),
    (
        "blob-histories",
        "concurrent histories of blobs with conditions and leases, checked for linearizability",
        &["--histories", "100", "--seed", "1"],
    ),
    ("simulate", "engine and rules against a model", &["--operations", "300000", "--seed", "1"]),
    (
        "queue-simulate",
        "the rules of queues, with seeded time, turns and faults",
        &["--operations", "300000", "--seed", "1"],
    ),
    ("backup", "a backup under load, restored and compared", &["--entities", "20000"]),
    (
        "overload",
        "heavy clients and greedy neighbours",
        &["--only", "heavy,greedy,scans,echo,heads", "--seconds", "3", "--seed", "1"],
    ),
];

pub fn run(trial: &str, arguments: &[String]) -> Result<bool, String> {
    println!("==> building the server and the trials");
    if !process::build_release_programs()? {
        return Ok(false);
    }
    let status = command(trial)?
        .args(arguments)
        .status()
        .map_err(|error| format!("cannot start the trial {trial}: {error}"))?;
    Ok(status.success())
}

/// The command of a built trial, still without its own arguments.
pub fn command(trial: &str) -> Result<Command, String> {
    let mut command = Command::new(process::release_program("lazulite-trials")?);
    command.arg(trial).arg("--server").arg(process::release_program("lazulite")?);
    command.current_dir(process::root());
    Ok(command)
}
