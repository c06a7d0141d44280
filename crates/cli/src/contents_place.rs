//! Where the contents of blobs are kept, for the server and for commands.
//!
//! Promises: contents are opened only together with the store whose rows name them, and carry its id. A command that only looks makes
//! no directory.

use std::path::Path;
use std::sync::Arc;

use contents::{ContentStore, ContentsOptions, LocalContents, MemoryContents, UnixMilliseconds};
use engine::env::{Clock, UNIX_EPOCH_TICKS};
use engine_local::LocalEngine;

use crate::random;

/// The directory beside the engine's files.
pub const DIRECTORY: &str = contents::local::DIRECTORY;
const TICKS_PER_MILLISECOND: u64 = 10_000;
/// In memory, the contents of blobs may take so much.
const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Contents that end with the process.
pub fn in_memory(clock: Arc<dyn Clock>) -> Arc<dyn ContentStore> {
    Arc::new(MemoryContents::new(MEMORY_BYTES_MAX, unix_time(clock)))
}

/// The contents of the store in this directory. `None` if it has none.
pub fn open_if_there(
    location: &Path,
    store: &LocalEngine,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<dyn ContentStore>>, String> {
    match location.join(DIRECTORY).is_dir() {
        true => open(location, store, clock).map(Some),
        false => Ok(None),
    }
}

/// The contents of the store in this directory, which gets some if it has none.
pub fn open(
    location: &Path,
    store: &LocalEngine,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn ContentStore>, String> {
    // The system has provided random bytes by now, or the store would have no id.
    let random = || random::bytes().map(u64::from_le_bytes).unwrap_or_default();
    let id = u64::from_str_radix(&store.store_id(), 16).map_err(|error| error.to_string())?;
    let options = ContentsOptions::new(id, Arc::new(random), unix_time(clock));
    let contents = LocalContents::open(&location.join(DIRECTORY), options);
    Ok(Arc::new(contents.map_err(|error| format!("the contents of blobs: {error}"))?))
}

fn unix_time(clock: Arc<dyn Clock>) -> UnixMilliseconds {
    Arc::new(move || clock.now_ticks().saturating_sub(UNIX_EPOCH_TICKS) / TICKS_PER_MILLISECOND)
}
