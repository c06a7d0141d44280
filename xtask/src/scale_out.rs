//! `cargo xtask scale-out`: everything about several front ends on PostgreSQL, and the slice of it that the gate runs.
//!
//! The conformance suite of the engine; the raw HTTP suites and the Python suite over two front ends that answer
//! every other request; the trial with a cluster whose parts die. Promises: where PostgreSQL, Patroni or etcd are
//! missing and this user may install packages, Debian's are installed; otherwise the step is skipped by name.

use std::process::Command;

use crate::counts::{self, Counts};
use crate::packages;
use crate::process::{self, cargo};
use crate::suites;
use crate::toolchains::Missing;
use crate::trials;

const HELP: &str = "\
Usage: cargo xtask scale-out [--suites | TRIAL ARGUMENTS...]

  without arguments        everything
  --suites                 the conformance suite, the raw HTTP suites and the Python suite on PostgreSQL
  --only, --rounds, --reads, --writers, --seed
                           the trial alone, with these arguments: `lazulite-trials scale-out --help`
";

/// Debian's packages, and a program of each.
const PACKAGES: [(&str, &str); 3] =
    [("postgresql", "initdb"), ("patroni", "patroni"), ("etcd-server", "etcd")];
/// Patroni speaks etcd's version 2 interface through this one, which it only suggests.
const PACKAGE_BESIDE: &str = "python3-etcd";
/// The gate's slice of the raw HTTP suites: the modules in which several front ends could differ from one.
const SLICE: [&str; 5] = ["etags::", "batch::", "paging::", "entities::", "receipts::"];
/// The gate's slice of the faults.
const FAULTS: [&str; 5] =
    ["--only", "leader-killed,leader-frozen,standbys-frozen,front-end-killed", "--rounds", "1", "--seed=1"];
/// Reads that are not proven by a lease, under the faults that would show old rows.
const WITH_BARRIERS: [&str; 6] =
    ["--reads", "barrier", "--only", "leader-frozen,leader-cut-off,agent-frozen", "--rounds", "1"];

pub fn run(arguments: &[String]) -> Result<bool, String> {
    if arguments.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return Ok(true);
    }
    if let Err(missing) = install()? {
        println!("SKIPPED: {missing}");
        return Ok(true);
    }
    let only_suites = arguments.iter().any(|word| word == "--suites");
    let mut is_good = true;
    if arguments.is_empty() || only_suites {
        for (name, counts) in suites()? {
            println!(
                "{name}: {} passed, {} failed, {} skipped",
                counts.passed, counts.failed, counts.skipped
            );
            is_good &= counts.failed == 0;
        }
    }
    if !only_suites {
        is_good &= trials::run("scale-out", arguments)?;
    }
    if arguments.is_empty() {
        is_good &= process::run(trials::command("scale-out")?.args(WITH_BARRIERS))?.succeeded;
    }
    Ok(is_good)
}

/// What the gate runs of the engine's own tests: those that take seconds, and the conformance suite.
const ENGINE_TESTS: [&str; 11] = [
    "--lib",
    "--test",
    "conformance",
    "--test",
    "faults",
    "--test",
    "racing",
    "--test",
    "start",
    "--test",
    "tls",
];

/// The gate's step.
pub fn check() -> Result<Result<Counts, Missing>, String> {
    if let Err(missing) = install()? {
        return Ok(Err(missing));
    }
    let mut total = conformance(&ENGINE_TESTS)?;
    total += raw_http(&SLICE)?;
    let finished = process::run(trials::command("scale-out")?.args(FAULTS))?;
    total += if finished.succeeded { Counts::ONE_PASSED } else { Counts::ONE_FAILED };
    Ok(Ok(total))
}

fn suites() -> Result<Vec<(&'static str, Counts)>, String> {
    if !process::build_release_programs()? {
        return Err("the server was not built".to_owned());
    }
    let mut python = hosted()?;
    python.arg("--server").arg(process::release_program("lazulite")?);
    let python = match suites::run_hosted("python", python)? {
        Ok(ran) => ran.counts,
        Err(missing) => {
            println!("SKIPPED: {missing}");
            Counts::ONE_SKIPPED
        }
    };
    let engine = conformance(&[])?;
    Ok(vec![("cluster", cluster()?), ("engine", engine), ("raw HTTP", raw_http(&[])?), ("Python", python)])
}

/// The test of the cluster itself, which `cargo test` leaves out.
fn cluster() -> Result<Counts, String> {
    let mut command = cargo();
    command.args(["test", "--package", "testkit", "--test", "cluster"]).env("LAZULITE_TEST_CLUSTER", "1");
    let finished = process::run(&mut command)?;
    Ok(counts::from_cargo_test(&finished.output).of_run(finished.succeeded))
}

/// The tests of the engine's crate, each of which starts its own PostgreSQL.
fn conformance(arguments: &[&str]) -> Result<Counts, String> {
    let mut command = cargo();
    command.args(["test", "--package", "lazulite-engine-postgres"]).args(arguments);
    // What cannot start is a failure here: the programs are installed.
    command.env("LAZULITE_TEST_POSTGRES", "1");
    let finished = process::run(&mut command)?;
    Ok(counts::from_cargo_test(&finished.output).of_run(finished.succeeded))
}

/// The raw HTTP suites over two front ends; only the modules that these words begin, if there are any.
fn raw_http(modules: &[&str]) -> Result<Counts, String> {
    let mut command = hosted()?;
    command.arg("--").arg(cargo().get_program()).args(["test", "--package", "lazulite-server"]);
    command.args(["--features", "testkit/postgres", "--test", "it", "--test", "queue", "--no-fail-fast"]);
    command.arg("--").args(modules);
    let finished = process::run(&mut command)?;
    Ok(counts::from_cargo_test(&finished.output).of_run(finished.succeeded))
}

/// The program that runs a command beside a PostgreSQL.
fn hosted() -> Result<Command, String> {
    let mut command = Command::new(process::release_program("lazulite-trials")?);
    command.arg("with-postgres").current_dir(process::root());
    Ok(command)
}

/// Installs what is missing, where that is allowed.
pub fn install() -> Result<Result<(), Missing>, String> {
    packages::install(&PACKAGES, &[PACKAGE_BESIDE])
}
