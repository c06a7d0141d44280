//! The mixed load: each writer makes up one request after another over its own rows and tables, and keeps its part of
//! the ledger as the answers come.
//!
//! Inserts, merges and replaces with and without ETags, upserts, deletes, batches of 1 to 100, refusals on purpose,
//! tables that come and go, reads and scans that are compared with the ledger, and counters on rows that all share.
//! Promises: what a writer sends follows from its seed and from the answers alone; at most one of its requests is open.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use testkit::{Batch, RawClient, Request, Response, batch_parts, entity_json, entity_path};

use crate::contents::{ReadFailure, entity, rows_through};
use crate::ledger::{
    Attempt, Change, HOT_PARTITION, Key, MAIN_TABLE, Outcome, Properties, State, Version, etag_of, version_of,
};
use crate::victim::Victim;

const BATCH_OPERATION_COUNT_MAX: usize = 100;
const PARTITION_COUNT: u64 = 3;
const TABLE_COUNT_MAX: u64 = 2;
const HOT_ROW_COUNT: u64 = 3;
/// The version of a row written in the year 2000: an ETag that never matches.
const STALE: Version = 2000 * 372 * 86_400 * 10_000_000;

/// How big the rows get and how many there are.
#[derive(Clone, Copy)]
pub struct Shape {
    /// A writer with more rows than this deletes more than it inserts.
    pub row_count_max: usize,
    pub text_length_usual: usize,
    /// One text in thirty is up to this long.
    pub text_length_max: usize,
}

/// What the writers of one run share.
pub struct Common<'a> {
    pub server: &'a Victim,
    pub tally: &'a Tally,
    /// Set before the server is made to stop: from then on a broken connection is no surprise.
    pub stopping: &'a AtomicBool,
    /// How far the record of the disk is, for those who record it.
    pub position: &'a (dyn Fn() -> u64 + Sync),
}

/// What was promised to anybody, over all rounds.
#[derive(Default)]
pub struct Tally {
    latest: AtomicU64,
    given: Mutex<HashSet<Version>>,
    pub acknowledged: AtomicU64,
    pub batches: AtomicU64,
    pub refused: AtomicU64,
    pub reads: AtomicU64,
}

impl Tally {
    /// No version acknowledged so far is greater.
    pub fn latest(&self) -> Version {
        self.latest.load(Ordering::SeqCst)
    }

    /// A commit got this version: it must be greater than all that were acknowledged before the request was sent, and
    /// nobody else's.
    pub fn note(&self, version: Version, floor: Version) -> Result<(), String> {
        if version <= floor {
            return Err(format!("version {version} after version {floor} had been acknowledged"));
        }
        if !self.given.lock().unwrap_or_else(PoisonError::into_inner).insert(version) {
            return Err(format!("version {version} was given out twice"));
        }
        self.latest.fetch_max(version, Ordering::SeqCst);
        Ok(())
    }
}

/// One request in the record, with the stretch of the disk's record in which it was open.
#[derive(Clone)]
pub struct Entry {
    pub sent_at: u64,
    /// When its outcome was known; `u64::MAX` while it is not.
    pub settled_at: u64,
    pub outcome: Outcome,
    pub attempt: Attempt,
}

pub struct Writer {
    number: usize,
    shape: Shape,
    random: Rng,
    /// The last number that went into a row's name or value.
    last_number: u64,
    pub known: State,
    pub open: Option<Attempt>,
    /// All that was sent, if somebody records it.
    pub history: Option<Vec<Entry>>,
}

/// How a writer came to its end without a broken promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All steps made.
    Done,
    /// The server went away.
    Cut,
}

/// Why a step was the last.
enum Stop {
    Cut,
    Broken(String),
}

/// One operation on one row, alone or in a batch.
struct Operation {
    method: &'static str,
    target: String,
    headers: Vec<(&'static str, String)>,
    json: Option<String>,
    change: Change,
}

impl Writer {
    pub fn new(number: usize, seed: u64, shape: Shape) -> Writer {
        // Neighbouring seeds give neighbouring streams unless they are mixed first.
        let mut random = Rng::with_seed(seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.u64(..);
        let known = State::new();
        Writer { number, shape, random, last_number: 0, known, open: None, history: None }
    }

    pub fn set_shape(&mut self, shape: Shape) {
        self.shape = shape;
    }

    pub fn recorded(mut self) -> Writer {
        self.history = Some(Vec::new());
        self
    }

    /// Makes so many steps, unless the server goes away first.
    pub fn run(&mut self, common: &Common<'_>, steps: usize) -> Result<End, String> {
        self.connected(common, |writer, client| {
            for _ in 0..steps {
                writer.step(common, client)?;
            }
            Ok(())
        })
    }

    /// A table of its own with so many rows, dropped as soon as it is full; the rows are then still to be swept.
    pub fn fill_and_drop(&mut self, common: &Common<'_>, row_count: usize) -> Result<End, String> {
        self.connected(common, |writer, client| {
            let table = format!("w{}t0", writer.number);
            if !writer.known.tables.contains_key(&table) {
                writer.create_table(common, client, &table)?;
            }
            for _ in 0..row_count.div_ceil(BATCH_OPERATION_COUNT_MAX) {
                let partition = format!("w{}p0", writer.number);
                let operations =
                    (0..BATCH_OPERATION_COUNT_MAX).map(|_| writer.insert(&table, &partition)).collect();
                writer.send_batch(common, client, operations, None)?;
            }
            writer.drop_table(common, client, &table)
        })
    }

    /// The found state is the known one from now on, and the open request is no longer open.
    pub fn settled(&mut self, found: State, outcome: Outcome, position: u64) {
        if let (Some(history), Some(_)) = (&mut self.history, &self.open)
            && let Some(last) = history.last_mut()
        {
            last.settled_at = position;
            last.outcome = outcome;
            last.attempt.version = last.attempt.changes.iter().find_map(|change| version_in(&found, change));
        }
        self.open = None;
        self.known = found;
    }

    fn connected(
        &mut self,
        common: &Common<'_>,
        work: impl FnOnce(&mut Writer, &mut RawClient) -> Result<(), Stop>,
    ) -> Result<End, String> {
        let done = match common.server.connect() {
            Ok(mut client) => work(self, &mut client),
            Err(error) => Err(cut(common, &error)),
        };
        match done {
            Ok(()) => Ok(End::Done),
            Err(Stop::Cut) => Ok(End::Cut),
            Err(Stop::Broken(what)) => Err(format!("writer {}: {what}", self.number)),
        }
    }

    fn step(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        match self.random.u32(0..100) {
            0..55 => {
                let operation = self.operation_somewhere();
                self.send_one(common, client, operation)
            }
            55..70 => self.batch(common, client),
            70..74 => self.refused(common, client),
            74..82 => self.hot(common, client),
            82..85 => self.hot_conditional(common, client),
            85..88 => self.create_or_drop_table(common, client),
            88..94 => self.read_row(common, client),
            _ => self.scan(common, client),
        }
    }

    // --- single operations -----------------------------------------------------------------------------------

    fn operation_somewhere(&mut self) -> Operation {
        let (table, partition) = self.somewhere();
        self.operation(&table, &partition, &BTreeSet::new())
    }

    /// One of its tables and one of its partitions.
    fn somewhere(&mut self) -> (String, String) {
        let tables: Vec<&String> = self.known.tables.keys().collect();
        let table = if self.random.bool() {
            MAIN_TABLE.to_owned()
        } else {
            tables[self.random.usize(0..tables.len())].clone()
        };
        (table, format!("w{}p{}", self.number, self.random.u64(0..PARTITION_COUNT)))
    }

    /// A change of a row that is not among those `taken`.
    fn operation(&mut self, table: &str, partition: &str, taken: &BTreeSet<String>) -> Operation {
        let crowded = self.known.row_count() > self.shape.row_count_max;
        let existing = self.existing(table, partition, taken);
        let Some(key) = existing else { return self.insert(table, partition) };
        match self.random.u32(0..100) {
            0..30 if !crowded => self.insert(table, partition),
            30..36 if !crowded => self.upsert_new(table, partition),
            0..50 if crowded => self.delete(table, key),
            36..50 => self.delete(table, key),
            50..75 => self.merge(table, key),
            _ => self.replace(table, key),
        }
    }

    fn existing(&mut self, table: &str, partition: &str, taken: &BTreeSet<String>) -> Option<Key> {
        let rows = self.known.tables.get(table)?;
        let start = (partition.to_owned(), format!("r{:08}", self.random.u64(0..=self.last_number)));
        let here = |key: &&Key| key.0 == partition && !taken.contains(&key.1);
        rows.range(start..).map(|(key, _)| key).take_while(|key| key.0 == partition).find(here).cloned()
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn properties(&mut self) -> Properties {
        let number = self.number();
        let length = match self.random.u32(0..30) {
            0 => self.random.usize(0..=self.shape.text_length_max),
            _ => self.random.usize(0..=self.shape.text_length_usual),
        };
        let text: String = format!("{number} ").chars().cycle().take(length).collect();
        let mut properties =
            Properties::from([("n".to_owned(), number.into()), ("t".to_owned(), text.into())]);
        if self.random.bool() {
            properties.insert(format!("p{}", self.random.u32(0..8)), number.is_multiple_of(2).into());
        }
        properties
    }

    fn insert(&mut self, table: &str, partition: &str) -> Operation {
        let key = (partition.to_owned(), format!("r{:08}", self.number()));
        let properties = self.properties();
        let mut headers = Vec::new();
        if self.random.bool() {
            headers.push(("Prefer", "return-no-content".to_owned()));
        }
        Operation {
            method: "POST",
            target: format!("/{table}"),
            headers,
            json: Some(entity_json(&key.0, &key.1, &members(&properties))),
            change: Change::Put { table: table.to_owned(), key, properties },
        }
    }

    fn upsert_new(&mut self, table: &str, partition: &str) -> Operation {
        let key = (partition.to_owned(), format!("r{:08}", self.number()));
        let method = if self.random.bool() { "PUT" } else { "MERGE" };
        let properties = self.properties();
        put(method, table, key, Vec::new(), &properties.clone(), properties)
    }

    fn merge(&mut self, table: &str, key: Key) -> Operation {
        let patch = self.properties();
        let mut merged = self.known.tables[table][&key].properties.clone();
        merged.extend(patch.clone());
        let method = if self.random.bool() { "MERGE" } else { "PATCH" };
        let condition = self.condition(table, &key);
        put(method, table, key, condition, &patch, merged)
    }

    fn replace(&mut self, table: &str, key: Key) -> Operation {
        let properties = self.properties();
        let condition = self.condition(table, &key);
        put("PUT", table, key, condition, &properties.clone(), properties)
    }

    fn delete(&mut self, table: &str, key: Key) -> Operation {
        let mut headers = self.condition(table, &key);
        if headers.is_empty() {
            headers.push(("If-Match", "*".to_owned()));
        }
        let target = entity_path(table, &key.0, &key.1);
        let change = Change::Delete { table: table.to_owned(), key };
        Operation { method: "DELETE", target, headers, json: None, change }
    }

    /// Without ETag, with any, or with the one that the row has.
    fn condition(&mut self, table: &str, key: &Key) -> Vec<(&'static str, String)> {
        match (self.random.u32(0..3), self.known.tables[table][key].version) {
            (0, _) => Vec::new(),
            (1, Some(version)) => vec![("If-Match", etag_of(version))],
            _ => vec![("If-Match", "*".to_owned())],
        }
    }

    // --- requests --------------------------------------------------------------------------------------------

    fn send_one(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        operation: Operation,
    ) -> Result<(), Stop> {
        let mut request = Request::new(operation.method, &operation.target);
        for (name, value) in &operation.headers {
            request = request.header(name, value);
        }
        if let Some(json) = &operation.json {
            request = request.json(json);
        }
        self.write(common, client, &request, vec![operation.change])
    }

    fn batch(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let count = match self.random.u32(0..10) {
            0 => BATCH_OPERATION_COUNT_MAX,
            1 => self.random.usize(1..=BATCH_OPERATION_COUNT_MAX),
            _ => self.random.usize(1..=8),
        };
        let mut taken = BTreeSet::new();
        let mut operations = Vec::with_capacity(count);
        while operations.len() < count {
            let operation = self.operation(&table, &partition, &taken);
            if let Change::Put { key, .. } | Change::Delete { key, .. } = &operation.change {
                taken.insert(key.1.clone());
            }
            operations.push(operation);
        }
        // One batch in eight ends with an operation that fails: then none of it may be there.
        let spoiled =
            (self.random.u32(0..8) == 0).then(|| self.existing(&table, &partition, &taken)).flatten();
        self.send_batch(common, client, operations, spoiled.map(|key| (table, key)))
    }

    fn send_batch(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        operations: Vec<Operation>,
        spoiled_by: Option<(String, Key)>,
    ) -> Result<(), Stop> {
        let mut batch = Batch::new();
        let mut changes = Vec::new();
        for operation in operations {
            let headers: Vec<(&str, &str)> =
                operation.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            batch = batch.operation(operation.method, &operation.target, &headers, operation.json.as_deref());
            changes.push(operation.change);
        }
        let Some((table, key)) = spoiled_by.filter(|_| changes.len() < BATCH_OPERATION_COUNT_MAX) else {
            common.tally.batches.fetch_add(1, Ordering::Relaxed);
            return self.write(common, client, &batch.request(), changes);
        };
        let batch = batch.insert(&table, &entity_json(&key.0, &key.1, ""));
        let response = self.exchange(common, client, &batch.request())?;
        if response.status != 202 || batch_parts(&response).iter().all(|part| part.status != 409) {
            return Err(broken(format!(
                "a batch that inserts an existing row is answered with {response:?}"
            )));
        }
        common.tally.refused.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A write that must be refused, and so change nothing.
    fn refused(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let Some(key) = self.existing(&table, &partition, &BTreeSet::new()) else { return Ok(()) };
        let path = entity_path(&table, &key.0, &key.1);
        let (request, expected) = match self.random.u32(0..3) {
            0 => (Request::post(&format!("/{table}")).json(&entity_json(&key.0, &key.1, "")), 409),
            1 => (Request::merge(&path).header("If-Match", &etag_of(STALE)).json("{\"n\":0}"), 412),
            _ => (Request::delete(&path).header("If-Match", &etag_of(STALE)), 412),
        };
        let response = self.exchange(common, client, &request)?;
        common.tally.refused.fetch_add(1, Ordering::Relaxed);
        if response.status != expected {
            return Err(broken(format!("{expected} expected for {} {path}: {response:?}", request.method)));
        }
        Ok(())
    }

    fn create_or_drop_table(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let table = format!("w{}t{}", self.number, self.random.u64(0..TABLE_COUNT_MAX));
        if self.known.tables.contains_key(&table) {
            self.drop_table(common, client, &table)
        } else {
            self.create_table(common, client, &table)
        }
    }

    fn create_table(&mut self, common: &Common<'_>, client: &mut RawClient, table: &str) -> Result<(), Stop> {
        let request = Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"));
        self.write(common, client, &request, vec![Change::CreateTable(table.to_owned())])
    }

    fn drop_table(&mut self, common: &Common<'_>, client: &mut RawClient, table: &str) -> Result<(), Stop> {
        let request = Request::delete(&format!("/Tables('{table}')"));
        self.write(common, client, &request, vec![Change::DropTable(table.to_owned())])
    }

    /// Its own counter on one hot row, or a second one on all of them in one batch.
    fn hot(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let number = self.number();
        if self.random.bool() {
            let (row, property) = (self.hot_row(), format!("w{}c", self.number));
            let path = entity_path(MAIN_TABLE, HOT_PARTITION, &row);
            let request = Request::merge(&path).json(&format!("{{\"{property}\":{number}}}"));
            return self.write(common, client, &request, vec![Change::Hot { row, property, number }]);
        }
        let mut batch = Batch::new();
        let mut changes = Vec::new();
        for row in 0..HOT_ROW_COUNT {
            let (row, property) = (format!("h{row}"), format!("w{}c{row}", self.number));
            let path = entity_path(MAIN_TABLE, HOT_PARTITION, &row);
            let json = format!("{{\"{property}\":{number}}}");
            batch = batch.operation("MERGE", &path, &[], Some(&json));
            changes.push(Change::Hot { row, property, number });
        }
        self.write(common, client, &batch.request(), changes)
    }

    /// Reads a hot row and merges under its ETag: others may be faster, and then nothing may have changed.
    fn hot_conditional(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (row, property) = (self.hot_row(), format!("w{}c", self.number));
        let path = entity_path(MAIN_TABLE, HOT_PARTITION, &row);
        let response = self.exchange(common, client, &Request::get(&path))?;
        let Some(etag) = response.header("ETag").filter(|_| response.status == 200) else {
            return if response.status == 404 {
                Ok(())
            } else {
                Err(broken(format!("{path}: {response:?}")))
            };
        };
        let number = self.number();
        let request =
            Request::merge(&path).header("If-Match", etag).json(&format!("{{\"{property}\":{number}}}"));
        self.write(common, client, &request, vec![Change::Hot { row, property, number }])
    }

    fn hot_row(&mut self) -> String {
        format!("h{}", self.random.u64(0..HOT_ROW_COUNT))
    }

    fn read_row(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let Some(key) = self.existing(&table, &partition, &BTreeSet::new()) else { return Ok(()) };
        let path = entity_path(&table, &key.0, &key.1);
        let response = self.exchange(common, client, &Request::get(&path))?;
        let found = serde_json::from_slice(&response.body).ok().and_then(|body| entity(body).ok());
        common.tally.reads.fetch_add(1, Ordering::Relaxed);
        match found {
            Some((found, row)) if found == key && row == self.known.tables[&table][&key] => Ok(()),
            _ => Err(broken(format!("{path} should be {:?}: {response:?}", self.known.tables[&table][&key]))),
        }
    }

    fn scan(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let mut stop = None;
        let mut ask = |request: &Request| match self.exchange(common, client, request) {
            Ok(response) => Ok(response),
            Err(reason) => {
                stop = Some(reason);
                Err(std::io::ErrorKind::ConnectionAborted.into())
            }
        };
        let found = match rows_through(&mut ask, &table, Some(&partition)) {
            Ok(rows) => rows,
            Err(ReadFailure::Broken(_)) => return Err(stop.unwrap_or(Stop::Cut)),
            Err(failure) => return Err(broken(format!("{table} {partition}: {failure}"))),
        };
        common.tally.reads.fetch_add(1, Ordering::Relaxed);
        let rows = &self.known.tables[&table];
        let expected = rows.iter().filter(|(key, _)| key.0 == partition);
        if expected.clone().ne(found.iter()) {
            let (ours, theirs) = (expected.count(), found.len());
            return Err(broken(format!(
                "a scan of {table} {partition} does not agree: {ours} rows, {theirs} found"
            )));
        }
        Ok(())
    }

    // --- the road to the server ------------------------------------------------------------------------------

    /// Sends a write and keeps the ledger: open until the answer, known after it.
    fn write(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        request: &Request,
        changes: Vec<Change>,
    ) -> Result<(), Stop> {
        let attempt = Attempt { changes, floor: common.tally.latest(), version: None };
        self.open = Some(attempt.clone());
        if let Some(history) = &mut self.history {
            let sent_at = (common.position)();
            let (settled_at, outcome) = (u64::MAX, Outcome::NotApplied);
            history.push(Entry { sent_at, settled_at, outcome, attempt: attempt.clone() });
        }
        let response = self.exchange(common, client, request)?;
        let conditional_on_hot =
            matches!(attempt.changes.first(), Some(Change::Hot { .. })) && response.status == 412;
        let outcome = if conditional_on_hot { Outcome::NotApplied } else { Outcome::Applied };
        let mut attempt = attempt;
        if outcome == Outcome::Applied {
            let versions = acknowledged(&response, attempt.changes.len()).map_err(broken)?;
            attempt.version = versions.first().copied();
            if versions.iter().any(|version| Some(*version) != attempt.version) {
                return Err(broken(format!("a batch with several versions: {versions:?}")));
            }
            if let Some(version) = attempt.version {
                common.tally.note(version, attempt.floor).map_err(broken)?;
            }
            self.known.apply(&attempt);
            common.tally.acknowledged.fetch_add(1, Ordering::Relaxed);
        } else {
            common.tally.refused.fetch_add(1, Ordering::Relaxed);
        }
        self.open = None;
        if let Some(last) = self.history.as_mut().and_then(|history| history.last_mut()) {
            *last = Entry { sent_at: last.sent_at, settled_at: (common.position)(), outcome, attempt };
        }
        Ok(())
    }

    /// A server that is being stopped may say so; what was asked then may or may not have happened.
    fn exchange(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        request: &Request,
    ) -> Result<Response, Stop> {
        match client.exchange(&common.server.bytes_of(request)) {
            Ok(response) if response.status >= 500 && common.stopping.load(Ordering::SeqCst) => {
                Err(Stop::Cut)
            }
            Ok(response) => Ok(response),
            Err(error) => Err(cut(common, &error)),
        }
    }
}

/// The versions in the answer to a write; an error if it was not accepted.
fn acknowledged(response: &Response, change_count: usize) -> Result<Vec<Version>, String> {
    let version = |response: &Response| match response.header("ETag") {
        Some(etag) => version_of(etag).ok_or_else(|| format!("no version in the ETag {etag}")).map(Some),
        None => Ok(None),
    };
    match response.status {
        201 | 204 => Ok(version(response)?.into_iter().collect()),
        202 => {
            let parts = batch_parts(response);
            if parts.len() != change_count || !parts.iter().all(|part| [201, 204].contains(&part.status)) {
                return Err(format!(
                    "{change_count} operations that must succeed are answered with {response:?}"
                ));
            }
            Ok(parts.iter().map(version).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        _ => Err(format!("a write that must succeed is answered with {response:?}")),
    }
}

/// The version that a change has, if it left one.
pub fn version_in(state: &State, change: &Change) -> Option<Version> {
    match change {
        Change::Put { table, key, .. } => state.tables.get(table)?.get(key)?.version,
        _ => None,
    }
}

fn put(
    method: &'static str,
    table: &str,
    key: Key,
    headers: Vec<(&'static str, String)>,
    sent: &Properties,
    properties: Properties,
) -> Operation {
    Operation {
        method,
        target: entity_path(table, &key.0, &key.1),
        headers,
        json: Some(format!("{{{}}}", members(sent))),
        change: Change::Put { table: table.to_owned(), key, properties },
    }
}

/// A JSON object's inside.
fn members(properties: &Properties) -> String {
    let object = serde_json::to_string(properties).expect("plain values have a JSON form");
    object[1..object.len() - 1].to_owned()
}

fn broken(what: String) -> Stop {
    Stop::Broken(what)
}

/// A connection that breaks while the server is being stopped is the stop; otherwise nobody asked for it.
fn cut(common: &Common<'_>, error: &std::io::Error) -> Stop {
    if common.stopping.load(Ordering::SeqCst) {
        Stop::Cut
    } else {
        Stop::Broken(format!("the connection broke while nobody stopped the server: {error}"))
    }
}
