//! Where the rows of a table are: in the relation that small tables share, or in one of its own.
//!
//! A front end believes what it saw last, and a table that it knows nothing about is in the shared relation, place 0.
//! Every statement checks the belief where the rows are (`statements.rs`), so a wrong one costs a round trip and never
//! a wrong answer. A table moves once, from place 0 to one of its own; numbers of tables and places are never reused.
//!
//! While a table is copied, its writers use the one function that notes what they change (`schema.sql`); for a moment
//! at the end it is frozen, and they wait.
//!
//! Promises: what is remembered is bounded. Writers wait for a frozen table, but not beyond their deadline, and not for
//! a mover that is gone. Leaves to others: who moves tables (`mover.rs`).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use engine::{CommitError, TableId};
use tokio::sync::Mutex;

use crate::FrontEnd;
use crate::failure::Failure;
use crate::session::DatabaseSession;

/// The place of all tables without a relation of their own.
pub(crate) const SHARED: i64 = 0;
/// Tables whose place is remembered. When there are more, all are forgotten, and learned again as they are used.
const KNOWN_COUNT_MAX: usize = 10_000;
/// Then the usual statement is tried again.
const BELIEVED_COPIED_FOR: Duration = Duration::from_millis(500);
/// A writer that waits for longer asks whether the mover is still there.
const MOVER_SILENCE_MAX: Duration = Duration::from_millis(500);
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// One row of `fences`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fence {
    pub(crate) table: TableId,
    pub(crate) place: i64,
    pub(crate) is_copied: bool,
    pub(crate) is_frozen: bool,
}

#[derive(Default)]
pub(crate) struct Places {
    /// Only tables with a relation of their own.
    known: RwLock<HashMap<TableId, i64>>,
    /// Tables that are copied, and until when that is believed. The function for them is right for all tables, and
    /// slower.
    copied: RwLock<HashMap<TableId, Duration>>,
    /// One asks on behalf of all that wait; when it was last seen that these tables are not frozen.
    settled: Mutex<HashMap<TableId, Duration>>,
}

impl Places {
    pub(crate) fn of(&self, table: TableId) -> i64 {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&table).copied().unwrap_or(SHARED)
    }

    /// What a statement has just seen. A mover's commit that a crash undoes is unlearned, too.
    pub(crate) fn learn(&self, table: TableId, place: i64) {
        if self.of(table) == place {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if place == SHARED {
            known.remove(&table);
            return;
        }
        if known.len() >= KNOWN_COUNT_MAX {
            known.clear();
        }
        known.insert(table, place);
    }

    /// Whether writers have to note what they change.
    pub(crate) fn is_copied(&self, table: TableId, now: Duration) -> bool {
        let copied = self.copied.read().unwrap_or_else(PoisonError::into_inner);
        copied.get(&table).is_some_and(|until| now < *until)
    }

    pub(crate) fn learn_copied(&self, table: TableId, now: Duration) {
        let mut copied = self.copied.write().unwrap_or_else(PoisonError::into_inner);
        if copied.len() >= KNOWN_COUNT_MAX {
            copied.clear();
        }
        copied.insert(table, now + BELIEVED_COPIED_FOR);
    }

    /// After an error: perhaps the relation went with its table.
    pub(crate) fn forget(&self, table: TableId) {
        if self.of(table) != SHARED {
            self.known.write().unwrap_or_else(PoisonError::into_inner).remove(&table);
        }
    }
}

impl FrontEnd {
    /// Tables that are gone are left out.
    pub(crate) async fn fences_of(
        &self,
        session: &DatabaseSession,
        tables: &[i64],
    ) -> Result<Vec<Fence>, Failure> {
        let rows = session.query(&session.statements.where_are, &[&tables], self.deadline).await?;
        let read = |row: &tokio_postgres::Row| Fence {
            table: TableId(row.get::<_, i64>(0) as u64),
            place: row.get(1),
            is_copied: row.get(2),
            is_frozen: row.get(3),
        };
        Ok(rows.iter().map(read).collect())
    }

    /// Returns when none of the tables is frozen, and remembers where they are.
    pub(crate) async fn wait_for_moves(&self, tables: &[TableId]) -> Result<(), CommitError> {
        let waited = tokio::time::timeout(self.deadline, self.settle(tables)).await;
        waited.unwrap_or(Err(CommitError::Busy))
    }

    async fn settle(&self, tables: &[TableId]) -> Result<(), CommitError> {
        let ids: Vec<i64> = tables.iter().map(|table| table.0 as i64).collect();
        let started = self.clock.monotonic();
        let mut settled = self.places.settled.lock().await;
        if tables.iter().all(|table| settled.get(table).is_some_and(|at| *at > started)) {
            return Ok(());
        }
        let mut pause = PAUSE_MIN;
        loop {
            let asked = self.clock.monotonic();
            // Not behind writers that wait for the disk.
            let ask = async {
                let lease = self.reads.lease().await?;
                self.fences_of(&lease.session, &ids).await
            };
            match ask.await {
                Ok(fences) => {
                    for fence in &fences {
                        self.places.learn(fence.table, fence.place);
                        if fence.is_copied {
                            self.places.learn_copied(fence.table, asked);
                        }
                    }
                    if !fences.iter().any(|fence| fence.is_frozen) {
                        if settled.len() >= KNOWN_COUNT_MAX {
                            settled.clear();
                        }
                        settled.extend(tables.iter().map(|table| (*table, asked)));
                        return Ok(());
                    }
                }
                // Nothing was written, so it may be asked again.
                Err(Failure::Lost { .. } | Failure::Rejected { retries: true, .. }) => {}
                Err(failure) => return Err(failure.into_commit_error()),
            }
            if asked.saturating_sub(started) > MOVER_SILENCE_MAX {
                self.undo_moves().await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Takes the marks of movers back that are gone, if there is no mover.
    async fn undo_moves(&self) {
        let Ok(lease) = self.writes.lease().await else { return };
        let undone = lease.session.query(&lease.session.statements.undo_moves, &[], self.deadline).await;
        if let Err(failure) = undone {
            log::warn!("the marks of a mover that is gone could not be taken back: {failure:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_shared_and_what_is_known_is_bounded() {
        let places = Places::default();
        assert_eq!(places.of(TableId(16)), SHARED);
        places.learn(TableId(16), 7);
        assert_eq!(places.of(TableId(16)), 7);
        places.learn(TableId(16), SHARED);
        assert_eq!(places.of(TableId(16)), SHARED);
        for id in 0..KNOWN_COUNT_MAX as u64 * 2 {
            places.learn(TableId(id + 100), 1);
            assert!(places.known.read().unwrap().len() <= KNOWN_COUNT_MAX);
        }
        places.learn(TableId(16), 7);
        places.forget(TableId(16));
        assert_eq!(places.of(TableId(16)), SHARED);
    }
}
