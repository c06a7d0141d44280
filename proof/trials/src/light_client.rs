//! A light client: a few connections that send a point read or a single insert at fixed times.
//!
//! Owns: its schedule and its experience. Latency counts from the time a request was due. A refused request counts as a
//! failure at once. It is also retried as the published clients do, three times with growing pauses, and whether it
//! succeeds in the end is counted separately.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadgen::clock;
use loadgen::histogram::Histogram;
use testkit::{Credentials, RawClient, Request, Response, entity_json, entity_path, system_now};

use crate::mix::{READ_ROW_COUNT, READ_TABLE, WRITE_TABLE};

const CONNECTION_COUNT: usize = 4;
const INTERVAL: Duration = Duration::from_millis(50);
/// The first pause. The published clients retry after 0.8 s, 1.6 s and 3.2 s by default.
const RETRY_DELAY: Duration = Duration::from_millis(800);
/// A request that could not be sent for this long counts as a failure.
const STARVED_AFTER: Duration = Duration::from_secs(1);
const ATTEMPT_COUNT_MAX: u32 = 4;

#[derive(Clone, Default)]
pub struct Experience {
    /// Latency of requests that succeeded at the first attempt.
    pub reads: Histogram,
    pub inserts: Histogram,
    /// Waiting time of requests that were due but never sent, because the one before was still in flight at the end.
    pub unsent: Histogram,
    /// Unsent requests that had waited too long. They count as failures, although nothing was refused.
    pub starved: u64,
    pub refused_at_first: u64,
    /// Requests that were refused until the client gave up.
    pub refused_for_good: u64,
    /// Descriptions of answers that were neither a success nor `ServerBusy`.
    pub wrong: Vec<String>,
}

impl Experience {
    fn add(&mut self, other: Experience) {
        self.reads.add(&other.reads);
        self.inserts.add(&other.inserts);
        self.unsent.add(&other.unsent);
        self.starved += other.starved;
        self.refused_at_first += other.refused_at_first;
        self.refused_for_good += other.refused_for_good;
        self.wrong.extend(other.wrong);
    }

    pub fn succeeded_at_first(&self) -> u64 {
        self.reads.total() + self.inserts.total()
    }

    pub fn requests(&self) -> u64 {
        self.succeeded_at_first() + self.refused_at_first + self.wrong.len() as u64 + self.starved
    }

    /// Share of requests that succeeded at the first attempt.
    pub fn first_share(&self) -> f64 {
        self.succeeded_at_first() as f64 / self.requests().max(1) as f64
    }

    /// Share of requests that succeeded in the end, after retries.
    pub fn final_share(&self) -> f64 {
        let failed = self.refused_for_good + self.wrong.len() as u64 + self.starved;
        1.0 - failed as f64 / self.requests().max(1) as f64
    }

    /// All latencies, including the waits of unsent requests, which would have taken even longer.
    pub fn all(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.add(&self.inserts);
        all.add(&self.unsent);
        all
    }
}

/// Runs until `over` is set. `name` keeps the inserted keys of different runs apart.
pub fn run_until(address: SocketAddr, name: &str, over: &AtomicBool) -> Experience {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTION_COUNT)
            .map(|index| scope.spawn(move || Client::new(address, format!("{name}{index}")).run(over)))
            .collect();
        let mut all = Experience::default();
        for client in clients {
            all.add(client.join().expect("a light client does not panic"));
        }
        all
    })
}

/// Runs for a fixed time.
pub fn run_for(address: SocketAddr, name: &str, duration: Duration) -> Experience {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| run_until(address, name, &over));
        std::thread::sleep(duration);
        over.store(true, Ordering::Relaxed);
        client.join().expect("a light client does not panic")
    })
}

/// A request that is due.
struct Due {
    at: Instant,
    number: u64,
    attempt: u32,
}

struct Client {
    address: SocketAddr,
    credentials: Credentials,
    name: String,
    connection: Option<RawClient>,
    experience: Experience,
}

impl Client {
    fn new(address: SocketAddr, name: String) -> Client {
        let credentials = Credentials::emulator();
        Client { address, credentials, name, connection: None, experience: Experience::default() }
    }

    fn run(mut self, over: &AtomicBool) -> Experience {
        let mut regular = Due { at: clock::now(), number: 0, attempt: 1 };
        let mut retries: Vec<Due> = Vec::new();
        while !over.load(Ordering::Relaxed) || !retries.is_empty() {
            let stopping = over.load(Ordering::Relaxed);
            let soonest = retries.iter().enumerate().min_by_key(|(_, due)| due.at).map(|(index, _)| index);
            let due = match soonest {
                Some(index) if stopping || retries[index].at < regular.at => retries.swap_remove(index),
                _ => {
                    let next = Due { at: regular.at + INTERVAL, number: regular.number + 1, attempt: 1 };
                    std::mem::replace(&mut regular, next)
                }
            };
            std::thread::sleep(due.at.saturating_duration_since(clock::now()));
            if self.attempt(&due) {
                continue;
            }
            if due.attempt < ATTEMPT_COUNT_MAX {
                let at = clock::now() + RETRY_DELAY * 2u32.pow(due.attempt - 1);
                retries.push(Due { at, attempt: due.attempt + 1, ..due });
            } else {
                self.experience.refused_for_good += 1;
            }
        }
        let end = clock::now();
        while regular.at < end {
            self.experience.unsent.record(end - regular.at);
            self.experience.starved += u64::from(end - regular.at > STARVED_AFTER);
            regular.at += INTERVAL;
        }
        self.experience
    }

    /// Returns `false` if the request was refused and may be retried.
    fn attempt(&mut self, due: &Due) -> bool {
        let is_read = due.number.is_multiple_of(2);
        let request = if is_read {
            let row = loadgen::request::row_key(due.number * 7919 % READ_ROW_COUNT);
            Request::get(&entity_path(READ_TABLE, "p", &row))
        } else {
            let json = entity_json(&self.name, &format!("{:09}", due.number), "\"n\":1");
            Request::post(&format!("/{WRITE_TABLE}")).json(&json)
        };
        let answer = self.ask(&request);
        let latency = clock::now().saturating_duration_since(due.at);
        let experience = &mut self.experience;
        match answer {
            Ok(response) if response.status / 100 == 2 => {
                if due.attempt == 1 {
                    let kind = if is_read { &mut experience.reads } else { &mut experience.inserts };
                    kind.record(latency);
                }
                true
            }
            Ok(response) if response.status == 503 && response.error_code() == "ServerBusy" => {
                experience.refused_at_first += u64::from(due.attempt == 1);
                false
            }
            Ok(response) => {
                experience.wrong.push(format!("{response:?}"));
                true
            }
            Err(error) => {
                experience.wrong.push(format!("no answer within {latency:?}: {error}"));
                true
            }
        }
    }

    fn ask(&mut self, request: &Request) -> std::io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => RawClient::connect(self.address)?,
        };
        let bytes = request.to_bytes(self.address, &self.credentials, system_now());
        let response = connection.exchange(&bytes)?;
        if !response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.connection = Some(connection);
        }
        Ok(response)
    }
}
