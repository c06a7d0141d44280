//! Makes a backup from one snapshot, while the engine goes on working.
//!
//! Promises: the file shows the whole store as of one moment; memory is bounded by a block and the list of tables;
//! reads stay below the requested rate, so that the disk has time for others.
//! Leaves to others: the layout of blocks (`content.rs`, `block.rs`), and where the file goes.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use catalogue::Setting;
use engine::env::Clock;
use engine::{
    Budget, Engine, Flow, Key, KeyRange, OwnedKey, ReadError, Sink, Snapshot, TableId, TableRecord, Version,
};

use crate::BackupError;
use crate::block::{self, BlockWriter};
use crate::content::{self, BackupHead, StoredRow, TableHead, Totals};
use crate::load::RESTORING;

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

/// Writes a backup of `engine` as it is now.
pub async fn save(
    engine: &dyn Engine,
    clock: &dyn Clock,
    options: SaveOptions,
    out: &mut (dyn Write + Send),
) -> Result<Saved, BackupError> {
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

    let mut policies = HashMap::new();
    for (key, value) in all_rows(&*snapshot, TableId::SETTINGS).await? {
        match Setting::read(key.as_key()) {
            Some(Setting::Policies(id)) => {
                policies.insert(id, value);
            }
            Some(Setting::ServiceProperties(account)) => {
                file.block(content::PROPERTIES, &content::write_properties(&account, &value))?;
                file.saved.counts.properties_count += 1;
            }
            None => return Err(BackupError::Engine(format!("a setting is unknown: {key:?}"))),
        }
    }

    let started = clock.monotonic();
    for (key, value) in all_rows(&*snapshot, TableId::CATALOGUE).await? {
        if *key.partition == *RESTORING.partition() {
            continue;
        }
        let damaged = || BackupError::Engine(format!("the catalogue's entry for {} is damaged", key.row));
        let record = TableRecord::read(&value).ok_or_else(damaged)?;
        if record.id.family() != tables::FAMILY {
            // Rather no backup than one that leaves out what nobody will miss until it is restored.
            let family = record.id.family().0;
            let what =
                format!("a backup cannot hold tables of family {family}, and there is one: {}", key.row);
            return Err(BackupError::Engine(what));
        }
        let name = std::str::from_utf8(record.payload).map_err(|_| damaged())?.to_owned();
        let table =
            TableHead { account: key.partition.clone().into(), name, policies: policies.remove(&record.id) };
        file.block(content::TABLE, &table.write())?;
        file.saved.counts.table_count += 1;
        let mut resume = Some(KeyRange::all());
        while let Some(range) = resume.take() {
            let mut rows = RowBlock::default();
            let rest = snapshot
                .scan(record.id, &[range], Budget::UNBOUNDED, &mut rows)
                .await
                .map_err(engine_error)?;
            if rows.count > 0 {
                file.block(content::ROWS, &rows.bytes)?;
                file.saved.counts.row_count += rows.count;
            }
            resume = rest.map(|key| KeyRange::from_key(&key.partition, &key.row));
            keep_rate(options, file.saved.raw_bytes, clock.monotonic().saturating_sub(started)).await;
        }
    }
    let counts = file.saved.counts;
    file.block(content::END, &counts.write())?;
    file.out.flush()?;
    Ok(file.saved)
}

/// Sleeps until the bytes read so far are within the rate.
async fn keep_rate(options: SaveOptions, raw_bytes: u64, elapsed: Duration) {
    if options.rate_bytes_max == 0 {
        return;
    }
    let due = Duration::from_secs_f64(raw_bytes as f64 / options.rate_bytes_max as f64);
    if let Some(early) = due.checked_sub(elapsed) {
        tokio::time::sleep(early).await;
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

impl Sink for RowBlock {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.bytes.len() >= BLOCK_SIZE_BYTES_TARGET {
            return Flow::Stop;
        }
        let row = StoredRow { version, partition: key.partition, row: key.row, record: value };
        content::push_row(&mut self.bytes, row);
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
