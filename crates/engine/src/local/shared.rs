//! What the readers, the callers and the commit thread share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, WriteTransaction};

use super::store::{META, META_LAST_VERSION, ROWS, Reopening, begin_write};
use crate::ReadError;

/// The rows as of one durable commit. It pins the pages of that state, so it is held for one page of a scan at
/// the most, and by [`Shared`] until the next commit replaces it.
pub(super) type View = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Counters since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalStats {
    /// Durable transactions that carried commits.
    pub group_count: u64,
    /// Jobs in those transactions, the ones that failed their expectations included.
    pub job_count: u64,
    /// Rows of dropped tables whose space was given back.
    pub swept_row_count: u64,
    /// Bytes of commits waiting or under way.
    pub queued_bytes: u64,
    pub poisoned: bool,
}

pub(super) struct Shared {
    /// Kept open between commits: opening a transaction and a table costs more than reading a row.
    view: RwLock<Option<Arc<View>>>,
    poisoned: AtomicBool,
    queued_bytes: AtomicUsize,
    group_count: AtomicU64,
    job_count: AtomicU64,
    swept_row_count: AtomicU64,
    /// Set when there is a way to open the file anew.
    pub(super) reopens: AtomicBool,
    /// When readers last asked for that, in milliseconds, plus one.
    reopen_asked_at_ms: AtomicU64,
    held: RwLock<Held>,
}

/// A block that is damaged and read again and again must not keep the file from everybody else.
const REOPEN_INTERVAL_MS: u64 = 500;

/// The open file.
enum Held {
    Writable(Database),
    /// The file does not open for writing just now: what is written here goes nowhere.
    ReadOnly(Database),
    Nothing,
}

impl Shared {
    pub(super) fn new(database: Database) -> Result<Shared, redb::Error> {
        let shared = Shared {
            view: RwLock::new(None),
            poisoned: AtomicBool::new(false),
            queued_bytes: AtomicUsize::new(0),
            group_count: AtomicU64::new(0),
            job_count: AtomicU64::new(0),
            swept_row_count: AtomicU64::new(0),
            reopens: AtomicBool::new(false),
            reopen_asked_at_ms: AtomicU64::new(0),
            held: RwLock::new(Held::Writable(database)),
        };
        shared.publish()?;
        Ok(shared)
    }

    pub(super) fn view(&self) -> Result<Arc<View>, ReadError> {
        let view = self.view.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        view.clone()
            .ok_or_else(|| ReadError::Storage("no view of the store opens; restart to reopen it".to_owned()))
    }

    /// Shows readers the latest commit; on failure it shows them nothing rather than the past.
    pub(super) fn publish(&self) -> Result<(), redb::Error> {
        let opened = self.open_view();
        let (view, outcome) = match opened {
            Ok(view) => (Some(Arc::new(view)), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let mut current = self.view.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let old = std::mem::replace(&mut *current, view);
        drop(current);
        // The last one to hold a view ends its transaction, which takes a lock: better not inside ours.
        drop(old);
        outcome
    }

    fn open_view(&self) -> Result<View, redb::Error> {
        Ok(self.begin_read()?.open_table(ROWS)?)
    }

    /// A view of everything, not only of the rows.
    pub(super) fn begin_read(&self) -> Result<ReadTransaction, redb::Error> {
        match &*self.held.read().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            Held::Writable(database) | Held::ReadOnly(database) => Ok(database.begin_read()?),
            Held::Nothing => Err(redb::Error::DatabaseClosed),
        }
    }

    /// The greatest version that is durable.
    pub(super) fn last_version(&self) -> Result<u64, redb::Error> {
        let meta = self.begin_read()?.open_table(META)?;
        Ok(meta.get(META_LAST_VERSION)?.map_or(0, |ticks| ticks.value()))
    }

    /// `None`: the file is not open for writing.
    pub(super) fn begin_write(&self) -> Option<Result<WriteTransaction, redb::Error>> {
        match &*self.held.read().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            Held::Writable(database) => Some(begin_write(database)),
            Held::ReadOnly(_) | Held::Nothing => None,
        }
    }

    /// Whether a reader that met an error may ask for the file to be opened anew. Never after a failed write: then what
    /// the file shows may not be durable.
    pub(super) fn may_reopen_for_readers(&self, now: Duration) -> bool {
        if !self.reopens.load(Ordering::Acquire) || self.is_poisoned() {
            return false;
        }
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let last = self.reopen_asked_at_ms.load(Ordering::Acquire);
        let is_due = last == 0 || now.saturating_sub(last) >= REOPEN_INTERVAL_MS;
        is_due
            && self
                .reopen_asked_at_ms
                .compare_exchange(last, now, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// Closes the file and opens it again, for reading at least; whether it is open for writing. Readers who are on
    /// their way find their view closed.
    pub(super) fn reopen(&self, reopening: &Reopening) -> bool {
        let mut held = self.held.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        *held = Held::Nothing;
        *held = match (reopening.writable)() {
            Ok(database) => Held::Writable(database),
            Err(error) => {
                log::warn!("the store does not open for writing: {error}");
                match (reopening.read_only)() {
                    Ok(database) => Held::ReadOnly(database),
                    Err(error) => {
                        log::error!("the store does not open for reading either: {error}");
                        Held::Nothing
                    }
                }
            }
        };
        let is_writable = matches!(*held, Held::Writable(_));
        drop(held);
        self.publish().is_ok() && is_writable
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    pub(super) fn poison(&self, cause: &str) {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            log::error!(
                "writing to the store failed: {cause}. No more writes are taken until the server is restarted. \
                 Check the disk (space, health, kernel log), then restart: every acknowledged write is kept, \
                 and those that were under way are found to have happened or not."
            );
        }
    }

    /// Takes room in the queue. A commit above the bound passes when it is alone: it must be possible at all. An eighth
    /// of the room is for small commits, so that large ones do not shut them out.
    pub(super) fn try_reserve(&self, size_bytes: usize, size_bytes_max: usize) -> bool {
        let room = size_bytes_max / 8;
        let bytes_max = if size_bytes <= room / 8 { size_bytes_max } else { size_bytes_max - room };
        let reserve = |queued: usize| {
            let sum = queued.checked_add(size_bytes)?;
            (queued == 0 || sum <= bytes_max).then_some(sum)
        };
        self.queued_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, reserve).is_ok()
    }

    pub(super) fn release(&self, size_bytes: usize) {
        self.queued_bytes.fetch_sub(size_bytes, Ordering::AcqRel);
    }

    pub(super) fn count_group(&self, job_count: usize) {
        self.group_count.fetch_add(1, Ordering::Relaxed);
        self.job_count.fetch_add(job_count as u64, Ordering::Relaxed);
    }

    pub(super) fn count_swept(&self, row_count: u64) {
        self.swept_row_count.fetch_add(row_count, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> LocalStats {
        LocalStats {
            group_count: self.group_count.load(Ordering::Relaxed),
            job_count: self.job_count.load(Ordering::Relaxed),
            swept_row_count: self.swept_row_count.load(Ordering::Relaxed),
            queued_bytes: self.queued_bytes.load(Ordering::Relaxed) as u64,
            poisoned: self.is_poisoned(),
        }
    }
}
