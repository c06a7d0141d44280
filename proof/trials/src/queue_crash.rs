//! `queue-crash`: many clients put, take, update, delete, peek, count and clear at once, with and without the outbox, and
//! the real binary is killed with `kill -9` at random moments. All rounds use one store.
//!
//! Everything that the clients did is judged after each round (`queue.rs` says how). Before each restart `lazulite check`
//! must find the store sound. After a kill, an entity that was written through the outbox must be there if and only if
//! its message is. Every few rounds the queues are emptied: then the counts must equal what is taken out, and everything
//! that was acknowledged and not deleted must come.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Request, Stopwatch, TempDir};

use crate::Error;
use crate::options::{self, Value};
use crate::queue::clients::{Client, End, Ground, OUTBOX_TABLE};
use crate::queue::door::{Addresses, Door};
use crate::queue::event::{self, Event, NEVER, Time, Told, What};
use crate::queue::ledger::Ledger;
use crate::summary;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
kill -9 under a load of queue operations, checked against a ledger of messages

  --server PATH      The server's binary
  --rounds N         How often to kill it [default: 200]
  --connections C    How many clients work at once [default: 16]
  --seed S           Seed of the requests and of the moments of the kills [default: a new one]";

const ROUND_COUNT: usize = 200;
const CONNECTION_COUNT: usize = 16;
const QUEUE_COUNT: usize = 3;
/// The longest load before a kill.
const LOAD_MS_MAX: u64 = 900;
/// The longest time before a kill during start-up, which takes about 20 ms.
const START_MS_MAX: u64 = 40;
const STOP_MS_MAX: u64 = 40;
const ROUNDS_PER_DRAIN: usize = 10;
/// By then every message is visible again, and those that live for seconds only have expired.
const DRAIN_AFTER: Duration = Duration::from_millis(4_500);
/// Those who empty a queue hold what they took for longer than that takes.
const DRAIN_HIDE_S: u64 = 60;

pub struct Settings {
    pub server: PathBuf,
    pub rounds: usize,
    pub connections: usize,
    pub seed: u64,
    /// Environment variables for the server.
    pub environment: Vec<(String, String)>,
}

/// The results. Every promise held if `broken` is empty.
#[derive(Default)]
pub struct Verdict {
    pub broken: Vec<String>,
    pub rounds: usize,
    pub kills: usize,
    pub operations: u64,
    counts: Counts,
    undecided: usize,
    pub kept: Option<PathBuf>,
}

#[derive(Default)]
struct Counts {
    puts: u64,
    takes: u64,
    updates: u64,
    deletes: u64,
    clears: u64,
    refused: u64,
    unknown: u64,
    outbox_applied: u64,
    outbox_absent: u64,
    drained: u64,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let mut settings = Settings {
        server: PathBuf::new(),
        rounds: ROUND_COUNT,
        connections: CONNECTION_COUNT,
        seed: fastrand::u64(..),
        environment: Vec::new(),
    };
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut settings.server),
        ("rounds", &mut settings.rounds),
        ("connections", &mut settings.connections),
        ("seed", &mut settings.seed),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if settings.server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary to kill".into());
    }
    println!(
        "queue-crash: {} rounds, {} connections, seed {}",
        settings.rounds, settings.connections, settings.seed
    );
    let watch = Stopwatch::start();
    let verdict = rounds(&settings)?;
    summary::head("queue-crash", &format!("{} rounds", verdict.rounds), watch.elapsed(), settings.seed);
    let counts = &verdict.counts;
    summary::line(verdict.kills, "kills");
    summary::line(verdict.operations, "operations");
    summary::line(counts.puts, "messages put");
    summary::line(counts.takes, "messages taken");
    summary::line(counts.updates, "updates");
    summary::line(counts.deletes, "deletions");
    summary::line(counts.clears, "queues cleared");
    summary::line(counts.refused, "changes with receipts that no longer work, refused");
    summary::line(counts.unknown, "operations without an answer");
    summary::line(counts.outbox_applied, "writes through the outbox open at a kill were applied, as a whole");
    summary::line(counts.outbox_absent, "writes through the outbox open at a kill were not applied");
    summary::line(counts.drained, "messages left over, all found");
    summary::line(verdict.undecided, "messages whose operations are too many to judge");
    summary::broken(&verdict.broken);
    if let Some(kept) = &verdict.kept {
        println!("The store is kept in {}.", kept.display());
        println!(
            "To repeat it, though never with the same timing: cargo xtask queue-crash --rounds {} --connections {} --seed {}",
            settings.rounds, settings.connections, settings.seed
        );
    }
    Ok(summary::verdict("queue-crash", &verdict.broken) && verdict.undecided == 0)
}

/// Stops at the first round in which a promise is broken.
pub fn rounds(settings: &Settings) -> Result<Verdict, Error> {
    let directory = TempDir::with_prefix("lazulite-queue-crash-")?;
    let mut launch = Launch::new(&settings.server, &directory.path().join("store"));
    launch.environment = settings.environment.clone();
    let clock = Stopwatch::start();
    let mut random = Rng::with_seed(settings.seed);
    let nowhere = ([127, 0, 0, 1], 1).into();
    let ground = Ground {
        clock: &clock,
        addresses: Mutex::new(Addresses { table: nowhere, queue: nowhere }),
        queues: (0..QUEUE_COUNT).map(|number| format!("queue-{number}")).collect(),
        prefix: format!("{:08x}", random.u32(..)),
        stopping: AtomicBool::new(false),
        operation_count: AtomicU64::new(0),
        backlog: AtomicU64::new(0),
        seen: Mutex::default(),
        abandon_interval: 0,
        clear_interval: 700,
    };
    let clients =
        (0..settings.connections).map(|number| Client::new(&ground, number, random.fork())).collect();
    let auditor = Client::new(&ground, settings.connections, random.fork());
    let mut trial = Trial {
        launch,
        ground: &ground,
        random,
        clients,
        auditor,
        ledgers: (0..QUEUE_COUNT).map(|_| Ledger::default()).collect(),
        verdict: Verdict::default(),
    };
    for round in 0..settings.rounds {
        if let Err(what) = trial.round(round)? {
            trial.verdict.broken.push(format!("round {round}: {what}"));
            break;
        }
        trial.verdict.rounds = round + 1;
        let is_last = round + 1 == settings.rounds;
        if is_last || (round + 1).is_multiple_of(ROUNDS_PER_DRAIN) {
            if let Err(what) = trial.drain()? {
                trial.verdict.broken.push(format!("after round {round}: {what}"));
                break;
            }
            let operations = ground.operation_count.load(Ordering::Relaxed);
            println!("  round {:>4}: {operations} operations, the queues were emptied", round + 1);
        }
    }
    let mut verdict = trial.verdict;
    verdict.operations = ground.operation_count.load(Ordering::Relaxed);
    verdict.undecided = trial.ledgers.iter().map(|ledger| ledger.undecided_count).sum();
    if !verdict.broken.is_empty() {
        verdict.kept = Some(directory.keep());
    }
    Ok(verdict)
}

struct Trial<'a> {
    launch: Launch,
    ground: &'a Ground<'a>,
    random: Rng,
    clients: Vec<Client<'a>>,
    /// Looks after each restart, and empties the queues.
    auditor: Client<'a>,
    ledgers: Vec<Ledger>,
    verdict: Verdict,
}

/// The inner error is a broken promise.
type Checked<T> = Result<Result<T, String>, Error>;

/// Passes a broken promise on.
macro_rules! held {
    ($checked:expr) => {
        match $checked {
            Ok(value) => value,
            Err(what) => return Ok(Err(what)),
        }
    };
}

impl Trial<'_> {
    fn round(&mut self, round: usize) -> Checked<()> {
        if round > 0 && self.random.u8(..8) == 0 {
            let mut child = self.launch.spawn()?;
            std::thread::sleep(Duration::from_micros(self.random.u64(0..START_MS_MAX * 1000)));
            child.kill()?;
            child.wait()?;
            self.verdict.kills += 1;
        }
        let server = held!(self.back(round)?);
        let outcome = self.load_and_kill(&server);
        let words = server.finish();
        if panicked(&words) {
            return Ok(Err(format!("the server panicked: {words}")));
        }
        Ok(outcome.map_err(|what| format!("{what}\nThe server's log: {words}")))
    }

    /// Checks the store, starts the server, settles what was open, and looks at every queue.
    fn back(&mut self, round: usize) -> Checked<Victim> {
        if round > 0 {
            let output =
                self.launch.command().arg("check").arg("--location").arg(&self.launch.location).output()?;
            if !output.status.success() {
                let words = String::from_utf8_lossy(&output.stdout).into_owned();
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                return Ok(Err(format!("lazulite check: {words}{errors}")));
            }
        }
        let server = match self.launch.start()? {
            Ok(server) => server,
            Err(refusal) => return Ok(Err(format!("the server does not start: {}", refusal.words))),
        };
        let addresses = Addresses { table: server.addr(), queue: server.queue_addr() };
        *self.ground.addresses.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
        self.ground.stopping.store(false, Ordering::SeqCst);
        self.clients.iter_mut().for_each(Client::reconnect);
        self.auditor.reconnect();
        let mut door = Door::new(addresses);
        if round == 0 {
            held!(set_up(&mut door, &self.ground.queues));
        }
        held!(self.settle_outbox(&mut door));
        for queue in 0..QUEUE_COUNT {
            held!(self.auditor.count(queue));
            held!(self.auditor.peek(queue, 32));
        }
        Ok(Ok(server))
    }

    /// Finds out what became of the writes through the outbox that were open at the kill.
    fn settle_outbox(&mut self, door: &mut Door) -> Result<(), String> {
        for client in &mut self.clients {
            let Some((queue, text)) = client.open_outbox.take() else { continue };
            let happened = Client::has_entity(door, &self.ground.queues[queue], &text)?;
            self.ledgers[queue].settle_put(&text, happened, self.ground.now());
            match happened {
                true => self.verdict.counts.outbox_applied += 1,
                false => self.verdict.counts.outbox_absent += 1,
            }
        }
        Ok(())
    }

    fn load_and_kill(&mut self, server: &Victim) -> Result<(), String> {
        let load = Duration::from_millis(self.random.u64(20..LOAD_MS_MAX));
        let stops_first = self.random.u8(..10) == 0;
        let stop_us = self.random.u64(0..STOP_MS_MAX * 1000);
        let ground = self.ground;
        let ends: Vec<Result<End, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .clients
                .iter_mut()
                .map(|client| scope.spawn(move || client.run(u64::MAX, false)))
                .collect();
            std::thread::sleep(load);
            ground.stopping.store(true, Ordering::SeqCst);
            if stops_first && server.terminate().is_ok() {
                std::thread::sleep(Duration::from_micros(stop_us));
            }
            server.kill();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<End, String>>| {
                thread.join().unwrap_or_else(|_| Err("a client gave up: see above".to_owned()))
            };
            threads.into_iter().map(join).collect()
        });
        self.verdict.kills += 1;
        let killed = self.ground.now();
        ends.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.judge(killed)
    }

    /// Judges what was done since the last time. What has no answer ended at this moment at the latest.
    fn judge(&mut self, killed: Time) -> Result<(), String> {
        let mut events: Vec<Vec<Event>> = (0..QUEUE_COUNT).map(|_| Vec::new()).collect();
        for client in self.clients.iter_mut().chain([&mut self.auditor]) {
            for (queue, mut event) in client.events.drain(..) {
                if event.ended == NEVER {
                    event.ended = killed;
                }
                self.verdict.counts.add(&event);
                events[queue].push(event);
            }
        }
        for (queue, (ledger, events)) in self.ledgers.iter_mut().zip(events).enumerate() {
            if let Err(what) = ledger.judge(events.clone()) {
                let place = self.launch.location.with_file_name("events");
                return Err(format!("queue {queue}: {what}\n{}", event::keep(events, &place)));
            }
        }
        Ok(())
    }

    /// Takes everything out of all queues. The count must agree.
    fn drain(&mut self) -> Checked<()> {
        let server = held!(self.back(usize::MAX)?);
        std::thread::sleep(DRAIN_AFTER);
        for queue in 0..QUEUE_COUNT {
            held!(self.auditor.count(queue));
            let counted = match self.auditor.events.last() {
                Some((_, Event { what: What::Count { count }, .. })) => *count,
                other => return Ok(Err(format!("no count: {other:?}"))),
            };
            let mut found = 0;
            loop {
                let (_, count) = held!(self.auditor.get_some(queue, 32, DRAIN_HIDE_S));
                if count == 0 {
                    break;
                }
                found += count;
                let taken = match self.auditor.events.last() {
                    Some((_, Event { what: What::Get { told: Told::Done(list), .. }, .. })) => list.clone(),
                    other => return Ok(Err(format!("no list: {other:?}"))),
                };
                for seen in taken {
                    held!(self.auditor.delete(queue, seen.handle));
                }
            }
            if counted != found {
                return Ok(Err(format!("queue {queue}: the count was {counted}, but {found} were there")));
            }
            held!(self.auditor.count(queue));
            self.verdict.counts.drained += found as u64;
        }
        let now = self.ground.now();
        held!(self.judge(now));
        for queue in 0..QUEUE_COUNT {
            let (_, count) = held!(self.auditor.get_some(queue, 32, 1));
            if count > 0 {
                return Ok(Err(format!("queue {queue} is not empty after all was deleted")));
            }
            self.ledgers[queue].emptied();
        }
        self.auditor.events.clear();
        server.finish();
        Ok(Ok(()))
    }
}

impl Counts {
    fn add(&mut self, event: &Event) {
        match &event.what {
            What::Put { told, .. } => {
                self.puts += u64::from(matches!(told, Told::Done(_)));
                self.unknown += u64::from(*told == Told::Unknown);
            }
            What::Get { told: Told::Done(list), .. } => self.takes += list.len() as u64,
            What::Get { .. } => self.unknown += 1,
            What::Update { told, .. } => {
                self.updates += u64::from(matches!(told, Told::Done(_)));
                self.refused += u64::from(*told == Told::Refused);
                self.unknown += u64::from(*told == Told::Unknown);
            }
            What::Delete { told, .. } => {
                self.deletes += u64::from(*told == Told::Done(()));
                self.refused += u64::from(*told == Told::Refused);
                self.unknown += u64::from(*told == Told::Unknown);
            }
            What::Clear { .. } => self.clears += 1,
            What::Peek { .. } | What::Count { .. } => {}
        }
    }
}

/// Creates the queues, and the table of the outbox.
pub fn set_up(door: &mut Door, queues: &[String]) -> Result<(), String> {
    let expect = |outcome: std::io::Result<testkit::Response>| match outcome {
        Ok(response) if response.status == 201 => Ok(()),
        other => Err(format!("something to work on cannot be created: {other:?}")),
    };
    expect(door.table(&Request::post("/Tables").json(&format!("{{\"TableName\":\"{OUTBOX_TABLE}\"}}"))))?;
    queues.iter().try_for_each(|queue| expect(door.queue(&Request::put(&format!("/{queue}")))))
}
