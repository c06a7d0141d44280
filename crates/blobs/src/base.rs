//! Read a blob's row, decide, commit, try again: what every change of a blob has in common.
//!
//! Promises: checks come in the service's order, which is existence, lease, conditions, type. A change that lost a race is
//! decided anew from what the winner left. What a change replaces is kept as a version or a soft deletion if the account wants
//! so; otherwise its contents are forgotten, unless other rows may name them.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use catalogue::from_read;
use contents::{ContentId, ContentRef};
use engine::{
    COMMIT_OP_COUNT_MAX, Commit, CommitError, Effect, Expect, Flow, Key, KeyRange, Op, Share, Sink, TableId,
    Version,
};
use protocol::blob::conditions::ConditionPurpose;
use protocol::blob::lease::{Leasable, Lease, LeaseUse, no_lease_to_use};
use protocol::blob::properties::BlobType;
use protocol::blob::{BlobName, ContainerName};
use protocol::common::{AccountName, DateTime};
use protocol::{ErrorCode, ServiceError};
use tokio::sync::MutexGuard;

use crate::api::{BlobPlace, Preconditions};
use crate::record::{
    BASE_ROW, BlobContent, BlobRecord, CommittedBlob, RecordKind, SoftDeletion, StagedBlock, block_row,
    generation_row, moment_row, read_block_row,
};
use crate::service::{ATTEMPT_COUNT_MAX, BlobCore, damaged_row, from_commit, scan_budget};

const TICKS_PER_DAY: u64 = 864_000_000_000;

/// A blob in its container, owned so that a task can finish what a request began.
#[derive(Clone)]
pub(crate) struct BlobTarget {
    pub(crate) account: AccountName,
    pub(crate) container: ContainerName,
    pub(crate) blob: BlobName,
    pub(crate) table: TableId,
}

impl BlobTarget {
    pub(crate) fn name(&self) -> &str {
        self.blob.as_str()
    }

    pub(crate) fn commit(&self, ops: Vec<Op>) -> Commit {
        Commit { table: self.table, partition: self.name().into(), ops }
    }
}

/// The blob's row as it was found.
pub(crate) struct FoundBase {
    pub(crate) record: Option<BlobRecord>,
    /// That the row is still the same.
    pub(crate) expect: Expect,
}

impl FoundBase {
    pub(crate) fn live(&self) -> Option<&CommittedBlob> {
        self.record.as_ref().and_then(BlobRecord::live)
    }

    /// The blob that a change needs.
    pub(crate) fn required(&self) -> Result<(&BlobRecord, &CommittedBlob), ServiceError> {
        let record = self.record.as_ref().ok_or(ErrorCode::BlobNotFound)?;
        Ok((record, record.live().ok_or(ErrorCode::BlobNotFound)?))
    }
}

pub(crate) fn put_op(row: impl Into<Box<str>>, expect: Expect, value: Bytes) -> Op {
    Op { row: row.into(), expect, effect: Effect::Put(value) }
}

pub(crate) fn delete_op(row: impl Into<Box<str>>, expect: Expect) -> Op {
    Op { row: row.into(), expect, effect: Effect::Delete }
}

/// Puts the blob's row, if it is still as it was found.
pub(crate) fn put_base(found: &FoundBase, record: &BlobRecord) -> Op {
    put_op(BASE_ROW, found.expect, record.encode())
}

/// Counts the tries of one change. From the second on, they wait for their turn.
#[derive(Default)]
pub(crate) struct Tries(usize);

impl Tries {
    pub(crate) async fn begin<'i>(
        &mut self,
        inner: &'i BlobCore,
        target: &BlobTarget,
    ) -> Result<Option<MutexGuard<'i, ()>>, ServiceError> {
        self.0 += 1;
        match self.0 {
            1 => Ok(None),
            count if count <= ATTEMPT_COUNT_MAX => Ok(Some(inner.turn(target.table, target.name()).await)),
            _ => Err(ErrorCode::ServerBusy.into()),
        }
    }
}

/// What happens to what is replaced or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keeping {
    Nothing,
    /// For so many days.
    Deleted(u16),
    Versions,
}

/// What is left of a record that is replaced or deleted.
pub(crate) struct Retired {
    /// Keeps it under another row.
    pub(crate) op: Option<Op>,
    /// Its contents can be forgotten when this is committed.
    pub(crate) gone: Option<CommittedBlob>,
}

/// Retires what is replaced or deleted. `moment` is a new one.
pub(crate) fn retire(record: &BlobRecord, keeping: Keeping, moment: DateTime) -> Retired {
    let Some(committed) = &record.committed else { return Retired { op: None, gone: None } };
    let mut kept = BlobRecord { committed: Some(committed.clone()), ..BlobRecord::default() };
    let row = match (record.deleted, keeping) {
        // It was deleted before: it stays as long as it would have stayed.
        (Some(deleted), _) if deleted.until > moment.ticks() => {
            kept.kind = RecordKind::Snapshot;
            kept.deleted = Some(deleted);
            moment_row(moment.ticks())
        }
        (None, Keeping::Versions) => {
            kept.kind = RecordKind::Version;
            moment_row(committed.version.unwrap_or(committed.modified))
        }
        (None, Keeping::Deleted(days)) => {
            kept.kind = RecordKind::Snapshot;
            kept.deleted = Some(deletion(moment, days));
            moment_row(moment.ticks())
        }
        _ => return Retired { op: None, gone: Some(committed.clone()) },
    };
    Retired { op: Some(put_op(row, Expect::Any, kept.encode())), gone: None }
}

pub(crate) fn deletion(now: DateTime, days: u16) -> SoftDeletion {
    let until = now.ticks().saturating_add(u64::from(days) * TICKS_PER_DAY);
    SoftDeletion { at: now.ticks(), until }
}

/// Checks a write that creates a blob or replaces one. Returns the lease that the blob has afterwards.
pub(crate) fn check_create(
    found: &FoundBase,
    pre: &Preconditions,
    blob_type: BlobType,
    now: DateTime,
) -> Result<Lease, ServiceError> {
    let Some((record, committed)) = found.required().ok() else {
        if pre.lease.is_some() {
            return Err(no_lease_to_use());
        }
        pre.conditions.check(ConditionPurpose::Create { has_lease: false }, None)?;
        return Ok(Lease::Available);
    };
    if pre.create_only {
        return Err(ErrorCode::UnauthorizedBlobOverwrite.into());
    }
    let before = record.lease.at(now);
    let lease = before.check_use(LeaseUse::Write, pre.lease, Leasable::Blob)?;
    let has_lease = before.is_locked() && pre.lease.is_some();
    pre.conditions.check(ConditionPurpose::Create { has_lease }, Some(&committed.state()))?;
    if committed.blob_type != blob_type {
        return Err(ErrorCode::InvalidBlobType.into());
    }
    if committed.tier.is_archive() {
        return Err(ErrorCode::BlobArchived.into());
    }
    Ok(lease)
}

/// Checks a write of a blob that must be there. Returns the lease that it has afterwards.
pub(crate) fn check_change(
    found: &FoundBase,
    pre: &Preconditions,
    lease_use: LeaseUse,
    now: DateTime,
) -> Result<Lease, ServiceError> {
    let (record, committed) = found.required()?;
    let lease = record.lease.at(now).check_use(lease_use, pre.lease, Leasable::Blob)?;
    pre.conditions.check(ConditionPurpose::Change, Some(&committed.state()))?;
    Ok(lease)
}

/// The next ETag of a blob: greater than its last one.
pub(crate) fn next_etag(old: Option<&CommittedBlob>, moment: DateTime) -> u64 {
    old.map_or(moment.ticks(), |old| moment.ticks().max(old.modified + 1))
}

impl BlobCore {
    pub(crate) async fn target(&self, place: BlobPlace<'_>) -> Result<BlobTarget, ServiceError> {
        Ok(BlobTarget {
            table: self.find(place.account, place.container).await?,
            account: place.account.clone(),
            container: place.container.clone(),
            blob: place.blob.clone(),
        })
    }

    pub(crate) async fn read_base(&self, target: &BlobTarget) -> Result<FoundBase, ServiceError> {
        let (mut record, expect) = match self.read_record(target.table, target.name(), BASE_ROW).await? {
            Some((record, version)) => (Some(record), Expect::Exactly(version)),
            None => (None, Expect::Absent),
        };
        if self.catalogue.is_shared()
            && let Some(record) = &record
        {
            // The clock of the server that wrote it may be ahead of ours, and what follows must be later.
            let modified = record.committed.as_ref().map_or(0, |committed| committed.modified);
            self.see_moment(modified).await?;
        }
        if let Some(committed) = record.as_mut().and_then(|record| record.committed.as_mut())
            && committed.tier.rehydrating.is_some()
        {
            // A blob that has left the archive meanwhile is like any other, for every change.
            committed.tier = committed.tier.at(self.now().await?, self.rehydrates_after());
        }
        Ok(FoundBase { record, expect })
    }

    pub(crate) async fn read_record(
        &self,
        table: TableId,
        blob: &str,
        row: &str,
    ) -> Result<Option<(BlobRecord, Version)>, ServiceError> {
        let found = self.engine.row(table, Key::new(blob, row)).await.map_err(from_read)?;
        let Some(found) = found else { return Ok(None) };
        let record = BlobRecord::decode(&found.value).ok_or_else(damaged_row)?;
        Ok(Some((record, found.version)))
    }

    /// `false` when another change was faster: then decide anew.
    pub(crate) async fn try_commit(&self, target: &BlobTarget, ops: Vec<Op>) -> Result<bool, ServiceError> {
        self.try_commits(target, vec![target.commit(ops)]).await
    }

    pub(crate) async fn try_commits(
        &self,
        target: &BlobTarget,
        mut commits: Vec<Commit>,
    ) -> Result<bool, ServiceError> {
        let outcome = match commits.len() {
            1 => self.engine.commit(commits.remove(0)).await,
            _ => self.engine.commit_all(commits).await,
        };
        match outcome {
            Ok(_) => Ok(true),
            Err(CommitError::Precondition { .. }) => Ok(false),
            Err(error) => {
                if error == CommitError::TableGone {
                    self.catalogue.forget(&target.account, target.container.as_str());
                }
                Err(from_commit(error))
            }
        }
    }

    /// What becomes of replaced and deleted blobs of this account.
    pub(crate) async fn keeping(&self, account: &AccountName) -> Result<Keeping, ServiceError> {
        if self.options.keeps_versions {
            return Ok(Keeping::Versions);
        }
        let properties = self.catalogue.properties(account).await?;
        let days = properties.extension.and_then(|extension| extension.delete_retention.days);
        Ok(days.map_or(Keeping::Nothing, Keeping::Deleted))
    }

    /// Forgets the contents of a blob that no row names any more, except those that another one has taken over.
    pub(crate) async fn drop_content(&self, gone: &CommittedBlob, kept: &HashSet<ContentId>) {
        let BlobContent::Map(map) = &gone.content else { return };
        if gone.is_shared {
            return;
        }
        let pin = self.contents.pin();
        match self.named_contents(map, &pin).await {
            Ok(mut named) => {
                named.retain(|content| !kept.contains(&content.id()));
                drop(pin);
                self.forget(&named).await;
            }
            // The sweep will find what can be found.
            Err(error) => log::warn!("cannot tell the contents of a replaced blob: {error:?}"),
        }
    }

    /// Removes the staged blocks of a generation that is over, and their contents except those that are kept.
    pub(crate) fn drop_generation(
        self: &Arc<BlobCore>,
        target: BlobTarget,
        generation: u64,
        kept: HashSet<ContentId>,
    ) {
        let inner = self.clone();
        tokio::spawn(async move {
            if let Err(error) = inner.remove_generation(&target, generation, &kept).await {
                log::debug!("staged blocks are left to the sweep: {error:?}");
            }
        });
    }

    async fn remove_generation(
        &self,
        target: &BlobTarget,
        generation: u64,
        kept: &HashSet<ContentId>,
    ) -> Result<(), ServiceError> {
        loop {
            let blocks =
                self.staged_blocks(target.table, target.name(), generation, COMMIT_OP_COUNT_MAX).await?;
            if blocks.is_empty() {
                return Ok(());
            }
            let delete = |(id, _): &(_, StagedBlock)| delete_op(block_row(generation, id), Expect::Any);
            let ops = blocks.iter().map(delete).collect();
            self.try_commit(target, ops).await?;
            let parts = blocks.iter().flat_map(|(_, block)| block.parts.iter());
            let gone: Vec<ContentRef> = parts.filter(|part| !kept.contains(&part.id())).copied().collect();
            self.forget(&gone).await;
        }
    }

    /// The staged blocks of a generation, in the order of their ids, so many at most.
    pub(crate) async fn staged_blocks(
        &self,
        table: TableId,
        blob: &str,
        generation: u64,
        count_max: usize,
    ) -> Result<Vec<(protocol::blob::identifier::BlockId, StagedBlock)>, ServiceError> {
        let (low, high) = (generation_row(generation), generation_row(generation.saturating_add(1)));
        let mut range = KeyRange::rows(blob, Bound::Included(&low), Bound::Excluded(&high));
        let mut sink = BlockSink { blocks: Vec::new(), count_max, is_damaged: false };
        loop {
            let budget = scan_budget(Share::COMMON);
            let next = self.engine.scan(table, &[range], budget, &mut sink).await.map_err(from_read)?;
            if sink.is_damaged {
                return Err(damaged_row());
            }
            match next {
                Some(next) if sink.blocks.len() < count_max => {
                    range = KeyRange::rows(blob, Bound::Included(&next.row), Bound::Excluded(&high));
                }
                _ => return Ok(sink.blocks),
            }
        }
    }
}

struct BlockSink {
    blocks: Vec<(protocol::blob::identifier::BlockId, StagedBlock)>,
    count_max: usize,
    is_damaged: bool,
}

impl Sink for BlockSink {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        if self.blocks.len() >= self.count_max {
            return Flow::Stop;
        }
        match read_block_row(key.row).zip(StagedBlock::decode(value)) {
            Some(((_, id), block)) => {
                self.blocks.push((id, block));
                Flow::Continue
            }
            None => {
                self.is_damaged = true;
                Flow::Stop
            }
        }
    }
}
