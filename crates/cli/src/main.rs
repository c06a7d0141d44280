//! The `lazulite` binary: picks the command that the arguments name and runs it.
//!
//! Promises: every failure ends here, as one sentence on standard error and exit code 1. Only `check` has another
//! code: 2 when it found damage. `args` reads the arguments; each command has a module of its own.

mod account;
mod account_data;
mod account_source;
mod account_watch;
mod accounts_file;
mod admin_port;
mod advise;
mod args;
mod backup;
mod bench;
mod check;
mod check_engine;
mod config;
mod contents_place;
mod control;
mod engine_accounts;
mod engine_command;
mod help;
mod jwks;
mod logger;
mod memory;
mod moving;
mod place;
mod prices;
mod progress;
mod random;
mod rehearsal;
mod remote;
mod restore;
mod restore_place;
mod sas;
mod seal;
mod serve;
mod signals;
mod store;
mod unfinished;

use std::process::ExitCode;

use args::Command;
use place::StoreChoice;

/// A row is allocated by the thread that serves its request and freed by the one that folds it. The system's allocator takes
/// a lock for that, and an eighth of the time under inserts went into it (docs/decisions/0024-allocator.md).
#[cfg(all(unix, feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
        Command::Help => print!("{}", help::HELP),
        Command::Version => println!("lazulite {}", env!("CARGO_PKG_VERSION")),
        Command::Serve(flags) => config::gather(*flags).and_then(serve::serve)?,
        Command::Account { command, store } => account::run(command, &StoreChoice::of(store)?)?,
        Command::Sas { request, store } => sas::run(&request, &StoreChoice::of(store)?)?,
        Command::Backup { request, store } => backup::run(&request, &StoreChoice::of(store)?)?,
        Command::Restore { request, store } => restore::run(request, &StoreChoice::of(store)?)?,
        Command::Move(request) => moving::run(&request)?,
        Command::Engine(command) => engine_command::run(&command)?,
        Command::Bench(request) => bench::run(&request)?,
        Command::Advise(request) => advise::run(&request)?,
        Command::Check { backup, store } => return check::run(backup.as_deref(), &StoreChoice::of(store)?),
    }
    Ok(ExitCode::SUCCESS)
}
