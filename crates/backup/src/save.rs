//! Makes a backup from one snapshot, while the engine goes on working.
//!
//! Promises: the file shows the whole store as of one moment; memory is bounded by a block, the list of tables, and the
//! list of contents that several rows of a container name;
//! reads stay below the requested rate, so that the disk has time for others.
//! Leaves to others: the layout of blocks (`content.rs`, `block.rs`), and where the file goes.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use blobs::{BlobExporter, ContentPiece, ExportedContent};
use bytes::Bytes;
use catalogue::Setting;
use contents::ContentStore;
use engine::env::Clock;
use engine::{
    Budget, Engine, Family, Flow, Key, KeyRange, Namespace, OwnedKey, ReadError, Sink, Snapshot, TableId,
    TableRecord, Version,
};
use queues::StoredMessage;

use crate::BackupError;
use crate::blob_content::{ContainerHead, write_piece};
use crate::block::{self, BlockWriter};
use crate::content::{self, BackupHead, StoredRow, TableHead, Totals};
use crate::load::is_restoring;
use crate::queue_content::{QueueHead, push_message};

/// A block collects rows until it has about this size: large enough to compress, small enough to check.
const BLOCK_SIZE_BYTES_TARGET: usize = 256 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct SaveOptions {
    /// Uncompressed bytes per second; 0 for no limit.
    pub rate_bytes_max: u64,
}

/// The counts and sizes of a finished backup.
#[derive(Clone, Copy, Default, Debug)]
pub struct Saved {
    pub counts: Totals,
    pub raw_bytes: u64,
    pub file_bytes: u64,
}

/// Writes a backup of `engine` as it is now. Without a store of contents, a container is an error.
pub async fn save(
    engine: &dyn Engine,
    contents: Option<&Arc<dyn ContentStore>>,
    clock: &dyn Clock,
    options: SaveOptions,
    out: &mut (dyn Write + Send),
) -> Result<Saved, BackupError> {
    // Before the snapshot, so that everything that it names can be read until the end.
    let mut exporter = contents.map(|contents| BlobExporter::new(contents.clone(), contents.pin()));
    let snapshot = engine.snapshot().await.map_err(engine_error)?;
    let mut file = BackupFile { out, blocks: BlockWriter::default(), saved: Saved::default() };
    file.first_line()?;
    let head = BackupHead {
        created: clock.now_ticks(),
        last_version: snapshot.last_version().map_or(0, Version::ticks),
        row_count: snapshot.row_count().map_err(engine_error)?,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    file.block(content::HEAD, &head.write())?;

    let stored = read_settings(&*snapshot).await?;
    let mut pace = ReadPace { options, clock, started: clock.monotonic() };
    for (account, properties) in &stored.table_properties {
        file.block(content::PROPERTIES, &content::write_properties(account, properties))?;
        file.saved.counts.properties_count += 1;
    }
    let (mut queues, mut containers) = (Vec::new(), Vec::new());
    for (key, value) in all_rows(&*snapshot, TableId::CATALOGUE).await? {
        if is_restoring(key.as_key()) {
            continue;
        }
        let record = TableRecord::read(&value).ok_or_else(|| damaged_entry(&key))?;
        match record.id.family() {
            tables::FAMILY => {
                let name = std::str::from_utf8(record.payload).map_err(|_| damaged_entry(&key))?.to_owned();
                let policies = stored.policies.get(&record.id).cloned();
                let table = TableHead { account: key.partition.into(), name, policies };
                file.table(&*snapshot, record.id, &table, &mut pace).await?;
            }
            queues::FAMILY => queues.push((key, value)),
            blobs::FAMILY => containers.push((key, value)),
            // Measurements of this server, which another one has no use for.
            tables::SYSTEM_FAMILY => {}
            // Rather no backup than one that leaves out what nobody will miss until it is restored.
            Family(family) => {
                let what =
                    format!("a backup cannot hold tables of family {family}, and there is one: {}", key.row);
                return Err(BackupError::Engine(what));
            }
        }
    }
    for (account, properties) in &stored.queue_properties {
        file.block(content::QUEUE_PROPERTIES, &content::write_properties(account, properties))?;
        file.saved.counts.properties_count += 1;
    }
    for (key, value) in queues {
        let read = catalogue::record::read_value(queues::FAMILY, &value);
        let (ids, payload) = read.ok_or_else(|| damaged_entry(&key))?;
        let metadata = queues::read_payload(payload).ok_or_else(|| damaged_entry(&key))?;
        let queue = QueueHead {
            account: account_of(&key.partition, queues::FAMILY)
                .ok_or_else(|| damaged_entry(&key))?
                .to_owned(),
            name: key.row.into(),
            policies: stored.policies.get(&ids.identity).cloned(),
            metadata: metadata.items().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        };
        file.queue(&*snapshot, ids.id, &queue, &mut pace).await?;
    }
    for (account, properties) in &stored.blob_properties {
        file.block(content::BLOB_PROPERTIES, &content::write_properties(account, properties))?;
        file.saved.counts.properties_count += 1;
    }
    for (key, value) in containers {
        let read = catalogue::record::read_value(blobs::FAMILY, &value);
        let (ids, record) = read.ok_or_else(|| damaged_entry(&key))?;
        let account = account_of(&key.partition, blobs::FAMILY).ok_or_else(|| damaged_entry(&key))?;
        let container = ContainerHead {
            account: account.to_owned(),
            name: key.row.into(),
            policies: stored.policies.get(&ids.identity).cloned(),
            record: record.to_vec(),
        };
        let without = || BackupError::Engine("the contents of blobs are not at hand".to_owned());
        let exporter = exporter.as_mut().ok_or_else(without)?;
        file.container(&*snapshot, ids.id, &container, exporter, &mut pace).await?;
    }
    let counts = file.saved.counts;
    file.block(content::END, &counts.write())?;
    file.out.flush()?;
    Ok(file.saved)
}

/// What a store keeps beside its data.
#[derive(Default)]
struct StoredSettings {
    /// By the identity of their container.
    policies: HashMap<TableId, Vec<u8>>,
    /// By account, in order.
    table_properties: Vec<(String, Vec<u8>)>,
    queue_properties: Vec<(String, Vec<u8>)>,
    blob_properties: Vec<(String, Vec<u8>)>,
}

async fn read_settings(snapshot: &dyn Snapshot) -> Result<StoredSettings, BackupError> {
    let mut stored = StoredSettings::default();
    for (key, value) in all_rows(snapshot, TableId::SETTINGS).await? {
        let unknown = || BackupError::Engine(format!("a setting is unknown: {key:?}"));
        match Setting::read(key.as_key()).ok_or_else(unknown)? {
            Setting::Policies(id) => {
                stored.policies.insert(id, value);
            }
            Setting::ServiceProperties(namespace) => {
                if let Some(account) = account_of(&namespace, tables::FAMILY) {
                    stored.table_properties.push((account.to_owned(), value));
                } else if let Some(account) = account_of(&namespace, queues::FAMILY) {
                    stored.queue_properties.push((account.to_owned(), value));
                } else if let Some(account) = account_of(&namespace, blobs::FAMILY) {
                    stored.blob_properties.push((account.to_owned(), value));
                } else {
                    return Err(unknown());
                }
            }
            // About the servers of this store. Keys are not part of a backup, sealed or not.
            Setting::Account(_)
            | Setting::AccountsChange
            | Setting::Unfinished
            | Setting::MetricsWriter(_)
            | Setting::Contents => {}
        }
    }
    Ok(stored)
}

/// The account whose namespace in this family it is.
fn account_of(namespace: &str, family: Family) -> Option<&str> {
    let account = namespace.split('/').next()?;
    (Namespace::new(family, account).partition() == namespace).then_some(account)
}

fn damaged_entry(key: &OwnedKey) -> BackupError {
    BackupError::Engine(format!("the catalogue's entry for {} is damaged", key.row))
}

/// Keeps reads below the requested rate.
struct ReadPace<'a> {
    options: SaveOptions,
    clock: &'a dyn Clock,
    started: Duration,
}

impl ReadPace<'_> {
    /// Sleeps until the bytes read so far are within the rate.
    async fn keep(&mut self, raw_bytes: u64) {
        if self.options.rate_bytes_max == 0 {
            return;
        }
        let due = Duration::from_secs_f64(raw_bytes as f64 / self.options.rate_bytes_max as f64);
        let elapsed = self.clock.monotonic().saturating_sub(self.started);
        if let Some(early) = due.checked_sub(elapsed) {
            tokio::time::sleep(early).await;
        }
    }
}

struct BackupFile<'a> {
    out: &'a mut (dyn Write + Send),
    blocks: BlockWriter,
    saved: Saved,
}

impl BackupFile<'_> {
    fn first_line(&mut self) -> Result<(), BackupError> {
        let line = block::first_line();
        self.out.write_all(line.as_bytes())?;
        self.saved.file_bytes += line.len() as u64;
        Ok(())
    }

    async fn table(
        &mut self,
        snapshot: &dyn Snapshot,
        id: TableId,
        table: &TableHead,
        pace: &mut ReadPace<'_>,
    ) -> Result<(), BackupError> {
        self.block(content::TABLE, &table.write())?;
        self.saved.counts.table_count += 1;
        let mut resume = Some(KeyRange::all());
        while let Some(range) = resume.take() {
            let mut rows = RowBlock::default();
            let rest =
                snapshot.scan(id, &[range], Budget::UNBOUNDED, &mut rows).await.map_err(engine_error)?;
            if rows.count > 0 {
                self.block(content::ROWS, &rows.bytes)?;
                self.saved.counts.row_count += rows.count;
            }
            resume = rest.map(|key| KeyRange::from_key(&key.partition, &key.row));
            pace.keep(self.saved.raw_bytes).await;
        }
        Ok(())
    }

    async fn queue(
        &mut self,
        snapshot: &dyn Snapshot,
        id: TableId,
        queue: &QueueHead,
        pace: &mut ReadPace<'_>,
    ) -> Result<(), BackupError> {
        self.block(content::QUEUE, &queue.write())?;
        self.saved.counts.queue_count += 1;
        let mut resume = Some(StoredMessage::range());
        while let Some(range) = resume.take() {
            let mut messages = MessageBlock::default();
            let rest =
                snapshot.scan(id, &[range], Budget::UNBOUNDED, &mut messages).await.map_err(engine_error)?;
            if messages.is_damaged {
                let QueueHead { account, name, .. } = queue;
                let what = format!("a message of the queue {account}/{name} does not decode");
                return Err(BackupError::Engine(what));
            }
            if messages.count > 0 {
                self.block(content::MESSAGES, &messages.bytes)?;
                self.saved.counts.message_count += messages.count;
            }
            let next = rest.map(|key| KeyRange::from_key(&key.partition, &key.row));
            resume = next.and_then(|next| next.intersect(&StoredMessage::range()));
            pace.keep(self.saved.raw_bytes).await;
        }
        Ok(())
    }

    async fn container(
        &mut self,
        snapshot: &dyn Snapshot,
        id: TableId,
        container: &ContainerHead,
        exporter: &mut BlobExporter,
        pace: &mut ReadPace<'_>,
    ) -> Result<(), BackupError> {
        let ContainerHead { account, name, .. } = container;
        self.block(content::CONTAINER, &container.write())?;
        self.saved.counts.container_count += 1;
        exporter.begin_container();
        let mut rows = RowBlock::default();
        let mut resume = Some(KeyRange::all());
        while let Some(range) = resume.take() {
            let mut found = FoundRows::default();
            let rest =
                snapshot.scan(id, &[range], Budget::UNBOUNDED, &mut found).await.map_err(engine_error)?;
            for (key, version, value) in found.rows {
                let failed = |cause: String| {
                    let OwnedKey { partition, row } = &key;
                    let place = format!("the row {row} of blob {partition:?} in {account}/{name}");
                    BackupError::Engine(format!("{place}: {cause}"))
                };
                let exported = exporter.export(&key.partition, &key.row, &value).await.map_err(failed)?;
                let Some(exported) = exported else { continue };
                for content in &exported.contents {
                    self.content(exporter, content, pace).await.map_err(failed)?;
                }
                let (partition, row) = (&*key.partition, &*key.row);
                rows.push(StoredRow { version, partition, row, record: &exported.value });
                self.saved.counts.blob_count += u64::from(row == blobs::BLOB_ROW);
                if rows.bytes.len() >= BLOCK_SIZE_BYTES_TARGET {
                    self.blob_rows(std::mem::take(&mut rows))?;
                }
            }
            resume = rest.map(|key| KeyRange::from_key(&key.partition, &key.row));
            pace.keep(self.saved.raw_bytes).await;
        }
        self.blob_rows(rows)
    }

    fn blob_rows(&mut self, rows: RowBlock) -> Result<(), BackupError> {
        if rows.count == 0 {
            return Ok(());
        }
        self.saved.counts.blob_row_count += rows.count;
        self.block(content::BLOB_ROWS, &rows.bytes)
    }

    /// A content, piece by piece.
    async fn content(
        &mut self,
        exporter: &BlobExporter,
        content: &ExportedContent,
        pace: &mut ReadPace<'_>,
    ) -> Result<(), String> {
        let ExportedContent { number, is_shared, .. } = *content;
        let mut stream = exporter.open(content);
        let mut current = stream.next().await.transpose().map_err(|error| error.to_string())?;
        while let Some(bytes) = current {
            current = stream.next().await.transpose().map_err(|error| error.to_string())?;
            let piece = ContentPiece { number, is_last: current.is_none(), is_shared, bytes: &bytes };
            self.block(content::PIECE, &write_piece(piece)).map_err(|error| error.to_string())?;
            self.saved.counts.content_bytes += bytes.len() as u64;
            pace.keep(self.saved.raw_bytes).await;
        }
        self.saved.counts.content_count += 1;
        Ok(())
    }

    fn block(&mut self, kind: u8, raw: &[u8]) -> Result<(), BackupError> {
        if raw.len() > block::BLOCK_SIZE_BYTES_MAX {
            return Err(BackupError::Engine("a stored value is larger than a backup can hold".to_owned()));
        }
        let bytes = self.blocks.block(kind, raw);
        self.out.write_all(&bytes)?;
        self.saved.raw_bytes += raw.len() as u64;
        self.saved.file_bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Collects a block's worth of rows, already in their stored form.
#[derive(Default)]
struct RowBlock {
    bytes: Vec<u8>,
    count: u64,
}

impl RowBlock {
    fn push(&mut self, row: StoredRow<'_>) {
        content::push_row(&mut self.bytes, row);
        self.count += 1;
    }
}

impl Sink for RowBlock {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.bytes.len() >= BLOCK_SIZE_BYTES_TARGET {
            return Flow::Stop;
        }
        self.push(StoredRow { version, partition: key.partition, row: key.row, record: value });
        Flow::Continue
    }
}

/// Rows that have to be worked on before they are written.
#[derive(Default)]
struct FoundRows {
    rows: Vec<(OwnedKey, Version, Bytes)>,
    size_bytes: usize,
}

impl Sink for FoundRows {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.size_bytes >= BLOCK_SIZE_BYTES_TARGET {
            return Flow::Stop;
        }
        self.size_bytes += key.partition.len() + key.row.len() + value.len();
        self.rows.push((key.into(), version, Bytes::copy_from_slice(value)));
        Flow::Continue
    }
}

/// Collects a block's worth of messages.
#[derive(Default)]
struct MessageBlock {
    bytes: Vec<u8>,
    count: u64,
    is_damaged: bool,
}

impl Sink for MessageBlock {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.bytes.len() >= BLOCK_SIZE_BYTES_TARGET {
            return Flow::Stop;
        }
        let Some(message) = StoredMessage::read(key.row, value) else {
            self.is_damaged = true;
            return Flow::Stop;
        };
        push_message(&mut self.bytes, version, &message);
        self.count += 1;
        Flow::Continue
    }
}

/// All rows of one of the engine's own tables, which are small.
async fn all_rows(snapshot: &dyn Snapshot, table: TableId) -> Result<Vec<(OwnedKey, Vec<u8>)>, BackupError> {
    struct All(Vec<(OwnedKey, Vec<u8>)>);
    impl Sink for All {
        fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
            self.0.push((key.into(), value.to_vec()));
            Flow::Continue
        }
    }
    let mut all = All(Vec::new());
    snapshot.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, &mut all).await.map_err(engine_error)?;
    Ok(all.0)
}

fn engine_error(error: ReadError) -> BackupError {
    BackupError::Engine(error.to_string())
}
