//! Disk states that a power cut during `restore` could leave: part of the trial `power`.
//!
//! A restore is recorded with the shim. Its last steps, which turn the directory into a store, are cut one by one, the
//! others at random. Promises: a state that says it is a store is whole; any other is refused by the server unless it is
//! still empty; and a second restore succeeds and brings everything back.
//! Leaves to others: recording file operations (`disk_log.rs`) and rebuilding disks (`disk_states.rs`).

use std::path::{Path, PathBuf};

use fastrand::Rng;
use testkit::{Request, TempDir, entity_json};

use crate::Error;
use crate::contents::{self, Contents};
use crate::disk_log;
use crate::disk_states::{Disk, Image, Loss, inode};
use crate::power::{Settings, place};
use crate::recording;
use crate::summary::BROKEN_SHOWN_MAX;
use crate::victim::{Launch, panicked};

const TABLES: [&str; 2] = ["first", "second"];
const ROW_COUNT: usize = 40;
/// The last operations of a restore, each of which is cut before any is cut at random.
const LAST_OPERATION_COUNT: usize = 50;
const STORE: &str = "store";
const MARKER: &str = "store/LAZULITE";

#[derive(Default)]
pub struct Verdict {
    pub broken: Vec<String>,
    pub states: usize,
    pub operations: usize,
    pub kept: Option<PathBuf>,
}

pub fn states(settings: &Settings, count: usize) -> Result<Verdict, Error> {
    let shim =
        recording::shim_of(&settings.server).ok_or("there is no liblazulite_shim.so beside the server")?;
    let directory = TempDir::with_prefix_in("lazulite-restore-", place())?;
    // The log has canonical paths.
    let base = directory.path().canonicalize()?;
    let (backup, expected) = make_backup(settings, &base)?;

    let (root, log) = (base.join("disk"), base.join("log"));
    std::fs::create_dir(&root)?;
    std::fs::write(&log, b"")?;
    let mut launch = Launch::new(&settings.server, &root.join(STORE));
    for (name, path) in [("LD_PRELOAD", &shim), ("LAZULITE_SHIM_ROOT", &root), ("LAZULITE_SHIM_LOG", &log)] {
        let path = path.to_str().ok_or("a path that is not UTF-8")?;
        launch.environment.push((name.to_owned(), path.to_owned()));
    }
    let (code, words) = restore(&launch, &backup)?;
    if code != Some(0) {
        return Err(format!("the restore to be recorded fails: {words}").into());
    }
    let (records, _) = disk_log::read(&log)?;

    let mut random = Rng::with_seed(settings.seed);
    let first_of_last = records.len().saturating_sub(LAST_OPERATION_COUNT);
    let mut cuts: Vec<usize> = (first_of_last..=records.len()).collect();
    random.shuffle(&mut cuts);
    cuts.resize_with(count, || random.usize(0..=records.len()));
    cuts.sort_unstable();

    let mut disk =
        Disk::new(root.to_str().ok_or("a path that is not UTF-8")?, inode(&std::fs::metadata(&root)?));
    let mut verdict = Verdict { operations: records.len(), ..Verdict::default() };
    let mut applied = 0;
    for cut in cuts {
        for record in &records[applied..cut] {
            disk.apply(&record.operation)?;
        }
        applied = cut;
        let loss = Loss::random(&mut random);
        let image = disk.cut(loss, &mut random);
        let place = base.join(format!("state-{}", verdict.states));
        image.write(&place)?;
        let judged = judge(settings, &place, &image, &backup, &expected)?;
        verdict.states += 1;
        if let Err(what) = judged {
            if verdict.broken.len() < BROKEN_SHOWN_MAX {
                image.write(&base.join(format!("broken-{}", verdict.states)))?;
            }
            let (records, loss) = (records.len(), Loss::NAMES[loss.index()]);
            verdict.broken.push(format!("restore cut after {cut} of {records} operations, {loss}: {what}"));
        }
        std::fs::remove_dir_all(&place)?;
    }
    if !verdict.broken.is_empty() {
        verdict.kept = Some(directory.keep());
    }
    Ok(verdict)
}

/// A backup of two small tables, and what a server that has them shows.
fn make_backup(settings: &Settings, base: &Path) -> Result<(PathBuf, Contents), Error> {
    let launch = Launch::new(&settings.server, &base.join("source"));
    let server = launch.start()?.map_err(|refusal| refusal.words)?;
    for table in TABLES {
        let create = Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"));
        if server.ask(&create)?.status != 201 {
            return Err("cannot create a table".into());
        }
        for row in 0..ROW_COUNT {
            let json = entity_json("p", &format!("r{row:03}"), &format!("\"n\":{row}"));
            if server.ask(&Request::post(&format!("/{table}")).json(&json))?.status != 201 {
                return Err("cannot insert a row".into());
            }
        }
    }
    let expected = contents::read_all(&server).map_err(|failure| failure.to_string())?;
    let file = base.join("restored.backup");
    let output =
        launch.command().arg("backup").arg(&file).arg("--location").arg(&launch.location).output()?;
    if !output.status.success() {
        return Err(format!("the backup fails: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok((file, expected))
}

fn restore(launch: &Launch, backup: &Path) -> Result<(Option<i32>, String), Error> {
    let output =
        launch.command().arg("restore").arg(backup).arg("--location").arg(&launch.location).output()?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// The inner error is a broken promise.
fn judge(
    settings: &Settings,
    place: &Path,
    image: &Image,
    backup: &Path,
    expected: &Contents,
) -> Result<Result<(), String>, Error> {
    let launch = Launch::new(&settings.server, &place.join(STORE));
    let is_store = image.files.contains_key(MARKER);
    let below = format!("{STORE}/");
    let is_empty = !image.files.keys().chain(&image.directories).any(|path| path.starts_with(&below));
    // A server may begin a store in an empty directory, so only the others are shown to it before the restore.
    if !is_store && !is_empty {
        match launch.start()? {
            Ok(_) => return Ok(Err("the server accepts an unfinished restore".to_owned())),
            Err(refusal) if panicked(&refusal.words) => return Ok(Err(refusal.words)),
            Err(refusal) if !refusal.words.contains("was not finished") => {
                return Ok(Err(format!("the server gives another reason: {}", refusal.words)));
            }
            Err(_) => {}
        }
    }
    let (code, words) = restore(&launch, backup)?;
    let is_right =
        if is_store { code == Some(1) && words.contains("is a store already") } else { code == Some(0) };
    if !is_right {
        return Ok(Err(format!("the second restore ends with {code:?}: {words}")));
    }
    let server = match launch.start()? {
        Ok(server) => server,
        Err(refusal) => return Ok(Err(format!("the server does not start: {}", refusal.words))),
    };
    Ok(match contents::read_all(&server) {
        Ok(found) if found == *expected => Ok(()),
        Ok(_) => Err("the restored store differs from the one that was backed up".to_owned()),
        Err(failure) => Err(failure.to_string()),
    })
}
