//! The clients of a history: each is a thread with a connection of its own that follows its seed and records each
//! request, its answer and their times.
//!
//! The seed fixes the requests but not their timing, so a history can be repeated in kind but not exactly.
//! Leaves to others: judging what was recorded.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use protocol::common::DateTime;
use protocol::table::model::ETag;
use protocol::table::wire::continuation;
use testkit::{
    Batch, Credentials, RawClient, Request, Response, Stopwatch, batch_parts, entity_json, entity_path,
    system_now,
};

use super::checker::Interval;
use super::partition::{Answer, Call, Change, Condition, Operation, ROW_COUNT_MAX, Row, Tag, Verb};
use super::record::Recorded;

/// Long enough for any restart.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(60);
const CONNECT_PAUSE: Duration = Duration::from_millis(5);
/// For one write in this many, the client does not wait for the answer.
const ABANDONED_INTERVAL: u32 = 40;
/// Such a client keeps the connection open for at most this long, so that the server starts on the write.
const ABANDONED_WAIT_US_MAX: u64 = 1500;
const BATCH_CHANGE_COUNT_MAX: usize = 3;

/// What the clients of one history share.
pub struct Ground<'a> {
    pub clock: &'a Stopwatch,
    /// The servers' current addresses: a restart changes them. A client keeps to one server.
    pub addresses: &'a [Mutex<SocketAddr>],
    pub table: &'a str,
    /// The PartitionKeys.
    pub partitions: Vec<String>,
    pub row_count: usize,
    /// The number of the next operation.
    pub next_id: AtomicU32,
    pub finished_count: AtomicUsize,
    /// By partition and row: the ETags that any client has seen, the latest last.
    pub tags: Vec<Mutex<Vec<Tag>>>,
}

impl Ground<'_> {
    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn tags(&self, partition: usize, row: usize) -> &Mutex<Vec<Tag>> {
        &self.tags[partition * ROW_COUNT_MAX + row]
    }

    fn saw(&self, partition: usize, row: usize, tag: Tag) {
        self.tags(partition, row).lock().unwrap_or_else(PoisonError::into_inner).push(tag);
    }
}

/// What a client did, by partition, and the answers that say nothing about the data.
#[derive(Default)]
pub struct Diary {
    pub recorded: Vec<(usize, Recorded)>,
    pub busy_count: usize,
    pub internal_error_count: usize,
}

pub struct Client<'a> {
    pub ground: &'a Ground<'a>,
    pub number: usize,
    pub random: Rng,
    pub diary: Diary,
    connection: Option<RawClient>,
}

/// The result of sending a request.
enum Reply {
    Heard(Response),
    /// The request was sent, at least in part, and no answer came.
    Lost,
}

impl<'a> Client<'a> {
    pub fn new(ground: &'a Ground<'a>, number: usize, random: Rng) -> Client<'a> {
        Client { ground, number, random, diary: Diary::default(), connection: None }
    }

    /// Makes this many calls. An error is an answer that the service never gives.
    pub fn run(&mut self, count: usize) -> Result<(), String> {
        for _ in 0..count {
            let partition = self.random.usize(..self.ground.partitions.len());
            match self.random.u8(..100) {
                0..18 => {
                    let row = self.random.usize(..self.ground.row_count);
                    self.get(partition, row)?;
                }
                18..30 => {
                    let top = self.random.usize(1..=self.ground.row_count);
                    self.scan(partition, top)?;
                }
                30..45 => self.batch(partition)?,
                _ => {
                    let row = self.random.usize(..self.ground.row_count);
                    let change = self.change(partition, row);
                    self.write(partition, vec![change])?;
                }
            }
            self.ground.finished_count.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Reads everything at the end.
    pub fn look_at_everything(&mut self) -> Result<(), String> {
        for partition in 0..self.ground.partitions.len() {
            self.scan(partition, ROW_COUNT_MAX + 1)?;
        }
        Ok(())
    }

    fn batch(&mut self, partition: usize) -> Result<(), String> {
        let mut rows: Vec<usize> = (0..self.ground.row_count).collect();
        self.random.shuffle(&mut rows);
        rows.truncate(self.random.usize(2..=BATCH_CHANGE_COUNT_MAX));
        let changes = rows.into_iter().map(|row| self.change(partition, row)).collect();
        self.write(partition, changes)
    }

    fn change(&mut self, partition: usize, row: usize) -> Change {
        let tag = {
            let tags = self.ground.tags(partition, row).lock().unwrap_or_else(PoisonError::into_inner);
            match self.random.u8(..4) {
                // An old ETag, as a slow client would have.
                0 => tags.get(tags.len().saturating_sub(3)).copied(),
                _ => tags.last().copied(),
            }
        };
        let exactly = tag.map_or(Condition::Any, Condition::Tag);
        let (verb, condition) = match self.random.u8(..20) {
            0..4 => (Verb::Insert, Condition::None),
            4..6 => (Verb::Replace, Condition::None),
            6..8 => (Verb::Merge, Condition::None),
            8..11 => (Verb::Replace, exactly),
            11..14 => (Verb::Merge, exactly),
            14 => (Verb::Replace, Condition::Any),
            15 => (Verb::Merge, Condition::Any),
            16..18 => (Verb::Delete, exactly),
            _ => (Verb::Delete, Condition::Any),
        };
        let sets = [(true, false), (false, true), (true, true)][self.random.usize(..3)];
        Change { row, verb, condition, sets }
    }

    fn write(&mut self, partition: usize, changes: Vec<Change>) -> Result<(), String> {
        let id = self.ground.next_id.fetch_add(1, Ordering::AcqRel);
        let request = self.request(partition, id, &changes);
        let abandoned = self.random.u32(..ABANDONED_INTERVAL) == 0;
        let (invoked, reply, returned) = self.exchange(&request, abandoned)?;
        let answer = match reply {
            Reply::Lost => Answer::Unknown,
            Reply::Heard(response) => match written(&response, &changes)? {
                Outcome::Answer(answer) => answer,
                Outcome::Busy => {
                    self.diary.busy_count += 1;
                    return Ok(());
                }
                Outcome::InternalError => {
                    self.diary.internal_error_count += 1;
                    Answer::Unknown
                }
            },
        };
        if let Answer::Written(tags) = &answer {
            for (change, tag) in changes.iter().zip(tags) {
                if let Some(tag) = tag {
                    self.ground.saw(partition, change.row, *tag);
                }
            }
        }
        self.note(partition, id, Call::Write(changes), answer, invoked, returned);
        Ok(())
    }

    fn get(&mut self, partition: usize, row: usize) -> Result<(), String> {
        let id = self.ground.next_id.fetch_add(1, Ordering::AcqRel);
        let (invoked, reply, returned) = self.exchange(&Request::get(&self.path(partition, row)), false)?;
        // A read without an answer says nothing.
        let Reply::Heard(response) = reply else { return Ok(()) };
        let found = match response.status {
            200 => Some(entity(&json(&response)?)?),
            404 if response.error_code() == "ResourceNotFound" => None,
            _ => return self.unusual(&response),
        };
        if let Some((_, found)) = &found {
            self.ground.saw(partition, row, found.tag);
        }
        let answer = Answer::Found(found.map(|(_, row)| row));
        self.note(partition, id, Call::Get(row), answer, invoked, returned);
        Ok(())
    }

    /// Scans page by page; each page is a read of its own.
    fn scan(&mut self, partition: usize, top: usize) -> Result<(), String> {
        let filter = format!("PartitionKey eq '{}'", self.ground.partitions[partition]);
        let mut next: Option<(String, String)> = None;
        loop {
            let id = self.ground.next_id.fetch_add(1, Ordering::AcqRel);
            let mut request = Request::get(&format!("/{}()", self.ground.table))
                .query("$filter", &filter)
                .query("$top", &top.to_string());
            let mut from = 0;
            if let Some((partition_key, row_key)) = &next {
                request = request.query("NextPartitionKey", partition_key).query("NextRowKey", row_key);
                from = row_number(&continuation::decode(row_key).map_err(|error| error.to_string())?)?;
            }
            let (invoked, reply, returned) = self.exchange(&request, false)?;
            let Reply::Heard(response) = reply else { return Ok(()) };
            if response.status != 200 {
                return self.unusual(&response);
            }
            let value = json(&response)?;
            let entities = value["value"].as_array().ok_or("a page without a value")?;
            let rows = entities.iter().map(entity).collect::<Result<Vec<_>, String>>()?;
            for (at, row) in &rows {
                self.ground.saw(partition, *at, row.tag);
            }
            let header = |name| response.header(name).map(str::to_owned);
            next = header("x-ms-continuation-NextPartitionKey").zip(header("x-ms-continuation-NextRowKey"));
            let resume = match &next {
                Some((_, row_key)) => {
                    let key = continuation::decode(row_key).map_err(|error| error.to_string())?;
                    Some(row_number(&key)?)
                }
                None => None,
            };
            let answer = Answer::Page(rows, resume);
            self.note(partition, id, Call::Page(from), answer, invoked, returned);
            if next.is_none() {
                return Ok(());
            }
        }
    }

    /// Counts an answer to a read that says nothing about the data.
    fn unusual(&mut self, response: &Response) -> Result<(), String> {
        match response.status {
            503 => self.diary.busy_count += 1,
            500 => self.diary.internal_error_count += 1,
            _ => return Err(format!("an answer that no read can have:\n{response:?}")),
        }
        Ok(())
    }

    fn note(&mut self, partition: usize, id: u32, call: Call, answer: Answer, invoked: u64, returned: u64) {
        let returned = (answer != Answer::Unknown).then_some(returned);
        let operation = Operation { id, client: self.number, call, answer };
        self.diary.recorded.push((partition, Interval { operation, invoked, returned }));
    }

    /// Sends the request, and reads the answer unless it is to be abandoned. Returns the reply with the times before
    /// and after.
    fn exchange(&mut self, request: &Request, abandoned: bool) -> Result<(u64, Reply, u64), String> {
        let (mut connection, address) = match self.connection.take() {
            Some(connection) => (connection, self.address()),
            None => self.connect()?,
        };
        let bytes = request.to_bytes(address, &Credentials::emulator(), system_now());
        let invoked = self.ground.now();
        if abandoned {
            // Whether it was sent does not matter: its outcome counts as unknown.
            let _ = connection.send(&bytes);
            std::thread::sleep(Duration::from_micros(self.random.u64(..ABANDONED_WAIT_US_MAX)));
            return Ok((invoked, Reply::Lost, invoked));
        }
        let reply = match connection.exchange(&bytes) {
            Ok(response) => {
                let closes = |value: &str| value.eq_ignore_ascii_case("close");
                if !response.header("Connection").is_some_and(closes) {
                    self.connection = Some(connection);
                }
                Reply::Heard(response)
            }
            Err(_) => Reply::Lost,
        };
        Ok((invoked, reply, self.ground.now()))
    }

    fn address(&self) -> SocketAddr {
        let addresses = self.ground.addresses;
        *addresses[self.number % addresses.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retries, because the server may be restarting.
    fn connect(&self) -> Result<(RawClient, SocketAddr), String> {
        let watch = Stopwatch::start();
        loop {
            let address = self.address();
            match RawClient::connect(address) {
                Ok(connection) => return Ok((connection, address)),
                Err(error) if watch.elapsed() > CONNECT_TIME_MAX => {
                    return Err(format!("no connection for {CONNECT_TIME_MAX:?}: {error}"));
                }
                Err(_) => std::thread::sleep(CONNECT_PAUSE),
            }
        }
    }

    fn path(&self, partition: usize, row: usize) -> String {
        entity_path(self.ground.table, &self.ground.partitions[partition], &row_key(row))
    }

    fn request(&self, partition: usize, id: u32, changes: &[Change]) -> Request {
        let parts: Vec<_> = changes.iter().map(|change| self.part(partition, id, change)).collect();
        if let [(method, target, headers, body)] = &parts[..] {
            let mut request = Request::new(method, target);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            return match body {
                Some(body) => request.json(body),
                None => request,
            };
        }
        let mut batch = Batch::new();
        for (method, target, headers, body) in &parts {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            batch = batch.operation(method, target, &headers, body.as_deref());
        }
        batch.request()
    }

    /// Method, target, headers, body.
    fn part(&self, partition: usize, id: u32, change: &Change) -> Part {
        let mut members = format!("\"w\":{id}");
        for (name, is_set) in [("a", change.sets.0), ("b", change.sets.1)] {
            if is_set {
                members.push_str(&format!(",\"{name}\":{id}"));
            }
        }
        let key = row_key(change.row);
        let path = self.path(partition, change.row);
        let headers = match change.condition {
            Condition::None => Vec::new(),
            Condition::Any => vec![("If-Match", "*".to_owned())],
            Condition::Tag(tag) => vec![("If-Match", etag_text(tag))],
        };
        let body = Some(format!("{{{members}}}"));
        match change.verb {
            Verb::Insert => {
                let body = entity_json(&self.ground.partitions[partition], &key, &members);
                let headers = vec![("Prefer", "return-no-content".to_owned())];
                ("POST", format!("/{}", self.ground.table), headers, Some(body))
            }
            Verb::Replace => ("PUT", path, headers, body),
            Verb::Merge => ("MERGE", path, headers, body),
            Verb::Delete => ("DELETE", path, headers, None),
        }
    }
}

type Part = (&'static str, String, Vec<(&'static str, String)>, Option<String>);

enum Outcome {
    Answer(Answer),
    /// The write did not happen.
    Busy,
    /// The write may or may not have happened.
    InternalError,
}

/// Reads the answer to a write.
fn written(response: &Response, changes: &[Change]) -> Result<Outcome, String> {
    let strange = |response: &Response| Err(format!("an answer that no write can have:\n{response:?}"));
    if changes.len() == 1 {
        return match response.status {
            503 => Ok(Outcome::Busy),
            500 => Ok(Outcome::InternalError),
            204 => Ok(Outcome::Answer(Answer::Written(vec![etag_of(response)?]))),
            status @ (404 | 409 | 412) if response.error_code() != "TableNotFound" => {
                Ok(Outcome::Answer(Answer::Refused { change: 0, status }))
            }
            _ => strange(response),
        };
    }
    match response.status {
        503 => return Ok(Outcome::Busy),
        500 => return Ok(Outcome::InternalError),
        202 => {}
        _ => return strange(response),
    }
    let parts = batch_parts(response);
    match &parts[..] {
        [failed] if failed.status >= 400 => match failed.status {
            503 => Ok(Outcome::Busy),
            500 => Ok(Outcome::InternalError),
            status @ (404 | 409 | 412) if failed.error_code() != "TableNotFound" => {
                let message = failed.error_message();
                let index = message.split_once(':').and_then(|(index, _)| index.parse::<usize>().ok());
                match index.filter(|index| *index < changes.len()) {
                    Some(change) => Ok(Outcome::Answer(Answer::Refused { change, status })),
                    None => strange(response),
                }
            }
            _ => strange(response),
        },
        parts if parts.len() == changes.len() && parts.iter().all(|part| part.status == 204) => {
            let tags = parts.iter().map(etag_of).collect::<Result<Vec<_>, String>>()?;
            Ok(Outcome::Answer(Answer::Written(tags)))
        }
        _ => strange(response),
    }
}

fn etag_of(response: &Response) -> Result<Option<Tag>, String> {
    response.header("ETag").map(parse_etag).transpose()
}

fn parse_etag(text: &str) -> Result<Tag, String> {
    match ETag::parse(text) {
        Ok(ETag::Exactly(timestamp)) => Ok(timestamp.ticks()),
        _ => Err(format!("{text} is not an entity's ETag")),
    }
}

fn etag_text(tag: Tag) -> String {
    let mut text = Vec::new();
    ETag::write(&DateTime::from_ticks(tag).text(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn row_key(row: usize) -> String {
    format!("r{row}")
}

fn row_number(key: &str) -> Result<usize, String> {
    key.strip_prefix('r')
        .and_then(|number| number.parse().ok())
        .filter(|row| *row < ROW_COUNT_MAX)
        .ok_or_else(|| format!("{key:?} is not one of our rows"))
}

fn json(response: &Response) -> Result<serde_json::Value, String> {
    serde_json::from_slice(&response.body).map_err(|error| format!("not JSON ({error}):\n{response:?}"))
}

/// An entity's row number, and the row.
fn entity(value: &serde_json::Value) -> Result<(usize, Row), String> {
    let text = |name: &str| value[name].as_str().ok_or_else(|| format!("no {name} in {value}"));
    let number = |name: &str| value[name].as_u64().and_then(|number| u32::try_from(number).ok());
    let tag = parse_etag(text("odata.etag")?)?;
    if DateTime::parse(text("Timestamp")?).map(DateTime::ticks) != Some(tag) {
        return Err(format!("ETag and Timestamp differ in {value}"));
    }
    let writer = number("w").ok_or_else(|| format!("no writer in {value}"))?;
    Ok((row_number(text("RowKey")?)?, Row { tag, writer, a: number("a"), b: number("b") }))
}
