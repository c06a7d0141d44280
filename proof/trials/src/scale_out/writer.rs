//! A writer with rows and tables of its own, over all front ends, and its part of the ledger.
//!
//! A writer sends one request at a time, so it knows what each of its rows must be: a read through any front end that
//! differs is a lost write, a deleted row that is back, or a stale read. Rows of a request whose outcome is unknown
//! are touched by nobody again; they must be wholly as before or wholly as after it, and once they were seen after
//! it, they stay.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use testkit::{Batch, Request, Response, batch_parts, entity_json, entity_path};

use super::ground::{Client, FRONT_END_COUNT, Ground, Reply};
use crate::contents::{self, entity};
use crate::ledger::{Rows, Version, etag_of, version_of};

/// The table with all rows.
pub const TABLE: &str = "scale";
const ROW_COUNT_MAX: usize = 200;
const BATCH_OPERATION_COUNT_MAX: usize = 12;
const PAUSE_MS_MAX: u64 = 8;

/// A row's number, which tells what was written, and its version.
type Row = (u64, Version);

pub struct Writer {
    number: usize,
    random: Rng,
    last_number: u64,
    rows: BTreeMap<String, Row>,
    deleted: Vec<String>,
    open: Vec<Attempt>,
    /// By name: whether it is there; `None` if that is unknown.
    tables: BTreeMap<String, Option<bool>>,
    pub counts: Counts,
}

#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub writes: u64,
    pub batches: u64,
    pub reads: u64,
    pub tables: u64,
    pub applied: u64,
}

/// A request whose outcome is unknown.
#[derive(Clone, Debug)]
struct Attempt {
    floor: Version,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
struct Change {
    row: String,
    before: Option<Row>,
    /// The new number; `None` for a deletion.
    after: Option<u64>,
    method: &'static str,
}

impl Writer {
    pub fn new(number: usize, seed: u64) -> Writer {
        let mut random = Rng::with_seed(seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.u64(..);
        Writer {
            number,
            random,
            last_number: 0,
            rows: BTreeMap::new(),
            deleted: Vec::new(),
            open: Vec::new(),
            tables: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// Works until it is told to stop, or a promise breaks.
    pub fn run(&mut self, ground: &Ground) {
        let mut client = Client::new(ground);
        while !ground.is_stopping() {
            if let Err(what) = self.step(&mut client) {
                ground.broke(format!("writer {}: {what}", self.number));
                return;
            }
            std::thread::sleep(Duration::from_millis(self.random.u64(..PAUSE_MS_MAX)));
        }
    }

    fn step(&mut self, client: &mut Client<'_>) -> Result<(), String> {
        match self.random.u32(..100) {
            0..3 => self.create_or_drop_table(client),
            3..25 => self.read(client),
            25..45 => {
                let count = self.random.usize(2..=BATCH_OPERATION_COUNT_MAX);
                self.write(client, count)
            }
            _ => self.write(client, 1),
        }
    }

    fn partition(&self) -> String {
        format!("w{}", self.number)
    }

    fn changes(&mut self, count: usize) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..count {
            let existing: Vec<&String> =
                self.rows.keys().filter(|row| !changes.iter().any(|change| change.row == **row)).collect();
            let is_full = existing.len() > ROW_COUNT_MAX;
            let method = match self.random.u32(..10) {
                0..4 if !is_full => "POST",
                _ if existing.is_empty() => "POST",
                4..6 => "PUT",
                6..8 => "MERGE",
                _ => "DELETE",
            };
            self.last_number += 1;
            let row = match method {
                "POST" => format!("r{:07}", self.last_number),
                _ => existing[self.random.usize(..existing.len())].clone(),
            };
            let before = self.rows.get(&row).copied();
            let after = (method != "DELETE").then_some(self.last_number);
            changes.push(Change { row, before, after, method });
        }
        changes
    }

    fn write(&mut self, client: &mut Client<'_>, count: usize) -> Result<(), String> {
        let changes = self.changes(count);
        let front_end = self.random.usize(..FRONT_END_COUNT);
        let attempt = Attempt { floor: client.ground.tally.latest(), changes };
        let request = self.request(&attempt.changes);
        let began = client.ground.now();
        let versions = match client.table(front_end, &request) {
            Reply::NotDone => return Ok(()),
            Reply::Unknown => None,
            Reply::Heard(response) => match acknowledged(&response, attempt.changes.len())? {
                Told::Written(versions) => Some(versions),
                Told::Unknown => None,
                Told::NotDone => return Ok(()),
            },
        };
        let Some(versions) = versions else {
            for change in &attempt.changes {
                self.rows.remove(&change.row);
            }
            self.open.push(attempt);
            return Ok(());
        };
        client.ground.acknowledged(front_end, began);
        let version = versions.iter().copied().flatten().next();
        if versions.iter().flatten().any(|other| Some(*other) != version) {
            return Err(format!("a batch with several versions: {versions:?}"));
        }
        if let Some(version) = version {
            client.ground.tally.note(version, attempt.floor)?;
        }
        self.counts.writes += 1;
        self.counts.batches += u64::from(count > 1);
        for (change, version) in attempt.changes.iter().zip(versions) {
            match (change.after, version) {
                (Some(number), Some(version)) => {
                    self.rows.insert(change.row.clone(), (number, version));
                }
                (Some(_), None) => return Err(format!("an answer without ETag for {change:?}")),
                (None, _) => {
                    self.rows.remove(&change.row);
                    self.deleted.push(change.row.clone());
                }
            }
        }
        // At once, and through the other front end: nobody may be behind.
        if self.random.u32(..3) == 0 {
            let row = attempt.changes[0].row.clone();
            return self.look(client, (front_end + 1) % FRONT_END_COUNT, &row);
        }
        Ok(())
    }

    fn request(&self, changes: &[Change]) -> Request {
        let partition = self.partition();
        let mut batch = Batch::new();
        for change in changes {
            let path = entity_path(TABLE, &partition, &change.row);
            let members = change.after.map(|number| format!("\"n\":{number}"));
            let etag = change.before.map_or_else(|| "*".to_owned(), |(_, version)| etag_of(version));
            // A merge takes whatever is there.
            let condition = if change.method == "MERGE" { "*" } else { &etag };
            let (target, headers, body) = match change.method {
                "POST" => {
                    let json = entity_json(&partition, &change.row, &members.unwrap_or_default());
                    (format!("/{TABLE}"), ("Prefer", "return-no-content"), Some(json))
                }
                _ => (path, ("If-Match", condition), members.map(|members| format!("{{{members}}}"))),
            };
            if changes.len() == 1 {
                let request = Request::new(change.method, &target).header(headers.0, headers.1);
                return match body {
                    Some(body) => request.json(&body),
                    None => request,
                };
            }
            batch = batch.operation(change.method, &target, &[headers], body.as_deref());
        }
        batch.request()
    }

    fn read(&mut self, client: &mut Client<'_>) -> Result<(), String> {
        let front_end = self.random.usize(..FRONT_END_COUNT);
        let is_gone = self.random.u32(..4) == 0;
        let row = match (is_gone, self.deleted.len(), self.rows.len()) {
            (true, 1.., _) => self.deleted[self.random.usize(..self.deleted.len())].clone(),
            (_, _, 1..) => {
                let at = self.random.usize(..self.rows.len());
                self.rows.keys().nth(at).cloned().unwrap_or_default()
            }
            _ => return Ok(()),
        };
        self.look(client, front_end, &row)
    }

    /// Reads one row, which must be as it is known.
    fn look(&mut self, client: &mut Client<'_>, front_end: usize, row: &str) -> Result<(), String> {
        let path = entity_path(TABLE, &self.partition(), row);
        let Reply::Heard(response) = client.table(front_end, &Request::get(&path)) else { return Ok(()) };
        client.ground.read(front_end);
        self.counts.reads += 1;
        let found = match response.status {
            404 if response.error_code() == "ResourceNotFound" => None,
            200 => {
                let json =
                    serde_json::from_slice(&response.body).map_err(|error| format!("{path}: {error}"))?;
                let (_, row) = entity(json).map_err(|failure| format!("{path}: {failure}"))?;
                Some(of_row(&row))
            }
            _ => return Err(format!("{path} is answered with {response:?}")),
        };
        let known = self.rows.get(row).copied();
        match found == known {
            true => Ok(()),
            false => Err(format!(
                "{row} is {known:?} (number, version), but a read through front end {front_end} finds {found:?}"
            )),
        }
    }

    fn create_or_drop_table(&mut self, client: &mut Client<'_>) -> Result<(), String> {
        let front_end = self.random.usize(..FRONT_END_COUNT);
        let mine: Vec<&String> = self
            .tables
            .iter()
            .filter(|(_, is_there)| **is_there == Some(true))
            .map(|(name, _)| name)
            .collect();
        let drops = mine.len() > 3;
        let (name, request) = if drops {
            let name = mine[self.random.usize(..mine.len())].clone();
            let request = Request::delete(&format!("/Tables('{name}')"));
            (name, request)
        } else {
            self.last_number += 1;
            let name = format!("w{}t{}", self.number, self.last_number);
            let request = Request::post("/Tables").json(&format!("{{\"TableName\":\"{name}\"}}"));
            (name, request)
        };
        let began = client.ground.now();
        match client.table(front_end, &request) {
            Reply::NotDone => return Ok(()),
            Reply::Unknown => drop(self.tables.insert(name, None)),
            Reply::Heard(response) if response.status == if drops { 204 } else { 201 } => {
                client.ground.acknowledged(front_end, began);
                self.counts.tables += 1;
                self.tables.insert(name.clone(), Some(!drops));
                return self.use_table(client, (front_end + 1) % FRONT_END_COUNT, &name, !drops);
            }
            Reply::Heard(response) => return Err(format!("{name}: {response:?}")),
        }
        Ok(())
    }

    /// Another front end knows at once of a new table, because nobody remembers that a name is not there; and of one
    /// that is gone, because every statement asks for the table it is about.
    fn use_table(
        &mut self,
        client: &mut Client<'_>,
        front_end: usize,
        table: &str,
        is_there: bool,
    ) -> Result<(), String> {
        let (request, expected) = match (is_there, self.random.bool()) {
            (true, _) => (Request::post(&format!("/{table}")).json(&entity_json("p", "r", "\"n\":1")), 201),
            (false, true) => {
                (Request::post(&format!("/{table}")).json(&entity_json("p", "s", "\"n\":1")), 404)
            }
            (false, false) => (Request::get(&format!("/{table}()")), 404),
        };
        match client.table(front_end, &request) {
            Reply::Heard(response) if response.status == expected => Ok(()),
            Reply::Heard(response) if is_there => Err(format!("a new table cannot be used: {response:?}")),
            Reply::Heard(response) => Err(format!("BACK: a dropped table can be used: {response:?}")),
            Reply::NotDone | Reply::Unknown => Ok(()),
        }
    }

    /// Compares everything with what all front ends say. `tables`: all that there are, by front end.
    pub fn check(&mut self, client: &mut Client<'_>, tables: &[Vec<String>]) -> Result<(), String> {
        for (front_end, tables) in tables.iter().enumerate() {
            let mut ask = |request: &Request| client.read_surely(front_end, request);
            let found = contents::rows_through(&mut ask, TABLE, Some(&self.partition()));
            let found = found.map_err(|failure| format!("writer {}: {failure}", self.number))?;
            self.compare(&found)
                .map_err(|what| format!("writer {} through front end {front_end}: {what}", self.number))?;
            self.compare_tables(tables)?;
        }
        Ok(())
    }

    fn compare(&mut self, found: &Rows) -> Result<(), String> {
        let mut found: BTreeMap<String, Row> =
            found.iter().map(|((_, row), stored)| (row.clone(), of_row(stored))).collect();
        let open = std::mem::take(&mut self.open);
        for attempt in open {
            match attempt.settle(&found)? {
                Some(version) => {
                    self.counts.applied += 1;
                    for change in attempt.changes {
                        match change.after {
                            Some(number) => {
                                self.rows.insert(change.row, (number, version));
                            }
                            None => self.deleted.push(change.row),
                        }
                    }
                }
                None => {
                    // It may still happen, so its rows stay out of the comparison.
                    found.retain(|row, _| !attempt.changes.iter().any(|change| change.row == *row));
                    self.open.push(attempt);
                }
            }
        }
        if let Some((row, known)) = self.rows.iter().find(|(row, known)| found.get(*row) != Some(*known)) {
            return Err(format!("LOST: {row} was acknowledged as {known:?}, and is {:?}", found.get(row)));
        }
        match found.iter().find(|(row, _)| !self.rows.contains_key(*row)) {
            None => Ok(()),
            Some((row, found)) if self.deleted.contains(row) => {
                Err(format!("BACK: {row} was deleted, and is {found:?}"))
            }
            Some((row, found)) => Err(format!("{row} should not exist, and is {found:?}")),
        }
    }

    fn compare_tables(&self, found: &[String]) -> Result<(), String> {
        for (name, is_there) in &self.tables {
            let is_found = found.contains(name);
            match is_there {
                Some(expected) if *expected != is_found => {
                    return Err(format!("table {name}: expected {expected}, found {is_found}"));
                }
                _ => {}
            }
        }
        let prefix = format!("w{}t", self.number);
        match found.iter().find(|name| name.starts_with(&prefix) && !self.tables.contains_key(*name)) {
            Some(name) => Err(format!("table {name} should not exist")),
            None => Ok(()),
        }
    }

    /// How many rows it knows, and how many requests have no known outcome.
    pub fn sizes(&self) -> (usize, usize) {
        (self.rows.len(), self.open.len())
    }
}

impl Attempt {
    /// The version if it happened; `None` if nothing of it has.
    fn settle(&self, found: &BTreeMap<String, Row>) -> Result<Option<Version>, String> {
        let is = |change: &Change| found.get(&change.row).copied();
        if self.changes.iter().all(|change| is(change) == change.before) {
            return Ok(None);
        }
        let numbers_fit =
            self.changes.iter().all(|change| is(change).map(|(number, _)| number) == change.after);
        let mut versions: Vec<Version> =
            self.changes.iter().filter_map(is).map(|(_, version)| version).collect();
        versions.dedup();
        match (numbers_fit, &versions[..]) {
            // Deletions alone leave no version.
            (true, []) => Ok(Some(0)),
            (true, [version]) if *version > self.floor => Ok(Some(*version)),
            _ => {
                let now: Vec<_> = self.changes.iter().map(is).collect();
                Err(format!("TORN: {self:?} is neither done nor not done; its rows are {now:?}"))
            }
        }
    }
}

fn of_row(row: &crate::ledger::Row) -> Row {
    let number = row.properties.get("n").and_then(serde_json::Value::as_u64);
    (number.unwrap_or_default(), row.version.unwrap_or_default())
}

enum Told {
    /// By operation. A deletion has none.
    Written(Vec<Option<Version>>),
    Unknown,
    NotDone,
}

/// Reads the answer to a write that nothing can refuse.
fn acknowledged(response: &Response, count: usize) -> Result<Told, String> {
    let version = |response: &Response| match response.header("ETag") {
        Some(etag) => version_of(etag).ok_or_else(|| format!("no version in the ETag {etag}")).map(Some),
        None => Ok(None),
    };
    if count == 1 {
        return match response.status {
            204 => Ok(Told::Written(vec![version(response)?])),
            _ => Err(format!("a write that must succeed is answered with {response:?}")),
        };
    }
    if response.status != 202 {
        return Err(format!("a batch that must succeed is answered with {response:?}"));
    }
    let parts = batch_parts(response);
    match &parts[..] {
        [failed] if failed.status == 500 => Ok(Told::Unknown),
        [failed] if failed.status == 503 => Ok(Told::NotDone),
        parts if parts.len() == count && parts.iter().all(|part| part.status == 204) => {
            parts.iter().map(version).collect::<Result<Vec<_>, _>>().map(Told::Written)
        }
        _ => Err(format!("a batch that must succeed is answered with {response:?}")),
    }
}

/// All tables, as a front end lists them.
pub fn list_tables(client: &mut Client<'_>, front_end: usize) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let mut request = Request::get("/Tables");
        if let Some(token) = &next {
            request = request.query("NextTableName", token);
        }
        let response =
            client.read_surely(front_end, &request).map_err(|error| format!("no tables: {error}"))?;
        let body: serde_json::Value =
            serde_json::from_slice(&response.body).map_err(|error| format!("no tables: {error}"))?;
        let listed = body["value"].as_array().cloned().unwrap_or_default();
        names.extend(listed.iter().filter_map(|table| table["TableName"].as_str().map(str::to_owned)));
        match response.header("x-ms-continuation-NextTableName") {
            Some(token) => next = Some(token.to_owned()),
            None => return Ok(names),
        }
    }
}

/// Adds up what all writers did.
pub fn total(writers: &[Writer]) -> Counts {
    writers.iter().fold(Counts::default(), |sum, writer| Counts {
        writes: sum.writes + writer.counts.writes,
        batches: sum.batches + writer.counts.batches,
        reads: sum.reads + writer.counts.reads,
        tables: sum.tables + writer.counts.tables,
        applied: sum.applied + writer.counts.applied,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(row: &str, before: Option<Row>, after: Option<u64>) -> Change {
        Change { row: row.to_owned(), before, after, method: "PUT" }
    }

    #[test]
    fn an_unknown_request_happened_as_a_whole_or_not_at_all() {
        let attempt = Attempt {
            floor: 10,
            changes: vec![
                change("a", Some((1, 5)), Some(2)),
                change("b", None, Some(3)),
                change("c", Some((4, 6)), None),
            ],
        };
        let found = |rows: &[(&str, Row)]| -> BTreeMap<String, Row> {
            rows.iter().map(|(row, found)| ((*row).to_owned(), *found)).collect()
        };
        assert_eq!(attempt.settle(&found(&[("a", (1, 5)), ("c", (4, 6))])), Ok(None));
        assert_eq!(attempt.settle(&found(&[("a", (2, 11)), ("b", (3, 11))])), Ok(Some(11)));
        assert!(attempt.settle(&found(&[("a", (2, 11)), ("c", (4, 6))])).is_err(), "half");
        assert!(attempt.settle(&found(&[("a", (2, 11)), ("b", (3, 12))])).is_err(), "two versions");
        assert!(attempt.settle(&found(&[("a", (2, 9)), ("b", (3, 9))])).is_err(), "an old version");
    }
}
