//! The statements that every session prepares.
//!
//! Promises: each of them checks in itself that the table lives. Writes return rows or nothing and raise no error for a
//! condition that does not hold, because the server logs errors with their statements. The plans never depend on the
//! statistics: every access goes through the one index made for it (`SESSION_SETTINGS`).

use tokio_postgres::{Client, Error, Statement};

use crate::schema::SchemaName;

/// Durable commits, whatever the database's default is; plans that are made once; ends of connections that are noticed.
pub(crate) const SESSION_SETTINGS: &str = "-c synchronous_commit=on -c default_transaction_isolation=read\\ committed \
    -c plan_cache_mode=force_generic_plan -c jit=off \
    -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_sort=off \
    -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 \
    -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c client_min_messages=warning";

/// What differs between rows with short and with long keys.
struct KeyShape {
    relation: &'static str,
    /// The condition on $1 (table), $4 (pk) and $5 (rk).
    key: &'static str,
    insert: &'static str,
    unique: &'static str,
}

const SHORT: KeyShape = KeyShape {
    relation: "rows",
    key: "r.table_id = $1 AND r.pk = $4 AND r.rk = $5",
    insert: "(table_id, version, stamp, pk, rk, body) \
             SELECT $1::bigint, {schema}.next_version($2), $3::bigint, $4::bytea, $5::bytea, $6::bytea",
    unique: "(table_id, pk, rk)",
};

const LONG: KeyShape = KeyShape {
    relation: "long_rows",
    key: "r.table_id = $1 AND r.digest = sha256($4::bytea || '\\x00'::bytea || $5::bytea)",
    insert: "(table_id, version, stamp, digest, head, pk, rk, body) \
             SELECT $1::bigint, {schema}.next_version($2), $3::bigint, sha256($4::bytea || '\\x00'::bytea || $5::bytea), \
             substr($4::bytea || '\\x00'::bytea || $5::bytea, 1, 1024), $4, $5, $6::bytea",
    unique: "(table_id, digest)",
};

const FENCE: &str = "EXISTS (SELECT FROM {schema}.fences f WHERE f.table_id = $1 AND f.place = 0)";

/// For one row. The parameters are the same for all: table, time, stamp, pk, rk, body, expected version, as far as
/// used.
pub(crate) struct RowStatements {
    pub(crate) get: Statement,
    pub(crate) insert: Statement,
    pub(crate) upsert: Statement,
    pub(crate) update: Statement,
    pub(crate) delete: Statement,
    /// Whether the table lives, what version the row has, and a new version.
    pub(crate) look: Statement,
    /// Whether the row carries a stamp, and its version.
    pub(crate) read_back: Statement,
}

pub(crate) struct Statements {
    pub(crate) short: RowStatements,
    pub(crate) long: RowStatements,
    pub(crate) scan: Statement,
    pub(crate) read_rows: Statement,
    pub(crate) live_count: Statement,
    pub(crate) commit_rows: Statement,
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
        let scan = format!(
            "SELECT pk, rk, version, body FROM ( \
               (SELECT pk, rk, version, body FROM {{schema}}.rows WHERE table_id = $1 AND {FENCE} \
                  AND (pk, rk) >= ($2::bytea, $3::bytea) AND (pk, rk) < ($4::bytea, $5::bytea) \
                ORDER BY table_id, pk, rk LIMIT $6) \
               UNION ALL \
               (SELECT pk, rk, version, body FROM {{schema}}.long_rows WHERE table_id = $1 AND {FENCE} \
                  AND head >= substr($2 || '\\x00'::bytea || $3, 1, 1024) AND head <= substr($4 || '\\x00'::bytea || $5, 1, 1024) \
                  AND (pk, rk) >= ($2, $3) AND (pk, rk) < ($4, $5) \
                ORDER BY table_id, head, pk, rk LIMIT $6) \
             ) AS both_kinds ORDER BY pk, rk LIMIT $6"
        );
        // Lateral, and not to be taken apart (`OFFSET 0`), so that the plan goes from the keys to the rows.
        let read_rows = "SELECT o.n, r.version, r.body \
             FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS o(t, pk, rk, n) CROSS JOIN LATERAL ( \
               SELECT r.version, r.body FROM {schema}.rows r \
               WHERE r.table_id = o.t AND r.pk = o.pk AND r.rk = o.rk OFFSET 0) r \
             UNION ALL SELECT o.n, r.version, r.body \
             FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS o(t, pk, rk, n) CROSS JOIN LATERAL ( \
               SELECT r.version, r.body FROM {schema}.long_rows r \
               WHERE r.table_id = o.t AND r.digest = sha256(o.pk || '\\x00'::bytea || o.rk) OFFSET 0) r \
             WHERE octet_length(o.pk) + octet_length(o.rk) > 2600";
        // All of them are sent before the first answer is read: one round trip.
        let (short, long) = (row_statements(client, schema, &SHORT), row_statements(client, schema, &LONG));
        let (short, long, scan, read_rows, live_count, commit_rows, load_rows) = tokio::try_join!(
            short,
            long,
            prepare(&scan),
            prepare(read_rows),
            prepare("SELECT count(*) FROM {schema}.fences WHERE table_id = ANY ($1) AND place = 0"),
            prepare("SELECT * FROM {schema}.commit_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"),
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
            short,
            long,
            scan,
            read_rows,
            live_count,
            commit_rows,
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

    pub(crate) fn of_row(&self, is_long: bool) -> &RowStatements {
        if is_long { &self.long } else { &self.short }
    }
}

async fn row_statements(
    client: &Client,
    schema: &SchemaName,
    shape: &KeyShape,
) -> Result<RowStatements, Error> {
    let KeyShape { relation, key, insert, unique } = shape;
    // A statement may not leave out a number between its parameters, so those without the time and the stamp count
    // from 2.
    let close = key.replace("$4", "$2").replace("$5", "$3");
    let insert = format!(
        "INSERT INTO {{schema}}.{relation} AS r {insert} FROM {{schema}}.fences f WHERE f.table_id = $1 AND f.place = 0"
    );
    let prepare = async |text: String| client.prepare(&schema.fill(&text)).await;
    let (get, insert, upsert, update, delete, look, read_back) = tokio::try_join!(
        prepare(format!("SELECT r.version, r.body FROM {{schema}}.{relation} r WHERE {close} AND {FENCE}")),
        prepare(format!("{insert} ON CONFLICT DO NOTHING RETURNING r.version")),
        prepare(format!(
            "{insert} ON CONFLICT {unique} DO UPDATE SET stamp = excluded.stamp, body = excluded.body, \
             version = CASE WHEN excluded.version > r.version THEN excluded.version ELSE {{schema}}.next_version($2) END \
             RETURNING r.version"
        )),
        prepare(format!(
            "UPDATE {{schema}}.{relation} r SET version = {{schema}}.next_version($2), stamp = $3, body = $6 \
             WHERE {key} AND ($7::bigint IS NULL OR r.version = $7) AND {FENCE} RETURNING r.version"
        )),
        prepare(format!(
            "DELETE FROM {{schema}}.{relation} r WHERE {close} AND ($5::bigint IS NULL OR r.version = $5) AND {FENCE} \
             RETURNING {{schema}}.next_version($4)"
        )),
        prepare(format!(
            "SELECT {FENCE}, (SELECT r.version FROM {{schema}}.{relation} r WHERE {close}), {{schema}}.next_version($4)"
        )),
        prepare(format!("SELECT r.version, r.stamp FROM {{schema}}.{relation} r WHERE {close}")),
    )?;
    Ok(RowStatements { get, insert, upsert, update, delete, look, read_back })
}
