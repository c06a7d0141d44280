//! Everything as of one moment, in a session with one long transaction.
//!
//! It keeps PostgreSQL from removing rows that were overwritten since, so tables grow while it is held. It also holds a
//! lock against the sweep (`sweep.rs`), which removes rows of dropped tables. Dropping it ends the session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::env::Clock;
use engine::keys::{KeyRange, OwnedKey};
use engine::pace::Pace;
use engine::{Budget, ReadError, Sink, Snapshot, TableId, Version};
use tokio::sync::Mutex;

use crate::failure::{Failure, describe};
use crate::key_bytes;
use crate::places::SHARED;
use crate::scan::scan_in;
use crate::schema::{LOCK_RELATIONS, SchemaName};
use crate::session::DatabaseSession;
use crate::{FrontEnd, version_of};

/// Relations up to this size are counted; above it, the server's own estimate is used.
const COUNTED_BYTES_MAX: i64 = 8 * 1024 * 1024;

pub(crate) struct PostgresSnapshot {
    /// One scan at a time: a session runs its statements one after the other anyway.
    session: Mutex<DatabaseSession>,
    clock: Arc<dyn Clock>,
    deadline: Duration,
    opened: OpenedView,
}

/// What is known of a view since it was fixed.
struct OpenedView {
    last_version: Option<Version>,
    row_count: u64,
    may_have_older: bool,
}

impl FrontEnd {
    pub(crate) async fn snapshot(&self) -> Result<PostgresSnapshot, ReadError> {
        let session = self.connector.session().await.map_err(|error| {
            log::warn!("no session for a snapshot: {error}");
            ReadError::Busy
        })?;
        let opened = tokio::time::timeout(self.deadline, open(&session, &self.connector.schema)).await;
        let opened = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return Err(ReadError::Storage(describe(&error))),
            Err(_) => return Err(ReadError::Storage("the database did not answer in time".to_owned())),
        };
        self.prove_session(&session).await.map_err(Failure::into_read_error)?;
        Ok(PostgresSnapshot {
            session: Mutex::new(session),
            clock: self.clock.clone(),
            deadline: self.deadline,
            opened,
        })
    }
}

async fn open(session: &DatabaseSession, schema: &SchemaName) -> Result<OpenedView, tokio_postgres::Error> {
    let client = &session.client;
    let lock = format!("SELECT pg_advisory_lock_shared({}, {LOCK_RELATIONS})", schema.lock_class());
    client.batch_execute(&lock).await?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    // The first statement fixes the view.
    let relations = schema.fill(
        "SELECT count(*), bool_and(pg_relation_size(c.oid) <= $1), sum(greatest(c.reltuples, 0))::float8 FROM pg_class c \
         WHERE c.oid IN ('{schema}.rows'::regclass, '{schema}.long_rows'::regclass) \
            OR c.oid IN (SELECT to_regclass('{schema}.rows_' || p.place) FROM {schema}.places p)",
    );
    let row = client.query_one(&relations, &[&COUNTED_BYTES_MAX]).await?;
    let (shared_only, is_small) = (row.get::<_, i64>(0) <= 2, row.get::<_, Option<bool>>(1) == Some(true));
    let row_count = match shared_only && is_small {
        true => {
            let count =
                "SELECT (SELECT count(*) FROM {schema}.rows) + (SELECT count(*) FROM {schema}.long_rows)";
            client.query_one(&schema.fill(count), &[]).await?.get::<_, i64>(0) as u64
        }
        false => row.get::<_, Option<f64>>(2).unwrap_or(0.0) as u64,
    };
    // A sequence knows no views. Read after the view was fixed, it is not below any version that the view shows.
    let last = schema.fill("SELECT pg_sequence_last_value('{schema}.versions')");
    let last: Option<i64> = client.query_one(&last, &[]).await?.get(0);
    // Who holds a snapshot has taken the lock before its view was fixed. So a view that is older than this one shows here.
    let others = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted AND pid <> pg_backend_pid() \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND classid = {}::int8::oid AND objid = {LOCK_RELATIONS}::int8::oid AND objsubid = 2",
        schema.lock_class() as u32
    );
    let may_have_older = client.query_one(&others, &[]).await?.get::<_, i64>(0) > 0;
    let last_version = last.and_then(|ticks| version_of(ticks as u64));
    Ok(OpenedView { last_version, row_count, may_have_older })
}

#[async_trait]
impl Snapshot for PostgresSnapshot {
    fn last_version(&self) -> Option<Version> {
        self.opened.last_version
    }

    fn may_have_older(&self) -> bool {
        self.opened.may_have_older
    }

    fn row_count(&self) -> Result<u64, ReadError> {
        Ok(self.opened.row_count)
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let session = self.session.lock().await;
        let ranges = ranges.iter().filter_map(key_bytes::bounds).collect();
        let mut pace = Pace::new(&*self.clock, budget, None);
        let mut place = SHARED;
        scan_in(&session, (table, &mut place), ranges, &mut pace, sink, self.deadline).await
    }
}
