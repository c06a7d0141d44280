//! The one binary: `lazulite serve`, and the commands beside it.
//!
//! Every way to fail ends here, as one clear sentence and exit code 1.

mod account;
mod accounts_file;
mod args;
mod config;
mod jwks;
mod logger;
mod sas;
mod serve;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use args::Command;

const LOCATION_DEFAULT: &str = "lazulite-data";

fn main() -> ExitCode {
    let outcome = args::parse(std::env::args_os().skip(1)).and_then(|command| match command {
        Command::Help => {
            print!("{}", args::HELP);
            Ok(())
        }
        Command::Version => {
            println!("lazulite {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Serve(flags) => config::gather(flags).and_then(serve::serve),
        Command::Account { command, location } => account::run(command, &location_or_default(location)),
        Command::Sas { request, location } => sas::run(&request, &location_or_default(location)),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("lazulite: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn location_or_default(location: Option<PathBuf>) -> PathBuf {
    location.unwrap_or_else(|| Path::new(LOCATION_DEFAULT).to_owned())
}
