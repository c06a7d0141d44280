//! The closed loop: each connection sends its next request when its last one was answered.
//!
//! One thread and one readiness queue drive all connections; a request costs the generator one write, one read and
//! two looks at the clock. Any status but the expected one ends the measurement and shows the answer.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::histogram::Histogram;
use crate::response::ResponseReader;
use crate::{Error, clock};

/// How long an answer may take before the run is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const SHOWN_CHARACTERS_MAX: usize = 2000;

/// Where requests come from. `false` when there are no more.
pub trait Source {
    fn next(&mut self, out: &mut Vec<u8>) -> bool;
}

pub struct Load<'a> {
    poll: Poll,
    events: Events,
    /// Connection, writable, readable: this turn's events, out of the way of the borrow checker.
    ready: Vec<(usize, bool, bool)>,
    connections: Vec<Connection>,
    source: &'a mut dyn Source,
    expected: Option<u16>,
    histogram: Histogram,
    in_flight: usize,
    exhausted: bool,
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    written: usize,
    reader: ResponseReader,
    started: Instant,
    busy: bool,
}

impl<'a> Load<'a> {
    /// Connects. `expected` is the status every answer must have; `None` accepts all.
    pub fn open(
        address: SocketAddr,
        connections: usize,
        source: &'a mut dyn Source,
        expected: Option<u16>,
    ) -> Result<Load<'a>, Error> {
        let poll = Poll::new()?;
        let mut opened = Vec::with_capacity(connections);
        for index in 0..connections {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
            opened.push(Connection {
                stream,
                request: Vec::new(),
                written: 0,
                reader: ResponseReader::new(),
                started: clock::now(),
                busy: false,
            });
        }
        Ok(Load {
            poll,
            events: Events::with_capacity(1024),
            ready: Vec::with_capacity(1024),
            connections: opened,
            source,
            expected,
            histogram: Histogram::new(),
            in_flight: 0,
            exhausted: false,
        })
    }

    /// Keeps all connections busy for this long, or until the source is exhausted. The time it took.
    pub fn run_for(&mut self, duration: Duration) -> Result<Duration, Error> {
        self.histogram.clear();
        let start = clock::now();
        let deadline = start + duration;
        for index in 0..self.connections.len() {
            if !self.connections[index].busy {
                self.send_next(index)?;
            }
        }
        while clock::now() < deadline && self.in_flight > 0 {
            self.turn(true)?;
        }
        Ok(clock::now().duration_since(start))
    }

    /// Waits for the answers that are still due, and sends nothing more.
    pub fn finish(&mut self) -> Result<(), Error> {
        while self.in_flight > 0 {
            self.turn(false)?;
        }
        Ok(())
    }

    /// Latencies of the requests answered since the last `run_for` began.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    fn turn(&mut self, send_more: bool) -> Result<(), Error> {
        self.poll.poll(&mut self.events, Some(SILENCE_MAX))?;
        if self.events.is_empty() {
            return Err(format!("no answer for {SILENCE_MAX:?}").into());
        }
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        ready.extend(
            self.events.iter().map(|event| (event.token().0, event.is_writable(), event.is_readable())),
        );
        for &(index, writable, readable) in &ready {
            if writable {
                self.connections[index].write()?;
            }
            if readable && self.connections[index].busy && self.read(index)? {
                self.connections[index].busy = false;
                self.in_flight -= 1;
                if send_more {
                    self.send_next(index)?;
                }
            }
        }
        self.ready = ready;
        Ok(())
    }

    fn send_next(&mut self, index: usize) -> Result<(), Error> {
        let connection = &mut self.connections[index];
        if self.exhausted || !self.source.next(&mut connection.request) {
            self.exhausted = true;
            return Ok(());
        }
        connection.written = 0;
        connection.reader.clear();
        connection.busy = true;
        connection.started = clock::now();
        self.in_flight += 1;
        connection.write()
    }

    /// Reads what is there; `true` when the answer is complete. It stops at its end without asking for more: nothing
    /// can follow before the next request, and the next bytes raise a new event.
    fn read(&mut self, index: usize) -> Result<bool, Error> {
        let connection = &mut self.connections[index];
        loop {
            let count = match connection.stream.read(connection.reader.space()) {
                Ok(0) => return Err("the server closed a connection instead of answering".into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let Some(status) = connection.reader.advance(count)? else { continue };
            self.histogram.record(clock::now().duration_since(connection.started));
            return match self.expected {
                Some(expected) if expected != status => {
                    let answer: String =
                        connection.reader.text().chars().take(SHOWN_CHARACTERS_MAX).collect();
                    Err(format!("expected status {expected}, not this answer:\n{answer}").into())
                }
                _ => Ok(true),
            };
        }
    }
}

impl Connection {
    fn write(&mut self) -> Result<(), Error> {
        while self.written < self.request.len() {
            match self.stream.write(&self.request[self.written..]) {
                Ok(0) => return Err("the server closed a connection instead of reading".into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
