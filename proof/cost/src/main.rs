//! Measures what a request costs in instructions and allocations: numbers that a busy machine does not change.
//!
//! Each path runs through the real server, including HTTP, over an in-memory stream that is always ready, on one thread,
//! with the in-memory engine and a clock that stands still. This program's own allocator counts allocations. Valgrind counts instructions:
//! it runs this program twice, once with more repetitions, and the difference leaves out the cost of starting up.
//!
//! Valgrind does not emulate SHA instructions, so a signature is counted as computed in software, before and after any
//! change alike.
//!
//! `budgets.txt` says what each path may cost. The instruction counts hold for one version of the compiler, on x86-64:
//! renew them (`cargo xtask cost --write`) with the toolchain.

mod allocations;
mod budget;
mod client;
mod client_paths;
mod instructions;
mod paths;
mod stage;

use std::process::ExitCode;

use budget::{Budgets, Cost, Verdict};
use paths::Path;

const HELP: &str = "\
Usage: cargo xtask cost [--write] [--only PATH]...

Measures what each path costs in instructions and allocations, and compares it with proof/cost/budgets.txt.

  --write        write the results to proof/cost/budgets.txt
  --only PATH    measure only this path; may be repeated
";

struct Arguments {
    write: bool,
    only: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Valgrind runs this program with these arguments.
    if let [command, path, count] = &words[..]
        && command == instructions::RUN
    {
        return run_under_valgrind(path, count);
    }
    let arguments = match read_arguments(&words) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("error: {message}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match measure(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn read_arguments(words: &[String]) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { write: false, only: Vec::new() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--write" => arguments.write = true,
            "--only" => {
                let name = words.next().ok_or("--only needs the name of a path")?;
                Path::named(name).ok_or_else(|| format!("there is no path '{name}'"))?;
                arguments.only.push(name.clone());
            }
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown argument '{other}'")),
        }
    }
    if arguments.write && !arguments.only.is_empty() {
        return Err("--write writes all budgets, so it cannot be combined with --only".to_owned());
    }
    Ok(Some(arguments))
}

fn run_under_valgrind(path: &str, count: &str) -> ExitCode {
    let (Some(path), Ok(count)) = (Path::named(path), count.parse()) else { return ExitCode::from(2) };
    paths::run(path, count);
    ExitCode::SUCCESS
}

/// Returns whether every path is within its budget.
fn measure(arguments: &Arguments) -> Result<bool, String> {
    let budgets = Budgets::read()?;
    let missing = instructions::missing();
    if let Some(reason) = &missing {
        if arguments.write {
            return Err(format!("instructions cannot be counted, so no budget is written: {reason}"));
        }
        println!("INSTRUCTIONS ARE SKIPPED: {reason}");
    }
    println!("{:<22} {:>12} {:>9}   budget", "path", "instructions", "allocs");
    let (mut measured, mut notes) = (Budgets::default(), Vec::new());
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for path in paths::ALL {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|name| name == path.name) {
            continue;
        }
        let instructions = match &missing {
            None => Some(instructions::count(path)?),
            Some(_) => None,
        };
        let cost = Cost { instructions, allocations: allocations::count(path) };
        let budget = budgets.of(path.name);
        let shown = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let allowed = budget.map_or_else(
            || "none".to_owned(),
            |budget| format!("{} / {}", shown(budget.instructions), budget.allocations),
        );
        println!("{:<22} {:>12} {:>9}   {allowed}", path.name, shown(cost.instructions), cost.allocations);
        for (what, verdict) in budget::judge(cost, budget) {
            match verdict {
                Verdict::Within => passed += 1,
                Verdict::Skipped => skipped += 1,
                Verdict::Above(note) => {
                    failed += 1;
                    notes.push(format!("TOO EXPENSIVE: {}: {note} {what}", path.name));
                }
                Verdict::Below(note) => {
                    passed += 1;
                    notes.push(format!("cheaper than its budget: {}: {note} {what}", path.name));
                }
            }
        }
        measured.put(path.name, cost);
    }
    if arguments.write {
        measured.write()?;
        println!("the budgets were written");
        return Ok(true);
    }
    if let Some((note, is_within)) = budget::judge_advisor(&measured) {
        notes.push(note);
        if is_within { passed += 1 } else { failed += 1 }
    }
    notes.iter().for_each(|note| println!("{note}"));
    if failed > 0 {
        println!("If a path has to cost more, write new budgets with `cargo xtask cost --write`.");
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored");
    Ok(failed == 0)
}
