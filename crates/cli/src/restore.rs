//! `lazulite restore FILE`: restores a backup into an empty directory, or one of its tables, queues or containers into a
//! store, served or not.
//!
//! Promises: a directory becomes a store only when all of the backup is in it (`restore_place`). A table, queue or
//! container appears complete or not at all. The crate `backup` reads the file and loads its rows.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backup::{BackupError, BackupReader, LoadReport, LoadSelection, Totals};
use engine::env::{Clock, SystemClock};
use engine::{Engine, Expect};
use engine_local::LocalEngine;
use protocol::common::DateTime;
use tokio::runtime::Runtime;

use crate::backup::described;
use crate::contents_place;
use crate::control::{self, ControlRequest};
use crate::place::{EngineAddress, StoreChoice};
use crate::progress::Progress;
use crate::restore_place::RestorePlace;
use crate::store::{self, OpenStore};
use crate::{remote, unfinished};

/// One day: no two clocks that work differ by more.
const AHEAD_TICKS_MAX: u64 = 24 * 3600 * 10_000_000;

pub struct RestoreRequest {
    pub file: PathBuf,
    pub selection: LoadSelection,
    /// Where the contents of blobs go, if not into the directory. An engine elsewhere needs it, unless it knows.
    pub place: Option<String>,
}

pub fn run(request: RestoreRequest, place: &StoreChoice) -> Result<(), String> {
    let mut progress = Progress::start();
    let RestoreRequest { file, selection, place: contents_place } = request;
    let contents_place = contents_place.as_deref();
    let outcome = match (place, selection) {
        (StoreChoice::Engine(address), selection) => {
            restore_into_engine(&file, &selection, address, contents_place, &mut progress)
        }
        (StoreChoice::Directory(location), LoadSelection::All) => {
            restore_all(&file, location, contents_place, &mut progress)
        }
        (StoreChoice::Directory(location), one) => restore_one(&file, one, location, &mut progress),
    };
    progress.clear();
    let loaded = outcome.map_err(|error| format!("nothing was restored: {error}"))?;
    println!(
        "{}: {} restored into {}, in {:.1} s",
        file.display(),
        described(&loaded.counts),
        place.name(),
        progress.elapsed().as_secs_f64()
    );
    if !loaded.accounts.is_empty() {
        println!(
            "They belong to: {}. Keys are not part of a backup: the server needs those accounts from its configuration, \
             its environment or 'lazulite account add NAME --with-data'.",
            loaded.accounts.join(", ")
        );
    }
    Ok(())
}

fn restore_all(
    file: &Path,
    location: &Path,
    contents_place: Option<&str>,
    progress: &mut Progress,
) -> Result<LoadReport, String> {
    contents_place.map(contents_place::check).transpose()?;
    // A file that is not a backup must leave the directory alone.
    let backup = open(file)?;
    let last = DateTime::from_ticks(backup.head().last_version);
    let place = RestorePlace::prepare(location)?;
    let building = place.building();
    let engine = LocalEngine::open(&building, store::options()).map_err(|error| error.to_string())?;
    let runtime = store::runtime()?;
    let loaded = OpenStore::with_contents(&building, engine, &runtime, contents_place)
        .and_then(|store| load(&store, &runtime, backup, &LoadSelection::All, file, progress));
    drop(runtime);
    match loaded {
        Ok(loaded) => {
            place.finish()?;
            progress.clear();
            warn_if_ahead(last);
            Ok(loaded)
        }
        Err(error) => {
            place.empty();
            Err(error)
        }
    }
}

/// All of the backup into an engine that has nothing yet, or one table, queue or container into one that servers use.
fn restore_into_engine(
    file: &Path,
    selection: &LoadSelection,
    address: &EngineAddress,
    contents_place: Option<&str>,
    progress: &mut Progress,
) -> Result<LoadReport, String> {
    contents_place.map(contents_place::check).transpose()?;
    let backup = open(file)?;
    let last = DateTime::from_ticks(backup.head().last_version);
    let is_all = *selection == LoadSelection::All;
    let loaded = remote::work_on(address, async |engine| {
        if is_all {
            refuse_filled(&*engine, &address.name()).await?;
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let contents = contents_place::open_in_engine(&*engine, contents_place, clock).await?;
        if is_all {
            unfinished::write(&*engine, Expect::Absent, "restore".into()).await?;
        }
        let mut show = |done, total| progress.show(done, total);
        let loaded = backup::load(&*engine, contents.as_ref(), backup, selection, &mut show).await;
        contents_place::close(contents).await;
        // After a failure the note stays only where some of the names are there and others are not.
        if is_all && (loaded.is_ok() || backup::is_empty(&*engine).await.unwrap_or(false)) {
            unfinished::remove(&*engine).await?;
        }
        loaded.map_err(|error| about(file, &error))
    })?;
    if is_all {
        progress.clear();
        warn_if_ahead(last);
    }
    Ok(loaded)
}

async fn refuse_filled(engine: &dyn Engine, name: &str) -> Result<(), String> {
    match backup::is_empty(engine).await.map_err(|error| error.to_string())? {
        true => Ok(()),
        false => Err(format!(
            "{name} has tables, queues or containers already: choose an empty database, or one table with --table, one queue with \
             --queue, one container with --container"
        )),
    }
}

/// The new store continues with the Timestamps of the old one, so a clock that was wrong there is wrong here.
fn warn_if_ahead(last: DateTime) {
    if last.ticks() > SystemClock::new().now_ticks().saturating_add(AHEAD_TICKS_MAX) {
        let mut text = Vec::new();
        last.write(&mut text);
        eprintln!(
            "lazulite: warning: the latest Timestamp of this backup is {}, which is ahead of this machine's clock; \
             later Timestamps continue from there. With --table, --queue or --container it gets Timestamps of the store that takes it in.",
            String::from_utf8_lossy(&text)
        );
    }
}

fn restore_one(
    file: &Path,
    selection: LoadSelection,
    location: &Path,
    progress: &mut Progress,
) -> Result<LoadReport, String> {
    match store::open(location)? {
        Some(engine) => {
            let runtime = store::runtime()?;
            let store = OpenStore::with_contents(location, engine, &runtime, None)?;
            load(&store, &runtime, open(file)?, &selection, file, progress)
        }
        None => through_server(file, selection, location),
    }
}

fn through_server(file: &Path, selection: LoadSelection, location: &Path) -> Result<LoadReport, String> {
    // Open it here first, so that a file that is not a backup is refused before anything is sent.
    drop(open(file)?);
    let connection = control::connect(location, &ControlRequest::Restore(selection))?;
    let mut bytes = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    // Ignore a failed copy: a server that refuses stops reading, and its answer says why.
    let _ = io::copy(&mut bytes, &mut connection.input()).and_then(|_| connection.end_input());
    let mut answer = connection.answer()?;
    let line = io::read_to_string(&mut answer)
        .map_err(|error| format!("lost the connection to the server: {error}"))?;
    let mut words = line.split_whitespace();
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let counts = Totals {
        table_count: number(),
        row_count: number(),
        queue_count: number(),
        message_count: number(),
        container_count: number(),
        blob_count: number(),
        content_bytes: number(),
        ..Totals::default()
    };
    Ok(LoadReport { counts, accounts: Vec::new() })
}

fn open(file: &Path) -> Result<BackupReader<BufReader<File>>, String> {
    let opened = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    BackupReader::open(BufReader::new(opened)).map_err(|error| about(file, &error))
}

fn load(
    store: &OpenStore,
    runtime: &Runtime,
    backup: BackupReader<BufReader<File>>,
    selection: &LoadSelection,
    file: &Path,
    progress: &mut Progress,
) -> Result<LoadReport, String> {
    let mut show = |done, total| progress.show(done, total);
    let loading = async {
        let contents = store.contents.as_ref();
        let loaded = backup::load(&*store.engine, contents, backup, selection, &mut show).await;
        store.close().await;
        loaded
    };
    runtime.block_on(loading).map_err(|error| about(file, &error))
}

fn about(file: &Path, error: &BackupError) -> String {
    match error {
        BackupError::Refused(sentence) => sentence.clone(),
        other => format!("{}: {other}", file.display()),
    }
}
