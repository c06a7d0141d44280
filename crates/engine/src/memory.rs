//! The engine that keeps everything in memory: the reference that the others are compared with.
//!
//! Rows live in persistent maps, one per table. A reader's view is a clone of a map, which costs almost nothing, so a
//! scan never delays a writer, and dropping a table removes one entry. Keeps every promise of the contract except
//! durability, which lasts as long as the process. Its memory is bounded by the data alone.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use imbl::OrdMap;
use imbl::shared_ptr::DefaultSharedPtr;

use crate::decide::{decide, decide_all, holds, next_version};
use crate::env::Clock;
use crate::keys::{self, Key, KeyRange, OwnedKey};
use crate::lane::Lane;
use crate::pace::Pace;
use crate::scan::{self, RowSource, ScannedRow, scan};
use crate::{
    Budget, Commit, CommitError, Engine, Expect, Families, Family, Found, Load, Namespace, ReadError, Row,
    Sink, Snapshot, TableId, TablePath, TableRecord, TableRows, Version,
};

/// The rows of one table, by encoded key.
#[derive(Clone, Default)]
struct RowMap(OrdMap<Bytes, Row>);

pub struct MemoryEngine {
    families: Families,
    clock: Arc<dyn Clock>,
    slow_lane: Lane,
    state: RwLock<State>,
}

struct State {
    /// The live tables, the catalogue and the settings.
    tables: BTreeMap<TableId, RowMap>,
    next_table: u64,
    last_version: u64,
    closed: bool,
}

impl MemoryEngine {
    pub fn new(families: Families, clock: Arc<dyn Clock>) -> MemoryEngine {
        let tables =
            BTreeMap::from([(TableId::CATALOGUE, RowMap::default()), (TableId::SETTINGS, RowMap::default())]);
        let state = State { tables, next_table: TableId::FIRST.0, last_version: 0, closed: false };
        MemoryEngine {
            families,
            clock,
            slow_lane: Lane::with_half_of_the_processors(),
            state: RwLock::new(state),
        }
    }

    fn find(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        keys::with_encoded(table, key, |key| self.read(|state| state.tables.get(&table)?.0.get(key).cloned()))
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> Result<T, ReadError> {
        let state = self.state.read().map_err(|_| ReadError::Storage(BROKEN.to_owned()))?;
        Ok(look(&state))
    }

    fn write<T>(&self, change: impl FnOnce(&mut State) -> Result<T, CommitError>) -> Result<T, CommitError> {
        let mut state = self.state.write().map_err(|_| CommitError::Storage(BROKEN.to_owned()))?;
        if state.closed {
            return Err(CommitError::Storage("the engine is closed".to_owned()));
        }
        change(&mut state)
    }
}

const BROKEN: &str = "an earlier change panicked half way";

fn out_of_ids() -> CommitError {
    CommitError::Storage("there are no more table ids".to_owned())
}

impl State {
    fn commit(
        &mut self,
        commit: &Commit,
        families: &Families,
        clock: &dyn Clock,
    ) -> Result<Version, CommitError> {
        if commit.table == TableId::CATALOGUE {
            return Err(CommitError::TableGone);
        }
        let rows = self.tables.get_mut(&commit.table).ok_or(CommitError::TableGone)?;
        let lookup = |key: &[u8]| Ok(rows.0.get(key).map(|row| (row.version, row.value.clone())));
        let writes = decide(commit, lookup, families)?;
        let version = next_version(clock, self.last_version);
        self.last_version = version.ticks();
        for write in writes {
            match write.value {
                Some(value) => rows.0.insert(write.key.into(), Row { version, value }),
                None => rows.0.remove(&write.key[..]),
            };
        }
        Ok(version)
    }

    fn commit_all(
        &mut self,
        commits: &[Commit],
        families: &Families,
        clock: &dyn Clock,
    ) -> Result<Version, CommitError> {
        let is_live = |table| table != TableId::CATALOGUE && self.tables.contains_key(&table);
        if !commits.iter().all(|commit| is_live(commit.table)) {
            return Err(CommitError::TableGone);
        }
        let version = next_version(clock, self.last_version);
        let rows_of = |key: &[u8]| keys::table_of(key).and_then(|table| self.tables.get(&table));
        let lookup = |key: &[u8]| {
            Ok(rows_of(key).and_then(|rows| rows.0.get(key)).map(|row| (row.version, row.value.clone())))
        };
        let writes = decide_all(commits, version, lookup, families)?;
        self.last_version = version.ticks();
        for write in writes {
            let table = keys::table_of(&write.key);
            let Some(rows) = table.and_then(|table| self.tables.get_mut(&table)) else { continue };
            match write.value {
                Some(value) => rows.0.insert(write.key.into(), Row { version, value }),
                None => rows.0.remove(&write.key[..]),
            };
        }
        Ok(version)
    }

    fn catalogue(&mut self) -> &mut RowMap {
        self.tables.entry(TableId::CATALOGUE).or_default()
    }

    fn create_table(
        &mut self,
        family: Family,
        key: Vec<u8>,
        payload: &[u8],
        clock: &dyn Clock,
    ) -> Result<TableId, CommitError> {
        if let Some(row) = self.catalogue().0.get(&key[..]) {
            return Err(CommitError::Precondition { op: 0, found: Found::Present(row.version) });
        }
        let id = TableId::in_family(family, self.next_table).ok_or_else(out_of_ids)?;
        self.next_table += 1;
        let version = next_version(clock, self.last_version);
        self.last_version = version.ticks();
        self.catalogue().0.insert(key.into(), Row { version, value: TableRecord { id, payload }.write() });
        self.tables.insert(id, RowMap::default());
        Ok(id)
    }

    fn rename_table(
        &mut self,
        from: &[u8],
        to: Vec<u8>,
        payload: &[u8],
        clock: &dyn Clock,
    ) -> Result<TableId, CommitError> {
        let Some(row) = self.catalogue().0.get(from).cloned() else {
            return Err(CommitError::Precondition { op: 0, found: Found::Absent });
        };
        if let Some(taken) = self.catalogue().0.get(&to[..]) {
            return Err(CommitError::Precondition { op: 1, found: Found::Present(taken.version) });
        }
        let id = TableRecord::read(&row.value).expect("create_table wrote a record").id;
        let version = next_version(clock, self.last_version);
        self.last_version = version.ticks();
        self.catalogue().0.remove(from);
        self.catalogue().0.insert(to.into(), Row { version, value: TableRecord { id, payload }.write() });
        Ok(id)
    }

    /// Returns the dropped rows, so that the caller can free them when it holds no lock.
    fn replace_table(
        &mut self,
        key: Vec<u8>,
        expect: Expect,
        payload: &[u8],
        kept: TableRows,
        clock: &dyn Clock,
    ) -> Result<(TableId, Option<RowMap>), CommitError> {
        let row = self.catalogue().0.get(&key[..]).cloned();
        let found = row.as_ref().map_or(Found::Absent, |row| Found::Present(row.version));
        let Some(row) = row.filter(|_| holds(expect, found)) else {
            return Err(CommitError::Precondition { op: 0, found });
        };
        let old = TableRecord::read(&row.value).expect("create_table wrote a record").id;
        let (id, dropped) = match kept {
            TableRows::Keep => (old, None),
            TableRows::Drop => {
                let id = TableId::in_family(old.family(), self.next_table).ok_or_else(out_of_ids)?;
                self.next_table += 1;
                self.tables.insert(id, RowMap::default());
                (id, self.tables.remove(&old))
            }
        };
        let version = next_version(clock, self.last_version);
        self.last_version = version.ticks();
        self.catalogue().0.insert(key.into(), Row { version, value: TableRecord { id, payload }.write() });
        Ok((id, dropped))
    }

    fn load(&mut self, load: Load, clock: &dyn Clock) -> Result<(), CommitError> {
        if load.table == TableId::CATALOGUE {
            return Err(CommitError::TableGone);
        }
        let rows = self.tables.get_mut(&load.table).ok_or(CommitError::TableGone)?;
        let mut last_version = self.last_version.max(load.versions_until.ticks());
        for (key, row) in load.rows {
            last_version = last_version.max(row.version.ticks());
            rows.0.insert(keys::encode(load.table, key.as_key()).into(), row);
        }
        self.last_version = next_version(clock, last_version).ticks();
        Ok(())
    }

    /// Returns the rows, so that the caller can free them when it holds no lock.
    fn drop_table(
        &mut self,
        key: &[u8],
        clock: &dyn Clock,
    ) -> Result<(TableId, Option<RowMap>), CommitError> {
        let Some(row) = self.catalogue().0.remove(key) else {
            return Err(CommitError::Precondition { op: 0, found: Found::Absent });
        };
        self.last_version = next_version(clock, self.last_version).ticks();
        let id = TableRecord::read(&row.value).expect("create_table wrote a record").id;
        Ok((id, self.tables.remove(&id)))
    }
}

#[async_trait]
impl Engine for MemoryEngine {
    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        self.find(table, key)
    }

    fn get_now(&self, table: TableId, key: Key<'_>) -> Option<Result<Option<Row>, ReadError>> {
        Some(self.find(table, key))
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let Some(rows) = self.read(|state| state.tables.get(&table).cloned())? else {
            return Ok(None);
        };
        scan(&rows, table, ranges, Pace::new(&*self.clock, budget, Some(&self.slow_lane)), sink).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.write(|state| state.commit(&commit, &self.families, &*self.clock))
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        self.write(|state| state.commit_all(&commits, &self.families, &*self.clock))
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let key = namespace.encode(name)?;
        self.write(|state| state.create_table(namespace.family, key, &payload, &*self.clock))
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        let key = namespace.encode(name)?;
        let (id, rows) = self.write(|state| state.drop_table(&key, &*self.clock))?;
        free(rows);
        Ok(id)
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let (from, to) = TablePath::encode_renaming(from, to)?;
        self.write(|state| state.rename_table(&from, to, &payload, &*self.clock))
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        let key = path.namespace.encode(path.name)?;
        let (id, dropped) =
            self.write(|state| state.replace_table(key, expect, &payload, rows, &*self.clock))?;
        free(dropped);
        Ok(id)
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        let clock = self.clock.clone();
        self.read(|state| -> Arc<dyn Snapshot> {
            let last_version = Version::new(state.last_version);
            Arc::new(MemorySnapshot { tables: state.tables.clone(), last_version, clock })
        })
    }

    async fn load(&self, load: Load) -> Result<(), CommitError> {
        self.write(|state| state.load(load, &*self.clock))
    }

    async fn close(&self) {
        if let Ok(mut state) = self.state.write() {
            state.closed = true;
        }
    }
}

/// Freeing a million rows takes a while, and the caller was promised a quick step.
fn free(rows: Option<RowMap>) {
    if let (Some(rows), Ok(runtime)) = (rows, tokio::runtime::Handle::try_current()) {
        runtime.spawn_blocking(move || drop(rows));
    }
}

struct MemorySnapshot {
    tables: BTreeMap<TableId, RowMap>,
    last_version: Option<Version>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    fn last_version(&self) -> Option<Version> {
        self.last_version
    }

    fn row_count(&self) -> Result<u64, ReadError> {
        Ok(self.tables.values().map(|rows| rows.0.len() as u64).sum())
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let Some(rows) = self.tables.get(&table) else { return Ok(None) };
        scan(rows, table, ranges, Pace::new(&*self.clock, budget, None), sink).await
    }
}

impl RowSource for RowMap {
    type Error = ReadError;
    type Rows<'a> = RowsInRange<'a>;

    fn range<'a>(&'a self, start: &'a [u8], end: &'a [u8]) -> Result<RowsInRange<'a>, ReadError> {
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        Ok(RowsInRange(self.0.range::<_, [u8]>(bounds)))
    }
}

struct RowsInRange<'a>(imbl::ordmap::RangedIter<'a, Bytes, Row, DefaultSharedPtr>);

impl<'a> scan::Rows for RowsInRange<'a> {
    type Error = ReadError;
    type Row = RowInPlace<'a>;

    fn next_row(&mut self) -> Result<Option<RowInPlace<'a>>, ReadError> {
        Ok(self.0.next().map(|(key, row)| RowInPlace { key, row }))
    }
}

struct RowInPlace<'a> {
    key: &'a Bytes,
    row: &'a Row,
}

impl ScannedRow for RowInPlace<'_> {
    type Error = ReadError;

    fn key(&self) -> &[u8] {
        self.key
    }

    fn read(&self) -> Result<(Version, &[u8]), ReadError> {
        Ok((self.row.version, &self.row.value))
    }
}
