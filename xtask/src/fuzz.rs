//! `cargo xtask fuzz`: builds the fuzzing driver in release mode, with its assertions on, and lets it run.
//!
//! What is fuzzed and how is the business of `proof/fuzzing`; its arguments are passed on untouched.

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
    let name = format!("lazulite-fuzz{}", std::env::consts::EXE_SUFFIX);
    let driver = process::target_directory()?.join("fuzz").join(name);
    let status = Command::new(&driver)
        .args(arguments)
        .current_dir(process::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", driver.display()))?;
    Ok(status.success())
}

/// How long each target runs in the gate.
const SLICE_SECONDS: &str = "60";

/// The gate's slice: a minute for each target, built as the tests are, beside whatever else runs and behind it.
pub struct Slice {
    running: JoinHandle<Result<Finished, String>>,
}

impl Slice {
    pub fn start() -> Result<Slice, String> {
        let target = process::target_directory()?;
        if !process::run(cargo().args(["build", "--package", "fuzzing"]))?.succeeded {
            return Err("the driver does not build".to_owned());
        }
        let driver = target.join("debug").join(format!("lazulite-fuzz{}", std::env::consts::EXE_SUFFIX));
        let log = target.join("fuzz.log");
        let running = std::thread::spawn(move || {
            let mut command = behind_others(driver);
            command.args(["--seconds", SLICE_SECONDS, "--slowness", "20"]).current_dir(process::root());
            process::run_quietly(&mut command, &log)
        });
        Ok(Slice { running })
    }

    /// Whether nothing was found; what it printed is shown.
    pub fn finish(self) -> Result<bool, String> {
        let finished = self.running.join().map_err(|_| "the fuzzing thread panicked")??;
        println!("{}", finished.output.trim_end());
        Ok(finished.succeeded)
    }
}

/// Only what the others leave of the processors, where there is a way to say so.
fn behind_others(program: PathBuf) -> Command {
    let has_nice = process::answer(Command::new("nice").arg("true")).is_some();
    if !has_nice {
        return Command::new(program);
    }
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}
