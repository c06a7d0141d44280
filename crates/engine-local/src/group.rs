//! One group of requests. Each is decided on the state that the ones before it left, and all their changes go into
//! one record.
//!
//! Promises: a request that fails changes nothing; a later request of the group sees what the earlier ones wrote.
//! Leaves to others: making the record durable, showing it to readers, and answering.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::commit_log::{Counters, RecordBuilder};
use crate::store::{DROPPED, LIVE, list_key};
use crate::tree_error::TreeError;
use crate::view::View;
use engine::decide::{Write, decide, decide_all, holds, next_version};
use engine::env::Clock;
use engine::keys::{self, OwnedKey};
use engine::{
    Commit, CommitError, Effect, Expect, Families, Family, Found, Load, Op, Row, TableId, TableRecord,
    TableRows, Version,
};

/// What a caller asks the commit thread to do.
pub(crate) enum WriteRequest {
    Commit(Commit),
    CommitAll(Vec<Commit>),
    /// By encoded catalogue key.
    CreateTable {
        family: Family,
        key: Vec<u8>,
        payload: Bytes,
    },
    DropTable {
        key: Vec<u8>,
    },
    RenameTable {
        from: Vec<u8>,
        to: Vec<u8>,
        payload: Bytes,
    },
    ReplaceTable {
        key: Vec<u8>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    },
    Load(Load),
}

/// A patch of at most this size is no reason to count a commit among those that need space.
const SMALL_PATCH_BYTES_MAX: usize = 32;

/// Whether the commit removes rows, and at most counts them out by one small patch. In the first family a patch may be for a
/// row of any size.
fn frees_space(commit: &Commit) -> bool {
    let may_patch = commit.table.family() != Family::FIRST;
    let patch_count = commit.ops.iter().filter(|op| matches!(op.effect, Effect::Merge(_))).count();
    let adds_little = |op: &Op| match &op.effect {
        Effect::Delete | Effect::CheckOnly => true,
        Effect::Merge(patch) => patch.len() <= SMALL_PATCH_BYTES_MAX,
        Effect::Put(_) => false,
    };
    let only_checks = |op: &Op| op.effect == Effect::CheckOnly;
    patch_count <= usize::from(may_patch)
        && commit.ops.iter().all(adds_little)
        && (commit.ops.iter().any(|op| op.effect == Effect::Delete) || commit.ops.iter().all(only_checks))
}

fn commit_size_bytes(commit: &Commit) -> usize {
    let op_size_bytes = |op: &Op| {
        let value = match &op.effect {
            Effect::Put(value) | Effect::Merge(value) => value.len(),
            Effect::Delete | Effect::CheckOnly => 0,
        };
        size_of::<Op>() + op.row.len() + value
    };
    commit.partition.len() + commit.ops.iter().map(op_size_bytes).sum::<usize>()
}

impl WriteRequest {
    /// Whether it only removes rows or a table.
    pub(crate) fn frees_space(&self) -> bool {
        match self {
            WriteRequest::Commit(commit) => frees_space(commit),
            WriteRequest::CommitAll(commits) => commits.iter().all(frees_space),
            WriteRequest::DropTable { .. } => true,
            WriteRequest::ReplaceTable { rows, .. } => *rows == TableRows::Drop,
            WriteRequest::CreateTable { .. } | WriteRequest::RenameTable { .. } | WriteRequest::Load(_) => {
                false
            }
        }
    }

    /// Roughly the memory it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let content = match self {
            WriteRequest::Commit(commit) => commit_size_bytes(commit),
            WriteRequest::CommitAll(commits) => {
                commits.iter().map(|commit| size_of::<Commit>() + commit_size_bytes(commit)).sum()
            }
            WriteRequest::CreateTable { key, payload, .. }
            | WriteRequest::ReplaceTable { key, payload, .. } => key.len() + payload.len(),
            WriteRequest::DropTable { key } => key.len(),
            WriteRequest::RenameTable { from, to, payload } => from.len() + to.len() + payload.len(),
            WriteRequest::Load(load) => {
                let row_size_bytes = |(key, row): &(OwnedKey, Row)| {
                    size_of::<(OwnedKey, Row)>() + key.partition.len() + key.row.len() + row.value.len()
                };
                load.rows.iter().map(row_size_bytes).sum()
            }
        };
        size_of::<WriteRequest>() + content
    }
}

/// Whether the op puts a row without reading what was there. The group then reads the page of its key all the same: if
/// the page is damaged, the caller hears of it, and the fold does not stumble over it later.
fn is_blind(op: &Op) -> bool {
    op.expect == Expect::Any && matches!(op.effect, Effect::Put(_))
}

/// The answer to a request that succeeded: the table it was about, and the version of the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Applied {
    pub(crate) table: TableId,
    pub(crate) version: Version,
}

/// Remembers which tables are live, so that a commit need not look its table up. Only the commit thread creates and
/// drops tables, so the memory is never out of date.
#[derive(Default)]
pub(crate) struct KnownTables(HashMap<TableId, bool>);

const KNOWN_TABLE_COUNT_MAX: usize = 10_000;

impl KnownTables {
    /// Forgets everything, after a group that failed.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn get(&self, table: TableId) -> Option<bool> {
        self.0.get(&table).copied()
    }

    fn set(&mut self, table: TableId, is_live: bool) {
        if self.0.len() >= KNOWN_TABLE_COUNT_MAX {
            self.0.clear();
        }
        self.0.insert(table, is_live);
    }
}

/// Rows by encoded key; `None`: the row was removed.
pub(crate) type ChangedRows = HashMap<Vec<u8>, Option<Row>>;

pub(crate) struct Group<'a> {
    pub(crate) view: Arc<View>,
    pub(crate) families: &'a Families,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) counters: Counters,
    pub(crate) known_tables: &'a mut KnownTables,
    pub(crate) record: &'a mut RecordBuilder,
    /// The rows that the requests of this group have written so far.
    pub(crate) written: ChangedRows,
    pub(crate) dropped_any: bool,
    /// A request failed because the tree's file must be reopened.
    pub(crate) met_closed_file: Cell<bool>,
}

impl Group<'_> {
    pub(crate) fn apply(&mut self, request: &WriteRequest) -> Result<Applied, CommitError> {
        match request {
            WriteRequest::Commit(commit) => self.commit(commit),
            WriteRequest::CommitAll(commits) => self.commit_all(commits),
            WriteRequest::CreateTable { family, key, payload } => self.create_table(*family, key, payload),
            WriteRequest::DropTable { key } => self.drop_table(key),
            WriteRequest::RenameTable { from, to, payload } => self.rename_table(from, to, payload),
            WriteRequest::ReplaceTable { key, expect, payload, rows } => {
                self.replace_table(key, *expect, payload, *rows)
            }
            WriteRequest::Load(load) => self.load(load),
        }
    }

    fn commit(&mut self, commit: &Commit) -> Result<Applied, CommitError> {
        self.check_live(commit.table)?;
        let writes = decide(commit, |key| self.lookup_parts(key), self.families)?;
        if commit.ops.iter().any(is_blind) {
            writes.iter().try_for_each(|write| self.touch(&write.key))?;
        }
        let version = self.take_version();
        self.write(version, writes);
        Ok(Applied { table: commit.table, version })
    }

    fn commit_all(&mut self, commits: &[Commit]) -> Result<Applied, CommitError> {
        for commit in commits {
            self.check_live(commit.table)?;
        }
        let version = self.take_version();
        let writes = decide_all(commits, version, |key| self.lookup_parts(key), self.families)?;
        if commits.iter().flat_map(|commit| &commit.ops).any(is_blind) {
            writes.iter().try_for_each(|write| self.touch(&write.key))?;
        }
        self.write(version, writes);
        let table = commits.first().map_or(TableId::SETTINGS, |commit| commit.table);
        Ok(Applied { table, version })
    }

    fn create_table(&mut self, family: Family, key: &[u8], payload: &[u8]) -> Result<Applied, CommitError> {
        if let Some(row) = self.lookup(key)? {
            return Err(CommitError::Precondition { op: 0, found: Found::Present(row.version) });
        }
        let id = self.fresh_id(family)?;
        let version = self.take_version();
        let named = Write { key: key.to_vec(), value: Some(TableRecord { id, payload }.write()) };
        let live = Write { key: list_key(LIVE, id), value: Some(Bytes::new()) };
        self.write(version, vec![named, live]);
        self.known_tables.set(id, true);
        Ok(Applied { table: id, version })
    }

    fn rename_table(&mut self, from: &[u8], to: &[u8], payload: &[u8]) -> Result<Applied, CommitError> {
        let id = self.table_named(from)?;
        if let Some(row) = self.lookup(to)? {
            return Err(CommitError::Precondition { op: 1, found: Found::Present(row.version) });
        }
        let version = self.take_version();
        let forgotten = Write { key: from.to_vec(), value: None };
        let named = Write { key: to.to_vec(), value: Some(TableRecord { id, payload }.write()) };
        self.write(version, vec![forgotten, named]);
        Ok(Applied { table: id, version })
    }

    fn drop_table(&mut self, key: &[u8]) -> Result<Applied, CommitError> {
        let id = self.table_named(key)?;
        self.touch(&list_key(DROPPED, id))?;
        // A drop takes a version, so readers can tell before from after.
        let version = self.take_version();
        let forgotten = [key.to_vec(), list_key(LIVE, id)].map(|key| Write { key, value: None });
        let dropped = Write { key: list_key(DROPPED, id), value: Some(Bytes::new()) };
        self.write(version, forgotten.into_iter().chain([dropped]).collect());
        self.known_tables.set(id, false);
        self.dropped_any = true;
        Ok(Applied { table: id, version })
    }

    fn replace_table(
        &mut self,
        key: &[u8],
        expect: Expect,
        payload: &[u8],
        rows: TableRows,
    ) -> Result<Applied, CommitError> {
        let old = self.table_named(key)?;
        let found = self.lookup(key)?.map_or(Found::Absent, |row| Found::Present(row.version));
        if !holds(expect, found) {
            return Err(CommitError::Precondition { op: 0, found });
        }
        let mut writes = Vec::new();
        let id = match rows {
            TableRows::Keep => old,
            TableRows::Drop => {
                let id = self.fresh_id(old.family())?;
                self.touch(&list_key(DROPPED, old))?;
                writes.push(Write { key: list_key(LIVE, old), value: None });
                writes.push(Write { key: list_key(LIVE, id), value: Some(Bytes::new()) });
                writes.push(Write { key: list_key(DROPPED, old), value: Some(Bytes::new()) });
                self.known_tables.set(old, false);
                self.known_tables.set(id, true);
                self.dropped_any = true;
                id
            }
        };
        let version = self.take_version();
        writes.push(Write { key: key.to_vec(), value: Some(TableRecord { id, payload }.write()) });
        self.write(version, writes);
        Ok(Applied { table: id, version })
    }

    /// The next id, which nobody else gets.
    fn fresh_id(&mut self, family: Family) -> Result<TableId, CommitError> {
        let used_up = || CommitError::Storage("there are no more table ids".to_owned());
        let id = TableId::in_family(family, self.counters.next_table).ok_or_else(used_up)?;
        self.touch(&list_key(LIVE, id))?;
        self.counters.next_table += 1;
        Ok(id)
    }

    fn load(&mut self, load: &Load) -> Result<Applied, CommitError> {
        self.check_live(load.table)?;
        let keys = load.rows.iter().map(|(key, _)| keys::encode(load.table, key.as_key()));
        let keys: Vec<Vec<u8>> = keys.collect();
        keys.iter().try_for_each(|key| self.touch(key))?;
        let greatest = load.rows.iter().map(|(_, row)| row.version).max().unwrap_or(load.versions_until);
        let greatest = greatest.max(load.versions_until).ticks();
        self.counters.last_version = self.counters.last_version.max(greatest);
        let version = self.take_version();
        self.record.push_load(version, load.table, &load.rows);
        for (key, (_, row)) in keys.into_iter().zip(&load.rows) {
            self.written.insert(key, Some(row.clone()));
        }
        Ok(Applied { table: load.table, version })
    }

    /// The id of the table with this catalogue key.
    fn table_named(&self, key: &[u8]) -> Result<TableId, CommitError> {
        let Some(row) = self.lookup(key)? else {
            return Err(CommitError::Precondition { op: 0, found: Found::Absent });
        };
        let short = || CommitError::Storage("damaged data: a catalogue row is too short".to_owned());
        TableRecord::read(&row.value).map(|record| record.id).ok_or_else(short)
    }

    fn check_live(&mut self, table: TableId) -> Result<(), CommitError> {
        let is_live = match table {
            // Only the catalogue verbs change it.
            TableId::CATALOGUE => false,
            TableId::SETTINGS => true,
            // The engine's own lists.
            table if table < TableId::FIRST => false,
            table => match self.known_tables.get(table) {
                Some(is_live) => is_live,
                None => {
                    let is_live = self.lookup(&list_key(LIVE, table))?.is_some();
                    self.known_tables.set(table, is_live);
                    is_live
                }
            },
        };
        if is_live { Ok(()) } else { Err(CommitError::TableGone) }
    }

    fn take_version(&mut self) -> Version {
        let version = next_version(self.clock, self.counters.last_version);
        self.counters.last_version = version.ticks();
        version
    }

    fn write(&mut self, version: Version, writes: Vec<Write>) {
        self.record.push_commit(version, &writes);
        for Write { key, value } in writes {
            self.written.insert(key, value.map(|value| Row { version, value }));
        }
    }

    fn lookup(&self, key: &[u8]) -> Result<Option<Row>, CommitError> {
        match self.written.get(key) {
            Some(row) => Ok(row.clone()),
            None => self.view.get(key).map_err(|error| self.failed(error)),
        }
    }

    fn lookup_parts(&self, key: &[u8]) -> Result<Option<(Version, Bytes)>, CommitError> {
        Ok(self.lookup(key)?.map(|row| (row.version, row.value)))
    }

    /// Reads the page of this key, to find damage. The row itself does not matter.
    fn touch(&self, key: &[u8]) -> Result<(), CommitError> {
        if self.written.contains_key(key) {
            return Ok(());
        }
        self.view.touch(key).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: TreeError) -> CommitError {
        if error.closes_the_file() {
            self.met_closed_file.set(true);
        }
        CommitError::Storage(error.describe())
    }
}
