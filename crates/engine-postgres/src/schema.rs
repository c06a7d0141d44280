//! The schema in the database: its text, its format, who creates it.
//!
//! Promises: of several front ends that start at once, one creates the schema and the others wait for it. A format that
//! is newer than this program's is refused with a sentence. Leaves to others: what the statements mean (`schema.sql`,
//! `statements.rs`).

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::ConnectError;
use crate::failure::describe;

/// The layout that this program writes. A change that older programs cannot read gets the next number, and a migration.
pub(crate) const FORMAT: i32 = 2;

const TEXT: &str = include_str!("schema.sql");
/// One such function for every place.
const COMMIT_ROWS: &str = include_str!("commit_rows.sql");

/// Locks of the kind (class, number). Number 1 guards the versions (`schema.sql`).
pub(crate) const LOCK_SWEEP: i32 = 2;
const LOCK_MIGRATE: i32 = 3;
/// `undo_moves` has the same number.
pub(crate) const LOCK_MOVE: i32 = 4;
/// Shared by snapshots: no relation goes while somebody may read it.
pub(crate) const LOCK_RELATIONS: i32 = 5;

/// Longer names are cut off by PostgreSQL, silently.
const NAME_LENGTH_MAX: usize = 63;

/// The name of a schema, as it may stand in a statement without quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SchemaName(String);

impl SchemaName {
    pub(crate) fn parse(name: &str) -> Result<SchemaName, ConnectError> {
        let is_start = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let is_sound = name.bytes().next().is_some_and(is_start)
            && name.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
            && name.len() <= NAME_LENGTH_MAX
            && !name.starts_with("pg_");
        match is_sound {
            true => Ok(SchemaName(name.to_owned())),
            false => Err(ConnectError::Invalid(format!(
                "{name:?} cannot be the name of a schema: it takes lower-case letters, digits and '_', 63 at most, and no 'pg_' \
                 in front"
            ))),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Advisory locks are one number space for the whole database, so every schema has a class of its own.
    pub(crate) fn lock_class(&self) -> i32 {
        // FNV-1a: the same in every program and every version, which is all that matters here.
        let hash = self
            .0
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        hash as i32
    }

    /// A text with its placeholders filled in.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{schema}", &self.0).replace("{lock_class}", &self.lock_class().to_string())
    }

    /// A text about the relation of one place.
    pub(crate) fn fill_at(&self, text: &str, place: i64) -> String {
        self.fill(&text.replace("{rows}", &relation_at(place)).replace("{place}", &place.to_string()))
    }

    /// The statements that make the relation of a place, and what belongs to it.
    pub(crate) fn relation_sql(&self, place: i64) -> String {
        let create = "CREATE TABLE {schema}.{rows} (LIKE {schema}.rows INCLUDING ALL);\n";
        self.fill_at(&format!("{create}{COMMIT_ROWS}"), place)
    }

    /// One statement of several, so one transaction. It waits a moment for whoever still uses the relation.
    pub(crate) fn drop_relation_sql(&self, place: i64) -> String {
        let drop = "SET LOCAL lock_timeout = '1s'; DROP TABLE IF EXISTS {schema}.{rows}; \
                    DROP FUNCTION IF EXISTS {schema}.commit_{rows}, {schema}.any_appeared_in_{rows}; \
                    DELETE FROM {schema}.places WHERE place = {place}";
        self.fill_at(drop, place)
    }
}

/// The relation that holds the rows of a place.
fn relation_at(place: i64) -> String {
    match place {
        0 => "rows".to_owned(),
        own => format!("rows_{own}"),
    }
}

/// The statements that create the schema: for those who do not let a server do it.
pub fn schema_sql(schema: &str) -> Result<String, ConnectError> {
    Ok(text_of(&SchemaName::parse(schema)?))
}

fn text_of(schema: &SchemaName) -> String {
    let text = TEXT.replace("{commit_rows}", COMMIT_ROWS).replace("{format}", &FORMAT.to_string());
    schema.fill_at(&text, 0)
}

/// Creates the schema if it is not there and that is allowed; checks its format.
pub(crate) async fn prepare(client: &Client, schema: &SchemaName, creates: bool) -> Result<(), ConnectError> {
    if let Some(format) = format_of(client, schema).await? {
        return check(format, schema);
    }
    if !creates {
        return Err(ConnectError::Schema(format!(
            "the database has no schema {}; `lazulite engine schema` prints the statements that create it",
            schema.as_str()
        )));
    }
    // One statement of several: one transaction, at whose end the lock is released. Whoever waited for it looks again.
    let lock = format!("BEGIN; SELECT pg_advisory_xact_lock({}, {LOCK_MIGRATE})", schema.lock_class());
    client.batch_execute(&lock).await.map_err(|error| failed(schema, &error))?;
    let created = match format_of(client, schema).await? {
        Some(_) => Ok(()),
        None => client.batch_execute(&text_of(schema)).await,
    };
    if let Err(error) = created {
        // The session is closed by the caller, which ends the transaction too.
        return Err(failed(schema, &error));
    }
    client.batch_execute("COMMIT").await.map_err(|error| failed(schema, &error))?;
    match format_of(client, schema).await? {
        Some(format) => check(format, schema),
        None => Err(ConnectError::Schema(format!("the schema {} was not created", schema.as_str()))),
    }
}

fn failed(schema: &SchemaName, error: &tokio_postgres::Error) -> ConnectError {
    let cause = describe(error);
    match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => ConnectError::Schema(format!(
            "the user may not create the schema {}: {cause}; `lazulite engine schema` prints the statements for one who may",
            schema.as_str()
        )),
        Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            ConnectError::Unreachable(format!("the database is read-only, like a standby: {cause}"))
        }
        _ => ConnectError::Schema(format!("the schema {} cannot be created: {cause}", schema.as_str())),
    }
}

/// `None`: there is no such schema.
async fn format_of(client: &Client, schema: &SchemaName) -> Result<Option<i32>, ConnectError> {
    let meta = format!("{}.meta", schema.as_str());
    let unreadable = |error: tokio_postgres::Error| {
        ConnectError::Schema(format!(
            "the format of schema {} is unreadable: {}",
            schema.as_str(),
            describe(&error)
        ))
    };
    let rights = "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1";
    match client.query(rights, &[&schema.as_str()]).await.map_err(unreadable)?.first() {
        None => return Ok(None),
        Some(row) if row.get(0) => {}
        Some(_) => {
            let what = format!("the user may not use the schema {}", schema.as_str());
            return Err(ConnectError::Schema(what));
        }
    }
    let is_there =
        client.query("SELECT to_regclass($1::text) IS NOT NULL", &[&meta]).await.map_err(unreadable)?;
    if !is_there.first().is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    let rows = client.query(&format!("SELECT format FROM {meta}"), &[]).await.map_err(unreadable)?;
    match rows.first() {
        Some(row) => Ok(Some(row.get(0))),
        None => Err(ConnectError::Schema(format!("{meta} is empty: the schema is damaged"))),
    }
}

fn check(format: i32, schema: &SchemaName) -> Result<(), ConnectError> {
    match format {
        FORMAT => Ok(()),
        newer if newer > FORMAT => Err(ConnectError::Schema(format!(
            "the schema {} has format {newer}, and this version of Lazulite reads formats up to {FORMAT}: use a newer version",
            schema.as_str()
        ))),
        other => Err(ConnectError::Schema(format!(
            "the schema {} has the unknown format {other}",
            schema.as_str()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes() {
        for name in ["lazulite", "_a", "a1", &"a".repeat(NAME_LENGTH_MAX)] {
            assert!(SchemaName::parse(name).is_ok(), "{name}");
        }
        for name in
            ["", "1a", "A", "a-b", "a b", "a;b", "a\"b", "pg_a", "é", &"a".repeat(NAME_LENGTH_MAX + 1)]
        {
            assert!(SchemaName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_text_names_the_schema_and_leaves_no_placeholder() {
        let text = schema_sql("elsewhere").unwrap();
        assert!(text.contains("CREATE TABLE elsewhere.rows"));
        assert!(!text.contains('{'), "{text}");
        assert!(!text.contains("lazulite."));
    }
}
