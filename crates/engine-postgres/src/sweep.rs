//! How the space of dropped tables comes back.
//!
//! Dropping a table removes its fence, and from then on nobody sees or writes its rows. They are removed later, by one
//! front end at a time: those of a table with a relation of its own by dropping the relation, though never while
//! somebody holds a snapshot, others a slice at a time. So are those that a table left behind when it moved.
//!
//! Promises: a table's entry in the list stays for longer than any statement may take, because a statement that began
//! before the drop may still add a row; the last look at the table comes after that.

use std::sync::Weak;
use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::FrontEnd;
use crate::failure::describe;
use crate::schema::{LOCK_RELATIONS, LOCK_SWEEP, SchemaName};

const INTERVAL: Duration = Duration::from_secs(10);
/// Between two slices, so that commits do not wait for the disk behind them.
const PAUSE: Duration = Duration::from_millis(20);
const SLICE_ROW_COUNT: i64 = 1_000;
/// Longer than any deadline of a request, by far.
const KEPT: &str = "1 hour";

/// Runs until the engine is gone.
pub(crate) async fn run(front: Weak<FrontEnd>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(front) = front.upgrade() else { return };
        if front.is_closed() {
            return;
        }
        front.move_large_table().await;
        front.sweep().await;
    }
}

impl FrontEnd {
    /// Removes what can be removed now.
    pub(crate) async fn sweep(&self) {
        let swept = match self.connector.client().await {
            Ok((client, _, driver)) => {
                let swept = sweep(&client, &self.connector.schema, self).await;
                // Its end releases the lock too.
                driver.abort();
                swept
            }
            // The pools have told of it.
            Err(_) => return,
        };
        match swept {
            Ok(0) => {}
            Ok(row_count) => log::info!("removed {row_count} rows of dropped tables"),
            Err(error) => log::warn!("rows of dropped tables could not be removed: {}", describe(&error)),
        }
    }
}

async fn sweep(client: &Client, schema: &SchemaName, front: &FrontEnd) -> Result<u64, tokio_postgres::Error> {
    let lock = async |number: i32| {
        let lock = format!("SELECT pg_try_advisory_lock({}, {number})", schema.lock_class());
        client.query_one(&lock, &[]).await.map(|row| row.get::<_, bool>(0))
    };
    if !lock(LOCK_SWEEP).await? {
        return Ok(0);
    }
    // A snapshot does not see that rows are removed, but it needs the relations.
    if lock(LOCK_RELATIONS).await? {
        drop_relations(client, schema).await?;
        let unlock = format!("SELECT pg_advisory_unlock({}, {LOCK_RELATIONS})", schema.lock_class());
        client.batch_execute(&unlock).await?;
    }
    let list = format!("SELECT table_id, at < clock_timestamp() - interval '{KEPT}' FROM {{schema}}.dropped");
    let dropped = client.query(&schema.fill(&list), &[]).await?;
    let mut removed_count = 0;
    for row in dropped {
        let (table, is_old): (i64, bool) = (row.get(0), row.get(1));
        for relation in ["rows", "long_rows"] {
            removed_count += remove_rows(client, schema, relation, table, front).await?;
        }
        if is_old && !front.is_closed() {
            let forget = schema.fill("DELETE FROM {schema}.dropped WHERE table_id = $1");
            client.execute(&forget, &[&table]).await?;
        }
    }
    // What tables left behind that moved. Nobody writes it any more, because the mover waited for those who did.
    let left = "SELECT p.table_id, p.place FROM {schema}.places p WHERE p.leaves_rows AND EXISTS ( \
                SELECT FROM {schema}.fences f WHERE f.table_id = p.table_id AND f.place = p.place)";
    for row in client.query(&schema.fill(left), &[]).await? {
        let (table, place): (i64, i64) = (row.get(0), row.get(1));
        removed_count += remove_rows(client, schema, "rows", table, front).await?;
        if !front.is_closed() {
            let done = schema.fill("UPDATE {schema}.places SET leaves_rows = false WHERE place = $1");
            client.execute(&done, &[&place]).await?;
        }
    }
    Ok(removed_count)
}

/// Relations of tables that are gone. A statement that began before the drop may still be at work there; it is waited
/// for, but only for a moment, because others would wait behind.
async fn drop_relations(client: &Client, schema: &SchemaName) -> Result<(), tokio_postgres::Error> {
    let unused = "SELECT p.place FROM {schema}.places p WHERE NOT EXISTS ( \
                  SELECT FROM {schema}.fences f WHERE f.table_id = p.table_id)";
    for row in client.query(&schema.fill(unused), &[]).await? {
        let place: i64 = row.get(0);
        if drop_relation(client, schema, place).await {
            log::info!("dropped {}.rows_{place}, the relation of a dropped table", schema.as_str());
        }
    }
    Ok(())
}

/// Whether it is gone. One that stays, because somebody else owns it, does not keep the others.
pub(crate) async fn drop_relation(client: &Client, schema: &SchemaName, place: i64) -> bool {
    match client.batch_execute(&schema.drop_relation_sql(place)).await {
        Ok(()) => true,
        // Still in use; the next round tries again.
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => false,
        Err(error) => {
            log::warn!("{}.rows_{place} cannot be dropped: {}", schema.as_str(), describe(&error));
            false
        }
    }
}

/// Removes the rows of one table, slice by slice.
async fn remove_rows(
    client: &Client,
    schema: &SchemaName,
    relation: &str,
    table: i64,
    front: &FrontEnd,
) -> Result<u64, tokio_postgres::Error> {
    let delete = format!(
        "DELETE FROM {{schema}}.{relation} WHERE ctid = ANY (ARRAY( \
         SELECT ctid FROM {{schema}}.{relation} WHERE table_id = $1 LIMIT $2))"
    );
    let delete = client.prepare(&schema.fill(&delete)).await?;
    let mut removed_count = 0;
    loop {
        let count = client.execute(&delete, &[&table, &SLICE_ROW_COUNT]).await?;
        removed_count += count;
        if count < SLICE_ROW_COUNT as u64 || front.is_closed() {
            return Ok(removed_count);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
