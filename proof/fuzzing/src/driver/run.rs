//! One target's run: its seeds, then mutated inputs until the count or the time is reached, then the cost of long
//! inputs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fuzzing::{Golden, Outcome, Target};

use super::clock;
use super::cost::{self, Cost};
use super::failure::{self, attempt};
use super::mutate::Mutator;

/// How long a target runs: until the first of the given limits is reached.
#[derive(Clone, Copy)]
pub struct Budget {
    pub execution_count: Option<u64>,
    pub time: Option<Duration>,
}

/// Measuring the cost of long inputs gets a quarter of the time.
const COST_TIME_SHARE: u32 = 4;
/// The fewest shapes to measure at full length.
const LONG_SHAPE_COUNT_MIN: usize = 60;
/// Of this many accepted inputs, one is kept for further mutation.
const KEPT_ONE_IN: u64 = 32;
/// Executions between two looks at the clock.
const EXECUTIONS_PER_LOOK: u64 = 256;

#[derive(Default)]
pub struct Report {
    /// Mutated inputs that were run, without the seeds.
    pub execution_count: u64,
    /// The time that the mutated inputs took.
    pub time: Duration,
    pub input_bytes_max: usize,
    pub outcomes: BTreeMap<Outcome, u64>,
    pub cost: Cost,
    /// What went wrong, in words.
    pub failure: Option<String>,
}

impl Report {
    pub fn accepted_share(&self) -> f64 {
        let accepted = self.outcomes.iter().filter(|(outcome, _)| matches!(outcome, Outcome::Accepted(_)));
        let all: u64 = self.outcomes.values().sum();
        accepted.map(|(_, count)| *count).sum::<u64>() as f64 / all.max(1) as f64
    }
}

/// The value of `progress` while long inputs are measured. They have time limits of their own.
pub const MEASURING: u64 = u64::MAX;

/// Runs the target. `progress` counts executions, so that the caller sees whether they go on.
pub fn run(target: &Target, golden: &Golden, seed: u64, budget: Budget, progress: &AtomicU64) -> Report {
    let mut report = Report::default();
    let seeds = (target.seeds)(golden);
    if let Err(failure) = run_inputs(target, &seeds, seed, budget, progress, &mut report) {
        report.failure = Some(failure);
        return report;
    }
    progress.store(MEASURING, Ordering::Relaxed);
    // A slow build measures a fixed number of shapes, so that its result does not depend on the machine.
    let cost_time = match budget.time {
        Some(time) if !cost::is_slow() => time / COST_TIME_SHARE,
        _ => Duration::ZERO,
    };
    match cost::measure(target, &seeds, own_seed(target, seed), LONG_SHAPE_COUNT_MIN, cost_time) {
        Ok(cost) => report.cost = cost,
        Err(slow) => {
            let repeat = repeat(target, seed, 1);
            let what = format!("the work is not linear in the input: {}", slow.what);
            report.failure = Some(failure::report(target, &slow.input, &what, &repeat));
        }
    }
    report
}

fn run_inputs(
    target: &Target,
    seeds: &[Vec<u8>],
    seed: u64,
    budget: Budget,
    progress: &AtomicU64,
    report: &mut Report,
) -> Result<(), String> {
    for input in seeds {
        execute(target, input, seed, report)?;
    }
    let mut mutator =
        Mutator::new(own_seed(target, seed), seeds.to_vec(), target.tokens, target.input_bytes_max);
    let time_max = budget.time.map(|time| time - time / COST_TIME_SHARE);
    let count_max = budget.execution_count.unwrap_or(u64::MAX);
    let started = clock::now();
    let mut input = Vec::new();
    while report.execution_count < count_max {
        let is_look_due = report.execution_count.is_multiple_of(EXECUTIONS_PER_LOOK);
        if is_look_due && time_max.is_some_and(|time| started.elapsed() >= time) {
            break;
        }
        mutator.next_into(&mut input);
        report.execution_count += 1;
        progress.store(report.execution_count, Ordering::Relaxed);
        let kind_count = report.outcomes.len();
        let outcome = execute(target, &input, seed, report)?;
        let is_new = report.outcomes.len() > kind_count;
        if is_new || (matches!(outcome, Outcome::Accepted(_)) && mutator.one_in(KEPT_ONE_IN)) {
            mutator.keep(&input);
        }
    }
    report.time = started.elapsed();
    Ok(())
}

fn execute(target: &Target, input: &[u8], seed: u64, report: &mut Report) -> Result<Outcome, String> {
    report.input_bytes_max = report.input_bytes_max.max(input.len());
    match attempt(target, input) {
        Ok(outcome) => {
            *report.outcomes.entry(outcome).or_default() += 1;
            Ok(outcome)
        }
        Err(panic) => {
            let smallest = failure::minimise(target, input, &panic);
            let what = format!("panicked at {}: {}", panic.place, panic.message);
            let repeat = repeat(target, seed, report.execution_count.max(1));
            Err(failure::report(target, &smallest, &what, &repeat))
        }
    }
}

fn repeat(target: &Target, seed: u64, execution_count: u64) -> String {
    format!("cargo xtask fuzz --target {} --seed {seed} --executions {execution_count}", target.name)
}

/// A seed per target, so that its inputs do not depend on which others run.
fn own_seed(target: &Target, seed: u64) -> u64 {
    target.name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
