//! Explains commits whose answer was lost.
//!
//! A session that ended, or was given up at a deadline, may have committed its last statement, may still be doing so,
//! or may never have received it. Two steps tell which. First the end of that session is waited for: it holds a lock
//! for as long as the server runs it, so whoever gets the lock knows that nothing of it is still to come (a new
//! leader has never heard of it, and nothing that it did not replicate will come back). Then the rows are read: a row
//! that carries the commit's stamp proves that all of it happened, and a row that is older than the commit proves
//! that none of it did.
//!
//! Promises: an answer from here is true. Where the rows prove nothing, because others changed them since, or when the
//! deadline passes first, the outcome stays unknown.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::{Expect, TableId, Version};
use tokio_postgres::Row;

use crate::failure::Failure;
use crate::key_bytes::KeyBytes;
use crate::places::SHARED;
use crate::pool::SessionLease;
use crate::session::Params;
use crate::{FrontEnd, version_of};

/// A row that the commit would have changed.
pub(crate) struct Touched<'a> {
    pub(crate) table: TableId,
    /// Where the commit was sent to.
    pub(crate) place: i64,
    pub(crate) key: &'a KeyBytes,
    pub(crate) expect: Expect,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Truth {
    Happened(Version),
    /// And never will.
    DidNot,
    Unknown,
}

/// What one row says about a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ReadBack {
    version: u64,
    stamp: i64,
}

impl FrontEnd {
    /// `sent_after` is a version that was given before the commit was sent.
    pub(crate) async fn explain(
        &self,
        session_key: i64,
        stamp: i64,
        sent_after: u64,
        touched: &[Touched<'_>],
    ) -> Truth {
        let read = async {
            let started = self.clock.monotonic();
            loop {
                match self.read_back(session_key, stamp, sent_after, touched).await {
                    Err(failure) if self.repeats_read(started, &failure).await => {}
                    outcome => return outcome,
                }
            }
        };
        let truth = tokio::time::timeout(self.deadline, read).await;
        let truth = match truth {
            Ok(Ok(truth)) => truth,
            Ok(Err(failure)) => {
                log::warn!("the outcome of a commit cannot be read back: {failure:?}");
                Truth::Unknown
            }
            Err(_) => {
                log::warn!("the outcome of a commit is unknown: the database did not say in time");
                Truth::Unknown
            }
        };
        log::info!("a commit lost its connection; read back: {truth:?}");
        truth
    }

    async fn read_back(
        &self,
        session_key: i64,
        stamp: i64,
        sent_after: u64,
        touched: &[Touched<'_>],
    ) -> Result<Truth, Failure> {
        let lease = self.wait_for_end(session_key).await?;
        let truth = self.read_rows_back(&lease, stamp, sent_after, touched).await?;
        // A leader that crashed forgets for whom it waited, and a server that was replaced never knew.
        self.prove(lease).await?;
        Ok(truth)
    }

    async fn read_rows_back(
        &self,
        lease: &SessionLease,
        stamp: i64,
        sent_after: u64,
        touched: &[Touched<'_>],
    ) -> Result<Truth, Failure> {
        // The commit is over. So if it happened, its row is where the table is now: it was written there, or taken there with
        // its stamp when the table moved. A row that was left behind elsewhere proves nothing.
        let tables: BTreeSet<i64> = touched.iter().map(|row| row.table.0 as i64).collect();
        let tables: Vec<i64> = tables.into_iter().collect();
        let fences = self.fences_of(&lease.session, &tables).await?;
        let mut proof = Truth::Unknown;
        for row in touched {
            let fence = fences.iter().find(|fence| fence.table == row.table);
            // A relation goes with its table. The shared one stays, but who knows whether the table was there to the end.
            let place = fence.map_or(SHARED, |fence| fence.place);
            let found = self.read_row_back(lease, row, place).await?;
            match judge(row, found, stamp, sent_after) {
                Truth::Happened(version) => return Ok(Truth::Happened(version)),
                Truth::DidNot if fence.is_some() || row.place == SHARED => proof = Truth::DidNot,
                Truth::DidNot | Truth::Unknown => {}
            }
        }
        Ok(proof)
    }

    async fn read_row_back(
        &self,
        lease: &SessionLease,
        row: &Touched<'_>,
        place: i64,
    ) -> Result<Option<ReadBack>, Failure> {
        let session = &lease.session;
        let at_place = session.at(if row.key.is_long() { SHARED } else { place }, self.deadline).await?;
        let statements = if row.key.is_long() { &session.statements.long } else { &at_place.row };
        let key: Params<'_> = &[&(row.table.0 as i64), &row.key.pk, &row.key.rk];
        let found = session.query(&statements.read_back, key, self.deadline).await?;
        Ok(found.first().map(found_in))
    }

    /// Returns when the server no longer runs that session. What became of it is to be read through the session that is
    /// returned, because only its server is known not to run the other one.
    pub(crate) async fn wait_for_end(&self, session_key: i64) -> Result<SessionLease, Failure> {
        let mut pause = Duration::from_millis(5);
        loop {
            let lease = self.reads.lease().await?;
            // Asks again and again and does not wait in the server, because others share this session.
            let sql = &lease.session.statements.is_over;
            let rows = lease.session.query(sql, &[&session_key], self.deadline).await;
            match rows {
                Ok(rows) if rows.first().is_some_and(|row| row.get(0)) => return Ok(lease),
                Ok(_) | Err(Failure::Lost { .. }) => {}
                Err(other) => return Err(other),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }
}

fn found_in(row: &Row) -> ReadBack {
    ReadBack { version: row.get::<_, i64>(0) as u64, stamp: row.get(1) }
}

fn judge(row: &Touched<'_>, found: Option<ReadBack>, stamp: i64, sent_after: u64) -> Truth {
    match found {
        Some(found) if found.stamp == stamp => {
            version_of(found.version).map_or(Truth::Unknown, Truth::Happened)
        }
        // Versions only grow, so this row was last written before the commit was sent. Had the commit happened, the
        // row would be newer, or gone.
        Some(found) if found.version <= sent_after => Truth::DidNot,
        Some(found) => match row.expect {
            // The row that it wanted to change is still there.
            Expect::Exactly(version) if version.ticks() == found.version => Truth::DidNot,
            _ => Truth::Unknown,
        },
        // A delete may have been ours, and a put may have been deleted since.
        None => Truth::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_row_proves_is_said() {
        let key = KeyBytes { pk: Vec::new(), rk: Vec::new() };
        let version = |ticks| Version::new(ticks).unwrap();
        let check = |expect, found: Option<(u64, i64)>, expected| {
            let row = Touched { table: TableId(16), place: SHARED, key: &key, expect };
            let found = found.map(|(version, stamp)| ReadBack { version, stamp });
            assert_eq!(judge(&row, found, 7, 100), expected, "{expect:?} {found:?}");
        };
        check(Expect::Any, Some((150, 7)), Truth::Happened(version(150)));
        check(Expect::Any, Some((150, 8)), Truth::Unknown);
        check(Expect::Any, Some((100, 8)), Truth::DidNot);
        check(Expect::Any, None, Truth::Unknown);
        check(Expect::Exactly(version(120)), Some((120, 8)), Truth::DidNot);
        check(Expect::Exactly(version(120)), Some((130, 8)), Truth::Unknown);
    }
}
