//! Properties, metadata, tags, tiers, leases and snapshots.

use engine::Expect;
use protocol::blob::Tags;
use protocol::blob::conditions::{ConditionPurpose, Conditions};
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{Leasable, LeaseRequest, LeaseUse};
use protocol::blob::properties::{AccessTier, BlobType, PropertiesChange, RehydratePriority};
use protocol::common::{DateTime, Metadata};
use protocol::{ErrorCode, ServiceError};

use crate::api::{BlobPlace, Leased, Preconditions, PropertiesSet, Snapshotted, Stamp, TierSet};
use crate::base::{BlobTarget, FoundBase, Keeping, Tries, check_change, next_etag, put_base, put_op, retire};
use crate::containers::new_guid;
use crate::finish::Unstoppable;
use crate::put::stamp_of;
use crate::read::FoundRecord;
use crate::record::{BlobContent, BlobRecord, CommittedBlob, RecordKind, Tier, moment_row};
use crate::service::{BlobCore, BlobService};

impl BlobService {
    pub async fn set_properties(
        &self,
        place: BlobPlace<'_>,
        change: PropertiesChange,
        pre: Preconditions,
    ) -> Result<PropertiesSet, ServiceError> {
        let target = self.inner.target(place).await?;
        let found = self.inner.read_base(&target).await?;
        let size = change.page_blob_bytes;
        let mut pre = pre;
        if let (Some(size), Some(live)) = (size, found.live())
            && live.blob_type == BlobType::Page
            && size < live.size
        {
            // What is cut off must not come back when the blob grows again.
            let (inner, target, range) = (self.inner.clone(), target.clone(), size..live.size);
            let cut_pre = pre.clone();
            let sequence = Default::default();
            let cut = async move { inner.clear(&target, range, Some(size), &sequence, &cut_pre).await };
            let cut = Unstoppable::new(cut).await?;
            pre.conditions = Conditions::default();
            if change.http.is_none() && change.sequence_number.is_none() {
                return Ok(PropertiesSet { stamp: cut.stamp, sequence_number: Some(cut.sequence_number) });
            }
        }
        let set = |committed: &mut CommittedBlob, _: DateTime| {
            let is_about_pages = change.page_blob_bytes.is_some() || change.sequence_number.is_some();
            if is_about_pages && committed.blob_type != BlobType::Page {
                return Err(ErrorCode::InvalidBlobType.into());
            }
            if let Some(http) = &change.http {
                committed.http = http.clone();
            }
            if let Some(size) = change.page_blob_bytes {
                crate::pages::grow(committed, size);
            }
            if let Some(number) = change.sequence_number {
                committed.sequence_number = number.apply(committed.sequence_number)?;
            }
            committed.copy = None;
            Ok(())
        };
        let record = self.inner.change(&target, &pre, ChangeKind::ETag, set).await?;
        let committed = record.committed.as_ref().ok_or(ErrorCode::BlobNotFound)?;
        let sequence_number = (committed.blob_type == BlobType::Page).then_some(committed.sequence_number);
        Ok(PropertiesSet { stamp: committed.stamp(), sequence_number })
    }

    pub async fn set_metadata(
        &self,
        place: BlobPlace<'_>,
        metadata: Metadata,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        let target = self.inner.target(place).await?;
        let set = |committed: &mut CommittedBlob, _: DateTime| {
            pre.encryption.check(committed.key)?;
            committed.metadata = metadata.clone();
            committed.copy = None;
            Ok(())
        };
        let record = self.inner.change(&target, &pre, ChangeKind::Version, set).await?;
        Ok(stamp_of(&record))
    }

    pub async fn set_tags(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        tags: Tags,
        pre: Preconditions,
    ) -> Result<(), ServiceError> {
        let target = self.inner.target(place).await?;
        let set = |committed: &mut CommittedBlob, _: DateTime| {
            committed.tags = tags.clone();
            Ok(())
        };
        self.inner.change_revision(&target, revision, &pre, LeaseUse::Write, set).await
    }

    pub async fn set_tier(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        tier: AccessTier,
        priority: Option<RehydratePriority>,
        pre: Preconditions,
    ) -> Result<TierSet, ServiceError> {
        let target = self.inner.target(place).await?;
        let after = self.inner.rehydrates_after();
        let set = |committed: &mut CommittedBlob, now: DateTime| {
            let is_of_pages = tier >= AccessTier::P4;
            match committed.blob_type {
                BlobType::Append => return Err(ErrorCode::InvalidBlobType.into()),
                blob_type if is_of_pages != (blob_type == BlobType::Page) => {
                    return Err(ErrorCode::InvalidBlobTier.into());
                }
                _ => {}
            }
            let old = committed.tier.at(now, after);
            if old.is_archive() && tier != AccessTier::Archive {
                let priority = priority.unwrap_or(RehydratePriority::Standard);
                let since = old.rehydrating.map_or(now.ticks(), |(_, _, since)| since);
                if old.rehydrating.is_some_and(|(target, ..)| target != tier) {
                    return Err(ErrorCode::BlobBeingRehydrated.into());
                }
                committed.tier = Tier { rehydrating: Some((tier, priority, since)), ..old };
                return Ok(TierSet::Rehydrating);
            }
            committed.tier = Tier::set(tier, now);
            Ok(TierSet::Done)
        };
        self.inner.change_revision(&target, revision, &pre, LeaseUse::Read, set).await
    }

    pub async fn lease_blob(
        &self,
        place: BlobPlace<'_>,
        request: LeaseRequest,
        conditions: Conditions,
    ) -> Result<Leased, ServiceError> {
        let target = self.inner.target(place).await?;
        let new_id = new_guid();
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(&self.inner, &target).await?;
            let found = self.inner.read_base(&target).await?;
            let now = self.inner.now().await?;
            let (record, committed) = found.required()?;
            conditions.check(ConditionPurpose::Change, Some(&committed.state()))?;
            let outcome = record.lease.act(request, Leasable::Blob, now, new_id)?;
            let stamp = committed.stamp();
            let changed = BlobRecord { lease: outcome.lease, ..record.clone() };
            if self.inner.try_commit(&target, vec![put_base(&found, &changed)]).await? {
                return Ok(Leased { stamp, outcome });
            }
        }
    }

    /// `metadata` is that of the snapshot. `None`: the blob's.
    pub async fn snapshot_blob(
        &self,
        place: BlobPlace<'_>,
        metadata: Option<Metadata>,
        pre: Preconditions,
    ) -> Result<Snapshotted, ServiceError> {
        let target = self.inner.target(place).await?;
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(&self.inner, &target).await?;
            let found = self.inner.read_base(&target).await?;
            let moment = self.inner.next_moment().await?;
            check_change(&found, &pre, LeaseUse::Read, moment)?;
            let (record, committed) = found.required()?;
            pre.encryption.check(committed.key)?;
            let mut base = record.clone();
            let mut taken = committed.clone();
            taken.is_shared = true;
            taken.version = None;
            if let Some(metadata) = &metadata {
                taken.metadata = metadata.clone();
                taken.modified = next_etag(Some(committed), moment);
            }
            let stamp = taken.stamp();
            if let Some(live) = &mut base.committed {
                live.is_shared = true;
                // From here on, writes of pages leave alone what the snapshot sees.
                if let BlobContent::Pages(epochs) = &mut live.content {
                    epochs.advance();
                }
            }
            let snapshot =
                BlobRecord { kind: RecordKind::Snapshot, committed: Some(taken), ..BlobRecord::default() };
            let row = moment_row(moment.ticks());
            let ops = vec![put_op(row, Expect::Absent, snapshot.encode()), put_base(&found, &base)];
            if self.inner.try_commit(&target, ops).await? {
                return Ok(Snapshotted { stamp, snapshot: moment });
            }
        }
    }
}

/// What a change of a blob's properties is for its versions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    ETag,
    /// Also makes a new version, if versions are kept.
    Version,
}

impl BlobCore {
    /// Changes the record of a blob, with a new ETag.
    async fn change(
        &self,
        target: &BlobTarget,
        pre: &Preconditions,
        changes: ChangeKind,
        set: impl Fn(&mut CommittedBlob, DateTime) -> Result<(), ServiceError>,
    ) -> Result<BlobRecord, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let found = self.read_base(target).await?;
            let moment = self.next_moment().await?;
            let lease = check_change(&found, pre, LeaseUse::Write, moment)?;
            let (old, live) = found.required()?;
            let mut record = old.clone();
            record.lease = lease;
            let mut ops = Vec::new();
            let committed = record.committed.as_mut().ok_or(ErrorCode::BlobNotFound)?;
            set(committed, moment)?;
            committed.modified = next_etag(Some(live), moment);
            if changes == ChangeKind::Version && self.options.keeps_versions {
                committed.version = Some(committed.modified);
                committed.is_shared = true;
                if let BlobContent::Pages(epochs) = &mut committed.content {
                    epochs.advance();
                }
                let mut old = old.clone();
                if let Some(old) = &mut old.committed {
                    old.is_shared = true;
                }
                ops.extend(retire(&old, Keeping::Versions, moment).op);
            }
            ops.insert(0, put_base(&found, &record));
            if self.try_commit(target, ops).await? {
                return Ok(record);
            }
        }
    }

    /// Changes what has no ETag, of a blob, a snapshot or a version.
    async fn change_revision<T>(
        &self,
        target: &BlobTarget,
        revision: Revision,
        pre: &Preconditions,
        lease_use: LeaseUse,
        set: impl Fn(&mut CommittedBlob, DateTime) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let FoundRecord { mut record, row, version, .. } = self.find_record(target, revision).await?;
            let now = self.now().await?;
            let expect = Expect::Exactly(version);
            if record.kind == RecordKind::Base {
                let found = FoundBase { record: Some(record.clone()), expect };
                record.lease = check_change(&found, pre, lease_use, now)?;
            } else if let Some(committed) = &record.committed {
                pre.conditions.check(ConditionPurpose::Change, Some(&committed.state()))?;
            }
            let committed = record.committed.as_mut().ok_or(ErrorCode::BlobNotFound)?;
            let value = set(committed, now)?;
            if self.try_commit(target, vec![put_op(row, expect, record.encode())]).await? {
                return Ok(value);
            }
        }
    }
}
