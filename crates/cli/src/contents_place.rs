//! Where the contents of blobs are kept, for the server and for commands: in the directory `contents` of the store, or in an object
//! store that `--contents` names. With an engine elsewhere it is always an object store, because servers share no directory.
//!
//! Promises: contents are opened only together with the store whose rows name them, and carry its id. The first server that is told
//! about an object store writes its place into the file `contents.place` of the data directory, so that every later server and
//! command finds it; with an engine elsewhere, into a row of it, with an id that the contents carry. Another place is refused, because rows name what lies in this one. A command that only looks makes no
//! directory.

use std::path::Path;
use std::sync::Arc;

use catalogue::Setting;
use contents::{ContentStore, ContentsOptions, LocalContents, MemoryContents, UnixMilliseconds};
use engine::env::{Clock, SystemClock, UNIX_EPOCH_TICKS};
use engine::{Commit, CommitError, Effect, Engine, Expect, Op, OwnedKey, TableId};
use engine_local::LocalEngine;

use crate::random;

/// The directory beside the engine's files.
pub const DIRECTORY: &str = contents::local::DIRECTORY;
/// The file that says where else they are.
pub const PLACE_FILE: &str = "contents.place";
const TICKS_PER_MILLISECOND: u64 = 10_000;
/// In memory, the contents of blobs may take so much.
const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Contents that end with the process.
pub fn in_memory(clock: Arc<dyn Clock>) -> Arc<dyn ContentStore> {
    Arc::new(MemoryContents::new(MEMORY_BYTES_MAX, unix_time(clock)))
}

/// Whether the store in this directory has contents.
pub fn is_there(location: &Path) -> bool {
    location.join(DIRECTORY).is_dir() || location.join(PLACE_FILE).is_file()
}

/// The contents of the store in this directory. `None` if it has none.
pub async fn open_if_there(
    location: &Path,
    store: &LocalEngine,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<dyn ContentStore>>, String> {
    match is_there(location) {
        true => open(location, store, None, clock).await.map(Some),
        false => Ok(None),
    }
}

/// The contents of the store in this directory, which gets some if it has none: at the place that is wanted, if one is.
pub async fn open(
    location: &Path,
    store: &LocalEngine,
    wanted: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn ContentStore>, String> {
    let id = u64::from_str_radix(&store.store_id(), 16).map_err(|error| error.to_string())?;
    // The system has provided random bytes by now, or the store would have no id.
    let random = || random::bytes().map(u64::from_le_bytes).unwrap_or_default();
    let written = read_place(location)?;
    let place = match (written, wanted) {
        (Some(written), Some(wanted)) if written != wanted => {
            return Err(format!(
                "the contents of this store are in {written}, and not in {wanted}: to move them, restore a backup into a \
                 new directory with --contents {wanted}"
            ));
        }
        (None, Some(wanted)) if has_extents(location) => {
            return Err(format!(
                "the contents of this store are in its directory, and not in {wanted}: to move them, restore a backup into \
                 a new directory with --contents {wanted}"
            ));
        }
        (Some(written), _) => Some((written, true)),
        (None, Some(wanted)) => Some((wanted.to_owned(), false)),
        (None, None) => None,
    };
    let Some((place, is_written)) = place else {
        let options = ContentsOptions::new(id, Arc::new(random), unix_time(clock));
        let contents = LocalContents::open(&location.join(DIRECTORY), options);
        return Ok(Arc::new(contents.map_err(|error| format!("the contents of blobs: {error}"))?));
    };
    let contents = open_objects(&place, id, Arc::new(random), unix_time(clock)).await?;
    if !is_written {
        // Only now: a place that cannot be reached must not be remembered.
        store
            .replace_beside(PLACE_FILE, format!("{place}\n").as_bytes())
            .map_err(|error| error.to_string())?;
    }
    Ok(contents)
}

/// For a command: the contents of the store in an engine elsewhere. `None` if it has none.
pub async fn open_of_engine(engine: &dyn Engine) -> Result<Option<Arc<dyn ContentStore>>, String> {
    open_in_engine(engine, None, Arc::new(SystemClock::new())).await
}

/// The contents of the store in an engine elsewhere, which gets some at the place that is wanted, if it has none.
pub async fn open_in_engine(
    engine: &dyn Engine,
    wanted: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<dyn ContentStore>>, String> {
    let random = || random::bytes().map(u64::from_le_bytes).unwrap_or_default();
    let (id, place, is_written) = match (read_row(engine).await?, wanted) {
        (Some((_, written)), Some(wanted)) if written != wanted => {
            return Err(format!(
                "the contents of this store are in {written}, and not in {wanted}: to move them, restore a backup into an \
                 empty database with --contents {wanted}"
            ));
        }
        (Some((id, written)), _) => (id, written, true),
        (None, Some(wanted)) => (u64::from_le_bytes(random::bytes()?), wanted.to_owned(), false),
        (None, None) => return Ok(None),
    };
    let contents = open_objects(&place, id, Arc::new(random), unix_time(clock)).await?;
    // Only now: a place that cannot be reached must not be remembered.
    if !is_written {
        write_row(engine, id, &place).await?;
    }
    Ok(Some(contents))
}

/// Of a command, which may have none.
pub async fn close(contents: Option<Arc<dyn ContentStore>>) {
    if let Some(contents) = contents {
        contents.close().await;
    }
}

async fn read_row(engine: &dyn Engine) -> Result<Option<(u64, String)>, String> {
    let found = engine.get(TableId::SETTINGS, Setting::Contents.key().as_key()).await;
    let Some(row) = found.map_err(|error| error.to_string())? else { return Ok(None) };
    let text = std::str::from_utf8(&row.value).ok();
    let read = text.and_then(|text| text.split_once(' ')).and_then(|(id, place)| {
        let id = u64::from_str_radix(id, 16).ok()?;
        Some((id, place.to_owned()))
    });
    read.map(Some).ok_or_else(|| "the row that says where the contents of blobs are is damaged".to_owned())
}

async fn write_row(engine: &dyn Engine, id: u64, place: &str) -> Result<(), String> {
    let OwnedKey { partition, row } = Setting::Contents.key();
    let effect = Effect::Put(format!("{id:016x} {place}").into());
    let commit = Commit::one(TableId::SETTINGS, &partition, Op { row, expect: Expect::Absent, effect });
    match engine.commit(commit).await {
        Ok(_) => Ok(()),
        Err(CommitError::Precondition { .. }) => {
            Err("another server chose the place of the contents of blobs at the same moment: start again"
                .to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Fails if the text is no place, before anything is opened.
#[cfg(feature = "objects")]
pub fn check(place: &str) -> Result<(), String> {
    contents::ObjectPlace::parse(place).map(|_| ())
}

#[cfg(not(feature = "objects"))]
pub fn check(_: &str) -> Result<(), String> {
    Err("this program was built without object stores: build it with --features objects".to_owned())
}

#[cfg(feature = "objects")]
async fn open_objects(
    place: &str,
    store: u64,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
    now: UnixMilliseconds,
) -> Result<Arc<dyn ContentStore>, String> {
    let parsed = contents::ObjectPlace::parse(place)?;
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let objects = parsed.connect(&environment)?;
    let options = contents::ObjectOptions::new(store, random, now);
    let opened = contents::ObjectContents::open(objects, parsed.prefix(), options).await;
    Ok(Arc::new(opened.map_err(|error| format!("the contents of blobs in {place}: {error}"))?))
}

#[cfg(not(feature = "objects"))]
async fn open_objects(
    place: &str,
    _: u64,
    _: Arc<dyn Fn() -> u64 + Send + Sync>,
    _: UnixMilliseconds,
) -> Result<Arc<dyn ContentStore>, String> {
    check(place)?;
    Err(format!("{place} cannot be opened"))
}

fn read_place(location: &Path) -> Result<Option<String>, String> {
    let path = location.join(PLACE_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn has_extents(location: &Path) -> bool {
    std::fs::read_dir(location.join(DIRECTORY)).is_ok_and(|mut entries| entries.next().is_some())
}

fn unix_time(clock: Arc<dyn Clock>) -> UnixMilliseconds {
    Arc::new(move || clock.now_ticks().saturating_sub(UNIX_EPOCH_TICKS) / TICKS_PER_MILLISECOND)
}
