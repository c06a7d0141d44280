//! Copies everything in a snapshot into another engine, and compares the two.
//!
//! Rows keep their versions. Containers get new ids, so what is filed by their ids, their policies, is filed anew.
//! Promises: the target is compared with the source in a second pass, container by container, by the number of rows and a
//! SHA-256 over keys, versions and values. What is loaded twice, because a move was interrupted, is there once.

use bytes::Bytes;
use catalogue::Setting;
use engine::{
    Budget, CommitError, Engine, Expect, Family, Flow, Key, KeyRange, Load, Namespace, OwnedKey, Row, Sink,
    Snapshot, TableId, TableRecord, Version,
};
use ring::digest::{Context, SHA256};

use super::note::MoveNote;
use crate::progress::Progress;
use crate::unfinished;

/// One load: enough to be quick, little enough for memory and for one statement.
const LOAD_ROW_COUNT_MAX: usize = 1_000;
const LOAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The note is written after so many loads.
const NOTE_INTERVAL: u32 = 16;

#[derive(Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) table_count: u64,
    pub(super) queue_count: u64,
    /// Of all containers, those with measurements too.
    pub(super) row_count: u64,
}

/// A container of the source.
struct SourceContainer {
    key: OwnedKey,
    family: Family,
    id: TableId,
    identity: TableId,
    payload: Bytes,
}

pub(super) async fn run(
    source: &dyn Snapshot,
    target: &dyn Engine,
    target_name: &str,
    progress: &mut Progress,
) -> Result<Moved, String> {
    let containers = containers(source).await?;
    if let Some(container) = containers.iter().find(|container| container.family == blobs::FAMILY) {
        return Err(format!(
            "the store has containers of blobs, such as {}, and their contents cannot be moved: use 'lazulite backup', then \
             'lazulite restore' into the other store, where an engine needs --contents",
            container.key.row
        ));
    }
    let source_ticks = source.last_version().map_or(0, Version::ticks);
    let mut note = begin(target, target_name, source_ticks).await?;
    let total = source.row_count().map_err(|error| error.to_string())?;
    let mut moving = Moving { source, target, versions_until: source_ticks, total, done: 0, progress };
    let settings = all_rows(source, TableId::SETTINGS).await?;
    moving.properties(&settings).await?;
    let mut ids = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let id = moving.create(container).await?;
        moving.policies(&settings, container, id).await?;
        if index >= note.done_count {
            moving.rows(container, id, &mut note).await?;
            note = MoveNote { done_count: index + 1, next: None, ..note };
            moving.keep(&note).await?;
        }
        ids.push(id);
    }
    moving.compare_all(&containers, &ids).await
}

/// Takes an empty target, or one in which a move from the same source was interrupted.
async fn begin(target: &dyn Engine, target_name: &str, source_ticks: u64) -> Result<MoveNote, String> {
    let fresh = MoveNote { source_ticks, done_count: 0, next: None };
    if let Some(row) = unfinished::read(target).await? {
        return match MoveNote::read(&row.value) {
            Some(note) if note.source_ticks == source_ticks => Ok(note),
            Some(_) => Err(format!(
                "a move into {target_name} did not finish, and its source was another one or has changed since: begin anew with \
                 an empty target"
            )),
            None => {
                Err(format!("a restore into {target_name} did not finish: begin anew with an empty target"))
            }
        };
    }
    let view = target.snapshot().await.map_err(|error| error.to_string())?;
    let settings = all_rows(&*view, TableId::SETTINGS).await?;
    let has_data =
        settings.iter().any(|(key, _)| Setting::read(key.as_key()).is_none_or(|found| found.is_data()));
    if has_data || !all_rows(&*view, TableId::CATALOGUE).await?.is_empty() {
        return Err(format!("{target_name} is not empty: a store can only be moved to where nothing is"));
    }
    unfinished::write(target, Expect::Absent, fresh.write().into()).await?;
    Ok(fresh)
}

async fn containers(source: &dyn Snapshot) -> Result<Vec<SourceContainer>, String> {
    let mut containers = Vec::new();
    for (key, row) in all_rows(source, TableId::CATALOGUE).await? {
        if backup::is_restoring(key.as_key()) {
            continue;
        }
        let damaged = || format!("the catalogue's entry for {:?} is damaged", key.row);
        let family = TableRecord::read(&row.value).ok_or_else(damaged)?.id.family();
        let read = catalogue::record::read_value(family, &row.value);
        let (ids, payload) = read.ok_or_else(damaged)?;
        let payload = Bytes::copy_from_slice(payload);
        containers.push(SourceContainer { family, id: ids.id, identity: ids.identity, payload, key });
    }
    Ok(containers)
}

struct Moving<'a> {
    source: &'a dyn Snapshot,
    target: &'a dyn Engine,
    /// The target goes on with the versions of the source.
    versions_until: u64,
    total: u64,
    done: u64,
    progress: &'a mut Progress,
}

impl Moving<'_> {
    async fn keep(&self, note: &MoveNote) -> Result<(), String> {
        unfinished::write(self.target, Expect::Present, note.write().into()).await
    }

    async fn properties(&self, settings: &[(OwnedKey, Row)]) -> Result<(), String> {
        let is_properties =
            |key: &OwnedKey| matches!(Setting::read(key.as_key()), Some(Setting::ServiceProperties(_)));
        let unknown = settings.iter().find(|(key, _)| Setting::read(key.as_key()).is_none());
        if let Some((key, _)) = unknown {
            return Err(format!("a setting is unknown: {key:?}"));
        }
        let rows = settings.iter().filter(|(key, _)| is_properties(key)).cloned().collect();
        self.load(TableId::SETTINGS, rows).await
    }

    async fn policies(
        &self,
        settings: &[(OwnedKey, Row)],
        container: &SourceContainer,
        id: TableId,
    ) -> Result<(), String> {
        let key = Setting::Policies(container.identity).key();
        let Some((_, row)) = settings.iter().find(|(found, _)| *found == key) else { return Ok(()) };
        self.load(TableId::SETTINGS, vec![(Setting::Policies(id).key(), row.clone())]).await
    }

    async fn load(&self, table: TableId, rows: Vec<(OwnedKey, Row)>) -> Result<(), String> {
        let Some(versions_until) = Version::new(self.versions_until) else { return Ok(()) };
        let load = Load { table, rows, versions_until };
        self.target.load(load).await.map_err(|error| error.to_string())
    }

    /// The container in the target, made unless an interrupted move has made it.
    async fn create(&self, container: &SourceContainer) -> Result<TableId, String> {
        let SourceContainer { key, family, payload, .. } = container;
        // A namespace's partition begins with its owner's name.
        let owner = key.partition.split('/').next().unwrap_or_default();
        let namespace = Namespace::new(*family, owner);
        if *namespace.partition() != *key.partition {
            return Err(format!("the catalogue's entry for {:?} is damaged", key.row));
        }
        let payload = catalogue::record::of_new(*family, payload.clone());
        match self.target.create_table(namespace, &key.row, payload).await {
            Ok(id) => Ok(id),
            Err(CommitError::Precondition { .. }) => {
                let row = self.target.get(TableId::CATALOGUE, key.as_key()).await;
                let row = row.map_err(|error| error.to_string())?;
                let record = row.as_ref().and_then(|row| TableRecord::read(&row.value));
                record.map(|record| record.id).ok_or_else(|| format!("{:?} cannot be created", key.row))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    async fn rows(
        &mut self,
        container: &SourceContainer,
        id: TableId,
        note: &mut MoveNote,
    ) -> Result<(), String> {
        let mut load_count = 0;
        let mut range = Some(match &note.next {
            Some(key) => KeyRange::from_key(&key.partition, &key.row),
            None => KeyRange::all(),
        });
        while let Some(from) = range.take() {
            let mut rows = RowLoad::default();
            let scanned = self.source.scan(container.id, &[from], Budget::UNBOUNDED, &mut rows).await;
            let next = scanned.map_err(|error| error.to_string())?;
            self.done += rows.rows.len() as u64;
            self.load(id, rows.rows).await?;
            // Copied, and later read again on both sides.
            self.progress.show(self.done, 2 * self.total);
            load_count += 1;
            if let Some(key) = next {
                range = Some(KeyRange::from_key(&key.partition, &key.row));
                note.next = Some(key);
                if load_count % NOTE_INTERVAL == 0 {
                    self.keep(note).await?;
                }
            }
        }
        Ok(())
    }

    async fn compare_all(
        &mut self,
        containers: &[SourceContainer],
        ids: &[TableId],
    ) -> Result<Moved, String> {
        let view = self.target.snapshot().await.map_err(|error| error.to_string())?;
        let mut moved = Moved::default();
        for (container, id) in containers.iter().zip(ids) {
            let (was, is) = (digest(self.source, container.id).await?, digest(&*view, *id).await?);
            if was != is {
                return Err(format!(
                    "{} of {} is not the same in both stores: {} rows there, {} here",
                    container.key.row, container.key.partition, was.row_count, is.row_count
                ));
            }
            moved.table_count += u64::from(container.family == tables::FAMILY);
            moved.queue_count += u64::from(container.family == queues::FAMILY);
            moved.row_count += is.row_count;
            self.done += is.row_count;
            self.progress.show(self.done, 2 * self.total);
        }
        Ok(moved)
    }
}

/// A load's worth of rows.
#[derive(Default)]
struct RowLoad {
    rows: Vec<(OwnedKey, Row)>,
    bytes: usize,
}

impl Sink for RowLoad {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.rows.len() >= LOAD_ROW_COUNT_MAX || self.bytes >= LOAD_BYTES_MAX {
            return Flow::Stop;
        }
        self.bytes += key.partition.len() + key.row.len() + value.len();
        self.rows.push((key.into(), Row { version, value: Bytes::copy_from_slice(value) }));
        Flow::Continue
    }
}

/// What a container's rows come to.
#[derive(PartialEq, Eq)]
struct RowDigest {
    row_count: u64,
    sha256: Vec<u8>,
}

async fn digest(view: &dyn Snapshot, table: TableId) -> Result<RowDigest, String> {
    struct Digesting {
        row_count: u64,
        context: Context,
    }
    impl Sink for Digesting {
        fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
            self.row_count += 1;
            for part in [key.partition.as_bytes(), key.row.as_bytes(), &version.ticks().to_le_bytes(), value]
            {
                self.context.update(&(part.len() as u64).to_le_bytes());
                self.context.update(part);
            }
            Flow::Continue
        }
    }
    let mut digesting = Digesting { row_count: 0, context: Context::new(&SHA256) };
    let scanned = view.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, &mut digesting).await;
    scanned.map_err(|error| error.to_string())?;
    let Digesting { row_count, context } = digesting;
    Ok(RowDigest { row_count, sha256: context.finish().as_ref().to_vec() })
}

/// All rows of one of the engine's own tables, which are small.
async fn all_rows(view: &dyn Snapshot, table: TableId) -> Result<Vec<(OwnedKey, Row)>, String> {
    struct All(Vec<(OwnedKey, Row)>);
    impl Sink for All {
        fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
            self.0.push((key.into(), Row { version, value: Bytes::copy_from_slice(value) }));
            Flow::Continue
        }
    }
    let mut all = All(Vec::new());
    let scanned = view.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, &mut all).await;
    scanned.map(|_| all.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use engine::env::FakeClock;
    use engine::memory::MemoryEngine;
    use engine::wrapper::{Wrapped, Wrapper};

    use super::*;

    /// Takes so many loads, and no more.
    struct Tiring {
        inner: Arc<MemoryEngine>,
        left: AtomicUsize,
    }

    #[async_trait]
    impl Wrapper for Tiring {
        fn inner(&self) -> &dyn Engine {
            &*self.inner
        }

        async fn load(&self, load: Load) -> Result<(), CommitError> {
            let left =
                self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            match left {
                Ok(_) => self.inner.load(load).await,
                Err(_) => Err(CommitError::Busy),
            }
        }
    }

    fn memory() -> Arc<MemoryEngine> {
        Arc::new(MemoryEngine::new(server::FAMILIES, Arc::new(FakeClock::default())))
    }

    async fn fill(engine: &MemoryEngine, account: &str, row_count: u64) {
        let id = engine
            .create_table(Namespace::new(tables::FAMILY, account), "people", "people".into())
            .await
            .unwrap();
        let version = |n: u64| Version::new(1 + n).unwrap();
        let row = |n: u64| {
            (Key::new("p", &format!("{n:08}")).into(), Row { version: version(n), value: "v".into() })
        };
        let load =
            Load { table: id, rows: (0..row_count).map(row).collect(), versions_until: version(row_count) };
        engine.load(load).await.unwrap();
    }

    #[test]
    fn an_interrupted_copy_goes_on_and_another_source_is_refused() {
        let (source, target) = (memory(), memory());
        let work = async {
            fill(&source, "first", 20_000).await;
            fill(&source, "second", 1_500).await;
            let snapshot = source.snapshot().await.unwrap();
            let mut progress = Progress::start();
            let mut attempt_count = 0;
            let moved = loop {
                attempt_count += 1;
                assert!(attempt_count < 10, "each attempt gets further");
                let left = AtomicUsize::new(18);
                let tired = Wrapped(Tiring { inner: target.clone(), left });
                match run(&*snapshot, &tired, "there", &mut progress).await {
                    Ok(moved) => break moved,
                    Err(error) => assert!(error.contains("full"), "{error}"),
                }
            };
            assert!(attempt_count > 1);
            assert_eq!((moved.table_count, moved.row_count), (2, 21_500));
            // The note is there until the caller has done everything else.
            fill(&source, "third", 1).await;
            let snapshot = source.snapshot().await.unwrap();
            let changed = run(&*snapshot, &*target, "there", &mut progress).await;
            assert!(changed.is_err_and(|error| error.contains("has changed since")));
            unfinished::remove(&*target).await.unwrap();
            let filled = run(&*snapshot, &*target, "there", &mut progress).await;
            assert!(filled.is_err_and(|error| error.contains("is not empty")));
        };
        crate::store::wait_for(work).unwrap();
    }
}
