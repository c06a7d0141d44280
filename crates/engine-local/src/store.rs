//! The store's directory: found, checked, or created so that a power cut at any moment leaves either nothing or a
//! complete store.
//!
//! ```text
//! LAZULITE           for people and for us: the format of the store, and its id
//! lock               locked by the process that has the store open
//! commits-….log      the commit log: what was committed lately
//! tables.redb        the tree: the rows (table `rows`) and the counters (`meta`), as of some record of the log,
//!                    or between two while rows are folded into it
//! ```
//!
//! Promises: a directory that holds other files and no marker is never touched. The marker is written last, so a
//! store that has one is complete. Every file carries the store's id, and a file of another store is refused. All files
//! are reached through one open directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, StorageBackend, StorageError, TableDefinition,
    WriteTransaction,
};

use crate::catch_panic::catch_panic;
use crate::checksum_file::ChecksumFile;
use crate::commit_log::{self, Counters, ReplayError, Replayed, SpaceUse, replay};
use crate::directory::{self, DirectoryLock};
use crate::directory_files::{Access, AnyFile, DirectoryFiles, StoreFiles};
use crate::disk::{Overlay, SyncFailure, Watched};
use crate::group::ChangedRows;
use crate::marker::{self, FORMAT, MARKER, MARKER_NEW, Marker};
use crate::paced_sync::PacedSync;
use crate::recent::Recent;
use crate::store_id::{StoreId, StorePlace};
use crate::sweep::first_dropped;
use crate::tree_error::is_damage;
use crate::upgrade;
use crate::view::Frozen;
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

/// The store's id, as a number.
pub(crate) const META_STORE: &str = "store";

const LOCK: &str = "lock";
pub(crate) const TABLES: &str = "tables.redb";
const TABLES_NEW: &str = "tables.redb.new";
/// What an interrupted creation may leave behind, beside the log, and beside the temporary file that earlier versions
/// wrote the marker to.
const OURS: [&str; 5] = [MARKER, LOCK, TABLES, TABLES_NEW, MARKER_NEW];

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
    NewerFormat {
        path: PathBuf,
        format: u32,
    },
    OlderFormat {
        path: PathBuf,
        format: u32,
    },
    Locked(PathBuf),
    Damaged {
        path: PathBuf,
        cause: String,
    },
    /// A file of another store lies in this store's directory.
    OtherStore {
        path: PathBuf,
        file: String,
        found: String,
        expected: String,
    },
    Io {
        path: PathBuf,
        source: io::Error,
    },
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
            OpenError::OtherStore { path, file, found, expected } => write!(
                f,
                "{} belongs to store {found}, but the store in {} is {expected}: two stores were mixed. Put each file back \
                 into its own directory, or restore from a backup.",
                path.join(file).display(),
                path.display()
            ),
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
    pub(crate) sync_failure: Arc<SyncFailure>,
    /// Grows with every write to the file.
    pub(crate) written_bytes: Arc<AtomicU64>,
}

/// An open store: the tree, the end of the log, and the rows that are in the log and not in the tree. The lock is
/// released last.
pub(crate) struct Store {
    pub(crate) place: StorePlace,
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
pub(crate) fn open(path: &Path, tuning: TreeTuning, files: &Arc<dyn StoreFiles>) -> Result<Store, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |cause| OpenError::Damaged { path: path.to_owned(), cause };

    if path.exists() && !path.is_dir() {
        return Err(OpenError::NotADirectory(path.to_owned()));
    }
    directory::create_all(path).map_err(io)?;
    // Look before locking, because taking the lock creates a file.
    if marker::read(&**files, path)?.is_none() && has_foreign_entries(&**files).map_err(io)? {
        return Err(OpenError::Foreign(path.to_owned()));
    }
    let Some(lock) = files.try_lock(LOCK).map_err(io)? else {
        return Err(OpenError::Locked(path.to_owned()));
    };

    // Read again: another process may have created the store before we got the lock.
    let marker = marker::read(&**files, path)?;
    if !files.names().map_err(io)?.iter().any(|name| name == TABLES) {
        if marker.is_some() {
            return Err(damaged(format!("{TABLES} is missing")));
        }
        create_tables(path, tuning, files)?;
    }
    let sync_failure = Arc::new(SyncFailure::default());
    let opener = Opener::new(path, files, tuning);
    let database = opener.open_watched(&sync_failure)?;
    let is_current = marker.is_some_and(|marker| marker.format == FORMAT);
    if !is_current {
        prepare_tree(&database, marker, path)?;
    }
    let meta = read_meta(&database).map_err(damaged)?;
    let tree_id = meta.id.ok_or_else(|| damaged(format!("{TABLES}: it carries no store id")))?;
    let id = marker.and_then(|marker| marker.id).unwrap_or(tree_id);
    if tree_id != id {
        let (path, file) = (path.to_owned(), TABLES.to_owned());
        return Err(OpenError::OtherStore {
            path,
            file,
            found: tree_id.to_string(),
            expected: id.to_string(),
        });
    }

    let place = StorePlace { files: files.clone(), path: path.to_owned(), id };
    let mut counters = meta.counters;
    let mut recent = Recent::default();
    let replayed = replay(&place, meta.folded, !is_current, random::unguessable(), |record| {
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
    let mut replayed = replayed.map_err(|error| match error {
        ReplayError::Damaged(cause) => damaged(cause),
        ReplayError::Io(name, source) => OpenError::Io { path: path.join(name), source },
        ReplayError::OtherStore(file, found) => {
            let (found, expected) = (found.to_string(), id.to_string());
            OpenError::OtherStore { path: path.to_owned(), file, found, expected }
        }
    })?;
    let Meta { mut folded, mut sweep_pending, .. } = meta;
    if !replayed.log.is_marked() {
        // Replay allowed this because the store is being upgraded. When the tree has every record of the old segments,
        // the log goes on in one that carries the id.
        let old = Frozen { recent: Arc::new(recent), until: replayed.last, counters };
        sweep_pending |= in_tree(path, || upgrade::fold(&database, &old))?;
        (recent, folded) = (Recent::default(), replayed.last);
        replayed.log.rotate(0, SpaceUse::Any).map_err(io)?;
    }
    if !is_current {
        marker::write(&**files, id).map_err(io)?;
    }
    let written_bytes = opener.written_bytes.clone();
    let (writable, failed) = (opener.clone(), sync_failure.clone());
    let reopening = Reopening {
        writable: Box::new(move || writable.open_watched(&failed).and_then(|tree| writable.check(tree, id))),
        read_only: Box::new(move || opener.open_read_only().and_then(|tree| opener.check(tree, id))),
        sync_failure,
        written_bytes,
    };
    Ok(Store { place, database, recent, counters, folded, replayed, sweep_pending, reopening, lock })
}

/// Gives a tree of an older format, or of a creation that was interrupted, what the present format has.
fn prepare_tree(database: &Database, marker: Option<Marker>, path: &Path) -> Result<(), OpenError> {
    if let Some(Marker { format, .. }) = marker {
        log::warn!("the store in {} has format {format} and is upgraded to format {FORMAT}", path.display());
        if format == 2 {
            in_tree(path, || upgrade::from_format_2(database))?;
        }
    }
    in_tree(path, || upgrade::give_id(database))
}

/// Does work on the tree, and says what a failure means for opening the store.
fn in_tree<T>(path: &Path, work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, OpenError> {
    let done = catch_panic(work)
        .unwrap_or_else(|_| Err(redb::Error::Corrupted("its structure is broken".to_owned())));
    done.map_err(|error| match error {
        redb::Error::Io(source) if !is_damage(&source) => OpenError::Io { path: path.join(TABLES), source },
        error => OpenError::Damaged { path: path.to_owned(), cause: format!("{TABLES}: {error}") },
    })
}

/// How the tree's file is read and written.
#[derive(Clone, Copy)]
pub(crate) struct TreeTuning {
    pub(crate) cache_bytes_max: usize,
    pub(crate) unsynced_bytes_max: u64,
}

/// Opens the tree's file.
#[derive(Clone)]
struct Opener {
    path: PathBuf,
    files: Arc<dyn StoreFiles>,
    tuning: TreeTuning,
    written_bytes: Arc<AtomicU64>,
}

impl Opener {
    fn new(path: &Path, files: &Arc<dyn StoreFiles>, tuning: TreeTuning) -> Opener {
        Opener { path: path.to_owned(), files: files.clone(), tuning, written_bytes: Arc::default() }
    }
}

impl Opener {
    fn open_watched(&self, sync_failure: &Arc<SyncFailure>) -> Result<Database, OpenError> {
        self.open(TABLES, Access::Write, |file| AnyFile::new(Watched::new(file, sync_failure.clone())))
    }

    /// The tree, if it is that of this store.
    fn check(&self, database: Database, id: StoreId) -> Result<Database, OpenError> {
        let damaged = |cause| OpenError::Damaged { path: self.path.clone(), cause };
        match read_meta(&database).map_err(damaged)?.id {
            Some(found) if found != id => {
                let (path, file) = (self.path.clone(), TABLES.to_owned());
                Err(OpenError::OtherStore { path, file, found: found.to_string(), expected: id.to_string() })
            }
            _ => Ok(database),
        }
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
            let file = wrap(self.files.open(name, access)?);
            let paced_sync = PacedSync::new(self.tuning.unsynced_bytes_max);
            let backend = ChecksumFile::new(file, paced_sync, self.written_bytes.clone());
            Database::builder()
                .set_cache_size(self.tuning.cache_bytes_max)
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

fn has_foreign_entries(files: &dyn StoreFiles) -> io::Result<bool> {
    Ok(!files.names()?.iter().all(|name| is_store_file(name)))
}

/// Whether a file of this name may be part of a store, or of one whose creation was interrupted.
pub fn is_store_file(name: &str) -> bool {
    OURS.contains(&name) || commit_log::is_ours(name) || files::is_temporary(name, MARKER)
}

/// Builds the file under another name first, because redb cannot open one whose creation was interrupted.
fn create_tables(path: &Path, tuning: TreeTuning, files: &Arc<dyn StoreFiles>) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let opener = Opener::new(path, files, tuning);
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
        meta.insert(META_STORE, StoreId::new().number())?;
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
    let tuning = TreeTuning { cache_bytes_max: 0, unsynced_bytes_max: u64::MAX };
    Opener::new(path, &files, tuning).open(TABLES, Access::Write, |file| file)
}

/// Whether this can be the counter of a table id.
fn is_counter(number: u64) -> bool {
    number >= TableId::FIRST.0 && TableId(number).counter() == number
}

/// What the tree's `meta` table says.
struct Meta {
    id: Option<StoreId>,
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
        let id = number(META_STORE)?.and_then(StoreId::from_number);
        let with_folded = counters.zip(number(META_FOLDED)?);
        Ok(with_folded.map(|(counters, folded)| Meta { id, counters, folded, sweep_pending }))
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
