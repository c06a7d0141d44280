//! Put Block, Put Block List, Get Block List.
//!
//! Staged blocks of one blob do not wait for each other: each is a row of its own, and its commit only checks that the blob's row
//! is the same as when it was read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalogue::from_read;
use contents::{ContentId, ContentRef, Pin};
use engine::env::ticks;
use engine::{Effect, Expect, Key, Op};
use protocol::blob::block_list::BlockSource;
use protocol::blob::checksum::Checksums;
use protocol::blob::identifier::{BlockId, Revision};
use protocol::blob::lease::{Leasable, LeaseUse, no_lease_to_use};
use protocol::blob::limits::{
    COMMITTED_BLOCK_COUNT_MAX, UNCOMMITTED_BLOCK_COUNT_MAX, too_many_uncommitted_blocks,
};
use protocol::blob::properties::{BlobType, BlockListType};
use protocol::common::DateTime;
use protocol::{ErrorCode, ServiceError};

use crate::api::{BlobPlace, BlockLists, NewBlob, Preconditions, Stamp, UploadBody};
use crate::base::{BlobTarget, FoundBase, Tries, check_create, put_base, put_op};
use crate::content::{ContentEntry, ContentMap};
use crate::finish::Unstoppable;
use crate::put::{NewContent, new_record, stamp_of};
use crate::read::check_read;
use crate::record::{BASE_ROW, BlobRecord, StagedBlock, Staging, block_row};
use crate::service::{BlobCore, BlobService};
use crate::sweep::STAGED_TIME_SAFE;
use crate::upload::ReceivedData;

/// One of so many blocks has the staged blocks of its blob counted, so that the bound on them holds roughly and costs little.
const COUNTED_ONE_IN: u32 = 512;

impl BlobService {
    /// Put Block. Of the preconditions, only lease, encryption and `create_only` count.
    pub async fn put_block(
        &self,
        place: BlobPlace<'_>,
        id: &BlockId,
        body: UploadBody<'_>,
        pre: Preconditions,
    ) -> Result<Checksums, ServiceError> {
        let inner = &self.inner;
        let target = inner.target(place).await?;
        let found = inner.read_base(&target).await?;
        let staging = check_stage(&found, id, &pre, inner.now().await?)?;
        if let Some(staging) = staging.filter(|_| fastrand::u32(..COUNTED_ONE_IN) == 0) {
            inner.check_block_count(&target, staging).await?;
        }
        // A block always has contents of its own, which the list takes over as they are.
        let received = inner.receive(body, false, 0).await?;
        let (inner, id) = (inner.clone(), id.clone());
        let checksums = received.checksums;
        let stage = async move { inner.stage(&target, &id, received.data, &pre).await };
        Unstoppable::new(stage).await?;
        Ok(checksums)
    }

    pub async fn put_block_list(
        &self,
        place: BlobPlace<'_>,
        blocks: Vec<(BlockSource, BlockId)>,
        new: NewBlob,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        if blocks.len() > COMMITTED_BLOCK_COUNT_MAX {
            return Err(ErrorCode::BlockListTooLong.into());
        }
        let target = self.inner.target(place).await?;
        let inner = self.inner.clone();
        Unstoppable::new(async move { inner.commit_blocks(&target, &blocks, &new, &pre).await }).await
    }

    pub async fn block_list(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        list: BlockListType,
        pre: &Preconditions,
    ) -> Result<BlockLists, ServiceError> {
        let inner = &self.inner;
        let target = inner.target(place).await?;
        let pin = inner.contents.pin();
        let found = inner.find_any_record(&target, revision).await?.ok_or(ErrorCode::BlobNotFound)?;
        let now = inner.now().await?;
        let staging = found.record.staging.filter(|_| revision.is_base());
        let mut lists = BlockLists { stamp: None, size: 0, committed: Vec::new(), uncommitted: Vec::new() };
        match found.record.live() {
            Some(committed) => {
                check_read(&found, pre, now)?;
                let map = committed.map().filter(|_| committed.blob_type == BlobType::Block);
                let map = map.ok_or(ErrorCode::InvalidBlobType)?;
                (lists.stamp, lists.size) = (Some(committed.stamp()), committed.size);
                if list != BlockListType::Uncommitted {
                    let entries = inner.all_entries(map, &pin).await?;
                    let blocks = entries.into_iter().filter_map(|entry| {
                        let length = entry.length();
                        entry.id.map(|id| (id, length))
                    });
                    lists.committed.extend(blocks);
                }
            }
            None if staging.is_none() => return Err(ErrorCode::BlobNotFound.into()),
            None => {}
        }
        if let Some(staging) = staging.filter(|_| list != BlockListType::Committed) {
            let count_max = UNCOMMITTED_BLOCK_COUNT_MAX * 2;
            let blocks =
                inner.staged_blocks(target.table, target.name(), staging.generation, count_max).await?;
            let mut blocks: Vec<_> =
                blocks.into_iter().map(|(id, block)| (block.at, id, block.length())).collect();
            blocks.sort();
            lists.uncommitted.extend(blocks.into_iter().map(|(_, id, length)| (id, length)));
        }
        Ok(lists)
    }
}

/// Whether a block may be staged, and where the blob's other staged blocks are.
fn check_stage(
    found: &FoundBase,
    id: &BlockId,
    pre: &Preconditions,
    now: DateTime,
) -> Result<Option<Staging>, ServiceError> {
    match found.required().ok() {
        Some((record, committed)) => {
            if pre.create_only {
                return Err(ErrorCode::UnauthorizedBlobOverwrite.into());
            }
            record.lease.at(now).check_use(LeaseUse::Write, pre.lease, Leasable::Blob)?;
            if committed.blob_type != BlobType::Block {
                return Err(ErrorCode::InvalidBlobType.into());
            }
        }
        None if pre.lease.is_some() => return Err(no_lease_to_use()),
        None => {}
    }
    let staging = found.record.as_ref().and_then(|record| record.staging);
    if staging.is_some_and(|staging| usize::from(staging.id_bytes) != id.as_bytes().len()) {
        return Err(ErrorCode::InvalidBlobOrBlock.into());
    }
    Ok(staging)
}

impl BlobCore {
    async fn check_block_count(&self, target: &BlobTarget, staging: Staging) -> Result<(), ServiceError> {
        let count_max = UNCOMMITTED_BLOCK_COUNT_MAX;
        let blocks = self.staged_blocks(target.table, target.name(), staging.generation, count_max).await?;
        if blocks.len() < count_max { Ok(()) } else { Err(too_many_uncommitted_blocks()) }
    }

    async fn stage(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        id: &BlockId,
        data: ReceivedData,
        pre: &Preconditions,
    ) -> Result<(), ServiceError> {
        let outcome = self.try_stage(target, id, data.parts(), pre).await;
        if let (Err(error), ReceivedData::Stored(parts, pending)) = (&outcome, data) {
            self.give_up(error, &parts, [pending]).await;
        }
        outcome
    }

    async fn try_stage(
        &self,
        target: &BlobTarget,
        id: &BlockId,
        parts: &[ContentRef],
        pre: &Preconditions,
    ) -> Result<(), ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let found = self.read_base(target).await?;
            let moment = self.next_moment().await?;
            let staging = check_stage(&found, id, pre, moment)?;
            let generation = staging.map_or(moment.ticks(), |staging| staging.generation);
            let row = block_row(generation, id);
            let old = match staging {
                Some(_) => {
                    self.engine.get(target.table, Key::new(target.name(), &row)).await.map_err(from_read)?
                }
                None => None,
            };
            // A sweep that is about to remove old blocks must notice, as must a list that is about to take over the block
            // that is replaced: so the blob's row changes too.
            let is_old = generation.saturating_add(ticks(STAGED_TIME_SAFE)) <= moment.ticks();
            let base = match (staging, &old) {
                (Some(_), None) if !is_old => {
                    Op { row: BASE_ROW.into(), expect: found.expect, effect: Effect::CheckOnly }
                }
                _ => {
                    let mut record = found.record.clone().unwrap_or_default();
                    record.staging = Some(Staging { generation, id_bytes: id.as_bytes().len() as u8 });
                    put_base(&found, &record)
                }
            };
            let expect = old.as_ref().map_or(Expect::Absent, |old| Expect::Exactly(old.version));
            let block = StagedBlock { at: moment.ticks(), parts: parts.into() };
            if self.try_commit(target, vec![base, put_op(row, expect, block.encode())]).await? {
                if let Some(old) = old.and_then(|old| StagedBlock::decode(&old.value)) {
                    self.forget(&old.parts).await;
                }
                return Ok(());
            }
        }
    }

    async fn commit_blocks(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        blocks: &[(BlockSource, BlockId)],
        new: &NewBlob,
        pre: &Preconditions,
    ) -> Result<Stamp, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            // Before the row is read: its lists of blocks are read too.
            let pin = self.contents.pin();
            let found = self.read_base(target).await?;
            let moment = self.next_moment().await?;
            let lease = check_create(&found, pre, BlobType::Block, moment)?;
            let (mut map, has_committed) = self.gather_blocks(target, &found, blocks, &pin).await?;
            drop(pin);
            // Blocks that are staged meanwhile do not change the blob's row, unless they replace one of these.
            let kept: HashSet<ContentId> = map.own_contents().map(ContentRef::id).collect();
            let rolled = self.roll(&mut map).await?;
            let mut content = NewContent::of_map(BlobType::Block, map);
            content.is_shared = has_committed && found.live().is_some_and(|old| old.is_shared);
            let (keeping, retired) = self.replace(target, &found, moment).await?;
            // What is kept of the old content names the blocks that the new one takes over.
            let shares = has_committed && retired.op.is_some();
            content.is_shared |= shares;
            let mut record = new_record(&found, new, content, pre, lease, keeping, moment);
            record.staging = None;
            let mut ops = vec![put_base(&found, &record)];
            match retired.op {
                Some(op) if shares => ops.push(share(op)),
                op => ops.extend(op),
            }
            match self.try_commit(target, ops).await {
                Ok(true) => {
                    self.after_replacing(target, &found, retired.gone, kept).await;
                    return Ok(stamp_of(&record));
                }
                Ok(false) => self.forget(&rolled.contents).await,
                Err(error) => {
                    self.keep_unresolved(&error, rolled.guards);
                    return Err(error);
                }
            }
        }
    }

    /// The content that a list of blocks makes, and whether it has blocks of the old content.
    async fn gather_blocks(
        &self,
        target: &BlobTarget,
        found: &FoundBase,
        blocks: &[(BlockSource, BlockId)],
        pin: &Pin,
    ) -> Result<(ContentMap, bool), ServiceError> {
        let mut staged: HashMap<BlockId, Arc<[ContentRef]>> = HashMap::new();
        let mut committed: HashMap<BlockId, Arc<[ContentRef]>> = HashMap::new();
        let wants = |unwanted: BlockSource| blocks.iter().any(|(source, _)| *source != unwanted);
        let staging = found.record.as_ref().and_then(|record| record.staging);
        if let Some(staging) = staging.filter(|_| wants(BlockSource::Committed)) {
            let count_max = UNCOMMITTED_BLOCK_COUNT_MAX * 2;
            let found =
                self.staged_blocks(target.table, target.name(), staging.generation, count_max).await?;
            staged.extend(found.into_iter().map(|(id, block)| (id, block.parts)));
        }
        if let Some(map) = found.live().and_then(|old| old.map()).filter(|_| wants(BlockSource::Uncommitted))
        {
            let entries = self.all_entries(map, pin).await?;
            committed.extend(entries.into_iter().filter_map(|entry| entry.id.map(|id| (id, entry.parts))));
        }
        let mut has_committed = false;
        let mut entries = Vec::with_capacity(blocks.len());
        for (source, id) in blocks {
            let staged = staged.get(id).filter(|_| *source != BlockSource::Committed);
            let parts = match staged {
                Some(parts) => parts,
                None => {
                    has_committed = true;
                    let old = committed.get(id).filter(|_| *source != BlockSource::Uncommitted);
                    old.ok_or(ErrorCode::InvalidBlockList)?
                }
            };
            entries.push(ContentEntry { id: Some(id.clone()), parts: parts.clone() });
        }
        Ok((ContentMap { entries, ..ContentMap::default() }, has_committed))
    }
}

/// The same row, marked as one that shares its contents.
fn share(op: Op) -> Op {
    let Effect::Put(value) = &op.effect else { return op };
    let Some(mut record) = BlobRecord::decode(value) else { return op };
    if let Some(committed) = &mut record.committed {
        committed.is_shared = true;
    }
    Op { effect: Effect::Put(record.encode()), ..op }
}
