//! The store's directory and file: found, checked, or created so that a power cut at any moment leaves either
//! nothing or a whole store.
//!
//! ```text
//! LAZULITE       one line for people and for us: "lazulite store, format 2"
//! lock           locked by the process that has the store open
//! tables.redb    the rows (table `rows`), the numbers (`meta`), the live and the dropped table ids
//! ```
//!
//! Promises: a directory with anything else in it and no marker is never touched; the marker is written last, so
//! a store that has one is complete.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::backends::FileBackend;
use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, ReadableTableMetadata, StorageBackend,
    StorageError, TableDefinition, WriteTransaction,
};

use super::checked::Checked;
use super::disk::{Overlay, Watched};
use super::guard::guarded;
use crate::TableId;
use crate::env::directory::{self, DirectoryLock};
use crate::seeded::{self, Bug};

/// Encoded key -> stored row (see `stored.rs`).
pub(super) const ROWS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
pub(super) const LIVE: TableDefinition<u64, ()> = TableDefinition::new("live");
/// Tables whose rows are still to be swept.
pub(super) const DROPPED: TableDefinition<u64, ()> = TableDefinition::new("dropped");

pub(super) const META_LAST_VERSION: &str = "last_version";
pub(super) const META_NEXT_TABLE: &str = "next_table";

const FORMAT: u32 = 2;
const MARKER: &str = "LAZULITE";
const MARKER_NEW: &str = "LAZULITE.new";
const MARKER_START: &str = "lazulite store, format ";
const LOCK: &str = "lock";
pub(super) const TABLES: &str = "tables.redb";
const TABLES_NEW: &str = "tables.redb.new";
/// What an interrupted creation may leave behind.
const OURS: [&str; 5] = [MARKER, MARKER_NEW, LOCK, TABLES, TABLES_NEW];

/// Why a store did not open.
#[derive(Debug)]
pub enum OpenError {
    NotADirectory(PathBuf),
    Foreign(PathBuf),
    NewerFormat { path: PathBuf, format: u32 },
    OlderFormat { path: PathBuf, format: u32 },
    Locked(PathBuf),
    Damaged { path: PathBuf, cause: String },
    Io { path: PathBuf, source: io::Error },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NotADirectory(path) => write!(f, "{} is not a directory.", path.display()),
            OpenError::Foreign(path) => write!(
                f,
                "{} is not empty and not a Lazulite store: choose an empty directory or an existing store.",
                path.display()
            ),
            OpenError::NewerFormat { path, format } => write!(
                f,
                "{} has store format {format} (says its file {MARKER}) but this version reads formats up to {FORMAT}: \
                 use a newer Lazulite.",
                path.display()
            ),
            OpenError::OlderFormat { path, format } => write!(
                f,
                "{} has store format {format} (says its file {MARKER}) of a version before the first release: take a \
                 backup with that version and restore it with this one.",
                path.display()
            ),
            OpenError::Locked(path) => {
                write!(f, "{} is in use by another process: stop it first.", path.display())
            }
            OpenError::Damaged { path, cause } => {
                write!(f, "The store in {} is damaged ({cause}): restore it from a backup.", path.display())
            }
            OpenError::Io { path, source } => write!(f, "{} cannot be opened: {source}.", path.display()),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// How to open the store's file again, while the store stays locked.
pub(super) struct Reopening {
    pub(super) writable: Box<dyn Fn() -> Result<Database, OpenError> + Send>,
    /// For reading only: what opening it has to repair is repaired in memory.
    pub(super) read_only: Box<dyn Fn() -> Result<Database, OpenError> + Send>,
    /// Set when a sync fails: after that nothing that the file shows can be relied on.
    pub(super) sync_failed: Arc<AtomicBool>,
}

/// Opens the store on its file, such that it can be opened again.
pub(super) fn open_reopening<B: StorageBackend>(
    path: &Path,
    cache_bytes_max: usize,
    wrap: impl Fn(FileBackend) -> B + Clone + Send + 'static,
) -> Result<(Store, Reopening), OpenError> {
    let sync_failed = Arc::new(AtomicBool::new(false));
    let failed = sync_failed.clone();
    let watch = move |file: FileBackend| Watched::new(wrap(file), failed.clone());
    let store = open(path, cache_bytes_max, watch.clone())?;
    let place = path.to_owned();
    let same_place = place.clone();
    let reopening = Reopening {
        writable: Box::new(move || open_database(&place, TABLES, cache_bytes_max, &watch)),
        read_only: Box::new(move || {
            let read = OpenOptions::new().read(true).clone();
            open_database_with(&read, &same_place, TABLES, cache_bytes_max, &Overlay::new)
        }),
        sync_failed,
    };
    Ok((store, reopening))
}

/// An open store. The lock is the last to go.
pub(super) struct Store {
    pub(super) database: Database,
    pub(super) last_version: u64,
    pub(super) next_table: u64,
    pub(super) sweep_pending: bool,
    pub(super) lock: DirectoryLock,
}

/// Opens the store, or creates it. `wrap` may put something between the file and the database.
pub(super) fn open<B: StorageBackend>(
    path: &Path,
    cache_bytes_max: usize,
    wrap: impl Fn(FileBackend) -> B,
) -> Result<Store, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |cause| OpenError::Damaged { path: path.to_owned(), cause };

    if path.exists() && !path.is_dir() {
        return Err(OpenError::NotADirectory(path.to_owned()));
    }
    directory::create_all(path).map_err(io)?;
    // Before the lock, because taking it creates a file.
    if read_marker(path)?.is_none() && has_foreign_entries(path).map_err(io)? {
        return Err(OpenError::Foreign(path.to_owned()));
    }
    let Some(lock) = DirectoryLock::try_acquire(&path.join(LOCK)).map_err(io)? else {
        return Err(OpenError::Locked(path.to_owned()));
    };

    // Read again: until the lock was ours, another process may have been creating the store.
    let complete = read_marker(path)?.is_some();
    if !path.join(TABLES).is_file() {
        if complete {
            return Err(damaged(format!("{TABLES} is missing")));
        }
        create_tables(path, cache_bytes_max, &wrap)?;
    }
    let database = open_database(path, TABLES, cache_bytes_max, &wrap)?;
    let (last_version, next_table, sweep_pending) = read_meta(&database).map_err(damaged)?;
    let last_version = if seeded::is(Bug::VersionReuse) { 0 } else { last_version };
    if !complete {
        write_marker(path).map_err(io)?;
    }
    Ok(Store { database, last_version, next_table, sweep_pending, lock })
}

/// `None`: there is none.
fn read_marker(path: &Path) -> Result<Option<u32>, OpenError> {
    let text = match fs::read(path.join(MARKER)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: path.join(MARKER), source }),
    };
    let format = text.trim_end().strip_prefix(MARKER_START).and_then(|number| number.parse::<u32>().ok());
    match format {
        Some(FORMAT) => Ok(Some(FORMAT)),
        Some(format) if format > FORMAT => Err(OpenError::NewerFormat { path: path.to_owned(), format }),
        Some(format) if format > 0 => Err(OpenError::OlderFormat { path: path.to_owned(), format }),
        _ => {
            let cause = format!("{MARKER} does not name a store format");
            Err(OpenError::Damaged { path: path.to_owned(), cause })
        }
    }
}

fn write_marker(path: &Path) -> io::Result<()> {
    let mut file = File::create(path.join(MARKER_NEW))?;
    writeln!(file, "{MARKER_START}{FORMAT}")?;
    file.sync_all()?;
    drop(file);
    fs::rename(path.join(MARKER_NEW), path.join(MARKER))?;
    directory::sync(path)
}

fn has_foreign_entries(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !OURS.iter().any(|ours| name == *ours) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Builds the file under another name first: redb would not open one whose creation was cut short.
fn create_tables<B: StorageBackend>(
    path: &Path,
    cache_bytes_max: usize,
    wrap: &impl Fn(FileBackend) -> B,
) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let unfinished = path.join(TABLES_NEW);
    if unfinished.exists() {
        fs::remove_file(&unfinished).map_err(io)?;
    }
    let database = open_database(path, TABLES_NEW, cache_bytes_max, wrap)?;
    create_schema(&database).map_err(|error| io(io::Error::other(error.to_string())))?;
    drop(database);
    // Opened for writing because Windows syncs no other file.
    OpenOptions::new().write(true).open(&unfinished).and_then(|file| file.sync_all()).map_err(io)?;
    fs::rename(&unfinished, path.join(TABLES)).map_err(io)?;
    directory::sync(path).map_err(io)
}

fn create_schema(database: &Database) -> Result<(), redb::Error> {
    let transaction = begin_write(database)?;
    transaction.open_table(ROWS)?;
    transaction.open_table(LIVE)?;
    transaction.open_table(DROPPED)?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_LAST_VERSION, 0)?;
        meta.insert(META_NEXT_TABLE, TableId::FIRST.0)?;
    }
    transaction.commit()?;
    Ok(())
}

/// A transaction whose commit is durable, and after which a crash needs no reading of the whole file.
pub(super) fn begin_write(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// The database in a store that nobody has open: for tests that change it behind the engine's back.
#[doc(hidden)]
pub fn open_file(path: &Path) -> Result<Database, OpenError> {
    open_database(path, TABLES, 0, &|file| file)
}

fn open_database<B: StorageBackend>(
    path: &Path,
    name: &str,
    cache_bytes_max: usize,
    wrap: &impl Fn(FileBackend) -> B,
) -> Result<Database, OpenError> {
    let write = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
    open_database_with(&write, path, name, cache_bytes_max, wrap)
}

fn open_database_with<B: StorageBackend>(
    how: &OpenOptions,
    path: &Path,
    name: &str,
    cache_bytes_max: usize,
    wrap: &impl Fn(FileBackend) -> B,
) -> Result<Database, OpenError> {
    let file = path.join(name);
    let open = || -> Result<Database, DatabaseError> {
        let backend = Checked::new(wrap(FileBackend::new(how.open(&file)?)?));
        Database::builder()
            .set_cache_size(cache_bytes_max)
            .set_repair_callback(|repair| {
                log::warn!("checking the store after a crash: {:.0} % done", repair.progress() * 100.0);
            })
            .create_with_backend(backend)
    };
    // redb asserts what it expects of the file; a damaged one must be an error here, not a crash.
    match guarded(open) {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => Err(OpenError::Locked(path.to_owned())),
        Ok(Err(DatabaseError::Storage(StorageError::Io(source))))
            if source.kind() != io::ErrorKind::InvalidData
                && source.kind() != io::ErrorKind::UnexpectedEof =>
        {
            Err(OpenError::Io { path: file, source })
        }
        Ok(Err(error)) => {
            Err(OpenError::Damaged { path: path.to_owned(), cause: format!("{name}: {error}") })
        }
        Err(_) => {
            let cause = format!("{name}: its structure is broken");
            Err(OpenError::Damaged { path: path.to_owned(), cause })
        }
    }
}

/// The last version, the next table id, and whether a dropped table waits to be swept.
fn read_meta(database: &Database) -> Result<(u64, u64, bool), String> {
    let read = || -> Result<Option<(u64, u64, bool)>, redb::Error> {
        let transaction = database.begin_read()?;
        let meta = transaction.open_table(META)?;
        let sweep_pending = !transaction.open_table(DROPPED)?.is_empty()?;
        let (last, next) = (meta.get(META_LAST_VERSION)?, meta.get(META_NEXT_TABLE)?);
        Ok(last.zip(next).map(|(last, next)| (last.value(), next.value(), sweep_pending)))
    };
    // redb asserts what it expects of its pages.
    let outcome =
        guarded(read).unwrap_or_else(|_| Err(redb::Error::Corrupted("its structure is broken".to_owned())));
    match outcome {
        Ok(Some((_, next_table, _))) if next_table < TableId::FIRST.0 => {
            Err(format!("{TABLES}: the next table id is {next_table}"))
        }
        Ok(Some(numbers)) => Ok(numbers),
        Ok(None) => Err(format!("{TABLES}: the last version or the next table id is missing")),
        Err(error) => Err(format!("{TABLES}: {error}")),
    }
}
