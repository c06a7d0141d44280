//! The directory of a restore, from the first file to the step that makes it a store.
//!
//! ```text
//! restore.new/                                     the store is being built
//! files, restore.new/                              its files move up, one by one; the marker stays behind
//! files, restore.marker, restore.new/              the marker moves up under another name
//! files, restore.marker                            restore.new is removed
//! files, LAZULITE                                  the marker gets its name: a store
//! ```
//!
//! Promises: each line is durable before the next begins, so at any moment the directory is a complete store or has one
//! of the two names that say otherwise. A directory with such a name and no marker is never taken for a fresh store,
//! and a restore into it starts over. One restore works on a directory at a time. A file that no restore can have made
//! is never removed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use engine_local::MARKER;

use crate::contents_place::{DIRECTORY, PLACE_FILE};

/// Where the store is built.
const BUILDING: &str = "restore.new";
/// The marker of the finished store, until `BUILDING` is gone.
const READY: &str = "restore.marker";

/// Whether a restore into this directory was begun and not finished.
pub fn is_unfinished(location: &Path) -> bool {
    let has = |name: &str| location.join(name).symlink_metadata().is_ok();
    !engine_local::is_store(location) && (has(BUILDING) || has(READY))
}

/// A directory that holds nothing but a restore in progress.
pub struct RestorePlace {
    location: PathBuf,
    /// `restore.new`, locked until the restore is over. Windows cannot open a directory; there the open files of one restore stop
    /// another.
    _one: Option<File>,
}

impl RestorePlace {
    /// Takes an empty or missing directory, or one whose restore was interrupted.
    pub fn prepare(location: &Path) -> Result<RestorePlace, String> {
        if location.exists() && !location.is_dir() {
            return Err(format!("{} is not a directory", location.display()));
        }
        // Look before anything is created.
        if location.exists() {
            leftovers(location)?;
        }
        let cannot = |error: io::Error| format!("{}: {error}", location.display());
        let building = location.join(BUILDING);
        files::create_secret_directory(location).map_err(cannot)?;
        files::create_secret_directory(&building).map_err(cannot)?;
        let one = File::open(&building).ok();
        if let Some(Err(std::fs::TryLockError::WouldBlock)) = one.as_ref().map(File::try_lock) {
            return Err(format!("another restore into {} is running", location.display()));
        }
        // Look again: another restore may have finished before we got the lock.
        let leftovers = leftovers(location)?;
        start_over(location, &leftovers).map_err(cannot)?;
        Ok(RestorePlace { location: location.to_owned(), _one: one })
    }

    /// The directory in which to build the store.
    pub fn building(&self) -> PathBuf {
        self.location.join(BUILDING)
    }

    /// Turns the directory into a store.
    pub fn finish(self) -> Result<(), String> {
        self.move_up().map_err(|error| format!("{}: {error}; run the restore again", self.location.display()))
    }

    fn move_up(&self) -> io::Result<()> {
        let (from, to) = (self.building(), &self.location);
        for entry in std::fs::read_dir(&from)? {
            let name = entry?.file_name();
            if name != MARKER {
                std::fs::rename(from.join(&name), to.join(&name))?;
            }
        }
        files::sync_directory(to)?;
        std::fs::rename(from.join(MARKER), to.join(READY))?;
        files::sync_directory(to)?;
        std::fs::remove_dir(&from)?;
        files::sync_directory(to)?;
        std::fs::rename(to.join(READY), to.join(MARKER))?;
        files::sync_directory(to)
    }

    /// After a failure: frees the space. The directory stays unfinished, so that nobody serves an empty store in the
    /// belief that the restore succeeded.
    pub fn empty(self) {
        if let Err(error) = empty_directory(&self.building()) {
            eprintln!("lazulite: warning: {}: {error}", self.building().display());
        }
    }
}

/// The files that an interrupted restore has moved up. Only such a restore puts a store's files beside `restore.new`, so
/// a directory with any other file is refused.
fn leftovers(location: &Path) -> Result<Vec<OsString>, String> {
    if engine_local::is_store(location) {
        return Err(format!(
            "{} is a store already: choose an empty directory, or one table with --table, one queue with --queue, \
             one container with --container",
            location.display()
        ));
    }
    let is_unfinished = is_unfinished(location);
    let cannot = |error: io::Error| format!("{}: {error}", location.display());
    let mut moved_up = Vec::new();
    for entry in std::fs::read_dir(location).map_err(cannot)? {
        let name = entry.map_err(cannot)?.file_name();
        match name.to_str() {
            Some(BUILDING | READY) => {}
            Some(text) if is_unfinished && (engine_local::is_store_file(text) || is_of_contents(text)) => {
                moved_up.push(name);
            }
            _ => return Err(format!("{} is not empty: it has {name:?}", location.display())),
        }
    }
    Ok(moved_up)
}

/// Removes what an interrupted restore left. `restore.new` stays, so that the directory says "unfinished" at every
/// moment: without it, the other files would look like a store whose creation was interrupted.
fn start_over(location: &Path, leftovers: &[OsString]) -> io::Result<()> {
    remove_if_present(&location.join(READY))?;
    for name in leftovers {
        remove(&location.join(name))?;
    }
    files::sync_directory(location)?;
    empty_directory(&location.join(BUILDING))
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Whether it belongs to the contents of blobs.
fn is_of_contents(name: &str) -> bool {
    matches!(name, DIRECTORY | PLACE_FILE)
}

/// Removes a file, or the directory of contents with its files.
fn remove(path: &Path) -> io::Result<()> {
    match path.file_name().is_some_and(|name| name == DIRECTORY) && path.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    }
}

/// Removes everything in the directory, but not the directory.
fn empty_directory(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        remove(&entry?.path())?;
    }
    files::sync_directory(directory)
}
