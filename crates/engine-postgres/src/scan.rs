//! Scans: slices of rows, all of them from one view.
//!
//! A scan that one slice is enough for is one statement, and a statement sees one view. A longer one runs in a
//! read-only transaction with one snapshot, in a session that it has for itself; its `BEGIN` travels with the first
//! slice.
//!
//! Promises: those of `Engine::scan`. Rows are streamed, so memory does not grow with the size of a slice. A slice
//! that is not needed to its end is read and thrown away by the connection; its size is bounded. Long scans take
//! turns by their share (`engine::pace`). At its end it is proven that the server led; if that fails, the scan fails,
//! because the sink has seen its rows already.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use engine::keys::{self, Key, KeyRange, OwnedKey};
use engine::pace::Pace;
use engine::{Budget, Flow, ReadError, Sink, TableId};
use futures_core::Stream;
use tokio_postgres::RowStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::failure::Failure;
use crate::key_bytes::{self, KeyBytes};
use crate::places::SHARED;
use crate::pool::SessionLease;
use crate::session::DatabaseSession;
use crate::{FrontEnd, version_of};

/// A page of a thousand rows, and the one that says where the next page starts.
const FIRST_SLICE_ROW_COUNT: u64 = 1_001;
const LATER_SLICE_ROW_COUNT: u64 = 4_000;
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The rows that one slice needs: as many as the budget has room for, and the one to resume with.
fn wanted(pace: &Pace<'_>, slice_row_count: u64) -> u64 {
    pace.rows_left().saturating_add(1).min(slice_row_count)
}

/// How a slice ended.
enum Slice {
    /// The range has no more rows.
    Exhausted,
    /// There may be more, from here on.
    More(KeyBytes),
    /// The sink or the budget ended the scan at this row.
    Stopped(OwnedKey),
    /// The table is in another place, and nothing was read.
    Elsewhere(i64),
    /// The relation went with its table, and nothing was read.
    NoRelation,
}

impl FrontEnd {
    pub(crate) async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let ranges: Vec<(KeyBytes, KeyBytes)> = ranges.iter().filter_map(key_bytes::bounds).collect();
        let mut pace = Pace::new(&*self.clock, budget, Some(&self.slow_lane));
        let is_one_slice = ranges.len() <= 1 && wanted(&pace, u64::MAX) <= FIRST_SLICE_ROW_COUNT;
        if ranges.is_empty() {
            return Ok(None);
        }
        if is_one_slice {
            let lease = self.reads.lease().await.map_err(Failure::into_read_error)?;
            let believed = self.places.of(table);
            let (session, mut place) = (&lease.session, believed);
            let scanned = scan_in(session, (table, &mut place), ranges, &mut pace, sink, self.deadline).await;
            match place {
                SHARED => self.places.forget(table),
                own => self.places.learn(table, own),
            }
            let resume = scanned?;
            self.prove(lease).await.map_err(Failure::into_read_error)?;
            return Ok(resume);
        }
        let lease = self.scans.lease().await.map_err(Failure::into_read_error)?;
        let transaction = ReadTransaction { lease: Some(lease) };
        let session = transaction.session()?;
        let begin = async {
            let begun = tokio::time::timeout(self.deadline, session.client.batch_execute(BEGIN)).await;
            match begun {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(Failure::of(&error, session.key).into_read_error()),
                Err(_) => Err(ReadError::Storage("the database did not answer in time".to_owned())),
            }
        };
        // In this order: `BEGIN` is sent first, and its answer is not waited for.
        let mut place = SHARED;
        let scan = scan_in(session, (table, &mut place), ranges, &mut pace, sink, self.deadline);
        let scanned = tokio::join!(biased; begin, scan);
        match scanned {
            (Ok(()), Ok(resume)) => {
                if let Some(session) = transaction.end() {
                    self.prove_session(&session).await.map_err(Failure::into_read_error)?;
                }
                Ok(resume)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }
}

/// A session with an open transaction. If it is dropped before its end, the session is given up.
struct ReadTransaction {
    lease: Option<SessionLease>,
}

impl ReadTransaction {
    fn session(&self) -> Result<&DatabaseSession, ReadError> {
        self.lease.as_ref().map(|lease| &*lease.session).ok_or(ReadError::Busy)
    }

    /// Nobody waits for the end of a transaction that only read; the session is free again after it.
    fn end(mut self) -> Option<Arc<DatabaseSession>> {
        let lease = self.lease.take()?;
        let session = lease.session.clone();
        tokio::spawn(async move {
            // The whole of it moves here. Its session alone would leave the place in the pool behind, free before `COMMIT` is
            // sent, and the next scan would begin within this transaction and see an old view.
            let lease = lease;
            if lease.session.client.batch_execute("COMMIT").await.is_err() {
                lease.session.give_up();
            }
        });
        Some(session)
    }
}

impl Drop for ReadTransaction {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            lease.session.give_up();
        }
    }
}

/// How often a scan looks for its table elsewhere: a table moves once, and may be dropped then.
const PLACE_COUNT_MAX: usize = 4;

/// Scans in whatever view the session has. The place is where the search begins, and afterwards where it ended. In a
/// transaction it begins in the shared relation, because only the transaction's own view knows.
pub(crate) async fn scan_in(
    session: &DatabaseSession,
    (table, place): (TableId, &mut i64),
    ranges: Vec<(KeyBytes, KeyBytes)>,
    pace: &mut Pace<'_>,
    sink: &mut dyn Sink,
    deadline: Duration,
) -> Result<Option<OwnedKey>, ReadError> {
    let mut slice_row_count = FIRST_SLICE_ROW_COUNT;
    let mut place_count = 1;
    for (mut start, end) in ranges {
        loop {
            let wanted = wanted(pace, slice_row_count);
            match slice(session, (table, *place), (&start, &end), wanted, pace, sink, deadline).await? {
                Slice::Exhausted => break,
                Slice::More(next) => start = next,
                Slice::Stopped(resume) => return Ok(Some(resume)),
                Slice::Elsewhere(_) | Slice::NoRelation if place_count == PLACE_COUNT_MAX => {
                    return Err(ReadError::Busy);
                }
                Slice::Elsewhere(other) => {
                    (*place, place_count) = (other, place_count + 1);
                    continue;
                }
                // A transaction has ended with this, so the next slice fails; outside of one, the fence tells more.
                Slice::NoRelation => {
                    (*place, place_count) = (SHARED, place_count + 1);
                    continue;
                }
            }
            slice_row_count = LATER_SLICE_ROW_COUNT;
        }
    }
    Ok(None)
}

async fn slice(
    session: &DatabaseSession,
    (table, place): (TableId, i64),
    (start, end): (&KeyBytes, &KeyBytes),
    wanted: u64,
    pace: &mut Pace<'_>,
    sink: &mut dyn Sink,
    deadline: Duration,
) -> Result<Slice, ReadError> {
    let (table, limit) = (table.0 as i64, i64::try_from(wanted).unwrap_or(i64::MAX));
    let params: [&(dyn ToSql + Sync); 6] = [&table, &start.pk, &start.rk, &end.pk, &end.rk, &limit];
    let failed = |error: tokio_postgres::Error| Failure::of(&error, session.key).into_read_error();
    let late = || {
        session.give_up();
        ReadError::Storage("the database did not answer in time".to_owned())
    };
    let has_no_relation =
        |error: &tokio_postgres::Error| place != SHARED && error.code() == Some(&SqlState::UNDEFINED_TABLE);
    let sent = tokio::time::timeout(deadline, async {
        let statements = session.statements.at(&session.client, place).await?;
        session.client.query_raw(&statements.scan, params).await
    });
    let mut rows = match sent.await.map_err(|_| late())? {
        Ok(rows) => pin!(rows),
        Err(error) if has_no_relation(&error) => return Ok(Slice::NoRelation),
        Err(error) => return Err(failed(error)),
    };
    let (mut count, mut last, mut buffer) = (0, None, Vec::new());
    while let Some(row) = tokio::time::timeout(deadline, next_row(rows.as_mut())).await.map_err(|_| late())? {
        let row = match row {
            Ok(row) => row,
            Err(error) if has_no_relation(&error) => return Ok(Slice::NoRelation),
            Err(error) => return Err(failed(error)),
        };
        // A row without a key is about the table.
        let Some(pk) = row.get::<_, Option<&[u8]>>(0) else {
            return Ok(match row.get::<_, i64>(2) {
                here if here == place => Slice::Exhausted,
                elsewhere => Slice::Elsewhere(elsewhere),
            });
        };
        let (rk, value): (&[u8], &[u8]) = (row.get(1), row.get(3));
        let version = version_of(row.get::<_, i64>(2) as u64);
        let has_room = pace.has_room();
        // Under a filter most rows are passed over, and their keys need not be decoded.
        let is_passed_over = has_room && version.is_some_and(|version| sink.passes_over(version, value));
        if !is_passed_over {
            let (partition, name) = keys::decode_columns(&mut buffer, pk, rk)?;
            let key = Key { partition: &partition, row: &name };
            if !has_room {
                return Ok(Slice::Stopped(key.into()));
            }
            let version = version.ok_or_else(|| ReadError::Damaged(format!("{key:?} has version 0")))?;
            if sink.row(key, version, value) == Flow::Stop {
                return Ok(Slice::Stopped(key.into()));
            }
        }
        pace.count_row(value.len());
        count += 1;
        if count == wanted {
            last = Some(KeyBytes::after(pk, rk));
        }
        pace.yield_if_due().await;
    }
    Ok(last.map_or(Slice::Exhausted, Slice::More))
}

async fn next_row(
    mut rows: std::pin::Pin<&mut RowStream>,
) -> Option<Result<tokio_postgres::Row, tokio_postgres::Error>> {
    poll_fn(|context| rows.as_mut().poll_next(context)).await
}
