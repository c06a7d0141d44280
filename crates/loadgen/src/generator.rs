//! Drives many connections from one thread, in a closed or an open loop.
//!
//! In the closed loop a connection sends its next request as soon as the last one is answered: the load follows the
//! server. In the open loop requests are due at fixed times whatever the server does. Their latency counts from that
//! time, so the wait for a free connection is part of it. A request that finds no free connection within its patience
//! is given up and counted as not sent.
//!
//! Owns: connections, schedule, counts. Judges answers by status only: accepted if the source of the requests accepts
//! the status (2xx by default), refused if it is 503 `ServerBusy`, wrong otherwise; the first wrong answer is kept.
//! Reopens a connection that the server closed; if an answer was due on it, that request counts as broken.
//! Leaves to others: making requests (`sources.rs`) and reading answers (`response.rs`).

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::histogram::Histogram;
use crate::response::{ResponseReader, excerpt};
use crate::{Error, clock};

const POLL_TIME_MAX: Duration = Duration::from_millis(20);
/// After this long without any answer, the run fails.
const SILENCE_MAX: Duration = Duration::from_secs(60);

const REOPEN_COUNT_MAX: u64 = 100_000;

/// Where requests come from.
pub trait Requests {
    /// Writes the next request of this connection into `out` and returns its kind, an index into the tally. `None` when
    /// there are no more.
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize>;

    /// Whether an answer with this status counts as a success.
    fn accepts(&self, status: u16) -> bool {
        status / 100 == 2
    }

    /// The same, for a source that must see the answer to tell.
    fn accepts_answer(&self, status: u16, _answer: &[u8]) -> bool {
        self.accepts(status)
    }

    /// Sees each accepted answer, so that the next request can follow from it. Returns whether the operation is
    /// complete. An operation of several requests is counted once, and its latency ends with the last answer.
    fn answered(&mut self, _connection: usize, _answer: &[u8]) -> bool {
        true
    }
}

/// When requests are sent.
#[derive(Clone, Copy)]
pub enum LoadModel {
    /// As soon as a connection is free.
    Closed,
    /// At a fixed rate.
    Open {
        per_second: f64,
        /// How long a request that is due waits for a free connection.
        patience: Duration,
    },
}

/// The outcomes of one kind of request.
#[derive(Clone, Default)]
pub struct Counts {
    /// Latency of accepted requests, from when they were due.
    pub accepted: Histogram,
    /// Latency of accepted requests, from when they were sent.
    pub accepted_served: Histogram,
    /// Latency of refused requests, from when they were sent.
    pub refused: Histogram,
    pub wrong: u64,
    pub broken: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.accepted.add(&other.accepted);
        self.accepted_served.add(&other.accepted_served);
        self.refused.add(&other.refused);
        self.wrong += other.wrong;
        self.broken += other.broken;
    }
}

/// The outcomes of all requests since the last `take`.
#[derive(Clone, Default)]
pub struct Tally {
    pub kinds: Vec<Counts>,
    /// Requests that were due but found no free connection in time.
    pub not_sent: u64,
    pub reopened: u64,
    pub first_wrong: Option<String>,
    /// The longest time without an answer on any connection.
    pub gap_longest: Duration,
}

impl Tally {
    fn new(kind_count: usize) -> Tally {
        Tally { kinds: vec![Counts::default(); kind_count], ..Tally::default() }
    }

    /// An error unless every request was answered and every answer accepted.
    pub fn only_accepted(&self) -> Result<(), Error> {
        self.nothing_refused()?;
        match self.all().broken {
            0 => Ok(()),
            broken => Err(format!("{broken} requests unanswered").into()),
        }
    }

    /// Like `only_accepted`, but tolerates connections that the server closed without an answer.
    pub(crate) fn nothing_refused(&self) -> Result<(), Error> {
        let all = self.all();
        if let Some(answer) = &self.first_wrong {
            return Err(format!("{} wrong answers, the first:\n{answer}", all.wrong).into());
        }
        match all.refused.total() {
            0 => Ok(()),
            refused => Err(format!("{refused} requests refused").into()),
        }
    }

    pub fn all(&self) -> Counts {
        let mut all = Counts::default();
        self.kinds.iter().for_each(|kind| all.add(kind));
        all
    }
}

struct ClientConnection {
    stream: TcpStream,
    request: Vec<u8>,
    written: usize,
    reader: ResponseReader,
    kind: usize,
    due: Instant,
    sent: Instant,
    busy: bool,
}

struct Schedule {
    start: Instant,
    per_second: f64,
    patience: Duration,
    /// Requests sent or given up so far.
    passed: u64,
}

impl Schedule {
    fn due(&self) -> Instant {
        self.start + Duration::from_secs_f64(self.passed as f64 / self.per_second)
    }
}

pub struct Generator {
    address: SocketAddr,
    poll: Poll,
    events: Events,
    /// The events of this turn, as connection, writable, readable: a copy, because handling an event borrows the
    /// generator.
    ready: Vec<(usize, bool, bool)>,
    connections: Vec<ClientConnection>,
    free: Vec<usize>,
    schedule: Option<Schedule>,
    tally: Tally,
    /// When the last answer came, or the last run started. Detects a silent server.
    last_answer: Instant,
    /// When the last answer came, or the last run started with no request in flight. Measures gaps, which may span
    /// runs.
    last_sign: Instant,
    /// The source has no more requests.
    is_exhausted: bool,
    /// Another thread sets it to end a run early.
    stop: Option<Arc<AtomicBool>>,
}

impl Generator {
    pub fn open(address: SocketAddr, connection_count: usize, kind_count: usize) -> Result<Generator, Error> {
        let poll = Poll::new()?;
        let mut connections = Vec::with_capacity(connection_count);
        for index in 0..connection_count {
            let now = clock::now();
            connections.push(ClientConnection {
                stream: connect(address, &poll, index)?,
                request: Vec::new(),
                written: 0,
                reader: ResponseReader::new(),
                kind: 0,
                due: now,
                sent: now,
                busy: false,
            });
        }
        Ok(Generator {
            address,
            poll,
            events: Events::with_capacity(4096),
            ready: Vec::with_capacity(4096),
            connections,
            free: (0..connection_count).collect(),
            schedule: None,
            tally: Tally::new(kind_count),
            last_answer: clock::now(),
            last_sign: clock::now(),
            is_exhausted: false,
            stop: None,
        })
    }

    /// Makes every run end as soon as the flag is set.
    pub fn stop_with(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    /// When the last answer came, or the last run started with no request in flight.
    pub(crate) fn last_sign(&self) -> Instant {
        self.last_sign
    }

    /// Chooses the loop. An open one starts its schedule now.
    pub fn set_load_model(&mut self, model: LoadModel) {
        self.schedule = match model {
            LoadModel::Closed => None,
            LoadModel::Open { per_second, patience } => {
                Some(Schedule { start: clock::now(), per_second, patience, passed: 0 })
            }
        };
    }

    /// Sends for this long, or until the source is exhausted and every request answered. Returns the time it took.
    pub fn run_for(&mut self, duration: Duration, requests: &mut dyn Requests) -> Result<Duration, Error> {
        let start = clock::now();
        let deadline = start + duration;
        self.last_answer = start;
        if self.free.len() == self.connections.len() {
            self.last_sign = start;
        }
        self.is_exhausted = false;
        loop {
            let now = clock::now();
            let is_done = self.is_exhausted && self.free.len() == self.connections.len();
            if now >= deadline || is_done || self.is_stopped() {
                self.give_up_what_is_late(now);
                return Ok(now.duration_since(start));
            }
            self.send_what_is_due(now, requests)?;
            self.turn(deadline.duration_since(now), requests)?;
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Waits for outstanding answers and starts no new operation.
    pub fn finish(&mut self, requests: &mut dyn Requests) -> Result<(), Error> {
        self.schedule = None;
        self.last_answer = clock::now();
        while self.free.len() < self.connections.len() && !self.is_stopped() {
            self.turn(POLL_TIME_MAX, requests)?;
        }
        Ok(())
    }

    /// The counts since the last `take`, which go on growing.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The counts since the last `take`; they start again at zero.
    pub fn take(&mut self) -> Tally {
        let fresh = Tally::new(self.tally.kinds.len());
        std::mem::replace(&mut self.tally, fresh)
    }

    fn send_what_is_due(&mut self, now: Instant, requests: &mut dyn Requests) -> Result<(), Error> {
        self.give_up_what_is_late(now);
        while !self.is_exhausted
            && let Some(&index) = self.free.last()
        {
            let mut due = now;
            if let Some(schedule) = &mut self.schedule {
                due = schedule.due();
                if due > now {
                    return Ok(());
                }
                schedule.passed += 1;
            }
            self.send(index, due, requests)?;
        }
        Ok(())
    }

    fn give_up_what_is_late(&mut self, now: Instant) {
        let Some(schedule) = &mut self.schedule else { return };
        while schedule.due() + schedule.patience < now {
            schedule.passed += 1;
            self.tally.not_sent += 1;
        }
    }

    fn send(&mut self, index: usize, due: Instant, requests: &mut dyn Requests) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        let Some(kind) = requests.next(index, &mut connection.request) else {
            self.is_exhausted = true;
            return Ok(());
        };
        self.free.pop();
        connection.kind = kind;
        connection.due = due;
        connection.sent = clock::now();
        self.send_request(index)
    }

    /// Sends the connection's request buffer from its start.
    fn send_request(&mut self, index: usize) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        connection.written = 0;
        connection.reader.clear();
        connection.busy = true;
        if connection.write().is_err() {
            // A server may close an idle connection: try once more on a new one.
            self.reopen(index)?;
            let connection = &mut self.connections[index];
            connection.written = 0;
            if connection.write().is_err() {
                self.broken(index)?;
            }
        }
        Ok(())
    }

    fn turn(&mut self, time_max: Duration, requests: &mut dyn Requests) -> Result<(), Error> {
        let mut wait = time_max.min(POLL_TIME_MAX);
        if let Some(schedule) = self.schedule.as_ref().filter(|_| !self.free.is_empty()) {
            wait = wait.min(schedule.due().saturating_duration_since(clock::now()));
        }
        self.poll.poll(&mut self.events, Some(wait)).or_else(|error| match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        })?;
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        ready.extend(
            self.events.iter().map(|event| (event.token().0, event.is_writable(), event.is_readable())),
        );
        for &(index, writable, readable) in &ready {
            if !self.connections[index].busy {
                continue;
            }
            if writable && self.connections[index].write().is_err() {
                // The server may have answered early and closed: the read below finds out.
            }
            if readable {
                self.read(index, requests)?;
            }
        }
        self.ready = ready;
        let silent = clock::now().duration_since(self.last_answer) > SILENCE_MAX;
        if silent && self.free.len() < self.connections.len() {
            return Err(format!("no answer on any connection for {SILENCE_MAX:?}").into());
        }
        Ok(())
    }

    fn read(&mut self, index: usize, requests: &mut dyn Requests) -> Result<(), Error> {
        loop {
            let connection = &mut self.connections[index];
            let count = match connection.stream.read(connection.reader.space()) {
                Ok(0) => return self.broken(index),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.broken(index),
            };
            if let Some(status) = connection.reader.advance(count)? {
                return self.answered(index, status, requests);
            }
        }
    }

    fn answered(&mut self, index: usize, status: u16, requests: &mut dyn Requests) -> Result<(), Error> {
        let now = clock::now();
        self.tally.gap_longest = self.tally.gap_longest.max(now.duration_since(self.last_sign));
        self.last_answer = now;
        self.last_sign = now;
        let connection = &mut self.connections[index];
        let bytes = connection.reader.bytes();
        let counts = &mut self.tally.kinds[connection.kind];
        // A transaction is always answered 202; the status that counts is that of its first part.
        let status = if status == 202 { status_of_part(bytes).unwrap_or(status) } else { status };
        if requests.accepts_answer(status, bytes) {
            if !requests.answered(index, bytes) && requests.next(index, &mut connection.request).is_some() {
                return self.send_request(index);
            }
            counts.accepted.record(now.duration_since(connection.due));
            counts.accepted_served.record(now.duration_since(connection.sent));
        } else if status == 503 && memmem::find(bytes, b"ServerBusy").is_some() {
            counts.refused.record(now.duration_since(connection.sent));
        } else {
            counts.wrong += 1;
            self.tally.first_wrong.get_or_insert_with(|| excerpt(&connection.reader.text()));
        }
        let closes = status / 100 != 2 && says_close(connection.reader.bytes());
        // If the server answered before reading the whole request, the connection cannot be used again.
        let cut_short = connection.written < connection.request.len();
        connection.busy = false;
        self.free.push(index);
        if closes || cut_short { self.reopen(index) } else { Ok(()) }
    }

    fn broken(&mut self, index: usize) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        connection.busy = false;
        self.tally.kinds[connection.kind].broken += 1;
        self.free.push(index);
        self.reopen(index)
    }

    fn reopen(&mut self, index: usize) -> Result<(), Error> {
        self.tally.reopened += 1;
        if self.tally.reopened > REOPEN_COUNT_MAX {
            return Err("the server closes every connection".into());
        }
        let _ = self.poll.registry().deregister(&mut self.connections[index].stream);
        self.connections[index].stream = connect(self.address, &self.poll, index)?;
        Ok(())
    }
}

/// Sends every request of the source in the closed loop, waits for the answers and returns how many were accepted. Any
/// other answer is an error. Requests that do not fit into `time_max` stay unsent.
pub fn send_all(
    address: SocketAddr,
    connection_count: usize,
    time_max: Duration,
    requests: &mut dyn Requests,
) -> Result<u64, Error> {
    let mut generator = Generator::open(address, connection_count, 1)?;
    generator.run_for(time_max, requests)?;
    generator.finish(requests)?;
    let tally = generator.take();
    tally.only_accepted()?;
    Ok(tally.all().accepted.total())
}

impl ClientConnection {
    fn write(&mut self) -> std::io::Result<()> {
        while self.written < self.request.len() {
            match self.stream.write(&self.request[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn connect(address: SocketAddr, poll: &Poll, index: usize) -> Result<TcpStream, Error> {
    let stream = std::net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut stream = TcpStream::from_std(stream);
    poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
    Ok(stream)
}

/// The status of the first part of a transaction's answer. It stands for all: either every part succeeded with the same
/// status, or the answer holds a single failed part.
fn status_of_part(bytes: &[u8]) -> Option<u16> {
    let head = memmem::find(bytes, b"\r\n\r\n")?;
    let part = head + memmem::find(&bytes[head..], b"HTTP/1.1 ")? + 9;
    std::str::from_utf8(bytes.get(part..part + 3)?).ok()?.parse().ok()
}

fn says_close(bytes: &[u8]) -> bool {
    let head = memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
    bytes[..head].to_ascii_lowercase().windows(17).any(|window| window == b"connection: close")
}

#[cfg(test)]
mod tests;
