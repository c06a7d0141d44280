//! `crash`: runs the real binary under a mixed load from many connections and kills it with `kill -9` at random
//! moments. All rounds use one growing store; after each restart everything in it is compared with the ledger.
//!
//! Most rounds kill under load; others kill during start-up, during shutdown, during a backup or just after a big table
//! was dropped, or stop the server cleanly. A kill cannot show what a power cut would lose, because the operating
//! system keeps what was written without a sync: that is for the trial `power`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Request, Stopwatch, TempDir, entity_json};

use crate::Error;
use crate::contents::{self, Shares};
use crate::ledger::{MAIN_TABLE, Outcome, PROBE_PARTITION, Rows, settle, version_of};
use crate::load::{Common, End, LoadShape, Tally, Writer, version_in};
use crate::options::{self, Value};
use crate::summary;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
kill -9 under load, again and again over one growing store

  --server PATH      The server's binary
  --rounds N         How often to kill it [default: 200]
  --connections C    How many connections write at once [default: 16]
  --seed S           Seed of the requests and of the moments of the kills [default: a new one]";

const ROUND_COUNT: usize = 200;
const CONNECTION_COUNT: usize = 16;
/// The longest load before a kill.
const LOAD_MS_MAX: u64 = 1_500;
/// The longest time before a kill during start-up, which takes about 20 ms.
const START_MS_MAX: u64 = 40;
const START_KILL_COUNT: usize = 3;
const STOP_MS_MAX: u64 = 60;
/// Rows of the table that is dropped just before the kill. The server sweeps it in slices of 500.
const DROPPED_ROW_COUNT: usize = 2_000;
/// The longest time before a kill during a backup. The backup command needs some of it to start.
const BACKUP_MS_MAX: u64 = 60;
/// The backup's name; it lies beside the store.
const BACKUP_FILE: &str = "backup";
const SWEEP_MS_MAX: u64 = 40;
/// Generous, because other programs may use the processor. The report shows the real time.
const BACK_WITHIN: Duration = Duration::from_secs(10);
const ROUNDS_PER_REPORT: usize = 10;
/// Limits the rows of a writer by the number of rounds, so that the store grows steadily and reading all of it after
/// each kill stays affordable.
const ROWS_PER_WRITER: usize = 100;
const ROWS_PER_WRITER_AND_ROUND: usize = 25;

pub struct Settings {
    pub server: PathBuf,
    pub rounds: usize,
    pub connections: usize,
    pub seed: u64,
    /// Environment variables for the server.
    pub environment: Vec<(String, String)>,
}

/// The results. Every promise held if `broken` is empty.
#[derive(Default)]
pub struct Verdict {
    pub broken: Vec<String>,
    pub rounds: usize,
    pub kills: [usize; KillMoment::ALL.len()],
    pub acknowledged: u64,
    pub batches: u64,
    pub refused: u64,
    pub reads: u64,
    /// Requests open at a kill whose effect was found afterwards, and those whose effect was not.
    pub open_applied: usize,
    pub open_absent: usize,
    pub rows: usize,
    pub back_slowest: Duration,
    /// Where the store was kept, if a promise was broken.
    pub kept: Option<PathBuf>,
}

/// When the kill comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KillMoment {
    Load,
    Start,
    Stop,
    Drop,
    Backup,
    CleanStop,
}

impl KillMoment {
    const ALL: [(KillMoment, &str); 6] = [
        (KillMoment::Load, "under load"),
        (KillMoment::Start, "during start-up"),
        (KillMoment::Stop, "during a graceful stop"),
        (KillMoment::Drop, "while a dropped table is swept"),
        (KillMoment::Backup, "while a backup is taken"),
        (KillMoment::CleanStop, "stopped gracefully, not killed"),
    ];

    fn random(random: &mut Rng) -> KillMoment {
        match random.u32(0..20) {
            0..11 => KillMoment::Load,
            11 => KillMoment::Backup,
            12..14 => KillMoment::Start,
            14..16 => KillMoment::Stop,
            16..19 => KillMoment::Drop,
            _ => KillMoment::CleanStop,
        }
    }
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let mut settings = Settings {
        server: PathBuf::new(),
        rounds: ROUND_COUNT,
        connections: CONNECTION_COUNT,
        seed: fastrand::u64(..),
        environment: Vec::new(),
    };
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut settings.server),
        ("rounds", &mut settings.rounds),
        ("connections", &mut settings.connections),
        ("seed", &mut settings.seed),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if settings.server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary to kill".into());
    }
    println!(
        "crash: {} rounds, {} connections, seed {}",
        settings.rounds, settings.connections, settings.seed
    );
    let watch = Stopwatch::start();
    let verdict = rounds(&settings)?;
    summary::head("crash", &format!("{} rounds", verdict.rounds), watch.elapsed(), settings.seed);
    for (count, (_, name)) in verdict.kills.iter().zip(KillMoment::ALL) {
        summary::line(count, name);
    }
    summary::line(verdict.acknowledged, &format!("writes acknowledged, {} of them batches", verdict.batches));
    summary::line(verdict.refused, "writes refused, as expected");
    summary::line(verdict.reads, "reads and scans compared under load");
    summary::line(verdict.open_applied, "requests open at a kill were applied, as a whole");
    summary::line(verdict.open_absent, "requests open at a kill were not applied");
    summary::line(verdict.rows, "rows at the end");
    let slowest = format!("{:.3}", verdict.back_slowest.as_secs_f64());
    summary::line(slowest, "s from restart to the first accepted write, at most");
    summary::broken(&verdict.broken);
    if let Some(kept) = &verdict.kept {
        println!("The store is kept in {}.", kept.display());
        println!(
            "To repeat it, though never with the same timing: cargo xtask crash --rounds {} --connections {} --seed {}",
            settings.rounds, settings.connections, settings.seed
        );
    }
    Ok(summary::verdict("crash", &verdict.broken))
}

/// Stops at the first round in which a promise is broken.
pub fn rounds(settings: &Settings) -> Result<Verdict, Error> {
    let directory = TempDir::with_prefix("lazulite-crash-")?;
    let mut launch = Launch::new(&settings.server, &directory.path().join("store"));
    launch.environment = settings.environment.clone();
    let mut trial = Trial {
        launch,
        random: Rng::with_seed(settings.seed),
        tally: Tally::default(),
        // One more than the connections: the last one makes the tables to drop.
        writers: (0..=settings.connections)
            .map(|number| Writer::new(number, settings.seed, shape(0)))
            .collect(),
        probes: Rows::new(),
        verdict: Verdict::default(),
    };
    for round in 0..settings.rounds {
        trial.round(round)?;
        trial.verdict.rounds = round + 1;
        if !trial.verdict.broken.is_empty() {
            break;
        }
        if (round + 1) % ROUNDS_PER_REPORT == 0 {
            println!(
                "  round {:>4}: {} writes acknowledged, {} rows, slowest return {:.3} s",
                round + 1,
                trial.tally.acknowledged.load(Ordering::Relaxed),
                trial.verdict.rows,
                trial.verdict.back_slowest.as_secs_f64()
            );
        }
    }
    if trial.verdict.broken.is_empty()
        && let Some(server) = trial.back(settings.rounds)?
    {
        server.finish();
    }
    let mut verdict = trial.verdict;
    verdict.acknowledged = trial.tally.acknowledged.into_inner();
    verdict.batches = trial.tally.batches.into_inner();
    verdict.refused = trial.tally.refused.into_inner();
    verdict.reads = trial.tally.reads.into_inner();
    if !verdict.broken.is_empty() {
        verdict.kept = Some(directory.keep());
    }
    Ok(verdict)
}

struct Trial {
    launch: Launch,
    random: Rng,
    tally: Tally,
    writers: Vec<Writer>,
    /// The rows that the trial itself wrote after each restart.
    probes: Rows,
    verdict: Verdict,
}

impl Trial {
    fn round(&mut self, round: usize) -> Result<(), Error> {
        let moment = if round == 0 { KillMoment::Load } else { KillMoment::random(&mut self.random) };
        if let Some(place) = KillMoment::ALL.iter().position(|(known, _)| *known == moment) {
            self.verdict.kills[place] += 1;
        }
        if moment == KillMoment::Start {
            for _ in 0..START_KILL_COUNT {
                let mut child = self.launch.spawn()?;
                std::thread::sleep(Duration::from_micros(self.random.u64(0..START_MS_MAX * 1000)));
                child.kill()?;
                child.wait()?;
            }
        }
        let Some(server) = self.back(round)? else { return Ok(()) };
        let shape = shape(round);
        self.writers.iter_mut().for_each(|writer| writer.set_shape(shape));
        self.load_and_kill(round, moment, server)
    }

    /// Starts the server, writes at once, and compares everything with the ledger. `None` if a promise was broken.
    fn back(&mut self, round: usize) -> Result<Option<Victim>, Error> {
        let watch = Stopwatch::start();
        let server = match self.launch.start()? {
            Ok(server) => server,
            Err(refusal) => {
                let what = format!(
                    "round {round}: the server does not start ({:?}): {}",
                    refusal.code, refusal.words
                );
                self.verdict.broken.push(what);
                return Ok(None);
            }
        };
        let checked = self.probe(round, &server, &watch).and_then(|()| self.compare(round, &server));
        if let Err(what) = checked {
            self.verdict.broken.push(format!("round {round}: {what}"));
            let words = server.finish();
            if !words.is_empty() {
                self.verdict.broken.push(format!("the server's log: {words}"));
            }
            return Ok(None);
        }
        Ok(Some(server))
    }

    fn probe(&mut self, round: usize, server: &Victim, watch: &Stopwatch) -> Result<(), String> {
        let ask = |request: &Request| server.ask(request).map_err(|error| format!("no answer: {error}"));
        if round == 0 {
            let response =
                ask(&Request::post("/Tables").json(&format!("{{\"TableName\":\"{MAIN_TABLE}\"}}")))?;
            if response.status != 201 {
                return Err(format!("the first table is answered with {response:?}"));
            }
        }
        let floor = self.tally.latest();
        let (partition, row) = (PROBE_PARTITION.to_owned(), format!("{round:06}"));
        let json = entity_json(&partition, &row, "\"n\":1");
        let response = ask(&Request::post(&format!("/{MAIN_TABLE}")).json(&json))?;
        let back = watch.elapsed();
        self.verdict.back_slowest = self.verdict.back_slowest.max(back);
        let Some(version) = response.header("ETag").and_then(version_of).filter(|_| response.status == 201)
        else {
            return Err(format!("the first write after the restart is answered with {response:?}"));
        };
        if back > BACK_WITHIN {
            return Err(format!("writes were only accepted again after {back:?}"));
        }
        self.tally.note(version, floor)?;
        let properties = [("n".to_owned(), 1.into())].into();
        self.probes.insert((partition, row), crate::ledger::Row { properties, version: Some(version) });
        Ok(())
    }

    fn compare(&mut self, round: usize, server: &Victim) -> Result<(), String> {
        let contents = contents::read_all(server).map_err(|failure| failure.to_string())?;
        self.verdict.rows = contents.values().map(|rows| rows.len()).sum();
        let Shares { writers, probes, .. } = contents::share(contents, self.writers.len())?;
        if probes != self.probes {
            return Err(format!(
                "round {round}: {} probes were written, {} found",
                self.probes.len(),
                probes.len()
            ));
        }
        for (number, (writer, found)) in self.writers.iter_mut().zip(writers).enumerate() {
            let outcome = settle(&writer.known, writer.open.as_ref(), &found)
                .map_err(|difference| format!("writer {number}: {difference}"))?;
            if let Some(open) = &writer.open {
                match outcome {
                    Outcome::NotApplied => self.verdict.open_absent += 1,
                    Outcome::Applied => {
                        self.verdict.open_applied += 1;
                        // From now on its version counts as acknowledged.
                        let version = open.changes.iter().find_map(|change| version_in(&found, change));
                        version.map_or(Ok(()), |version| self.tally.note(version, open.floor))?;
                    }
                }
            }
            writer.settled(found, outcome, 0);
        }
        Ok(())
    }

    fn load_and_kill(&mut self, round: usize, moment: KillMoment, server: Victim) -> Result<(), Error> {
        let stopping = AtomicBool::new(false);
        let (tally, launch) = (&self.tally, &self.launch);
        let common = Common { server: &server, tally, stopping: &stopping, position: &|| 0 };
        let load_ms = self.random.u64(0..LOAD_MS_MAX);
        let wait_us = self.random.u64(0..1000);
        let (writers, dropper) = {
            let (last, rest) = self.writers.split_last_mut().ok_or("there is a writer")?;
            (rest, last)
        };
        let ends: Result<Vec<Result<End, String>>, Error> = std::thread::scope(|scope| {
            let threads: Vec<_> = writers
                .iter_mut()
                .map(|writer| {
                    let common = &common;
                    scope.spawn(move || writer.run(common, usize::MAX))
                })
                .collect();
            let mut ends = Vec::new();
            let mut stopped = Ok(());
            let mut backup = None;
            if moment == KillMoment::Drop {
                ends.push(dropper.fill_and_drop(&common, DROPPED_ROW_COUNT));
                std::thread::sleep(Duration::from_micros(wait_us * SWEEP_MS_MAX));
            } else {
                std::thread::sleep(Duration::from_millis(load_ms));
            }
            if moment == KillMoment::Backup {
                // Its result does not matter. The server shall be reading the whole store when it dies.
                backup = launch.backup(BACKUP_FILE).ok();
                std::thread::sleep(Duration::from_micros(wait_us * BACKUP_MS_MAX));
            }
            stopping.store(true, Ordering::SeqCst);
            match moment {
                KillMoment::Load | KillMoment::Start | KillMoment::Drop | KillMoment::Backup => server.kill(),
                KillMoment::Stop => {
                    stopped = server.terminate();
                    std::thread::sleep(Duration::from_micros(wait_us * STOP_MS_MAX));
                    server.kill();
                }
                KillMoment::CleanStop => {
                    stopped = server.terminate();
                    ends.push(match server.wait() {
                        Some(status) if status.success() => Ok(End::Done),
                        Some(status) => Err(format!("the server exited with {status} when asked to stop")),
                        None => Err("the server did not stop when asked to".to_owned()),
                    });
                    server.kill();
                }
            }
            ends.extend(threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err("a writer gave up: see above".to_owned()))
            }));
            if let Some(mut child) = backup {
                let _ = child.kill();
                let _ = child.wait();
            }
            stopped.map(|()| ends)
        });
        let broken = ends?.into_iter().filter_map(Result::err).map(|what| format!("round {round}: {what}"));
        self.verdict.broken.extend(broken);
        let words = server.finish();
        if panicked(&words) {
            self.verdict.broken.push(format!("round {round}: the server panicked: {words}"));
        }
        Ok(())
    }
}

fn shape(round: usize) -> LoadShape {
    let row_count_max = ROWS_PER_WRITER + ROWS_PER_WRITER_AND_ROUND * round;
    LoadShape { row_count_max, text_length_usual: 60, text_length_max: 6_000 }
}
