//! Messages over all front ends: some clients put, others take and delete, and a ledger knows what must come out.
//!
//! Every acknowledged message comes until its deletion was acknowledged, and never again after that. Nobody gets a
//! message that another client holds.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use testkit::{Message, Request, Stopwatch, messages};

use super::ground::{Client, FRONT_END_COUNT, Ground, Reply, lock};
use crate::queue::door;
use crate::queue::event::Handle;

pub const QUEUE: &str = "scale-queue";
const HIDE_S: u64 = 8;
const HIDE_US: u64 = HIDE_S * 1_000_000;
/// How much earlier than it should a message may come back: the time is rounded on the wire.
const SLACK_US: u64 = 100_000;
const BACKLOG_MAX: usize = 300;
const PAUSE_MS_MAX: u64 = 15;
const TAKEN_AT_ONCE: usize = 8;

#[derive(Default)]
pub struct Messages {
    ledger: Mutex<Ledger>,
    number: AtomicU64,
}

#[derive(Default)]
struct Ledger {
    /// By text.
    known: HashMap<String, State>,
    never: HashSet<String>,
    deleted: HashSet<String>,
    counts: Counts,
}

#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub puts: u64,
    pub takes: u64,
    pub deletes: u64,
    pub drained: u64,
}

/// A message that was put, perhaps, and whose deletion was not acknowledged.
#[derive(Clone, Copy, Default)]
struct State {
    is_put: bool,
    may_be_deleted: bool,
    /// When the answer that hid it was asked for; 0 if nobody holds it.
    taken: u64,
}

impl Messages {
    pub fn put(&self, ground: &Ground, seed: u64) {
        let (mut client, mut random) = (Client::new(ground), Rng::with_seed(seed));
        while !ground.is_stopping() {
            std::thread::sleep(Duration::from_millis(random.u64(..PAUSE_MS_MAX)));
            if lock(&self.ledger).known.len() > BACKLOG_MAX {
                continue;
            }
            let text = format!("m{}", self.number.fetch_add(1, Ordering::SeqCst));
            // Known before it is sent: a taker may be faster than the answer.
            lock(&self.ledger).known.insert(text.clone(), State::default());
            let front_end = random.usize(..FRONT_END_COUNT);
            let began = ground.now();
            let reply = client.queue(front_end, &door::put(QUEUE, &text, 0, None));
            let mut ledger = lock(&self.ledger);
            match reply {
                Reply::Heard(response) if response.status == 201 => {
                    ledger.counts.puts += 1;
                    if let Some(state) = ledger.known.get_mut(&text) {
                        state.is_put = true;
                    }
                    drop(ledger);
                    ground.acknowledged(front_end, began);
                }
                Reply::Unknown => {}
                Reply::NotDone => {
                    ledger.known.remove(&text);
                    ledger.never.insert(text);
                }
                Reply::Heard(response) => ground.broke(format!("{text} is not put: {response:?}")),
            }
        }
    }

    pub fn take(&self, ground: &Ground, seed: u64) {
        let (mut client, mut random) = (Client::new(ground), Rng::with_seed(seed));
        while !ground.is_stopping() {
            std::thread::sleep(Duration::from_millis(random.u64(..PAUSE_MS_MAX)));
            if let Err(what) = self.take_some(&mut client, random.usize(..FRONT_END_COUNT)) {
                ground.broke(what);
            }
        }
    }

    /// Takes some, and deletes them through the other front end. Returns how many there were; `None` without an answer.
    fn take_some(&self, client: &mut Client<'_>, front_end: usize) -> Result<Option<usize>, String> {
        let began = client.ground.now();
        // Those whose deletion was acknowledged before the question.
        let gone = lock(&self.ledger).deleted.clone();
        let request = door::get(QUEUE, TAKEN_AT_ONCE, HIDE_S);
        let taken = match client.queue(front_end, &request) {
            Reply::Heard(response) if response.status == 200 => messages(&response),
            Reply::Heard(response) => return Err(format!("no messages: {response:?}")),
            Reply::NotDone | Reply::Unknown => return Ok(None),
        };
        let now = client.ground.now();
        if !taken.is_empty() {
            client.ground.acknowledged(front_end, began);
        }
        for message in &taken {
            self.note_taken(message, &gone, (began, now))?;
        }
        for message in &taken {
            self.delete(client, (front_end + 1) % FRONT_END_COUNT, message, began)?;
        }
        Ok(Some(taken.len()))
    }

    fn note_taken(
        &self,
        message: &Message,
        gone: &HashSet<String>,
        (began, now): (u64, u64),
    ) -> Result<(), String> {
        let mut ledger = lock(&self.ledger);
        let text = &message.text;
        if gone.contains(text) {
            return Err(format!("BACK: {text} was deleted, and is delivered again"));
        }
        if ledger.never.contains(text) {
            return Err(format!("{text} was refused, and is delivered"));
        }
        ledger.counts.takes += 1;
        let Some(state) = ledger.known.get_mut(text) else {
            // Its deletion was acknowledged while this answer was under way, or nobody put it.
            return if ledger.deleted.contains(text) { Ok(()) } else { Err(format!("nobody put {text}")) };
        };
        if state.taken > 0 && now + SLACK_US < state.taken + HIDE_US {
            return Err(format!("{text} was delivered twice within {HIDE_S} s"));
        }
        state.taken = began;
        Ok(())
    }

    /// `taken`: when it was asked for. Who is late may find that another client has it.
    fn delete(
        &self,
        client: &mut Client<'_>,
        front_end: usize,
        message: &Message,
        taken: u64,
    ) -> Result<(), String> {
        let handle = Handle { id: message.id.clone(), receipt: message.receipt.clone() };
        let began = client.ground.now();
        let reply = client.queue(front_end, &door::delete(QUEUE, &handle));
        let now = client.ground.now();
        let mut ledger = lock(&self.ledger);
        let state = ledger.known.get(&message.text).copied().unwrap_or_default();
        match reply {
            Reply::Heard(response) if response.status == 204 => {
                ledger.counts.deletes += 1;
                ledger.known.remove(&message.text);
                ledger.deleted.insert(message.text.clone());
                drop(ledger);
                client.ground.acknowledged(front_end, began);
            }
            // Somebody else has it by now, or a deletion without an answer has happened.
            Reply::Heard(response) if response.status == 404 => {
                let is_late = now + SLACK_US > taken + HIDE_US;
                if !is_late && !state.may_be_deleted {
                    return Err(format!(
                        "LOST: {} cannot be deleted by its holder: {response:?}",
                        message.text
                    ));
                }
            }
            Reply::Heard(response) => return Err(format!("{} is not deleted: {response:?}", message.text)),
            Reply::NotDone => {}
            Reply::Unknown => {
                if let Some(state) = ledger.known.get_mut(&message.text) {
                    state.may_be_deleted = true;
                }
            }
        }
        Ok(())
    }

    /// Takes everything out. All that was put and not deleted must come.
    pub fn drain(&self, ground: &Ground) -> Result<(), String> {
        const EMPTY_COUNT: usize = 4;
        const TIMEOUT: Duration = Duration::from_secs(180);
        // By then nobody holds any.
        std::thread::sleep(Duration::from_secs(HIDE_S + 1));
        let mut client = Client::new(ground);
        let (mut empty, mut front_end) = (0, 0);
        let watch = Stopwatch::start();
        while empty < EMPTY_COUNT {
            if watch.elapsed() > TIMEOUT {
                return Err(format!("the queue is not empty after {TIMEOUT:?}"));
            }
            front_end = (front_end + 1) % FRONT_END_COUNT;
            match self.take_some(&mut client, front_end)? {
                Some(0) => empty += 1,
                Some(count) => {
                    empty = 0;
                    lock(&self.ledger).counts.drained += count as u64;
                }
                None => empty = 0,
            }
        }
        let mut ledger = lock(&self.ledger);
        let lost = ledger.known.iter().find(|(_, state)| state.is_put && !state.may_be_deleted);
        if let Some((text, _)) = lost {
            return Err(format!("LOST: the message {text} was acknowledged and never deleted"));
        }
        // The queue is empty. Whatever had no answer is not judged further, except that a put may still appear.
        ledger.known.retain(|_, state| !state.is_put);
        Ok(())
    }

    pub fn counts(&self) -> Counts {
        lock(&self.ledger).counts
    }
}

pub fn create(client: &mut Client<'_>) -> Result<(), String> {
    match client.queue(0, &Request::put(&format!("/{QUEUE}"))) {
        Reply::Heard(response) if response.status == 201 => Ok(()),
        Reply::Heard(response) => Err(format!("no queue: {response:?}")),
        Reply::NotDone | Reply::Unknown => Err("no queue: the front end does not answer".to_owned()),
    }
}
