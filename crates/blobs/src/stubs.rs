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
}
