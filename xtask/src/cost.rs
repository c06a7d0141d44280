//! `cargo xtask cost`: builds the measurement of instructions and allocations in release mode and lets it run.
//!
//! What is measured and how is the business of `proof/cost`; its arguments are passed on untouched.

use std::process::Command;

use crate::process::{self, Finished, cargo};
use crate::test::server_binary;

pub fn run(arguments: &[String]) -> Result<bool, String> {
    Ok(measure(arguments)?.succeeded)
}

pub fn measure(arguments: &[String]) -> Result<Finished, String> {
    println!("==> building the measurement of costs");
    let built = process::run(cargo().args(["build", "--release", "--package", "cost"]))?;
    if !built.succeeded {
        return Err("the measurement does not build".to_owned());
    }
    let program = server_binary()?.with_file_name(format!("lazulite-cost{}", std::env::consts::EXE_SUFFIX));
    process::run(Command::new(program).args(arguments).current_dir(process::root()))
}
