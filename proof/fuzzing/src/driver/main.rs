//! `lazulite-fuzz`: runs every target with mutated inputs, on any toolchain.
//!
//! Owns: the command line, the threads, the table of results. Promises: the same seed gives the same inputs, whatever
//! the number of threads; every failure is reported with its input and the command that repeats it; the exit status is
//! 0 only if nothing panicked, every round trip held, and no work was out of proportion to its input.
//!
//! Unlike libFuzzer it does not see which code an input reaches. It keeps inputs that were accepted or that had a new
//! outcome, and mutates them further. Leaves to others: what is called with an input (the library).

mod clock;
mod cost;
mod failure;
mod mutate;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use fuzzing::{Golden, Outcome, TARGETS, Target};
use lexopt::prelude::*;

use run::{Budget, Report};

const HELP: &str = "\
Usage: cargo xtask fuzz [OPTIONS]

Options:
  --seconds S          run each target for this long (default: 10, if no count is given)
  --executions N       run each target with this many mutated inputs
  --target NAME        only this target; may be repeated
  --seed N             the seed of the mutations (default: 1)
  --jobs N             targets that run at once (default: one per core)
  --input FILE         run one saved input through the target given with --target
  --outcomes           print how often each outcome occurred, for each target
  --write-corpus DIR   write each target's seeds and dictionary for libFuzzer, and run nothing
  --slowness N         this build may take N times as long as an optimised one (default: 1)
  --list               print the targets
  --help               print this text
";

/// An execution that takes this long counts as endless.
const STALLED_MAX: Duration = Duration::from_secs(60);
/// The smallest share of inputs that a target must accept. Below it, the inputs are too broken to reach the code.
const ACCEPTED_SHARE_MIN: f64 = 0.02;
/// With fewer inputs, the share is left to chance.
const JUDGED_EXECUTION_COUNT_MIN: u64 = 20_000;

struct Options {
    budget: Budget,
    targets: Vec<&'static Target>,
    seed: u64,
    jobs: usize,
    input: Option<PathBuf>,
    corpus: Option<PathBuf>,
    outcomes: bool,
}

fn main() -> ExitCode {
    let result = read_options().and_then(|options| match options {
        Some(options) => act(&options),
        None => Ok(true),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn read_options() -> Result<Option<Options>, String> {
    let words = |error: lexopt::Error| error.to_string();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut options = Options {
        budget: Budget { execution_count: None, time: None },
        targets: Vec::new(),
        seed: 1,
        jobs: cores,
        input: None,
        corpus: None,
        outcomes: false,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next().map_err(words)? {
        match argument {
            Long("seconds") => options.budget.time = Some(Duration::from_secs(number(&mut parser)?)),
            Long("executions") => options.budget.execution_count = Some(number(&mut parser)?),
            Long("seed") => options.seed = number(&mut parser)?,
            Long("slowness") => cost::expect_slowness(number(&mut parser)? as u32),
            Long("jobs") => options.jobs = (number(&mut parser)? as usize).max(1),
            Long("target") => {
                let name = parser.value().and_then(|value| value.string()).map_err(words)?;
                let found = TARGETS.iter().find(|target| target.name == name);
                options
                    .targets
                    .push(found.ok_or_else(|| format!("there is no target '{name}'; --list lists them"))?);
            }
            Long("input") => options.input = Some(parser.value().map_err(words)?.into()),
            Long("write-corpus") => options.corpus = Some(parser.value().map_err(words)?.into()),
            Long("outcomes") => options.outcomes = true,
            Long("list") => {
                TARGETS.iter().for_each(|target| println!("{}", target.name));
                return Ok(None);
            }
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(None);
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if options.targets.is_empty() {
        options.targets = TARGETS.iter().collect();
    }
    if options.budget.execution_count.is_none() && options.budget.time.is_none() {
        options.budget.time = Some(Duration::from_secs(10));
    }
    Ok(Some(options))
}

fn number(parser: &mut lexopt::Parser) -> Result<u64, String> {
    parser.value().and_then(|value| value.parse()).map_err(|error| error.to_string())
}

fn act(options: &Options) -> Result<bool, String> {
    // This program only runs from a source tree.
    let golden = Golden::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden"))?;
    if let Some(folder) = &options.corpus {
        return write_corpus(&options.targets, &golden, folder)
            .map(|()| true)
            .map_err(|error| error.to_string());
    }
    failure::keep_panics_quiet();
    match &options.input {
        Some(path) => run_input(options, path),
        None => Ok(run_all(options, &golden)),
    }
}

/// Runs one saved input.
fn run_input(options: &Options, path: &Path) -> Result<bool, String> {
    let [target] = options.targets.as_slice() else { return Err("--input needs one --target".to_owned()) };
    let input = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let started = clock::now();
    match failure::attempt(target, &input) {
        Ok(outcome) => {
            println!("{}: {outcome:?} after {:?} for {} bytes", target.name, started.elapsed(), input.len());
            Ok(true)
        }
        Err(panic) => {
            println!("{}: panicked at {}: {}", target.name, panic.place, panic.message);
            Ok(false)
        }
    }
}

/// Writes what libFuzzer needs: a folder of seeds per target, and its words as a dictionary.
fn write_corpus(targets: &[&Target], golden: &Golden, folder: &Path) -> std::io::Result<()> {
    for target in targets {
        let own = folder.join(target.name);
        std::fs::create_dir_all(&own)?;
        let seeds = (target.seeds)(golden);
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(own.join(format!("seed-{number:03}")), seed)?;
        }
        let word = |token: &&[u8]| token.iter().map(|byte| format!("\\x{byte:02X}")).collect::<String>();
        let lines: String = target.tokens.iter().map(|token| format!("\"{}\"\n", word(token))).collect();
        std::fs::write(folder.join(format!("{}.dict", target.name)), lines)?;
        println!("{:<14} {} seeds, {} words", target.name, seeds.len(), target.tokens.len());
    }
    Ok(())
}

fn run_all(options: &Options, golden: &Golden) -> bool {
    let jobs = options.jobs.min(options.targets.len());
    println!("fuzzing {} targets, {jobs} at once, seed {}", options.targets.len(), options.seed);
    let next = AtomicUsize::new(0);
    let is_sound = AtomicBool::new(true);
    // Keeps the lines of two threads apart.
    let printing = Mutex::new(());
    println!(
        "{:<14} {:>11} {:>9} {:>8} {:>8} {:>8} {:>7} {:>7} {:>8}",
        "target", "executions", "per s", "largest", "accepted", "outcomes", "shapes", "growth", "ns/byte"
    );
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(target) = options.targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = run_watched(target, golden, options);
                    let is_fine = judge(&report);
                    let _lines = printing.lock();
                    print_report(target, &report, options.outcomes);
                    if let Err(why) = is_fine {
                        println!("{why}");
                        is_sound.store(false, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let is_sound = is_sound.into_inner();
    println!(
        "{}",
        if is_sound { "no panic, no broken round trip, no work out of proportion" } else { "FAILED" }
    );
    is_sound
}

/// Runs the target on a thread with its name, so that a stack overflow names it too, and with the stack size of a
/// server's thread. Watches that it makes progress.
fn run_watched(target: &'static Target, golden: &Golden, options: &Options) -> Report {
    const STACK_BYTES: usize = 2 * 1024 * 1024;
    let progress = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name(format!("{} (seed {})", target.name, options.seed))
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || run::run(target, golden, options.seed, options.budget, &progress));
        let Ok(worker) = worker else {
            return Report { failure: Some("cannot start a thread".to_owned()), ..Report::default() };
        };
        let mut seen = (0, clock::now());
        while !worker.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            let count = progress.load(Ordering::Relaxed);
            if count != seen.0 || count == run::MEASURING {
                seen = (count, clock::now());
            } else if seen.1.elapsed() > STALLED_MAX {
                // A thread cannot be stopped from outside, so the whole run ends here.
                println!(
                    "\n{}: execution {} does not end\n  cargo xtask fuzz --target {} --seed {} --executions {}",
                    target.name, seen.0, target.name, options.seed, seen.0
                );
                std::process::exit(1);
            }
        }
        worker.join().unwrap_or_else(|_| Report {
            failure: Some("the driver itself panicked".to_owned()),
            ..Report::default()
        })
    })
}

fn judge(report: &Report) -> Result<(), String> {
    if let Some(failure) = &report.failure {
        return Err(failure.clone());
    }
    let share = report.accepted_share();
    if report.execution_count >= JUDGED_EXECUTION_COUNT_MIN && share < ACCEPTED_SHARE_MIN {
        return Err(format!(
            "  only {:.2} % of the inputs are accepted: this target needs better seeds",
            share * 100.0
        ));
    }
    Ok(())
}

fn print_report(target: &Target, report: &Report, outcomes: bool) {
    let per_second = report.execution_count as f64 / report.time.as_secs_f64().max(0.001);
    println!(
        "{:<14} {:>11} {:>9.0} {:>8} {:>7.1}% {:>8} {:>7} {:>7.1} {:>8.1}",
        target.name,
        report.execution_count,
        per_second,
        report.input_bytes_max,
        report.accepted_share() * 100.0,
        report.outcomes.len(),
        report.cost.shape_count,
        report.cost.growth_max,
        report.cost.nanoseconds_per_byte_max,
    );
    if outcomes {
        for (outcome, count) in &report.outcomes {
            let (verdict, kind) = match outcome {
                Outcome::Accepted(kind) => ("accepted", kind),
                Outcome::Refused(kind) => ("refused", kind),
            };
            println!("    {verdict:<8} {count:>10}  {kind}");
        }
    }
}
