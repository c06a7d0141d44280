//! Records the real binary under load. The preloaded shim logs every file operation in the data directory, and for each
//! request the recording knows the range of that log in which it was open.
//!
//! The store has three lives: the first ends gracefully, the second by `kill -9`, the third with the recording. Tables
//! are created and dropped, a big one is swept, an account is added, messages go through queues, and blobs are written,
//! snapshotted, copied, deleted and swept. Promises: the log describes the directory exactly
//! (both are compared after each life), so a disk rebuilt from it is one that could have existed.
//! Leaves to others: rebuilding disks (`disk_states.rs`).

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use testkit::{Request, TempDir};

use crate::Error;
use crate::blob::door::BlobDoor;
use crate::blob::writer::{BlobEntry, BlobWriter, BodySizes, Workplace};
use crate::contents;
use crate::disk_log::{self, Operation, Record};
use crate::disk_states::{Disk, Image, Loss, inode};
use crate::ledger::{MAIN_TABLE, settle};
use crate::load::{Common, End, Entry, LoadShape, Tally, Writer};
use crate::queue::door::Addresses;
use crate::queue::recorded::{QueueEntry, QueueWriter, Stop, VISIBLE_AFTER};
use crate::victim::{Launch, Victim};

const SHIM: &str = "liblazulite_shim.so";
const WRITER_COUNT: usize = 4;
const QUEUE_WRITER_COUNT: usize = 3;
const BLOB_WRITER_COUNT: usize = 2;
const STEPS_PER_LIFE: usize = 30;
/// Extents are part of every state, so bodies are short; some are written as chunks of their own all the same.
const SIZES: BodySizes =
    BodySizes { long_bytes_max: 400 * 1024, long_percent: 6, page_blob_bytes: 96 * 1024 };
/// In the middle of a life.
const SWEEP_AFTER: Duration = Duration::from_millis(60);
const SHAPE: LoadShape = LoadShape { row_count_max: 50, text_length_usual: 40, text_length_max: 3_000 };
/// Rows of the table that is dropped: more than one slice of the sweep.
const DROPPED_ROW_COUNT: usize = 600;
const POLL: Duration = Duration::from_micros(200);
/// The account that the recording adds.
pub const ACCOUNT: &str = "recorded";

/// When something was requested and when it was known to be done, as lengths of the log.
#[derive(Clone, Copy)]
pub struct Span {
    pub sent_at: u64,
    pub settled_at: u64,
}

pub struct Recording {
    pub root: String,
    pub root_inode: u64,
    pub records: Vec<Record>,
    /// The requests of each writer.
    pub writers: Vec<Vec<Entry>>,
    /// The creation of the main table.
    pub main: Span,
    pub account: Span,
    /// The operations of each queue writer.
    pub queue_writers: Vec<Vec<QueueEntry>>,
    /// The operations of each blob writer.
    pub blob_writers: Vec<Vec<BlobEntry>>,
}

/// Why there is no recording.
pub enum Failure {
    /// The server broke a promise even without a power cut.
    Broken(String),
    /// The trial itself failed.
    Trial(Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Trial(error.into())
    }
}

/// Looks for the shim beside the server's binary and beside this one.
pub fn shim_of(server: &Path) -> Option<PathBuf> {
    let ours = std::env::current_exe().ok()?;
    [server, &ours].into_iter().map(|binary| binary.with_file_name(SHIM)).find(|shim| shim.is_file())
}

struct Studio {
    launch: Launch,
    root: PathBuf,
    log: PathBuf,
    disk: Disk,
    records: Vec<Record>,
    /// The length of the log up to which it was read into `records`.
    read: u64,
    tally: Tally,
    writers: Vec<Writer>,
    queue_writers: Vec<QueueWriter>,
    blob_writers: Vec<BlobWriter>,
}

pub fn record(
    server: &Path,
    shim: &Path,
    environment: &[(String, String)],
    directory: &Path,
    seed: u64,
) -> Result<Recording, Failure> {
    let directory = TempDir::new_in(directory)?;
    // The log has canonical paths.
    let base = directory.path().canonicalize()?;
    let (root, log) = (base.join("disk"), base.join("log"));
    std::fs::create_dir(&root)?;
    std::fs::write(&log, b"")?;
    let mut launch = Launch::new(server, &root.join("store"));
    launch.environment = environment.to_vec();
    for (name, path) in [("LD_PRELOAD", shim), ("LAZULITE_SHIM_ROOT", &root), ("LAZULITE_SHIM_LOG", &log)] {
        let path = path.to_str().ok_or("a path that is not UTF-8")?;
        launch.environment.push((name.to_owned(), path.to_owned()));
    }
    let root_name = root.to_str().ok_or("a path that is not UTF-8")?.to_owned();
    let root_inode = inode(&std::fs::metadata(&root)?);
    let mut studio = Studio {
        launch,
        root,
        log,
        disk: Disk::new(&root_name, root_inode),
        records: Vec::new(),
        read: 0,
        tally: Tally::default(),
        // The last writer makes the table to drop.
        writers: (0..=WRITER_COUNT).map(|number| Writer::new(number, seed, SHAPE).recorded()).collect(),
        queue_writers: (0..QUEUE_WRITER_COUNT).map(|number| QueueWriter::new(number, seed)).collect(),
        blob_writers: (0..BLOB_WRITER_COUNT)
            .map(|number| BlobWriter::new(number, seed, SIZES).recorded())
            .collect(),
    };
    let mut random = Rng::with_seed(seed);

    let server = studio.start()?;
    let main = studio.create_main(&server)?;
    studio.load(&server, None)?;
    stop(server)?;
    studio.reconcile(false)?;

    let server = studio.start()?;
    studio.compare(&server)?;
    let account = studio.add_account()?;
    let acknowledged = studio.tally.acknowledged.load(Ordering::Relaxed);
    let kill_at = acknowledged + random.u64(1..(WRITER_COUNT * STEPS_PER_LIFE / 2) as u64);
    studio.load(&server, Some(kill_at))?;
    drop(server);
    studio.reconcile(true)?;

    let server = studio.start()?;
    studio.compare(&server)?;
    studio.load(&server, None)?;
    // Killed without warning, as in a power cut.
    drop(server);
    studio.reconcile(true)?;
    // Whoever opens a state looks for messages that are hidden until now.
    std::thread::sleep(VISIBLE_AFTER);

    let writers = studio.writers.into_iter().map(|writer| writer.history.unwrap_or_default()).collect();
    let queue_writers = studio.queue_writers.into_iter().map(|writer| writer.history).collect();
    let blob_writers =
        studio.blob_writers.into_iter().map(|writer| writer.history.unwrap_or_default()).collect();
    Ok(Recording {
        root: root_name,
        root_inode,
        records: studio.records,
        writers,
        main,
        account,
        queue_writers,
        blob_writers,
    })
}

impl Studio {
    fn start(&self) -> Result<Victim, Failure> {
        match self.launch.start()? {
            Ok(server) => Ok(server),
            Err(refusal) => Err(Failure::Broken(format!("the server does not start: {}", refusal.words))),
        }
    }

    fn position(&self) -> u64 {
        length(&self.log)
    }

    fn create_main(&self, server: &Victim) -> Result<Span, Failure> {
        let sent_at = self.position();
        let request = Request::post("/Tables").json(&format!("{{\"TableName\":\"{MAIN_TABLE}\"}}"));
        let response = server.ask(&request)?;
        if response.status != 201 {
            return Err(Failure::Broken(format!("the first table is answered with {response:?}")));
        }
        let settled_at = self.position();
        for writer in &self.queue_writers {
            let response = server.ask(&writer.create_table())?;
            if response.status != 201 {
                return Err(Failure::Broken(format!("the table of an outbox is answered with {response:?}")));
            }
        }
        Ok(Span { sent_at, settled_at })
    }

    fn add_account(&self) -> Result<Span, Failure> {
        let sent_at = self.position();
        let mut command = self.launch.command();
        let output =
            command.args(["account", "add", ACCOUNT, "--location"]).arg(&self.launch.location).output()?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Failure::Broken(format!("account add: {words}")));
        }
        Ok(Span { sent_at, settled_at: self.position() })
    }

    /// Runs all writers at once, and kills the server once this many writes are acknowledged.
    fn load(&mut self, server: &Victim, kill_at: Option<u64>) -> Result<(), Failure> {
        let stopping = AtomicBool::new(false);
        let log = self.log.clone();
        let position = move || length(&log);
        let common = Common { server, tally: &self.tally, stopping: &stopping, position: &position };
        let (launch, sweep) = (&self.launch, |launch: &Launch| {
            std::thread::sleep(SWEEP_AFTER);
            // It may come too late. Its outcome is seen in the states.
            launch.sweep().output().map(|_| End::Done).map_err(|error| error.to_string())
        });
        let (dropper, writers) = self.writers.split_last_mut().ok_or("there is a writer")?;
        let ends: Vec<Result<End, String>> = std::thread::scope(|scope| {
            let common = &common;
            let mut threads: Vec<_> = writers
                .iter_mut()
                .map(|writer| scope.spawn(move || writer.run(common, STEPS_PER_LIFE)))
                .collect();
            threads.push(scope.spawn(move || dropper.fill_and_drop(common, DROPPED_ROW_COUNT)));
            let queue_threads = self.queue_writers.iter_mut().map(|writer| {
                scope.spawn(move || {
                    let addresses =
                        Addresses { table: common.server.addr(), queue: common.server.queue_addr() };
                    ended(writer.run(addresses, STEPS_PER_LIFE, common.position), common)
                })
            });
            threads.extend(queue_threads);
            let blob_threads = self.blob_writers.iter_mut().map(|writer| {
                scope.spawn(move || {
                    let (door, position) = (BlobDoor::new(common.server.blob_addr()), common.position);
                    let mut place = Workplace { door, board: None, position };
                    ended(writer.run(&mut place, STEPS_PER_LIFE), common)
                })
            });
            threads.extend(blob_threads);
            let sweeper = scope.spawn(move || sweep(launch));
            if let Some(count) = kill_at {
                while common.tally.acknowledged.load(Ordering::Relaxed) < count
                    && threads.iter().any(|thread| !thread.is_finished())
                {
                    std::thread::sleep(POLL);
                }
                stopping.store(true, Ordering::SeqCst);
                server.kill();
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<End, String>>| {
                thread.join().unwrap_or_else(|_| Err("a writer gave up: see above".to_owned()))
            };
            threads.into_iter().chain([sweeper]).map(join).collect()
        });
        match ends.into_iter().find_map(Result::err) {
            Some(broken) => Err(Failure::Broken(broken)),
            None => Ok(()),
        }
    }

    /// Compares what the server holds after a restart, and settles the open requests.
    fn compare(&mut self, server: &Victim) -> Result<(), Failure> {
        let contents = contents::read_all(server).map_err(|failure| Failure::Broken(failure.to_string()))?;
        let shares = contents::share(contents, self.writers.len()).map_err(Failure::Broken)?;
        // The position after reading: what a client has read, it may rely on.
        let position = self.position();
        for (writer, found) in self.writers.iter_mut().zip(shares.writers) {
            let outcome = settle(&writer.known, writer.open.as_ref(), &found).map_err(Failure::Broken)?;
            writer.settled(found, outcome, position);
        }
        std::thread::sleep(VISIBLE_AFTER);
        let addresses = Addresses { table: server.addr(), queue: server.queue_addr() };
        for writer in &mut self.blob_writers {
            let position = || length(&self.log);
            let door = BlobDoor::new(server.blob_addr());
            let mut place = Workplace { door, board: None, position: &position };
            writer.compare(&mut place).map_err(Failure::Broken)?;
        }
        for writer in &mut self.queue_writers {
            writer.compare(addresses, || length(&self.log)).map_err(Failure::Broken)?;
        }
        Ok(())
    }

    /// Reads the log of the last life, and compares the disk that it describes with the real one.
    fn reconcile(&mut self, killed: bool) -> Result<(), Failure> {
        let (records, end) = disk_log::read(&self.log)?;
        if killed {
            // Cut off half a record, if there is one. The comparison below finds what it would have said.
            OpenOptions::new().write(true).open(&self.log)?.set_len(end)?;
        }
        for record in records.into_iter().filter(|record| record.end > self.read) {
            self.disk.apply(&record.operation)?;
            self.records.push(record);
        }
        self.read = end;
        let (real, inodes) = Image::read(&self.root)?;
        if killed {
            let corrections = self.disk.correct(&real, &inodes)?;
            let late = |operation: Operation| Record { end, operation };
            self.records.extend(corrections.into_iter().map(late));
        }
        let modelled = self.disk.cut(Loss::Nothing, &mut Rng::with_seed(0));
        if sorted(&modelled) != sorted(&real) {
            return Err("the log does not describe what the server did to its directory".into());
        }
        Ok(())
    }
}

/// A connection may break after the server was killed.
fn ended(outcome: Result<(), Stop>, common: &Common<'_>) -> Result<End, String> {
    match outcome {
        Ok(()) => Ok(End::Done),
        Err(Stop::Cut(_)) if common.stopping.load(Ordering::SeqCst) => Ok(End::Cut),
        Err(Stop::Cut(error)) => Err(format!("a connection broke: {error}")),
        Err(Stop::Broken(what)) => Err(what),
    }
}

fn sorted(image: &Image) -> (Vec<&String>, &BTreeMap<String, Vec<u8>>) {
    let mut directories: Vec<&String> = image.directories.iter().collect();
    directories.sort();
    (directories, &image.files)
}

fn stop(server: Victim) -> Result<(), Failure> {
    server.terminate()?;
    match server.wait() {
        Some(status) if status.success() => Ok(()),
        other => Err(Failure::Broken(format!("the server exited with {other:?} when asked to stop"))),
    }
}

fn length(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |metadata| metadata.len())
}
