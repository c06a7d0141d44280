//! The store's directory: found, checked, or created so that a power cut at any moment leaves either nothing or a
//! complete store.
//!
//! ```text
//! LAZULITE           one line for people and for us: "lazulite store, format 3"
//! lock               locked by the process that has the store open
//! commits-….log      the commit log: what was committed lately
//! tables.redb        the tree: the rows (table `rows`) and the counters (`meta`), as of some record of the log
//! ```
//!
//! Promises: a directory that holds other files and no marker is never touched. The marker is written last, so a
//! store that has one is complete.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, StorageBackend, StorageError, TableDefinition,
    WriteTransaction,
};

use crate::catch_panic::catch_panic;
use crate::checksum_file::ChecksumFile;
use crate::commit_log::{self, Counters, ReplayError, Replayed, replay};
use crate::directory::{self, DirectoryLock};
use crate::directory_files::{Access, AnyFile, DirectoryFiles, StoreFiles};
use crate::disk::{Overlay, Watched};
use crate::group::ChangedRows;
use crate::recent::Recent;
use crate::sweep::first_dropped;
use crate::tree_error::is_damage;
use crate::upgrade;
use engine::TableId;
use engine::env::random;
use engine::keys::{self, Key};

/// Encoded key -> stored row (see `row_bytes.rs`).
pub(crate) const ROWS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");
pub(crate) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// The list of live tables, kept as rows of a table of the engine's own.
pub(crate) const LIVE: TableId = TableId(2);
/// The list of dropped tables whose rows are still to be swept.
pub(crate) const DROPPED: TableId = TableId(3);

/// The last record of the log that is in the tree.
pub(crate) const META_FOLDED: &str = "folded";
pub(crate) const META_LAST_VERSION: &str = "last_version";
pub(crate) const META_NEXT_TABLE: &str = "next_table";

const FORMAT: u32 = 3;
/// A store of this format is upgraded when it is opened.
const FORMAT_BEFORE: u32 = 2;
/// The file that makes a directory a store; it is written last.
pub const MARKER: &str = "LAZULITE";
const MARKER_START: &str = "lazulite store, format ";
const LOCK: &str = "lock";
pub(crate) const TABLES: &str = "tables.redb";
const TABLES_NEW: &str = "tables.redb.new";
/// What an interrupted creation may leave behind, beside the log and the marker's temporary file. The last name is
/// the one that earlier versions gave to that file.
const OURS: [&str; 5] = [MARKER, LOCK, TABLES, TABLES_NEW, "LAZULITE.new"];

/// Whether there is a store in this directory.
pub fn is_store(directory: &Path) -> bool {
    directory.join(MARKER).exists()
}

/// The key of a table on one of the lists.
pub(crate) fn list_key(list: TableId, table: TableId) -> Vec<u8> {
    keys::encode(list, Key { partition: "", row: &format!("{:020}", table.0) })
}

/// The table that such a key names.
pub(crate) fn listed_table(key: &[u8]) -> Option<TableId> {
    let (_, _, row) = keys::decode(key).ok()?;
    row.parse().ok().map(TableId)
}

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
                "{} is not empty and not a Lazulite store (it has no file {MARKER}): choose an empty directory or an existing \
                 store.",
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

/// How to reopen the tree's file while the store stays locked.
pub(crate) struct Reopening {
    pub(crate) writable: Box<dyn Fn() -> Result<Database, OpenError> + Send>,
    /// For reading only: repairs that redb makes on opening stay in memory.
    pub(crate) read_only: Box<dyn Fn() -> Result<Database, OpenError> + Send>,
    /// Set when a sync fails: from then on the file may show what is not durable.
    pub(crate) sync_failed: Arc<AtomicBool>,
}

/// An open store: the tree, the end of the log, and the rows that are in the log and not in the tree. The lock is
/// released last.
pub(crate) struct Store {
    pub(crate) database: Database,
    pub(crate) recent: Recent,
    pub(crate) counters: Counters,
    /// The last record in the tree.
    pub(crate) folded: u64,
    pub(crate) replayed: Replayed,
    pub(crate) sweep_pending: bool,
    pub(crate) reopening: Reopening,
    pub(crate) lock: DirectoryLock,
}

/// Opens the store, or creates it. `files` are the files of `path`, or stand for them in a test.
pub(crate) fn open(
    path: &Path,
    cache_bytes_max: usize,
    files: &Arc<dyn StoreFiles>,
) -> Result<Store, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |cause| OpenError::Damaged { path: path.to_owned(), cause };

    if path.exists() && !path.is_dir() {
        return Err(OpenError::NotADirectory(path.to_owned()));
    }
    directory::create_all(path).map_err(io)?;
    // Look before locking, because taking the lock creates a file.
    if read_marker(path)?.is_none() && has_foreign_entries(path).map_err(io)? {
        return Err(OpenError::Foreign(path.to_owned()));
    }
    let Some(lock) = DirectoryLock::try_acquire(&path.join(LOCK)).map_err(io)? else {
        return Err(OpenError::Locked(path.to_owned()));
    };

    if let Ok(marker) = fs::File::open(path.join(MARKER)) {
        directory::make_secret(&marker, MARKER);
    }
    // Read again: another process may have created the store before we got the lock.
    let format = read_marker(path)?;
    let complete = format.is_some();
    if !files.names().map_err(io)?.iter().any(|name| name == TABLES) {
        if complete {
            return Err(damaged(format!("{TABLES} is missing")));
        }
        create_tables(path, cache_bytes_max, files)?;
    }
    let sync_failed = Arc::new(AtomicBool::new(false));
    let opener = Opener { path: path.to_owned(), files: files.clone(), cache_bytes_max };
    let database = opener.open_watched(&sync_failed)?;
    if format == Some(FORMAT_BEFORE) {
        log::warn!("the store in {} has format 2 and is upgraded to format 3", path.display());
        let upgraded = catch_panic(|| upgrade::from_format_2(&database))
            .unwrap_or_else(|_| Err(redb::Error::Corrupted("its structure is broken".to_owned())));
        upgraded.map_err(|error| match error {
            redb::Error::Io(source) if !is_damage(&source) => {
                OpenError::Io { path: path.join(TABLES), source }
            }
            error => damaged(format!("{TABLES}: {error}")),
        })?;
    }
    let meta = read_meta(&database).map_err(damaged)?;

    let (recent, mut counters) = (Recent::default(), meta.counters);
    let replayed = replay(files, meta.folded, format != Some(FORMAT), random::unguessable(), |record| {
        counters = record.counters;
        // Keep only the last change that each group made to a row.
        let mut written = ChangedRows::new();
        record.for_each_change(|key, row| {
            written.insert(key.to_vec(), row);
        })?;
        for (key, row) in written {
            recent.add(record.sequence, key.into_boxed_slice(), row);
        }
        Some(())
    });
    let replayed = replayed.map_err(|error| match error {
        ReplayError::Damaged(cause) => damaged(cause),
        ReplayError::Io(name, source) => OpenError::Io { path: path.join(name), source },
    })?;
    if format != Some(FORMAT) {
        write_marker(path).map_err(io)?;
    }
    let (writable, failed) = (opener.clone(), sync_failed.clone());
    let reopening = Reopening {
        writable: Box::new(move || writable.open_watched(&failed)),
        read_only: Box::new(move || opener.open_read_only()),
        sync_failed,
    };
    let Meta { folded, sweep_pending, .. } = meta;
    Ok(Store { database, recent, counters, folded, replayed, sweep_pending, reopening, lock })
}

/// Opens the tree's file.
#[derive(Clone)]
struct Opener {
    path: PathBuf,
    files: Arc<dyn StoreFiles>,
    cache_bytes_max: usize,
}

impl Opener {
    fn open_watched(&self, sync_failed: &Arc<AtomicBool>) -> Result<Database, OpenError> {
        self.open(TABLES, Access::Write, |file| AnyFile::new(Watched::new(file, sync_failed.clone())))
    }

    fn open_read_only(&self) -> Result<Database, OpenError> {
        self.open(TABLES, Access::Read, |file| AnyFile::new(Overlay::new(file)))
    }

    fn open(
        &self,
        name: &str,
        access: Access,
        wrap: impl Fn(AnyFile) -> AnyFile,
    ) -> Result<Database, OpenError> {
        let open = || -> Result<Database, DatabaseError> {
            let backend = ChecksumFile::new(wrap(self.files.open(name, access)?));
            Database::builder()
                .set_cache_size(self.cache_bytes_max)
                .set_repair_callback(|repair| {
                    log::warn!("checking the store after a crash: {:.0} % done", repair.progress() * 100.0);
                })
                .create_with_backend(backend)
        };
        // redb panics on a file that it does not understand. Here that must be an error.
        match catch_panic(open) {
            Ok(Ok(database)) => Ok(database),
            Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => Err(OpenError::Locked(self.path.clone())),
            Ok(Err(DatabaseError::Storage(StorageError::Io(source))))
                if source.kind() != io::ErrorKind::InvalidData
                    && source.kind() != io::ErrorKind::UnexpectedEof =>
            {
                Err(OpenError::Io { path: self.path.join(name), source })
            }
            Ok(Err(error)) => {
                Err(OpenError::Damaged { path: self.path.clone(), cause: format!("{name}: {error}") })
            }
            Err(_) => {
                let cause = format!("{name}: its structure is broken");
                Err(OpenError::Damaged { path: self.path.clone(), cause })
            }
        }
    }
}

/// The format that the marker names; `None` if there is no marker.
fn read_marker(path: &Path) -> Result<Option<u32>, OpenError> {
    let text = match fs::read(path.join(MARKER)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: path.join(MARKER), source }),
    };
    let format = text.trim_end().strip_prefix(MARKER_START).and_then(|number| number.parse::<u32>().ok());
    match format {
        Some(format @ (FORMAT | FORMAT_BEFORE)) => Ok(Some(format)),
        Some(format) if format > FORMAT => Err(OpenError::NewerFormat { path: path.to_owned(), format }),
        Some(format) if format > 0 => Err(OpenError::OlderFormat { path: path.to_owned(), format }),
        _ => {
            let cause = format!("{MARKER} does not name a store format");
            Err(OpenError::Damaged { path: path.to_owned(), cause })
        }
    }
}

fn write_marker(path: &Path) -> io::Result<()> {
    files::write_secret(&path.join(MARKER), format!("{MARKER_START}{FORMAT}\n").as_bytes())
}

/// Whether a file of this name may be part of a store, or of one whose creation was interrupted.
pub fn is_store_file(name: &str) -> bool {
    OURS.contains(&name) || commit_log::is_ours(name) || files::is_temporary(name, MARKER)
}

fn has_foreign_entries(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if !name.to_str().is_some_and(is_store_file) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Builds the file under another name first, because redb cannot open one whose creation was interrupted.
fn create_tables(path: &Path, cache_bytes_max: usize, files: &Arc<dyn StoreFiles>) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let opener = Opener { path: path.to_owned(), files: files.clone(), cache_bytes_max };
    let database = opener.open(TABLES_NEW, Access::Create, |file| file)?;
    create_schema(&database).map_err(|error| io(io::Error::other(error.to_string())))?;
    drop(database);
    files.open(TABLES_NEW, Access::Write).and_then(|file| file.sync_data()).map_err(io)?;
    files.rename(TABLES_NEW, TABLES).map_err(io)?;
    files.sync().map_err(io)
}

fn create_schema(database: &Database) -> Result<(), redb::Error> {
    let transaction = begin_write(database)?;
    transaction.open_table(ROWS)?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_FOLDED, 0)?;
        meta.insert(META_LAST_VERSION, 0)?;
        meta.insert(META_NEXT_TABLE, TableId::FIRST.0)?;
    }
    transaction.commit()?;
    Ok(())
}

/// A transaction that commits durably and keeps recovery short: after a crash redb need not read the whole file.
pub(crate) fn begin_write(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// The tree of a store that nobody has open, for tests that damage it.
#[doc(hidden)]
pub fn open_file(path: &Path) -> Result<Database, OpenError> {
    let files: Arc<dyn StoreFiles> = Arc::new(DirectoryFiles::new(path));
    Opener { path: path.to_owned(), files, cache_bytes_max: 0 }.open(TABLES, Access::Write, |file| file)
}

/// Whether this can be the counter of a table id.
fn is_counter(number: u64) -> bool {
    number >= TableId::FIRST.0 && TableId(number).counter() == number
}

/// What the tree's `meta` table says.
struct Meta {
    counters: Counters,
    folded: u64,
    /// Whether a dropped table waits to be swept.
    sweep_pending: bool,
}

fn read_meta(database: &Database) -> Result<Meta, String> {
    let read = || -> Result<Option<Meta>, redb::Error> {
        let transaction = database.begin_read()?;
        let meta = transaction.open_table(META)?;
        let number =
            |name| -> Result<Option<u64>, redb::Error> { Ok(meta.get(name)?.map(|value| value.value())) };
        let sweep_pending = first_dropped(&transaction.open_table(ROWS)?)?.is_some();
        let (last, next) = (number(META_LAST_VERSION)?, number(META_NEXT_TABLE)?);
        let counters = last.zip(next).map(|(last_version, next_table)| Counters { last_version, next_table });
        Ok(counters.zip(number(META_FOLDED)?).map(|(counters, folded)| Meta {
            counters,
            folded,
            sweep_pending,
        }))
    };
    // redb panics on pages that it does not understand.
    let outcome = catch_panic(read)
        .unwrap_or_else(|_| Err(redb::Error::Corrupted("its structure is broken".to_owned())));
    match outcome {
        Ok(Some(Meta { counters, .. })) if !is_counter(counters.next_table) => {
            Err(format!("{TABLES}: the next table id is {}", counters.next_table))
        }
        Ok(Some(meta)) => Ok(meta),
        Ok(None) => Err(format!("{TABLES}: one of its counters is missing")),
        Err(error) => Err(format!("{TABLES}: {error}")),
    }
}
