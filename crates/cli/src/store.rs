//! The store in a data directory, for commands that work without a server: opened, or found to be in use.

use std::path::Path;
use std::sync::Arc;

use engine::env::SystemClock;
use engine_local::{LocalEngine, LocalOptions, OpenError};

/// `None` when a server has it open. A directory that is no store is an error: a command that reads makes none.
pub fn open(location: &Path) -> Result<Option<LocalEngine>, String> {
    if !engine_local::is_store(location) {
        return Err(format!("there is no Lazulite store in {}", location.display()));
    }
    match LocalEngine::open(location, LocalOptions::new(tables::FAMILIES, Arc::new(SystemClock::new()))) {
        Ok(engine) => Ok(Some(engine)),
        Err(OpenError::Locked(_)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs one piece of asynchronous work to its end.
pub fn wait_for<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| format!("the system does not give us a runtime: {error}"))?.block_on(work))
}
