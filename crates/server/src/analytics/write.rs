//! How the rows of an interval are written, by one of perhaps several servers that measure the same accounts.
//!
//! Promises: what this server counted is added once to what is stored, whatever others add at the same time, and whatever
//! becomes of an answer. Rows are written on the condition that they are still as they were read. With them, in one step,
//! this server moves a mark of its own (a setting). When the outcome of a write is unknown, the server moves the mark itself,
//! on the condition that it did not move: either the write has happened, or it never will. Until one of them is known, it
//! writes nothing else.
//! Leaves to others: what is counted, and when it is due.

use std::borrow::Cow;

use bytes::Bytes;
use catalogue::Setting;
use engine::env::random;
use engine::{
    Budget, Commit, CommitError, Effect, Expect, Flow, Found, Key, Op, OwnedKey, Sink, TableId, Version,
};
use observe::{AnalyticsCounts, Operation};
use protocol::common::{AccountName, DateTime};
use protocol::table::model::{ETag, TableName};
use protocol::{ErrorCode, ServiceError};
use tables::{Action, Change, EntityView, Transaction};

use super::schema::{self, MetricsInterval};
use super::{Analytics, Bookkeeping, Due, DueKey};

/// Intervals that wait to be written, over all accounts. Past this bound, because the engine takes no writes, the
/// oldest are given up.
const DUE_COUNT_MAX: usize = 10_000;
/// How often rows are read again because another server was faster.
const ATTEMPT_COUNT_MAX: usize = 30;
/// A mark that did not move for a day belongs to a server that is gone. One that is not makes itself another.
const MARK_AGE_TICKS_MAX: u64 = 24 * 3600 * 10_000_000;

/// Who moved a mark.
const BY_A_WRITE: Bytes = Bytes::from_static(b"written");
const BY_ITSELF: Bytes = Bytes::from_static(b"not written");

/// The mark of this server.
pub(super) struct WriterMark {
    key: OwnedKey,
    /// As it is stored; `None`: it is not.
    version: Option<Version>,
    /// A write whose outcome is unknown.
    unresolved: Option<(DueKey, Due)>,
}

impl WriterMark {
    pub(super) fn new() -> WriterMark {
        let name = format!("{:016x}{:016x}", random::unguessable(), random::unguessable());
        WriterMark { key: Setting::MetricsWriter(name.into()).key(), version: None, unresolved: None }
    }

    /// Moves it from where it was last seen.
    fn moving(&self, effect: Effect) -> Commit {
        let expect = self.version.map_or(Expect::Absent, Expect::Exactly);
        Commit::one(TableId::SETTINGS, &self.key.partition, Op { row: self.key.row.clone(), expect, effect })
    }
}

/// What became of a write.
enum WriteOutcome {
    Done(Version),
    /// There is nothing to write, and never will be.
    Nothing,
    NotYet(ServiceError),
    Unknown(ServiceError),
}

impl Analytics {
    pub(super) async fn write_due(&self, state: &mut Bookkeeping, is_over: impl Fn(&DueKey) -> bool) {
        self.resolve(state).await;
        let keys: Vec<DueKey> = state.due.keys().filter(|key| is_over(key)).cloned().collect();
        for key in keys {
            if !self.resolve(state).await {
                break;
            }
            let Some(due) = state.due.remove(&key) else { continue };
            // What is measured of an account ends with it: another one may get its name.
            if self.accounts.get().find(&key.account).is_none() {
                continue;
            }
            match self.write_rows(&key, &due, &state.mark).await {
                WriteOutcome::Done(version) => state.mark.version = Some(version),
                WriteOutcome::Nothing => {}
                WriteOutcome::NotYet(error) => {
                    // The engine says so itself when it takes no writes.
                    log::debug!("metrics of {} wait to be written: {error}", key.account);
                    put_back(state, key, due);
                }
                WriteOutcome::Unknown(error) => {
                    log::debug!("whether metrics of {} were written is not known: {error}", key.account);
                    state.mark.unresolved = Some((key, due));
                }
            }
        }
        self.resolve(state).await;
        while state.due.len() > DUE_COUNT_MAX {
            state.due.pop_first();
        }
    }

    /// Finds out what became of the last write. `false`: it is still unknown.
    async fn resolve(&self, state: &mut Bookkeeping) -> bool {
        if state.mark.unresolved.is_none() {
            return true;
        }
        let has_happened = match self.engine.commit(state.mark.moving(Effect::Put(BY_ITSELF))).await {
            Ok(version) => {
                state.mark.version = Some(version);
                false
            }
            Err(CommitError::Precondition { found: Found::Absent, .. }) => {
                state.mark.version = None;
                false
            }
            Err(CommitError::Precondition { found: Found::Present(_), .. }) => {
                // Moved by the write, or by an earlier attempt to find out.
                match self.engine.get(TableId::SETTINGS, state.mark.key.as_key()).await {
                    Ok(Some(row)) => {
                        state.mark.version = Some(row.version);
                        row.value == BY_A_WRITE
                    }
                    Ok(None) | Err(_) => return false,
                }
            }
            Err(_) => return false,
        };
        if let Some((key, due)) = state.mark.unresolved.take()
            && !has_happened
        {
            put_back(state, key, due);
        }
        true
    }

    /// Writes the rows of an interval in one step. Rows that are there already are added to.
    async fn write_rows(&self, key: &DueKey, due: &Due, mark: &WriterMark) -> WriteOutcome {
        let service = self.services.get(key.service).map(|(service, _)| *service);
        let table = service.and_then(|service| schema::table_name(key.interval, key.is_secondary, service));
        let account = AccountName::parse(&key.account);
        let (Some(table), Some(account)) = (table, account) else {
            return WriteOutcome::Nothing;
        };
        let rows = rows_of(key, due);
        let partition_key = schema::partition_key(key.start);
        for _ in 0..ATTEMPT_COUNT_MAX {
            let transaction = match self.add_to_stored(&account, &table, &partition_key, &rows).await {
                Ok(transaction) => transaction,
                Err(error) => return WriteOutcome::NotYet(error),
            };
            let moved = vec![mark.moving(Effect::Put(BY_A_WRITE))];
            let error = match self.system.commit_with(&account, &table, transaction, moved).await {
                Ok(version) => return WriteOutcome::Done(version),
                Err(error) => error,
            };
            match error.code {
                // Another server was faster: start over from what it wrote.
                ErrorCode::EntityAlreadyExists
                | ErrorCode::UpdateConditionNotSatisfied
                | ErrorCode::ResourceNotFound => {}
                ErrorCode::ServerBusy | ErrorCode::TableNotFound => return WriteOutcome::NotYet(error),
                _ => return WriteOutcome::Unknown(error),
            }
        }
        WriteOutcome::NotYet(ErrorCode::ServerBusy.into())
    }

    /// The rows as they are stored, with ours added to them.
    async fn add_to_stored(
        &self,
        account: &AccountName,
        table: &TableName,
        partition_key: &str,
        rows: &[(Cow<'_, str>, AnalyticsCounts)],
    ) -> Result<Transaction, ServiceError> {
        if let Err(error) = self.system.check_table(account, table).await {
            match error.code {
                ErrorCode::TableNotFound => self.create(account, table).await?,
                _ => return Err(error),
            }
        }
        let mut transaction = Transaction::new();
        for (row_key, counts) in rows {
            let stored = self.system.get_entity(account, table, partition_key, row_key).await?;
            let mut counts = *counts;
            let stored = stored.as_ref();
            let row =
                stored.and_then(|row| EntityView::open(partition_key, row_key, row.version, &row.value));
            if let Some(row) = row {
                counts.add(&schema::read(&row));
            }
            let properties = schema::properties(&counts);
            let action = match stored {
                None => Action::Insert(properties),
                Some(row) => {
                    let seen = ETag::Exactly(DateTime::from_ticks(row.version.ticks()));
                    Action::Replace { properties, condition: Some(seen) }
                }
            };
            let row_key = Cow::Borrowed(&**row_key);
            transaction.push(Change { partition_key: Cow::Borrowed(partition_key), row_key, action })?;
        }
        Ok(transaction)
    }

    async fn create(&self, account: &AccountName, table: &TableName) -> Result<(), ServiceError> {
        match self.system.create_table(account, table).await {
            Err(error) if error.code == ErrorCode::TableAlreadyExists => Ok(()),
            created => created,
        }
    }

    /// After the last write.
    pub(super) async fn remove_mark(&self, state: &mut Bookkeeping) {
        if state.mark.version.is_some() && state.mark.unresolved.is_none() {
            // One that stays is removed by another server, or by the next one.
            let _ = self.engine.commit(state.mark.moving(Effect::Delete)).await;
            state.mark.version = None;
        }
    }

    /// Removes the marks of servers that are gone.
    pub(super) async fn remove_old_marks(&self) {
        let mut old =
            OldMarks { until: self.clock.now_ticks().saturating_sub(MARK_AGE_TICKS_MAX), rows: vec![] };
        let ranges = [Setting::metrics_writers_range()];
        let scanned = self.engine.scan(TableId::SETTINGS, &ranges, Budget::UNBOUNDED, &mut old).await;
        if scanned.is_err() {
            return;
        }
        for (OwnedKey { partition, row }, version) in old.rows {
            let op = Op { row, expect: Expect::Exactly(version), effect: Effect::Delete };
            let _ = self.engine.commit(Commit::one(TableId::SETTINGS, &partition, op)).await;
        }
    }
}

/// Another interval of the same key may have come meanwhile.
fn put_back(state: &mut Bookkeeping, key: DueKey, due: Due) {
    let place = state.due.entry(key).or_default();
    place.includes_apis |= due.includes_apis;
    for (operation, counts) in &due.operations {
        place.operations.entry(*operation).or_default().add(counts);
    }
}

fn rows_of(key: &DueKey, due: &Due) -> Vec<(Cow<'static, str>, AnalyticsCounts)> {
    let mut all = AnalyticsCounts::default();
    due.operations.values().for_each(|counts| all.add(counts));
    let mut rows = vec![(Cow::Borrowed(schema::ALL_ROW_KEY), all)];
    if key.interval == MetricsInterval::Hour {
        rows.push((Cow::Borrowed(schema::SYSTEM_ROW_KEY), AnalyticsCounts::default()));
    }
    if due.includes_apis {
        rows.extend(due.operations.iter().filter_map(|(operation, counts)| {
            Some((Cow::Owned(schema::row_key(*Operation::ALL.get(*operation)?)), *counts))
        }));
    }
    rows
}

struct OldMarks {
    /// Marks of this version or an earlier one are old.
    until: u64,
    rows: Vec<(OwnedKey, Version)>,
}

impl Sink for OldMarks {
    fn row(&mut self, key: Key<'_>, version: Version, _: &[u8]) -> Flow {
        if version.ticks() <= self.until {
            self.rows.push((key.into(), version));
        }
        Flow::Continue
    }
}
