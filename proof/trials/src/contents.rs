//! Reads everything a server holds over HTTP, page by page, and assigns it to the writers that own it.
//!
//! Promises: reports a row that no writer can have written, a Timestamp that differs from the ETag, or a page out of
//! order. Leaves to `ledger.rs`: what a writer's rows should be.

use std::collections::BTreeMap;

use serde_json::Value;
use testkit::{Request, Response, percent_encode};

use crate::ledger::{HOT_PARTITION, Key, MAIN_TABLE, PROBE_PARTITION, Row, Rows, State, version_of};
use crate::queue::recorded::TABLE_PREFIX;
use crate::victim::Victim;

/// Why something could not be read.
#[derive(Debug)]
pub enum ReadFailure {
    /// The server refused, with this status.
    Refused { status: u16, what: String },
    /// The connection broke or stalled.
    Broken(String),
    /// The answer cannot be right.
    Wrong(String),
}

impl std::fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadFailure::Refused { status, what } => write!(f, "{what} is answered with {status}"),
            ReadFailure::Broken(what) => write!(f, "the connection broke: {what}"),
            ReadFailure::Wrong(what) => f.write_str(what),
        }
    }
}

/// All tables and their rows.
pub type Contents = BTreeMap<String, Rows>;

pub fn read_all(server: &Victim) -> Result<Contents, ReadFailure> {
    let mut contents = Contents::new();
    for table in table_names(server)? {
        let rows = rows(server, &table, None)?;
        contents.insert(table, rows);
    }
    Ok(contents)
}

pub fn table_names(server: &Victim) -> Result<Vec<String>, ReadFailure> {
    let mut names = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let mut request = Request::get("/Tables");
        if let Some(token) = &next {
            request = request.query("NextTableName", token);
        }
        let response = read(server, &request)?;
        for table in values(&response)? {
            let name = table["TableName"].as_str().ok_or_else(|| wrong("a table without name"))?;
            names.push(name.to_owned());
        }
        match response.header("x-ms-continuation-NextTableName") {
            Some(token) => next = Some(token.to_owned()),
            None => return Ok(names),
        }
    }
}

/// The rows of a table or of one partition of it.
pub fn rows(server: &Victim, table: &str, partition: Option<&str>) -> Result<Rows, ReadFailure> {
    rows_through(&mut |request| server.ask(request), table, partition)
}

/// The same, with the given function sending the requests.
pub fn rows_through(
    ask: &mut dyn FnMut(&Request) -> std::io::Result<Response>,
    table: &str,
    partition: Option<&str>,
) -> Result<Rows, ReadFailure> {
    let mut first = Request::get(&format!("/{table}()"));
    if let Some(partition) = partition {
        first = first.query("$filter", &format!("PartitionKey eq '{partition}'"));
    }
    let mut rows = Rows::new();
    let mut request = first.clone();
    loop {
        let response = answer(ask(&request), &request)?;
        for value in values(&response)? {
            let (key, row) = entity(value)?;
            if rows.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(wrong(&format!("{table}: {key:?} comes twice or out of order")));
            }
            rows.insert(key, row);
        }
        let Some(partition) = response.header("x-ms-continuation-NextPartitionKey") else { return Ok(rows) };
        request = first.clone().query("NextPartitionKey", partition);
        if let Some(row) = response.header("x-ms-continuation-NextRowKey") {
            request = request.query("NextRowKey", row);
        }
    }
}

/// Reads an entity from an answer.
pub fn entity(mut value: Value) -> Result<(Key, Row), ReadFailure> {
    let object = value.as_object_mut().ok_or_else(|| wrong("an entity that is not an object"))?;
    let mut text = |name: &str| match object.remove(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(wrong(&format!("an entity without {name}"))),
    };
    let key = (text("PartitionKey")?, text("RowKey")?);
    let (timestamp, etag) = (text("Timestamp")?, text("odata.etag")?);
    let version = version_of(&etag);
    if version.is_none() || version != version_of(&timestamp) {
        return Err(wrong(&format!("{key:?} has Timestamp {timestamp} and ETag {etag}")));
    }
    object.retain(|name, _| !name.contains("odata."));
    Ok((key, Row { properties: std::mem::take(object).into_iter().collect(), version }))
}

/// Which contents belong to which writer.
pub struct Shares {
    pub writers: Vec<State>,
    pub probes: Rows,
    /// The newest version of the hot rows.
    pub hot_version: u64,
}

/// Assigns everything to its writer. Writer 7's tables are called `w7t…`, its partitions in the main table `w7p…`, its
/// counters `w7c…`.
pub fn share(contents: Contents, writer_count: usize) -> Result<Shares, String> {
    let mut shares =
        Shares { writers: vec![State::new(); writer_count], probes: Rows::new(), hot_version: 0 };
    if !contents.contains_key(MAIN_TABLE) {
        return Err(format!("the table {MAIN_TABLE} is missing"));
    }
    for (table, rows) in contents {
        if table.starts_with(TABLE_PREFIX) {
            // The queue writers look after it.
            continue;
        }
        if table != MAIN_TABLE {
            let owner = owner(&table, 't', writer_count).ok_or_else(|| format!("no writer made {table}"))?;
            shares.writers[owner].tables.insert(table, rows);
            continue;
        }
        for (key, row) in rows {
            if key.0 == PROBE_PARTITION {
                shares.probes.insert(key, row);
            } else if key.0 == HOT_PARTITION {
                shares.hot_version = shares.hot_version.max(row.version.unwrap_or(0));
                for (property, number) in row.properties {
                    let owner = owner(&property, 'c', writer_count);
                    let (Some(owner), Some(number)) = (owner, number.as_u64()) else {
                        return Err(format!("no writer wrote {property} of {key:?}"));
                    };
                    shares.writers[owner].hot.insert((key.1.clone(), property), number);
                }
            } else {
                let owner =
                    owner(&key.0, 'p', writer_count).ok_or_else(|| format!("no writer wrote {key:?}"))?;
                let rows = shares.writers[owner].tables.entry(table.clone()).or_default();
                rows.insert(key, row);
            }
        }
    }
    Ok(shares)
}

fn owner(name: &str, kind: char, writer_count: usize) -> Option<usize> {
    let digits = name.strip_prefix('w')?.split_once(kind)?.0;
    digits.parse().ok().filter(|owner| *owner < writer_count)
}

fn read(server: &Victim, request: &Request) -> Result<Response, ReadFailure> {
    answer(server.ask(request), request)
}

fn answer(outcome: std::io::Result<Response>, request: &Request) -> Result<Response, ReadFailure> {
    let what = || percent_decoded(&request.target);
    let response = outcome.map_err(|error| ReadFailure::Broken(format!("{}: {error}", what())))?;
    match response.status {
        200 => Ok(response),
        status => Err(ReadFailure::Refused { status, what: what() }),
    }
}

fn values(response: &Response) -> Result<Vec<Value>, ReadFailure> {
    let body: Value =
        serde_json::from_slice(&response.body).map_err(|error| wrong(&format!("not JSON: {error}")))?;
    match body {
        Value::Object(mut object) => match object.remove("value") {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(wrong("a listing without values")),
        },
        _ => Err(wrong("a listing that is not an object")),
    }
}

fn wrong(what: &str) -> ReadFailure {
    ReadFailure::Wrong(what.to_owned())
}

/// The target for people to read. Decodes the few characters that our own requests encode.
fn percent_decoded(target: &str) -> String {
    [" ", "'"].iter().fold(target.to_owned(), |text, plain| text.replace(&percent_encode(plain), plain))
}
