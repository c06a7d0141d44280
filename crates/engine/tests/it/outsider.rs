//! An engine that is not part of the crate: it shows that the public contract is enough to write one.
//!
//! As simple as an engine can be: every row of every table in one map of encoded keys, behind one lock that is held for
//! the length of a call. A snapshot, and so a scan, is a copy of the map.

use std::collections::btree_map::{self, BTreeMap};
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use engine::decide::{decide_all, holds, next_version};
use engine::env::Clock;
use engine::keys::{self, Key, KeyRange, OwnedKey};
use engine::pace::Pace;
use engine::scan::{RowSource, Rows, ScannedRow, scan};
use engine::{
    Budget, Commit, CommitError, Engine, Expect, Families, Found, Load, Namespace, ReadError, Row, Sink,
    Snapshot, TableId, TablePath, TableRecord, TableRows, Version,
};
use tokio::sync::Mutex;

pub struct Outsider {
    families: Families,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    rows: BTreeMap<Vec<u8>, Row>,
    live: Vec<TableId>,
    next_table: u64,
    last_version: u64,
    is_closed: bool,
}

impl Outsider {
    /// Asynchronous, as it is for an engine that is reached over a network.
    pub async fn connect(families: Families, clock: Arc<dyn Clock>) -> Arc<Outsider> {
        tokio::task::yield_now().await;
        let state = State {
            rows: BTreeMap::new(),
            live: vec![TableId::SETTINGS],
            next_table: TableId::FIRST.0,
            last_version: 0,
            is_closed: false,
        };
        Arc::new(Outsider { families, clock, state: Mutex::new(state) })
    }

    async fn write<T>(
        &self,
        change: impl FnOnce(&mut State) -> Result<T, CommitError>,
    ) -> Result<T, CommitError> {
        let mut state = self.state.lock().await;
        if state.is_closed {
            return Err(CommitError::Storage("the engine is closed".to_owned()));
        }
        change(&mut state)
    }

    fn take_version(&self, state: &mut State) -> Version {
        let version = next_version(&*self.clock, state.last_version);
        state.last_version = version.ticks();
        version
    }
}

impl State {
    fn check_live(&self, table: TableId) -> Result<(), CommitError> {
        if self.live.contains(&table) { Ok(()) } else { Err(CommitError::TableGone) }
    }

    fn named(&self, key: &[u8]) -> Result<TableId, CommitError> {
        let row = self.rows.get(key).ok_or(CommitError::Precondition { op: 0, found: Found::Absent })?;
        Ok(TableRecord::read(&row.value).unwrap().id)
    }

    fn check_free(&self, key: &[u8], op: usize) -> Result<(), CommitError> {
        match self.rows.get(key) {
            Some(row) => Err(CommitError::Precondition { op, found: Found::Present(row.version) }),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Engine for Outsider {
    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        Ok(self.state.lock().await.rows.get(&keys::encode(table, key)).cloned())
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        self.snapshot().await?.scan(table, ranges, budget, sink).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.commit_all(vec![commit]).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        self.write(|state| {
            for commit in &commits {
                state.check_live(commit.table)?;
            }
            let version = self.take_version(state);
            let lookup = |key: &[u8]| Ok(state.rows.get(key).map(|row| (row.version, row.value.clone())));
            let writes = decide_all(&commits, version, lookup, &self.families)?;
            for write in writes {
                match write.value {
                    Some(value) => state.rows.insert(write.key, Row { version, value }),
                    None => state.rows.remove(&write.key),
                };
            }
            Ok(version)
        })
        .await
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let key = namespace.encode(name)?;
        self.write(|state| {
            state.check_free(&key, 0)?;
            let id = TableId::in_family(namespace.family, state.next_table).unwrap();
            state.next_table += 1;
            state.live.push(id);
            let version = self.take_version(state);
            state.rows.insert(key, Row { version, value: TableRecord { id, payload: &payload }.write() });
            Ok(id)
        })
        .await
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        let key = namespace.encode(name)?;
        self.write(|state| {
            let id = state.named(&key)?;
            self.take_version(state);
            state.live.retain(|live| *live != id);
            state.rows.retain(|row, _| *row != key && keys::table_of(row) != Some(id));
            Ok(id)
        })
        .await
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        let (from, to) = TablePath::encode_renaming(from, to)?;
        self.write(|state| {
            let id = state.named(&from)?;
            state.check_free(&to, 1)?;
            let version = self.take_version(state);
            state.rows.remove(&from);
            state.rows.insert(to, Row { version, value: TableRecord { id, payload: &payload }.write() });
            Ok(id)
        })
        .await
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        let key = path.namespace.encode(path.name)?;
        self.write(|state| {
            let old = state.named(&key)?;
            let found = Found::Present(state.rows[&key].version);
            if !holds(expect, found) {
                return Err(CommitError::Precondition { op: 0, found });
            }
            let mut id = old;
            if rows == TableRows::Drop {
                id = TableId::in_family(old.family(), state.next_table).unwrap();
                state.next_table += 1;
                state.live.retain(|live| *live != old);
                state.live.push(id);
                state.rows.retain(|row, _| keys::table_of(row) != Some(old));
            }
            let version = self.take_version(state);
            state.rows.insert(key, Row { version, value: TableRecord { id, payload: &payload }.write() });
            Ok(id)
        })
        .await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        let state = self.state.lock().await.clone();
        Ok(Arc::new(Copied { state, clock: self.clock.clone() }))
    }

    async fn load(&self, load: Load) -> Result<(), CommitError> {
        self.write(|state| {
            state.check_live(load.table)?;
            state.last_version = state.last_version.max(load.versions_until.ticks());
            for (key, row) in load.rows {
                state.last_version = state.last_version.max(row.version.ticks());
                state.rows.insert(keys::encode(load.table, key.as_key()), row);
            }
            Ok(())
        })
        .await
    }

    async fn close(&self) {
        self.state.lock().await.is_closed = true;
    }
}

struct Copied {
    state: State,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Snapshot for Copied {
    fn last_version(&self) -> Option<Version> {
        Version::new(self.state.last_version)
    }

    fn row_count(&self) -> Result<u64, ReadError> {
        Ok(self.state.rows.len() as u64)
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        scan(&self.state, table, ranges, Pace::new(&*self.clock, budget, None), sink).await
    }
}

impl RowSource for State {
    type Error = ReadError;
    type Rows<'a> = Range<'a>;

    fn range<'a>(&'a self, start: &'a [u8], end: &'a [u8]) -> Result<Range<'a>, ReadError> {
        Ok(Range(self.rows.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)))))
    }
}

struct Range<'a>(btree_map::Range<'a, Vec<u8>, Row>);

impl<'a> Rows for Range<'a> {
    type Error = ReadError;
    type Row = Stored<'a>;

    fn next_row(&mut self) -> Result<Option<Stored<'a>>, ReadError> {
        Ok(self.0.next().map(|(key, row)| Stored { key, row }))
    }
}

struct Stored<'a> {
    key: &'a [u8],
    row: &'a Row,
}

impl ScannedRow for Stored<'_> {
    type Error = ReadError;

    fn key(&self) -> &[u8] {
        self.key
    }

    fn read(&self) -> Result<(Version, &[u8]), ReadError> {
        Ok((self.row.version, &self.row.value))
    }
}
