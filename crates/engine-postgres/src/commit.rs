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

use crate::failure::Failure;
use crate::key_bytes::KeyBytes;
use crate::outcome::{Touched, Truth};
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
    lives: bool,
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
            // A row that must be absent has nothing to delete.
            let is_look =
                matches!((change, expect), (PlainEffect::Nothing, _) | (PlainEffect::Delete, Expect::Absent));
            if !is_look {
                let stamp = new_stamp();
                let sent_after = self.last_version();
                match self.send_row(table, key, expect, change, stamp).await {
                    Ok(Some(version)) => return Ok(self.note(version)),
                    Ok(None) => {}
                    Err(Failure::Rejected { retries: true, .. }) => continue,
                    Err(Failure::Lost { cause, session_key }) => {
                        let touched = [Touched { table, key, expect }];
                        match self.explain(session_key, stamp, sent_after, &touched).await {
                            Truth::Happened(version) => return Ok(self.note(version)),
                            Truth::DidNot => continue,
                            Truth::Unknown => return Err(CommitError::Unknown(cause)),
                        }
                    }
                    Err(failure) => return Err(failure.into_commit_error()),
                }
            }
            let look = match self.look(table, key).await {
                Ok(look) => look,
                // Nothing was written here, so it may be asked again.
                Err(Failure::Lost { .. } | Failure::Unproven | Failure::Rejected { retries: true, .. }) => {
                    continue;
                }
                Err(failure) => return Err(failure.into_commit_error()),
            };
            if !look.lives {
                return Err(CommitError::TableGone);
            }
            if !holds(expect, look.found) {
                return Err(CommitError::Precondition { op: 0, found: look.found });
            }
            let nothing_to_do =
                is_look || (matches!(change, PlainEffect::Delete) && look.found == Found::Absent);
            if nothing_to_do {
                return Ok(self.note(look.version));
            }
            // The row was not as expected when the statement came, and is now.
        }
        Err(CommitError::Busy)
    }

    /// `None`: the table is gone, or the row was not as expected.
    async fn send_row(
        &self,
        table: TableId,
        key: &KeyBytes,
        expect: Expect,
        change: &PlainEffect,
        stamp: i64,
    ) -> Result<Option<Version>, Failure> {
        let lease = self.writes.lease().await?;
        let statements = lease.session.statements.of_row(key.is_long());
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

    async fn look(&self, table: TableId, key: &KeyBytes) -> Result<Look, Failure> {
        let lease = self.writes.lease().await?;
        let statement = &lease.session.statements.of_row(key.is_long()).look;
        let (id, now) = (table.0 as i64, self.now());
        let params: Params<'_> = &[&id, &key.pk, &key.rk, &now];
        let rows = lease.session.query(statement, params, self.deadline).await?;
        // It wrote nothing, so no standby has confirmed anything yet.
        self.prove(lease).await?;
        let read = |row: &Row| {
            let found = row.get::<_, Option<i64>>(1).and_then(|ticks| version_of(ticks as u64));
            Some(Look {
                lives: row.get(0),
                found: found.map_or(Found::Absent, Found::Present),
                version: version_of(row.get::<_, i64>(2) as u64)?,
            })
        };
        let no_row =
            || Failure::Rejected { cause: "the database returned no row".to_owned(), retries: false };
        rows.first().and_then(read).ok_or_else(no_row)
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
