//! Deterministic simulation of engine and rules, without sockets. A seed decides in which order many logical clients of
//! one `TableService` take turns, when the clock is set forwards or back, when engine calls and the disk fail, and when
//! the store crashes or is reopened. Every answer is compared with a plain model.
//!
//! It shows that conditions, batches, queries, paging and the catalogue agree with the model under any interleaving of
//! engine calls; that versions never repeat, even across restarts with the clock set back; that after a failed write
//! nothing is accepted until the store is reopened; and that a write with an unknown outcome happened as a whole or not
//! at all. Leaves to others: HTTP, real disks, and threads racing inside an engine (`histories`, `crash`, `power`).
//!
//! An episode has one seed, which repeats it exactly. `world.rs` runs an episode and `world/` judges it; `ask.rs` has
//! the clients' requests, `stage.rs` their turns, `disk.rs` the disk. The model is the one from the tests of `tables`.

mod ask;
mod disk;
mod stage;
mod store;
mod world;

#[path = "../../../crates/tables/tests/it/condition.rs"]
mod condition;
#[path = "../../../crates/tables/tests/it/convert.rs"]
#[allow(clippy::unwrap_used, reason = "shared with tests, where it is the way to fail")]
mod convert;
#[path = "../../../crates/tables/tests/it/model.rs"]
#[allow(clippy::unwrap_used, reason = "shared with tests, where it is the way to fail")]
mod model;
#[path = "../../../crates/tables/tests/it/random.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;
use lexopt::{Arg, Parser, ValueExt as _};
use testkit::Stopwatch;

use self::store::Store;
use self::world::{Counts, World};
use crate::Error;

const HELP: &str = "\
Usage: lazulite-trials simulate [OPTIONS]

  --operations N     how many operations at least (default 10000000)
  --seed S           seed of the first episode; the next has S + 1, and so on (default 1)
  --episodes E       stop after this many episodes; 1 repeats one seed exactly
  --server PATH      not used: this trial runs the engine in its own process
";

const EPISODE_OPERATION_COUNT: u64 = 10_000;
/// One episode in this many uses the local engine, the others the one in memory.
const LOCAL_INTERVAL: u64 = 4;
const MEMORY_CLIENT_COUNT: usize = 8;
/// More clients, because their commits share the cost of a group.
const LOCAL_CLIENT_COUNT: usize = 64;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

/// The counts of all episodes, and the first failure.
#[derive(Default)]
pub struct Report {
    pub counts: Counts,
    pub episode_count: u64,
    pub local_episode_count: u64,
    pub failure: Option<String>,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut operation_count, mut seed, mut episode_count) = (10_000_000, 1, u64::MAX);
    while let Some(option) = options.next()? {
        match option {
            Arg::Long("operations") => operation_count = options.value()?.parse()?,
            Arg::Long("seed") => seed = options.value()?.parse()?,
            Arg::Long("episodes") => episode_count = options.value()?.parse()?,
            Arg::Long("server") => drop(options.value()?),
            Arg::Long("help") | Arg::Short('h') => {
                print!("{HELP}");
                return Ok(true);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    #[cfg(feature = "seeded-bugs")]
    println!("{}", engine::seeded::warning());
    let watch = Stopwatch::start();
    let report = simulate(seed, operation_count, episode_count);
    report.print(watch.elapsed());
    Ok(report.failure.is_none())
}

/// Runs episodes from this seed on, until enough operations or episodes are done or one fails.
pub fn simulate(first_seed: u64, operation_count: u64, episode_count: u64) -> Report {
    let mut report = Report::default();
    let (watch, mut told) = (Stopwatch::start(), Duration::ZERO);
    for seed in first_seed.. {
        if report.counts.operation_count >= operation_count || report.episode_count >= episode_count {
            break;
        }
        let is_local = seed.is_multiple_of(LOCAL_INTERVAL);
        report.episode_count += 1;
        report.local_episode_count += u64::from(is_local);
        let outcome = episode(seed, is_local, &mut report.counts);
        if let Err(error) = outcome {
            report.failure = Some(format!(
                "seed {seed}: {error}\nrepeat it with\n  lazulite-trials simulate --seed {seed} --episodes 1"
            ));
            break;
        }
        if watch.elapsed() > told + PROGRESS_INTERVAL {
            told = watch.elapsed();
            println!("{} operations in {} episodes", report.counts.operation_count, report.episode_count);
        }
    }
    report
}

fn episode(seed: u64, is_local: bool, counts: &mut Counts) -> Result<(), String> {
    let store = if is_local { Store::local()? } else { Store::memory() };
    let client_count = if is_local { LOCAL_CLIENT_COUNT } else { MEMORY_CLIENT_COUNT };
    let world = World::new(store, client_count, Rng::with_seed(seed))?;
    play(world, EPISODE_OPERATION_COUNT, counts)
}

/// Plays until this many operations are done. A panic is a failure like any other.
fn play(mut world: World, operation_count: u64, counts: &mut Counts) -> Result<(), String> {
    let steps = AssertUnwindSafe(|| {
        while world.counts.operation_count < operation_count {
            world.step()?;
        }
        world.finish()
    });
    let outcome = catch_unwind(steps).unwrap_or_else(|_| Err("a panic".to_owned()));
    counts.add(&world.counts);
    outcome.map_err(|error| format!("after {} operations: {error}", world.counts.operation_count))
}

impl Report {
    fn print(&self, took: Duration) {
        let counts = &self.counts;
        let per_second = counts.operation_count as f64 / took.as_secs_f64().max(0.001);
        println!("operations                     {} ({per_second:.0} per second)", counts.operation_count);
        println!("  committed                    {}", counts.committed_count);
        println!("  refused                      {}", counts.refused_count);
        println!("  reads, pages, lists          {}", counts.read_count);
        println!("  abandoned midway             {}", counts.abandoned_count);
        println!(
            "episodes                       {} ({} over the local engine)",
            self.episode_count, self.local_episode_count
        );
        println!("engine calls told to fail      {}", counts.engine_fault_count);
        println!("disk faults                    {}", counts.disk_fault_count);
        println!("crashes                        {}", counts.crash_count);
        println!("clean reopenings               {}", counts.reopening_count);
        println!("clock set back                 {}", counts.clock_set_back_count);
        println!(
            "unknown outcomes               {} kept, {} lost, none half",
            counts.unknown_kept_count, counts.unknown_lost_count
        );
        match &self.failure {
            Some(failure) => println!("FAILED: {failure}"),
            None => println!("HELD: every answer agreed with the model"),
        }
    }
}

#[cfg(test)]
mod tests;
