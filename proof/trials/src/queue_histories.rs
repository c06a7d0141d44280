//! `queue-histories`: short concurrent histories on one queue each, over HTTP and with the real binary, checked against
//! the model of a queue with visibility (`queue.rs` says which, and what it can catch).
//!
//! Sometimes a client does not wait for its answer, sometimes all pause until what they took is visible again, and
//! sometimes the server is killed with `kill -9` and restarted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Request, Stopwatch, TempDir};

use crate::Error;
use crate::options::{self, Value};
use crate::queue::clients::{Client, End, Ground, OUTBOX_TABLE};
use crate::queue::door::{Addresses, Door};
use crate::queue::event::{self, Event, NEVER, Time};
use crate::queue::ledger::Ledger;
use crate::summary;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
concurrent histories of queue operations over HTTP, checked against a queue with visibility

  --server PATH      The server's binary
  --histories N      How many histories [default: 1000]
  --seed S           Seed of the first history; the next has S + 1, and so on [default: 1]";

const HISTORY_COUNT: u64 = 1_000;
/// One history in this many has a `kill -9`.
const KILL_INTERVAL: u32 = 10;
/// One history in this many has a pause after which what was taken is visible again.
const PAUSE_INTERVAL: u32 = 8;
const PAUSE: Duration = Duration::from_millis(1_200);
/// In one history in this many, some operations are not waited for.
const ABANDON_INTERVAL: u32 = 5;
const HISTORIES_PER_REPORT: u64 = 100;

pub struct Settings {
    pub server: PathBuf,
    pub history_count: u64,
    pub seed: u64,
    /// Environment variables for the server.
    pub environment: Vec<(String, String)>,
}

/// The results. Every promise held if `broken` is empty.
#[derive(Default)]
pub struct Verdict {
    pub broken: Vec<String>,
    pub histories: u64,
    pub operations: u64,
    kills: u64,
    pauses: u64,
    undecided: usize,
    pub kept: Option<PathBuf>,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let mut settings =
        Settings { server: PathBuf::new(), history_count: HISTORY_COUNT, seed: 1, environment: Vec::new() };
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut settings.server),
        ("histories", &mut settings.history_count),
        ("seed", &mut settings.seed),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if settings.server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary to try".into());
    }
    let watch = Stopwatch::start();
    let verdict = histories(&settings)?;
    let done = format!("{} histories", verdict.histories);
    summary::head("queue-histories", &done, watch.elapsed(), settings.seed);
    summary::line(verdict.operations, "operations");
    summary::line(verdict.kills, "kills and restarts");
    summary::line(verdict.pauses, "pauses until messages were visible again");
    summary::line(verdict.undecided, "messages whose operations are too many to judge");
    summary::broken(&verdict.broken);
    if let Some(kept) = &verdict.kept {
        println!("The store is kept in {}.", kept.display());
    }
    Ok(summary::verdict("queue-histories", &verdict.broken) && verdict.undecided == 0)
}

/// Records and judges histories until one breaks a promise or all are done.
pub fn histories(settings: &Settings) -> Result<Verdict, Error> {
    let directory = TempDir::with_prefix("lazulite-queue-histories-")?;
    let mut launch = Launch::new(&settings.server, &directory.path().join("store"));
    launch.environment = settings.environment.clone();
    let clock = Stopwatch::start();
    let server = start(&launch)?;
    let mut door = Door::new(addresses(&server));
    create(door.table(&Request::post("/Tables").json(&format!("{{\"TableName\":\"{OUTBOX_TABLE}\"}}"))))?;
    let verdict = Verdict::default();
    let mut world = World { launch, clock: &clock, server, verdict, directory: directory.path() };
    for seed in settings.seed..settings.seed.saturating_add(settings.history_count) {
        let outcome = world.history(seed)?;
        world.verdict.histories += 1;
        if let Err(what) = outcome {
            let how = format!(
                "to repeat it, though never with the same timing: cargo xtask queue-histories --histories 100 --seed {seed}"
            );
            world.verdict.broken.push(format!("history {seed}: {what}\n{how}"));
            break;
        }
        if world.verdict.histories.is_multiple_of(HISTORIES_PER_REPORT) {
            println!("  {} histories, {} operations", world.verdict.histories, world.verdict.operations);
        }
    }
    let mut verdict = world.verdict;
    let words = world.server.finish();
    if panicked(&words) {
        verdict.broken.push(format!("the server panicked: {words}"));
    }
    if !verdict.broken.is_empty() {
        verdict.kept = Some(directory.keep());
    }
    Ok(verdict)
}

struct World<'a> {
    launch: Launch,
    clock: &'a Stopwatch,
    server: Victim,
    verdict: Verdict,
    directory: &'a Path,
}

impl World<'_> {
    /// Records and judges one history. The inner error is a broken promise.
    fn history(&mut self, seed: u64) -> Result<Result<(), String>, Error> {
        let mut random = Rng::with_seed(seed);
        // Neighbouring seeds would give similar streams unless they are mixed first.
        let mut random = Rng::with_seed(random.u64(..));
        let queue = format!("history-{seed}");
        create(Door::new(addresses(&self.server)).queue(&Request::put(&format!("/{queue}"))))?;
        let one_in = |interval: u32, random: &mut Rng| random.u32(..interval) == 0;
        let ground = Ground {
            clock: self.clock,
            addresses: Mutex::new(addresses(&self.server)),
            queues: vec![queue],
            prefix: format!("h{seed}"),
            stopping: AtomicBool::new(false),
            operation_count: AtomicU64::new(0),
            backlog: AtomicU64::new(0),
            seen: Mutex::default(),
            abandon_interval: if one_in(ABANDON_INTERVAL, &mut random) { 20 } else { 0 },
            clear_interval: if random.bool() { 60 } else { 0 },
        };
        let client_count = random.usize(3..=6);
        let operation_count = random.u64(10..=30);
        let does_pause = one_in(PAUSE_INTERVAL, &mut random);
        let kill_after =
            one_in(KILL_INTERVAL, &mut random).then(|| random.u64(1..client_count as u64 * operation_count));
        let mut clients: Vec<Client<'_>> =
            (0..client_count).map(|number| Client::new(&ground, number, random.fork())).collect();
        let part = |clients: &mut Vec<Client<'_>>, world: &mut Self, kill_after: Option<u64>| {
            world.traffic(&ground, clients, operation_count, kill_after)
        };
        let mut killed = None;
        match part(&mut clients, self, kill_after)? {
            Ok(at) => killed = at.or(killed),
            Err(what) => return Ok(Err(what)),
        }
        if does_pause {
            std::thread::sleep(PAUSE);
            self.verdict.pauses += 1;
            if let Err(what) = part(&mut clients, self, None)? {
                return Ok(Err(what));
            }
        }
        let mut last = Client::new(&ground, client_count, random.fork());
        let look = last.count(0).and_then(|_| last.peek(0, 32)).and_then(|_| last.get_some(0, 32, 1));
        if let Err(what) = look {
            return Ok(Err(what));
        }
        clients.push(last);
        self.verdict.operations += ground.operation_count.load(Ordering::Relaxed);
        let mut events: Vec<Event> = Vec::new();
        for (_, mut event) in clients.into_iter().flat_map(|client| client.events) {
            if let Some(killed) = killed
                && event.ended == NEVER
                && event.began < killed
            {
                event.ended = killed;
            }
            events.push(event);
        }
        let mut ledger = Ledger::default();
        let judged = ledger.judge(events.clone());
        self.verdict.undecided += ledger.undecided_count;
        Ok(judged.map_err(|what| format!("{what}\n{}", event::keep(events, &self.directory.join("events")))))
    }

    /// Lets all clients work at once. Returns when the server was killed, if it was.
    fn traffic(
        &mut self,
        ground: &Ground<'_>,
        clients: &mut [Client<'_>],
        operation_count: u64,
        kill_after: Option<u64>,
    ) -> Result<Result<Option<Time>, String>, Error> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter_mut()
                .map(|client| scope.spawn(move || client.run(operation_count, true)))
                .collect();
            let mut killed = None;
            if let Some(kill_after) = kill_after {
                let is_over = || threads.iter().all(|thread| thread.is_finished());
                while ground.operation_count.load(Ordering::Relaxed) < kill_after && !is_over() {
                    std::thread::sleep(Duration::from_micros(200));
                }
                ground.stopping.store(true, Ordering::SeqCst);
                self.server.kill();
                killed = Some(ground.now());
                self.verdict.kills += 1;
                self.server = start(&self.launch)?;
                let new = addresses(&self.server);
                *ground.addresses.lock().unwrap_or_else(PoisonError::into_inner) = new;
                ground.stopping.store(false, Ordering::SeqCst);
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<End, String>>| {
                thread.join().unwrap_or_else(|_| Err("a client gave up: see above".to_owned()))
            };
            let ends: Result<Vec<End>, String> = threads.into_iter().map(join).collect();
            Ok(ends.map(|_| killed))
        })
    }
}

fn start(launch: &Launch) -> Result<Victim, Error> {
    launch.start()?.map_err(|refusal| format!("the server does not start: {}", refusal.words).into())
}

fn addresses(server: &Victim) -> Addresses {
    Addresses { table: server.addr(), queue: server.queue_addr() }
}

fn create(outcome: std::io::Result<testkit::Response>) -> Result<(), Error> {
    match outcome {
        Ok(response) if response.status == 201 => Ok(()),
        other => Err(format!("something to work on cannot be created: {other:?}").into()),
    }
}
