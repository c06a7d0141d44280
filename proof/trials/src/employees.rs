//! `employees`: the guide's eventually consistent transaction. Employees move from the table Current to the table Archive
//! through a queue, by workers that are killed with `kill -9` after each of their steps.
//!
//! Two parts. In the first, each round kills one worker after another, each one step later than the one before, until one
//! comes through; some messages name nobody and kill every worker. Promises: each employee ends in exactly one table, and
//! those messages end in their own queue. In the second, the request to leave is one transaction that changes the employee
//! and puts the message (the outbox), and the server is killed too. Promises: nobody changed without a message, there is no
//! message for somebody who did not change, and the end is the same.

mod lane;
mod worker;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Batch, Request, Stopwatch, TempDir, batch_parts, entity_json, entity_path, messages};

use self::lane::Lane;
use self::worker::{ARCHIVE, CURRENT, DEPARTMENT, WRONG_QUEUE, poison_queue};
use crate::Error;
use crate::contents;
use crate::options::{self, Value};
use crate::queue::door::{self, Addresses, Door};
use crate::summary;
use crate::victim::{Launch, Victim, panicked};

pub use worker::run as run_worker;

const HELP: &str = "\
employees move between tables through a queue, by workers and a server that are killed

  --server PATH      The server's binary
  --rounds N         How many employees move by workers that die, and how often the server dies [default: 200]
  --seed S           Seed of the moments of the kills [default: a new one]";

const ROUND_COUNT: usize = 200;
/// Rounds that run at the same time, each with a queue of its own: most of a round is waiting.
const LANE_COUNT: usize = 20;
/// Of the second part: those who ask to leave at the same time, and how often each does.
const REQUESTER_COUNT: usize = 8;
const REQUEST_COUNT: usize = 12;
const WORKER_COUNT: usize = 2;
const LOAD_MS_MAX: u64 = 120;
const ROUNDS_PER_CHECK: usize = 20;
/// No round and no clearing up takes longer.
const FINISHED_WITHIN: Duration = Duration::from_secs(120);
const OUTBOX_QUEUE: &str = "leaving";

pub struct Settings {
    pub server: PathBuf,
    pub rounds: usize,
    pub seed: u64,
    /// Environment variables for the server.
    pub environment: Vec<(String, String)>,
}

/// The results. Every promise held if `broken` is empty.
#[derive(Default)]
pub struct Verdict {
    pub broken: Vec<String>,
    pub rounds: usize,
    pub worker_kills: usize,
    suicides: usize,
    moved: usize,
    poison: usize,
    pub server_kills: usize,
    left: usize,
    open_applied: usize,
    open_absent: usize,
    pub kept: Option<PathBuf>,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let mut settings = Settings {
        server: PathBuf::new(),
        rounds: ROUND_COUNT,
        seed: fastrand::u64(..),
        environment: Vec::new(),
    };
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut settings.server),
        ("rounds", &mut settings.rounds),
        ("seed", &mut settings.seed),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if settings.server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary to try".into());
    }
    println!("employees: {} rounds, seed {}", settings.rounds, settings.seed);
    let watch = Stopwatch::start();
    let verdict = rounds(&settings)?;
    summary::head("employees", &format!("{} rounds", verdict.rounds), watch.elapsed(), settings.seed);
    summary::line(verdict.worker_kills, "workers killed after a step");
    summary::line(verdict.suicides, "workers killed by their message");
    summary::line(verdict.moved, "employees moved by workers that died");
    summary::line(verdict.poison, "poison messages in their own queue");
    summary::line(verdict.server_kills, "kills of the server and its workers while employees asked to leave");
    summary::line(verdict.left, "employees left through the outbox");
    summary::line(verdict.open_applied, "requests open at a kill changed the employee and put the message");
    summary::line(verdict.open_absent, "requests open at a kill did neither");
    summary::broken(&verdict.broken);
    if let Some(kept) = &verdict.kept {
        println!("The store is kept in {}.", kept.display());
        println!(
            "To repeat it, though never with the same timing: cargo xtask employees --rounds {} --seed {}",
            settings.rounds, settings.seed
        );
    }
    Ok(summary::verdict("employees", &verdict.broken))
}

pub fn rounds(settings: &Settings) -> Result<Verdict, Error> {
    let directory = TempDir::with_prefix("lazulite-employees-")?;
    let mut launch = Launch::new(&settings.server, &directory.path().join("store"));
    launch.environment = settings.environment.clone();
    let mut trial =
        Trial { launch, settings, random: Rng::with_seed(settings.seed), verdict: Verdict::default() };
    let mut outcome = trial.dying_workers()?;
    if outcome.is_ok() {
        outcome = trial.dying_servers()?;
    }
    let mut verdict = trial.verdict;
    if let Err(what) = outcome {
        verdict.broken.push(what);
        verdict.kept = Some(directory.keep());
    }
    Ok(verdict)
}

struct Trial<'a> {
    launch: Launch,
    settings: &'a Settings,
    random: Rng,
    verdict: Verdict,
}

/// The inner error is a broken promise.
type Checked<T> = Result<Result<T, String>, Error>;

impl Trial<'_> {
    fn start(&self) -> Checked<Victim> {
        let started = self.launch.start()?;
        Ok(started.map_err(|refusal| format!("the server does not start: {}", refusal.words)))
    }

    /// The first part.
    fn dying_workers(&mut self) -> Checked<()> {
        let server = match self.start()? {
            Ok(server) => server,
            Err(what) => return Ok(Err(what)),
        };
        let addresses = addresses(&server);
        let mut door = Door::new(addresses);
        for table in [CURRENT, ARCHIVE] {
            create(door.table(&Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"))))?;
        }
        create(door.queue(&Request::put(&format!("/{WRONG_QUEUE}"))))?;
        let next = AtomicUsize::new(0);
        let round_count = self.settings.rounds;
        let outcome = std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..LANE_COUNT.min(round_count))
                .map(|lane| {
                    let next = &next;
                    scope.spawn(move || Lane::new(lane, addresses)?.run(next, round_count))
                })
                .collect();
            let join = |lane: std::thread::ScopedJoinHandle<'_, Result<Lane, Error>>| {
                lane.join().unwrap_or_else(|_| Err("a lane gave up: see above".into()))
            };
            lanes.into_iter().map(join).collect::<Result<Vec<Lane>, Error>>()
        });
        let lanes = outcome?;
        let mut expected = BTreeSet::new();
        for lane in lanes {
            self.verdict.rounds += lane.round_count;
            self.verdict.worker_kills += lane.kill_count;
            self.verdict.suicides += lane.suicide_count;
            self.verdict.poison += lane.poison.len();
            let found = texts(&mut door, &poison_queue(&lane.queue))?;
            if found != lane.poison {
                return Ok(Err(format!(
                    "the poison queue of {} has {found:?}, not {:?}",
                    lane.queue, lane.poison
                )));
            }
            expected.extend(lane.moved);
        }
        self.verdict.moved = expected.len();
        if let Err(what) = check_places(&server, &expected, &BTreeSet::new()) {
            return Ok(Err(what));
        }
        forget(&mut door, ARCHIVE, expected)?;
        Ok(end(server))
    }

    /// The second part.
    fn dying_servers(&mut self) -> Checked<()> {
        let mut staff = Staff::default();
        for round in 0..self.settings.rounds {
            let server = match self.start()? {
                Ok(server) => server,
                Err(what) => return Ok(Err(what)),
            };
            if round == 0 {
                let mut door = Door::new(addresses(&server));
                for queue in [OUTBOX_QUEUE.to_owned(), poison_queue(OUTBOX_QUEUE)] {
                    create(door.queue(&Request::put(&format!("/{queue}"))))?;
                }
            }
            if let Err(what) = self.leave_and_kill(round, &server, &mut staff)? {
                return Ok(Err(format!("round {round}: {what}; the server's log: {}", server.finish())));
            }
            let words = server.finish();
            if panicked(&words) {
                return Ok(Err(format!("round {round}: the server panicked: {words}")));
            }
            self.verdict.server_kills += 1;
            let is_last = round + 1 == self.settings.rounds;
            if is_last || (round + 1).is_multiple_of(ROUNDS_PER_CHECK) {
                if let Err(what) = self.clear_up(&mut staff)? {
                    return Ok(Err(format!("after round {round}: {what}")));
                }
                println!("  round {:>4}: {} employees left through the outbox", round + 1, self.verdict.left);
            }
        }
        Ok(Ok(()))
    }

    /// Employees ask to leave while workers move them; then everybody is killed.
    fn leave_and_kill(&mut self, round: usize, server: &Victim, staff: &mut Staff) -> Checked<()> {
        let addresses = addresses(server);
        let mut workers = Vec::new();
        for _ in 0..WORKER_COUNT {
            workers.push(spawn_worker(addresses, OUTBOX_QUEUE, false)?);
        }
        let load = Duration::from_micros(self.random.u64(5_000..LOAD_MS_MAX * 1000));
        let stopping = AtomicBool::new(false);
        let stopping = &stopping;
        let requesters: Vec<Result<Staff, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..REQUESTER_COUNT)
                .map(|number| scope.spawn(move || request_to_leave(round, number, addresses, stopping)))
                .collect();
            std::thread::sleep(load);
            // A worker may die without its server, and a server without its workers.
            let mut victims: Vec<&mut Child> = workers.iter_mut().collect();
            if self.random.bool() {
                victims.iter_mut().for_each(|child| drop(child.kill()));
            }
            stopping.store(true, Ordering::SeqCst);
            server.kill();
            victims.iter_mut().for_each(|child| drop(child.kill()));
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Staff, String>>| {
                thread.join().unwrap_or_else(|_| Err("a requester gave up: see above".to_owned()))
            };
            threads.into_iter().map(join).collect()
        });
        for mut child in workers {
            child.wait()?;
        }
        for requester in requesters {
            match requester {
                Ok(part) => staff.add(part),
                Err(what) => return Ok(Err(what)),
            }
        }
        Ok(Ok(()))
    }

    /// Lets workers finish, and looks where everybody is.
    fn clear_up(&mut self, staff: &mut Staff) -> Checked<()> {
        let server = match self.start()? {
            Ok(server) => server,
            Err(what) => return Ok(Err(what)),
        };
        let mut worker = spawn_worker(addresses(&server), OUTBOX_QUEUE, false)?;
        if wait(&mut worker)?.is_none_or(|code| code != 0) {
            return Ok(Err(format!("the last worker did not come through: {}", server.finish())));
        }
        let mut door = Door::new(addresses(&server));
        for queue in [WRONG_QUEUE.to_owned(), poison_queue(OUTBOX_QUEUE)] {
            let found = texts(&mut door, &queue)?;
            if !found.is_empty() {
                return Ok(Err(format!("messages came although their employees did not change: {found:?}")));
            }
        }
        let current = match contents::rows(&server, CURRENT, Some(DEPARTMENT)) {
            Ok(rows) => rows,
            Err(failure) => return Ok(Err(failure.to_string())),
        };
        // Who asked and heard nothing has either left or not, as a whole.
        for name in std::mem::take(&mut staff.open) {
            match current.get(&(DEPARTMENT.to_owned(), name.clone())) {
                Some(row) if row.properties.get("Leaving") == Some(&true.into()) => {
                    return Ok(Err(format!("{name} changed, but no message came")));
                }
                Some(_) => {
                    self.verdict.open_absent += 1;
                    staff.stayed.insert(name);
                }
                None => {
                    self.verdict.open_applied += 1;
                    staff.left.insert(name);
                }
            }
        }
        let hired = |name: &String| current.contains_key(&(DEPARTMENT.to_owned(), name.clone()));
        staff.stayed.extend(std::mem::take(&mut staff.perhaps_hired).into_iter().filter(hired));
        self.verdict.left += staff.left.len();
        if let Err(what) = check_places(&server, &staff.left, &staff.stayed) {
            return Ok(Err(what));
        }
        forget(&mut door, ARCHIVE, std::mem::take(&mut staff.left))?;
        forget(&mut door, CURRENT, std::mem::take(&mut staff.stayed))?;
        Ok(end(server))
    }
}

/// Where the employees of the second part must be.
#[derive(Default)]
struct Staff {
    left: BTreeSet<String>,
    stayed: BTreeSet<String>,
    /// Those who asked to leave and heard no answer.
    open: BTreeSet<String>,
    perhaps_hired: BTreeSet<String>,
}

impl Staff {
    fn add(&mut self, other: Staff) {
        self.left.extend(other.left);
        self.stayed.extend(other.stayed);
        self.open.extend(other.open);
        self.perhaps_hired.extend(other.perhaps_hired);
    }
}

/// Hires employees, who ask to leave at once: one transaction changes the employee, notes it, and puts the message.
fn request_to_leave(
    round: usize,
    number: usize,
    addresses: Addresses,
    stopping: &AtomicBool,
) -> Result<Staff, String> {
    let mut door = Door::new(addresses);
    let mut staff = Staff::default();
    for index in 0..REQUEST_COUNT {
        let name = format!("r{round}-{number}-{index}");
        let hired = entity_json(DEPARTMENT, &name, "\"Leaving\":false");
        match door.table(&Request::post(&format!("/{CURRENT}")).json(&hired)) {
            Ok(response) if response.status == 201 => {}
            Err(_) if stopping.load(Ordering::SeqCst) => {
                staff.perhaps_hired.insert(name);
                return Ok(staff);
            }
            other => return Err(format!("{name} is not hired: {other:?}")),
        }
        staff.stayed.insert(name.clone());
        let path = entity_path(CURRENT, DEPARTMENT, &name);
        let headers = door::outbox_headers(OUTBOX_QUEUE, &name);
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let batch = Batch::new().operation("MERGE", &path, &headers, Some("{\"Leaving\":true}"));
        match door.table(&batch.request()) {
            Ok(response) if response.status == 202 && batch_parts(&response)[0].status == 204 => {
                staff.stayed.remove(&name);
                staff.left.insert(name);
            }
            Err(_) if stopping.load(Ordering::SeqCst) => {
                staff.stayed.remove(&name);
                staff.open.insert(name);
                return Ok(staff);
            }
            other => return Err(format!("{name} asked to leave: {other:?}")),
        }
    }
    Ok(staff)
}

/// Everybody is in exactly one table: these in Archive, those in Current.
fn check_places(server: &Victim, left: &BTreeSet<String>, stayed: &BTreeSet<String>) -> Result<(), String> {
    for (table, expected) in [(ARCHIVE, left), (CURRENT, stayed)] {
        let rows = contents::rows(server, table, Some(DEPARTMENT)).map_err(|failure| failure.to_string())?;
        let found: BTreeSet<String> = rows.into_keys().map(|(_, name)| name).collect();
        if found != *expected {
            let missing: Vec<&String> = expected.difference(&found).collect();
            let surplus: Vec<&String> = found.difference(expected).collect();
            return Err(format!("{table} lacks {missing:?}, and {surplus:?} should not be there"));
        }
    }
    Ok(())
}

/// Deletes these employees, so that the next check reads only what is new.
fn forget(door: &mut Door, table: &str, names: BTreeSet<String>) -> Result<(), Error> {
    for name in names {
        let path = entity_path(table, DEPARTMENT, &name);
        let response = door.table(&Request::delete(&path).header("If-Match", "*"))?;
        if response.status != 204 {
            return Err(format!("{name} cannot be deleted: {response:?}").into());
        }
    }
    Ok(())
}

/// The texts in a queue, which is emptied.
fn texts(door: &mut Door, queue: &str) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    loop {
        let list = messages(&door.queue(&door::get(queue, 32, 3600))?);
        if list.is_empty() {
            return Ok(found);
        }
        found.extend(list.into_iter().map(|message| message.text));
    }
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

fn end(server: Victim) -> Result<(), String> {
    let words = server.finish();
    if panicked(&words) { Err(format!("the server panicked: {words}")) } else { Ok(()) }
}

/// This program again, as a worker.
fn spawn_worker(addresses: Addresses, queue: &str, is_guided: bool) -> Result<Child, Error> {
    let child = Command::new(std::env::current_exe()?)
        .arg("employees-worker")
        .args(["--table-address", &addresses.table.to_string()])
        .args(["--queue-address", &addresses.queue.to_string()])
        .args(["--queue", queue, "--guided", if is_guided { "yes" } else { "no" }])
        .stdin(if is_guided { Stdio::piped() } else { Stdio::null() })
        .stdout(if is_guided { Stdio::piped() } else { Stdio::null() })
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child)
}

/// The exit code of a worker; `None` if a signal ended it.
fn wait(worker: &mut Child) -> Result<Option<i32>, Error> {
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = worker.try_wait()? {
            return Ok(status.code());
        }
        if watch.elapsed() > FINISHED_WITHIN {
            worker.kill()?;
            worker.wait()?;
            return Err("a worker never finishes".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
