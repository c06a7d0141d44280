//! Operations that are not here yet.

#![allow(unused_imports, unused_variables)]

use std::ops::Range;

use engine::Share;
use protocol::blob::block_list::BlockSource;
use protocol::blob::checksum::Checksums;
use protocol::blob::conditions::{AppendConditions, Conditions, SequenceConditions};
use protocol::blob::container_list::ListContainersParameters;
use protocol::blob::identifier::{BlockId, Revision};
use protocol::blob::lease::LeaseRequest;
use protocol::blob::list_parameters::{FindBlobsParameters, ListBlobsParameters};
use protocol::blob::properties::{
    AccessTier, BlockListType, PropertiesChange, PublicAccess, RehydratePriority,
};
use protocol::blob::range::ByteRange;
use protocol::blob::{ContainerAcl, ContainerName, Tags};
use protocol::common::guid::Guid;
use protocol::common::{AccountName, Metadata};
use protocol::{ErrorCode, ServiceError};

use crate::api::*;
use crate::service::BlobService;
use crate::stream::OpenBlob;

impl BlobService {
    /// Put Block. Of the preconditions, only lease and encryption count.
    pub async fn put_block(
        &self,
        place: BlobPlace<'_>,
        id: &BlockId,
        body: UploadBody<'_>,
        pre: Preconditions,
    ) -> Result<Checksums, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn put_block_list(
        &self,
        place: BlobPlace<'_>,
        blocks: Vec<(BlockSource, BlockId)>,
        new: NewBlob,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn block_list(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        list: BlockListType,
        pre: &Preconditions,
    ) -> Result<BlockLists, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn append_block(
        &self,
        place: BlobPlace<'_>,
        body: UploadBody<'_>,
        append: AppendConditions,
        pre: Preconditions,
    ) -> Result<Appended, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn seal(
        &self,
        place: BlobPlace<'_>,
        append: AppendConditions,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Put Page. The range is of whole pages, and the body must have its length.
    pub async fn put_pages(
        &self,
        place: BlobPlace<'_>,
        range: Range<u64>,
        body: UploadBody<'_>,
        sequence: SequenceConditions,
        pre: Preconditions,
    ) -> Result<PagesWritten, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn clear_pages(
        &self,
        place: BlobPlace<'_>,
        range: Range<u64>,
        sequence: SequenceConditions,
        pre: Preconditions,
    ) -> Result<PagesWritten, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn page_ranges(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        query: PageQuery,
        pre: &Preconditions,
    ) -> Result<PageRanges, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_properties(
        &self,
        place: BlobPlace<'_>,
        change: PropertiesChange,
        pre: Preconditions,
    ) -> Result<PropertiesSet, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_metadata(
        &self,
        place: BlobPlace<'_>,
        metadata: Metadata,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_tags(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        tags: Tags,
        pre: Preconditions,
    ) -> Result<(), ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_tier(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        tier: AccessTier,
        priority: Option<RehydratePriority>,
        pre: Preconditions,
    ) -> Result<TierSet, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn lease_blob(
        &self,
        place: BlobPlace<'_>,
        request: LeaseRequest,
        conditions: Conditions,
    ) -> Result<Leased, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// `metadata` is that of the snapshot. `None`: the blob's.
    pub async fn snapshot_blob(
        &self,
        place: BlobPlace<'_>,
        metadata: Option<Metadata>,
        pre: Preconditions,
    ) -> Result<Snapshotted, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn delete_blob(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        deletion: Deletion,
        pre: Preconditions,
    ) -> Result<Deleted, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn undelete_blob(&self, place: BlobPlace<'_>) -> Result<(), ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Copy Blob and Copy Blob From URL. The copy is complete when this returns.
    pub async fn copy_blob(
        &self,
        source: CopyFrom<'_>,
        place: BlobPlace<'_>,
        request: CopyRequest,
        pre: Preconditions,
    ) -> Result<Copied, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// No copy is ever pending, so this is always a refusal.
    pub async fn abort_copy(
        &self,
        place: BlobPlace<'_>,
        copy_id: Guid,
        lease: Option<Guid>,
    ) -> Result<(), ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn list_blobs(
        &self,
        account: &AccountName,
        container: &ContainerName,
        parameters: &ListBlobsParameters,
        share: Share,
    ) -> Result<BlobPage, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// In one container, or in all of the account.
    pub async fn find_blobs(
        &self,
        account: &AccountName,
        container: Option<&ContainerName>,
        parameters: &FindBlobsParameters,
        share: Share,
    ) -> Result<FoundPage, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }
}
