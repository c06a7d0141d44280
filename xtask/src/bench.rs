//! `cargo xtask bench`: builds the server and the load generator in release mode and lets the generator measure.
//!
//! What is measured and how is the business of `crates/bench`; its arguments are passed on untouched.

use std::process::Command;

use crate::process::{self, cargo};
use crate::test::server_binary;

pub fn run(arguments: &[String]) -> Result<bool, String> {
    println!("==> building the server and the load generator");
    let built = process::run(cargo().args(["build", "--release", "--package", "cli", "--package", "bench"]))?;
    if !built.succeeded {
        return Ok(false);
    }
    let server = server_binary()?;
    let generator = server.with_file_name(format!("lazulite-bench{}", std::env::consts::EXE_SUFFIX));
    let status = Command::new(&generator)
        .arg("run")
        .arg("--server")
        .arg(&server)
        .args(arguments)
        .current_dir(process::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", generator.display()))?;
    Ok(status.success())
}
