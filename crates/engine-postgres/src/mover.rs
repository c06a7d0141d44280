//! Gives large tables relations of their own.
//!
//! A round looks for a table in the shared relation that has grown large, makes a relation for it, marks its fence, so
//! that writers note what they change, copies its rows and then what was changed meanwhile, and in the end stops the
//! writers for a moment, copies the rest and sets the table's new place (`schema.sql` has the steps and why they are
//! safe). What the table left behind in the shared relation is removed by the sweep.
//!
//! Promises: one mover at a time, by a lock that its session holds. A mover that ends in between leaves nothing that
//! matters: the table stays where it was, the next mover drops the relation, and the mark in the fence, if there is one,
//! is taken back by the first writer that waits for it. Writers wait at most [`WRITERS_WAIT_MAX`] for a mover. Nothing
//! is scanned to find out which tables are large.
//!
//! Its commits need not wait for a standby. Whatever anybody else does later comes behind them in the same log, so it
//! is never acknowledged without them.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::FrontEnd;
use crate::failure::describe;
use crate::schema::{LOCK_MOVE, SchemaName};
use crate::sweep;

/// A move that would take longer is given up, and tried again after [`RETRY_AFTER`].
const WRITERS_WAIT_MAX: Duration = Duration::from_secs(5);
/// Changes are copied in passes until few are left, while more are made.
const CHANGES_PER_PASS: i64 = 10_000;
const FEW_CHANGES: i64 = 200;
const CHANGES_PASS_COUNT_MAX: usize = 1_000;
const RETRY_AFTER: Duration = Duration::from_secs(600);
/// After a copy for which the disk had no room: others need what is left.
const RETRY_AFTER_FULL: Duration = Duration::from_secs(24 * 60 * 60);
/// Each is a few files, and an entry in many caches of the server.
const OWN_RELATION_COUNT_MAX: i64 = 10_000;
/// The shared relation is sampled by pages: 8 MiB of it, however large it is.
const SAMPLED_PAGE_COUNT: f64 = 1_000.0;
/// A page of 8 KiB holds no more rows than this.
const ROWS_PER_PAGE_MAX: u64 = 128;
/// The shared relation is sampled again when it has grown by this share, or after [`RETRY_AFTER`].
const GROWTH: f64 = 0.05;

/// What a front end remembers from one round to the next.
pub(crate) struct Mover {
    row_count_min: u64,
    says_missing_right: AtomicBool,
    last_look: Mutex<Option<(f64, Duration)>>,
    /// The table that could not be moved, and when to try again.
    last_failure: Mutex<Option<(i64, Duration)>>,
}

impl Mover {
    pub(crate) fn new(row_count_min: u64) -> Mover {
        Mover {
            row_count_min: row_count_min.max(1),
            says_missing_right: AtomicBool::new(true),
            last_look: Mutex::new(None),
            last_failure: Mutex::new(None),
        }
    }
}

impl FrontEnd {
    /// Moves one table, if there is one that is large enough.
    pub(crate) async fn move_large_table(&self) -> bool {
        // The pools have told why there is no connection.
        let Ok((client, _, driver)) = self.connector.client().await else { return false };
        let moved = round(&client, &self.connector.schema, self).await;
        // Its end releases the lock too.
        driver.abort();
        match moved {
            Ok(is_moved) => is_moved,
            Err(error) => {
                log::warn!("no table could be given a relation of its own: {}", describe(&error));
                false
            }
        }
    }
}

async fn round(client: &Client, schema: &SchemaName, front: &FrontEnd) -> Result<bool, Error> {
    // The plans of the other sessions go row by row; these are about whole tables.
    let settings = format!(
        "SET synchronous_commit = off; SET work_mem = '64MB'; SET enable_seqscan = on; SET enable_bitmapscan = on; \
         SET enable_hashjoin = on; SET enable_mergejoin = on; SET enable_sort = on; SET plan_cache_mode = auto; \
         SET application_name = 'lazulite mover {}'",
        schema.as_str()
    );
    client.batch_execute(&settings).await?;
    let lock = format!("SELECT pg_try_advisory_lock({}, {LOCK_MOVE})", schema.lock_class());
    if !client.query_one(&lock, &[]).await?.get::<_, bool>(0) {
        return Ok(false);
    }
    clear_up(client, schema).await?;
    let Some((table, row_count)) = large_table(client, schema, front).await? else { return Ok(false) };
    if !may_create(client, schema, &front.mover).await? {
        return Ok(false);
    }
    let number = schema.fill("SELECT nextval('{schema}.place_numbers')");
    let place: i64 = client.query_one(&number, &[]).await?.get(0);
    // Several statements at once are one transaction.
    let create = format!(
        "INSERT INTO {{schema}}.places (place, table_id) VALUES ({place}, {table}); {}",
        schema.relation_sql(place)
    );
    client.batch_execute(&schema.fill(&create)).await?;
    let started = front.clock.monotonic();
    let mut retry_after = RETRY_AFTER;
    let outcome = fill_and_switch(client, schema, table, place, front).await.unwrap_or_else(|error| {
        if error.code() == Some(&SqlState::DISK_FULL) {
            retry_after = RETRY_AFTER_FULL;
        }
        Err(describe(&error))
    });
    match outcome {
        Ok(waited) => {
            log::info!(
                "a table of about {row_count} rows has a relation of its own now, {}.rows_{place}; it took {} ms, and \
                 writers waited for {} of them",
                schema.as_str(),
                front.clock.monotonic().saturating_sub(started).as_millis(),
                waited.as_millis()
            );
            Ok(true)
        }
        Err(why) => {
            log::info!("a table of about {row_count} rows stays in the shared relation: {why}");
            *front.mover.last_failure.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((table, front.clock.monotonic() + retry_after));
            clear_up(client, schema).await?;
            Ok(false)
        }
    }
}

/// How long writers waited, or why the table stays where it is.
async fn fill_and_switch(
    client: &Client,
    schema: &SchemaName,
    table: i64,
    place: i64,
    front: &FrontEnd,
) -> Result<Result<Duration, String>, Error> {
    let begin = schema.fill(&format!("CALL {{schema}}.begin_move({table}, {place}, NULL)"));
    bounded(client, WRITERS_WAIT_MAX).await?;
    client.batch_execute(&begin).await?;
    bounded(client, Duration::ZERO).await?;
    let copy = "INSERT INTO {schema}.{rows} SELECT * FROM {schema}.rows WHERE table_id = $1 ORDER BY pk, rk";
    client.execute(&schema.fill_at(copy, place), &[&table]).await?;
    let changes = schema.fill("SELECT {schema}.copy_changes($1, $2, $3)");
    let changes = client.prepare(&changes).await?;
    for _ in 0..CHANGES_PASS_COUNT_MAX {
        let row = client.query_one(&changes, &[&table, &place, &CHANGES_PER_PASS]).await?;
        if row.get::<_, i64>(0) < FEW_CHANGES {
            break;
        }
    }
    let started = front.clock.monotonic();
    let end = schema.fill(&format!("CALL {{schema}}.end_move({table}, {place}, NULL)"));
    bounded(client, WRITERS_WAIT_MAX).await?;
    let answers = client.simple_query(&end).await?;
    let waited = front.clock.monotonic().saturating_sub(started);
    bounded(client, Duration::ZERO).await?;
    let outcome = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(match outcome {
        Some("") => Ok(waited),
        Some(why) => Err(why.to_owned()),
        None => Err("the database gave no answer".to_owned()),
    })
}

/// For the next statements. No commit of a mover waits for a standby, so there is none whose wait could be cancelled.
async fn bounded(client: &Client, time_max: Duration) -> Result<(), Error> {
    client.batch_execute(&format!("SET statement_timeout = {}", time_max.as_millis())).await
}

/// Removes what movers before have left: marks, and relations in which their table does not live. Nobody has ever seen
/// rows there, so no view needs them. Relations of tables that are gone are left to the sweep.
async fn clear_up(client: &Client, schema: &SchemaName) -> Result<(), Error> {
    let undo = "SELECT {schema}.undo_moves(); DELETE FROM {schema}.changed_keys";
    client.batch_execute(&schema.fill(undo)).await?;
    let unused = "SELECT p.place FROM {schema}.places p WHERE EXISTS ( \
                  SELECT FROM {schema}.fences f WHERE f.table_id = p.table_id AND f.place <> p.place)";
    for row in client.query(&schema.fill(unused), &[]).await? {
        sweep::drop_relation(client, schema, row.get(0)).await;
    }
    Ok(())
}

/// The largest table of the shared relation, and roughly how many rows it has; none if it is not large enough.
async fn large_table(
    client: &Client,
    schema: &SchemaName,
    front: &FrontEnd,
) -> Result<Option<(i64, u64)>, Error> {
    let mover = &front.mover;
    let size = "SELECT pg_relation_size('{schema}.rows') / current_setting('block_size')::bigint";
    let page_count = client.query_one(&schema.fill(size), &[]).await?.get::<_, i64>(0) as f64;
    let now = front.clock.monotonic();
    if page_count * (ROWS_PER_PAGE_MAX as f64) < mover.row_count_min as f64 {
        return Ok(None);
    }
    let is_new = match *mover.last_look.lock().unwrap_or_else(PoisonError::into_inner) {
        Some((last_page_count, at)) => {
            page_count <= SAMPLED_PAGE_COUNT
                || page_count > last_page_count * (1.0 + GROWTH)
                || now.saturating_sub(at) > RETRY_AFTER
        }
        None => true,
    };
    if !is_new {
        return Ok(None);
    }
    // A few pages in a row are not more telling than one, so whole pages are taken, spread over all of them.
    let share = (SAMPLED_PAGE_COUNT / page_count.max(1.0)).min(1.0);
    let sample = format!(
        "SELECT s.table_id, s.row_count FROM ( \
           SELECT table_id, count(*) AS row_count FROM {{schema}}.rows TABLESAMPLE SYSTEM ({}) \
           WHERE table_id NOT BETWEEN 0 AND 15 GROUP BY table_id HAVING count(*) >= $1 ORDER BY 2 DESC) s \
         WHERE EXISTS (SELECT FROM {{schema}}.fences f WHERE f.table_id = s.table_id AND f.place = 0) \
         ORDER BY s.row_count DESC LIMIT 2",
        share * 100.0
    );
    let sampled_min = (mover.row_count_min as f64 * share).ceil() as i64;
    let rows = client.query(&schema.fill(&sample), &[&sampled_min]).await?;
    let failed = *mover.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
    let large = rows
        .iter()
        .map(|row| (row.get::<_, i64>(0), (row.get::<_, i64>(1) as f64 / share) as u64))
        .find(|(table, _)| !failed.is_some_and(|(other, at)| other == *table && now < at));
    if large.is_none() {
        *mover.last_look.lock().unwrap_or_else(PoisonError::into_inner) = Some((page_count, now));
    }
    Ok(large)
}

/// Says once when the right is missing. Everything else works without it.
async fn may_create(client: &Client, schema: &SchemaName, mover: &Mover) -> Result<bool, Error> {
    let rights = schema
        .fill("SELECT has_schema_privilege('{schema}', 'CREATE'), (SELECT count(*) FROM {schema}.places)");
    let row = client.query_one(&rights, &[]).await?;
    let (has_right, place_count): (bool, i64) = (row.get(0), row.get(1));
    if has_right && place_count < OWN_RELATION_COUNT_MAX {
        return Ok(true);
    }
    if mover.says_missing_right.swap(false, Ordering::Relaxed) {
        match has_right {
            false => log::warn!(
                "large tables stay in the shared relation, because the user may not create relations in the schema {}",
                schema.as_str()
            ),
            true => log::warn!(
                "large tables stay in the shared relation, because {place_count} have one of their own already"
            ),
        }
    }
    Ok(false)
}
