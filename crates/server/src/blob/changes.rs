//! Changes of blobs that leave their content as it is: properties, metadata, tags, tiers, leases, snapshots, deletion.

use blobs::{Deletion, Leased, TierSet};
use protocol::blob::Tags;
use protocol::blob::checksum::{ContentDigest, ExpectedChecksums};
use protocol::blob::conditions::{Conditions, TierConditions};
use protocol::blob::lease::LeaseRequest;
use protocol::blob::operation::{DeleteType, LeaseAction};
use protocol::blob::properties::{
    AccessTier, DELETE_SNAPSHOTS, DeleteSnapshots, PropertiesChange, REHYDRATE_PRIORITY, RehydratePriority,
};
use protocol::common::headers::invalid_header;
use protocol::common::service_properties::Extension;
use protocol::{ErrorCode, ServiceError};

use super::BlobCall;
use super::answer::BlobAnswer;

/// From this version on, Delete Blob takes conditions on the time of the tier.
const TIER_CONDITIONS: &str = "2026-04-06";

impl BlobCall<'_> {
    pub async fn set_properties(&self) -> Result<BlobAnswer, ServiceError> {
        let change = PropertiesChange::read(&self.request.headers)?;
        let set = self.service().set_properties(self.place(), change, self.preconditions()?).await?;
        let number = set.sequence_number.map(|number| number.to_string());
        Ok(BlobAnswer::empty(200).written(&set.stamp).header_if("x-ms-blob-sequence-number", number))
    }

    pub async fn set_metadata(&self) -> Result<BlobAnswer, ServiceError> {
        let metadata = self.request.headers.metadata()?;
        let preconditions = self.preconditions()?;
        let encryption = preconditions.encryption.clone();
        let stamp = self.service().set_metadata(self.place(), metadata, preconditions).await?;
        Ok(BlobAnswer::empty(200).written(&stamp).encrypted_with(&encryption))
    }

    pub async fn set_tags(&self, payload: &[u8]) -> Result<BlobAnswer, ServiceError> {
        let expected = ExpectedChecksums::read(&self.request.headers)?;
        let found = ContentDigest::of(payload, expected.md5.is_some(), expected.crc64.is_some());
        expected.check(&found)?;
        let tags = Tags::read_document(payload)?;
        let preconditions = self.tag_preconditions()?;
        self.service().set_tags(self.place(), self.revision, tags, preconditions).await?;
        Ok(BlobAnswer::empty(204))
    }

    pub async fn set_tier(&self) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let tier = AccessTier::read_required(headers, self.request.version)?;
        let priority = RehydratePriority::read(headers, REHYDRATE_PRIORITY)?;
        let preconditions = self.preconditions_on_tags()?;
        let set = self.service().set_tier(self.place(), self.revision, tier, priority, preconditions).await?;
        Ok(BlobAnswer::empty(match set {
            TierSet::Done => 200,
            TierSet::Rehydrating => 202,
        }))
    }

    pub async fn lease(&self, action: LeaseAction) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let request = LeaseRequest::read(action, headers)?;
        let conditions = Conditions::read(headers)?;
        Ok(leased(&self.service().lease_blob(self.place(), request, conditions).await?))
    }

    pub async fn snapshot(&self) -> Result<BlobAnswer, ServiceError> {
        let metadata = self.sent_metadata()?;
        let taken = self.service().snapshot_blob(self.place(), metadata, self.preconditions()?).await?;
        Ok(BlobAnswer::empty(201)
            .written(&taken.stamp)
            .header("x-ms-snapshot", &taken.snapshot.to_padded())
            .header("x-ms-request-server-encrypted", "false"))
    }

    pub async fn delete(&self, delete_type: DeleteType) -> Result<BlobAnswer, ServiceError> {
        let headers = &self.request.headers;
        let snapshots = DeleteSnapshots::read(headers, DELETE_SNAPSHOTS)?;
        if let Some(snapshots) = snapshots.filter(|_| !self.revision.is_base()) {
            return Err(invalid_header(DELETE_SNAPSHOTS, snapshots.as_str()));
        }
        if delete_type == DeleteType::Permanent {
            self.check_permanent_delete().await?;
        }
        let takes_times = self.request.version >= TIER_CONDITIONS;
        let deletion = Deletion {
            snapshots,
            is_permanent: delete_type == DeleteType::Permanent,
            tier_conditions: if takes_times {
                TierConditions::read(headers)
            } else {
                TierConditions::default()
            },
        };
        let preconditions = self.preconditions()?;
        let deleted =
            self.service().delete_blob(self.place(), self.revision, deletion, preconditions).await?;
        let is_permanent = if deleted.is_permanent { "true" } else { "false" };
        Ok(BlobAnswer::empty(202).header("x-ms-delete-type-permanent", is_permanent))
    }

    /// What is deleted for good must be a snapshot or a version, and the account must allow it. Whether it was deleted
    /// softly before is not known here.
    async fn check_permanent_delete(&self) -> Result<(), ServiceError> {
        if self.revision.is_base() {
            return Err(ErrorCode::BlobSnapshotNotSoftDeleted.into());
        }
        let properties = self.service().catalogue().properties(self.session.account).await?;
        let allows = |extension: &Extension| extension.delete_retention.allow_permanent_delete;
        if properties.extension.as_ref().is_some_and(allows) {
            return Ok(());
        }
        let detail = "Permanent delete is not enabled for the storage account.";
        Err(ServiceError::with_detail(ErrorCode::BlobSnapshotNotSoftDeleted, detail))
    }

    pub async fn undelete(&self) -> Result<BlobAnswer, ServiceError> {
        self.service().undelete_blob(self.place()).await?;
        Ok(BlobAnswer::empty(200))
    }
}

/// The answer to a lease action on a blob or a container.
pub fn leased(leased: &Leased) -> BlobAnswer {
    let outcome = &leased.outcome;
    BlobAnswer::empty(outcome.status)
        .stamp(leased.stamp.etag, leased.stamp.last_modified)
        .header_if("x-ms-lease-id", outcome.id.map(|id| id.to_string()))
        .header_if("x-ms-lease-time", outcome.break_seconds.map(|seconds| seconds.to_string()))
}
