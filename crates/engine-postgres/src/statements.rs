//! The statements that every session prepares.
//!
//! Promises: each of them checks in itself that the table lives, and in the place that the statement is for. Writes return rows or nothing and raise no error for a
//! condition that does not hold, because the server logs errors with their statements. The plans never depend on the
//! statistics: every access goes through the one index made for it (`SESSION_SETTINGS`).

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_postgres::{Client, Error, Statement};

use crate::schema::SchemaName;

/// Durable commits, whatever the database's default is; plans that are made once; ends of connections that are noticed.
pub(crate) const SESSION_SETTINGS: &str = "-c synchronous_commit=on -c default_transaction_isolation=read\\ committed \
    -c plan_cache_mode=force_generic_plan -c jit=off \
    -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_sort=off \
    -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 \
    -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c client_min_messages=warning";

/// How many places a session has statements for, beside the shared one. Each costs the server's memory.
const OWN_PLACE_COUNT_MAX: usize = 16;

/// What differs between rows with short and with long keys.
struct KeyShape {
    relation: &'static str,
    /// The condition on $1 (table), $4 (pk) and $5 (rk).
    key: &'static str,
    insert: &'static str,
    unique: &'static str,
    /// When a row of `fences` permits to write.
    fence: &'static str,
}

const SHORT: KeyShape = KeyShape {
    relation: "{rows}",
    key: "r.table_id = $1 AND r.pk = $4 AND r.rk = $5",
    insert: "(table_id, version, stamp, pk, rk, body) \
             SELECT $1::bigint, {schema}.next_version($2), $3::bigint, $4::bytea, $5::bytea, $6::bytea",
    unique: "(table_id, pk, rk)",
    fence: "f.table_id = $1 AND f.place = {place} AND f.moves_to IS NULL",
};

/// Long keys are in one relation, whatever the place of their table is, and do not move with it.
const LONG: KeyShape = KeyShape {
    relation: "long_rows",
    key: "r.table_id = $1 AND r.digest = sha256($4::bytea || '\\x00'::bytea || $5::bytea)",
    insert: "(table_id, version, stamp, digest, head, pk, rk, body) \
             SELECT $1::bigint, {schema}.next_version($2), $3::bigint, sha256($4::bytea || '\\x00'::bytea || $5::bytea), \
             substr($4::bytea || '\\x00'::bytea || $5::bytea, 1, 1024), $4, $5, $6::bytea",
    unique: "(table_id, digest)",
    fence: "f.table_id = $1",
};

/// A table that lives has one row at least. A row without a key carries the table's place in place of a version: the
/// table is somewhere else, or nothing was found. Rows come in the order of the inner query, because one row of
/// `fences` is joined with all of them.
const SCAN: &str = "SELECT s.pk, s.rk, coalesce(s.version, f.place), s.body FROM {schema}.fences f LEFT JOIN LATERAL ( \
     SELECT pk, rk, version, body FROM ( \
       (SELECT pk, rk, version, body FROM {schema}.{rows} WHERE table_id = $1 AND f.place = {place} \
          AND (pk, rk) >= ($2::bytea, $3::bytea) AND (pk, rk) < ($4::bytea, $5::bytea) \
        ORDER BY table_id, pk, rk LIMIT $6) \
       UNION ALL \
       (SELECT pk, rk, version, body FROM {schema}.long_rows WHERE table_id = $1 AND f.place = {place} \
          AND head >= substr($2 || '\\x00'::bytea || $3, 1, 1024) AND head <= substr($4 || '\\x00'::bytea || $5, 1, 1024) \
          AND (pk, rk) >= ($2, $3) AND (pk, rk) < ($4, $5) \
        ORDER BY table_id, head, pk, rk LIMIT $6) \
     ) AS both_kinds ORDER BY pk, rk LIMIT $6) s ON true WHERE f.table_id = $1";

/// Lateral, and not to be taken apart (`OFFSET 0`), so that the plan goes from the keys to the rows.
const READ_ROWS: &str = "SELECT o.n, r.version, r.body \
     FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS o(t, pk, rk, n) CROSS JOIN LATERAL ( \
       SELECT r.version, r.body FROM {schema}.{rows} r \
       WHERE r.table_id = o.t AND r.pk = o.pk AND r.rk = o.rk OFFSET 0) r \
     UNION ALL SELECT o.n, r.version, r.body \
     FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS o(t, pk, rk, n) CROSS JOIN LATERAL ( \
       SELECT r.version, r.body FROM {schema}.long_rows r \
       WHERE r.table_id = o.t AND r.digest = sha256(o.pk || '\\x00'::bytea || o.rk) OFFSET 0) r \
     WHERE octet_length(o.pk) + octet_length(o.rk) > 2600";

/// For one row. The parameters are the same for all: table, time, stamp, pk, rk, body, expected version, as far as
/// used.
pub(crate) struct RowStatements {
    /// The table's place, and the row if it is there. Nothing: the table is gone.
    pub(crate) get: Statement,
    pub(crate) insert: Statement,
    pub(crate) upsert: Statement,
    pub(crate) update: Statement,
    pub(crate) delete: Statement,
    /// The table's place and whether it moves, what version the row has, and a new version.
    pub(crate) look: Statement,
    /// Whether the row carries a stamp, and its version.
    pub(crate) read_back: Statement,
}

/// For the rows of one place, long keys left out.
pub(crate) struct PlaceStatements {
    pub(crate) row: RowStatements,
    pub(crate) scan: Statement,
    pub(crate) read_rows: Statement,
    pub(crate) commit_rows: Statement,
}

pub(crate) struct Statements {
    schema: SchemaName,
    pub(crate) shared: Arc<PlaceStatements>,
    /// Those of other places, made when they are needed; the one used last comes last.
    own: Mutex<Vec<(i64, Arc<PlaceStatements>)>>,
    pub(crate) long: RowStatements,
    /// Where tables are, and whether they move. No row: gone.
    pub(crate) where_are: Statement,
    pub(crate) undo_moves: Statement,
    pub(crate) commit_rows_in_places: Statement,
    pub(crate) load_rows: Statement,
    pub(crate) create_table: Statement,
    pub(crate) drop_table: Statement,
    pub(crate) rename_table: Statement,
    pub(crate) replace_table: Statement,
    pub(crate) next_version: Statement,
    /// The id of the table that the commit with this stamp dropped.
    pub(crate) dropped_by: Statement,
    /// A commit without rows (`leadership.rs`); tells whether there are synchronous standbys.
    pub(crate) barrier: Statement,
    /// Whether the server no longer runs the session with this key.
    pub(crate) is_over: Statement,
}

impl Statements {
    pub(crate) async fn prepare(client: &Client, schema: &SchemaName) -> Result<Statements, Error> {
        let prepare = async |text: &str| client.prepare(&schema.fill(text)).await;
        // All of them are sent before the first answer is read: one round trip.
        let (shared, long, where_are, undo_moves, commit_rows_in_places, load_rows) = tokio::try_join!(
            PlaceStatements::prepare(client, schema, 0),
            row_statements(client, schema, &LONG, 0),
            prepare(
                "SELECT table_id, place, moves_to IS NOT NULL, is_frozen FROM {schema}.fences WHERE table_id = ANY ($1)"
            ),
            prepare("SELECT {schema}.undo_moves()"),
            prepare(
                "SELECT * FROM {schema}.commit_rows_in_places($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
            ),
            prepare("SELECT {schema}.load_rows($1, $2, $3, $4, $5, $6)"),
        )?;
        let (
            create_table,
            drop_table,
            rename_table,
            replace_table,
            next_version,
            dropped_by,
            barrier,
            is_over,
        ) = tokio::try_join!(
            prepare("SELECT * FROM {schema}.create_table($1, $2, $3, $4, $5, $6)"),
            prepare("SELECT * FROM {schema}.drop_table($1, $2, $3, $4)"),
            prepare("SELECT * FROM {schema}.rename_table($1, $2, $3, $4, $5, $6, $7)"),
            prepare("SELECT * FROM {schema}.replace_table($1, $2, $3, $4, $5, $6, $7, $8)"),
            prepare("SELECT {schema}.next_version($1)"),
            prepare("SELECT table_id FROM {schema}.dropped WHERE stamp = $1"),
            prepare(
                "SELECT current_setting('synchronous_standby_names') <> '', \
                 pg_logical_emit_message(true, 'lazulite', '')::text"
            ),
            prepare("SELECT pg_try_advisory_xact_lock_shared($1)"),
        )?;
        Ok(Statements {
            schema: schema.clone(),
            shared: Arc::new(shared),
            own: Mutex::new(Vec::new()),
            long,
            where_are,
            undo_moves,
            commit_rows_in_places,
            load_rows,
            create_table,
            drop_table,
            rename_table,
            replace_table,
            next_version,
            dropped_by,
            barrier,
            is_over,
        })
    }

    /// Those of one place. The client is that of the same session.
    pub(crate) async fn at(&self, client: &Client, place: i64) -> Result<Arc<PlaceStatements>, Error> {
        if place == 0 {
            return Ok(self.shared.clone());
        }
        let mut own = self.own.lock().await;
        let known = match own.iter().position(|(known, _)| *known == place) {
            Some(index) => own.remove(index),
            None => (place, Arc::new(PlaceStatements::prepare(client, &self.schema, place).await?)),
        };
        if own.len() >= OWN_PLACE_COUNT_MAX {
            own.remove(0);
        }
        let statements = known.1.clone();
        own.push(known);
        Ok(statements)
    }
}

impl PlaceStatements {
    async fn prepare(client: &Client, schema: &SchemaName, place: i64) -> Result<PlaceStatements, Error> {
        let prepare = async |text: &str| client.prepare(&schema.fill_at(text, place)).await;
        let (row, scan, read_rows, commit_rows) = tokio::try_join!(
            row_statements(client, schema, &SHORT, place),
            prepare(SCAN),
            prepare(READ_ROWS),
            prepare("SELECT * FROM {schema}.commit_{rows}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"),
        )?;
        Ok(PlaceStatements { row, scan, read_rows, commit_rows })
    }
}

async fn row_statements(
    client: &Client,
    schema: &SchemaName,
    shape: &KeyShape,
    place: i64,
) -> Result<RowStatements, Error> {
    let KeyShape { relation, key, insert, unique, fence } = shape;
    // A statement may not leave out a number between its parameters, so those without the time and the stamp count
    // from 2.
    let close = key.replace("$4", "$2").replace("$5", "$3");
    let insert =
        format!("INSERT INTO {{schema}}.{relation} AS r {insert} FROM {{schema}}.fences f WHERE {fence}");
    let fence = format!("EXISTS (SELECT FROM {{schema}}.fences f WHERE {fence})");
    let prepare = async |text: String| client.prepare(&schema.fill_at(&text, place)).await;
    let (get, insert, upsert, update, delete, look, read_back) = tokio::try_join!(
        prepare(format!(
            "SELECT f.place, r.version, r.body FROM {{schema}}.fences f \
             LEFT JOIN {{schema}}.{relation} r ON {close} WHERE f.table_id = $1"
        )),
        prepare(format!("{insert} ON CONFLICT DO NOTHING RETURNING r.version")),
        prepare(format!(
            "{insert} ON CONFLICT {unique} DO UPDATE SET stamp = excluded.stamp, body = excluded.body, \
             version = CASE WHEN excluded.version > r.version THEN excluded.version ELSE {{schema}}.next_version($2) END \
             RETURNING r.version"
        )),
        prepare(format!(
            "UPDATE {{schema}}.{relation} r SET version = {{schema}}.next_version($2), stamp = $3, body = $6 \
             WHERE {key} AND ($7::bigint IS NULL OR r.version = $7) AND {fence} RETURNING r.version"
        )),
        prepare(format!(
            "DELETE FROM {{schema}}.{relation} r WHERE {close} AND ($5::bigint IS NULL OR r.version = $5) AND {fence} \
             RETURNING {{schema}}.next_version($4)"
        )),
        prepare(format!(
            "SELECT f.place, f.moves_to IS NOT NULL, f.is_frozen, \
             (SELECT r.version FROM {{schema}}.{relation} r WHERE {close}), {{schema}}.next_version($4) FROM {{schema}}.fences f WHERE f.table_id = $1"
        )),
        prepare(format!("SELECT r.version, r.stamp FROM {{schema}}.{relation} r WHERE {close}")),
    )?;
    Ok(RowStatements { get, insert, upsert, update, delete, look, read_back })
}
