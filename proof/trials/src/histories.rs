//! Records concurrent histories over HTTP and checks them for linearizability: a few clients, few rows, the real
//! binary. Sometimes a client does not wait for its answer, or the server is killed with `kill -9` and restarted.
//!
//! Linearizability is local, so each partition is checked by itself. An entity group transaction is one operation on
//! its partition, and each page of a scan is one read of a part of it. Versions are checked across all partitions, in
//! real time. `checker.rs` searches for an order, `partition.rs` is the model for the answers, `record.rs` shrinks and
//! prints a violation, `traffic.rs` has the clients.

pub mod checker;
pub mod partition;
pub mod record;
pub mod traffic;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use lexopt::{Arg, Parser, ValueExt as _};
use testkit::{Request, ServerProcess, Stopwatch};

use self::checker::Verdict;
use self::partition::{Answer, Call, ROW_COUNT_MAX, Tag};
use self::record::Recorded;
use self::traffic::{Client, Diary, Ground};
use crate::Error;

const HELP: &str = "\
Usage: lazulite-trials histories --server PATH [OPTIONS]

  --server PATH      the lazulite binary
  --histories N      how many histories (default 1000)
  --seed S           seed of the first history; the next has S + 1, and so on (default 1)
";

const TABLE: &str = "Histories";
/// The most calls per partition; a scan is one call with several pages.
const CALLS_PER_PARTITION_MAX: usize = 48;
/// One history in this many has a `kill -9`.
const KILL_INTERVAL: u32 = 10;
const TABLE_TIME_MAX: Duration = Duration::from_secs(10);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

pub struct Options {
    pub server: PathBuf,
    pub history_count: u64,
    pub seed: u64,
    /// Environment variables for the server.
    pub environment: Vec<(String, String)>,
    /// Whether a violation's store and description are kept.
    pub keeps_evidence: bool,
}

/// The counts and results of a run.
#[derive(Default)]
pub struct Report {
    pub history_count: u64,
    pub operation_count: usize,
    write_count: usize,
    batch_count: usize,
    refused_count: usize,
    unknown_count: usize,
    get_count: usize,
    page_count: usize,
    kill_count: usize,
    busy_count: usize,
    internal_error_count: usize,
    undecided_count: usize,
    partition_operation_count_max: usize,
    configuration_count_max: usize,
    /// A description of the first violation, with the history that shows it.
    pub violation: Option<String>,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut server, mut history_count, mut seed) = (None, 1000, 1);
    while let Some(option) = options.next()? {
        match option {
            Arg::Long("server") => server = Some(PathBuf::from(options.value()?)),
            Arg::Long("histories") => history_count = options.value()?.parse()?,
            Arg::Long("seed") => seed = options.value()?.parse()?,
            Arg::Long("help") | Arg::Short('h') => {
                print!("{HELP}");
                return Ok(true);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let server = server.ok_or("--server is missing: it names the binary to try")?;
    let report =
        observe(&Options { server, history_count, seed, environment: Vec::new(), keeps_evidence: true })?;
    report.print();
    Ok(report.is_good())
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.violation.is_none() && self.undecided_count == 0
    }

    fn print(&self) {
        println!("histories                      {}", self.history_count);
        println!("operations                     {}", self.operation_count);
        println!("  writes                       {}", self.write_count);
        println!("    of them transactions       {}", self.batch_count);
        println!("    refused (404, 409, 412)    {}", self.refused_count);
        println!("    outcome unknown            {}", self.unknown_count);
        println!("  point reads                  {}", self.get_count);
        println!("  pages of scans               {}", self.page_count);
        println!("kill -9 and restart            {}", self.kill_count);
        println!("answers 503 / 500              {} / {}", self.busy_count, self.internal_error_count);
        println!("longest history, one partition {} operations", self.partition_operation_count_max);
        println!("largest search                 {} configurations", self.configuration_count_max);
        println!("undecided                      {}", self.undecided_count);
        println!("violations                     {}", usize::from(self.violation.is_some()));
        match &self.violation {
            Some(violation) => println!("\n{violation}"),
            None if self.undecided_count > 0 => println!("NOT SHOWN: some searches were given up"),
            None => println!("HELD: every history is linearizable, and versions only grew"),
        }
    }

    fn count(&mut self, recorded: &Recorded) {
        self.operation_count += 1;
        match &recorded.operation.call {
            Call::Get(_) => self.get_count += 1,
            Call::Page(_) => self.page_count += 1,
            Call::Write(changes) => {
                self.write_count += 1;
                self.batch_count += usize::from(changes.len() > 1);
                match recorded.operation.answer {
                    Answer::Refused { .. } => self.refused_count += 1,
                    Answer::Unknown => self.unknown_count += 1,
                    _ => {}
                }
            }
        }
    }
}

/// Records and checks histories until one shows a violation or all are done.
pub fn observe(options: &Options) -> Result<Report, Error> {
    let directory = tempfile::Builder::new().prefix("lazulite-histories-").tempdir()?;
    let clock = Stopwatch::start();
    let mut world = World {
        options,
        location: directory.path().to_owned(),
        server: None,
        clock: &clock,
        next_id: 1,
        last_version: 0,
        report: Report::default(),
    };
    world.start_server()?;
    world.create_table()?;
    let mut told = Duration::ZERO;
    for seed in options.seed..options.seed.saturating_add(options.history_count) {
        let violation = world.history(seed).map_err(|error| format!("{error}\n{}", repeat(options, seed)));
        if let Some(violation) = violation? {
            let mut text = format!("VIOLATION in the history with {}\n{violation}", repeat(options, seed));
            drop(world.server.take());
            if options.keeps_evidence {
                keep(&mut text, seed, directory)?;
            }
            world.report.violation = Some(text);
            return Ok(world.report);
        }
        if clock.elapsed() > told + PROGRESS_INTERVAL {
            told = clock.elapsed();
            println!("{} histories, {} operations", world.report.history_count, world.report.operation_count);
        }
    }
    Ok(world.report)
}

fn repeat(options: &Options, seed: u64) -> String {
    let environment: String =
        options.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    format!(
        "seed {seed}; to repeat it, though never with the same timing, run\n  \
         {environment}lazulite-trials histories --server {} --histories 100 --seed {seed}",
        options.server.display()
    )
}

/// Writes the violation to a file and keeps the store.
fn keep(text: &mut String, seed: u64, directory: tempfile::TempDir) -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("lazulite-history-{seed}-{}.txt", std::process::id()));
    std::fs::write(&path, &text)?;
    text.push_str(&format!("also in {}; the store is in {}\n", path.display(), directory.keep().display()));
    Ok(())
}

struct World<'a> {
    options: &'a Options,
    location: PathBuf,
    server: Option<ServerProcess>,
    clock: &'a Stopwatch,
    next_id: u32,
    /// The greatest version that any client has seen.
    last_version: Tag,
    report: Report,
}

impl World<'_> {
    fn start_server(&mut self) -> Result<(), Error> {
        let binary = self.options.server.to_str().ok_or("the path of the server is not UTF-8")?;
        let environment: Vec<(&str, &str)> =
            self.options.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let start = || {
            ServerProcess::start_with(
                binary,
                &self.location,
                &["--table-port", "0", "--queue-port", "0", "--blob-port", "0", "--silent"],
                &environment,
            )
        };
        let started = catch_unwind(AssertUnwindSafe(start));
        self.server = Some(started.map_err(|_| "the server does not start")?);
        Ok(())
    }

    fn create_table(&self) -> Result<(), Error> {
        let server = self.server.as_ref().ok_or("no server")?;
        let body = format!("{{\"TableName\":\"{TABLE}\"}}");
        let answer = server.send(Request::post("/Tables").json(&body));
        if answer.status != 201 {
            return Err(format!("no table:\n{answer:?}").into());
        }
        // Normally the table is there at once. If the server answers too early, the histories must find that, not this.
        let watch = Stopwatch::start();
        while server.send(Request::get(&format!("/Tables('{TABLE}')"))).status != 200 {
            if watch.elapsed() > TABLE_TIME_MAX {
                return Err("the table that was created is not there".into());
            }
        }
        Ok(())
    }

    /// Records and checks one history. Returns a description of the violation, if there is one.
    fn history(&mut self, seed: u64) -> Result<Option<String>, Error> {
        let mut random = Rng::with_seed(seed);
        let partition_count = random.usize(1..=2);
        let client_count = random.usize(3..=6);
        let call_count = partition_count * random.usize(24..=CALLS_PER_PARTITION_MAX);
        let kill_after = (random.u32(..KILL_INTERVAL) == 0).then(|| random.usize(1..call_count));
        let server = self.server.as_ref().ok_or("no server")?;
        let addresses = [Mutex::new(server.addr())];
        let ground = Ground {
            clock: self.clock,
            addresses: &addresses,
            table: TABLE,
            partitions: (0..partition_count).map(|number| format!("h{seed}-p{number}")).collect(),
            row_count: random.usize(2..=ROW_COUNT_MAX),
            next_id: AtomicU32::new(self.next_id),
            finished_count: AtomicUsize::new(0),
            tags: (0..partition_count * ROW_COUNT_MAX).map(|_| Mutex::default()).collect(),
        };
        let diaries = self.traffic(&ground, &mut random, client_count, call_count, kill_after);
        self.next_id = ground.next_id.load(Ordering::Acquire);
        match diaries? {
            Ok(diaries) => self.judge(diaries, partition_count),
            Err(strange) => {
                self.report.history_count += 1;
                Ok(Some(strange))
            }
        }
    }

    /// The clients' diaries, or an answer that the service never gives.
    fn traffic(
        &mut self,
        ground: &Ground<'_>,
        random: &mut Rng,
        client_count: usize,
        call_count: usize,
        kill_after: Option<usize>,
    ) -> Result<Result<Vec<Diary>, String>, Error> {
        let clients = (0..client_count).map(|number| Client::new(ground, number, random.fork()));
        let diaries = std::thread::scope(|scope| -> Result<Result<Vec<Diary>, String>, Error> {
            let threads: Vec<_> = clients
                .map(|mut client| {
                    scope.spawn(move || client.run(call_count / client_count).map(|()| client.diary))
                })
                .collect();
            if let Some(kill_after) = kill_after {
                let is_over = || threads.iter().all(|thread| thread.is_finished());
                while ground.finished_count.load(Ordering::Acquire) < kill_after && !is_over() {
                    std::thread::sleep(Duration::from_micros(200));
                }
                self.kill_and_restart(ground)?;
            }
            let mut diaries = Vec::new();
            for thread in threads {
                diaries.push(thread.join().map_err(|_| "a client panicked")?);
            }
            Ok(diaries.into_iter().collect())
        })?;
        let mut last = Client::new(ground, client_count, random.fork());
        Ok(diaries.and_then(|mut diaries| {
            last.look_at_everything()?;
            diaries.push(last.diary);
            Ok(diaries)
        }))
    }

    fn kill_and_restart(&mut self, ground: &Ground<'_>) -> Result<(), Error> {
        if let Some(server) = self.server.take() {
            server.kill();
        }
        self.report.kill_count += 1;
        self.start_server()?;
        let server = self.server.as_ref().ok_or("no server")?;
        *ground.addresses[0].lock().unwrap_or_else(PoisonError::into_inner) = server.addr();
        Ok(())
    }

    fn judge(&mut self, diaries: Vec<Diary>, partition_count: usize) -> Result<Option<String>, Error> {
        let report = &mut self.report;
        report.history_count += 1;
        let mut partitions: Vec<Vec<Recorded>> = vec![Vec::new(); partition_count];
        for diary in diaries {
            report.busy_count += diary.busy_count;
            report.internal_error_count += diary.internal_error_count;
            for (partition, recorded) in diary.recorded {
                report.count(&recorded);
                partitions[partition].push(recorded);
            }
        }
        for history in &partitions {
            let checked = record::check(history);
            report.partition_operation_count_max = report.partition_operation_count_max.max(history.len());
            report.configuration_count_max = report.configuration_count_max.max(checked.configuration_count);
            match checked.verdict {
                Verdict::Linearizable => {}
                Verdict::Undecided => report.undecided_count += 1,
                Verdict::Violation { longest } => {
                    let smallest = record::shrink(history);
                    return Ok(Some(format!(
                        "Not linearizable: of {} operations at most {longest} fit into one order. \
                         The smallest part found that has no order:\n\n{}\n",
                        history.len(),
                        record::readable(&smallest)
                    )));
                }
            }
        }
        let all = partitions.concat();
        match record::check_versions(&all, self.last_version) {
            Ok(greatest) => self.last_version = greatest,
            Err(wrong) => {
                return Ok(Some(format!("Versions are wrong: {wrong}\n\n{}\n", record::readable(&all))));
            }
        }
        Ok(None)
    }
}
