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
use tokio_postgres::types::ToSql;

use crate::failure::Failure;
use crate::key_bytes::{self, KeyBytes};
use crate::pool::Lease;
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
            let resume = scan_in(&lease.session, table, ranges, &mut pace, sink, self.deadline).await?;
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
        let scanned =
            tokio::join!(biased; begin, scan_in(session, table, ranges, &mut pace, sink, self.deadline));
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
    lease: Option<Lease>,
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

/// Scans in whatever view the session has.
pub(crate) async fn scan_in(
    session: &DatabaseSession,
    table: TableId,
    ranges: Vec<(KeyBytes, KeyBytes)>,
    pace: &mut Pace<'_>,
    sink: &mut dyn Sink,
    deadline: Duration,
) -> Result<Option<OwnedKey>, ReadError> {
    let mut slice_row_count = FIRST_SLICE_ROW_COUNT;
    for (mut start, end) in ranges {
        loop {
            let wanted = wanted(pace, slice_row_count);
            match slice(session, table, (&start, &end), wanted, pace, sink, deadline).await? {
                Slice::Exhausted => break,
                Slice::More(next) => start = next,
                Slice::Stopped(resume) => return Ok(Some(resume)),
            }
            slice_row_count = LATER_SLICE_ROW_COUNT;
        }
    }
    Ok(None)
}

async fn slice(
    session: &DatabaseSession,
    table: TableId,
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
    let sent = tokio::time::timeout(deadline, session.client.query_raw(&session.statements.scan, params));
    let mut rows = pin!(sent.await.map_err(|_| late())?.map_err(failed)?);
    let (mut count, mut last, mut buffer) = (0, None, Vec::new());
    while let Some(row) = tokio::time::timeout(deadline, next_row(rows.as_mut())).await.map_err(|_| late())? {
        let row = row.map_err(failed)?;
        let (pk, rk): (&[u8], &[u8]) = (row.get(0), row.get(1));
        let (partition, name) = keys::decode_columns(&mut buffer, pk, rk)?;
        let key = Key { partition: &partition, row: &name };
        if !pace.has_room() {
            return Ok(Slice::Stopped(key.into()));
        }
        let version = version_of(row.get::<_, i64>(2) as u64)
            .ok_or_else(|| ReadError::Damaged(format!("{key:?} has version 0")))?;
        let value: &[u8] = row.get(3);
        if sink.row(key, version, value) == Flow::Stop {
            return Ok(Slice::Stopped(key.into()));
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
