//! One episode's world: the service over an engine on a stage, the model beside it, and the clients between them.
//!
//! A client stands still before and after each call of the engine, and the seed says whose turn is next. What an
//! answer must be is decided at the moment its engine call happens, by the model as it is then; the comparison is made
//! when the answer comes. So there is exactly one right answer, although many operations are under way.
//!
//! The local engine has a commit thread that nobody can schedule. Its commits are gathered while clients stand before
//! them and then handed over at once, behind a gate in the disk: who is first goes alone, the others form the next
//! group. The sweep of a dropped table is waited for. So the groups, and what a fault hits, are the seed's too.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use engine::env::FakeClock;
use engine::faults::Faults;
use engine::{CommitError, Engine, Key, ReadError, TableId, TableRecord, Version};
use fastrand::Rng;
use protocol::ErrorCode;
use protocol::model::AccountName;
use tables::TableService;

use super::ask::{Answer, Answering, Ask};
use super::disk::{Fault, Kind};
use super::model::{Change, Model, Row, Units};
use super::stage::{Door, Event, Log};
use super::store::{Opened, Store};

/// A client may wait this long for the commit thread before it looks again by itself.
const PARK_MAX: Duration = Duration::from_millis(20);

/// What an episode did.
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

/// What may or may not have happened, to be found out at the next opening.
enum Unknown {
    Commit { table: String, changes: Vec<Change> },
    Create { table: &'static str },
    Delete { table: String },
}

struct Client {
    ask: Ask,
    answering: Answering,
    /// Where it stands, if it does.
    door: Option<Door>,
    is_in_call: bool,
    expected: Option<Expected>,
    /// The table it read from.
    read: Option<TableId>,
    /// Its engine call was told to fail.
    is_troubled: bool,
    began: u64,
}

enum Expected {
    Exactly(Answer),
    /// The rows that match from where the page begins, one more than fit.
    Page(Vec<(String, String, Row)>),
    /// A read of a table that was being dropped.
    Anything,
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
    /// By lower-case name: the tables there are.
    ids: BTreeMap<String, TableId>,
    names: HashMap<TableId, String>,
    /// When the drop of a table was answered; `None` while it is not.
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

/// Wakes this thread.
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

    /// Lets everybody finish, then compares all there is.
    pub fn finish(&mut self) -> Checked {
        for index in 0..self.clients.len() {
            while self.clients[index].is_some() {
                self.now += 1;
                self.hand_over(index)?;
            }
        }
        if self.store.is_local() { self.reopen(true) } else { self.compare() }
    }

    /// Time passes, or the clock is set back: versions must grow all the same.
    fn move_clock(&mut self) {
        let by = Duration::from_nanos(self.random.u64(..100_000_000) * 100);
        if self.random.bool() {
            self.clock.advance(by);
        } else {
            self.clock.step_back(by);
            self.counts.clock_set_back_count += 1;
        }
    }

    /// A client goes away in the middle; what it did stays done.
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
        let kind = [Kind::Sync, Kind::Sync, Kind::Write, Kind::Write, Kind::Read][self.random.usize(..5)];
        let after = match kind {
            Kind::Sync => self.random.u32(..8),
            Kind::Write => self.random.u32(..60),
            Kind::Read => self.random.u32(..4),
        };
        disk.plan(Fault { kind, after, is_last: self.random.bool() });
    }

    /// The client's next move: a new operation, or one on its way.
    fn turn(&mut self, index: usize) -> Checked {
        let Some(client) = &self.clients[index] else { return self.begin(index) };
        if !self.store.is_local() || client.door != Some(Door::Commit) {
            return self.hand_over(index);
        }
        // Commits wait for company, sometimes.
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

    /// One turn of one client, through its call if it makes one.
    fn hand_over(&mut self, index: usize) -> Checked {
        self.trouble(index);
        self.poll(index)?;
        while self.is_in_call(index) {
            std::thread::park_timeout(PARK_MAX);
            self.poll(index)?;
        }
        Ok(())
    }

    /// Commits of many, in seeded order: the first that reaches the disk is held there while the others queue up.
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

    /// Now and then the engine call that is about to be made goes wrong.
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

    /// What the model says to what the engine just did.
    fn witness(&mut self, index: usize, event: Event) -> Checked {
        let Some(mut client) = self.clients[index].take() else { return Ok(()) };
        let outcome = self.judge(&mut client, event);
        let outcome = outcome.map_err(|error| format!("{:?}: {error}", client.ask));
        self.clients[index] = Some(client);
        outcome
    }

    fn judge(&mut self, client: &mut Client, event: Event) -> Checked {
        let refused = |code| Some(Expected::Exactly(Answer::Refused(code, None)));
        match event {
            // Tidying up after a table, which nobody hears of.
            Event::Read(TableId::SETTINGS) | Event::Committed(TableId::SETTINGS, _) => {}
            Event::LookedUp(id) => {
                let expected = client.ask.table().and_then(|name| self.ids.get(&name)).copied();
                must(id == expected, || format!("the name stands for {id:?}, not for {expected:?}"))?;
                if id.is_none() || client.read.is_some_and(|read| Some(read) != id) {
                    client.expected = refused(ErrorCode::TableNotFound);
                }
            }
            Event::Read(table) => self.judge_read(client, table)?,
            Event::Committed(table, result) => self.judge_commit(client, table, result)?,
            Event::Created(result) => self.judge_creation(client, result)?,
            Event::Dropped(result) => self.judge_drop(client, result)?,
            Event::ReadFailed(error) => {
                self.may_fail(client, &error.to_string())?;
                let is_tidying = matches!(client.ask, Ask::Delete { .. });
                if !is_tidying {
                    client.expected = refused(match error {
                        ReadError::Busy => ErrorCode::ServerBusy,
                        ReadError::Damaged(what) => return Err(format!("damaged data: {what}")),
                        ReadError::Storage(_) => ErrorCode::InternalError,
                    });
                }
            }
            Event::Told(None) => {}
            Event::Told(Some(error)) => {
                let code = match &error {
                    // Judged where they happened.
                    CommitError::Precondition { .. } | CommitError::TableGone => return Ok(()),
                    CommitError::Refused { .. } => return Err(format!("unexpected: {error}")),
                    CommitError::Busy => ErrorCode::ServerBusy,
                    CommitError::Poisoned | CommitError::Unknown(_) | CommitError::Storage(_) => {
                        ErrorCode::InternalError
                    }
                };
                self.may_fail(client, &error.to_string())?;
                client.expected = refused(code);
            }
        }
        Ok(())
    }

    /// Only what the seed broke may fail; a broken disk is soon followed by a restart.
    fn may_fail(&mut self, client: &Client, error: &str) -> Checked {
        if client.is_troubled {
            return Ok(());
        }
        must(self.store.has_failed(), || format!("failed, and nobody told it to: {error}"))?;
        if self.reopen_at.is_none() {
            self.counts.disk_fault_count += 1;
            self.reopen_at = Some(self.now + self.random.u64(..200));
        }
        Ok(())
    }

    /// Whether the table may be used by this client although it was dropped: only if the drop was not answered when
    /// the client began.
    fn may_be_stale(&self, client: &Client, table: TableId) -> Checked {
        match self.dropped.get(&table) {
            Some(answered) if answered.is_none_or(|at| at >= client.began) => Ok(()),
            other => Err(format!("used {table:?}, which is no table ({other:?})")),
        }
    }

    fn judge_read(&mut self, client: &mut Client, table: TableId) -> Checked {
        client.read = Some(table);
        if table == TableId::CATALOGUE {
            let Ask::List { table_count_max } = client.ask else { return Err("read the catalogue".into()) };
            let names = self.model.tables.values().map(|table| table.name.clone());
            let names = names.take(table_count_max as usize).collect::<Vec<_>>();
            let more = names.len() < self.model.tables.len();
            client.expected = Some(Expected::Exactly(Answer::Names(names, more)));
            return Ok(());
        }
        let Some(name) = self.names.get(&table) else {
            self.may_be_stale(client, table)?;
            client.expected = Some(Expected::Anything);
            return Ok(());
        };
        let rows = &self.model.tables.get(name).ok_or("the model lost a table")?.rows;
        client.expected = Some(match &client.ask {
            Ask::Get { place, .. } => {
                let found = rows.get(&(Units::of(&place.0), Units::of(&place.1)));
                Expected::Exactly(Answer::Row(found.cloned()))
            }
            Ask::Query { filter, resume, entity_count_max, .. } => {
                let (partition, row) = resume.clone().unwrap_or_default();
                let matching = rows
                    .range((Units::of(&partition), Units::of(&row))..)
                    .map(|((partition, key), row)| (partition.text(), key.text(), row))
                    .filter(|(partition, key, row)| {
                        filter.as_ref().is_none_or(|filter| filter.holds(partition, key, row))
                    })
                    .map(|(partition, key, row)| (partition, key, row.clone()));
                Expected::Page(matching.take(*entity_count_max as usize + 1).collect())
            }
            other => return Err(format!("{other:?} read entities")),
        });
        Ok(())
    }

    fn judge_commit(
        &mut self,
        client: &mut Client,
        table: TableId,
        result: Result<Version, CommitError>,
    ) -> Checked {
        let Ask::Commit { changes, .. } = &client.ask else { return Err("committed".into()) };
        let Some(name) = self.names.get(&table).cloned() else {
            self.may_be_stale(client, table)?;
            let is_fit = match &result {
                Err(CommitError::Poisoned | CommitError::Storage(_) | CommitError::Busy) => {
                    self.store.has_failed()
                }
                other => matches!(other, Err(CommitError::TableGone)),
            };
            must(is_fit, || format!("a commit to a dropped table: {result:?}"))?;
            client.expected = Some(Expected::Exactly(Answer::Refused(ErrorCode::TableNotFound, None)));
            return Ok(());
        };
        let judged = self.model.judge(&name, changes);
        match (&result, judged) {
            (Ok(version), Ok(())) => {
                let (version, last) = (version.ticks(), self.last_version);
                must(version > last, || format!("version {version} was given after {last}"))?;
                self.last_version = version;
                self.model.apply(&name, changes, version);
                self.counts.committed_count += 1;
                client.expected = Some(Expected::Exactly(Answer::Version(version)));
            }
            (Err(CommitError::Precondition { op, .. }), Err((code, Some(at)))) if *op == at => {
                client.expected = Some(Expected::Exactly(Answer::Refused(code, Some(at))));
            }
            (Err(CommitError::Unknown(_)), _) => {
                self.unknown.push(Unknown::Commit { table: name, changes: changes.clone() });
            }
            (Err(CommitError::Poisoned | CommitError::Storage(_) | CommitError::Busy), _) => {}
            (result, judged) => return Err(format!("{result:?}, but {judged:?}")),
        }
        Ok(())
    }

    fn judge_creation(&mut self, client: &mut Client, result: Result<TableId, CommitError>) -> Checked {
        let Ask::Create { table } = client.ask else { return Err("created a table".into()) };
        let lower = table.to_ascii_lowercase();
        match result {
            Ok(id) => {
                let created = self.model.create_table(table);
                must(created.is_ok(), || format!("created, but {created:?}"))?;
                self.know_table(&lower, id)?;
                client.expected = Some(Expected::Exactly(Answer::Done));
            }
            Err(CommitError::Precondition { .. }) => {
                must(self.ids.contains_key(&lower), || "refused, but there is no such table".to_owned())?;
                let answer = Answer::Refused(ErrorCode::TableAlreadyExists, None);
                client.expected = Some(Expected::Exactly(answer));
            }
            Err(CommitError::Unknown(_)) => self.unknown.push(Unknown::Create { table }),
            Err(_) => {}
        }
        Ok(())
    }

    fn know_table(&mut self, lower: &str, id: TableId) -> Checked {
        must(id.0 > self.last_table, || format!("{id:?} was given after {}", self.last_table))?;
        self.last_table = id.0;
        self.ids.insert(lower.to_owned(), id);
        self.names.insert(id, lower.to_owned());
        Ok(())
    }

    fn forget_table(&mut self, lower: &str) -> Option<TableId> {
        let id = self.ids.remove(lower)?;
        self.names.remove(&id);
        Some(id)
    }

    fn judge_drop(&mut self, client: &mut Client, result: Result<TableId, CommitError>) -> Checked {
        let Ask::Delete { table } = client.ask else { return Err("dropped a table".into()) };
        let lower = table.to_ascii_lowercase();
        match result {
            Ok(id) => {
                let deleted = self.model.delete_table(table);
                must(deleted.is_ok(), || format!("dropped, but {deleted:?}"))?;
                let known = self.forget_table(&lower);
                must(known == Some(id), || format!("dropped {id:?} instead of {known:?}"))?;
                self.dropped.insert(id, None);
                client.read = Some(id);
                client.expected = Some(Expected::Exactly(Answer::Done));
            }
            Err(CommitError::Precondition { .. }) => {
                must(!self.ids.contains_key(&lower), || "refused, but there is such a table".to_owned())?;
                let answer = Answer::Refused(ErrorCode::ResourceNotFound, None);
                client.expected = Some(Expected::Exactly(answer));
            }
            Err(CommitError::Unknown(_)) => self.unknown.push(Unknown::Delete { table: lower }),
            Err(_) => {}
        }
        Ok(())
    }

    /// From now on nobody may use what this client dropped.
    fn settle_drop(&mut self, client: &Client) {
        if let (Ask::Delete { .. }, Some(table)) = (&client.ask, client.read) {
            self.dropped.insert(table, Some(self.now));
        }
    }

    /// The answer against what it had to be.
    fn hear(&mut self, index: usize, answer: Answer) -> Checked {
        let Some(client) = self.clients[index].take() else { return Ok(()) };
        self.settle_drop(&client);
        self.counts.operation_count += 1;
        match &answer {
            Answer::Refused(..) => self.counts.refused_count += 1,
            Answer::Row(_) | Answer::Page(..) | Answer::Names(..) => self.counts.read_count += 1,
            Answer::Version(_) | Answer::Done => {}
        }
        let Client { ask, expected, .. } = client;
        match expected {
            None => Err(format!("{ask:?}: {answer:?}, without asking the engine")),
            Some(Expected::Anything) => Ok(()),
            Some(Expected::Exactly(expected)) => {
                must(answer == expected, || format!("{ask:?}: {answer:?}, but {expected:?}"))
            }
            Some(Expected::Page(matching)) => {
                let Ask::Query { entity_count_max, .. } = &ask else { return Err("a page".into()) };
                check_page(&answer, &matching, *entity_count_max as usize)
                    .map_err(|error| format!("{ask:?}: {error}"))
            }
        }
    }

    /// Ends the service, gently or not, and opens it again, sometimes with trouble on the way and mostly with the clock
    /// somewhere else; then all there is must be right.
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
            disk.plan(Fault { kind: Kind::Write, after: self.random.u32(..12), is_last: true });
            // It may get through all the same, if it writes less than that.
            let opened = self.store.open(&self.clock, &self.log);
            disk.cut_off();
            drop(opened);
            disk.crash(&mut self.random);
        }
        let Opened { service, engine, faults } = self.store.open(&self.clock, &self.log)?;
        (self.service, self.engine, self.faults) = (Some(service), Some(engine), faults);
        self.compare()
    }

    /// Everything there is against the model; what was unknown is found out, all or nothing.
    fn compare(&mut self) -> Checked {
        let found = self.everything()?;
        if !self.unknown.is_empty() {
            let count = self.unknown.len() as u64;
            let unknown = std::mem::take(&mut self.unknown);
            if self.differences(&found).is_empty() {
                self.counts.unknown_lost_count += count;
            } else {
                self.counts.unknown_kept_count += count;
                self.suppose(unknown)?;
            }
        }
        let differences = self.differences(&found);
        must(differences.is_empty(), || format!("the store is not what it should be:\n{differences}"))?;
        for (name, rows) in found {
            let id = self.table_id(&name)?;
            match self.ids.get(&name) {
                Some(known) => must(*known == id, || format!("{name} is {id:?}, not {known:?}"))?,
                None => self.know_table(&name, id)?,
            }
            let table = self.model.tables.get_mut(&name).ok_or("compared before")?;
            for (place, row) in rows {
                self.last_version = self.last_version.max(row.version);
                table.rows.insert(place, row);
            }
        }
        Ok(())
    }

    /// They happened: one after the other, as the engine said before it was no longer sure.
    fn suppose(&mut self, unknown: Vec<Unknown>) -> Checked {
        for unknown in unknown {
            match unknown {
                Unknown::Commit { table, changes } => {
                    let judged = self.model.judge(&table, &changes);
                    must(judged.is_ok(), || format!("unknown, but it could not have happened: {judged:?}"))?;
                    self.model.apply(&table, &changes, VERSION_UNKNOWN);
                }
                Unknown::Create { table } => {
                    let created = self.model.create_table(table);
                    must(created.is_ok(), || {
                        format!("unknown, but it could not have happened: {created:?}")
                    })?;
                }
                Unknown::Delete { table } => {
                    let deleted = self.model.delete_table(&table);
                    must(deleted.is_ok(), || {
                        format!("unknown, but it could not have happened: {deleted:?}")
                    })?;
                    if let Some(id) = self.forget_table(&table) {
                        self.dropped.insert(id, Some(self.now));
                    }
                }
            }
        }
        Ok(())
    }

    /// In words; nothing when all is right.
    fn differences(&self, found: &Found) -> String {
        let names: Vec<_> = found.keys().collect();
        let expected: Vec<_> = self.model.tables.keys().collect();
        if names != expected {
            return format!("tables {names:?} instead of {expected:?}\n");
        }
        let mut differences = String::new();
        for (name, rows) in found {
            let model = &self.model.tables[name].rows;
            let mut places: Vec<_> = rows.keys().chain(model.keys()).collect();
            places.sort();
            places.dedup();
            for place in places {
                let (found, expected) = (rows.get(place), model.get(place));
                let is_same = match (found, expected) {
                    (Some(found), Some(expected)) if expected.version == VERSION_UNKNOWN => {
                        found.properties == expected.properties && found.version > self.last_version
                    }
                    (found, expected) => found == expected,
                };
                if !is_same {
                    differences.push_str(&format!("{name} {place:?}: {found:?} instead of {expected:?}\n"));
                }
            }
        }
        differences
    }

    fn everything(&mut self) -> Result<Found, String> {
        let ask = Ask::List { table_count_max: 1000 };
        let Answer::Names(names, false) = self.answer(&ask)? else { return Err("no list of tables".into()) };
        let mut found = Found::new();
        for name in names {
            let table = super::random::TABLES
                .into_iter()
                .find(|table| table.eq_ignore_ascii_case(&name))
                .ok_or_else(|| format!("a table {name}"))?;
            let ask = Ask::Query { table, filter: None, resume: None, entity_count_max: 1000 };
            let Answer::Page(page, None) = self.answer(&ask)? else {
                return Err(format!("no page of all of {name}"));
            };
            let rows = page
                .into_iter()
                .map(|(partition, row_key, row)| ((Units::of(&partition), Units::of(&row_key)), row));
            found.insert(name.to_ascii_lowercase(), rows.collect());
        }
        Ok(found)
    }

    fn answer(&mut self, ask: &Ask) -> Result<Answer, String> {
        let service = self.service.as_ref().ok_or("no service")?;
        let answering = ask.begin(service, &self.account).map_err(|answer| format!("{answer:?}"))?;
        let answer = block_on(&self.waker, answering);
        self.log.take();
        match answer {
            Answer::Refused(code, _) => Err(format!("{ask:?} after opening: {code:?}")),
            answer => Ok(answer),
        }
    }

    /// As the catalogue has it.
    fn table_id(&mut self, lower: &str) -> Result<TableId, String> {
        let engine = self.engine.as_ref().ok_or("no engine")?;
        let key = Key { partition: self.account.as_str(), row: lower };
        let row = block_on(&self.waker, engine.get(TableId::CATALOGUE, key));
        self.log.take();
        let row = row.map_err(|error| error.to_string())?;
        let record = row.as_ref().and_then(|row| TableRecord::read(&row.value));
        record.map(|record| record.id).ok_or_else(|| format!("{lower} is listed and cannot be found"))
    }
}

/// A row written by a commit whose version nobody heard; no real version is so small.
const VERSION_UNKNOWN: u64 = 0;

type Found = BTreeMap<String, BTreeMap<(Units, Units), Row>>;

fn check_page(answer: &Answer, matching: &[(String, String, Row)], entity_count_max: usize) -> Checked {
    let Answer::Page(rows, next) = answer else { return Err(format!("{answer:?} instead of a page")) };
    let expected = &matching[..matching.len().min(entity_count_max)];
    must(rows[..] == *expected, || format!("{rows:?} instead of {expected:?}"))?;
    let units = |partition: &str, row: &str| (Units::of(partition), Units::of(row));
    let more = matching.get(entity_count_max).map(|(partition, row, _)| units(partition, row));
    match next {
        None => must(more.is_none(), || "a page that says it is the last, and is not".to_owned()),
        Some((partition, row)) => {
            let next = units(partition, row);
            let last = rows.last().map(|(partition, row, _)| units(partition, row));
            must(rows.len() == entity_count_max, || "a page that ends too soon".to_owned())?;
            must(last.is_none_or(|last| last < next), || "a page that goes back".to_owned())?;
            must(more.is_none_or(|more| next <= more), || "a page that leaves something out".to_owned())
        }
    }
}

/// Whoever stands still on the stage is polled on at once.
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
