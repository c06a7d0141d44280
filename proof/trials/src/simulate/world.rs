//! One episode's world: the service over a staged engine, the model, and the clients of both.
//!
//! A client pauses before and after each engine call, and the seed decides whose turn is next. The model determines the
//! right answer at the moment of the engine call; it is compared when the answer comes. So there is exactly one right
//! answer, although many operations are in progress.
//!
//! The simulation cannot schedule the local engine's commit thread. So clients pause before their commits, and then
//! hand them over together behind a gate in the disk: the first commit goes alone, the others form the next group. The
//! simulation also waits for the sweep of a dropped table. So the seed decides the groups, and what a fault hits.
//!
//! Owns: the clients and their turns, the faults, and the reopenings. Leaves to others: what an answer must be
//! (`judge.rs`), and the comparison of the whole store with the model (`compare.rs`).

mod compare;
mod judge;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use engine::env::FakeClock;
use engine::faults::Faults;
use engine::{CommitError, Engine, ReadError, TableId};
use fastrand::Rng;
use protocol::common::AccountName;
use tables::TableService;

use self::compare::Unknown;
use self::judge::Expected;
use super::ask::{Answer, Answering, Ask};
use super::disk::{DiskCall, Fault};
use super::model::Model;
use super::stage::{Door, Log};
use super::store::{Opened, Store};

/// The longest wait for the commit thread before a client looks again.
const PARK_MAX: Duration = Duration::from_millis(20);

/// What happened in an episode.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub operation_count: u64,
    pub committed_count: u64,
    pub refused_count: u64,
    pub read_count: u64,
    pub abandoned_count: u64,
    pub engine_fault_count: u64,
    pub disk_fault_count: u64,
    pub crash_count: u64,
    pub reopening_count: u64,
    pub clock_set_back_count: u64,
    pub unknown_kept_count: u64,
    pub unknown_lost_count: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.operation_count += other.operation_count;
        self.committed_count += other.committed_count;
        self.refused_count += other.refused_count;
        self.read_count += other.read_count;
        self.abandoned_count += other.abandoned_count;
        self.engine_fault_count += other.engine_fault_count;
        self.disk_fault_count += other.disk_fault_count;
        self.crash_count += other.crash_count;
        self.reopening_count += other.reopening_count;
        self.clock_set_back_count += other.clock_set_back_count;
        self.unknown_kept_count += other.unknown_kept_count;
        self.unknown_lost_count += other.unknown_lost_count;
    }
}

struct Client {
    ask: Ask,
    answering: Answering,
    /// The call before which it pauses, if it does.
    door: Option<Door>,
    is_in_call: bool,
    expected: Option<Expected>,
    /// The table it read from.
    read: Option<TableId>,
    /// Whether its engine call was made to fail.
    is_troubled: bool,
    began: u64,
}

pub struct World {
    account: AccountName,
    clock: Arc<FakeClock>,
    store: Store,
    service: Option<Arc<TableService>>,
    engine: Option<Arc<dyn Engine>>,
    faults: Faults,
    log: Log,
    model: Model,
    /// The existing tables, by lower-case name.
    ids: BTreeMap<String, TableId>,
    names: HashMap<TableId, String>,
    /// When the drop of a table was answered; `None` until then.
    dropped: HashMap<TableId, Option<u64>>,
    last_version: u64,
    last_table: u64,
    unknown: Vec<Unknown>,
    clients: Vec<Option<Client>>,
    random: Rng,
    now: u64,
    reopen_at: Option<u64>,
    waker: Waker,
    pub counts: Counts,
}

/// Wakes the simulation's thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

type Checked = Result<(), String>;

fn must(holds: bool, otherwise: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl World {
    pub fn new(store: Store, client_count: usize, random: Rng) -> Result<World, String> {
        let clock = Arc::new(FakeClock::default());
        let log = Log::default();
        let Opened { service, engine, faults } = store.open(&clock, &log)?;
        Ok(World {
            account: AccountName::parse("devstoreaccount1").ok_or("no account's name")?,
            clock,
            store,
            service: Some(service),
            engine: Some(engine),
            faults,
            log,
            model: Model::default(),
            ids: BTreeMap::new(),
            names: HashMap::new(),
            dropped: HashMap::new(),
            last_version: 0,
            last_table: 0,
            unknown: Vec::new(),
            clients: (0..client_count).map(|_| None).collect(),
            random,
            now: 0,
            reopen_at: None,
            waker: Waker::from(Arc::new(Unpark(std::thread::current()))),
            counts: Counts::default(),
        })
    }

    pub fn step(&mut self) -> Checked {
        self.now += 1;
        if self.reopen_at.is_some_and(|at| self.now >= at) {
            return self.reopen(true);
        }
        match self.random.u32(..10_000) {
            0..200 => self.move_clock(),
            200..220 => self.abandon(),
            220..226 if self.store.is_local() => return self.reopen(true),
            226..229 if self.store.is_local() => return self.reopen(false),
            229..241 if self.store.is_local() => self.plan_disk_fault(),
            _ => {
                let index = self.random.usize(..self.clients.len());
                return self.turn(index);
            }
        }
        Ok(())
    }

    /// Lets all clients finish, then compares the whole store.
    pub fn finish(&mut self) -> Checked {
        for index in 0..self.clients.len() {
            while self.clients[index].is_some() {
                self.now += 1;
                self.hand_over(index)?;
            }
        }
        if self.store.is_local() { self.reopen(true) } else { self.compare() }
    }

    /// Moves the clock forwards or back. Versions must grow in either case.
    fn move_clock(&mut self) {
        let by = Duration::from_nanos(self.random.u64(..100_000_000) * 100);
        if self.random.bool() {
            self.clock.advance(by);
        } else {
            self.clock.step_back(by);
            self.counts.clock_set_back_count += 1;
        }
    }

    /// A client gives up midway. What it has done stays done.
    fn abandon(&mut self) {
        let index = self.random.usize(..self.clients.len());
        if let Some(client) = self.clients[index].take() {
            self.counts.abandoned_count += 1;
            self.settle_drop(&client);
        }
    }

    fn plan_disk_fault(&mut self) {
        let Store::Local { disk, .. } = &self.store else { return };
        if disk.has_failed() {
            return;
        }
        let kind = [DiskCall::Sync, DiskCall::Sync, DiskCall::Write, DiskCall::Write, DiskCall::Read]
            [self.random.usize(..5)];
        let after = match kind {
            DiskCall::Sync => self.random.u32(..8),
            DiskCall::Write => self.random.u32(..60),
            DiskCall::Read => self.random.u32(..4),
        };
        disk.plan(Fault { kind, after, is_last: self.random.bool() });
    }

    /// The client's next move: it starts an operation or continues one.
    fn turn(&mut self, index: usize) -> Checked {
        let Some(client) = &self.clients[index] else { return self.begin(index) };
        if !self.store.is_local() || client.door != Some(Door::Commit) {
            return self.hand_over(index);
        }
        // Sometimes a commit waits for others.
        let standing: Vec<usize> = (0..self.clients.len())
            .filter(|at| self.clients[*at].as_ref().is_some_and(|client| client.door == Some(Door::Commit)))
            .collect();
        if standing.len() * 2 < self.clients.len() && self.random.u8(..64) > 0 {
            return Ok(());
        }
        self.hand_over_all(standing)
    }

    fn begin(&mut self, index: usize) -> Checked {
        let ask = Ask::any(&mut self.random, &self.model);
        let service = self.service.as_ref().ok_or("no service")?;
        let begun = ask.begin(service, &self.account);
        if let Ask::Commit { changes, .. } = &ask {
            let valid = Model::validate(changes).map_err(|(code, at)| Answer::Refused(code, Some(at)));
            let agreed = begun.as_ref().err() == valid.as_ref().err();
            must(agreed, || format!("{ask:?}: {:?}, but {valid:?}", begun.as_ref().err()))?;
        }
        match begun {
            Err(Answer::Refused(..)) if matches!(ask, Ask::Commit { .. }) => {
                self.counts.operation_count += 1;
                self.counts.refused_count += 1;
            }
            Err(answer) => return Err(format!("{ask:?} was refused at once: {answer:?}")),
            Ok(answering) => {
                let client = Client {
                    ask,
                    answering,
                    door: None,
                    is_in_call: false,
                    expected: None,
                    read: None,
                    is_troubled: false,
                    began: self.now,
                };
                self.clients[index] = Some(client);
            }
        }
        Ok(())
    }

    /// One turn of one client, including its engine call if it makes one.
    fn hand_over(&mut self, index: usize) -> Checked {
        self.trouble(index);
        self.poll(index)?;
        while self.is_in_call(index) {
            std::thread::park_timeout(PARK_MAX);
            self.poll(index)?;
        }
        Ok(())
    }

    /// Hands over many commits in seeded order. The first to reach the disk is held there while the others queue up.
    fn hand_over_all(&mut self, mut standing: Vec<usize>) -> Checked {
        let Store::Local { disk, .. } = &self.store else { return Ok(()) };
        let disk = disk.clone();
        self.random.shuffle(&mut standing);
        disk.close_gate();
        for index in &standing {
            self.poll(*index)?;
            while self.is_in_call(*index) && !disk.is_held() {
                std::thread::park_timeout(PARK_MAX);
                if !disk.is_held() {
                    self.poll(*index)?;
                }
            }
        }
        disk.open_gate();
        for index in standing {
            while self.is_in_call(index) {
                self.poll(index)?;
                if self.is_in_call(index) {
                    std::thread::park_timeout(PARK_MAX);
                }
            }
        }
        Ok(())
    }

    fn is_in_call(&self, index: usize) -> bool {
        self.clients[index].as_ref().is_some_and(|client| client.is_in_call)
    }

    /// Now and then makes the coming engine call fail.
    fn trouble(&mut self, index: usize) {
        let Some(client) = &mut self.clients[index] else { return };
        let Some(door) = client.door else { return };
        if self.random.u16(..300) > 0 {
            return;
        }
        client.is_troubled = true;
        self.counts.engine_fault_count += 1;
        if door == Door::Read {
            let error =
                if self.random.bool() { ReadError::Busy } else { ReadError::Storage("as planned".into()) };
            self.faults.fail_reads(1, error);
            return;
        }
        match self.random.u8(..3) {
            0 => self.faults.fail_writes(1, CommitError::Busy),
            1 => self.faults.fail_writes(1, CommitError::Storage("as planned".into())),
            _ => self.faults.lose_write_answers(1),
        }
    }

    fn poll(&mut self, index: usize) -> Checked {
        let Some(client) = &mut self.clients[index] else { return Ok(()) };
        let polled = client.answering.as_mut().poll(&mut Context::from_waker(&self.waker));
        let turn = self.log.take();
        if turn.has_entered {
            client.door = None;
            client.is_in_call = true;
        }
        if turn.has_left {
            client.is_in_call = false;
        }
        if turn.door.is_some() {
            client.door = turn.door;
        }
        for event in turn.events {
            self.witness(index, event)?;
        }
        match polled {
            Poll::Pending => Ok(()),
            Poll::Ready(answer) => self.hear(index, answer),
        }
    }

    /// Closes or crashes the service and opens it again, sometimes with a fault during opening and mostly with a
    /// changed clock. Then the whole store must be right.
    fn reopen(&mut self, by_crash: bool) -> Checked {
        self.reopen_at = None;
        for client in self.clients.iter_mut().filter_map(Option::take).collect::<Vec<_>>() {
            self.settle_drop(&client);
        }
        let Store::Local { disk, .. } = &self.store else { return Ok(()) };
        let disk = disk.clone();
        let service = self.service.take().ok_or("no service")?;
        if by_crash {
            disk.cut_off();
            self.counts.crash_count += 1;
        } else {
            self.counts.reopening_count += 1;
            block_on(&self.waker, service.close());
        }
        drop((service, self.engine.take()));
        disk.crash(&mut self.random);
        match self.random.u8(..3) {
            0 => self.clock.advance(Duration::from_secs(self.random.u64(..1_000_000))),
            1 => {
                self.clock.step_back(Duration::from_secs(self.random.u64(..1_000_000)));
                self.counts.clock_set_back_count += 1;
            }
            _ => {}
        }
        if self.random.u8(..4) == 0 {
            disk.plan(Fault { kind: DiskCall::Write, after: self.random.u32(..12), is_last: true });
            // The opening may still succeed, if it writes less than that.
            let opened = self.store.open(&self.clock, &self.log);
            disk.cut_off();
            drop(opened);
            disk.crash(&mut self.random);
        }
        let Opened { service, engine, faults } = self.store.open(&self.clock, &self.log)?;
        (self.service, self.engine, self.faults) = (Some(service), Some(engine), faults);
        self.compare()
    }
}

/// Polls a future to its end, without pauses on the stage.
fn block_on<T>(waker: &Waker, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::park_timeout(Duration::from_micros(50));
    }
}
