//! A few sessions, shared.
//!
//! Promises: at most `session_count_max` sessions and at most `depth_max` statements under way in each; whoever comes
//! next waits, and of those who wait there are at most `wait_count_max`. Few callers use few sessions, because a
//! session that is free is taken before another one is opened. A session that has ended is replaced when somebody
//! needs it.
//!
//! Our own, in place of a crate: reads share a session (pipelined), scans need one for themselves, and writes are in
//! between; and a session must be given up, not returned, when a statement is stuck. The pools we know hand out whole
//! sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::connect::Connector;
use crate::failure::Failure;
use crate::session::DatabaseSession;

/// Between two attempts to find a leader, of each session.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Pool {
    connector: Arc<Connector>,
    slots: Vec<SessionSlot>,
    depth_max: usize,
    /// One permit for every statement that may be under way.
    room: Arc<Semaphore>,
    waiting_count: AtomicUsize,
    wait_count_max: usize,
    wait_time_max: Duration,
}

#[derive(Default)]
struct SessionSlot {
    session: Mutex<Option<Arc<DatabaseSession>>>,
    busy_count: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
pub struct PoolSize {
    pub session_count_max: usize,
    /// Statements under way in one session: 1 means that nobody shares it.
    pub depth_max: usize,
    pub wait_count_max: usize,
}

/// A session in use, until it is dropped.
pub(crate) struct SessionLease {
    pub(crate) session: Arc<DatabaseSession>,
    _place: SlotUse,
    _permit: OwnedSemaphorePermit,
}

struct SlotUse {
    pool: Arc<Pool>,
    slot: usize,
}

impl Drop for SlotUse {
    fn drop(&mut self) {
        self.pool.slots[self.slot].busy_count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>, size: PoolSize, wait_time_max: Duration) -> Arc<Pool> {
        let count = size.session_count_max.max(1);
        Arc::new(Pool {
            connector,
            slots: (0..count).map(|_| SessionSlot::default()).collect(),
            depth_max: size.depth_max.max(1),
            room: Arc::new(Semaphore::new(count * size.depth_max.max(1))),
            waiting_count: AtomicUsize::new(0),
            wait_count_max: size.wait_count_max,
            wait_time_max,
        })
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting_count.load(Ordering::Relaxed)
    }

    /// Waits for room, and for a leader, but not for ever.
    pub(crate) async fn lease(self: &Arc<Pool>) -> Result<SessionLease, Failure> {
        let leased = tokio::time::timeout(self.wait_time_max, self.lease_in_turn()).await;
        let too_late = || if self.connector.has_leader() { Failure::Busy } else { Failure::NoConnection };
        leased.unwrap_or_else(|_| Err(too_late()))
    }

    async fn lease_in_turn(self: &Arc<Pool>) -> Result<SessionLease, Failure> {
        let permit = match self.room.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait_for_room().await?,
        };
        let place = self.least_busy();
        let session = self.session_of(&self.slots[place.slot]).await;
        Ok(SessionLease { session, _place: place, _permit: permit })
    }

    async fn wait_for_room(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let _waiting = CountedWaiter::new(&self.waiting_count, self.wait_count_max).ok_or(Failure::Busy)?;
        self.room.clone().acquire_owned().await.map_err(|_| Failure::Busy)
    }

    /// The first of those with the fewest statements under way, with one more.
    fn least_busy(self: &Arc<Pool>) -> SlotUse {
        loop {
            let mut least = (usize::MAX, 0);
            for (index, slot) in self.slots.iter().enumerate() {
                let busy_count = slot.busy_count.load(Ordering::Acquire);
                if busy_count < least.0 {
                    least = (busy_count, index);
                }
                if busy_count == 0 {
                    break;
                }
            }
            let (count, slot) = least;
            if count >= self.depth_max {
                // Our permit says that there is room: a slot that was passed has become free, and another was taken.
                std::hint::spin_loop();
                continue;
            }
            let taken = &self.slots[slot].busy_count;
            if taken.compare_exchange(count, count + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return SlotUse { pool: self.clone(), slot };
            }
        }
    }

    /// Waits until somebody leads.
    async fn session_of(&self, slot: &SessionSlot) -> Arc<DatabaseSession> {
        let mut held = slot.session.lock().await;
        if let Some(session) = held.as_ref().filter(|session| !session.is_over()) {
            return session.clone();
        }
        loop {
            // Why there is none is in the log already.
            if let Ok(session) = self.connector.session().await {
                let session = Arc::new(session);
                *held = Some(session.clone());
                return session;
            }
            // Whoever waits here has a deadline. Those behind it try themselves when it has gone.
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }
}

/// Counts one who waits, until it is dropped; `None` if too many do.
struct CountedWaiter<'a>(&'a AtomicUsize);

impl<'a> CountedWaiter<'a> {
    fn new(count: &'a AtomicUsize, count_max: usize) -> Option<CountedWaiter<'a>> {
        let waiter = CountedWaiter(count);
        (count.fetch_add(1, Ordering::AcqRel) < count_max).then_some(waiter)
    }
}

impl Drop for CountedWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
