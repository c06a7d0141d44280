//! What all clients of the trial share: where the front ends are, when writes were acknowledged, which promises broke.
//!
//! Promises: a request that surely did not happen is told apart from one that may have.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testkit::{Request, Response, Stopwatch};

use crate::load::Tally;
use crate::queue::door::{Addresses, Door};

pub const FRONT_END_COUNT: usize = 2;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A client that was refused, or has found nobody, waits this long.
const PAUSE: Duration = Duration::from_millis(50);
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

pub struct Ground {
    pub clock: Stopwatch,
    /// By front end. Tables alone once more, as the clients of histories want them.
    addresses: [Mutex<Addresses>; FRONT_END_COUNT],
    pub tables: [Mutex<SocketAddr>; FRONT_END_COUNT],
    pub stopping: AtomicBool,
    pub tally: Tally,
    writes: [Gaps; FRONT_END_COUNT],
    reads: [Gaps; FRONT_END_COUNT],
    /// A request that began after this moment must not be acknowledged; 0 if it may.
    frozen_since: AtomicU64,
    broken: Mutex<Vec<String>>,
    pub unknown_count: AtomicU64,
    pub refused_count: AtomicU64,
}

/// The time between one answer and the next.
#[derive(Default)]
struct Gaps {
    last: AtomicU64,
    longest: AtomicU64,
    count: AtomicU64,
}

impl Gaps {
    fn begin(&self, now: u64) {
        self.last.store(now, Ordering::SeqCst);
        self.longest.store(0, Ordering::SeqCst);
        self.count.store(0, Ordering::SeqCst);
    }

    fn answered(&self, now: u64) {
        let last = self.last.fetch_max(now, Ordering::SeqCst);
        self.longest.fetch_max(now.saturating_sub(last), Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// What became of a request.
pub enum Reply {
    Heard(Response),
    /// It was not sent, or refused as too much: it did not happen.
    NotDone,
    /// It may have happened, or may still happen.
    Unknown,
}

impl Ground {
    pub fn new() -> Ground {
        let nowhere = || Mutex::new(Addresses { table: NOWHERE, queue: NOWHERE });
        Ground {
            clock: Stopwatch::start(),
            addresses: std::array::from_fn(|_| nowhere()),
            tables: std::array::from_fn(|_| Mutex::new(NOWHERE)),
            stopping: AtomicBool::new(false),
            tally: Tally::default(),
            writes: Default::default(),
            reads: Default::default(),
            frozen_since: AtomicU64::new(0),
            broken: Mutex::default(),
            unknown_count: AtomicU64::new(0),
            refused_count: AtomicU64::new(0),
        }
    }

    /// In microseconds.
    pub fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub fn addresses(&self, front_end: usize) -> Addresses {
        *lock(&self.addresses[front_end])
    }

    pub fn moved(&self, front_end: usize, addresses: Addresses) {
        *lock(&self.addresses[front_end]) = addresses;
        *lock(&self.tables[front_end]) = addresses.table;
    }

    pub fn broke(&self, what: String) {
        lock(&self.broken).push(what);
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub fn broken(&self) -> Vec<String> {
        lock(&self.broken).clone()
    }

    /// Starts to measure outages anew.
    pub fn begin_outages(&self) {
        let now = self.now();
        self.writes.iter().chain(&self.reads).for_each(|gaps| gaps.begin(now));
    }

    /// Counts an acknowledged write that began at this moment.
    pub fn acknowledged(&self, front_end: usize, began: u64) {
        self.writes[front_end].answered(self.now());
        let frozen = self.frozen_since.load(Ordering::SeqCst);
        if frozen > 0 && began > frozen {
            self.broke("a write was acknowledged while no standby could have it".to_owned());
        }
    }

    pub fn read(&self, front_end: usize) {
        self.reads[front_end].answered(self.now());
    }

    /// From now on no write may be acknowledged.
    pub fn freeze(&self) {
        self.frozen_since.store(self.now(), Ordering::SeqCst);
    }

    pub fn thaw(&self) {
        self.frozen_since.store(0, Ordering::SeqCst);
    }

    /// Waits until every front end has acknowledged some writes from now on.
    pub fn wait_for_writes(&self, timeout: Duration) -> Result<(), String> {
        const WRITE_COUNT: u64 = 10;
        let counts = || self.writes.each_ref().map(|gaps| gaps.count.load(Ordering::SeqCst));
        let (before, watch) = (counts(), Stopwatch::start());
        while watch.elapsed() < timeout {
            let goes_on = counts().iter().zip(before).all(|(count, before)| *count >= before + WRITE_COUNT);
            if goes_on || self.is_stopping() {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let written = counts().iter().zip(before).map(|(count, before)| count - before).collect::<Vec<_>>();
        Err(format!("within {timeout:?} the front ends acknowledged only {written:?} writes"))
    }

    /// Since [`Ground::begin_outages`].
    pub fn outages(&self) -> Outages {
        let now = self.now();
        let longest = |gaps: &Gaps| {
            let last = now.saturating_sub(gaps.last.load(Ordering::SeqCst));
            last.max(gaps.longest.load(Ordering::SeqCst))
        };
        Outages { writes: self.writes.each_ref().map(longest), reads: self.reads.each_ref().map(longest) }
    }
}

/// The longest time without an acknowledged write, and without an answered read, by front end, in microseconds.
#[derive(Clone, Copy)]
pub struct Outages {
    pub writes: [u64; FRONT_END_COUNT],
    pub reads: [u64; FRONT_END_COUNT],
}

impl std::fmt::Display for Outages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = |times: [u64; FRONT_END_COUNT]| times.map(seconds).join(" / ");
        let (writes, reads) = (all(self.writes), all(self.reads));
        write!(formatter, "longest without a write {writes} s, without a read {reads} s")
    }
}

/// Microseconds as seconds, for reports.
pub fn seconds(microseconds: u64) -> String {
    format!("{:.1}", microseconds as f64 / 1e6)
}

/// One client: a connection to each front end.
pub struct Client<'a> {
    pub ground: &'a Ground,
    doors: [Door; FRONT_END_COUNT],
}

impl<'a> Client<'a> {
    pub fn new(ground: &'a Ground) -> Client<'a> {
        Client { ground, doors: std::array::from_fn(|front_end| Door::new(ground.addresses(front_end))) }
    }

    pub fn table(&mut self, front_end: usize, request: &Request) -> Reply {
        self.judge(front_end, |door| door.table(request))
    }

    pub fn queue(&mut self, front_end: usize, request: &Request) -> Reply {
        self.judge(front_end, |door| door.queue(request).map(Response::of_queue))
    }

    fn judge(
        &mut self,
        front_end: usize,
        send: impl FnOnce(&mut Door) -> std::io::Result<Response>,
    ) -> Reply {
        let addresses = self.ground.addresses(front_end);
        let door = &mut self.doors[front_end];
        if door.addresses() != addresses {
            *door = Door::new(addresses);
        }
        let reply = match send(door) {
            Ok(response) if response.status == 503 => Reply::NotDone,
            Ok(response) if response.status == 500 => Reply::Unknown,
            Ok(response) => Reply::Heard(response),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Reply::NotDone,
            Err(_) => Reply::Unknown,
        };
        match reply {
            Reply::Heard(_) => {}
            Reply::NotDone => {
                self.ground.refused_count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
            Reply::Unknown => drop(self.ground.unknown_count.fetch_add(1, Ordering::Relaxed)),
        }
        reply
    }

    /// Reads until there is an answer.
    pub fn read_surely(&mut self, front_end: usize, request: &Request) -> std::io::Result<Response> {
        const TIMEOUT: Duration = Duration::from_secs(90);
        let watch = Stopwatch::start();
        while watch.elapsed() < TIMEOUT {
            if let Reply::Heard(response) = self.table(front_end, request) {
                return Ok(response);
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

pub fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
