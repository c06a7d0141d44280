//! `power`: builds disk states that a power cut could leave, opens each with the real binary, and compares it with the
//! ledger.
//!
//! The server is recorded under load (`recording.rs`); then the disk is rebuilt as a power cut at some moment may have
//! left it (`disk_states.rs`). Promises: a write acknowledged before that moment is there, a request sent after it is
//! not, and an open request is applied as a whole or not at all, also when it takes several messages or writes an entity
//! together with a message, or the rows and the bytes of a blob. A store whose creation was interrupted still opens.
//! `restore_cuts.rs` does the same with a restore.
//!
//! A recording cannot be repeated, because its threads are not scheduled by the seed. So states that break a promise
//! are kept.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Request, Stopwatch, TempDir, entity_json};

use crate::Error;
use crate::blob::door::{self, BlobDoor};
use crate::blob::state::{BlobState, read_body};
use crate::blob::{body, writer};
use crate::contents::{self, Contents};
use crate::disk_log::Operation;
use crate::disk_states::{Disk, Image, Loss};
use crate::ledger::{MAIN_TABLE, Outcome, PROBE_PARTITION, Row, Rows, State, Version, settle, version_of};
use crate::options::{self, Value};
use crate::queue::door::{Addresses, Door};
use crate::queue::recorded::QueueState;
use crate::recording::{self, ACCOUNT, Failure, Recording};
use crate::restore_cuts;
use crate::summary::{self, BROKEN_SHOWN_MAX};
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
disk states that a power cut could leave, each opened and checked (Linux)

  --server PATH      The server's binary; the shim (liblazulite_shim.so) must lie beside it
  --states N         How many states to try [default: 10000]
  --jobs J           How many states to try at a time [default: 2]
  --seed S           Seed of the requests and the states [default: a new one]";

const STATE_COUNT: usize = 10_000;
const JOB_COUNT: usize = 2;
/// A recording takes about as long as a hundred states.
const STATES_PER_RECORDING: usize = 500;
const STATES_PER_REPORT: usize = 1_000;
/// One state in this many is opened a second time.
const REOPEN_INTERVAL: u32 = 8;
/// For this many states of a server, one state of a restore is tried.
const RESTORE_STATE_SHARE: usize = 5;
/// For one state in this many, the accounts are checked too.
const ACCOUNT_INTERVAL: u32 = 20;
/// The blob that is written into each state lies here.
const PROBE_CONTAINER: &str = "after-the-cut";
/// A directory in memory, so that a state needs no disk.
const MEMORY_DIRECTORY: &str = "/dev/shm";

pub struct Settings {
    pub server: PathBuf,
    pub states: usize,
    pub jobs: usize,
    pub seed: u64,
    /// Environment variables for the server, also while it is recorded.
    pub environment: Vec<(String, String)>,
}

/// The results. Every promise held if `broken` is empty.
#[derive(Default)]
pub struct Verdict {
    pub broken: Vec<String>,
    pub recordings: usize,
    pub states: usize,
    pub by_loss: [usize; Loss::NAMES.len()],
    /// File operations in all recordings.
    pub operations: usize,
    /// States with pending changes that a power cut could lose.
    pub pending: usize,
    pub open_applied: usize,
    pub open_absent: usize,
    /// States from before the first table existed.
    pub before_first_table: usize,
    pub reopened: usize,
    /// Where the states that broke a promise were kept.
    pub kept: Option<PathBuf>,
    pub skipped: Option<String>,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let mut settings = Settings {
        server: PathBuf::new(),
        states: STATE_COUNT,
        jobs: JOB_COUNT,
        seed: fastrand::u64(..),
        environment: Vec::new(),
    };
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut settings.server),
        ("states", &mut settings.states),
        ("jobs", &mut settings.jobs),
        ("seed", &mut settings.seed),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if settings.server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary to try".into());
    }
    println!("power: {} states, {} at a time, seed {}", settings.states, settings.jobs, settings.seed);
    let watch = Stopwatch::start();
    let mut verdict = states(&settings)?;
    if let Some(reason) = &verdict.skipped {
        println!("power: SKIPPED, nothing was tried: {reason}");
        return Ok(true);
    }
    let restores = restore_cuts::states(&settings, settings.states.div_ceil(RESTORE_STATE_SHARE))?;
    verdict.broken.extend(restores.broken);
    verdict.kept = verdict.kept.or(restores.kept);
    summary::head("power", &format!("{} states", verdict.states), watch.elapsed(), settings.seed);
    summary::line(verdict.recordings, &format!("recordings with {} file operations", verdict.operations));
    for (count, name) in verdict.by_loss.iter().zip(Loss::NAMES) {
        summary::line(count, name);
    }
    summary::line(verdict.pending, "states had something to lose");
    summary::line(verdict.before_first_table, "states were from before the first table");
    summary::line(verdict.open_applied, "requests open at the cut were applied, as a whole");
    summary::line(verdict.open_absent, "requests open at the cut were not applied");
    summary::line(verdict.reopened, "states were opened a second time");
    summary::line(
        restores.states,
        &format!("states of a restore with {} file operations, restored again", restores.operations),
    );
    summary::broken(&verdict.broken);
    if let Some(kept) = &verdict.kept {
        println!(
            "{} states broke a promise; the first are kept in {}.",
            verdict.broken.len(),
            kept.display()
        );
        println!("To run it again: cargo xtask power --states {} --seed {}", settings.states, settings.seed);
    }
    Ok(summary::verdict("power", &verdict.broken))
}

pub fn states(settings: &Settings) -> Result<Verdict, Error> {
    if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
        let skipped = Some("a library can be preloaded on 64-bit Linux only".to_owned());
        return Ok(Verdict { skipped, ..Verdict::default() });
    }
    let shim = recording::shim_of(&settings.server)
        .ok_or("there is no liblazulite_shim.so beside the server: cargo build --release --package shim")?;
    let directory = TempDir::with_prefix_in("lazulite-power-", place())?;
    let recording_count = settings.states.div_ceil(STATES_PER_RECORDING);
    let next = AtomicUsize::new(0);
    let verdict = Mutex::new(Verdict::default());
    let failed = AtomicBool::new(false);
    let work = || -> Result<(), Error> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= recording_count || failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let done = number * STATES_PER_RECORDING;
            let count = STATES_PER_RECORDING.min(settings.states - done);
            let mut job = Job { settings, directory: directory.path(), number, verdict: &verdict };
            if let Err(error) = job.run(&shim, count) {
                failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a job gave up: see above".into())))
            .collect::<Result<Vec<()>, Error>>()
    })?;
    let mut verdict = verdict.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !verdict.broken.is_empty() {
        verdict.kept = Some(directory.keep());
    }
    Ok(verdict)
}

/// The directory for the states: in memory if possible.
pub fn place() -> PathBuf {
    let memory = Path::new(MEMORY_DIRECTORY);
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// One recording and its states.
struct Job<'a> {
    settings: &'a Settings,
    directory: &'a Path,
    number: usize,
    verdict: &'a Mutex<Verdict>,
}

/// The ledger at one moment.
struct Moment {
    /// What each writer knew to be stored.
    known: Vec<State>,
    /// How many entries of each writer's history are settled.
    settled: Vec<usize>,
    /// The same for each queue writer.
    queue_settled: Vec<usize>,
    /// The same for each blob writer.
    blob_settled: Vec<usize>,
    /// The greatest version acknowledged so far.
    latest: Version,
}

/// What was found in one state.
#[derive(Default)]
struct Seen {
    open_applied: usize,
    open_absent: usize,
    before_first_table: bool,
    reopened: bool,
}

impl Job<'_> {
    fn run(&mut self, shim: &Path, count: usize) -> Result<(), Error> {
        let Settings { server, environment, .. } = self.settings;
        let seed = self.settings.seed.wrapping_add(self.number as u64);
        let recording = match recording::record(server, shim, environment, self.directory, seed) {
            Ok(recording) => recording,
            Err(Failure::Trial(error)) => return Err(error),
            Err(Failure::Broken(what)) => {
                self.verdict().broken.push(format!("recording {}, without a power cut: {what}", self.number));
                return Ok(());
            }
        };
        {
            let mut verdict = self.verdict();
            verdict.recordings += 1;
            verdict.operations += recording.records.len();
        }
        let mut random = Rng::with_seed(seed);
        let mut disk = Disk::new(&recording.root, recording.root_inode);
        let mut moment = Moment {
            known: vec![State::new(); recording.writers.len()],
            settled: vec![0; recording.writers.len()],
            queue_settled: vec![0; recording.queue_writers.len()],
            blob_settled: vec![0; recording.blob_writers.len()],
            latest: 0,
        };
        let mut applied = 0;
        for (number, cut) in cuts(&recording, count, &mut random).into_iter().enumerate() {
            for record in &recording.records[applied..cut] {
                disk.apply(&record.operation)?;
            }
            applied = cut;
            let position = cut.checked_sub(1).map_or(0, |last| recording.records[last].end);
            moment.advance(&recording, position);
            let loss = Loss::random(&mut random);
            let image = disk.cut(loss, &mut random);
            let outcome = self.state(number, &image, &recording, &moment, position, &mut random)?;
            let mut verdict = self.verdict();
            verdict.states += 1;
            verdict.by_loss[loss.index()] += 1;
            verdict.pending += usize::from(disk.pending_count() > 0);
            match outcome {
                Ok(seen) => {
                    verdict.open_applied += seen.open_applied;
                    verdict.open_absent += seen.open_absent;
                    verdict.before_first_table += usize::from(seen.before_first_table);
                    verdict.reopened += usize::from(seen.reopened);
                }
                Err(what) => {
                    let records = recording.records.len();
                    let kept = if verdict.broken.len() < BROKEN_SHOWN_MAX {
                        let kept = self.directory.join(format!("broken-{}-{number}", self.number));
                        image.write(&kept)?;
                        format!(" (kept in {})", kept.display())
                    } else {
                        String::new()
                    };
                    verdict.broken.push(format!(
                        "recording {}, state {number}, cut after {cut} of {records} operations, {}{kept}: {what}",
                        self.number,
                        Loss::NAMES[loss.index()],
                    ));
                }
            }
            if verdict.states.is_multiple_of(STATES_PER_REPORT) {
                println!("  {:>6} states, {} broken", verdict.states, verdict.broken.len());
            }
        }
        Ok(())
    }

    fn verdict(&self) -> std::sync::MutexGuard<'_, Verdict> {
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens one state and checks it. The inner error is a broken promise.
    fn state(
        &self,
        number: usize,
        image: &Image,
        recording: &Recording,
        moment: &Moment,
        position: u64,
        random: &mut Rng,
    ) -> Result<Result<Seen, String>, Error> {
        let directory = self.directory.join(format!("state-{}-{number}", self.number));
        image.write(&directory)?;
        let mut launch = Launch::new(&self.settings.server, &directory.join("store"));
        launch.environment = self.settings.environment.clone();
        let outcome = open_and_check(&launch, recording, moment, position, random);
        std::fs::remove_dir_all(&directory)?;
        outcome
    }
}

fn open_and_check(
    launch: &Launch,
    recording: &Recording,
    moment: &Moment,
    position: u64,
    random: &mut Rng,
) -> Result<Result<Seen, String>, Error> {
    let server = match launch.start()? {
        Ok(server) => server,
        Err(refusal) => return Ok(Err(format!("the server does not start: {}", refusal.words))),
    };
    let mut seen = Seen::default();
    let checked = check(&server, recording, moment, position, &mut seen);
    let words = server.finish();
    let Found { contents, queues, blobs } = match checked {
        Ok(_) if panicked(&words) => return Ok(Err(format!("the server panicked: {words}"))),
        Ok(found) => found,
        Err(what) => return Ok(Err(format!("{what}; the server said: {words:?}"))),
    };
    if random.u32(0..REOPEN_INTERVAL) == 0 {
        seen.reopened = true;
        let server = match launch.start()? {
            Ok(server) => server,
            Err(refusal) => return Ok(Err(format!("the second start fails: {}", refusal.words))),
        };
        match contents::read_all(&server) {
            Ok(again) if again == contents => {}
            Ok(_) => return Ok(Err("the second start finds other contents than the first".to_owned())),
            Err(failure) => return Ok(Err(format!("after the second start: {failure}"))),
        }
        match read_queues(&server, queues.len()) {
            Ok(again) if again == queues => {}
            Ok(_) => return Ok(Err("the second start finds other queues than the first".to_owned())),
            Err(failure) => return Ok(Err(format!("after the second start: {failure}"))),
        }
        match read_blobs(&server, blobs.len()) {
            Ok(again) if again == blobs => {}
            Ok(_) => return Ok(Err("the second start finds other blobs than the first".to_owned())),
            Err(failure) => return Ok(Err(format!("after the second start: {failure}"))),
        }
        drop(server);
        let (is_sound, words) = launch.check()?;
        if !is_sound {
            return Ok(Err(format!("lazulite check: {words}")));
        }
    }
    if position >= recording.account.sent_at && random.u32(0..ACCOUNT_INTERVAL) == 0 {
        let output =
            launch.command().args(["account", "list", "--location"]).arg(&launch.location).output()?;
        let listed = String::from_utf8_lossy(&output.stdout).contains(ACCOUNT);
        if !output.status.success() {
            return Ok(Err(format!("account list: {}", String::from_utf8_lossy(&output.stderr))));
        }
        if !listed && position >= recording.account.settled_at {
            return Ok(Err("the account that was added is not there".to_owned()));
        }
    }
    Ok(Ok(seen))
}

/// What each queue writer has stored.
fn read_queues(server: &Victim, writer_count: usize) -> Result<Vec<QueueState>, String> {
    let mut door = Door::new(Addresses { table: server.addr(), queue: server.queue_addr() });
    (0..writer_count).map(|number| QueueState::read(&mut door, number)).collect()
}

/// Compares the queues with what their writers knew at that moment.
fn check_queues(
    server: &Victim,
    recording: &Recording,
    moment: &Moment,
    position: u64,
    seen: &mut Seen,
) -> Result<Vec<QueueState>, String> {
    let queues = read_queues(server, recording.queue_writers.len())?;
    let nothing = QueueState::default();
    for (number, (history, found)) in recording.queue_writers.iter().zip(&queues).enumerate() {
        let settled = moment.queue_settled[number];
        let known = settled.checked_sub(1).map_or(&nothing, |last| &history[last].after);
        let open = history.get(settled).filter(|entry| entry.sent_at <= position);
        match open {
            _ if found == known => seen.open_absent += usize::from(open.is_some()),
            Some(open) if *found == open.after => seen.open_applied += 1,
            _ => {
                let open = open.map(|open| &open.after);
                return Err(format!(
                    "queue writer {number}: {known:?} is known, or {open:?}, but {found:?} is there"
                ));
            }
        }
    }
    Ok(queues)
}

/// What each blob writer has stored.
fn read_blobs(server: &Victim, writer_count: usize) -> Result<Vec<BlobState>, String> {
    let mut door = BlobDoor::new(server.blob_addr());
    (0..writer_count).map(|number| BlobState::read(&mut door, &writer::container(number))).collect()
}

/// Compares the blobs with what their writers knew at that moment.
fn check_blobs(
    server: &Victim,
    recording: &Recording,
    moment: &Moment,
    position: u64,
    seen: &mut Seen,
) -> Result<Vec<BlobState>, String> {
    let blobs = read_blobs(server, recording.blob_writers.len())?;
    let nothing = BlobState::default();
    for (number, (history, found)) in recording.blob_writers.iter().zip(&blobs).enumerate() {
        let settled = moment.blob_settled[number];
        let known = settled.checked_sub(1).map_or(&nothing, |last| &history[last].after);
        let open = history.get(settled).filter(|entry| entry.sent_at <= position);
        match open {
            _ if found == known => seen.open_absent += usize::from(open.is_some()),
            Some(open) if *found == open.after => seen.open_applied += 1,
            _ => {
                let open = open.map(|open| open.after.difference(found)).unwrap_or_default();
                let known = known.difference(found);
                return Err(format!("blob writer {number}: {known}\nwith the open operation: {open}"));
            }
        }
    }
    Ok(blobs)
}

/// What a state holds.
struct Found {
    contents: Contents,
    queues: Vec<QueueState>,
    blobs: Vec<BlobState>,
}

/// Reads everything, compares it, and writes a row and a blob. Returns the contents of the store afterwards.
fn check(
    server: &Victim,
    recording: &Recording,
    moment: &Moment,
    position: u64,
    seen: &mut Seen,
) -> Result<Found, String> {
    let mut contents = contents::read_all(server).map_err(|failure| failure.to_string())?;
    let floor = contents.values().flat_map(|rows| rows.values()).filter_map(|row| row.version).max();
    let floor = floor.unwrap_or(0).max(moment.latest);
    if contents.is_empty() {
        if position >= recording.main.settled_at {
            return Err("there are no tables at all".to_owned());
        }
        seen.before_first_table = true;
        let request = Request::post("/Tables").json(&format!("{{\"TableName\":\"{MAIN_TABLE}\"}}"));
        let response = server.ask(&request).map_err(|error| error.to_string())?;
        if response.status != 201 {
            return Err(format!("the first table is answered with {response:?}"));
        }
        contents.insert(MAIN_TABLE.to_owned(), Rows::new());
    } else {
        if position < recording.main.sent_at {
            return Err("there is a table that was not yet requested".to_owned());
        }
        let shares = contents::share(contents.clone(), moment.known.len())?;
        if !shares.probes.is_empty() {
            return Err("there are rows that no writer wrote".to_owned());
        }
        for (number, (known, found)) in moment.known.iter().zip(&shares.writers).enumerate() {
            let next = recording.writers[number].get(moment.settled[number]);
            let open = next.filter(|entry| entry.sent_at <= position).map(|entry| &entry.attempt);
            let outcome =
                settle(known, open, found).map_err(|difference| format!("writer {number}: {difference}"))?;
            match (open, outcome) {
                (Some(_), Outcome::Applied) => seen.open_applied += 1,
                (Some(_), Outcome::NotApplied) => seen.open_absent += 1,
                (None, _) => {}
            }
        }
    }
    let queues = check_queues(server, recording, moment, position, seen)?;
    let blobs = check_blobs(server, recording, moment, position, seen)?;
    write_blob(server)?;
    let key = (PROBE_PARTITION.to_owned(), "after".to_owned());
    let request = Request::post(&format!("/{MAIN_TABLE}")).json(&entity_json(&key.0, &key.1, ""));
    let response = server.ask(&request).map_err(|error| format!("a write after the cut: {error}"))?;
    let version = response.header("ETag").and_then(version_of).filter(|_| response.status == 201);
    let Some(version) = version else {
        return Err(format!("a write after the cut is answered with {response:?}"));
    };
    if version <= floor {
        return Err(format!("a write after the cut got version {version}, but {floor} was assigned before"));
    }
    let row = Row { properties: Default::default(), version: Some(version) };
    contents.entry(MAIN_TABLE.to_owned()).or_default().insert(key, row);
    Ok(Found { contents, queues, blobs })
}

/// Writes a blob that does not fit into its row, and reads it.
fn write_blob(server: &Victim) -> Result<(), String> {
    let mut door = BlobDoor::new(server.blob_addr());
    let body = body::make(1, 20_000);
    for (request, statuses) in [
        (door::create_container(PROBE_CONTAINER), [201, 409]),
        (door::put(&format!("/{PROBE_CONTAINER}/after"), &body), [201, 201]),
    ] {
        let response = door.ask(&request).map_err(|error| format!("a blob after the cut: {error}"))?;
        if !statuses.contains(&response.status) {
            return Err(format!("a blob after the cut is answered with {response:?}"));
        }
    }
    match read_body(&mut door, &format!("/{PROBE_CONTAINER}/after"))? {
        Some(found) if found == body => Ok(()),
        other => Err(format!("the blob after the cut is {:?}", other.map(|found| body::describe(&found)))),
    }
}

impl Moment {
    /// Moves on to a later position.
    fn advance(&mut self, recording: &Recording, position: u64) {
        for (number, history) in recording.writers.iter().enumerate() {
            while let Some(entry) =
                history.get(self.settled[number]).filter(|entry| entry.settled_at <= position)
            {
                if entry.outcome == Outcome::Applied {
                    self.known[number].apply(&entry.attempt);
                    self.latest = self.latest.max(entry.attempt.version.unwrap_or(0));
                }
                self.settled[number] += 1;
            }
        }
        for (settled, history) in self.queue_settled.iter_mut().zip(&recording.queue_writers) {
            while history.get(*settled).is_some_and(|entry| entry.settled_at <= position) {
                *settled += 1;
            }
        }
        for (settled, history) in self.blob_settled.iter_mut().zip(&recording.blob_writers) {
            while history.get(*settled).is_some_and(|entry| entry.settled_at <= position) {
                *settled += 1;
            }
        }
    }
}

/// This many moments in order, each as the number of records before it. Half are anywhere, the others just before or
/// after the end of a sync, where the difference matters most.
fn cuts(recording: &Recording, count: usize, random: &mut Rng) -> Vec<usize> {
    let records = &recording.records;
    let is_end = |at: &usize| matches!(records[*at].operation, Operation::SyncEnd { .. });
    let ends: Vec<usize> = (0..records.len()).filter(is_end).collect();
    let mut cuts: Vec<usize> = (0..count)
        .map(|_| {
            if ends.is_empty() || random.bool() {
                return random.usize(0..=records.len());
            }
            ends[random.usize(0..ends.len())] + random.usize(0..2)
        })
        .map(|cut| {
            // Changes found after a kill have no order, so a cut takes all of them or none.
            let later = |at: usize| at > 0 && at < records.len() && records[at].end == records[at - 1].end;
            (cut..=records.len()).find(|at| !later(*at)).unwrap_or(records.len())
        })
        .collect();
    cuts.sort_unstable();
    cuts
}
