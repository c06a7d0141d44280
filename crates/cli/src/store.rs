//! The store in a data directory, for commands that need it without serving it.
//!
//! Promises: `open` never makes a store and tells one in use from one that is broken. What a store's files are
//! called and hold is the business of `engine-local`.

use std::path::Path;
use std::sync::Arc;

use contents::ContentStore;
use engine::Engine;
use engine::env::{Clock, SystemClock};
use engine_local::{LocalEngine, LocalOptions, OpenError};
use tokio::runtime::Runtime;

use crate::{contents_place, restore_place};

/// A store that is open, with the contents of its blobs if it has any.
pub struct OpenStore {
    pub engine: Arc<LocalEngine>,
    pub contents: Option<Arc<dyn ContentStore>>,
}

impl OpenStore {
    /// With its contents, which it gets if it has none.
    pub fn with_contents(
        location: &Path,
        engine: LocalEngine,
        runtime: &Runtime,
        place: Option<&str>,
    ) -> Result<OpenStore, String> {
        let contents = runtime.block_on(contents_place::open(location, &engine, place, clock()))?;
        Ok(OpenStore { engine: Arc::new(engine), contents: Some(contents) })
    }

    /// Makes everything durable. Nothing of the store is open any more when it is dropped.
    pub async fn close(&self) {
        if let Some(contents) = &self.contents {
            contents.close().await;
        }
        self.engine.close().await;
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// As [`open`], with the contents of its blobs if it has any.
pub fn open_whole(location: &Path, runtime: &Runtime) -> Result<Option<OpenStore>, String> {
    let Some(engine) = open(location)? else { return Ok(None) };
    let contents = runtime.block_on(contents_place::open_if_there(location, &engine, clock()))?;
    Ok(Some(OpenStore { engine: Arc::new(engine), contents }))
}

/// `None` when a server has the store open. A directory without a store is an error.
pub fn open(location: &Path) -> Result<Option<LocalEngine>, String> {
    require(location)?;
    match LocalEngine::open(location, options()) {
        Ok(engine) => Ok(Some(engine)),
        Err(OpenError::Locked(_)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Fails when a restore into the directory was not finished.
pub fn refuse_unfinished(location: &Path) -> Result<(), String> {
    if !restore_place::is_unfinished(location) {
        return Ok(());
    }
    Err(format!(
        "a restore into {} was not finished: run 'lazulite restore' again, or choose another directory",
        location.display()
    ))
}

/// Fails when the directory holds no store.
pub fn require(location: &Path) -> Result<(), String> {
    refuse_unfinished(location)?;
    match engine_local::is_store(location) {
        true => Ok(()),
        false => Err(format!("there is no Lazulite store in {}", location.display())),
    }
}

/// Makes the directory a store unless it is one, for a command that keeps a file of its own beside the data.
pub fn prepare(location: &Path) -> Result<(), String> {
    if engine_local::is_store(location) {
        return Ok(());
    }
    refuse_unfinished(location)?;
    LocalEngine::open(location, options()).map(|_| ()).map_err(|error| error.to_string())
}

pub fn options() -> LocalOptions {
    LocalOptions::new(server::FAMILIES, Arc::new(SystemClock::new()))
}

/// Runs one piece of asynchronous work to its end.
pub fn wait_for<T>(work: impl Future<Output = T>) -> Result<T, String> {
    Ok(runtime()?.block_on(work))
}

/// What runs the asynchronous work of a command. Everything that is opened on it stays on it.
pub fn runtime() -> Result<Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start an asynchronous runtime: {error}"))
}
