//! `disk`: a full disk, a read-only directory, no file handles left, another store at the same path. Promises:
//! acknowledged writes stay, reads go on, writes are refused with the service's own error, the log says what to do, and
//! service resumes by itself.
//!
//! The small file systems are mounted in a namespace of the trial's own, so nothing outside sees them and the trial
//! needs no other privilege than to create one. Where the system forbids that, the trial is skipped and says so. No
//! file system here fails a sync on demand: the engine's own tests do that (`engine-local/tests/it/failures.rs`).

mod blobs;
mod displaced;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lexopt::{Arg, Parser};
use testkit::{RawClient, Request, Response, Stopwatch, TempDir, entity_json, entity_path};

use crate::Error;
use crate::promises::Promises;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
a full disk, a read-only directory, no file handles left, another store at the same path

  --server PATH      The server's binary";

const DISK_MIB: usize = 48;
/// Removed to free space on the disk.
const BALLAST_MIB: usize = 24;
const WRITER_COUNT: usize = 4;
const VALUE_BYTES: usize = 8 * 1024;
/// A writer gives up on a full disk after this many refusals.
const REFUSAL_COUNT: usize = 20;
/// Rows to delete while the disk is full.
const DELETION_COUNT: usize = 300;
const BACK_WITHIN: Duration = Duration::from_secs(10);
const FILE_HANDLES: usize = 64;
const CONNECTION_COUNT: usize = 150;
/// Together longer than several segments of the log, and enough for a fold, so that files are opened several times.
const CROWDED_ROW_COUNT: usize = 6_000;

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut server, mut is_inside) = (None, false);
    while let Some(argument) = options.next()? {
        match argument {
            Arg::Long("server") => server = Some(PathBuf::from(options.value()?)),
            // The trial passes it to itself inside the namespace.
            Arg::Long("inside") => is_inside = true,
            Arg::Long("help") | Arg::Short('h') => {
                println!("{HELP}");
                return Ok(true);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let server = server.ok_or("--server is missing: it names the binary to try")?;
    if is_inside {
        return inside(&server);
    }
    let namespace = ["--user", "--map-root-user", "--mount"];
    let possible = Command::new("unshare").args(namespace).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: disk: this system does not allow mounts (unshare --user --mount)");
        return Ok(true);
    }
    let mut again = Command::new("unshare");
    again.args(namespace).arg(std::env::current_exe()?).args(["disk", "--inside", "--server"]).arg(&server);
    Ok(again.status()?.success())
}

fn inside(server: &Path) -> Result<bool, Error> {
    let mut promises = Promises::default();
    for (name, trial) in [
        ("a full disk", full_disk as fn(&Path, &mut Promises) -> Result<(), Error>),
        ("a disk full of blobs", blobs::full_of_blobs),
        ("a read-only directory", read_only),
        ("no file handles left", no_handles),
        ("another store at the path of a running one", displaced::trial),
    ] {
        println!("  {name}");
        trial(server, &mut promises)?;
    }
    Ok(promises.finish("disk", "cargo xtask disk"))
}

/// Ends the server, and checks that its log has this text, and no panic.
fn check_log(promises: &mut Promises, server: Victim, part: &str) {
    server.wait_for_words(part);
    let log = &server.finish();
    promises.check(log.contains(part), &format!("the log says {part:?}"));
    if panicked(log) {
        promises.check(false, &format!("no panic: {log}"));
    }
}

/// A small file system, mounted until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(place: &Path, mebibytes: usize) -> Result<Mounted, Error> {
        std::fs::create_dir_all(place)?;
        let size = format!("size={mebibytes}m");
        command("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &place.display().to_string()])?;
        Ok(Mounted(place.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = command("umount", &["--lazy", &self.0.display().to_string()]);
    }
}

fn command(program: &str, arguments: &[&str]) -> Result<(), Error> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

fn start(launch: &Launch) -> Result<Victim, Error> {
    launch.start()?.map_err(|refusal| format!("the server does not start: {}", refusal.words).into())
}

fn insert(row: usize) -> Request {
    let text = "x".repeat(VALUE_BYTES);
    Request::post("/full").json(&entity_json("p", &format!("{row:06}"), &format!("\"text\":\"{text}\"")))
}

/// The status of the answer, with the error code if there is one.
fn outcome(response: &Response) -> String {
    match response.status {
        200..=299 => response.status.to_string(),
        status => format!("{status} {}", response.error_code()),
    }
}

/// Inserts until the disk is full and stays so. Returns the acknowledged rows, and all other outcomes.
fn fill(server: &Victim, next_row: &AtomicUsize) -> (BTreeSet<usize>, BTreeSet<String>) {
    let found = Mutex::new((BTreeSet::new(), BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..WRITER_COUNT {
            scope.spawn(|| {
                let Ok(mut client) = server.connect() else { return };
                let mut refusal_count = 0;
                while refusal_count < REFUSAL_COUNT {
                    let row = next_row.fetch_add(1, Ordering::Relaxed);
                    let answer = client.exchange(&server.bytes_of(&insert(row)));
                    let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    match answer {
                        Ok(response) if response.status == 201 => {
                            found.0.insert(row);
                        }
                        Ok(response) => {
                            refusal_count += 1;
                            found.1.insert(outcome(&response));
                        }
                        Err(error) => {
                            found.1.insert(format!("no answer: {error}"));
                            return;
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Deletes some of the rows. Returns the outcomes of those that were refused.
fn delete_some(server: &Victim, rows: &mut BTreeSet<usize>) -> Result<BTreeSet<String>, Error> {
    let mut refused = BTreeSet::new();
    let chosen: Vec<usize> = rows.iter().copied().take(DELETION_COUNT).collect();
    for row in chosen {
        let path = entity_path("full", "p", &format!("{row:06}"));
        let response = server.ask(&Request::delete(&path).header("If-Match", "*"))?;
        match response.status {
            204 => {
                rows.remove(&row);
            }
            _ => {
                refused.insert(outcome(&response));
            }
        }
    }
    Ok(refused)
}

/// The rows of a full listing.
fn listed(server: &Victim) -> Result<BTreeSet<usize>, Error> {
    let mut rows = BTreeSet::new();
    let first = Request::get("/full()").query("$select", "RowKey");
    let mut request = first.clone();
    loop {
        let response = server.ask(&request)?;
        if response.status != 200 {
            return Err(format!("the listing is answered {}", outcome(&response)).into());
        }
        for entity in response.json()["value"].as_array().into_iter().flatten() {
            rows.insert(entity["RowKey"].as_str().unwrap_or_default().parse()?);
        }
        let Some(next) = response.header("x-ms-continuation-NextPartitionKey") else { return Ok(rows) };
        request = first.clone().query("NextPartitionKey", next);
        if let Some(row) = response.header("x-ms-continuation-NextRowKey") {
            request = request.query("NextRowKey", row);
        }
    }
}

fn accepts_writes_within(
    server: &Victim,
    time_max: Duration,
    next_row: &AtomicUsize,
) -> Option<(Duration, usize)> {
    let watch = Stopwatch::start();
    while watch.elapsed() < time_max {
        let row = next_row.fetch_add(1, Ordering::Relaxed);
        if server.ask(&insert(row)).is_ok_and(|response| response.status == 201) {
            return Some((watch.elapsed(), row));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn full_disk(binary: &Path, promises: &mut Promises) -> Result<(), Error> {
    let directory = TempDir::new()?;
    let disk = Mounted::new(&directory.path().join("disk"), DISK_MIB)?;
    let ballast = disk.0.join("ballast");
    let fill_ballast = || std::fs::write(&ballast, vec![1; BALLAST_MIB * 1024 * 1024]);
    fill_ballast()?;
    let launch = Launch::new(binary, &disk.0.join("data"));
    let next_row = AtomicUsize::new(0);

    let server = start(&launch)?;
    server.ask(&Request::post("/Tables").json("{\"TableName\":\"full\"}"))?;
    let (mut acknowledged, refusals) = fill(&server, &next_row);
    println!("  {} inserts acknowledged before the disk was full", acknowledged.len());
    promises.check(
        !acknowledged.is_empty() && refusals.iter().all(|refusal| refusal == "503 ServerBusy"),
        &format!("a full disk refuses writes with 503 ServerBusy and nothing else: {refusals:?}"),
    );
    promises.check(listed(&server)? == acknowledged, "reads go on, and show exactly the acknowledged rows");
    let some_row = acknowledged.first().copied().unwrap_or_default();
    let first = server.ask(&Request::get(&entity_path("full", "p", &format!("{some_row:06}"))))?;
    promises.check(first.status == 200, "point reads go on");
    let refused = delete_some(&server, &mut acknowledged)?;
    promises.check(
        refused.is_empty(),
        &format!("{DELETION_COUNT} deletions are accepted on the full disk: {refused:?}"),
    );
    promises.check(listed(&server)? == acknowledged, "and the deleted rows are gone");

    std::fs::remove_file(&ballast)?;
    match accepts_writes_within(&server, BACK_WITHIN, &next_row) {
        Some((after, row)) => {
            acknowledged.insert(row);
            promises.check(
                true,
                &format!("writes are accepted again {} ms after space is freed", after.as_millis()),
            );
        }
        None => promises.check(false, "writes are accepted again when space is freed"),
    }
    promises.check(listed(&server)? == acknowledged, "nothing is lost or added");

    // Fill it again, and kill the server while it is full.
    let (more, refusals) = fill(&server, &next_row);
    acknowledged.extend(more);
    promises.check(refusals.iter().all(|refusal| refusal == "503 ServerBusy"), "filled once more");
    check_log(promises, server, "the disk is full");
    match launch.start()? {
        Ok(server) => {
            promises.check(
                listed(&server)? == acknowledged,
                "killed and started while full: everything is there",
            );
            let checked = launch.command().args(["check", "--location"]).arg(&launch.location).output()?;
            let words = String::from_utf8_lossy(&checked.stdout).into_owned();
            promises.check(
                checked.status.success() && words.contains("while it is being served"),
                &format!("its own commands reach it: {}", words.trim_end()),
            );
            let refused = delete_some(&server, &mut acknowledged)?;
            promises.check(refused.is_empty(), &format!("it accepts deletions: {refused:?}"));
            server.finish();
        }
        Err(refusal) => {
            let words = refusal.words.trim_end().to_owned();
            promises.check(
                words.contains("space"),
                &format!("started while full: the refusal names the reason: {words}"),
            );
        }
    }
    command("mount", &["-o", &format!("remount,size={}m", 2 * DISK_MIB), &disk.0.display().to_string()])?;
    let server = start(&launch)?;
    promises.check(
        listed(&server)? == acknowledged,
        "killed while full, started with space: everything is there",
    );
    let is_back = accepts_writes_within(&server, BACK_WITHIN, &next_row).is_some();
    let words = server.finish();
    promises.check(is_back, "and it accepts writes");
    if !is_back {
        println!("{words}");
    }
    Ok(())
}

fn read_only(binary: &Path, promises: &mut Promises) -> Result<(), Error> {
    let directory = TempDir::new()?;
    let disk = Mounted::new(&directory.path().join("disk"), DISK_MIB)?;
    let launch = Launch::new(binary, &disk.0.join("data"));
    let next_row = AtomicUsize::new(0);
    let server = start(&launch)?;
    server.ask(&Request::post("/Tables").json("{\"TableName\":\"full\"}"))?;
    let kept = accepts_writes_within(&server, BACK_WITHIN, &next_row).map(|(_, row)| row);
    server.finish();

    let place = disk.0.display().to_string();
    command("mount", &["-o", "remount,ro", &place])?;
    match launch.start()? {
        Ok(server) => {
            promises.check(false, "a read-only directory is refused");
            server.finish();
        }
        Err(refusal) => {
            let words = refusal.words.trim_end().to_owned();
            let is_clear =
                refusal.code == Some(1) && words.lines().count() == 1 && words.contains("ead-only");
            promises.check(is_clear, &format!("refused with exit code 1 and one sentence: {words}"));
        }
    }
    command("mount", &["-o", "remount,rw", &place])?;
    let server = start(&launch)?;
    promises.check(listed(&server)? == kept.into_iter().collect(), "writable again: everything is there");
    server.finish();
    Ok(())
}

fn no_handles(binary: &Path, promises: &mut Promises) -> Result<(), Error> {
    let directory = TempDir::new()?;
    let launch = Launch::new(binary, &directory.path().join("data"));
    let next_row = AtomicUsize::new(0);
    let server = start(&launch)?;
    server.ask(&Request::post("/Tables").json("{\"TableName\":\"full\"}"))?;
    let limit = format!("--nofile={FILE_HANDLES}:{FILE_HANDLES}");
    command("prlimit", &["--pid", &server.id().to_string(), &limit])?;

    // More connections than the server has file handles; the system queues them.
    let crowd: Vec<RawClient> = (0..CONNECTION_COUNT).filter_map(|_| server.connect().ok()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let mut acknowledged = BTreeSet::new();
    for _ in 0..CROWDED_ROW_COUNT {
        let row = next_row.fetch_add(1, Ordering::Relaxed);
        let response = server.ask(&insert(row))?;
        if response.status == 201 {
            acknowledged.insert(row);
        }
    }
    promises.check(acknowledged.len() == CROWDED_ROW_COUNT, "an open connection goes on writing");
    promises.check(listed(&server)? == acknowledged, "and reading");
    promises.check(!server.has_ended(), "the server lives");
    drop(crowd);
    let watch = Stopwatch::start();
    let back = loop {
        let asked = server
            .connect()
            .and_then(|mut client| client.exchange(&server.bytes_of(&Request::get("/full()"))));
        match asked {
            Ok(response) if response.status == 200 => break true,
            _ if watch.elapsed() > BACK_WITHIN => break false,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    promises.check(back, "new connections are served when others are gone");
    check_log(promises, server, "cannot accept a connection");
    let server = start(&launch)?;
    promises.check(listed(&server)? == acknowledged, "after a restart everything is there");
    server.finish();
    Ok(())
}
