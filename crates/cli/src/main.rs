//! The one binary: `lazulite serve`, and the commands beside it.
//!
//! Every way to fail ends here, as one clear sentence and exit code 1 (`check` has one more, 2: damage).

mod account;
mod accounts_file;
mod args;
mod backup;
mod bench;
mod check;
mod config;
mod control;
mod jwks;
mod logger;
mod progress;
mod restore;
mod sas;
mod serve;
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
        Command::Serve(flags) => config::gather(flags).and_then(serve::serve)?,
        Command::Account { command, location } => account::run(command, &location_or_default(location))?,
        Command::Sas { request, location } => sas::run(&request, &location_or_default(location))?,
        Command::Backup { request, location } => backup::run(&request, &location_or_default(location))?,
        Command::Restore { request, location } => restore::run(request, &location_or_default(location))?,
        Command::Bench(request) => bench::run(&request)?,
        Command::Check { backup, location } => {
            return check::run(backup.as_deref(), &location_or_default(location));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn location_or_default(location: Option<PathBuf>) -> PathBuf {
    location.unwrap_or_else(|| Path::new(LOCATION_DEFAULT).to_owned())
}
