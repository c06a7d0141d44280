//! Operations that are not here yet.

#![allow(unused_variables)]

use std::ops::Range;

use engine::Share;
use protocol::blob::block_list::BlockSource;
use protocol::blob::checksum::Checksums;
use protocol::blob::conditions::{AppendConditions, Conditions, SequenceConditions};
use protocol::blob::container_list::ListContainersParameters;
use protocol::blob::identifier::{BlockId, Revision};
use protocol::blob::lease::LeaseRequest;
use protocol::blob::list_parameters::{FindBlobsParameters, ListBlobsParameters};
use protocol::blob::properties::{AccessTier, BlockListType, PropertiesChange, PublicAccess, RehydratePriority};
use protocol::blob::range::ByteRange;
use protocol::blob::{ContainerAcl, ContainerName, Tags};
use protocol::common::guid::Guid;
use protocol::common::{AccountName, Metadata};
use protocol::{ErrorCode, ServiceError};

use crate::api::*;
use crate::service::BlobService;
use crate::stream::OpenBlob;

impl BlobService {
    /// `ContainerAlreadyExists` if there is one of this name.
    pub async fn create_container(&self, account: &AccountName, container: &ContainerName, new: NewContainer) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Properties and metadata.
    pub async fn container_properties(&self, account: &AccountName, container: &ContainerName, lease: Option<Guid>) -> Result<ContainerView, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// How far anonymous callers may read. `None`: not at all, or there is no such container.
    pub async fn public_access(&self, account: &AccountName, container: &ContainerName) -> Result<Option<PublicAccess>, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_container_metadata(&self, account: &AccountName, container: &ContainerName, metadata: Metadata, lease: Option<Guid>, conditions: &Conditions) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn container_acl(&self, account: &AccountName, container: &ContainerName, lease: Option<Guid>) -> Result<ContainerAclView, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_container_acl(&self, account: &AccountName, container: &ContainerName, acl: &ContainerAcl, lease: Option<Guid>, conditions: &Conditions) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn lease_container(&self, account: &AccountName, container: &ContainerName, request: LeaseRequest, conditions: &Conditions) -> Result<Leased, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn delete_container(&self, account: &AccountName, container: &ContainerName, lease: Option<Guid>, conditions: &Conditions) -> Result<(), ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Undoes the deletion of a container, under the same or another name.
    pub async fn restore_container(&self, account: &AccountName, container: &ContainerName, deleted_name: &str, deleted_version: &str) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn list_containers(&self, account: &AccountName, parameters: &ListContainersParameters, share: Share) -> Result<ContainerPage, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Put Blob of a block blob.
    pub async fn put_block_blob(&self, place: BlobPlace<'_>, body: UploadBody<'_>, new: NewBlob, pre: Preconditions) -> Result<Put, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn put_append_blob(&self, place: BlobPlace<'_>, new: NewBlob, pre: Preconditions) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// `size` is a multiple of 512.
    pub async fn put_page_blob(&self, place: BlobPlace<'_>, size: u64, sequence_number: u64, new: NewBlob, pre: Preconditions) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Put Block. Of the preconditions, only lease and encryption count.
    pub async fn put_block(&self, place: BlobPlace<'_>, id: &BlockId, body: UploadBody<'_>, pre: Preconditions) -> Result<Checksums, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn put_block_list(&self, place: BlobPlace<'_>, blocks: Vec<(BlockSource, BlockId)>, new: NewBlob, pre: Preconditions) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn block_list(&self, place: BlobPlace<'_>, revision: Revision, list: BlockListType, pre: &Preconditions) -> Result<BlockLists, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn append_block(&self, place: BlobPlace<'_>, body: UploadBody<'_>, append: AppendConditions, pre: Preconditions) -> Result<Appended, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn seal(&self, place: BlobPlace<'_>, append: AppendConditions, pre: Preconditions) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Put Page. The range is of whole pages, and the body must have its length.
    pub async fn put_pages(&self, place: BlobPlace<'_>, range: Range<u64>, body: UploadBody<'_>, sequence: SequenceConditions, pre: Preconditions) -> Result<PagesWritten, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn clear_pages(&self, place: BlobPlace<'_>, range: Range<u64>, sequence: SequenceConditions, pre: Preconditions) -> Result<PagesWritten, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn page_ranges(&self, place: BlobPlace<'_>, revision: Revision, query: PageQuery, pre: &Preconditions) -> Result<PageRanges, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Get Blob Properties, Get Blob Metadata.
    pub async fn blob_properties(&self, place: BlobPlace<'_>, revision: Revision, pre: &Preconditions) -> Result<BlobView, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Get Blob: everything that is checked before bytes flow. `range` is the one that will be read, if it is known.
    pub async fn open_blob(&self, place: BlobPlace<'_>, revision: Revision, range: Option<ByteRange>, pre: &Preconditions) -> Result<OpenBlob, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// The source of an operation whose name ends with From URL. Give its stream to the operation as an [`Upload`].
    pub async fn open_source(&self, source: &CopyFrom<'_>, range: Option<ByteRange>) -> Result<OpenBlob, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Whether there is such a blob: what a caller that may only create wants to know.
    pub async fn exists(&self, place: BlobPlace<'_>) -> Result<bool, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn tags(&self, place: BlobPlace<'_>, revision: Revision, pre: &Preconditions) -> Result<Tags, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_properties(&self, place: BlobPlace<'_>, change: PropertiesChange, pre: Preconditions) -> Result<PropertiesSet, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_metadata(&self, place: BlobPlace<'_>, metadata: Metadata, pre: Preconditions) -> Result<Stamp, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_tags(&self, place: BlobPlace<'_>, revision: Revision, tags: Tags, pre: Preconditions) -> Result<(), ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn set_tier(&self, place: BlobPlace<'_>, revision: Revision, tier: AccessTier, priority: Option<RehydratePriority>, pre: Preconditions) -> Result<TierSet, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn lease_blob(&self, place: BlobPlace<'_>, request: LeaseRequest, conditions: Conditions) -> Result<Leased, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// `metadata` is that of the snapshot. `None`: the blob's.
    pub async fn snapshot_blob(&self, place: BlobPlace<'_>, metadata: Option<Metadata>, pre: Preconditions) -> Result<Snapshotted, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn delete_blob(&self, place: BlobPlace<'_>, revision: Revision, deletion: Deletion, pre: Preconditions) -> Result<Deleted, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn undelete_blob(&self, place: BlobPlace<'_>) -> Result<(), ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// Copy Blob and Copy Blob From URL. The copy is complete when this returns.
    pub async fn copy_blob(&self, source: CopyFrom<'_>, place: BlobPlace<'_>, request: CopyRequest, pre: Preconditions) -> Result<Copied, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// No copy is ever pending, so this is always a refusal.
    pub async fn abort_copy(&self, place: BlobPlace<'_>, copy_id: Guid, lease: Option<Guid>) -> Result<(), ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    pub async fn list_blobs(&self, account: &AccountName, container: &ContainerName, parameters: &ListBlobsParameters, share: Share) -> Result<BlobPage, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }

    /// In one container, or in all of the account.
    pub async fn find_blobs(&self, account: &AccountName, container: Option<&ContainerName>, parameters: &FindBlobsParameters, share: Share) -> Result<FoundPage, ServiceError> {
        Err(ErrorCode::NotImplemented.into())
    }
}
