//! Clients that request large pages and read them slowly or not at all, so that the server must hold the answers.
//!
//! Owns: their connections. If the server closes one, it is opened again and sends its request again.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memchr::memmem;

use crate::Error;

const TURN: Duration = Duration::from_millis(100);
/// How many bytes a slow reader reads of every answer per turn.
const SLOW_READ_BYTES: usize = 1024;
const REST_TURN_COUNT: u32 = 10;
const JUDGED_TURN_COUNT_MAX: u32 = 300;
const HEAD_BYTES_MAX: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Appetite {
    /// Reads only the first bytes, which hold the status.
    None,
    /// Reads about 10 KiB per second.
    Slow,
}

#[derive(Default)]
pub struct Hoard {
    pub pages: u64,
    pub refused: u64,
    pub closed: u64,
    /// Answers that are neither a page nor `ServerBusy`.
    pub wrong: Vec<String>,
}

impl Hoard {
    fn answers(&self) -> u64 {
        self.pages + self.refused + self.closed + self.wrong.len() as u64
    }
}

struct Hoarder {
    stream: TcpStream,
    written: usize,
    head: Vec<u8>,
    judged: bool,
    /// Turns left to rest after a refusal.
    rest: u32,
}

/// Hoards until `over` is set.
pub fn run_until(
    address: SocketAddr,
    request: &[u8],
    count: usize,
    appetite: Appetite,
    over: &AtomicBool,
) -> Result<Hoard, Error> {
    let mut hoard = Hoard::default();
    let mut hoarders = Vec::with_capacity(count);
    while hoarders.len() < count && !over.load(Ordering::Relaxed) {
        hoarders.push(Hoarder::connect(address)?);
        if let Some(hoarder) = hoarders.last_mut() {
            hoarder.turn(request, appetite, &mut hoard)?;
        }
    }
    let mut rounds_left = JUDGED_TURN_COUNT_MAX;
    // At the end, wait for the first answer on each connection, or nothing would be known about it.
    while !over.load(Ordering::Relaxed) || (rounds_left > 0 && hoard.answers() < hoarders.len() as u64) {
        rounds_left -= u32::from(over.load(Ordering::Relaxed));
        for hoarder in &mut hoarders {
            if !hoarder.turn(request, appetite, &mut hoard)? {
                *hoarder = Hoarder::connect(address)?;
            }
        }
        std::thread::sleep(TURN);
    }
    Ok(hoard)
}

impl Hoarder {
    fn connect(address: SocketAddr) -> Result<Hoarder, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        Ok(Hoarder { stream, written: 0, head: Vec::new(), judged: false, rest: 0 })
    }

    /// Takes one turn. Returns `false` when the connection is no longer needed.
    fn turn(&mut self, request: &[u8], appetite: Appetite, hoard: &mut Hoard) -> Result<bool, Error> {
        if self.rest > 0 {
            // After a refusal there is nothing to hoard: try again later, on a new connection.
            self.rest -= 1;
            return Ok(self.rest > 0);
        }
        while self.written < request.len() {
            match self.stream.write(&request[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(_) => {
                    hoard.closed += 1;
                    return Ok(false);
                }
            }
        }
        if self.judged && appetite == Appetite::None {
            // It does not read, so check only whether the server has closed the connection.
            return Ok(!matches!(self.stream.take_error(), Ok(Some(_)) | Err(_)));
        }
        let mut taken = [0; SLOW_READ_BYTES];
        match self.stream.read(&mut taken) {
            Ok(0) => {
                hoard.closed += 1;
                Ok(false)
            }
            Ok(count) => {
                if !self.judged {
                    self.head.extend_from_slice(&taken[..count]);
                    self.judge(hoard);
                }
                if self.judged && self.head.get(9..12) != Some(b"200") {
                    self.rest = REST_TURN_COUNT;
                }
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            Err(_) => {
                hoard.closed += 1;
                Ok(false)
            }
        }
    }

    fn judge(&mut self, hoard: &mut Hoard) {
        match self.head.get(9..12) {
            Some(b"200") => hoard.pages += 1,
            Some(b"503") if memmem::find(&self.head, b"ServerBusy").is_some() => hoard.refused += 1,
            Some(b"503") if self.head.len() < HEAD_BYTES_MAX => return,
            Some(_) => hoard.wrong.push(String::from_utf8_lossy(&self.head).into_owned()),
            None => return,
        }
        self.judged = true;
    }
}
