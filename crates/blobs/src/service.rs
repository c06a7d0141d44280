//! `BlobService`: each operation of the Blob service is one call. The other files hold the operations.

use std::sync::Arc;
use std::time::Duration;

use catalogue::{Catalogue, from_read};
use contents::{ContentError, ContentRef, ContentStore, PendingContent};
use engine::env::Clock;
use engine::{Budget, CommitError, Engine, Share, TableId};
use protocol::blob::{ContainerName, KIND};
use protocol::common::{AccountName, DateTime};
use protocol::{ErrorCode, ServiceError};
use tokio::sync::{Mutex, MutexGuard, OnceCell, Semaphore};

use crate::family::FAMILY;
use crate::stream::LongStreams;
use crate::time::BlobTime;
use crate::unresolved::Unresolved;
use crate::upload::AHEAD_COUNT_MAX;

/// A change that loses a race against another change of the same blob tries again, so often at most.
pub(crate) const ATTEMPT_COUNT_MAX: usize = 64;
/// Changes of one blob that lost a race wait for each other. So many locks serve all blobs.
const TURN_COUNT: usize = 1024;
/// A scan may need several rounds of this much.
const SCAN_TIME_MAX: Duration = Duration::from_secs(30);

pub(crate) fn scan_budget(share: Share) -> Budget {
    Budget { rows_examined_max: u64::MAX, time_max: SCAN_TIME_MAX, share }
}

/// What no operation of the service sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlobOptions {
    /// Whether every write keeps what it replaces as a version.
    pub keeps_versions: bool,
    /// How long deleted containers can be restored. `None`: they are gone at once.
    pub container_retention_days: Option<u16>,
    /// After this time a blob has left the archive. `None`: it never does.
    pub rehydrates_after: Option<Duration>,
}

/// Cheap to clone: all clones are one service.
#[derive(Clone)]
pub struct BlobService {
    pub(crate) inner: Arc<BlobCore>,
}

pub(crate) struct BlobCore {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) contents: Arc<dyn ContentStore>,
    pub(crate) catalogue: Catalogue,
    pub(crate) options: BlobOptions,
    pub(crate) clock: Arc<dyn Clock>,
    /// Made with the first operation, because the store's last version must be known.
    time: OnceCell<BlobTime>,
    turns: Box<[Mutex<()>]>,
    /// One for each body whose checksums other threads compute.
    pub(crate) digests: Arc<Semaphore>,
    /// What commits whose outcome nobody knows may yet name.
    unresolved: Unresolved,
    pub(crate) streams: LongStreams,
}

impl BlobService {
    pub fn new(
        engine: Arc<dyn Engine>,
        contents: Arc<dyn ContentStore>,
        clock: Arc<dyn Clock>,
        options: BlobOptions,
    ) -> BlobService {
        let catalogue = Catalogue::new(engine.clone(), clock.clone(), &KIND, FAMILY);
        BlobCore::service(engine, contents, clock, options, catalogue)
    }

    /// The same, for an engine and contents that other processes write to, too. Contents are then given back by sweeps alone:
    /// another process may be reading what this one replaces.
    pub fn sharing_its_engine(self) -> BlobService {
        let BlobCore { engine, contents, options, clock, .. } = &*self.inner;
        let (engine, contents, clock) = (engine.clone(), contents.clone(), clock.clone());
        let catalogue = Catalogue::new(engine.clone(), clock.clone(), &KIND, FAMILY).sharing_its_engine();
        BlobCore::service(engine, contents, clock, *options, catalogue)
    }

    /// What the service keeps beside its data: names, stored policies, service properties.
    pub fn catalogue(&self) -> &Catalogue {
        &self.inner.catalogue
    }

    pub fn contents(&self) -> &Arc<dyn ContentStore> {
        &self.inner.contents
    }
}

impl BlobCore {
    fn service(
        engine: Arc<dyn Engine>,
        contents: Arc<dyn ContentStore>,
        clock: Arc<dyn Clock>,
        options: BlobOptions,
        catalogue: Catalogue,
    ) -> BlobService {
        let inner = BlobCore {
            engine,
            contents,
            catalogue,
            options,
            clock,
            time: OnceCell::new(),
            turns: (0..TURN_COUNT).map(|_| Mutex::default()).collect(),
            unresolved: Unresolved::default(),
            streams: LongStreams::default(),
            digests: Arc::new(Semaphore::new(AHEAD_COUNT_MAX)),
        };
        BlobService { inner: Arc::new(inner) }
    }

    async fn time(&self) -> Result<&BlobTime, ServiceError> {
        let make = async || {
            let last = self.engine.snapshot().await.map_err(from_read)?.last_version();
            Ok(BlobTime::new(self.clock.clone(), last.map_or(0, |version| version.ticks())))
        };
        self.time.get_or_try_init(make).await
    }

    pub(crate) async fn now(&self) -> Result<DateTime, ServiceError> {
        Ok(DateTime::from_ticks(self.time().await?.now()))
    }

    /// A moment that was never told before: later than every other.
    pub(crate) async fn next_moment(&self) -> Result<DateTime, ServiceError> {
        Ok(DateTime::from_ticks(self.time().await?.next()))
    }

    /// Another process has told this moment.
    pub(crate) async fn see_moment(&self, moment: u64) -> Result<(), ServiceError> {
        self.time().await?.see(moment);
        Ok(())
    }

    pub(crate) async fn find(
        &self,
        account: &AccountName,
        container: &ContainerName,
    ) -> Result<TableId, ServiceError> {
        let Some(id) = self.catalogue.id_of(account, container.as_str()).await? else {
            return Err(ErrorCode::ContainerNotFound.into());
        };
        // Another process may have dropped the container and created it again.
        let id = self.catalogue.current_id(account, container.as_str(), id).await?;
        id.ok_or_else(|| ErrorCode::ContainerNotFound.into())
    }

    /// Lets changes of one blob happen one after the other, as far as this process makes them.
    pub(crate) async fn turn(&self, table: TableId, blob: &str) -> MutexGuard<'_, ()> {
        let mut hash = table.0 ^ 0xcbf2_9ce4_8422_2325;
        for byte in blob.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.turns[(hash >> 32) as usize % TURN_COUNT].lock().await
    }

    /// After a commit that failed: if nobody knows its outcome, sweeps must not forget what it may yet name.
    pub(crate) fn keep_unresolved(
        &self,
        error: &ServiceError,
        guards: impl IntoIterator<Item = PendingContent>,
    ) {
        if error.code == ErrorCode::OperationTimedOut {
            self.unresolved.keep(guards, self.clock.monotonic());
        }
    }

    /// Lets sweeps at what was kept for commits that cannot happen any more.
    pub(crate) fn release_unresolved(&self) {
        // A store of one process is poisoned after such a commit, and only opening it again tells what happened.
        if self.catalogue.is_shared() {
            self.unresolved.release(self.clock.monotonic());
        }
    }

    /// Forgets contents that no row names any more. What cannot be forgotten now is left to the sweep.
    pub(crate) async fn forget(&self, contents: &[ContentRef]) {
        if contents.is_empty() || self.catalogue.is_shared() {
            return;
        }
        if let Err(error) = self.contents.forget(contents).await {
            log::warn!("cannot forget contents that are no longer used: {error}");
        }
    }
}

pub(crate) fn from_content(error: ContentError) -> ServiceError {
    match error {
        ContentError::Busy => ErrorCode::ServerBusy.into(),
        // As for rows: it may succeed later, and nothing has changed.
        error @ ContentError::NoRoom(_) => ServiceError::with_source(ErrorCode::ServerBusy, error),
        error => ServiceError::with_source(ErrorCode::InternalError, error),
    }
}

/// For a commit that failed, but not because of its expectations.
pub(crate) fn from_commit(error: CommitError) -> ServiceError {
    match error {
        CommitError::TableGone => ErrorCode::ContainerNotFound.into(),
        error => catalogue::from_commit(error),
    }
}

pub(crate) fn damaged_row() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a row of a blob does not decode")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_answered_like_one_that_is_too_busy() {
        let check = |error: ContentError, code: ErrorCode| assert_eq!(from_content(error).code, code);
        check(ContentError::NoRoom("no space left on device".to_owned()), ErrorCode::ServerBusy);
        check(ContentError::Busy, ErrorCode::ServerBusy);
        check(ContentError::Unavailable("a sync failed".to_owned()), ErrorCode::InternalError);
        check(ContentError::Damaged("a block".to_owned()), ErrorCode::InternalError);
    }
}
