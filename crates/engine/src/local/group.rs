//! One group of commits inside one transaction: each decided over the state that the ones before it left.
//!
//! Promises: a job that fails changes nothing; what a later job of the group sees is what the earlier ones wrote.
//! Leaves to others: making the transaction durable, and answering.

use std::collections::HashMap;

use bytes::Bytes;
use redb::{AccessGuard, ReadableTable, Table, WriteTransaction};

use super::store::{DROPPED, LIVE, META, META_LAST_VERSION, META_NEXT_TABLE, ROWS};
use super::stored;
use crate::decide::{decide, next_version};
use crate::env::Clock;
use crate::keys::{self, OwnedKey};
use crate::{Commit, CommitError, Found, Load, MergeFn, Row, TableId, TableRecord, Version};

/// What a caller wants done; success is a number: the version's ticks, or the table's id.
pub(super) enum Work {
    Commit(Commit),
    /// By encoded catalogue key.
    CreateTable {
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
    Load(Load),
    /// Nothing in a transaction: the file is to be opened anew first.
    Reopen,
}

impl Work {
    /// About what it holds in memory.
    pub(super) fn size_bytes(&self) -> usize {
        let content = match self {
            Work::Commit(commit) => {
                let op_size_bytes = |op: &crate::Op| {
                    let value = match &op.effect {
                        crate::Effect::Put(value) | crate::Effect::Merge(value) => value.len(),
                        crate::Effect::Delete | crate::Effect::CheckOnly => 0,
                    };
                    size_of::<crate::Op>() + op.row.len() + value
                };
                commit.partition.len() + commit.ops.iter().map(op_size_bytes).sum::<usize>()
            }
            Work::CreateTable { key, payload } => key.len() + payload.len(),
            Work::DropTable { key } => key.len(),
            Work::Reopen => 0,
            Work::RenameTable { from, to, payload } => from.len() + to.len() + payload.len(),
            Work::Load(load) => {
                let row_size_bytes = |(key, row): &(OwnedKey, Row)| {
                    size_of::<(OwnedKey, Row)>() + key.partition.len() + key.row.len() + row.value.len()
                };
                load.rows.iter().map(row_size_bytes).sum()
            }
        };
        size_of::<Work>() + content
    }
}

/// The numbers that only ever grow.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) last_version: u64,
    pub(super) next_table: u64,
}

pub(super) struct Group<'txn> {
    rows: Table<'txn, &'static [u8], &'static [u8]>,
    live: Table<'txn, u64, ()>,
    dropped: Table<'txn, u64, ()>,
    meta: Table<'txn, &'static str, u64>,
    merge: MergeFn,
    clock: &'txn dyn Clock,
    numbers: Numbers,
    /// Tables already looked up in this group.
    known_live: HashMap<TableId, bool>,
    changed: bool,
    dropped_any: bool,
}

/// What a group amounted to.
pub(super) struct Applied {
    pub(super) numbers: Numbers,
    pub(super) changed: bool,
    pub(super) dropped_any: bool,
}

impl<'txn> Group<'txn> {
    pub(super) fn open(
        transaction: &'txn WriteTransaction,
        merge: MergeFn,
        clock: &'txn dyn Clock,
        numbers: Numbers,
    ) -> Result<Group<'txn>, redb::Error> {
        Ok(Group {
            rows: transaction.open_table(ROWS)?,
            live: transaction.open_table(LIVE)?,
            dropped: transaction.open_table(DROPPED)?,
            meta: transaction.open_table(META)?,
            merge,
            clock,
            numbers,
            known_live: HashMap::new(),
            changed: false,
            dropped_any: false,
        })
    }

    /// The inner result is the job's own; the outer error spoils the whole transaction.
    pub(super) fn apply(&mut self, work: &Work) -> Result<Result<u64, CommitError>, redb::Error> {
        match work {
            Work::Commit(commit) => self.commit(commit),
            Work::CreateTable { key, payload } => self.create_table(key, payload),
            Work::DropTable { key } => self.drop_table(key),
            Work::RenameTable { from, to, payload } => self.rename_table(from, to, payload),
            Work::Load(load) => self.load(load),
            Work::Reopen => Ok(Ok(0)),
        }
    }

    pub(super) fn finish(mut self) -> Result<Applied, redb::Error> {
        if self.changed {
            self.meta.insert(META_LAST_VERSION, self.numbers.last_version)?;
            self.meta.insert(META_NEXT_TABLE, self.numbers.next_table)?;
        }
        Ok(Applied { numbers: self.numbers, changed: self.changed, dropped_any: self.dropped_any })
    }

    fn commit(&mut self, commit: &Commit) -> Result<Result<u64, CommitError>, redb::Error> {
        match self.is_live(commit.table) {
            Ok(true) => {}
            Ok(false) => return Ok(Err(CommitError::TableGone)),
            Err(error) => return Ok(Err(error)),
        }
        let writes = match decide(commit, |key| lookup(&self.rows, key), self.merge) {
            Ok(writes) => writes,
            Err(error) => return Ok(Err(error)),
        };
        let version = self.take_version();
        for write in &writes {
            match &write.value {
                Some(value) => self.put(&write.key, version, value)?,
                None => self.remove(&write.key)?,
            }
        }
        Ok(Ok(version.ticks()))
    }

    fn create_table(&mut self, key: &[u8], payload: &[u8]) -> Result<Result<u64, CommitError>, redb::Error> {
        let found = lookup(&self.rows, key).map(|row| row.map(|(version, _)| version));
        match found {
            Ok(None) => {}
            Ok(Some(version)) => {
                return Ok(Err(CommitError::Precondition { op: 0, found: Found::Present(version) }));
            }
            Err(error) => return Ok(Err(error)),
        }
        let id = TableId(self.numbers.next_table);
        self.numbers.next_table += 1;
        let version = self.take_version();
        self.put(key, version, &TableRecord { id, payload }.write())?;
        self.live.insert(id.0, ())?;
        self.known_live.insert(id, true);
        Ok(Ok(id.0))
    }

    fn rename_table(
        &mut self,
        from: &[u8],
        to: &[u8],
        payload: &[u8],
    ) -> Result<Result<u64, CommitError>, redb::Error> {
        let id = match self.table_named(from) {
            Ok(id) => id,
            Err(error) => return Ok(Err(error)),
        };
        let taken = lookup(&self.rows, to).map(|row| row.map(|(version, _)| version));
        match taken {
            Ok(None) => {}
            Ok(Some(version)) => {
                return Ok(Err(CommitError::Precondition { op: 1, found: Found::Present(version) }));
            }
            Err(error) => return Ok(Err(error)),
        }
        let version = self.take_version();
        self.remove(from)?;
        self.put(to, version, &TableRecord { id, payload }.write())?;
        Ok(Ok(id.0))
    }

    fn load(&mut self, load: &Load) -> Result<Result<u64, CommitError>, redb::Error> {
        match self.is_live(load.table) {
            Ok(true) => {}
            Ok(false) => return Ok(Err(CommitError::TableGone)),
            Err(error) => return Ok(Err(error)),
        }
        let mut last_version = self.numbers.last_version.max(load.versions_until.ticks());
        for (key, row) in &load.rows {
            last_version = last_version.max(row.version.ticks());
            self.put(&keys::encode(load.table, key.as_key()), row.version, &row.value)?;
        }
        self.changed = true;
        self.numbers.last_version = last_version;
        Ok(Ok(self.take_version().ticks()))
    }

    /// The id that a catalogue key stands for.
    fn table_named(&self, key: &[u8]) -> Result<TableId, CommitError> {
        let Some((_, value)) = lookup(&self.rows, key)? else {
            return Err(CommitError::Precondition { op: 0, found: Found::Absent });
        };
        let record = TableRecord::read(value.as_ref());
        let short = || CommitError::Storage("damaged data: a catalogue row is too short".to_owned());
        record.map(|record| record.id).ok_or_else(short)
    }

    fn drop_table(&mut self, key: &[u8]) -> Result<Result<u64, CommitError>, redb::Error> {
        let id = match self.table_named(key) {
            Ok(id) => id,
            Err(error) => return Ok(Err(error)),
        };
        // No row bears it, but it tells the state with the table from the state without it.
        self.take_version();
        self.remove(key)?;
        self.live.remove(id.0)?;
        self.dropped.insert(id.0, ())?;
        self.known_live.insert(id, false);
        self.dropped_any = true;
        Ok(Ok(id.0))
    }

    fn is_live(&mut self, table: TableId) -> Result<bool, CommitError> {
        match table {
            // Changed by its own verbs only.
            TableId::CATALOGUE => return Ok(false),
            TableId::SETTINGS => return Ok(true),
            _ => {}
        }
        if let Some(live) = self.known_live.get(&table) {
            return Ok(*live);
        }
        let live = self.live.get(table.0).map_err(storage)?.is_some();
        self.known_live.insert(table, live);
        Ok(live)
    }

    fn take_version(&mut self) -> Version {
        let version = next_version(self.clock, self.numbers.last_version);
        self.numbers.last_version = version.ticks();
        version
    }

    fn put(&mut self, key: &[u8], version: Version, value: &[u8]) -> Result<(), redb::Error> {
        self.changed = true;
        let mut place = self.rows.insert_reserve(key, stored::size_bytes(value))?;
        stored::write(place.as_mut(), key, version, value);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), redb::Error> {
        self.changed = true;
        self.rows.remove(key)?;
        Ok(())
    }
}

/// A row's value where it lies, behind the header that was checked.
struct StoredValue<'a> {
    guard: AccessGuard<'a, &'static [u8]>,
    start: usize,
}

impl AsRef<[u8]> for StoredValue<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.guard.value()[self.start..]
    }
}

fn lookup<'a>(
    rows: &'a Table<'_, &'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<(Version, StoredValue<'a>)>, CommitError> {
    let Some(guard) = rows.get(key).map_err(storage)? else {
        return Ok(None);
    };
    let stored = guard.value();
    let (version, payload) = stored::read(key, stored)
        .map_err(|damage| CommitError::Storage(format!("damaged data: {damage}")))?;
    let start = stored.len() - payload.len();
    Ok(Some((version, StoredValue { guard, start })))
}

fn storage(error: redb::StorageError) -> CommitError {
    CommitError::Storage(error.to_string())
}
