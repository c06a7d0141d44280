//! Delete Blob and Undelete Blob.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

use catalogue::from_read;
use engine::{COMMIT_OP_COUNT_MAX, Effect, Expect, Flow, Key, KeyRange, Op, Share, Sink, TableId, Version};
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{Lease, LeaseUse};
use protocol::blob::properties::DeleteSnapshots;
use protocol::common::DateTime;
use protocol::{ErrorCode, ServiceError};

use crate::api::{BlobPlace, Deleted, Deletion, Preconditions};
use crate::base::{
    BlobTarget, FoundBase, Keeping, Tries, check_change, delete_op, deletion, put_base, put_op, retire,
};
use crate::finish::Unstoppable;
use crate::record::{BASE_ROW, BlobRecord, MOMENTS_BEGIN, RecordKind, read_moment_row};
use crate::service::{BlobCore, BlobService, damaged_row, scan_budget};

/// Snapshots that one commit changes beside the blob.
const SNAPSHOT_COUNT_MAX: usize = COMMIT_OP_COUNT_MAX - 2;

impl BlobService {
    pub async fn delete_blob(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        deletion: Deletion,
        pre: Preconditions,
    ) -> Result<Deleted, ServiceError> {
        let target = self.inner.target(place).await?;
        let inner = self.inner.clone();
        let delete = async move {
            match revision {
                Revision::Base => inner.delete_base(&target, &deletion, &pre).await,
                _ if deletion.snapshots.is_some() => Err(ErrorCode::InvalidQueryParameterValue.into()),
                _ => inner.delete_moment(&target, revision, deletion.is_permanent, &pre).await,
            }
        };
        Unstoppable::new(delete).await
    }

    pub async fn undelete_blob(&self, place: BlobPlace<'_>) -> Result<(), ServiceError> {
        let target = self.inner.target(place).await?;
        let inner = self.inner.clone();
        Unstoppable::new(async move { inner.undelete(&target).await }).await
    }
}

/// A snapshot or version with its row.
pub(crate) struct MomentRow {
    pub(crate) row: Box<str>,
    pub(crate) record: BlobRecord,
    pub(crate) version: Version,
}

impl BlobCore {
    async fn delete_base(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        deletion: &Deletion,
        pre: &Preconditions,
    ) -> Result<Deleted, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let found = self.read_base(target).await?;
            let moment = self.next_moment().await?;
            if found.live().is_none() {
                match self.delete_staged(target, &found).await? {
                    true => return Ok(Deleted { is_permanent: true }),
                    false => continue,
                }
            }
            check_change(&found, pre, LeaseUse::Write, moment)?;
            let (record, committed) = found.required()?;
            let tier_changed = committed.tier.explicit.map_or(committed.created, |(_, changed)| changed);
            deletion.tier_conditions.check(DateTime::from_ticks(tier_changed))?;
            let keeping = self.keeping(&target.account).await?;
            let is_meant =
                |record: &BlobRecord| record.kind == RecordKind::Snapshot && record.deleted.is_none();
            let mut snapshots = self.some_moments(target.table, target.name(), is_meant).await?;
            if deletion.snapshots.is_none() && !snapshots.is_empty() {
                return Err(ErrorCode::SnapshotsPresent.into());
            }
            let is_last = snapshots.len() <= SNAPSHOT_COUNT_MAX;
            snapshots.truncate(SNAPSHOT_COUNT_MAX);
            let mut ops: Vec<Op> =
                snapshots.iter().map(|snapshot| delete_snapshot(snapshot, keeping, moment)).collect();
            let is_kept = keeping != Keeping::Nothing;
            if deletion.snapshots == Some(DeleteSnapshots::Only) || !is_last {
                ops.push(Op { row: BASE_ROW.into(), expect: found.expect, effect: Effect::CheckOnly });
                if self.try_commit(target, ops).await? {
                    if is_last {
                        return Ok(Deleted { is_permanent: !is_kept });
                    }
                    tries = Tries::default();
                }
                continue;
            }
            let mut gone = None;
            match keeping {
                Keeping::Deleted(days) => {
                    let mut kept = record.clone();
                    (kept.lease, kept.staging) = (Lease::Available, None);
                    kept.deleted = Some(crate::base::deletion(moment, days));
                    ops.push(put_base(&found, &kept));
                }
                _ => {
                    let retired = retire(record, keeping, moment);
                    ops.extend(retired.op);
                    gone = retired.gone;
                    ops.push(delete_op(BASE_ROW, found.expect));
                }
            }
            if self.try_commit(target, ops).await? {
                self.after_replacing(target, &found, gone, HashSet::new()).await;
                return Ok(Deleted { is_permanent: !is_kept });
            }
        }
    }

    /// Deletes a blob that has only staged blocks. `false` if another change was faster.
    async fn delete_staged(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        found: &FoundBase,
    ) -> Result<bool, ServiceError> {
        let record = found.record.as_ref().ok_or(ErrorCode::BlobNotFound)?;
        let staging = record.staging.ok_or(ErrorCode::BlobNotFound)?;
        let op = match record.committed {
            // What was deleted softly stays.
            Some(_) => put_base(found, &BlobRecord { staging: None, ..record.clone() }),
            None => delete_op(BASE_ROW, found.expect),
        };
        let is_done = self.try_commit(target, vec![op]).await?;
        if is_done {
            self.drop_generation(target.clone(), staging.generation, HashSet::new());
        }
        Ok(is_done)
    }

    async fn delete_moment(
        &self,
        target: &BlobTarget,
        revision: Revision,
        is_permanent: bool,
        pre: &Preconditions,
    ) -> Result<Deleted, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let found = self.find_any_record(target, revision).await?.ok_or(ErrorCode::BlobNotFound)?;
            let moment = self.next_moment().await?;
            if found.record.kind == RecordKind::Base {
                // The current version is deleted as the blob itself.
                return Err(ErrorCode::InvalidOperation.into());
            }
            let is_deleted = found.record.deleted.is_some();
            if is_permanent && !is_deleted {
                return Err(ErrorCode::BlobSnapshotNotSoftDeleted.into());
            }
            if is_deleted && !is_permanent {
                return Err(ErrorCode::BlobNotFound.into());
            }
            if let Some(committed) = &found.record.committed {
                let purpose = protocol::blob::conditions::ConditionPurpose::Change;
                pre.conditions.check(purpose, Some(&committed.state()))?;
            }
            // Versions are deleted for good: they are what is kept.
            let keeping = match self.keeping(&target.account).await? {
                Keeping::Deleted(days) if !is_permanent => Keeping::Deleted(days),
                _ => Keeping::Nothing,
            };
            let row = MomentRow { row: found.row, record: found.record, version: found.version };
            if self.try_commit(target, vec![delete_snapshot(&row, keeping, moment)]).await? {
                return Ok(Deleted { is_permanent: keeping == Keeping::Nothing });
            }
        }
    }

    async fn undelete(&self, target: &BlobTarget) -> Result<(), ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let found = self.read_base(target).await?;
            let now = self.now().await?;
            let is_deleted =
                |record: &BlobRecord| record.deleted.is_some_and(|deleted| deleted.until > now.ticks());
            let mut ops: Vec<Op> = Vec::new();
            for MomentRow { row, record, version } in
                self.some_moments(target.table, target.name(), is_deleted).await?
            {
                let restored = BlobRecord { deleted: None, ..record };
                ops.push(put_op(row, Expect::Exactly(version), restored.encode()));
            }
            let is_last = ops.len() <= SNAPSHOT_COUNT_MAX;
            ops.truncate(SNAPSHOT_COUNT_MAX);
            let exists = found.live().is_some() || !ops.is_empty();
            if let Some(record) = found.record.as_ref().filter(|record| is_deleted(record)) {
                ops.push(put_base(&found, &BlobRecord { deleted: None, ..record.clone() }));
            } else if !exists {
                return Err(ErrorCode::BlobNotFound.into());
            }
            if ops.is_empty() {
                return Ok(());
            }
            if self.try_commit(target, ops).await? {
                if is_last {
                    return Ok(());
                }
                tries = Tries::default();
            }
        }
    }

    /// The first of the snapshots and versions that are meant: those that one commit changes, and one more if there are more.
    async fn some_moments(
        &self,
        table: TableId,
        blob: &str,
        is_meant: impl Fn(&BlobRecord) -> bool + Send,
    ) -> Result<Vec<MomentRow>, ServiceError> {
        let mut sink = MomentSink { rows: Vec::new(), is_meant, is_damaged: false };
        let mut low: Box<str> = MOMENTS_BEGIN.into();
        loop {
            let range = KeyRange::rows(blob, Bound::Included(&low), Bound::Excluded(BASE_ROW));
            let budget = scan_budget(Share::COMMON);
            let next = self.engine.scan(table, &[range], budget, &mut sink).await.map_err(from_read)?;
            if sink.is_damaged {
                return Err(damaged_row());
            }
            match next {
                Some(next) if sink.rows.len() <= SNAPSHOT_COUNT_MAX => low = next.row,
                _ => return Ok(sink.rows),
            }
        }
    }
}

/// Deletes a snapshot or version, softly if such are kept.
fn delete_snapshot(snapshot: &MomentRow, keeping: Keeping, now: DateTime) -> Op {
    let expect = Expect::Exactly(snapshot.version);
    match keeping {
        Keeping::Deleted(days) => {
            let kept = BlobRecord { deleted: Some(deletion(now, days)), ..snapshot.record.clone() };
            put_op(snapshot.row.clone(), expect, kept.encode())
        }
        _ => delete_op(snapshot.row.clone(), expect),
    }
}

struct MomentSink<F> {
    rows: Vec<MomentRow>,
    is_meant: F,
    is_damaged: bool,
}

impl<F: Fn(&BlobRecord) -> bool + Send> Sink for MomentSink<F> {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.rows.len() > SNAPSHOT_COUNT_MAX {
            return Flow::Stop;
        }
        match read_moment_row(key.row).and(BlobRecord::decode_borrowed(value)) {
            Some(record) => {
                if (self.is_meant)(&record) {
                    self.rows.push(MomentRow { row: key.row.into(), record, version });
                }
                Flow::Continue
            }
            None => {
                self.is_damaged = true;
                Flow::Stop
            }
        }
    }
}
