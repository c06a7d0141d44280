//! Commits of several rows: one call of one function in the database.
//!
//! Promises: all of a commit happens, or none of it. Merges, and commits that see what others before them do, are
//! decided in this process by the same code as in every engine (`engine::decide`), over rows that were just read; the
//! call then expects exactly those rows, and when somebody changed them in between, all of it starts anew. Within one
//! process, merges of one row wait for each other, so only other processes get in the way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use engine::decide::decide_all;
use engine::keys::{self, Key};
use engine::{COMMIT_OP_COUNT_MAX, Commit, CommitError, Effect, Expect, Found, TableId, Version};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Row;

use crate::commit::{ATTEMPT_COUNT_MAX, PlainEffect, new_stamp, pause};
use crate::failure::Failure;
use crate::key_bytes::KeyBytes;
use crate::outcome::{Touched, Truth};
use crate::places::SHARED;
use crate::session::{DatabaseSession, Params};
use crate::{FrontEnd, version_of};

const MERGE_LOCK_COUNT: usize = 256;

/// One row of a call.
pub(crate) struct RowOp {
    pub(crate) table: TableId,
    pub(crate) key: KeyBytes,
    pub(crate) expect: Expect,
    pub(crate) change: PlainEffect,
}

/// What the function in the database said.
pub(crate) enum RowsAnswer {
    Done(Version),
    Failed {
        op: usize,
        found: Found,
    },
    TableGone,
    /// Others got in the way; nothing happened.
    Again,
    /// A table is in another place than this front end believes, or moves; nothing happened.
    Elsewhere,
}

/// An encoded key, its table, and the same key as columns.
type WantedKey<'a> = (&'a Vec<u8>, i64, &'a KeyBytes);
type WantedByKey = HashMap<Vec<u8>, Option<(Version, Bytes)>>;

/// The rows that a decision depends on.
enum WantedRows {
    Found(WantedByKey),
    TableGone,
    /// They were looked for in the wrong place.
    Elsewhere,
}

/// Locks for rows that are merged, by hash: two rows may share one, which costs only time.
pub(crate) struct MergeLocks(Vec<Mutex<()>>);

impl MergeLocks {
    pub(crate) fn new() -> MergeLocks {
        MergeLocks((0..MERGE_LOCK_COUNT).map(|_| Mutex::new(())).collect())
    }

    async fn take(&self, commits: &[Commit]) -> Vec<MutexGuard<'_, ()>> {
        let mut places = BTreeSet::new();
        for commit in commits {
            for op in commit.ops.iter().filter(|op| matches!(op.effect, Effect::Merge(_))) {
                let mut hasher = DefaultHasher::new();
                (commit.table, &commit.partition, &op.row).hash(&mut hasher);
                places.insert(hasher.finish() as usize % MERGE_LOCK_COUNT);
            }
        }
        let mut guards = Vec::with_capacity(places.len());
        // In the order of the set, which is the same for all.
        for place in places {
            guards.push(self.0[place].lock().await);
        }
        guards
    }
}

impl FrontEnd {
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        let count = commit.ops.len();
        if count == 0 || count > COMMIT_OP_COUNT_MAX {
            return Err(CommitError::Invalid(format!(
                "a commit of {count} ops, not 1 to {COMMIT_OP_COUNT_MAX}"
            )));
        }
        if commit.table == TableId::CATALOGUE {
            return Err(CommitError::TableGone);
        }
        let Some(ops) = plain_ops(&commit) else {
            return self.commit_all(vec![commit]).await;
        };
        if let [op] = &ops[..] {
            return self.commit_row(op.table, &op.key, op.expect, &op.change).await;
        }
        for attempt in 0..ATTEMPT_COUNT_MAX {
            pause(attempt).await;
            match self.send_rows(&ops).await? {
                RowsAnswer::Done(version) => return Ok(self.note(version)),
                RowsAnswer::Failed { op, found } => return Err(CommitError::Precondition { op, found }),
                RowsAnswer::TableGone => return Err(CommitError::TableGone),
                RowsAnswer::Again | RowsAnswer::Elsewhere => {}
            }
        }
        Err(CommitError::Busy)
    }

    pub(crate) async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        if commits.iter().any(|commit| commit.table == TableId::CATALOGUE) {
            return Err(CommitError::TableGone);
        }
        let _merging = self.merge_locks.take(&commits).await;
        for attempt in 0..ATTEMPT_COUNT_MAX {
            pause(attempt).await;
            let (rows, session) = self.read_for(&commits).await?;
            let Some(rows) = rows else {
                match self.prove_session(&session).await {
                    Ok(()) => return Err(CommitError::TableGone),
                    Err(_) => continue,
                }
            };
            let lookup = |key: &[u8]| Ok(rows.get(key).cloned().flatten());
            let proposed = version_of(self.now() as u64).unwrap_or(Version(std::num::NonZeroU64::MIN));
            let writes = match decide_all(&commits, proposed, lookup, &self.families) {
                Ok(writes) => writes,
                // What is refused here was only read. What is written is decided again where the rows are.
                Err(error) => match self.prove_session(&session).await {
                    Ok(()) => return Err(error),
                    Err(_) => continue,
                },
            };
            let mut changes: BTreeMap<Vec<u8>, (Expect, PlainEffect)> = rows
                .iter()
                .map(|(key, row)| {
                    let expect = match row {
                        Some((version, _)) => Expect::Exactly(*version),
                        None => Expect::Absent,
                    };
                    (key.clone(), (expect, PlainEffect::Nothing))
                })
                .collect();
            for write in writes {
                let change = write.value.map_or(PlainEffect::Delete, PlainEffect::Put);
                changes.entry(write.key).or_insert((Expect::Any, PlainEffect::Nothing)).1 = change;
            }
            let ops: Vec<RowOp> = changes
                .into_iter()
                .filter_map(|(key, (expect, change))| {
                    let table = keys::table_of(&key)?;
                    Some(RowOp { table, key: KeyBytes::of_encoded(&key), expect, change })
                })
                .collect();
            let answer = match &ops[..] {
                [] => RowsAnswer::Done(self.draw_version().await?),
                // A bare statement is cheaper than the function.
                [op] => match self.commit_row(op.table, &op.key, op.expect, &op.change).await {
                    Ok(version) => RowsAnswer::Done(version),
                    Err(CommitError::Precondition { .. }) => RowsAnswer::Again,
                    Err(CommitError::TableGone) => RowsAnswer::TableGone,
                    Err(other) => return Err(other),
                },
                ops => self.send_rows(ops).await?,
            };
            match answer {
                RowsAnswer::Done(version) => return Ok(self.note(version)),
                RowsAnswer::TableGone => return Err(CommitError::TableGone),
                // The rows are not what they were when they were read.
                RowsAnswer::Failed { .. } | RowsAnswer::Again | RowsAnswer::Elsewhere => {}
            }
        }
        Err(CommitError::Busy)
    }

    /// The rows that the decision depends on, by encoded key, and the session that they come from. `None`: a table is
    /// gone.
    async fn read_for(
        &self,
        commits: &[Commit],
    ) -> Result<(Option<WantedByKey>, Arc<DatabaseSession>), CommitError> {
        let mut wanted: BTreeMap<Vec<u8>, (TableId, KeyBytes)> = BTreeMap::new();
        let mut tables = BTreeSet::new();
        for commit in commits {
            tables.insert(commit.table.0 as i64);
            for op in &commit.ops {
                let is_blind =
                    op.expect == Expect::Any && matches!(op.effect, Effect::Put(_) | Effect::CheckOnly);
                if !is_blind {
                    let key = keys::encode(commit.table, Key { partition: &commit.partition, row: &op.row });
                    let bytes = KeyBytes::of_encoded(&key);
                    wanted.insert(key, (commit.table, bytes));
                }
            }
        }
        let tables: Vec<i64> = tables.into_iter().collect();
        // A read changes nothing, so it may be repeated, and a lost connection says that nothing happened.
        let started = self.clock.monotonic();
        let (rows, session) = loop {
            match self.read_wanted(&tables, &wanted).await {
                Ok((WantedRows::Found(rows), session)) => break (Some(rows), session),
                Ok((WantedRows::TableGone, session)) => break (None, session),
                Ok((WantedRows::Elsewhere, _)) => {}
                Err(failure) => {
                    // Perhaps the relation went with its table.
                    commits.iter().for_each(|commit| self.places.forget(commit.table));
                    if !self.repeats_read(started, &failure).await {
                        return Err(match failure {
                            Failure::Lost { cause, .. } => CommitError::Storage(cause),
                            other => other.into_commit_error(),
                        });
                    }
                }
            }
        };
        Ok((rows, session))
    }

    /// Reads through one session, place by place, and looks at the fences last: a table that is still in the shared
    /// relation then was there before, and no table leaves another one.
    async fn read_wanted(
        &self,
        tables: &[i64],
        wanted: &BTreeMap<Vec<u8>, (TableId, KeyBytes)>,
    ) -> Result<(WantedRows, Arc<DatabaseSession>), Failure> {
        let mut by_place: BTreeMap<i64, Vec<WantedKey<'_>>> = BTreeMap::new();
        for (key, (table, bytes)) in wanted {
            let place = self.places.of(*table);
            by_place.entry(place).or_default().push((key, table.0 as i64, bytes));
        }
        let believed: HashMap<i64, i64> =
            tables.iter().map(|table| (*table, self.places.of(TableId(*table as u64)))).collect();
        let lease = self.reads.lease().await?;
        let session = &lease.session;
        let mut rows: WantedByKey = wanted.keys().map(|key| (key.clone(), None)).collect();
        let read = async |place: i64, keys: &[WantedKey<'_>]| {
            let statements = session.at(place, self.deadline).await?;
            let ids: Vec<i64> = keys.iter().map(|(_, table, _)| *table).collect();
            let pks: Vec<&[u8]> = keys.iter().map(|(_, _, key)| &key.pk[..]).collect();
            let rks: Vec<&[u8]> = keys.iter().map(|(_, _, key)| &key.rk[..]).collect();
            session.query(&statements.read_rows, &[&ids, &pks, &rks], self.deadline).await
        };
        let mut note = |found: &[Row], keys: &[WantedKey<'_>]| {
            for row in found {
                let index = row.get::<_, i64>(0) as usize - 1;
                let Some((key, ..)) = keys.get(index) else { continue };
                let version = version_of(row.get::<_, i64>(1) as u64);
                let value = Bytes::copy_from_slice(row.get::<_, &[u8]>(2));
                rows.insert((*key).clone(), version.map(|version| (version, value)));
            }
        };
        // The shared relation comes last, because the fences travel with it.
        let shared = by_place.remove(&SHARED).unwrap_or_default();
        for (place, keys) in &by_place {
            note(&read(*place, keys).await?, keys);
        }
        let (found, fences) = match shared.is_empty() {
            true => (Vec::new(), self.fences_of(session, tables).await?),
            false => tokio::try_join!(read(SHARED, &shared), self.fences_of(session, tables))?,
        };
        note(&found, &shared);
        let mut answer = WantedRows::Found(rows);
        for fence in &fences {
            if believed.get(&(fence.table.0 as i64)) != Some(&fence.place) {
                self.places.learn(fence.table, fence.place);
                answer = WantedRows::Elsewhere;
            }
        }
        if fences.len() != tables.len() {
            answer = WantedRows::TableGone;
        }
        Ok((answer, session.clone()))
    }

    pub(crate) async fn send_rows(&self, ops: &[RowOp]) -> Result<RowsAnswer, CommitError> {
        let stamp = new_stamp();
        let sent_after = self.last_version();
        // One table at least, because there are ops.
        let places: BTreeMap<TableId, i64> =
            ops.iter().map(|op| (op.table, self.places.of(op.table))).collect();
        match self.call_commit_rows(ops, &places, stamp).await {
            Ok(RowsAnswer::Elsewhere) => {
                let tables: Vec<TableId> = places.into_keys().collect();
                self.wait_for_moves(&tables).await?;
                Ok(RowsAnswer::Again)
            }
            Ok(answer) => Ok(answer),
            Err(Failure::Rejected { retries: true, .. }) => {
                ops.iter().for_each(|op| self.places.forget(op.table));
                Ok(RowsAnswer::Again)
            }
            Err(Failure::Unproven) => Ok(RowsAnswer::Again),
            Err(Failure::Lost { cause, session_key }) => {
                let touched: Vec<Touched<'_>> = ops
                    .iter()
                    .filter(|op| !matches!(op.change, PlainEffect::Nothing))
                    .map(|op| Touched {
                        table: op.table,
                        place: places.get(&op.table).copied().unwrap_or(SHARED),
                        key: &op.key,
                        expect: op.expect,
                    })
                    .collect();
                match self.explain(session_key, stamp, sent_after, &touched).await {
                    Truth::Happened(version) => Ok(RowsAnswer::Done(version)),
                    Truth::DidNot => Ok(RowsAnswer::Again),
                    Truth::Unknown => Err(CommitError::Unknown(cause)),
                }
            }
            Err(failure) => Err(failure.into_commit_error()),
        }
    }

    async fn call_commit_rows(
        &self,
        ops: &[RowOp],
        places: &BTreeMap<TableId, i64>,
        stamp: i64,
    ) -> Result<RowsAnswer, Failure> {
        let tables: Vec<i64> = ops.iter().map(|op| op.table.0 as i64).collect();
        let fenced: Vec<i64> = places.keys().map(|table| table.0 as i64).collect();
        let has_long = ops.iter().any(|op| op.key.is_long());
        let pks: Vec<&[u8]> = ops.iter().map(|op| &op.key.pk[..]).collect();
        let rks: Vec<&[u8]> = ops.iter().map(|op| &op.key.rk[..]).collect();
        let (expects, versions): (Vec<i32>, Vec<Option<i64>>) =
            ops.iter().map(|op| numbers_of(op.expect)).unzip();
        let (effects, bodies): (Vec<i32>, Vec<Option<&[u8]>>) = ops
            .iter()
            .map(|op| match &op.change {
                PlainEffect::Put(body) => (0, Some(&body[..])),
                PlainEffect::Delete => (1, None),
                PlainEffect::Nothing => (2, None),
            })
            .unzip();
        let lease = self.writes.lease().await?;
        let now = self.now();
        let params: Params<'_> =
            &[&now, &stamp, &fenced, &has_long, &tables, &pks, &rks, &expects, &versions, &effects, &bodies];
        let different: BTreeSet<i64> = places.values().copied().collect();
        let is_copied = places.keys().any(|table| self.places.is_copied(*table, self.clock.monotonic()));
        let at_place = match different.first() {
            Some(place) if different.len() == 1 && !is_copied => {
                Some(lease.session.at(*place, self.deadline).await?)
            }
            _ => None,
        };
        let statement = match &at_place {
            Some(statements) => &statements.commit_rows,
            None => &lease.session.statements.commit_rows_in_places,
        };
        let rows = lease.session.query(statement, params, self.deadline).await?;
        let writes_certainly = ops.iter().any(|op| match (&op.change, op.expect) {
            (PlainEffect::Put(_), _) | (PlainEffect::Delete, Expect::Present | Expect::Exactly(_)) => true,
            (PlainEffect::Delete, Expect::Any | Expect::Absent) | (PlainEffect::Nothing, _) => false,
        });
        let is_done = rows.first().is_some_and(|row| row.get::<_, i32>(0) == 0);
        if !(is_done && writes_certainly) {
            // Without a write, no standby has confirmed anything yet.
            let session_key = lease.session.key;
            let perhaps_wrote = is_done && ops.iter().any(|op| matches!(op.change, PlainEffect::Delete));
            self.prove(lease).await.map_err(|failure| match perhaps_wrote {
                true => {
                    Failure::Lost { cause: "nobody knows whether the server led".to_owned(), session_key }
                }
                false => failure,
            })?;
        }
        let unexpected =
            || Failure::Rejected { cause: "the database gave no answer".to_owned(), retries: false };
        let row = rows.first().ok_or_else(unexpected)?;
        match row.get::<_, i32>(0) {
            0 => version_of(row.get::<_, i64>(3) as u64).map(RowsAnswer::Done).ok_or_else(unexpected),
            1 => {
                let found = row.get::<_, Option<i64>>(2).and_then(|ticks| version_of(ticks as u64));
                let op = row.get::<_, i32>(1) as usize;
                Ok(RowsAnswer::Failed { op, found: found.map_or(Found::Absent, Found::Present) })
            }
            2 => Ok(RowsAnswer::TableGone),
            4 => Ok(RowsAnswer::Elsewhere),
            _ => Ok(RowsAnswer::Again),
        }
    }

    async fn draw_version(&self) -> Result<Version, CommitError> {
        let draw = async {
            let lease = self.writes.lease().await?;
            lease.session.query(&lease.session.statements.next_version, &[&self.now()], self.deadline).await
        };
        let rows = draw.await.map_err(Failure::into_commit_error)?;
        let version = rows.first().and_then(|row| version_of(row.get::<_, i64>(0) as u64));
        version.ok_or_else(|| CommitError::Storage("the database gave no version".to_owned()))
    }
}

/// As `schema.sql` has them.
pub(crate) fn numbers_of(expect: Expect) -> (i32, Option<i64>) {
    match expect {
        Expect::Any => (0, None),
        Expect::Absent => (1, None),
        Expect::Present => (2, None),
        Expect::Exactly(version) => (3, Some(version.ticks() as i64)),
    }
}

/// The ops of a commit without merges; `None` if there is one.
fn plain_ops(commit: &Commit) -> Option<Vec<RowOp>> {
    let plain = |op: &engine::Op| {
        let change = match &op.effect {
            Effect::Put(value) => PlainEffect::Put(value.clone()),
            Effect::Merge(_) => return None,
            Effect::Delete => PlainEffect::Delete,
            Effect::CheckOnly => PlainEffect::Nothing,
        };
        let key = KeyBytes::of(Key { partition: &commit.partition, row: &op.row });
        Some(RowOp { table: commit.table, key, expect: op.expect, change })
    };
    commit.ops.iter().map(plain).collect()
}
