//! `QueueService`: each operation of the Queue service is one call. The other files hold the operations.

use std::sync::Arc;
use std::time::Duration;

use catalogue::{Catalogue, from_read};
use engine::env::Clock;
use engine::{Budget, Commit, CommitError, Engine, Share, TableId, Version};
use protocol::common::AccountName;
use protocol::queue::{KIND, QueueName};
use protocol::{ErrorCode, ServiceError};
use tokio::sync::OnceCell;

use crate::family::FAMILY;
use crate::finish::Finished;
use crate::front::{Arrival, Fronts, QueueFront};
use crate::time::QueueTime;

/// How often a process looks for messages that others have put where it looked already.
const LOOK_BACK_INTERVAL: Duration = Duration::from_secs(1);
/// The same for a process that is alone with its engine. There should be none; if there is one after all, it is late, not
/// lost.
const LOOK_BACK_INTERVAL_ALONE: Duration = Duration::from_secs(60);
/// A request that finds its queue replaced under its hands tries again, so often at most.
pub(crate) const ATTEMPT_COUNT_MAX: usize = 10;
/// A scan may need several rounds of this much.
const SCAN_TIME_MAX: Duration = Duration::from_secs(30);

pub(crate) fn scan_budget(share: Share) -> Budget {
    Budget { rows_examined_max: u64::MAX, time_max: SCAN_TIME_MAX, share }
}

pub struct QueueService {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) catalogue: Catalogue,
    clock: Arc<dyn Clock>,
    is_alone: bool,
    /// Made with the first operation, because the store's last version must be known.
    live: OnceCell<Live>,
}

pub(crate) struct Live {
    pub(crate) time: Arc<QueueTime>,
    pub(crate) fronts: Fronts,
}

/// A queue as it was found.
pub(crate) struct LiveQueue<'a> {
    pub(crate) id: TableId,
    pub(crate) front: Arc<QueueFront>,
    pub(crate) live: &'a Live,
}

impl QueueService {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> QueueService {
        let catalogue = Catalogue::new(engine.clone(), clock.clone(), &KIND, FAMILY);
        QueueService { engine, catalogue, clock, is_alone: true, live: OnceCell::new() }
    }

    /// The same, for an engine to which other processes write too.
    pub fn sharing_its_engine(self) -> QueueService {
        QueueService { is_alone: false, catalogue: self.catalogue.sharing_its_engine(), ..self }
    }

    /// Whether other processes write to the engine too.
    pub(crate) fn shares_its_engine(&self) -> bool {
        !self.is_alone
    }

    /// What the service keeps beside its data: names, stored policies, service properties.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub(crate) async fn live(&self) -> Result<&Live, ServiceError> {
        let make = async || {
            let last = self.engine.snapshot().await.map_err(from_read)?.last_version();
            let floor = last.map_or(0, |version| version.ticks());
            let time = Arc::new(QueueTime::new(self.clock.clone(), floor));
            let look_back = if self.is_alone { LOOK_BACK_INTERVAL_ALONE } else { LOOK_BACK_INTERVAL };
            Ok(Live { fronts: Fronts::new(time.clone(), look_back), time })
        };
        self.live.get_or_try_init(make).await
    }

    pub(crate) async fn find(
        &self,
        account: &AccountName,
        queue: &QueueName,
    ) -> Result<LiveQueue<'_>, ServiceError> {
        let live = self.live().await?;
        let id = self.catalogue.id_of(account, queue.as_str()).await?.ok_or(ErrorCode::QueueNotFound)?;
        Ok(LiveQueue { id, front: live.fronts.of(id), live })
    }

    /// Commits what gives messages the announced place, and ends the announcement with it, whoever still waits.
    pub(crate) fn commit_announced(
        &self,
        arrival: Arrival,
        commit: Commit,
    ) -> Finished<Result<Version, CommitError>> {
        let engine = self.engine.clone();
        Finished::new(async move {
            let outcome = engine.commit(commit).await;
            arrival.end();
            outcome
        })
    }

    /// Whether a commit failed because the queue was deleted or cleared meanwhile: then it must be looked up again.
    pub(crate) fn is_outdated(
        &self,
        account: &AccountName,
        queue: &QueueName,
        found: &LiveQueue<'_>,
        error: &CommitError,
    ) -> bool {
        let is_gone = *error == CommitError::TableGone;
        if is_gone {
            self.catalogue.forget(account, queue.as_str());
            found.live.fronts.forget(found.id);
        }
        is_gone
    }
}

pub(crate) fn damaged_row() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a row of a queue does not decode")
}
