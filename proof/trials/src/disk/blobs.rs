//! Blobs on a full disk: uploads, overwrites, block lists and appends are refused with 503 and change nothing, reads
//! and deletions go on, and uploads succeed again when there is space, also after a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use testkit::Stopwatch;

use super::{BACK_WITHIN, Mounted, REFUSAL_COUNT, WRITER_COUNT, check_log, command, outcome, start};
use crate::Error;
use crate::blob::body::{self, Body};
use crate::blob::door::{self, BlobDoor};
use crate::blob::state::read_body;
use crate::promises::Promises;
use crate::victim::{Launch, Victim};

const DISK_MIB: usize = 160;
/// Removed to free space on the disk.
const BALLAST_MIB: usize = 64;
/// In the row, in an extent with others, and in chunks of its own.
const LENGTHS: [usize; 4] = [3_000, 40_000, 200_000, 2_000_000];
const DELETION_COUNT: usize = 20;
const CONTAINER: &str = "full";
const BUSY: &str = "503 ServerBusy";

/// What was acknowledged, by path.
type Bodies = BTreeMap<String, Body>;

pub fn full_of_blobs(binary: &Path, promises: &mut Promises) -> Result<(), Error> {
    let directory = testkit::TempDir::new()?;
    let disk = Mounted::new(&directory.path().join("disk"), DISK_MIB)?;
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![1; BALLAST_MIB << 20])?;
    let launch = Launch::new(binary, &disk.0.join("data"));
    let next = AtomicU64::new(1);
    let mut bodies = Bodies::new();

    let server = start(&launch)?;
    let mut door = BlobDoor::new(server.blob_addr());
    prepare(&mut door, &mut bodies)?;
    let refusals = fill(&server, &next, &mut bodies);
    println!("  {} blobs acknowledged before the disk was full", bodies.len());
    promises.check(
        bodies.len() > 2 && refusals.iter().all(|refusal| refusal == BUSY),
        &format!("a full disk refuses uploads with {BUSY} and nothing else: {refusals:?}"),
    );
    promises.check(wrong(&mut door, &bodies)?.is_none(), "every acknowledged blob has its bytes");
    let refusals = change(&mut door, &next, &mut bodies)?;
    promises.check(
        refusals.iter().all(|refusal| refusal == BUSY),
        &format!("overwrites, appends and block lists are done or refused with {BUSY}: {refusals:?}"),
    );
    let found = wrong(&mut door, &bodies)?;
    promises.check(found.is_none(), &format!("and what was refused has changed nothing: {found:?}"));
    let refused = delete_some(&mut door, &mut bodies)?;
    promises.check(refused.is_empty(), &format!("{DELETION_COUNT} deletions are accepted: {refused:?}"));

    std::fs::remove_file(&ballast)?;
    let back = accepts_uploads(&mut door, &next, &mut bodies)?;
    promises.check(back.is_some(), &format!("uploads are accepted again when space is freed: {back:?}"));
    let found = wrong(&mut door, &bodies)?;
    promises.check(found.is_none(), &format!("nothing is lost or changed: {found:?}"));

    // Fill it again, and kill the server while it is full.
    let refusals = fill(&server, &next, &mut bodies);
    promises
        .check(refusals.iter().all(|refusal| refusal == BUSY), &format!("filled once more: {refusals:?}"));
    check_log(promises, server, "there is no room");
    match launch.start()? {
        Ok(server) => {
            let mut door = BlobDoor::new(server.blob_addr());
            let found = wrong(&mut door, &bodies)?;
            promises
                .check(found.is_none(), &format!("killed and started while full: all is there: {found:?}"));
            let refused = delete_some(&mut door, &mut bodies)?;
            promises.check(refused.is_empty(), &format!("it accepts deletions: {refused:?}"));
            server.finish();
        }
        Err(refusal) => promises.check(
            refusal.words.contains("space"),
            &format!("started while full: the refusal names the reason: {}", refusal.words.trim_end()),
        ),
    }
    command("mount", &["-o", &format!("remount,size={}m", 2 * DISK_MIB), &disk.0.display().to_string()])?;
    let server = start(&launch)?;
    let mut door = BlobDoor::new(server.blob_addr());
    let found = wrong(&mut door, &bodies)?;
    promises
        .check(found.is_none(), &format!("killed while full, started with space: all is there: {found:?}"));
    let back = accepts_uploads(&mut door, &next, &mut bodies)?;
    promises.check(back.is_some(), "and it accepts uploads");
    server.finish();
    let (is_sound, words) = launch.check()?;
    promises.check(is_sound, &format!("lazulite check: {}", words.trim_end()));
    Ok(())
}

/// An append blob, and blocks that are not committed.
fn prepare(door: &mut BlobDoor, bodies: &mut Bodies) -> Result<(), Error> {
    let (log, list) = (format!("/{CONTAINER}/log"), format!("/{CONTAINER}/list"));
    let first = body::make(1 << 40, 50_000);
    for request in [
        door::create_container(CONTAINER),
        door::create_append(&log),
        door::append(&log, &first),
        door::put(&list, &first),
        door::stage(&list, "MQ==", &first),
        door::stage(&list, "Mg==", &first),
    ] {
        let response = door.ask(&request)?;
        if response.status != 201 {
            return Err(format!("before the disk is full: {response:?}").into());
        }
    }
    bodies.insert(log, first.clone());
    bodies.insert(list, first);
    Ok(())
}

/// Uploads until the disk is full and stays so. Returns all other outcomes.
fn fill(server: &Victim, next: &AtomicU64, bodies: &mut Bodies) -> BTreeSet<String> {
    let found = Mutex::new((bodies, BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..WRITER_COUNT {
            scope.spawn(|| {
                let mut door = BlobDoor::new(server.blob_addr());
                let mut refusal_count = 0;
                while refusal_count < REFUSAL_COUNT {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let body = body::make(number, LENGTHS[number as usize % LENGTHS.len()]);
                    let path = format!("/{CONTAINER}/blob-{number:06}");
                    let answer = door.ask(&door::put(&path, &body));
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    match answer {
                        Ok(response) if response.status == 201 => drop(found.0.insert(path, body)),
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
    found.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

/// Overwrites, appends and commits a block list. Returns the outcomes of what was refused.
fn change(door: &mut BlobDoor, next: &AtomicU64, bodies: &mut Bodies) -> Result<BTreeSet<String>, Error> {
    let mut refused = BTreeSet::new();
    let (log, list) = (format!("/{CONTAINER}/log"), format!("/{CONTAINER}/list"));
    let staged = bodies.get(&list).cloned().unwrap_or_default();
    let twice = Body::new([&staged[..], &staged[..]].concat());
    let latest = ["MQ==", "Mg=="].map(|id| ("Latest", id.to_owned()));
    let mut requests = vec![(list.clone(), twice, door::commit_list(&list, &latest))];
    let more = body::make(next.fetch_add(1, Ordering::Relaxed), 90_000);
    let appended = Body::new([&bodies.get(&log).cloned().unwrap_or_default()[..], &more[..]].concat());
    requests.push((log.clone(), appended, door::append(&log, &more)));
    for path in bodies.keys().filter(|path| path.contains("blob-")).take(DELETION_COUNT) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let body = body::make(number, LENGTHS[number as usize % LENGTHS.len()]);
        requests.push((path.clone(), body.clone(), door::put(path, &body)));
    }
    for (path, after, request) in requests {
        let response = door.ask(&request)?;
        match response.status {
            201 => drop(bodies.insert(path, after)),
            _ => drop(refused.insert(outcome(&response))),
        }
    }
    Ok(refused)
}

fn delete_some(door: &mut BlobDoor, bodies: &mut Bodies) -> Result<BTreeSet<String>, Error> {
    let mut refused = BTreeSet::new();
    let chosen: Vec<String> =
        bodies.keys().filter(|path| path.contains("blob-")).take(DELETION_COUNT).cloned().collect();
    for path in chosen {
        let response = door.ask(&door::delete(&path))?;
        match response.status {
            202 => drop(bodies.remove(&path)),
            _ => drop(refused.insert(outcome(&response))),
        }
    }
    Ok(refused)
}

/// The first blob that is not as it was acknowledged.
fn wrong(door: &mut BlobDoor, bodies: &Bodies) -> Result<Option<String>, Error> {
    for (path, body) in bodies {
        match read_body(door, path)? {
            Some(found) if found == *body => {}
            found => {
                let found = found.map_or("nothing".to_owned(), |found| body::describe(&found));
                return Ok(Some(format!("{path} is {found} instead of {}", body::describe(body))));
            }
        }
    }
    Ok(None)
}

fn accepts_uploads(
    door: &mut BlobDoor,
    next: &AtomicU64,
    bodies: &mut Bodies,
) -> Result<Option<Duration>, Error> {
    let watch = Stopwatch::start();
    let mut waiting: Vec<usize> = LENGTHS.to_vec();
    while watch.elapsed() < BACK_WITHIN {
        let Some(length) = waiting.pop() else { return Ok(Some(watch.elapsed())) };
        let number = next.fetch_add(1, Ordering::Relaxed);
        let (path, body) = (format!("/{CONTAINER}/blob-{number:06}"), body::make(number, length));
        if door.ask(&door::put(&path, &body))?.status == 201 {
            bodies.insert(path, body);
        } else {
            waiting.push(length);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(None)
}
