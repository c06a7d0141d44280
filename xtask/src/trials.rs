//! `cargo xtask crash|power|damage|…`: builds the server and the trials in release mode and lets a trial run.
//!
//! What a trial does is the business of `crates/trials`; its arguments are passed on untouched, after the path of
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

pub fn run(trial: &str, arguments: &[String]) -> Result<bool, String> {
    println!("==> building the server and the trials");
    let built = process::run(cargo().args([
        "build",
        "--release",
        "--package",
        "cli",
        "--package",
        "trials",
        "--package",
        "shim",
    ]))?;
    if !built.succeeded {
        return Ok(false);
    }
    let server = server_binary()?;
    let trials = server.with_file_name(format!("lazulite-trials{}", std::env::consts::EXE_SUFFIX));
    let status = Command::new(&trials)
        .arg(trial)
        .arg("--server")
        .arg(&server)
        .args(arguments)
        .current_dir(process::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", trials.display()))?;
    Ok(status.success())
}
