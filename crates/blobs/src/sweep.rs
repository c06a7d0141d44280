//! Sweeps: rows that nobody can see any more, then contents that no row names.
//!
//! A sweep can never forget a content that has a row, nor one that is about to have one. It begins to enumerate contents, which
//! leaves out those that are pending, and then takes its view of the rows. A content without a row in that view can get one
//! only through another row that has it, and there is none. A row that does not decode ends the sweep, because nobody knows what it
//! names.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalogue::from_read;
use contents::{ContentId, ContentRef, Pin, Sweep};
use engine::env::ticks;
use engine::{
    Budget, COMMIT_OP_COUNT_MAX, Commit, CommitError, Expect, Flow, Key, KeyRange, Op, OwnedKey, Sink,
    Snapshot, TableId, TableRecord, Version,
};
use protocol::ServiceError;
use protocol::common::{AccountName, DateTime};

use crate::base::{delete_op, put_op};
use crate::container_deletion::{Overdue, overdue};
use crate::epochs::{Epochs, read_segment_row};
use crate::family::FAMILY;
use crate::named::{NamedContent, NamedVisitor, all_containers};
use crate::page_rows::page_epochs;
use crate::record::{BASE_ROW, BlobRecord, StagedBlock, read_block_row, read_moment_row};
use crate::service::{BlobCore, BlobService, damaged_row, from_commit, from_content};

/// Contents that are compared with all rows at a time: 64 MiB of memory at most.
const CANDIDATE_COUNT_MAX: usize = 1 << 20;
/// Rows that are found before they are removed.
const GARBAGE_COUNT_MAX: usize = 1_000;
/// So long after the last of them was staged, blocks that were never committed are gone.
const STAGED_TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// No sweep removes blocks of a generation that is younger than this, also if two servers' clocks differ.
pub(crate) const STAGED_TIME_SAFE: Duration = Duration::from_secs(6 * 24 * 3600);
/// Segments that no blob sees may belong to a copy that is not complete yet, for so long.
pub(crate) const COPY_TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// What a sweep has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SweepReport {
    pub removed_row_count: u64,
    pub forgotten_content_count: u64,
    pub forgotten_bytes: u64,
}

impl BlobService {
    /// Removes what is expired, and gives back what nobody uses. It takes as long as reading all rows, and nobody waits for
    /// it. A second sweep finds what the rows that this one removed had named.
    pub async fn sweep(&self) -> Result<SweepReport, ServiceError> {
        let mut report = SweepReport::default();
        self.inner.streams.end_slow(self.inner.clock.monotonic());
        self.inner.drop_expired_containers().await?;
        for table in self.inner.catalogue.all_ids().await? {
            report.removed_row_count += self.inner.sweep_rows(table).await?;
        }
        self.inner.sweep_contents(&mut report).await?;
        Ok(report)
    }
}

impl BlobCore {
    async fn sweep_contents(&self, report: &mut SweepReport) -> Result<(), ServiceError> {
        self.release_unresolved();
        let mut unnamed = self.unnamed_contents().await?;
        if unnamed.snapshot.may_have_older() {
            // A backup or a check reads what rows of before have named. A later sweep finds all of it.
            log::info!("contents are not swept while another process holds a view of the store");
            return Ok(());
        }
        while let Some(found) = unnamed.next(self).await? {
            for some in found.chunks(1_000) {
                let left = unnamed.sweep.forget(some).await.map_err(from_content)?;
                report.forgotten_content_count += (some.len() - left) as u64;
                report.forgotten_bytes += some.iter().map(ContentRef::length).sum::<u64>();
            }
        }
        Ok(())
    }

    /// Begins to look for contents that no row names.
    pub(crate) async fn unnamed_contents(&self) -> Result<UnnamedContents, ServiceError> {
        // In this order: a content that is enumerated and gets a row later has one in the snapshot.
        let sweep = self.contents.sweep().await.map_err(from_content)?;
        let pin = self.contents.pin();
        let snapshot = self.engine.snapshot().await.map_err(from_read)?;
        let tables = all_containers(&*snapshot).await.map_err(from_read)?;
        Ok(UnnamedContents { sweep, pin, snapshot, tables, is_over: false })
    }

    /// Drops the containers that cannot be restored any more, and finishes deletions.
    async fn drop_expired_containers(&self) -> Result<(), ServiceError> {
        let mut sink = ExpiredSink { now: self.now().await?, names: Vec::new() };
        let all = [KeyRange::all()];
        self.engine.scan(TableId::CATALOGUE, &all, Budget::UNBOUNDED, &mut sink).await.map_err(from_read)?;
        for (account, name, overdue) in sink.names {
            match overdue {
                Overdue::Finish => drop(self.finish_deletion(&account, &name).await?),
                Overdue::Drop => drop(self.catalogue.delete(&account, &name).await?),
            }
        }
        Ok(())
    }

    /// Removes the rows of a container that nobody can see. Returns how many.
    async fn sweep_rows(&self, table: TableId) -> Result<u64, ServiceError> {
        let now = self.now().await?;
        let mut removed = 0;
        let mut range = KeyRange::all();
        loop {
            let mut sink = GarbageSink::new(now);
            let next =
                self.engine.scan(table, &[range], Budget::UNBOUNDED, &mut sink).await.map_err(from_read)?;
            if sink.is_damaged {
                return Err(damaged_row());
            }
            sink.end_blob();
            let mut removed_now = 0;
            for (blob, ops) in std::mem::take(&mut sink.garbage) {
                for some in ops.chunks(COMMIT_OP_COUNT_MAX) {
                    let commit = Commit { table, partition: blob.clone(), ops: some.to_vec() };
                    match self.engine.commit(commit).await {
                        Ok(_) => removed_now += some.len() as u64,
                        // Somebody changed the blob meanwhile, and may need the rest of it: the next sweep looks again. Rows of
                        // records come before the rows that they see.
                        Err(CommitError::Precondition { .. }) => break,
                        Err(CommitError::TableGone) => return Ok(removed),
                        Err(error) => return Err(from_commit(error)),
                    }
                }
            }
            removed += removed_now;
            let Some(OwnedKey { partition, .. }) = next else { return Ok(removed) };
            // The rest of a blob can be judged only from its first row on. Without progress, it is left to the next sweep.
            range = match removed_now {
                0 => KeyRange::partitions(std::ops::Bound::Excluded(&partition), std::ops::Bound::Unbounded),
                _ => KeyRange::from_key(&partition, ""),
            };
        }
    }
}

/// Contents that no row of a snapshot names.
pub(crate) struct UnnamedContents {
    sweep: Box<dyn Sweep>,
    pub(crate) pin: Pin,
    pub(crate) snapshot: Arc<dyn Snapshot>,
    /// With account and name.
    pub(crate) tables: Vec<(TableId, String)>,
    is_over: bool,
}

impl UnnamedContents {
    /// Some more of them; `None` at the end. Each call reads all rows.
    pub(crate) async fn next(&mut self, inner: &BlobCore) -> Result<Option<Vec<ContentRef>>, ServiceError> {
        if self.is_over {
            return Ok(None);
        }
        let mut candidates = Candidates::default();
        let mut incomplete = Vec::new();
        while candidates.unnamed.len() < CANDIDATE_COUNT_MAX {
            let stored = self.sweep.next().await.map_err(from_content)?;
            self.is_over = stored.is_empty();
            if self.is_over {
                break;
            }
            for found in stored {
                if found.is_complete {
                    candidates.unnamed.insert(found.content.id(), found.content);
                } else {
                    incomplete.push(found.content);
                }
            }
        }
        for (table, _) in &self.tables {
            inner.visit_named(&*self.snapshot, *table, &self.pin, &mut candidates).await?;
            if candidates.is_damaged {
                return Err(damaged_row());
            }
        }
        Ok(Some(candidates.unnamed.into_values().chain(incomplete).collect()))
    }
}

struct ExpiredSink {
    now: DateTime,
    names: Vec<(AccountName, String, Overdue)>,
}

impl Sink for ExpiredSink {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        let is_blobs = TableRecord::read(value).is_some_and(|record| record.id.family() == FAMILY);
        let found = is_blobs.then(|| catalogue::record::read_value(FAMILY, value)).flatten();
        if let Some(overdue) = found.and_then(|(_, payload)| overdue(key.row, payload, self.now)) {
            let account = key.partition.split('/').next().and_then(AccountName::parse);
            self.names.extend(account.map(|account| (account, key.row.to_owned(), overdue)));
        }
        Flow::Continue
    }
}

/// Contents of which no row was found yet.
#[derive(Default)]
struct Candidates {
    unnamed: HashMap<ContentId, ContentRef>,
    is_damaged: bool,
}

impl NamedVisitor for Candidates {
    fn visit(&mut self, named: NamedContent<'_>) {
        self.unnamed.remove(&named.content.id());
    }

    fn damaged(&mut self, _: &str, _: &str) {
        self.is_damaged = true;
    }
}

/// Finds the rows that nobody can see.
struct GarbageSink {
    now: DateTime,
    garbage: Vec<(Box<str>, Vec<Op>)>,
    garbage_count: usize,
    is_damaged: bool,
    blob: BlobRows,
}

/// What is known of the blob whose rows are being seen.
#[derive(Default)]
struct BlobRows {
    name: Box<str>,
    ops: Vec<Op>,
    base: Option<(BlobRecord, Version)>,
    /// Who sees segments.
    epochs: Vec<Epochs>,
    last_staged: u64,
    /// The rows of one segment, in the order of lines and epochs.
    segment: u64,
    segment_rows: Vec<(Epochs, Box<str>, Version)>,
}

impl GarbageSink {
    fn new(now: DateTime) -> GarbageSink {
        let blob = BlobRows::default();
        GarbageSink { now, garbage: Vec::new(), garbage_count: 0, is_damaged: false, blob }
    }

    fn end_blob(&mut self) {
        self.blob.end_segment(self.now);
        self.blob.end_staging(self.now);
        let blob = std::mem::take(&mut self.blob);
        if !blob.ops.is_empty() {
            self.garbage.push((blob.name, blob.ops));
        }
    }
}

impl BlobRows {
    fn see(&mut self, row: &str, version: Version, value: &[u8], now: DateTime) -> Option<()> {
        let expect = Expect::Exactly(version);
        let is_base = row == BASE_ROW;
        if is_base || read_moment_row(row).is_some() {
            let record = BlobRecord::decode_borrowed(value)?;
            let is_expired = record.deleted.is_some_and(|deleted| deleted.until <= now.ticks());
            if is_expired && record.staging.is_none() {
                self.ops.push(delete_op(row, expect));
                return Some(());
            }
            self.epochs.extend(page_epochs(&record));
            if is_base {
                self.base = Some((record, version));
            }
            return Some(());
        }
        if row.starts_with('U') {
            let (generation, _) = read_block_row(row)?;
            let staging = self.base.as_ref().and_then(|(record, _)| record.staging);
            if staging.is_some_and(|staging| staging.generation == generation) {
                self.last_staged = self.last_staged.max(StagedBlock::decode(value)?.at);
            } else {
                self.ops.push(delete_op(row, expect));
            }
            return Some(());
        }
        let (segment, epochs) = read_segment_row(row)?;
        if segment != self.segment {
            self.end_segment(now);
            self.segment = segment;
        }
        self.segment_rows.push((epochs, row.into(), version));
        Some(())
    }

    /// Of a segment's rows, those that nobody sees are garbage.
    fn end_segment(&mut self, now: DateTime) {
        let rows = std::mem::take(&mut self.segment_rows);
        let newer = rows.iter().skip(1).map(|(epochs, ..)| Some(*epochs)).chain([None]).collect::<Vec<_>>();
        for ((epochs, row, version), newer) in rows.into_iter().zip(newer) {
            let sees = |by: &Epochs| by.reaches(epochs) && !newer.is_some_and(|newer| by.reaches(newer));
            let is_young = epochs.line.begun.saturating_add(ticks(COPY_TIME_MAX)) > now.ticks();
            if !is_young && !self.epochs.iter().any(sees) {
                self.ops.push(delete_op(row, Expect::Exactly(version)));
            }
        }
    }

    /// Staged blocks that nobody committed for a week are dropped.
    fn end_staging(&mut self, now: DateTime) {
        let Some((record, version)) = self.base.take() else { return };
        let Some(staging) = record.staging else { return };
        let last = self.last_staged.max(staging.generation);
        if last.saturating_add(ticks(STAGED_TIME_MAX)) > now.ticks() {
            return;
        }
        let expect = Expect::Exactly(version);
        self.ops.push(match record.committed {
            None => delete_op(BASE_ROW, expect),
            Some(_) => put_op(BASE_ROW, expect, BlobRecord { staging: None, ..record }.encode()),
        });
    }
}

impl Sink for GarbageSink {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if *self.blob.name != *key.partition {
            self.end_blob();
            self.blob.name = key.partition.into();
        }
        self.garbage_count =
            self.garbage.iter().map(|(_, ops)| ops.len()).sum::<usize>() + self.blob.ops.len();
        if self.garbage_count >= GARBAGE_COUNT_MAX {
            return Flow::Stop;
        }
        if self.blob.see(key.row, version, value, self.now).is_none() {
            self.is_damaged = true;
            return Flow::Stop;
        }
        Flow::Continue
    }
}
