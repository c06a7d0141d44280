//! `blob-crash`: writers put, overwrite, stage and commit blocks, append, write pages, take snapshots, copy and
//! delete, readers compare whole bodies and ranges, sweeps run beside them, and the real binary is killed with `kill
//! -9` at random moments. All rounds use one store.
//!
//! After each kill `lazulite check` must find the store sound: every row has its bytes. After each restart every
//! container must hold exactly what its writer knows, or that with its one open operation applied (`blob.rs`). A
//! reader must find a body that the blob had at some moment of the read, never a mix of two. Every few rounds, after
//! a sweep, the check must find no bytes that no blob has. In the end everything is deleted and swept, and the disk
//! must be empty again, but for what is kept ready.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Request, Stopwatch, TempDir};

use crate::Error;
use crate::blob::board::Board;
use crate::blob::body::describe;
use crate::blob::door::{self, BlobDoor};
use crate::blob::writer::{BlobCounts, BlobWriter, BodySizes, Workplace};
use crate::load::End;
use crate::options::{self, Value};
use crate::queue::recorded::Stop;
use crate::summary;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
kill -9 while blobs are written, read and swept, checked against a ledger of every byte

  --server PATH      The server's binary
  --rounds N         How often to kill it [default: 200]
  --connections C    How many writers work at once; there is a reader for every two of them [default: 8]
  --seed S           Seed of the requests and of the moments of the kills [default: a new one]";

const ROUND_COUNT: usize = 200;
const CONNECTION_COUNT: usize = 8;
/// The longest load before a kill.
const LOAD_MS_MAX: u64 = 900;
/// The longest time before a kill during start-up, and during a sweep of a store that nobody serves.
const START_MS_MAX: u64 = 40;
const STOP_MS_MAX: u64 = 40;
const ROUNDS_PER_SWEEP: usize = 5;
const SWEEP_PAUSE: Duration = Duration::from_millis(30);
/// A reader waits so long before it reads a long answer, now and then.
const SLOW_READ_MS_MAX: u64 = 120;
const SIZES: BodySizes = BodySizes { long_bytes_max: 3 << 20, long_percent: 5, page_blob_bytes: 192 * 1024 };
/// The first writer's page blob has two segments of 4 MiB.
const TWO_SEGMENTS_BYTES: usize = (4 << 20) + (64 << 10);
/// What an empty store may take: five extents that are being filled, each with room for a chunk and a step ahead.
const EMPTY_BYTES_MAX: u64 = 5 * (20 << 20);
/// Segments of page blobs that nobody sees are kept for a day, because a copy may be about to use them. Ranges
/// between them that are too short for a hole are kept too: measured, up to twice as much.
const KEPT_FACTOR: u64 = 4;
/// What `lazulite check` says of garbage.
const GARBAGE: &str = "bytes that no blob has any more";

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
    pub kills: usize,
    /// Sweeps that were killed before their end.
    killed_sweeps: usize,
    sweeps: u64,
    compared: u64,
    garbage_found: usize,
    disk_bytes_max: u64,
    disk_bytes_end: u64,
    /// Of segments that nobody sees any more.
    kept_bytes: u64,
    pub counts: BlobCounts,
    pub kept: Option<PathBuf>,
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
    let Settings { rounds: count, connections, seed, .. } = settings;
    println!("blob-crash: {count} rounds, {connections} writers, seed {seed}");
    let watch = Stopwatch::start();
    let verdict = rounds(&settings)?;
    summary::head("blob-crash", &format!("{} rounds", verdict.rounds), watch.elapsed(), seed);
    let counts = &verdict.counts;
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    for (figure, words) in [
        (verdict.kills as u64, "kills"),
        (counts.puts, "blobs put"),
        (counts.blocks, "blocks staged"),
        (counts.lists, "block lists committed"),
        (counts.appends, "appends"),
        (counts.pages, "writes of pages"),
        (counts.snapshots, "snapshots"),
        (counts.copies, "copies"),
        (counts.deletes, "deletions"),
        (counts.reads, "reads by those who wrote"),
        (verdict.compared, "reads by others, of whole blobs and of ranges"),
        (counts.open_applied, "operations open at a kill were applied, as a whole"),
        (counts.open_absent, "operations open at a kill were not applied"),
        (verdict.sweeps, "sweeps beside the load"),
        (verdict.killed_sweeps as u64, "sweeps killed"),
        (verdict.garbage_found as u64, "kills that left bytes without a row, all given back by a sweep"),
    ] {
        summary::line(figure, words);
    }
    summary::line(mebibytes(counts.written_bytes), "sent");
    summary::line(mebibytes(verdict.disk_bytes_max), "on the disk at most");
    summary::line(mebibytes(verdict.disk_bytes_end), "on the disk when everything was deleted");
    summary::line(
        mebibytes(verdict.kept_bytes),
        "of that in segments of page blobs, which are kept for a day",
    );
    summary::broken(&verdict.broken);
    if let Some(kept) = &verdict.kept {
        println!("The store is kept in {}.", kept.display());
        println!(
            "To repeat it, though never with the same timing: cargo xtask blob-crash --rounds {count} --connections {connections} --seed {seed}"
        );
    }
    Ok(summary::verdict("blob-crash", &verdict.broken))
}

/// Stops at the first round in which a promise is broken.
pub fn rounds(settings: &Settings) -> Result<Verdict, Error> {
    let directory = TempDir::with_prefix("lazulite-blob-crash-")?;
    let mut launch = Launch::new(&settings.server, &directory.path().join("store"));
    launch.environment = settings.environment.clone();
    let writer = |number| {
        let page_blob_bytes = if number == 0 { TWO_SEGMENTS_BYTES } else { SIZES.page_blob_bytes };
        BlobWriter::new(number, settings.seed, BodySizes { page_blob_bytes, ..SIZES })
    };
    let mut trial = Trial {
        launch,
        random: Rng::with_seed(settings.seed),
        board: Board::new(),
        writers: (0..settings.connections).map(writer).collect(),
        reader_count: settings.connections.div_ceil(2),
        verdict: Verdict::default(),
    };
    for round in 0..settings.rounds {
        if let Err(what) = trial.round(round)? {
            trial.verdict.broken.push(format!("round {round}: {what}"));
            break;
        }
        trial.verdict.rounds = round + 1;
        if (round + 1).is_multiple_of(ROUNDS_PER_SWEEP) {
            if let Err(what) = trial.sweep_at_rest()? {
                trial.verdict.broken.push(format!("after round {round}: {what}"));
                break;
            }
            println!("  round {:>4}: {} operations", round + 1, trial.operation_count());
        }
    }
    if trial.verdict.broken.is_empty()
        && let Err(what) = trial.delete_everything()?
    {
        trial.verdict.broken.push(format!("when everything is deleted: {what}"));
    }
    let mut counts = BlobCounts::default();
    trial.writers.iter().for_each(|writer| counts.add(&writer.counts));
    let mut verdict = Verdict { counts, ..trial.verdict };
    if !verdict.broken.is_empty() {
        verdict.kept = Some(directory.keep());
    }
    Ok(verdict)
}

struct Trial {
    launch: Launch,
    random: Rng,
    board: Board,
    writers: Vec<BlobWriter>,
    reader_count: usize,
    verdict: Verdict,
}

/// The inner error is a broken promise.
type Checked<T> = Result<Result<T, String>, Error>;

/// Passes a broken promise on.
macro_rules! held {
    ($checked:expr) => {
        match $checked {
            Ok(value) => value,
            Err(what) => return Ok(Err(what)),
        }
    };
}

impl Trial {
    fn operation_count(&self) -> u64 {
        let of_writer = |counts: &BlobCounts| {
            let BlobCounts { puts, blocks, lists, appends, pages, snapshots, copies, deletes, .. } = counts;
            puts + blocks + lists + appends + pages + snapshots + copies + deletes
        };
        self.writers.iter().map(|writer| of_writer(&writer.counts)).sum()
    }

    fn round(&mut self, round: usize) -> Checked<()> {
        if round > 0 && self.random.u8(..8) == 0 {
            let mut child = self.launch.spawn()?;
            self.kill_soon(&mut child)?;
            self.verdict.kills += 1;
        }
        if round > 0 && self.random.u8(..6) == 0 {
            let mut child = self.launch.sweep().spawn()?;
            self.kill_soon(&mut child)?;
            self.verdict.killed_sweeps += 1;
        }
        if round > 0 {
            let (is_sound, words) = self.launch.check()?;
            if !is_sound {
                return Ok(Err(format!("lazulite check: {words}")));
            }
            self.verdict.garbage_found += usize::from(words.contains(GARBAGE));
        }
        let server = held!(self.start()?);
        let outcome = self.compare_all(&server).and_then(|()| self.load_and_kill(&server));
        let words = server.finish();
        self.verdict.disk_bytes_max = self.verdict.disk_bytes_max.max(self.disk_bytes()?);
        if panicked(&words) {
            return Ok(Err(format!("the server panicked: {words}")));
        }
        Ok(outcome.map_err(|what| format!("{what}\nThe server's log: {words}")))
    }

    fn kill_soon(&mut self, child: &mut std::process::Child) -> Result<(), Error> {
        std::thread::sleep(Duration::from_micros(self.random.u64(0..START_MS_MAX * 1000)));
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    fn start(&self) -> Checked<Victim> {
        Ok(self.launch.start()?.map_err(|refusal| format!("the server does not start: {}", refusal.words)))
    }

    /// Compares all containers with what their writers know.
    fn compare_all(&mut self, server: &Victim) -> Result<(), String> {
        self.board.clear();
        let (board, addr) = (&self.board, server.blob_addr());
        std::thread::scope(|scope| {
            let compare = |writer: &'_ mut BlobWriter| {
                let mut place = Workplace { door: BlobDoor::new(addr), board: Some(board), position: &|| 0 };
                writer.compare(&mut place)
            };
            let half = self.writers.len().div_ceil(2);
            let threads: Vec<_> = self
                .writers
                .chunks_mut(half)
                .map(|writers| scope.spawn(move || writers.iter_mut().try_for_each(compare)))
                .collect();
            threads.into_iter().try_for_each(joined)
        })
    }

    fn load_and_kill(&mut self, server: &Victim) -> Result<(), String> {
        let load = Duration::from_millis(self.random.u64(20..LOAD_MS_MAX));
        let stops_first = self.random.u8(..10) == 0;
        let stop_us = self.random.u64(0..STOP_MS_MAX * 1000);
        let sweeps = self.random.bool();
        let (launch, board, addr) = (&self.launch, &self.board, server.blob_addr());
        let (stopping, compared, swept) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let (stopping, compared, swept) = (&stopping, &compared, &swept);
        let random = &mut self.random;
        let readers: Vec<Rng> = (0..self.reader_count).map(|_| random.fork()).collect();
        let outcome = std::thread::scope(|scope| {
            let mut threads: Vec<_> = self
                .writers
                .iter_mut()
                .map(|writer| {
                    scope.spawn(move || {
                        let door = BlobDoor::new(addr);
                        let mut place = Workplace { door, board: Some(board), position: &|| 0 };
                        ended(writer.run(&mut place, usize::MAX), stopping)
                    })
                })
                .collect();
            for mut random in readers {
                threads.push(scope.spawn(move || {
                    let mut door = BlobDoor::new(addr);
                    loop {
                        match read_one(&mut door, board, &mut random) {
                            Ok(()) => drop(compared.fetch_add(1, Ordering::Relaxed)),
                            Err(stop) => return ended(Err(stop), stopping),
                        }
                    }
                }));
            }
            let sweeper = scope.spawn(move || {
                while sweeps && !stopping.load(Ordering::SeqCst) {
                    // It must have ended before the next server starts, because it may open the store itself.
                    if launch.sweep().output().is_ok_and(|output| output.status.success()) {
                        swept.fetch_add(1, Ordering::Relaxed);
                    }
                    std::thread::sleep(SWEEP_PAUSE);
                }
            });
            std::thread::sleep(load);
            stopping.store(true, Ordering::SeqCst);
            if stops_first && server.terminate().is_ok() {
                std::thread::sleep(Duration::from_micros(stop_us));
            }
            server.kill();
            let ends: Vec<_> = threads.into_iter().map(joined).collect();
            let swept = sweeper.join().map_err(|_| "the sweeper gave up: see above".to_owned());
            ends.into_iter().collect::<Result<Vec<_>, String>>().and(swept)
        });
        self.verdict.kills += 1;
        self.verdict.compared += compared.load(Ordering::Relaxed);
        self.verdict.sweeps += swept.load(Ordering::Relaxed);
        outcome
    }

    /// Sweeps a store that nobody serves. Then nothing may be left without a row.
    fn sweep_at_rest(&mut self) -> Checked<()> {
        // The second finds what the rows that the first removed had named.
        for _ in 0..2 {
            let output = self.launch.sweep().output()?;
            if !output.status.success() {
                return Ok(Err(format!("a sweep fails: {}", String::from_utf8_lossy(&output.stderr))));
            }
        }
        let (is_sound, words) = self.launch.check()?;
        if !is_sound || words.contains(GARBAGE) {
            return Ok(Err(format!("lazulite check after a sweep: {words}")));
        }
        Ok(Ok(()))
    }

    fn delete_everything(&mut self) -> Checked<()> {
        let server = held!(self.start()?);
        held!(self.compare_all(&server));
        let mut door = BlobDoor::new(server.blob_addr());
        for writer in &self.writers {
            let container = writer.container();
            // Half of them blob by blob, the others at once.
            let paths = writer.known.blobs.keys().map(|blob| format!("/{container}/{blob}"));
            let mut requests: Vec<(Request, u16)> = Vec::new();
            if self.random.bool() {
                requests.extend(paths.map(|path| (door::delete(&path), 202)));
            } else if writer.known.has_container {
                requests.push((door::delete_container(&container), 202));
            }
            for (request, status) in requests {
                let response = door.ask(&request)?;
                if response.status != status {
                    return Ok(Err(format!("{request:?} is answered with {response:?}")));
                }
            }
        }
        server.terminate()?;
        if server.wait().is_none() {
            return Ok(Err("the server does not stop".to_owned()));
        }
        server.finish();
        held!(self.sweep_at_rest()?);
        let (_, words) = self.launch.check()?;
        self.verdict.kept_bytes = kept_bytes(&words);
        self.verdict.disk_bytes_end = self.disk_bytes()?;
        if self.verdict.disk_bytes_end > EMPTY_BYTES_MAX + KEPT_FACTOR * self.verdict.kept_bytes {
            let bytes = self.verdict.disk_bytes_end;
            return Ok(Err(format!("the contents still take {bytes} bytes: {words}")));
        }
        Ok(Ok(()))
    }

    /// What the contents take on the disk.
    fn disk_bytes(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(self.launch.location.join("contents"))? {
            bytes += allocated(&entry?.path())?;
        }
        Ok(bytes)
    }
}

/// The bytes of content of which `lazulite check` tells.
fn kept_bytes(words: &str) -> u64 {
    let before = words.split(" bytes of content").next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(unix)]
fn allocated(file: &Path) -> Result<u64, Error> {
    Ok(std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(file)?) * 512)
}

#[cfg(not(unix))]
fn allocated(file: &Path) -> Result<u64, Error> {
    Ok(std::fs::metadata(file)?.len())
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("a client gave up: see above".to_owned()))
}

/// A connection may break after the server was told to stop.
fn ended(outcome: Result<(), Stop>, stopping: &AtomicBool) -> Result<End, String> {
    match outcome {
        Ok(()) => Ok(End::Done),
        Err(Stop::Cut(_)) if stopping.load(Ordering::SeqCst) => Ok(End::Cut),
        Err(Stop::Cut(error)) => Err(format!("a connection broke: {error}")),
        Err(Stop::Broken(what)) => Err(what),
    }
}

/// Reads some blob of some writer, or a range of it, and compares.
fn read_one(door: &mut BlobDoor, board: &Board, random: &mut Rng) -> Result<(), Stop> {
    let Some(path) = board.any_path(random) else {
        std::thread::sleep(Duration::from_millis(1));
        return Ok(());
    };
    let range = random.bool().then(|| {
        let (start_bits, length_bits) = (random.u32(0..22), random.u32(1..20));
        let start = random.usize(..1 << start_bits);
        start..start + random.usize(1..1 << length_bits)
    });
    let request = Request::get(&path);
    let request = match &range {
        Some(range) => request.header("x-ms-range", &format!("bytes={}-{}", range.start, range.end - 1)),
        None => request,
    };
    let pause_ms = if random.u8(..16) == 0 { random.u64(..SLOW_READ_MS_MAX) } else { 0 };
    let from = board.now();
    let response = door.ask_slowly(&request, Duration::from_millis(pause_ms)).map_err(Stop::Cut)?;
    let Some(possible) = board.possible(&path, from, board.now()) else { return Ok(()) };
    let fits = |body: &Option<crate::blob::body::Body>| match (body, &range) {
        (None, _) => response.status == 404,
        (Some(body), Some(range)) if range.start >= body.len() => response.status == 416,
        (Some(body), Some(range)) => {
            response.status == 206 && response.body == body[range.start..range.end.min(body.len())]
        }
        (Some(body), None) => response.status == 200 && response.body == **body,
    };
    if possible.iter().any(fits) {
        return Ok(());
    }
    let possible: Vec<String> = possible
        .iter()
        .map(|body| body.as_ref().map_or("nothing".to_owned(), |body| describe(body)))
        .collect();
    Err(Stop::Broken(format!(
        "{path}, range {range:?}, may be {possible:?}, but the answer is {} with {}",
        response.status,
        describe(&response.body)
    )))
}
