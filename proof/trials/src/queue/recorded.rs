//! Queue operations while the disk is recorded. Each writer has a queue and a table of its own and does one thing at a
//! time, so what is stored at any moment is what it knows, or that with its one open operation applied.
//!
//! Promises: a writer's queue never has more messages than one peek shows, and hides them for a second at most. Leaves to
//! others: the recording, and the disks (`recording.rs`, `power.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use testkit::{Request, Response, entity_json, messages};

use super::door::{self, Addresses, Door};
use super::event::{Handle, Seen};
use crate::contents;

/// After this long, every message that a writer has hidden is visible.
pub const VISIBLE_AFTER: Duration = Duration::from_millis(1_100);
/// Tables with this prefix belong to these writers.
pub const TABLE_PREFIX: &str = "outbox";
/// With more messages than this, no more are put. One peek shows 32.
const MESSAGE_COUNT_MAX: usize = 24;
const PEEK_COUNT_MAX: usize = 32;
const HIDE_S: u64 = 1;

/// What a writer has stored.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct QueueState {
    pub has_queue: bool,
    /// The dequeue count of each message, by its text: no two have the same.
    pub messages: BTreeMap<String, u32>,
    /// The entities that were written together with a message.
    pub entities: BTreeSet<String>,
}

/// One operation, with the range of the disk's log in which it was open.
#[derive(Clone)]
pub struct QueueEntry {
    pub sent_at: u64,
    /// When its outcome became known; `u64::MAX` until then.
    pub settled_at: u64,
    /// What was stored after it: what was there before, if it was not applied.
    pub after: QueueState,
}

pub struct QueueWriter {
    number: usize,
    random: Rng,
    last_number: u64,
    known: QueueState,
    /// The newest receipts, by text.
    handles: BTreeMap<String, Handle>,
    open: Option<Open>,
    pub history: Vec<QueueEntry>,
}

/// An operation that is under way.
enum Open {
    /// What is stored if it is applied.
    Change(QueueState),
    /// A get of so many messages.
    Get(usize),
}

/// Why a writer stopped.
pub enum Stop {
    /// The connection broke.
    Cut(std::io::Error),
    Broken(String),
}

impl QueueWriter {
    pub fn new(number: usize, seed: u64) -> QueueWriter {
        let mut random = Rng::with_seed(seed ^ (number as u64 + 101).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.u64(..);
        let (known, handles, history) = (QueueState::default(), BTreeMap::new(), Vec::new());
        QueueWriter { number, random, last_number: 0, known, handles, open: None, history }
    }

    /// The request that creates the table of its outbox.
    pub fn create_table(&self) -> Request {
        Request::post("/Tables").json(&format!("{{\"TableName\":\"{}\"}}", table(self.number)))
    }

    /// Makes this many steps. `position` is the current length of the disk's log.
    pub fn run(
        &mut self,
        addresses: Addresses,
        steps: usize,
        position: &dyn Fn() -> u64,
    ) -> Result<(), Stop> {
        let mut door = Door::new(addresses);
        for _ in 0..steps {
            self.step(&mut door, position)?;
        }
        Ok(())
    }

    fn step(&mut self, door: &mut Door, position: &dyn Fn() -> u64) -> Result<(), Stop> {
        let queue = queue(self.number);
        let mut after = self.known.clone();
        if !self.known.has_queue {
            after.has_queue = true;
            let create = Request::put(&format!("/{queue}"));
            return self.change(door, position, after, |door| door.queue(&create), 201).map(|_| ());
        }
        let is_full = self.known.messages.len() >= MESSAGE_COUNT_MAX;
        match self.random.u32(..100) {
            0..30 if !is_full => {
                let (text, hide_s) = (self.new_text(), self.random.u64(..=HIDE_S));
                after.messages.insert(text.clone(), 0);
                let put = door::put(&queue, &text, hide_s, self.random.bool().then_some(3600));
                let response = self.change(door, position, after, |door| door.queue(&put), 201)?;
                if let [message] = &messages(&response)[..] {
                    self.handles.insert(text, Seen::new(message.clone()).handle);
                }
            }
            30..45 if !is_full => {
                let text = self.new_text();
                after.messages.insert(text.clone(), 0);
                after.entities.insert(text.clone());
                let insert =
                    Request::post(&format!("/{}", table(self.number))).json(&entity_json("o", &text, ""));
                let insert = door::outbox(insert, &queue, &text);
                self.change(door, position, after, |door| door.table(&insert), 201)?;
            }
            0..70 => self.get(door, position)?,
            70..84 => {
                let Some((text, handle)) = self.any_handle() else { return self.get(door, position) };
                after.messages.remove(&text);
                let delete = door::delete(&queue, &handle);
                self.change(door, position, after, |door| door.queue(&delete), 204)?;
            }
            84..95 => {
                let Some((text, handle)) = self.any_handle() else { return self.get(door, position) };
                let new_text = if self.random.bool() { self.new_text() } else { text.clone() };
                let count = after.messages.remove(&text).unwrap_or_default();
                after.messages.insert(new_text.clone(), count);
                let hide_s = self.random.u64(..=HIDE_S);
                let given = (new_text != text).then_some(new_text.as_str());
                let update = door::update(&queue, &handle, given, hide_s);
                let response = self.change(door, position, after, |door| door.queue(&update), 204)?;
                let receipt = response.header("x-ms-popreceipt").unwrap_or_default().to_owned();
                self.handles.insert(new_text, Handle { id: handle.id, receipt });
            }
            95..98 => {
                after.messages.clear();
                let clear = door::clear(&queue);
                self.change(door, position, after, |door| door.queue(&clear), 204)?;
                self.handles.clear();
            }
            _ => {
                after.messages.clear();
                after.has_queue = false;
                let delete = Request::delete(&format!("/{queue}"));
                self.change(door, position, after, |door| door.queue(&delete), 204)?;
                self.handles.clear();
            }
        }
        Ok(())
    }

    fn new_text(&mut self) -> String {
        self.last_number += 1;
        format!("w{}-{}", self.number, self.last_number)
    }

    /// Removes the handle: after its use there is another, or none.
    fn any_handle(&mut self) -> Option<(String, Handle)> {
        let count = self.handles.len();
        let text = self.handles.keys().nth(self.random.usize(..count.max(1)))?.clone();
        self.handles.remove_entry(&text)
    }

    /// Sends a change that must succeed.
    fn change(
        &mut self,
        door: &mut Door,
        position: &dyn Fn() -> u64,
        after: QueueState,
        send: impl FnOnce(&mut Door) -> std::io::Result<Response>,
        status: u16,
    ) -> Result<Response, Stop> {
        self.begin(position(), Open::Change(after.clone()));
        let response = send(door).map_err(Stop::Cut)?;
        if response.status != status {
            return Err(Stop::Broken(format!("{after:?} was to come, but the answer is {response:?}")));
        }
        self.settle(after, position());
        Ok(response)
    }

    fn get(&mut self, door: &mut Door, position: &dyn Fn() -> u64) -> Result<(), Stop> {
        let count_max = self.random.usize(1..=5);
        self.begin(position(), Open::Get(count_max));
        let response = door.queue(&door::get(&queue(self.number), count_max, HIDE_S)).map_err(Stop::Cut)?;
        if response.status != 200 {
            return Err(Stop::Broken(format!("a get is answered with {response:?}")));
        }
        let mut after = self.known.clone();
        for seen in messages(&response).into_iter().map(Seen::new) {
            let count = after.messages.get_mut(&seen.text).filter(|count| **count + 1 == seen.dequeue_count);
            let Some(count) = count else {
                return Err(Stop::Broken(format!("{seen:?} was taken, but known is {:?}", self.known)));
            };
            *count = seen.dequeue_count;
            self.handles.insert(seen.text, seen.handle);
        }
        self.settle(after, position());
        Ok(())
    }

    fn begin(&mut self, sent_at: u64, open: Open) {
        self.open = Some(open);
        self.history.push(QueueEntry { sent_at, settled_at: u64::MAX, after: self.known.clone() });
    }

    fn settle(&mut self, after: QueueState, settled_at: u64) {
        self.open = None;
        self.known = after.clone();
        if let Some(last) = self.history.last_mut() {
            *last = QueueEntry { sent_at: last.sent_at, settled_at, after };
        }
    }

    /// Compares what a server holds after a restart, and settles the open operation.
    pub fn compare(&mut self, addresses: Addresses, position: impl FnOnce() -> u64) -> Result<(), String> {
        let found = QueueState::read(&mut Door::new(addresses), self.number)?;
        let fits = match &self.open {
            _ if found == self.known => true,
            None => false,
            Some(Open::Change(after)) => found == *after,
            Some(Open::Get(count_max)) => self.known.is_taken(&found, *count_max),
        };
        if !fits {
            return Err(format!(
                "queue writer {}: {:?} is known, but {found:?} is there",
                self.number, self.known
            ));
        }
        if self.open.is_some() {
            // Receipts that nobody has heard of may be the newest.
            self.handles.clear();
            self.settle(found, position());
        }
        Ok(())
    }
}

impl QueueState {
    pub fn read(door: &mut Door, number: usize) -> Result<QueueState, String> {
        let queue = queue(number);
        let ask = |door: &mut Door, request: &Request| door.queue(request).map_err(|error| error.to_string());
        let peeked = ask(door, &door::peek(&queue, PEEK_COUNT_MAX))?;
        let has_queue = match peeked.status {
            200 => true,
            404 => false,
            _ => return Err(format!("a peek is answered with {peeked:?}")),
        };
        let list = messages(&peeked).into_iter().map(Seen::new);
        let messages: BTreeMap<String, u32> = list.map(|seen| (seen.text, seen.dequeue_count)).collect();
        if has_queue {
            let count = door::count_in(&ask(door, &door::count(&queue))?);
            if count != Some(messages.len()) {
                return Err(format!("the count of {queue} is {count:?}, but {messages:?} are there"));
            }
        }
        let rows = contents::rows_through(&mut |request| door.table(request), &table(number), None);
        let entities = match rows {
            Ok(rows) => rows.into_keys().map(|(_, row)| row).collect(),
            // The power was cut before there was a table.
            Err(contents::ReadFailure::Refused { status: 404, .. }) => BTreeSet::new(),
            Err(failure) => return Err(failure.to_string()),
        };
        Ok(QueueState { has_queue, messages, entities })
    }

    /// Whether `after` can come of taking so many messages.
    fn is_taken(&self, after: &QueueState, count_max: usize) -> bool {
        let raised = |(text, count): (&String, &u32)| after.messages.get(text)?.checked_sub(*count);
        let raised: Option<Vec<u32>> = self.messages.iter().map(raised).collect();
        let is_same = self.has_queue == after.has_queue && self.entities == after.entities;
        is_same
            && self.messages.len() == after.messages.len()
            && raised.is_some_and(|raised| {
                raised.iter().all(|by| *by <= 1) && raised.iter().sum::<u32>() as usize <= count_max
            })
    }
}

fn queue(number: usize) -> String {
    format!("power-{number}")
}

fn table(number: usize) -> String {
    format!("{TABLE_PREFIX}{number}")
}
