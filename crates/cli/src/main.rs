//! The `lazulite` binary: picks the command that the arguments name and runs it.
//!
//! Promises: every failure ends here, as one sentence on standard error and exit code 1. Only `check` has another
//! code: 2 when it found damage. `args` reads the arguments; each command has a module of its own.

mod account;
mod account_data;
mod account_source;
mod accounts_file;
mod admin_port;
mod advise;
mod args;
mod backup;
mod bench;
mod check;
mod config;
mod contents_place;
mod control;
mod jwks;
mod logger;
mod memory;
mod open_files;
mod prices;
mod progress;
mod random;
mod rehearsal;
mod restore;
mod restore_place;
mod sas;
mod serve;
mod signals;
mod store;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use args::Command;

const LOCATION_DEFAULT: &str = "lazulite-data";

fn main() -> ExitCode {
    match args::parse(std::env::args_os().skip(1)).and_then(run) {
        Ok(code) => code,
        Err(sentence) => {
            eprintln!("lazulite: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, String> {
    match command {
        Command::Help => print!("{}", args::HELP),
        Command::Version => println!("lazulite {}", env!("CARGO_PKG_VERSION")),
        Command::Serve(flags) => config::gather(*flags).and_then(serve::serve)?,
        Command::Account { command, location } => account::run(command, &location_or_default(location))?,
        Command::Sas { request, location } => sas::run(&request, &location_or_default(location))?,
        Command::Backup { request, location } => backup::run(&request, &location_or_default(location))?,
        Command::Restore { request, location } => restore::run(request, &location_or_default(location))?,
        Command::Bench(request) => bench::run(&request)?,
        Command::Advise(request) => advise::run(&request)?,
        Command::Check { backup, location } => {
            return check::run(backup.as_deref(), &location_or_default(location));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn location_or_default(location: Option<PathBuf>) -> PathBuf {
    location.unwrap_or_else(|| Path::new(LOCATION_DEFAULT).to_owned())
}
