//! `lazulite-trials`: long tests of what the server survives, each a command with a choice of length.
//!
//! Owns: the command line. Each trial is a module whose `run` reads its own options, prints what it did and returns
//! whether every promise held. All of them drive the real binary over real sockets and real files, except the
//! simulation, which must control the clock and the disk. `cargo xtask` builds what is needed and runs this program.

mod backup_load;
mod blob;
mod blob_crash;
mod blob_histories;
mod contents;
mod crash;
mod damage;
mod disk;
mod disk_log;
mod disk_states;
mod employees;
mod gauge;
mod heavy;
mod histories;
mod hoarders;
mod hostile;
mod ledger;
mod light_client;
mod load;
mod long_scans;
mod mix;
mod neighbours;
mod options;
mod overload;
mod power;
mod promises;
mod queue;
mod queue_crash;
mod queue_histories;
mod queue_simulate;
mod recording;
mod restore_cuts;
#[cfg(target_os = "linux")]
mod scale_out;
mod seeded_bugs;
mod simulate;
mod soak;
mod soak_requests;
mod summary;
mod victim;
#[cfg(unix)]
mod with_postgres;

use std::process::ExitCode;

use lexopt::{Arg, Parser};
use loadgen::Error;

/// A trial. Returns `Ok(false)` if a promise was broken; it has already printed which.
type Trial = fn(&mut Parser) -> Result<bool, Error>;

/// Name, what it does, and the trial.
const TRIALS: [(&str, &str, Trial); 17] = [
    ("crash", "kill -9 under load, again and again over one growing store", crash::run),
    ("queue-crash", "kill -9 under queue operations, with a ledger of messages", queue_crash::run),
    (
        "blob-crash",
        "kill -9 while blobs are written, read and swept, with a ledger of every byte",
        blob_crash::run,
    ),
    ("employees", "a transaction through a queue; its workers and the server die", employees::run),
    ("power", "disk states that a power cut could leave, each opened and checked", power::run),
    ("damage", "bytes lost or flipped at rest: found, reported, never served", damage::run),
    ("disk", "a full disk, a read-only directory, no file handles left", disk::run),
    ("histories", "concurrent histories over HTTP, checked for linearizability", histories::run),
    ("queue-histories", "concurrent histories of queue operations, checked for order", queue_histories::run),
    ("blob-histories", "concurrent histories of blobs with conditions and leases", blob_histories::run),
    ("simulate", "engine and rules against a model, with seeded time and faults", simulate::run),
    ("queue-simulate", "the rules of queues, with seeded time, turns and faults", queue_simulate::run),
    ("seeded-bugs", "each planted bug must be caught by one of the others", seeded_bugs::run),
    ("overload", "ten times the load the server can handle, and hostile queries", overload::run),
    ("soak", "a mixed load for minutes, with plots of memory, files and latency", soak::run),
    ("backup", "a backup under write load is a moment of the ledger", backup_load::run),
    ("scale-out", "two front ends on a PostgreSQL cluster whose parts die", scale_out),
];

/// PostgreSQL's processes are found in ways that only Linux has.
#[cfg(target_os = "linux")]
fn scale_out(options: &mut Parser) -> Result<bool, Error> {
    scale_out::run(options)
}

#[cfg(not(target_os = "linux"))]
fn scale_out(_: &mut Parser) -> Result<bool, Error> {
    println!("SKIPPED: the cluster runs on Linux only");
    Ok(true)
}

fn main() -> ExitCode {
    let mut parser = Parser::from_env();
    let result = match parser.next() {
        Ok(Some(Arg::Value(name))) => match TRIALS.iter().find(|(known, ..)| name == *known) {
            Some((_, _, trial)) => trial(&mut parser),
            None if name == "employees-worker" => employees::run_worker(&mut parser),
            #[cfg(unix)]
            None if name == "with-postgres" => with_postgres::run(&mut parser),
            None => Err(format!("there is no trial {name:?}; --help lists them").into()),
        },
        Ok(None | Some(Arg::Long("help") | Arg::Short('h'))) => {
            println!(
                "Usage: lazulite-trials TRIAL [OPTIONS]   (--help after a trial's name lists its options)\n"
            );
            for (name, purpose, _) in TRIALS {
                println!("  {name:<16} {purpose}");
            }
            Ok(true)
        }
        Ok(Some(other)) => Err(other.unexpected().into()),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
