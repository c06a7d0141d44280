//! `cargo xtask fuzz`: builds the fuzzing driver in release mode, with its assertions on, and lets it run.
//!
//! What is fuzzed and how is the business of `crates/fuzzing`; its arguments are passed on untouched.

use std::process::Command;

use crate::process::{self, cargo};

pub fn run(arguments: &[String]) -> Result<bool, String> {
    println!("==> building the fuzzing driver");
    let built = process::run(cargo().args(["build", "--profile", "fuzz", "--package", "fuzzing"]))?;
    if !built.succeeded {
        return Ok(false);
    }
    let name = format!("lazulite-fuzz{}", std::env::consts::EXE_SUFFIX);
    let driver = process::target_directory()?.join("fuzz").join(name);
    let status = Command::new(&driver)
        .args(arguments)
        .current_dir(process::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", driver.display()))?;
    Ok(status.success())
}
