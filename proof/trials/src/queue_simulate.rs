//! `queue-simulate`: the rules of the Queue service without sockets, in episodes that a seed decides completely: whose turn
//! it is before and after each call of the engine, how time passes, who gives up, which commits fail, and when a process
//! dies.
//!
//! An episode has one service, or two that share an engine as two processes would. Everything that the clients did is
//! judged as in the other trials (`queue.rs`), in simulated time. Two services see each other's messages a second late at
//! most, so lists are judged with that much patience. Leaves to others: the disk (`power.rs`).

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use engine::env::{Clock as _, FakeClock};
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{
    Budget, Commit, CommitError, Engine, Families, Key, KeyRange, OwnedKey, ReadError, Row, Sink, TableId,
    Version,
};
use fastrand::Rng;
use lexopt::Parser;
use protocol::common::{AccountName, Metadata};
use protocol::queue::{MessageId, PopReceipt, QueueName};
use protocol::{ErrorCode, ServiceError};
use queues::{FAMILY, NewMessage, QueueService, VALUE_RULES};

use crate::Error;
use crate::options::{self, Value};
use crate::queue::event::{self, Event, Handle, NEVER, Seen, Time, Told, What};
use crate::queue::ledger::Ledger;

const HELP: &str = "\
the rules of the Queue service in deterministic episodes, with one service or two over one engine

  --operations N     How many operations [default: 1000000]
  --seed S           Seed of the first episode; the next has S + 1, and so on [default: 1]
  --server PATH      Not used: nothing is started";

const OPERATION_COUNT: u64 = 1_000_000;
const EPISODE_OPERATION_COUNT: u64 = 300;
const FAMILIES: Families = Families::NONE.with(FAMILY, VALUE_RULES);
/// One commit in this many fails, or its answer is lost.
const FAULT_INTERVAL: u32 = 150;
/// How late a service sees what another one has done to the same queue.
const LOOK_BACK: Time = 1_000_000;
const SECOND: Time = 1_000_000;

#[derive(Default)]
struct Counts {
    operation_count: u64,
    episode_count: u64,
    shared_count: u64,
    abandoned_count: u64,
    crash_count: u64,
    fault_count: u64,
    undecided_count: usize,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut operation_count, mut first_seed, mut server) = (OPERATION_COUNT, 1u64, String::new());
    let known: &mut [(&str, &mut dyn Value)] =
        &mut [("operations", &mut operation_count), ("seed", &mut first_seed), ("server", &mut server)];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    let mut counts = Counts::default();
    let mut failure = None;
    let mut seed = first_seed;
    while counts.operation_count < operation_count && failure.is_none() {
        failure = episode(seed, &mut counts)?.err().map(|what| (seed, what));
        seed += 1;
    }
    println!("operations        {}", counts.operation_count);
    println!("episodes          {}, {} of them with two services", counts.episode_count, counts.shared_count);
    println!("given up          {}", counts.abandoned_count);
    println!("processes died    {}", counts.crash_count);
    println!("commits failed    {}", counts.fault_count);
    println!("undecided         {}", counts.undecided_count);
    match failure {
        Some((seed, what)) => {
            println!("FAILED: seed {seed}: {what}");
            println!("To repeat it exactly: cargo xtask queue-simulate --operations 1 --seed {seed}");
            Ok(false)
        }
        None => {
            println!("HELD: every episode has an order");
            Ok(counts.undecided_count == 0)
        }
    }
}

/// Runs one episode. The inner error is a broken promise.
fn episode(seed: u64, counts: &mut Counts) -> Result<Result<(), String>, Error> {
    // The ids of messages come from this generator.
    fastrand::seed(seed);
    let mut random = Rng::with_seed(seed ^ 0x5EED_0F0A_11E9_15DE);
    let clock = Arc::new(FakeClock::default());
    let memory = Arc::new(MemoryEngine::new(FAMILIES, clock.clone()));
    let faults = Arc::new(Mutex::new(Faults { random: random.fork(), count: 0, is_on: false }));
    let stage = Stage { engine: memory, faults: faults.clone() };
    let engine: Arc<dyn Engine> = Arc::new(Wrapped(stage));
    let service_count = random.usize(1..=2);
    let account = AccountName::parse("devstoreaccount1").ok_or("no account's name")?;
    let queue = QueueName::parse("queue").map_err(|error| error.to_string())?;
    let mut world = World {
        services: Vec::new(),
        service_count,
        engine,
        clock,
        account,
        queue,
        clients: (0..random.usize(3..=8)).map(|_| Client::default()).collect(),
        events: Vec::new(),
        handles: Vec::new(),
        next_text: 0,
        begun_count: 0,
        random,
    };
    world.services = (0..service_count).map(|_| world.service()).collect();
    let service = world.services[0].clone();
    let (account, queue) = (world.account.clone(), world.queue.clone());
    let created = block_on(service.create_queue(&account, &queue, &Metadata::default()));
    created.map_err(|error| format!("no queue: {error:?}"))?;
    faults.lock().unwrap_or_else(PoisonError::into_inner).is_on = true;
    let outcome = world.run(counts);
    counts.fault_count += faults.lock().unwrap_or_else(PoisonError::into_inner).count;
    counts.operation_count += world.begun_count;
    counts.episode_count += 1;
    counts.shared_count += u64::from(service_count == 2);
    if let Err(what) = outcome {
        return Ok(Err(what));
    }
    let mut ledger = Ledger::default();
    ledger.patience = if service_count == 2 { LOOK_BACK } else { 0 };
    let judged = ledger.judge(world.events.clone());
    counts.undecided_count += ledger.undecided_count;
    Ok(judged.map_err(|what| {
        let file = std::env::temp_dir().join(format!("lazulite-queue-simulate-{seed}"));
        format!("{what}\n{}", event::keep(world.events, &file))
    }))
}

struct World {
    services: Vec<Arc<QueueService>>,
    service_count: usize,
    engine: Arc<dyn Engine>,
    clock: Arc<FakeClock>,
    account: AccountName,
    queue: QueueName,
    clients: Vec<Client>,
    events: Vec<Event>,
    /// What was told to anybody, newest last.
    handles: Vec<(MessageId, PopReceipt)>,
    next_text: u64,
    begun_count: u64,
    random: Rng,
}

/// A client, and what it waits for.
#[derive(Default)]
struct Client {
    doing: Option<Doing>,
}

struct Doing {
    service: usize,
    event: Event,
    answering: Pin<Box<dyn Future<Output = Answer>>>,
}

/// What was told, in the words of an event.
enum Answer {
    What(What),
    /// Nobody looks at the outcome.
    Swept,
    Failed(What, ServiceError),
}

impl World {
    fn service(&self) -> Arc<QueueService> {
        let service = QueueService::new(self.engine.clone(), self.clock.clone());
        Arc::new(if self.service_count == 2 { service.sharing_its_engine() } else { service })
    }

    fn now(&self) -> Time {
        u64::try_from(self.clock.monotonic().as_micros()).unwrap_or(NEVER)
    }

    fn run(&mut self, counts: &mut Counts) -> Result<(), String> {
        while self.begun_count < EPISODE_OPERATION_COUNT
            || self.clients.iter().any(|client| client.doing.is_some())
        {
            self.pass_time();
            let index = self.random.usize(..self.clients.len());
            match self.random.u32(..4_000) {
                0..20 => {
                    if let Some(doing) = self.clients[index].doing.take() {
                        counts.abandoned_count += 1;
                        self.lose(doing);
                    }
                }
                20..23 => {
                    counts.crash_count += 1;
                    self.crash();
                }
                _ if self.clients[index].doing.is_some() => self.turn(index)?,
                _ if self.begun_count < EPISODE_OPERATION_COUNT => self.begin(index),
                _ => {}
            }
        }
        Ok(())
    }

    fn pass_time(&mut self) {
        let us = match self.random.u32(..400) {
            0 => self.random.u64(200_000..3_000_000),
            1..200 => self.random.u64(1..300),
            _ => return,
        };
        self.clock.advance(Duration::from_micros(us));
    }

    /// A process dies: what its clients asked has happened or not, and nothing more will.
    fn crash(&mut self) {
        let died = self.random.usize(..self.services.len());
        let is_lost = |client: &mut Client| client.doing.take_if(|doing| doing.service == died);
        let lost: Vec<Doing> = self.clients.iter_mut().filter_map(is_lost).collect();
        lost.into_iter().for_each(|doing| self.lose(doing));
        self.services[died] = self.service();
    }

    /// Nobody waits for the answer any more. What was done in the engine stays done.
    fn lose(&mut self, doing: Doing) {
        let Doing { event, answering, .. } = doing;
        drop(answering);
        if !matches!(event.what, What::Peek { .. } | What::Count { .. }) {
            self.events.push(Event { ended: self.now(), ..event });
        }
    }

    fn turn(&mut self, index: usize) -> Result<(), String> {
        let Some(doing) = &mut self.clients[index].doing else { return Ok(()) };
        let polled = doing.answering.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(answer) = polled else { return Ok(()) };
        let ended = self.now();
        let Some(doing) = self.clients[index].doing.take() else { return Ok(()) };
        let what = match answer {
            Answer::Swept => return Ok(()),
            Answer::What(what) => what,
            Answer::Failed(what, error) => match error.code {
                // Planned failures: nobody knows what was done.
                ErrorCode::ServerBusy | ErrorCode::InternalError | ErrorCode::OperationTimedOut => {
                    self.lose(doing);
                    return Ok(());
                }
                _ => return Err(format!("{what:?} is refused: {error:?}")),
            },
        };
        let event = Event { ended, what, ..doing.event };
        self.remember(&event);
        self.events.push(event);
        Ok(())
    }

    fn remember(&mut self, event: &Event) {
        let handles: Vec<Handle> = match &event.what {
            What::Put { told: Told::Done(Some(handle)), .. }
            | What::Update { told: Told::Done(handle), .. } => {
                vec![handle.clone()]
            }
            What::Get { told: Told::Done(list), .. } => list.iter().map(|seen| seen.handle.clone()).collect(),
            _ => Vec::new(),
        };
        for handle in handles {
            let receipt = PopReceipt::parse(&handle.receipt).flatten();
            self.handles.extend(MessageId::parse(&handle.id).zip(receipt));
        }
        let surplus = self.handles.len().saturating_sub(30);
        self.handles.drain(..surplus);
    }

    fn begin(&mut self, index: usize) {
        self.begun_count += 1;
        let service_index = self.random.usize(..self.services.len());
        let service = self.services[service_index].clone();
        let (account, queue) = (self.account.clone(), self.queue.clone());
        let began = self.now();
        let (what, answering) = match (self.random.u32(..100), self.any_handle()) {
            (0..32, _) => self.put(service, account, queue),
            (50..70, Some((id, receipt))) => {
                let used = Handle { id: id.to_string(), receipt: receipt.to_string() };
                let what = What::Delete { used, told: Told::Unknown };
                (
                    what.clone(),
                    answering(async move {
                        let told = service.delete_message(&account, &queue, id, receipt).await;
                        let What::Delete { used, .. } = what else { return Answer::Swept };
                        match settled(told) {
                            Ok(told) => Answer::What(What::Delete { used, told }),
                            Err(error) => Answer::Failed(What::Delete { used, told: Told::Unknown }, error),
                        }
                    }),
                )
            }
            (70..82, Some(handle)) => self.update(service, account, queue, handle),
            (82..88, _) => {
                let what = What::Peek { count_max: 32, seen: Vec::new() };
                (
                    what.clone(),
                    answering(async move {
                        match service
                            .peek_messages(&account, &queue, 32, engine::Share::COMMON, &mut |_| true)
                            .await
                        {
                            Ok(list) => {
                                let seen = |message: queues::PeekedMessage| Seen {
                                    handle: Handle { id: message.id.to_string(), receipt: String::new() },
                                    dequeue_count: message.dequeue_count,
                                    text: text_of(&message.text),
                                };
                                let seen = list.into_iter().map(seen).collect();
                                Answer::What(What::Peek { count_max: 32, seen })
                            }
                            Err(error) => Answer::Failed(what, error),
                        }
                    }),
                )
            }
            (88..94, _) => {
                let what = What::Count { count: 0 };
                (
                    what.clone(),
                    answering(async move {
                        match service.properties(&account, &queue).await {
                            Ok(found) => Answer::What(What::Count { count: found.message_count as usize }),
                            Err(error) => Answer::Failed(what, error),
                        }
                    }),
                )
            }
            (94..96, _) => {
                // What a sweep removes has expired already, so it changes nothing that anybody sees.
                (
                    What::Count { count: 0 },
                    answering(async move {
                        let _ = service.sweep(true).await;
                        Answer::Swept
                    }),
                )
            }
            // Another service knows the name of a cleared queue's old table for a while: that is not judged here.
            (96, _) if self.service_count == 1 => {
                let what = What::Clear { told: Told::Unknown };
                (
                    what.clone(),
                    answering(async move {
                        match service.clear_messages(&account, &queue).await {
                            Ok(()) => Answer::What(What::Clear { told: Told::Done(()) }),
                            Err(error) => Answer::Failed(what, error),
                        }
                    }),
                )
            }
            _ => self.get(service, account, queue),
        };
        let event = Event { began, ended: NEVER, what };
        self.clients[index].doing = Some(Doing { service: service_index, event, answering });
    }

    fn any_handle(&mut self) -> Option<(MessageId, PopReceipt)> {
        let count = self.handles.len();
        (count > 0).then(|| self.handles[self.random.usize(..count)])
    }

    fn put(&mut self, service: Arc<QueueService>, account: AccountName, queue: QueueName) -> Planned {
        self.next_text += 1;
        let text = format!("{}", self.next_text);
        let hide = self.random.u64(..2) * self.random.u64(..2) * SECOND;
        let live = (self.random.u8(..4) == 0).then(|| hide + self.random.u64(1..4) * SECOND);
        let message = NewMessage {
            text: Bytes::from(text.clone()),
            visibility: Duration::from_micros(hide),
            time_to_live: live.map(Duration::from_micros),
        };
        let what = What::Put { text: text.clone(), hide, live, told: Told::Unknown };
        (
            what.clone(),
            answering(async move {
                match service.put_message(&account, &queue, message).await {
                    Ok(put) => {
                        let handle = Handle { id: put.id.to_string(), receipt: put.receipt.to_string() };
                        Answer::What(What::Put { text, hide, live, told: Told::Done(Some(handle)) })
                    }
                    Err(error) => Answer::Failed(what, error),
                }
            }),
        )
    }

    fn get(&mut self, service: Arc<QueueService>, account: AccountName, queue: QueueName) -> Planned {
        let count_max = [1, 1, 2, 5, 32][self.random.usize(..5)];
        let hide = self.random.u64(1..3) * SECOND;
        let what = What::Get { count_max, hide, told: Told::Unknown };
        (
            what.clone(),
            answering(async move {
                let visibility = Duration::from_micros(hide);
                match service
                    .get_messages(&account, &queue, count_max, visibility, engine::Share::COMMON, &mut |_| {
                        true
                    })
                    .await
                {
                    Ok(list) => {
                        let seen = |message: queues::TakenMessage| Seen {
                            handle: Handle {
                                id: message.id.to_string(),
                                receipt: message.receipt.to_string(),
                            },
                            dequeue_count: message.dequeue_count,
                            text: text_of(&message.text),
                        };
                        let told = Told::Done(list.into_iter().map(seen).collect());
                        Answer::What(What::Get { count_max, hide, told })
                    }
                    Err(error) => Answer::Failed(what, error),
                }
            }),
        )
    }

    fn update(
        &mut self,
        service: Arc<QueueService>,
        account: AccountName,
        queue: QueueName,
        (id, receipt): (MessageId, PopReceipt),
    ) -> Planned {
        self.next_text += 1;
        let text = self.random.bool().then(|| format!("{}", self.next_text));
        let hide = self.random.u64(..3) * SECOND;
        let used = Handle { id: id.to_string(), receipt: receipt.to_string() };
        let what = What::Update { used: used.clone(), text: text.clone(), hide, told: Told::Unknown };
        (
            what.clone(),
            answering(async move {
                let bytes = text.clone().map(Bytes::from);
                let visibility = Duration::from_micros(hide);
                let updated = service.update_message(&account, &queue, id, receipt, bytes, visibility).await;
                let handle =
                    |receipt: PopReceipt| Handle { id: id.to_string(), receipt: receipt.to_string() };
                match settled(updated.map(|updated| handle(updated.receipt))) {
                    Ok(told) => Answer::What(What::Update { used, text, hide, told }),
                    Err(error) => Answer::Failed(what, error),
                }
            }),
        )
    }
}

/// What is asked, and the answer that will come.
type Planned = (What, Pin<Box<dyn Future<Output = Answer>>>);

fn answering(future: impl Future<Output = Answer> + 'static) -> Pin<Box<dyn Future<Output = Answer>>> {
    Box::pin(future)
}

fn settled<T>(outcome: Result<T, ServiceError>) -> Result<Told<T>, ServiceError> {
    match outcome {
        Ok(done) => Ok(Told::Done(done)),
        Err(error) if error.code == ErrorCode::MessageNotFound => Ok(Told::Refused),
        Err(error) => Err(error),
    }
}

fn text_of(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

/// Pauses its callers before and after each call, and makes some commits fail.
struct Stage {
    engine: Arc<dyn Engine>,
    faults: Arc<Mutex<Faults>>,
}

struct Faults {
    random: Rng,
    count: u64,
    is_on: bool,
}

#[derive(PartialEq, Eq)]
enum Fault {
    Refused,
    AnswerLost,
}

impl Stage {
    fn fault(&self) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if !faults.is_on || faults.random.u32(..FAULT_INTERVAL) > 0 {
            return None;
        }
        faults.count += 1;
        Some(if faults.random.bool() { Fault::Refused } else { Fault::AnswerLost })
    }
}

/// A future that is pending once.
struct Pause(bool);

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

async fn paused<T>(call: impl Future<Output = T>) -> T {
    Pause(false).await;
    let answer = call.await;
    Pause(false).await;
    answer
}

#[async_trait]
impl Wrapper for Stage {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        paused(self.engine.get(table, key)).await
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        paused(self.engine.scan(table, ranges, budget, sink)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        let fault = self.fault();
        if fault == Some(Fault::Refused) {
            return Err(CommitError::Busy);
        }
        let outcome = paused(self.engine.commit(commit)).await;
        match fault {
            Some(Fault::AnswerLost) => Err(CommitError::Storage("as planned".into())),
            _ => outcome,
        }
    }
}
