//! Commits of one row: one bare statement each.
//!
//! Promises: what was expected is decided where the row is, by the statement that writes it, so of racing writers one
//! wins. A statement that found nothing to do is followed by a look at the row, which tells why. A statement is sent
//! again only if it certainly did not happen.

use std::time::Duration;

use bytes::Bytes;
use engine::decide::holds;
use engine::{CommitError, Expect, Found, TableId, Version};
use tokio_postgres::Row;

use crate::batch::{RowOp, RowsAnswer};
use crate::failure::Failure;
use crate::key_bytes::KeyBytes;
use crate::outcome::{Touched, Truth};
use crate::places::SHARED;
use crate::session::Params;
use crate::{FrontEnd, version_of};

/// How often a commit starts anew because others changed its rows meanwhile, before it is answered with `Busy`.
pub(crate) const ATTEMPT_COUNT_MAX: u32 = 100;
const PAUSE_US_MAX: u64 = 20_000;

/// What becomes of the row, when nothing is left to merge.
#[derive(Clone, Debug)]
pub(crate) enum PlainEffect {
    Put(Bytes),
    Delete,
    Nothing,
}

/// A row as somebody looked at it.
struct Look {
    place: i64,
    is_copied: bool,
    is_frozen: bool,
    found: Found,
    /// Fresh.
    version: Version,
}

impl FrontEnd {
    pub(crate) async fn commit_row(
        &self,
        table: TableId,
        key: &KeyBytes,
        expect: Expect,
        change: &PlainEffect,
    ) -> Result<Version, CommitError> {
        for attempt in 0..ATTEMPT_COUNT_MAX {
            pause(attempt).await;
            let place = if key.is_long() { SHARED } else { self.places.of(table) };
            // A row that must be absent has nothing to delete.
            let is_look =
                matches!((change, expect), (PlainEffect::Nothing, _) | (PlainEffect::Delete, Expect::Absent));
            if !is_look && !key.is_long() && self.places.is_copied(table, self.clock.monotonic()) {
                let op = RowOp { table, key: key.clone(), expect, change: change.clone() };
                match self.send_rows(&[op]).await? {
                    RowsAnswer::Done(version) => return Ok(self.note(version)),
                    RowsAnswer::Failed { op, found } => return Err(CommitError::Precondition { op, found }),
                    RowsAnswer::TableGone => return Err(CommitError::TableGone),
                    RowsAnswer::Again | RowsAnswer::Elsewhere => continue,
                }
            }
            if !is_look {
                let stamp = new_stamp();
                let sent_after = self.last_version();
                match self.send_row((table, place), key, expect, change, stamp).await {
                    Ok(Some(version)) => return Ok(self.note(version)),
                    Ok(None) => {}
                    Err(Failure::Rejected { retries: true, .. }) => {
                        self.places.forget(table);
                        continue;
                    }
                    Err(Failure::Lost { cause, session_key }) => {
                        let touched = [Touched { table, place, key, expect }];
                        match self.explain(session_key, stamp, sent_after, &touched).await {
                            Truth::Happened(version) => return Ok(self.note(version)),
                            Truth::DidNot => continue,
                            Truth::Unknown => return Err(CommitError::Unknown(cause)),
                        }
                    }
                    Err(failure) => return Err(failure.into_commit_error()),
                }
            }
            let look = match self.look((table, place), key).await {
                Ok(Some(look)) => look,
                Ok(None) => return Err(CommitError::TableGone),
                // Nothing was written here, so it may be asked again.
                Err(Failure::Lost { .. } | Failure::Unproven | Failure::Rejected { retries: true, .. }) => {
                    self.places.forget(table);
                    continue;
                }
                Err(failure) => return Err(failure.into_commit_error()),
            };
            let moves_with_table = !key.is_long();
            if moves_with_table && look.place != place {
                self.places.learn(table, look.place);
                continue;
            }
            if !holds(expect, look.found) {
                return Err(CommitError::Precondition { op: 0, found: look.found });
            }
            let nothing_to_do =
                is_look || (matches!(change, PlainEffect::Delete) && look.found == Found::Absent);
            if nothing_to_do {
                return Ok(self.note(look.version));
            }
            // The row was not as expected when the statement came, and is now; or the table moves.
            if moves_with_table && look.is_frozen {
                self.wait_for_moves(&[table]).await?;
            } else if moves_with_table && look.is_copied {
                self.places.learn_copied(table, self.clock.monotonic());
            }
        }
        Err(CommitError::Busy)
    }

    /// `None`: the table is gone, is elsewhere or moves, or the row was not as expected.
    async fn send_row(
        &self,
        (table, place): (TableId, i64),
        key: &KeyBytes,
        expect: Expect,
        change: &PlainEffect,
        stamp: i64,
    ) -> Result<Option<Version>, Failure> {
        let lease = self.writes.lease().await?;
        let at_place = lease.session.at(place, self.deadline).await?;
        let statements = if key.is_long() { &lease.session.statements.long } else { &at_place.row };
        let (table, now) = (table.0 as i64, self.now());
        let expected = match expect {
            Expect::Exactly(version) => Some(version.ticks() as i64),
            Expect::Any | Expect::Absent | Expect::Present => None,
        };
        let rows = match change {
            PlainEffect::Put(body) => {
                let body = &body[..];
                match expect {
                    Expect::Absent => {
                        let params: Params<'_> = &[&table, &now, &stamp, &key.pk, &key.rk, &body];
                        lease.session.query(&statements.insert, params, self.deadline).await?
                    }
                    Expect::Any => {
                        let params: Params<'_> = &[&table, &now, &stamp, &key.pk, &key.rk, &body];
                        lease.session.query(&statements.upsert, params, self.deadline).await?
                    }
                    Expect::Present | Expect::Exactly(_) => {
                        let params: Params<'_> = &[&table, &now, &stamp, &key.pk, &key.rk, &body, &expected];
                        lease.session.query(&statements.update, params, self.deadline).await?
                    }
                }
            }
            PlainEffect::Delete | PlainEffect::Nothing => {
                let params: Params<'_> = &[&table, &key.pk, &key.rk, &now, &expected];
                lease.session.query(&statements.delete, params, self.deadline).await?
            }
        };
        Ok(rows.first().and_then(first_version))
    }

    /// `None`: the table is gone.
    async fn look(&self, (table, place): (TableId, i64), key: &KeyBytes) -> Result<Option<Look>, Failure> {
        let lease = self.writes.lease().await?;
        let at_place = lease.session.at(place, self.deadline).await?;
        let statements = if key.is_long() { &lease.session.statements.long } else { &at_place.row };
        let (id, now) = (table.0 as i64, self.now());
        let params: Params<'_> = &[&id, &key.pk, &key.rk, &now];
        let rows = lease.session.query(&statements.look, params, self.deadline).await?;
        // It wrote nothing, so no standby has confirmed anything yet.
        self.prove(lease).await?;
        let read = |row: &Row| {
            let found = row.get::<_, Option<i64>>(3).and_then(|ticks| version_of(ticks as u64));
            Some(Look {
                place: row.get(0),
                is_copied: row.get(1),
                is_frozen: row.get(2),
                found: found.map_or(Found::Absent, Found::Present),
                version: version_of(row.get::<_, i64>(4) as u64)?,
            })
        };
        let no_version =
            || Failure::Rejected { cause: "the database gave no version".to_owned(), retries: false };
        rows.first().map(|row| read(row).ok_or_else(no_version)).transpose()
    }
}

fn first_version(row: &Row) -> Option<Version> {
    version_of(row.get::<_, i64>(0) as u64)
}

/// Two stamps are the same once in 2^64 times.
pub(crate) fn new_stamp() -> i64 {
    engine::env::random::unguessable() as i64
}

/// Lets others pass, the longer the more often they got in the way.
pub(crate) async fn pause(attempt: u32) {
    if attempt > 0 {
        let longest = (100 << attempt.min(20)).min(PAUSE_US_MAX);
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..longest))).await;
    }
}
