//! The gate: every check that must hold before a change goes in, in one command.
//!
//! Promises: a failed step does not stop the steps after it, except that the SDK suites and the trials need a built
//! server. The last line printed is `N passed, N failed, N skipped`. A step without test cases counts as one. What a
//! step does is the business of the tool or module that it calls.

use std::process::Command;
use std::time::Duration;

use crate::counts::{self, Counts};
use crate::process::{self, cargo};
use crate::suites::{self, SUITES, SetUps};
use crate::toolchains::Missing;
use crate::{client, cost, deny, fuzz, patterns, publish, scale_out, tidy, trials};

/// Name and purpose, in the order they run.
const STEPS: [(&str, &str); 6] = [
    ("tidy", "cargo xtask tidy: the tree is as ARCHITECTURE.md says"),
    ("format", "cargo fmt: the code is formatted"),
    ("clippy", "cargo clippy: no warnings in any target of any crate"),
    ("deny", "cargo xtask deny: licences, banned crates and duplicates among the dependencies"),
    ("rust", "cargo test: unit, integration and doc tests of every crate"),
    ("build", "cargo build --release: the server that the suites talk to, and its trials"),
];
/// It counts instead of timing, so a busy machine does not matter.
const COST: (&str, &str) = ("cost", "instructions and allocations of the hot paths, against their budgets");
/// Neither needs the built server: the client's suites are given Azurite, and publishing builds packages.
const CLIENT: [(&str, &str); 2] = [
    ("client-azurite", "cargo xtask client: the client's suites against Azurite differ where a list says so"),
    ("publish", "cargo publish --dry-run: the client and the crates that it needs"),
];
/// It needs the server. Its counts are the same on every machine.
const PATTERNS: (&str, &str) = ("patterns", "every example of a pattern prints what its page shows");
/// It needs the server, and PostgreSQL, Patroni and etcd, or is skipped.
const POSTGRES: (&str, &str) =
    ("postgres", "several front ends on PostgreSQL: conformance, a slice of HTTP and of faults");
/// Runs in the background during the suites and the trials; the gate waits for it at the end.
const FUZZ: (&str, &str) = ("fuzz", "a minute of mutated inputs for everything that reads untrusted bytes");

/// Every step in the order they run. The build comes before the SDK suites and the trials, which need the server.
fn steps() -> impl Iterator<Item = (&'static str, &'static str)> {
    let trials = trials::SLICES.iter().map(|(name, purpose, _)| (*name, *purpose));
    STEPS
        .into_iter()
        .chain([COST])
        .chain(CLIENT)
        .chain([PATTERNS])
        .chain(SUITES)
        .chain(trials)
        .chain([POSTGRES, FUZZ])
}

pub enum Outcome {
    Ran(Counts),
    Skipped(String),
}

struct Row {
    name: &'static str,
    result: String,
    counts: Counts,
    took: Duration,
}

/// Runs the gate, or the steps named with `--only`. `true` when nothing failed.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let selected = select(arguments)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut built = false;
    let is_suite = |name: &&str| SUITES.iter().any(|(suite, _)| suite == name);
    // Start now, so that the suites' downloads and builds are ready when the server is.
    let set_ups = SetUps::start(selected.iter().copied().filter(is_suite).map(str::to_owned).collect());
    let mut fuzzing = None;
    for (name, purpose) in steps() {
        if !selected.contains(&name) {
            continue;
        }
        println!("\n==> {name}: {purpose}");
        let start = process::now();
        let outcome = match name {
            "tidy" => tidy::check().map(Outcome::Ran),
            "format" => format(),
            "clippy" => clippy(),
            "deny" => deny::run(&[]).map(one_result),
            "rust" => rust_tests(),
            "build" => {
                let outcome = build();
                fuzzing = selected.contains(&FUZZ.0).then(fuzz::Slice::start);
                outcome
            }
            "cost" => costs(),
            "client-azurite" => client::check().map(ran_or_missing),
            "publish" => publish::check().map(ran_or_missing),
            "fuzz" => finish_fuzzing(fuzzing.take().unwrap_or_else(fuzz::Slice::start)),
            _ if !built => Ok(Outcome::Skipped("the server was not built".to_owned())),
            "patterns" => patterns::run(&[]).map(one_result),
            "postgres" => scale_out::check().map(ran_or_missing),
            suite if is_suite(&suite) => run_suite(&set_ups, suite),
            trial => run_trial(trial),
        };
        let (result, counts) = match outcome {
            Ok(Outcome::Ran(counts)) if counts.failed == 0 => ("ok".to_owned(), counts),
            Ok(Outcome::Ran(counts)) => ("FAILED".to_owned(), counts),
            Ok(Outcome::Skipped(reason)) => (format!("SKIPPED: {reason}"), Counts::ONE_SKIPPED),
            Err(message) => (format!("FAILED: {message}"), Counts::ONE_FAILED),
        };
        built |= name == "build" && counts.failed == 0;
        let took = start.elapsed();
        println!("<== {name}: {result} ({:.1} s)", took.as_secs_f64());
        rows.push(Row { name, result, counts, took });
    }
    Ok(summarise(&rows))
}

fn select(arguments: &[String]) -> Result<Vec<&'static str>, String> {
    let mut selected = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let name = match word.as_str() {
            "--only" => words.next().ok_or("--only needs the name of a step")?.as_str(),
            other => other.strip_prefix("--only=").ok_or_else(|| format!("unknown argument '{other}'"))?,
        };
        let known = steps().find(|(step, _)| *step == name);
        let (step, _) = known.ok_or_else(|| format!("unknown step '{name}'"))?;
        selected.push(step);
    }
    if selected.is_empty() {
        return Ok(steps().map(|(name, _)| name).collect());
    }
    let needs_server = |name: &&str| {
        [PATTERNS.0, POSTGRES.0].contains(name)
            || SUITES.iter().any(|(suite, _)| suite == name)
            || trials::SLICES.iter().any(|(trial, ..)| trial == name)
    };
    if selected.iter().any(needs_server) {
        selected.push("build");
    }
    Ok(selected)
}

fn summarise(rows: &[Row]) -> bool {
    let mut total = Counts::default();
    println!("\n{:<14} {:>7} {:>7} {:>8} {:>9}  result", "step", "passed", "failed", "skipped", "seconds");
    for Row { name, result, counts, took } in rows {
        let Counts { passed, failed, skipped } = counts;
        println!("{name:<14} {passed:>7} {failed:>7} {skipped:>8} {:>9.1}  {result}", took.as_secs_f64());
        total += *counts;
    }
    if total.failed > 0 {
        println!("\nwhat failed, as far as it was said on standard output:");
        process::failures().iter().for_each(|line| println!("{line}"));
    }
    println!("\n{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    total.failed == 0
}

fn format() -> Result<Outcome, String> {
    if process::answer(cargo().args(["fmt", "--version"])).is_none() {
        return Ok(Outcome::Skipped("the rustfmt component is not installed".to_owned()));
    }
    // List names only: full diffs would push the other steps off the screen.
    let ours = process::run(cargo().args(["fmt", "--all", "--check", "--", "-l"]))?;
    // This suite is a workspace of its own, but is formatted like the rest.
    let suite = suites::tests("rust").join("Cargo.toml");
    let mut check = cargo();
    check.args(["fmt", "--check", "--manifest-path"]).arg(suite).args(["--", "-l"]);
    let theirs = process::run(&mut check)?;
    Ok(one_result(ours.succeeded && theirs.succeeded))
}

fn clippy() -> Result<Outcome, String> {
    if process::answer(cargo().args(["clippy", "--version"])).is_none() {
        return Ok(Outcome::Skipped("the clippy component is not installed".to_owned()));
    }
    one_check(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn rust_tests() -> Result<Outcome, String> {
    let mut total = Counts::default();
    let workspace = [&["--no-fail-fast"][..], &process::TESTED_PACKAGES].concat();
    // The workspace is never built without PFX files, so build and test that here.
    let without_pfx = ["--package", "lazulite-tls", "--lib", "--no-default-features", "without_pfx"].to_vec();
    for arguments in [workspace, without_pfx] {
        let finished = process::run(cargo().arg("test").args(arguments))?;
        total += counts::from_cargo_test(&finished.output).of_run(finished.succeeded);
    }
    Ok(Outcome::Ran(total))
}

fn build() -> Result<Outcome, String> {
    Ok(one_result(process::build_release_programs()?))
}

fn costs() -> Result<Outcome, String> {
    let finished = cost::measure(&[])?;
    Ok(Outcome::Ran(counts::from_cargo_test(&finished.output).of_run(finished.succeeded)))
}

fn run_trial(name: &str) -> Result<Outcome, String> {
    let slice = trials::SLICES.iter().find(|(trial, ..)| *trial == name);
    let (trial, _, arguments) = slice.ok_or_else(|| format!("there is no trial '{name}'"))?;
    let finished = process::run(trials::command(trial)?.args(*arguments))?;
    // A trial that cannot run on this system prints the reason.
    match finished.output.lines().find_map(|line| line.strip_prefix("SKIPPED: ")) {
        Some(reason) if finished.succeeded => Ok(Outcome::Skipped(reason.to_owned())),
        _ => Ok(one_result(finished.succeeded)),
    }
}

fn finish_fuzzing(slice: Result<fuzz::Slice, String>) -> Result<Outcome, String> {
    Ok(one_result(slice?.finish()?))
}

fn one_check(command: &mut Command) -> Result<Outcome, String> {
    Ok(one_result(process::run(command)?.succeeded))
}

fn one_result(succeeded: bool) -> Outcome {
    Outcome::Ran(if succeeded { Counts::ONE_PASSED } else { Counts::ONE_FAILED })
}

fn run_suite(set_ups: &SetUps, name: &str) -> Result<Outcome, String> {
    let ran = set_ups.run(name, &process::release_program("lazulite")?)?;
    Ok(ran_or_missing(ran.map(|ran| ran.counts)))
}

fn ran_or_missing(ran: Result<Counts, Missing>) -> Outcome {
    match ran {
        Ok(counts) => Outcome::Ran(counts),
        Err(missing) => Outcome::Skipped(missing),
    }
}
