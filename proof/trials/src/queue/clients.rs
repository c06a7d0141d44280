//! Clients that put, take, update, delete, peek, count and clear at random, and record everything they did.
//!
//! Promises: a client has at most one operation under way. What a client does depends only on its seed and the answers.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use testkit::{Request, Response, Stopwatch, entity_json, entity_path, messages};

use super::door::{self, Addresses, Door};
use super::event::{Event, Handle, NEVER, Seen, Time, Told, What};

/// The table of the entities that are written together with a message.
pub const OUTBOX_TABLE: &str = "Outbox";
/// A queue with more messages than about this is rather emptied than filled.
const BACKLOG_MAX: u64 = 60;
/// So many messages a client remembers as its own.
const HELD_COUNT_MAX: usize = 12;
const SECOND: Time = 1_000_000;

/// What the clients of a run share.
pub struct Ground<'a> {
    pub clock: &'a Stopwatch,
    pub addresses: Mutex<Addresses>,
    pub queues: Vec<String>,
    /// Before every text, so that no other run has the same.
    pub prefix: String,
    /// Set before the server is stopped. From then on a broken connection is expected.
    pub stopping: AtomicBool,
    pub operation_count: AtomicU64,
    /// About how many messages there are.
    pub backlog: AtomicU64,
    /// Handles that any client has seen, to be tried by others.
    pub seen: Mutex<Vec<(usize, Handle)>>,
    /// One operation in so many is not waited for; 0 for none.
    pub abandon_interval: u32,
    /// One operation in so many is a clear; 0 for none.
    pub clear_interval: u32,
}

pub struct Client<'a> {
    ground: &'a Ground<'a>,
    number: usize,
    random: Rng,
    door: Door,
    next_text: u64,
    /// Messages that it took or put, with their queues.
    held: Vec<(usize, Handle)>,
    pub events: Vec<(usize, Event)>,
    /// Puts through the outbox without an answer: queue and text.
    pub open_outbox: Option<(usize, String)>,
}

/// Why a client stopped, if no promise was broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Done,
    /// The server stopped or was killed.
    Cut,
}

/// An answer, or that there was none.
enum Answer {
    Given(Response),
    /// The client did not wait for it.
    Abandoned,
    /// The server is being stopped.
    Cut,
}

impl Ground<'_> {
    pub fn now(&self) -> Time {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(NEVER)
    }

    pub fn addresses(&self) -> Addresses {
        *self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Client<'a> {
    pub fn new(ground: &'a Ground<'a>, number: usize, random: Rng) -> Client<'a> {
        let door = Door::new(ground.addresses());
        let (held, events) = (Vec::new(), Vec::new());
        Client { ground, number, random, door, next_text: 0, held, events, open_outbox: None }
    }

    /// Goes on with the server that is there now.
    pub fn reconnect(&mut self) {
        self.door = Door::new(self.ground.addresses());
    }

    /// Makes this many operations, unless the server stops first. After a cut it goes on with the next server, if it is
    /// to survive.
    pub fn run(&mut self, operation_count: u64, survives: bool) -> Result<End, String> {
        for _ in 0..operation_count {
            if self.step()? == End::Done {
                continue;
            }
            if !survives {
                return Ok(End::Cut);
            }
            // The next server has other ports.
            let old = self.door.addresses();
            while self.ground.addresses() == old {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            self.reconnect();
        }
        Ok(End::Done)
    }

    fn step(&mut self) -> Result<End, String> {
        let queue = self.random.usize(..self.ground.queues.len());
        if self.ground.clear_interval > 0 && self.random.u32(..self.ground.clear_interval) == 0 {
            return self.clear(queue);
        }
        let is_full = self.ground.backlog.load(Ordering::Relaxed) > BACKLOG_MAX;
        match self.random.u32(..100) {
            0..26 if !is_full => self.put(queue),
            26..30 if !is_full => self.put_through_outbox(queue),
            0..56 => self.get(queue),
            56..80 => self.delete_held(queue),
            80..89 => self.update_held(queue),
            89..93 => self.try_any(queue),
            93..97 => self.peek(queue, 32),
            _ => self.count(queue),
        }
    }

    fn put(&mut self, queue: usize) -> Result<End, String> {
        let text = self.new_text();
        let hide_s = if self.random.u8(..8) == 0 { 1 } else { 0 };
        let live_s = match self.random.u8(..12) {
            0 => Some(hide_s + self.random.u64(1..4)),
            1..4 => None,
            _ => Some(7 * 24 * 3600),
        };
        let request = door::put(&self.ground.queues[queue], &text, hide_s, live_s);
        let live = live_s.map(|seconds| seconds * SECOND);
        let (hide, told) = (hide_s * SECOND, Told::Unknown);
        let event = self.begin(What::Put { text, hide, live, told });
        self.exchange(queue, event, &request, |client, event, response| {
            let handle = put_in(response)?;
            client.ground.backlog.fetch_add(1, Ordering::Relaxed);
            client.remember(queue, &handle, 4);
            let What::Put { told, .. } = &mut event.what else { return Ok(()) };
            *told = Told::Done(Some(handle));
            Ok(())
        })
    }

    /// Writes an entity named like the message, and puts the message, in one step.
    fn put_through_outbox(&mut self, queue: usize) -> Result<End, String> {
        let text = self.new_text();
        let name = &self.ground.queues[queue];
        let entity = entity_json(name, &text, "\"n\":1");
        let request = Request::post(&format!("/{OUTBOX_TABLE}")).json(&entity);
        let request = door::outbox(request, name, &text);
        let live = Some(7 * 24 * 3600 * SECOND);
        let event = self.begin(What::Put { text: text.clone(), hide: 0, live, told: Told::Unknown });
        let mut event = event;
        match self.door.table(&request) {
            Ok(response) if response.status == 201 => {
                event.ended = self.ground.now();
                if let What::Put { told, .. } = &mut event.what {
                    *told = Told::Done(None);
                }
                self.ground.backlog.fetch_add(1, Ordering::Relaxed);
                self.events.push((queue, event));
                Ok(End::Done)
            }
            Ok(response) if response.status < 500 => Err(self.strange(&event, &response)),
            outcome => {
                self.open_outbox = Some((queue, text));
                self.events.push((queue, event.clone()));
                self.cut(&event, outcome.err())
            }
        }
    }

    /// Whether the entity of a put through the outbox is there.
    pub fn has_entity(door: &mut Door, queue: &str, text: &str) -> Result<bool, String> {
        let path = entity_path(OUTBOX_TABLE, queue, text);
        match door.table(&Request::get(&path)) {
            Ok(response) if response.status == 200 => Ok(true),
            Ok(response) if response.status == 404 => Ok(false),
            other => Err(format!("the entity of {text:?} cannot be read: {other:?}")),
        }
    }

    pub fn get(&mut self, queue: usize) -> Result<End, String> {
        let count_max = match self.random.u8(..10) {
            0 => 32,
            1..5 => self.random.usize(2..=5),
            _ => 1,
        };
        let hide_s = self.random.u64(1..=2);
        self.get_some(queue, count_max, hide_s).map(|(end, _)| end)
    }

    /// Takes messages. Returns how many, too.
    pub fn get_some(&mut self, queue: usize, count_max: usize, hide_s: u64) -> Result<(End, usize), String> {
        let request = door::get(&self.ground.queues[queue], count_max, hide_s);
        let event = self.begin(What::Get { count_max, hide: hide_s * SECOND, told: Told::Unknown });
        let mut count = 0;
        let end = self.exchange(queue, event, &request, |client, event, response| {
            let list = list_in(response)?;
            count = list.len();
            for seen in &list {
                client.remember(queue, &seen.handle, 1);
            }
            let What::Get { told, .. } = &mut event.what else { return Ok(()) };
            *told = Told::Done(list);
            Ok(())
        })?;
        Ok((end, count))
    }

    pub fn peek(&mut self, queue: usize, count_max: usize) -> Result<End, String> {
        let request = door::peek(&self.ground.queues[queue], count_max);
        let event = self.begin(What::Peek { count_max, seen: Vec::new() });
        self.exchange(queue, event, &request, |_, event, response| {
            let list = list_in(response)?;
            let What::Peek { seen, .. } = &mut event.what else { return Ok(()) };
            *seen = list;
            Ok(())
        })
    }

    pub fn count(&mut self, queue: usize) -> Result<End, String> {
        let request = door::count(&self.ground.queues[queue]);
        let event = self.begin(What::Count { count: 0 });
        self.exchange(queue, event, &request, |client, event, response| {
            let found = door::count_in(response).filter(|_| response.status == 200);
            let found = found.ok_or_else(|| format!("no count in {response:?}"))?;
            client.ground.backlog.store(found as u64, Ordering::Relaxed);
            let What::Count { count } = &mut event.what else { return Ok(()) };
            *count = found;
            Ok(())
        })
    }

    fn clear(&mut self, queue: usize) -> Result<End, String> {
        let request = door::clear(&self.ground.queues[queue]);
        let event = self.begin(What::Clear { told: Told::Unknown });
        self.exchange(queue, event, &request, |_, event, response| {
            event.what = What::Clear { told: told(response, ())? };
            Ok(())
        })
    }

    fn delete_held(&mut self, queue: usize) -> Result<End, String> {
        if self.held.is_empty() {
            return self.get(queue);
        }
        let (queue, used) = self.held.swap_remove(self.random.usize(..self.held.len()));
        self.delete(queue, used)
    }

    pub fn delete(&mut self, queue: usize, used: Handle) -> Result<End, String> {
        let request = door::delete(&self.ground.queues[queue], &used);
        let event = self.begin(What::Delete { used, told: Told::Unknown });
        self.exchange(queue, event, &request, |client, event, response| {
            let What::Delete { told, .. } = &mut event.what else { return Ok(()) };
            *told = self::told(response, ())?;
            if *told == Told::Done(()) {
                let _ = client
                    .ground
                    .backlog
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
            }
            Ok(())
        })
    }

    fn update_held(&mut self, queue: usize) -> Result<End, String> {
        if self.held.is_empty() {
            return self.get(queue);
        }
        let (queue, used) = self.held.swap_remove(self.random.usize(..self.held.len()));
        self.update(queue, used)
    }

    fn update(&mut self, queue: usize, used: Handle) -> Result<End, String> {
        let text = self.random.bool().then(|| self.new_text());
        let hide_s = self.random.u64(..3);
        let request = door::update(&self.ground.queues[queue], &used, text.as_deref(), hide_s);
        let (hide, told) = (hide_s * SECOND, Told::Unknown);
        let event = self.begin(What::Update { used, text, hide, told });
        self.exchange(queue, event, &request, |client, event, response| {
            let What::Update { used, told, .. } = &mut event.what else { return Ok(()) };
            let receipt = response.header("x-ms-popreceipt").unwrap_or_default().to_owned();
            let handle = Handle { id: used.id.clone(), receipt };
            *told = self::told(response, handle.clone())?;
            if matches!(told, Told::Done(_)) {
                client.remember(queue, &handle, 1);
            }
            Ok(())
        })
    }

    /// Uses a handle that somebody has seen: mostly one that no longer works.
    fn try_any(&mut self, queue: usize) -> Result<End, String> {
        let seen = self.ground.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((queue, used)) = (!seen.is_empty()).then(|| seen[self.random.usize(..seen.len())].clone())
        else {
            drop(seen);
            return self.get(queue);
        };
        drop(seen);
        if self.random.bool() { self.delete(queue, used) } else { self.update(queue, used) }
    }

    /// Keeps one of `share` handles for itself, and shows all to others.
    fn remember(&mut self, queue: usize, handle: &Handle, share: u32) {
        if self.random.u32(..share) == 0 {
            self.held.push((queue, handle.clone()));
            if self.held.len() > HELD_COUNT_MAX {
                self.held.remove(0);
            }
        }
        let mut seen = self.ground.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() > 200 {
            seen.drain(..100);
        }
        seen.push((queue, handle.clone()));
    }

    fn new_text(&mut self) -> String {
        self.next_text += 1;
        format!("{}-{}-{}", self.ground.prefix, self.number, self.next_text)
    }

    fn begin(&mut self, what: What) -> Event {
        Event { began: self.ground.now(), ended: NEVER, what }
    }

    /// Sends a request and records what came of it.
    fn exchange(
        &mut self,
        queue: usize,
        mut event: Event,
        request: &Request,
        understand: impl FnOnce(&mut Client<'a>, &mut Event, &Response) -> Result<(), String>,
    ) -> Result<End, String> {
        let interval = self.ground.abandon_interval;
        let answer = if interval > 0 && self.random.u32(..interval) == 0 {
            match self.door.abandon(request) {
                Ok(()) => Answer::Abandoned,
                Err(error) => self.broken(&event, Some(error))?,
            }
        } else {
            match self.door.queue(request) {
                Ok(response) if response.status >= 500 => {
                    if self.is_stopping() {
                        Answer::Cut
                    } else {
                        return Err(self.strange(&event, &response));
                    }
                }
                Ok(response) => Answer::Given(response),
                Err(error) => self.broken(&event, Some(error))?,
            }
        };
        self.ground.operation_count.fetch_add(1, Ordering::Relaxed);
        let is_look = matches!(event.what, What::Peek { .. } | What::Count { .. });
        match answer {
            Answer::Given(response) => {
                event.ended = self.ground.now();
                if let Err(what) = understand(self, &mut event, &response) {
                    return Err(format!("{what}: the answer to {event:?}"));
                }
                self.events.push((queue, event));
                Ok(End::Done)
            }
            Answer::Abandoned | Answer::Cut => {
                if !is_look {
                    self.events.push((queue, event));
                }
                Ok(if matches!(answer, Answer::Cut) { End::Cut } else { End::Done })
            }
        }
    }

    fn broken(&self, event: &Event, error: Option<io::Error>) -> Result<Answer, String> {
        self.cut(event, error).map(|_| Answer::Cut)
    }

    /// The reason for a broken connection: the server is being stopped, or else a promise is broken.
    fn cut(&self, event: &Event, error: Option<io::Error>) -> Result<End, String> {
        if self.is_stopping() {
            return Ok(End::Cut);
        }
        Err(format!("the connection broke although the server was not being stopped: {error:?} in {event:?}"))
    }

    /// Whether its server is being stopped, or another one has taken its place already.
    fn is_stopping(&self) -> bool {
        self.ground.stopping.load(Ordering::SeqCst) || self.door.addresses() != self.ground.addresses()
    }

    fn strange(&self, event: &Event, response: &Response) -> String {
        format!("{event:?} is answered with {response:?}")
    }
}

/// What a change was told.
fn told<T>(response: &Response, done: T) -> Result<Told<T>, String> {
    match response.status {
        204 => Ok(Told::Done(done)),
        404 if response.header("x-ms-error-code") == Some("MessageNotFound") => Ok(Told::Refused),
        _ => Err(format!("{response:?}")),
    }
}

/// The messages of a list.
fn list_in(response: &Response) -> Result<Vec<Seen>, String> {
    if response.status != 200 {
        return Err(format!("{response:?}"));
    }
    Ok(messages(response).into_iter().map(Seen::new).collect())
}

/// The message that was put.
fn put_in(response: &Response) -> Result<Handle, String> {
    match <[_; 1]>::try_from(messages(response)) {
        Ok([only]) if response.status == 201 => Ok(Seen::new(only).handle),
        _ => Err(format!("{response:?}")),
    }
}
