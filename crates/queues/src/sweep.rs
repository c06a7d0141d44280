//! Expired messages: how they are left out of the count, and how they are removed behind everybody's back.
//!
//! Promises: a message that has expired is counted by nobody, and is removed with its expiry row and its share of the
//! count in one commit, or not at all. Takers do not wait for the sweep.

use std::time::Duration;

use catalogue::{from_commit, from_read};
use engine::{
    Budget, COMMIT_OP_COUNT_MAX, Commit, CommitError, Effect, Expect, Flow, Key, Op, Share, Sink, TableId,
    Version,
};
use protocol::ServiceError;
use protocol::queue::MessageId;

use crate::messages::counting;
use crate::rows::{self, MessageKey, PARTITION, count_range, expired_range};
use crate::service::{QueueService, damaged_row};

/// Two ops a message, and one for the count.
const SWEPT_COUNT_MAX: usize = (COMMIT_OP_COUNT_MAX - 1) / 2;
/// Commits for one queue in one round, so that others have their turn.
const COMMIT_COUNT_MAX: usize = 200;
/// After each commit the sweep rests for so many times as long as the commit took.
const PAUSE_FACTOR: u32 = 4;
const PAUSE_TIME_MAX: Duration = Duration::from_millis(50);
/// How much of what has expired and is not swept yet is left out of the count. Beyond it, the count is too high.
const COUNT_BUDGET: Budget =
    Budget { rows_examined_max: 20_000, time_max: Duration::from_millis(50), share: Share::COMMON };

impl QueueService {
    /// The number of messages that have not expired.
    pub(crate) async fn message_count(&self, queue: TableId) -> Result<u64, ServiceError> {
        let now = self.live().await?.time.now();
        let ranges = [count_range(), expired_range("x", now)];
        let mut budget = COUNT_BUDGET;
        loop {
            let mut sink = MessageCounter::default();
            let next = self.engine.scan(queue, &ranges, budget, &mut sink).await.map_err(from_read)?;
            if sink.is_damaged {
                return Err(damaged_row());
            }
            // On a busy machine the time may be over before all slots are read. A part of them is no count.
            if next.is_some_and(|next| count_range().contains(&next.partition, &next.row)) {
                budget = Budget { time_max: budget.time_max.saturating_mul(2), ..COUNT_BUDGET };
                continue;
            }
            return Ok(u64::try_from(sink.count).unwrap_or_default());
        }
    }

    /// Removes expired messages from the queues that this process uses, or from all of them. Returns whether there may be
    /// more to do.
    pub async fn sweep(&self, whole: bool) -> Result<bool, ServiceError> {
        let queues = match whole {
            true => self.catalogue.all_ids().await?,
            false => self.live().await?.fronts.queues(),
        };
        let mut has_more = false;
        for queue in queues {
            // One queue that cannot be swept keeps no other from it.
            match self.sweep_queue(queue).await {
                Ok(more) => has_more |= more,
                Err(error) => log::warn!("expired messages of queue {} stay for now: {error}", queue.0),
            }
        }
        Ok(has_more)
    }

    async fn sweep_queue(&self, queue: TableId) -> Result<bool, ServiceError> {
        let time = &self.live().await?.time;
        // Where this round has swept everything. Without it, each scan would walk again over what the last one removed.
        let mut swept_until: Box<str> = "x".into();
        for _ in 0..COMMIT_COUNT_MAX {
            let started = time.monotonic();
            let mut sink = Expired { now: time.now(), rows: Vec::new(), is_damaged: false };
            let budget = Budget {
                rows_examined_max: SWEPT_COUNT_MAX as u64 + 1,
                time_max: Duration::MAX,
                share: Share::COMMON,
            };
            let range = [expired_range(&swept_until, sink.now)];
            self.engine.scan(queue, &range, budget, &mut sink).await.map_err(from_read)?;
            if sink.is_damaged {
                return Err(damaged_row());
            }
            let Some(first) = sink.rows.first() else { return Ok(false) };
            let mut ops = vec![counting(first.id, -(sink.rows.len() as i64))];
            ops.extend(sink.rows.iter().flat_map(ExpiryRow::removal));
            let last = sink.rows.last().map(|row| row.row.clone());
            match self.engine.commit(Commit { table: queue, partition: PARTITION.into(), ops }).await {
                Ok(_) => swept_until = last.unwrap_or(swept_until),
                // One of them was deleted or moved meanwhile: look again.
                Err(CommitError::Precondition { .. }) => {}
                Err(CommitError::TableGone) => return Ok(false),
                Err(error) => return Err(from_commit(error)),
            }
            // Slow enough to leave the engine to those who wait for an answer. Without a runtime, as in a simulation, nobody
            // does.
            let took = time.monotonic().saturating_sub(started);
            if tokio::runtime::Handle::try_current().is_ok() {
                tokio::time::sleep((took * PAUSE_FACTOR).min(PAUSE_TIME_MAX)).await;
            }
        }
        Ok(true)
    }
}

#[derive(Default)]
struct MessageCounter {
    count: i64,
    is_damaged: bool,
}

impl Sink for MessageCounter {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        if key.row.starts_with('x') {
            self.count -= 1;
            return Flow::Continue;
        }
        match rows::read_count(value) {
            Some(count) => {
                self.count = self.count.saturating_add(count);
                Flow::Continue
            }
            None => {
                self.is_damaged = true;
                Flow::Stop
            }
        }
    }
}

/// The row that says when a message expired, and where the message is.
struct ExpiryRow {
    row: Box<str>,
    version: Version,
    id: MessageId,
    visible: u64,
}

impl ExpiryRow {
    fn removal(&self) -> [Op; 2] {
        let message = MessageKey { visible: self.visible, id: self.id };
        [
            Op { row: self.row.clone(), expect: Expect::Exactly(self.version), effect: Effect::Delete },
            Op { row: message.row(), expect: Expect::Present, effect: Effect::Delete },
        ]
    }
}

struct Expired {
    now: u64,
    rows: Vec<ExpiryRow>,
    is_damaged: bool,
}

impl Sink for Expired {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.rows.len() == SWEPT_COUNT_MAX {
            return Flow::Stop;
        }
        let Some(((_, id), visible)) = rows::read_expiry_row(key.row).zip(rows::read_expiry(value)) else {
            self.is_damaged = true;
            return Flow::Stop;
        };
        self.rows.push(ExpiryRow { row: key.row.into(), version, id, visible });
        Flow::Continue
    }
}
