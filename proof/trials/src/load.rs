//! The mixed load: each writer generates requests over its own rows and tables, and keeps its part of the ledger as the
//! answers come.
//!
//! The load has inserts, merges and replaces with and without ETags, upserts, deletes, batches of 1 to 100, requests
//! that must be refused, tables that are created and dropped, reads and scans that are compared with the ledger, and
//! counters on shared rows.
//! Promises: a writer's requests depend only on its seed and the answers, and at most one of them is open.
//! This file has the writers and what they share. `operations.rs` generates a change of one row, `requests.rs` a
//! request; `exchange.rs` sends it and keeps the ledger.

mod exchange;
mod operations;
mod requests;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use testkit::RawClient;

use self::exchange::{Stop, cut};
use crate::ledger::{Attempt, Change, Outcome, State, Version};
use crate::victim::Victim;

const BATCH_OPERATION_COUNT_MAX: usize = engine::COMMIT_OP_COUNT_MAX;

/// The number and size of rows.
#[derive(Clone, Copy)]
pub struct LoadShape {
    /// A writer with more rows than this deletes more than it inserts.
    pub row_count_max: usize,
    pub text_length_usual: usize,
    /// One text in thirty is up to this long.
    pub text_length_max: usize,
}

/// What all writers of a run share.
pub struct Common<'a> {
    pub server: &'a Victim,
    pub tally: &'a Tally,
    /// Set before the server is stopped. From then on a broken connection is expected.
    pub stopping: &'a AtomicBool,
    /// The current length of the disk's log, if it is recorded.
    pub position: &'a (dyn Fn() -> u64 + Sync),
}

/// What the server has acknowledged to all writers, over all rounds.
#[derive(Default)]
pub struct Tally {
    latest: AtomicU64,
    given: Mutex<HashSet<Version>>,
    pub acknowledged: AtomicU64,
    pub batches: AtomicU64,
    pub refused: AtomicU64,
    pub reads: AtomicU64,
}

impl Tally {
    /// The greatest version acknowledged so far.
    pub fn latest(&self) -> Version {
        self.latest.load(Ordering::SeqCst)
    }

    /// Records the version of a commit. It must be unique, and greater than all that were acknowledged before the
    /// request was sent.
    pub fn note(&self, version: Version, floor: Version) -> Result<(), String> {
        if version <= floor {
            return Err(format!("version {version} after version {floor} had been acknowledged"));
        }
        if !self.given.lock().unwrap_or_else(PoisonError::into_inner).insert(version) {
            return Err(format!("version {version} was assigned twice"));
        }
        self.latest.fetch_max(version, Ordering::SeqCst);
        Ok(())
    }
}

/// One recorded request, with the range of the disk's log in which it was open.
#[derive(Clone)]
pub struct Entry {
    pub sent_at: u64,
    /// When its outcome became known; `u64::MAX` until then.
    pub settled_at: u64,
    pub outcome: Outcome,
    pub attempt: Attempt,
}

pub struct Writer {
    number: usize,
    shape: LoadShape,
    random: Rng,
    /// The last number used in a row's name or value.
    last_number: u64,
    pub known: State,
    pub open: Option<Attempt>,
    /// All requests sent, if they are recorded.
    pub history: Option<Vec<Entry>>,
}

/// Why a writer ended, if no promise was broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It made all its steps.
    Done,
    /// The server stopped or was killed.
    Cut,
}

impl Writer {
    pub fn new(number: usize, seed: u64, shape: LoadShape) -> Writer {
        // Neighbouring seeds would give similar streams unless they are mixed first.
        let mut random = Rng::with_seed(seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.u64(..);
        let known = State::new();
        Writer { number, shape, random, last_number: 0, known, open: None, history: None }
    }

    pub fn set_shape(&mut self, shape: LoadShape) {
        self.shape = shape;
    }

    pub fn recorded(mut self) -> Writer {
        self.history = Some(Vec::new());
        self
    }

    /// Makes this many steps, unless the server stops first.
    pub fn run(&mut self, common: &Common<'_>, steps: usize) -> Result<End, String> {
        self.connected(common, |writer, client| {
            for _ in 0..steps {
                writer.step(common, client)?;
            }
            Ok(())
        })
    }

    /// Fills a table of its own and drops it at once, so that the server still has to sweep its rows.
    pub fn fill_and_drop(&mut self, common: &Common<'_>, row_count: usize) -> Result<End, String> {
        self.connected(common, |writer, client| {
            let table = format!("w{}t0", writer.number);
            if !writer.known.tables.contains_key(&table) {
                writer.create_table(common, client, &table)?;
            }
            for _ in 0..row_count.div_ceil(BATCH_OPERATION_COUNT_MAX) {
                let partition = format!("w{}p0", writer.number);
                let operations =
                    (0..BATCH_OPERATION_COUNT_MAX).map(|_| writer.insert(&table, &partition)).collect();
                writer.send_batch(common, client, operations, None)?;
            }
            writer.drop_table(common, client, &table)
        })
    }

    /// Takes the found state as the known one and closes the open request.
    pub fn settled(&mut self, found: State, outcome: Outcome, position: u64) {
        if let (Some(history), Some(_)) = (&mut self.history, &self.open)
            && let Some(last) = history.last_mut()
        {
            last.settled_at = position;
            last.outcome = outcome;
            last.attempt.version = last.attempt.changes.iter().find_map(|change| version_in(&found, change));
        }
        self.open = None;
        self.known = found;
    }

    fn connected(
        &mut self,
        common: &Common<'_>,
        work: impl FnOnce(&mut Writer, &mut RawClient) -> Result<(), Stop>,
    ) -> Result<End, String> {
        let done = match common.server.connect() {
            Ok(mut client) => work(self, &mut client),
            Err(error) => Err(cut(common, &error)),
        };
        match done {
            Ok(()) => Ok(End::Done),
            Err(Stop::Cut) => Ok(End::Cut),
            Err(Stop::Broken(what)) => Err(format!("writer {}: {what}", self.number)),
        }
    }

    fn step(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        match self.random.u32(0..100) {
            0..55 => {
                let operation = self.operation_somewhere();
                self.send_one(common, client, operation)
            }
            55..70 => self.batch(common, client),
            70..74 => self.refused(common, client),
            74..82 => self.hot(common, client),
            82..85 => self.hot_conditional(common, client),
            85..88 => self.create_or_drop_table(common, client),
            88..94 => self.read_row(common, client),
            _ => self.scan(common, client),
        }
    }
}

/// The version of the row or table that a change wrote, if it has one.
pub fn version_in(state: &State, change: &Change) -> Option<Version> {
    match change {
        Change::Put { table, key, .. } => state.tables.get(table)?.get(key)?.version,
        _ => None,
    }
}
