//! `cargo xtask fuzz`: builds the fuzzing driver in release mode, with assertions on, and runs it. Also the gate's
//! slice.
//!
//! `proof/fuzzing` decides what is fuzzed and how. Its arguments are passed on unchanged.

use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;

use crate::process::{self, Finished, cargo};

pub fn run(arguments: &[String]) -> Result<bool, String> {
    println!("==> building the fuzzing driver");
    let built = process::run(cargo().args(["build", "--profile", "fuzz", "--package", "fuzzing"]))?;
    if !built.succeeded {
        return Ok(false);
    }
    let driver = process::target_directory()?.join("fuzz").join(driver_name());
    let status = Command::new(&driver)
        .args(arguments)
        .current_dir(process::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", driver.display()))?;
    Ok(status.success())
}

fn driver_name() -> String {
    process::program_name("lazulite-fuzz")
}

/// How long each target runs in the gate.
const SLICE_SECONDS: &str = "60";

/// The gate's slice: a minute per target, built like the tests, in the background and at low priority.
pub struct Slice {
    running: JoinHandle<Result<Finished, String>>,
}

impl Slice {
    pub fn start() -> Result<Slice, String> {
        let target = process::target_directory()?;
        if !process::run(cargo().args(["build", "--package", "fuzzing"]))?.succeeded {
            return Err("the driver does not build".to_owned());
        }
        let driver = target.join("debug").join(driver_name());
        let log = target.join("fuzz.log");
        let running = std::thread::spawn(move || {
            let mut command = at_low_priority(driver);
            command.args(["--seconds", SLICE_SECONDS, "--slowness", "20"]).current_dir(process::root());
            process::run_quietly(&mut command, &log)
        });
        Ok(Slice { running })
    }

    /// Waits for the slice and prints its output. `true` when it found nothing.
    pub fn finish(self) -> Result<bool, String> {
        let finished = self.running.join().map_err(|_| "the fuzzing thread panicked")??;
        println!("{}", finished.output.trim_end());
        Ok(finished.succeeded)
    }
}

/// Runs the program under `nice`, where that exists.
fn at_low_priority(program: PathBuf) -> Command {
    let has_nice = process::answer(Command::new("nice").arg("true")).is_some();
    if !has_nice {
        return Command::new(program);
    }
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}
