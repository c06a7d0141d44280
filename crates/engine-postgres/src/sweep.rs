//! How the space of dropped tables comes back.
//!
//! Dropping a table removes its fence, and from then on nobody sees or writes its rows. They are removed later, a slice
//! at a time, by one front end at a time, and never while somebody holds a snapshot.
//!
//! Promises: a table's entry in the list stays for longer than any statement may take, because a statement that began
//! before the drop may still add a row; the last look at the table comes after that.

use std::sync::Weak;
use std::time::Duration;

use tokio_postgres::Client;

use crate::FrontEnd;
use crate::failure::describe;
use crate::schema::{LOCK_SWEEP, SchemaName};

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
    let lock = format!("SELECT pg_try_advisory_lock({}, {LOCK_SWEEP})", schema.lock_class());
    if !client.query_one(&lock, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let list = format!("SELECT table_id, at < clock_timestamp() - interval '{KEPT}' FROM {{schema}}.dropped");
    let dropped = client.query(&schema.fill(&list), &[]).await?;
    let mut removed_count = 0;
    for row in dropped {
        let (table, is_old): (i64, bool) = (row.get(0), row.get(1));
        for relation in ["rows", "long_rows"] {
            let delete = format!(
                "DELETE FROM {{schema}}.{relation} WHERE ctid = ANY (ARRAY( \
                 SELECT ctid FROM {{schema}}.{relation} WHERE table_id = $1 LIMIT $2))"
            );
            let delete = client.prepare(&schema.fill(&delete)).await?;
            loop {
                let count = client.execute(&delete, &[&table, &SLICE_ROW_COUNT]).await?;
                removed_count += count;
                if count < SLICE_ROW_COUNT as u64 || front.is_closed() {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        if is_old {
            let forget = schema.fill("DELETE FROM {schema}.dropped WHERE table_id = $1");
            client.execute(&forget, &[&table]).await?;
        }
    }
    Ok(removed_count)
}
