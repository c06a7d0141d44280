//! `blob-histories`: a few clients work on few blobs, with ETags, leases, blocks and append positions, over HTTP and
//! the real binary. Some do not wait for their answers, and the server is killed with `kill -9` in between. Each
//! history must be linearizable.
//!
//! Linearizability is local, so each blob is checked by itself. `model.rs` is the model for the answers; the search
//! is that of `histories`.

mod model;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Request, Response, Stopwatch, TempDir};

use self::model::{
    BlobAnswer, BlobCall, BlobModel, BlobOperation, BlobTag, BlockNumber, LeaseNumber, SeenBlob, SeenLease,
    TagCondition, length_of,
};
use crate::Error;
use crate::blob::body;
use crate::blob::door::{self, BlobDoor};
use crate::histories::checker::{self, Interval};
use crate::options::{self, Value};
use crate::summary;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
concurrent histories of blobs with conditions and leases, checked for linearizability

  --server PATH      The server's binary
  --histories N      How many histories [default: 1000]
  --seed S           Seed of the first history; the next has S + 1, and so on [default: 1]";

const HISTORY_COUNT: u64 = 1_000;
const HISTORIES_PER_REPORT: u64 = 100;
const CONTAINER: &str = "histories";
/// Operations on one blob.
const CALLS_PER_BLOB_MAX: usize = 44;
/// One history in this many has a kill.
const KILL_INTERVAL: u32 = 8;
/// For one change in this many, the client does not wait for the answer.
const ABANDONED_INTERVAL: u32 = 30;
const ABANDONED_WAIT_US_MAX: u64 = 1_500;
/// Long enough for any restart.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(60);
const CONNECT_PAUSE: Duration = Duration::from_millis(5);
/// The search gives up beyond this.
const CONFIGURATION_COUNT_MAX: usize = 2_000_000;
const LEASES: [&str; 3] = [
    "00000000-0000-0000-0000-00000000000a",
    "00000000-0000-0000-0000-00000000000b",
    "00000000-0000-0000-0000-00000000000c",
];

/// Identifiers of blocks.
const BLOCKS: [&str; 3] = ["MQ==", "Mg==", "Mw=="];

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
    pub operations: usize,
    kills: usize,
    refused: usize,
    unknown: usize,
    undecided: usize,
    configurations_max: usize,
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
    summary::head("blob-histories", &done, watch.elapsed(), settings.seed);
    summary::line(verdict.operations, "operations");
    summary::line(verdict.refused, "of them refused");
    summary::line(verdict.unknown, "without an answer");
    summary::line(verdict.kills, "kills and restarts");
    summary::line(verdict.configurations_max, "configurations in the largest search");
    summary::line(verdict.undecided, "blobs whose operations are too many to judge");
    summary::broken(&verdict.broken);
    if let Some(kept) = &verdict.kept {
        println!("The store is kept in {}.", kept.display());
    }
    Ok(summary::verdict("blob-histories", &verdict.broken) && verdict.undecided == 0)
}

/// Records and judges histories until one breaks a promise or all are done.
pub fn histories(settings: &Settings) -> Result<Verdict, Error> {
    let directory = TempDir::with_prefix("lazulite-blob-histories-")?;
    let mut launch = Launch::new(&settings.server, &directory.path().join("store"));
    launch.environment = settings.environment.clone();
    let clock = Stopwatch::start();
    let server = start(&launch)?;
    let created = BlobDoor::new(server.blob_addr()).ask(&door::create_container(CONTAINER))?;
    if created.status != 201 {
        return Err(format!("no container: {created:?}").into());
    }
    let mut world = World { launch, clock: &clock, server, next_id: 1, verdict: Verdict::default() };
    for seed in settings.seed..settings.seed.saturating_add(settings.history_count) {
        let outcome = world.history(seed)?;
        world.verdict.histories += 1;
        if let Err(what) = outcome {
            let how = format!(
                "to repeat it, though never with the same timing: cargo xtask blob-histories --histories 100 --seed {seed}"
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

fn start(launch: &Launch) -> Result<Victim, Error> {
    launch.start()?.map_err(|refusal| format!("the server does not start: {}", refusal.words).into())
}

struct World<'a> {
    launch: Launch,
    clock: &'a Stopwatch,
    server: Victim,
    next_id: u32,
    verdict: Verdict,
}

/// What the clients of one history share.
struct Ground<'a> {
    clock: &'a Stopwatch,
    addr: Mutex<SocketAddr>,
    /// Paths; every second one is an append blob.
    blobs: Vec<String>,
    next_id: AtomicU32,
    finished_count: AtomicUsize,
    /// ETags and sizes of each blob that any client has seen, the latest last.
    seen: Vec<Mutex<Vec<(BlobTag, u64)>>>,
}

type Recorded = Interval<BlobOperation>;

impl World<'_> {
    /// The inner error is a broken promise.
    fn history(&mut self, seed: u64) -> Result<Result<(), String>, Error> {
        let mut random = Rng::with_seed(seed);
        random.u64(..);
        let blob_count = random.usize(1..=2);
        let first = usize::from(random.bool());
        let client_count = random.usize(3..=6);
        let call_count = blob_count * random.usize(20..=CALLS_PER_BLOB_MAX);
        let kill_after = (random.u32(..KILL_INTERVAL) == 0).then(|| random.usize(1..call_count));
        let name = |number: usize| {
            format!("/{CONTAINER}/h{seed}-{}{number}", if is_append(number) { "a" } else { "b" })
        };
        let ground = Ground {
            clock: self.clock,
            addr: Mutex::new(self.server.blob_addr()),
            blobs: (first..first + blob_count).map(name).collect(),
            next_id: AtomicU32::new(self.next_id),
            finished_count: AtomicUsize::new(0),
            seen: (0..blob_count).map(|_| Mutex::default()).collect(),
        };
        let clients: Vec<Client<'_>> =
            (0..client_count).map(|number| Client::new(&ground, first, number, random.fork())).collect();
        let recorded = std::thread::scope(|scope| -> Result<Result<Vec<_>, String>, Error> {
            let threads: Vec<_> = clients
                .into_iter()
                .map(|mut client| {
                    scope.spawn(move || client.run(call_count / client_count).map(|()| client.recorded))
                })
                .collect();
            if let Some(kill_after) = kill_after {
                let is_over = || threads.iter().all(|thread| thread.is_finished());
                while ground.finished_count.load(Ordering::Acquire) < kill_after && !is_over() {
                    std::thread::sleep(Duration::from_micros(200));
                }
                self.server.kill();
                self.server = start(&self.launch)?;
                self.verdict.kills += 1;
                *ground.addr.lock().unwrap_or_else(PoisonError::into_inner) = self.server.blob_addr();
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Vec<(usize, Recorded)>, String>>| {
                thread.join().unwrap_or_else(|_| Err("a client gave up: see above".to_owned()))
            };
            Ok(threads.into_iter().map(join).collect())
        })?;
        let mut last = Client::new(&ground, first, client_count, random.fork());
        let looked = (0..blob_count).try_for_each(|blob| last.call(blob, BlobCall::Get));
        self.next_id = ground.next_id.load(Ordering::Acquire);
        let recorded = recorded.and_then(|recorded| looked.map(|()| recorded));
        Ok(recorded.and_then(|mut recorded| {
            recorded.push(last.recorded);
            self.judge(recorded.concat(), first, blob_count)
        }))
    }

    fn judge(
        &mut self,
        recorded: Vec<(usize, Recorded)>,
        first: usize,
        blob_count: usize,
    ) -> Result<(), String> {
        let mut blobs: Vec<Vec<Recorded>> = vec![Vec::new(); blob_count];
        for (blob, recorded) in recorded {
            self.verdict.operations += 1;
            match recorded.operation.answer {
                BlobAnswer::Refused(_) => self.verdict.refused += 1,
                BlobAnswer::Unknown => self.verdict.unknown += 1,
                _ => {}
            }
            blobs[blob].push(recorded);
        }
        for (blob, history) in blobs.iter().enumerate() {
            let model = BlobModel::learn(is_append(first + blob), history);
            let checked = checker::check(&model, history, CONFIGURATION_COUNT_MAX);
            self.verdict.configurations_max =
                self.verdict.configurations_max.max(checked.configuration_count);
            match checked.verdict {
                checker::Verdict::Linearizable => {}
                checker::Verdict::Undecided => self.verdict.undecided += 1,
                checker::Verdict::Violation { longest } => {
                    return Err(format!(
                        "of {} operations on a blob at most {longest} fit into one order:\n{}",
                        history.len(),
                        readable(history)
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Every second blob is an append blob.
fn is_append(number: usize) -> bool {
    number % 2 == 1
}

/// One line for each operation, in the order of their invocations.
fn readable(history: &[Recorded]) -> String {
    let mut ordered: Vec<&Recorded> = history.iter().collect();
    ordered.sort_by_key(|recorded| recorded.invoked);
    let line = |recorded: &&Recorded| {
        let BlobOperation { id, client, call, answer } = &recorded.operation;
        let end = recorded.returned.map_or("never".to_owned(), |end| end.to_string());
        format!("{} to {end}: client {client} #{id} {call:?} -> {answer:?}\n", recorded.invoked)
    };
    ordered.iter().map(line).collect()
}

struct Client<'a> {
    ground: &'a Ground<'a>,
    /// The number of the first blob.
    first: usize,
    number: usize,
    random: Rng,
    door: Option<BlobDoor>,
    recorded: Vec<(usize, Recorded)>,
}

impl<'a> Client<'a> {
    fn new(ground: &'a Ground<'a>, first: usize, number: usize, random: Rng) -> Client<'a> {
        Client { ground, first, number, random, door: None, recorded: Vec::new() }
    }

    /// Makes this many calls. An error is an answer that the service never gives.
    fn run(&mut self, count: usize) -> Result<(), String> {
        for _ in 0..count {
            let blob = self.random.usize(..self.ground.blobs.len());
            let call = self.any_call(blob);
            self.call(blob, call)?;
            self.ground.finished_count.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn any_call(&mut self, blob: usize) -> BlobCall {
        let lease = self.lease_number();
        let seen = self.ground.seen[blob].lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Mostly the latest, sometimes an old one.
        let seen = match self.random.u8(..4) {
            0 => seen.get(self.random.usize(..seen.len().max(1))).copied(),
            _ => seen.last().copied(),
        };
        let condition = match (self.random.u8(..8), seen) {
            (0 | 1, Some((tag, _))) => TagCondition::Match(tag),
            (2, Some((tag, _))) => TagCondition::NoneMatch(tag),
            (3, _) => TagCondition::Absent,
            _ => TagCondition::None,
        };
        let sent = (self.random.u8(..3) == 0).then_some(lease);
        let other = self.lease_number();
        let is_append = is_append(self.first + blob);
        match self.random.u8(..100) {
            0..12 => BlobCall::Get,
            12..18 => BlobCall::Head,
            18..25 if condition != TagCondition::Absent => BlobCall::Delete { lease: sent, condition },
            25..33 => BlobCall::Acquire(lease),
            33..37 => BlobCall::Renew(lease),
            37..41 => BlobCall::Change(lease, other),
            41..48 => BlobCall::Release(lease),
            48..53 => BlobCall::Break,
            _ if is_append && condition != TagCondition::Absent && self.random.u8(..6) > 0 => {
                let position = seen.map(|(_, size)| size).filter(|_| self.random.bool());
                BlobCall::Append { lease: sent, condition, position }
            }
            53..68 if !is_append => BlobCall::Stage { lease: sent, block: self.block_number() },
            68..80 if !is_append => {
                let count = self.random.usize(1..=3);
                let mut blocks = [None; 3];
                blocks[..count].fill_with(|| Some(self.block_number()));
                BlobCall::Commit { lease: sent, condition, blocks }
            }
            _ => BlobCall::Put { lease: sent, condition },
        }
    }

    fn block_number(&mut self) -> BlockNumber {
        self.random.u8(..BLOCKS.len() as u8)
    }

    fn lease_number(&mut self) -> LeaseNumber {
        self.random.u8(..LEASES.len() as u8)
    }

    fn call(&mut self, blob: usize, call: BlobCall) -> Result<(), String> {
        let id = self.ground.next_id.fetch_add(1, Ordering::AcqRel);
        let request = self.request(blob, id, call);
        let is_read = matches!(call, BlobCall::Get | BlobCall::Head);
        let is_abandoned = !is_read && self.random.u32(..ABANDONED_INTERVAL) == 0;
        self.connect()?;
        let invoked = self.now();
        let Some(door) = &mut self.door else { return Err("no connection".to_owned()) };
        let reply = match is_abandoned {
            true => {
                let sent =
                    door.abandon(&request, Duration::from_micros(self.random.u64(..ABANDONED_WAIT_US_MAX)));
                sent.map(|()| None)
            }
            false => door.ask(&request).map(Some),
        };
        let returned = self.now();
        let (answer, returned) = match reply {
            Ok(Some(response)) if response.status < 500 => {
                (self.answer(blob, id, call, &response)?, Some(returned))
            }
            Ok(_) => (BlobAnswer::Unknown, None),
            Err(_) => {
                self.door = None;
                (BlobAnswer::Unknown, None)
            }
        };
        // A read without an answer says nothing.
        if !is_read || returned.is_some() {
            let operation = BlobOperation { id, client: self.number, call, answer };
            self.recorded.push((blob, Interval { operation, invoked, returned }));
        }
        Ok(())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.ground.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Waits until there is a server.
    fn connect(&mut self) -> Result<(), String> {
        let watch = Stopwatch::start();
        while self.door.is_none() {
            let addr = *self.ground.addr.lock().unwrap_or_else(PoisonError::into_inner);
            let mut door = BlobDoor::new(addr);
            match door.connect() {
                Ok(()) => self.door = Some(door),
                Err(error) if watch.elapsed() > CONNECT_TIME_MAX => {
                    return Err(format!("no server: {error}"));
                }
                Err(_) => std::thread::sleep(CONNECT_PAUSE),
            }
        }
        Ok(())
    }

    fn request(&self, blob: usize, id: u32, call: BlobCall) -> Request {
        let path = &self.ground.blobs[blob];
        let bytes = body::make(id.into(), length_of(id));
        let lease_action =
            |action: &str| Request::put(&format!("{path}?comp=lease")).header("x-ms-lease-action", action);
        let lease_id = |request: Request, lease: LeaseNumber| {
            request.header("x-ms-lease-id", LEASES[usize::from(lease)])
        };
        let proposed = |request: Request, lease: LeaseNumber| {
            request.header("x-ms-proposed-lease-id", LEASES[usize::from(lease)])
        };
        let guarded = |request: Request, lease: Option<LeaseNumber>, condition: TagCondition| {
            let request = match lease {
                Some(lease) => lease_id(request, lease),
                None => request,
            };
            match condition {
                TagCondition::None => request,
                TagCondition::Match(tag) => request.header("If-Match", &format!("\"0x{tag:X}\"")),
                TagCondition::NoneMatch(tag) => request.header("If-None-Match", &format!("\"0x{tag:X}\"")),
                TagCondition::Absent => request.header("If-None-Match", "*"),
            }
        };
        match call {
            BlobCall::Put { lease, condition } => {
                let request = match is_append(self.first + blob) {
                    true => door::create_append(path),
                    false => door::put(path, &bytes),
                };
                guarded(request.header("x-ms-meta-born", &id.to_string()), lease, condition)
            }
            BlobCall::Append { lease, condition, position } => {
                let request = guarded(door::append(path, &bytes), lease, condition);
                match position {
                    Some(position) => request.header("x-ms-blob-condition-appendpos", &position.to_string()),
                    None => request,
                }
            }
            BlobCall::Stage { lease, block } => {
                guarded(door::stage(path, BLOCKS[usize::from(block)], &bytes), lease, TagCondition::None)
            }
            BlobCall::Commit { lease, condition, blocks } => {
                let listed = |block: BlockNumber| ("Latest", BLOCKS[usize::from(block)].to_owned());
                let listed: Vec<_> = blocks.into_iter().flatten().map(listed).collect();
                let request = door::commit_list(path, &listed);
                guarded(request.header("x-ms-meta-born", &id.to_string()), lease, condition)
            }
            BlobCall::Delete { lease, condition } => guarded(Request::delete(path), lease, condition),
            BlobCall::Acquire(lease) => {
                proposed(lease_action("acquire").header("x-ms-lease-duration", "-1"), lease)
            }
            BlobCall::Renew(lease) => lease_id(lease_action("renew"), lease),
            BlobCall::Change(from, to) => proposed(lease_id(lease_action("change"), from), to),
            BlobCall::Release(lease) => lease_id(lease_action("release"), lease),
            BlobCall::Break => lease_action("break").header("x-ms-lease-break-period", "0"),
            BlobCall::Get => Request::get(path),
            BlobCall::Head => Request::head(path),
        }
    }

    fn answer(
        &self,
        blob: usize,
        id: u32,
        call: BlobCall,
        response: &Response,
    ) -> Result<BlobAnswer, String> {
        let strange = |why: &str| format!("{call:?} is answered strangely ({why}): {response:?}");
        let tag = response
            .header("ETag")
            .and_then(|tag| BlobTag::from_str_radix(tag.trim_matches('"').strip_prefix("0x")?, 16).ok());
        let done = match call {
            BlobCall::Put { .. }
            | BlobCall::Append { .. }
            | BlobCall::Stage { .. }
            | BlobCall::Commit { .. }
            | BlobCall::Acquire(_) => 201,
            BlobCall::Delete { .. } | BlobCall::Break => 202,
            _ => 200,
        };
        if response.status != done {
            return match (call, response.status) {
                (BlobCall::Get | BlobCall::Head, 404) => Ok(BlobAnswer::Found(None)),
                (BlobCall::Get | BlobCall::Head, _) => Err(strange("a read")),
                (BlobCall::Commit { .. }, status @ 400) => Ok(BlobAnswer::Refused(status)),
                (_, status @ (404 | 409 | 412)) => Ok(BlobAnswer::Refused(status)),
                _ => Err(strange("the status")),
            };
        }
        let saw = |tag: BlobTag, size: u64| {
            self.ground.seen[blob].lock().unwrap_or_else(PoisonError::into_inner).push((tag, size));
        };
        match call {
            BlobCall::Put { .. } | BlobCall::Append { .. } | BlobCall::Commit { .. } => {
                let tag = tag.ok_or_else(|| strange("no ETag"))?;
                let offset = response.header("x-ms-blob-append-offset").and_then(|at| at.parse::<u64>().ok());
                saw(tag, offset.map_or(0, |offset| offset + length_of(id) as u64));
                Ok(BlobAnswer::Done(Some(tag)))
            }
            BlobCall::Get | BlobCall::Head => {
                let number = |name: &str| response.header(name).and_then(|text| text.parse::<u64>().ok());
                let lease = match response.header("x-ms-lease-state") {
                    Some("available") => SeenLease::Available,
                    Some("leased") => SeenLease::Leased,
                    Some("broken") => SeenLease::Broken,
                    _ => return Err(strange("the state of the lease")),
                };
                let pieces = match call {
                    BlobCall::Get => Some(pieces(&response.body).ok_or_else(|| strange("the bytes"))?),
                    _ => None,
                };
                let (Some(tag), Some(born), Some(size)) =
                    (tag, number("x-ms-meta-born"), number("Content-Length"))
                else {
                    return Err(strange("a header is missing"));
                };
                // Only a tag of which the model knows the write can be used in a condition.
                if pieces.is_some() || size == 0 || !is_append(self.first + blob) {
                    saw(tag, size);
                }
                Ok(BlobAnswer::Found(Some(SeenBlob { tag, born: born as u32, pieces, size, lease })))
            }
            _ => Ok(BlobAnswer::Done(None)),
        }
    }
}

/// The operations whose bytes these are, one after the other.
fn pieces(mut bytes: &[u8]) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    while !bytes.is_empty() {
        let id = u32::try_from(body::number_of(bytes)?).ok()?;
        let (piece, rest) = bytes.split_at_checked(length_of(id))?;
        if *piece != **body::make(id.into(), length_of(id)) {
            return None;
        }
        ids.push(id);
        bytes = rest;
    }
    Some(ids)
}
