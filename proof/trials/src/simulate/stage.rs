//! Wraps the engine for the simulation: each caller pauses before and after every call, so that the seed decides who
//! goes next. Records what really happened inside the engine, and what the caller was told.
//!
//! Leaves to others: judging what happened (`world/judge.rs`).

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use engine::wrapper::Wrapper;
use engine::{
    Budget, Commit, CommitError, Engine, Key, KeyRange, Namespace, OwnedKey, ReadError, Row, Sink, TableId,
    TableRecord, Version,
};

/// What happened in one turn of one client.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A table's name was looked up.
    LookedUp(Option<TableId>),
    Read(TableId),
    Committed(TableId, Result<Version, CommitError>),
    Created(Result<TableId, CommitError>),
    Dropped(Result<TableId, CommitError>),
    ReadFailed(ReadError),
    /// The error that the caller of a write was told, if there was one.
    Told(Option<CommitError>),
}

/// The engine call that a client is about to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    Read,
    Commit,
    Catalogue,
}

#[derive(Default)]
pub struct Turn {
    pub door: Option<Door>,
    pub has_entered: bool,
    pub has_left: bool,
    pub events: Vec<Event>,
}

/// What happened in the current turn.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Turn>>);

impl Log {
    pub fn take(&self) -> Turn {
        std::mem::take(&mut self.turn())
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, told: Option<Event>) {
        let mut turn = self.turn();
        turn.has_left = true;
        turn.events.extend(told);
    }

    fn note(&self, event: Event) {
        self.turn().events.push(event);
    }
}

/// The inner layer: records what the engine did.
pub struct Witness {
    pub engine: Arc<dyn Engine>,
    pub log: Log,
}

/// The outer layer: pauses the clients, and records what they were told.
pub struct Stage {
    pub engine: Arc<dyn Engine>,
    pub log: Log,
}

/// A future that is pending once.
struct Pause(bool);

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Stage {
    async fn call<T>(
        &self,
        door: Door,
        call: impl Future<Output = T>,
        told: impl Fn(&T) -> Option<Event>,
    ) -> T {
        self.log.turn().door = Some(door);
        Pause(false).await;
        self.log.turn().has_entered = true;
        let answer = call.await;
        self.log.leave(told(&answer));
        Pause(false).await;
        answer
    }
}

fn read_told<T>(answer: &Result<T, ReadError>) -> Option<Event> {
    answer.as_ref().err().map(|error| Event::ReadFailed(error.clone()))
}

fn write_told<T>(answer: &Result<T, CommitError>) -> Option<Event> {
    Some(Event::Told(answer.as_ref().err().cloned()))
}

#[async_trait]
impl Wrapper for Stage {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        self.call(Door::Read, self.engine.get(table, key), read_told).await
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        self.call(Door::Read, self.engine.scan(table, ranges, budget, sink), read_told).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.call(Door::Commit, self.engine.commit(commit), write_told).await
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let call = self.engine.create_table(namespace, name, payload);
        self.call(Door::Catalogue, call, write_told).await
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        self.call(Door::Catalogue, self.engine.drop_table(namespace, name), write_told).await
    }
}

#[async_trait]
impl Wrapper for Witness {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        let row = self.engine.get(table, key).await?;
        self.log.note(match table {
            TableId::CATALOGUE => {
                let record = row.as_ref().and_then(|row| TableRecord::read(&row.value));
                Event::LookedUp(record.map(|record| record.id))
            }
            table => Event::Read(table),
        });
        Ok(row)
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let next = self.engine.scan(table, ranges, budget, sink).await?;
        self.log.note(Event::Read(table));
        Ok(next)
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        let table = commit.table;
        let result = self.engine.commit(commit).await;
        self.log.note(Event::Committed(table, result.clone()));
        result
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let result = self.engine.create_table(namespace, name, payload).await;
        self.log.note(Event::Created(result.clone()));
        result
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        let result = self.engine.drop_table(namespace, name).await;
        self.log.note(Event::Dropped(result.clone()));
        result
    }
}
