//! `cargo xtask cost`: builds the measurement of instructions and allocations in release mode and runs it.
//!
//! `proof/cost` decides what is measured and how. Its arguments are passed on unchanged.

use std::process::Command;

use crate::process::{self, Finished};

pub fn run(arguments: &[String]) -> Result<bool, String> {
    Ok(measure(arguments)?.succeeded)
}

pub fn measure(arguments: &[String]) -> Result<Finished, String> {
    println!("==> building the measurement of costs");
    if !process::build_release_programs()? {
        return Err("the measurement does not build".to_owned());
    }
    process::run(
        Command::new(process::release_program("lazulite-cost")?).args(arguments).current_dir(process::root()),
    )
}
