//! The load generator: `lazulite-bench run` measures, `lazulite-bench hello` is the ceiling to measure against.
//!
//! Numbers of one machine mean little, so the report gives ratios within one run: every workload runs against the
//! durable server, the in-memory server and a bare HTTP server in turn, several rounds, medians. The generator is one
//! thread in its own process and says how busy it was, so that nobody mistakes its limit for the server's.

mod hello;
mod measure;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench::Error;
use lexopt::{Arg, Parser, ValueExt};

const HELP: &str = "\
Usage: cargo xtask bench [OPTIONS]
       lazulite-bench run --server PATH [OPTIONS]
       lazulite-bench hello [--port PORT]

Options of run:
  --server PATH      the lazulite binary (cargo xtask bench sets it)
  --rounds N         rounds per workload, the report gives medians [3]
  --seconds S        length of one measurement, after a warm-up of a third of it [3]
  --connections N    connections of the workloads that normally have 64
  --only NAME        only this workload, may be repeated: read-1k, read-100k, read-1m, insert, upsert, page, batch
  --quick            one short round, and no table of a million entities
  --data DIR         where the durable server keeps its data [in the target directory]
  --out FILE         write the report there too
";

pub struct Options {
    server: PathBuf,
    data: Option<PathBuf>,
    rounds: usize,
    seconds: Duration,
    connections: Option<usize>,
    only: Vec<String>,
    quick: bool,
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let mut parser = Parser::from_env();
    match parser.next()? {
        Some(Arg::Value(command)) if command == "run" => {
            let Some(options) = run_options(&mut parser)? else { return Ok(()) };
            let report = measure::run(&options)?;
            println!("{report}");
            if let Some(path) = &options.out {
                std::fs::write(path, &report)
                    .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            }
            Ok(())
        }
        Some(Arg::Value(command)) if command == "hello" => {
            let mut port = 0;
            while let Some(argument) = parser.next()? {
                match argument {
                    Arg::Long("port") => port = parser.value()?.parse()?,
                    other => return Err(other.unexpected().into()),
                }
            }
            hello::serve(port)
        }
        None | Some(Arg::Long("help") | Arg::Short('h')) => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(other.unexpected().into()),
    }
}

/// `None` when help was asked for and given.
fn run_options(parser: &mut Parser) -> Result<Option<Options>, Error> {
    let mut server = None;
    let mut data = None;
    let mut rounds = None;
    let mut seconds = None;
    let mut connections = None;
    let mut only = Vec::new();
    let mut quick = false;
    let mut out = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("server") => server = Some(PathBuf::from(parser.value()?)),
            Arg::Long("data") => data = Some(PathBuf::from(parser.value()?)),
            Arg::Long("rounds") => rounds = Some(parser.value()?.parse::<usize>()?),
            Arg::Long("seconds") => seconds = Some(parser.value()?.parse::<f64>()?),
            Arg::Long("connections") => connections = Some(parser.value()?.parse::<usize>()?),
            Arg::Long("only") => only.push(parser.value()?.string()?),
            Arg::Long("quick") => quick = true,
            Arg::Long("out") => out = Some(PathBuf::from(parser.value()?)),
            Arg::Long("help") | Arg::Short('h') => {
                print!("{HELP}");
                return Ok(None);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let seconds = seconds.unwrap_or(if quick { 1.0 } else { 3.0 });
    let rounds = rounds.unwrap_or(if quick { 1 } else { 3 });
    if !(0.1..=600.0).contains(&seconds) {
        return Err("--seconds must lie between 0.1 and 600".into());
    }
    if rounds == 0 || connections == Some(0) {
        return Err("--rounds and --connections must be at least 1".into());
    }
    Ok(Some(Options {
        server: server.ok_or("--server is missing: which lazulite binary is to be measured?")?,
        data,
        rounds,
        seconds: Duration::from_secs_f64(seconds),
        connections,
        only,
        quick,
        out,
    }))
}
