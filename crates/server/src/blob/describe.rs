//! What a request to the Blob service is called in metrics and logs, and what its head names.

use observe::{Named, Operation as Observed};
use protocol::blob::operation::{AccountAction, BlobAction, BlobOperation, ContainerAction};
use protocol::service::ServiceOperation;

pub fn describe<'r>(operation: &'r BlobOperation<'_>) -> (Observed, Named<'r>) {
    match operation {
        BlobOperation::Service(operation) => (of_service(*operation), Named::default()),
        BlobOperation::Account(action) => (of_account(*action), Named::default()),
        BlobOperation::Container { container, action } => {
            (of_container(*action), Named { container, ..Named::default() })
        }
        BlobOperation::Blob { container, blob, action, .. } => {
            (of_blob(*action), Named { container, partition: Some(blob), ..Named::default() })
        }
    }
}

fn of_service(operation: ServiceOperation) -> Observed {
    match operation {
        ServiceOperation::GetProperties => Observed::GetBlobServiceProperties,
        ServiceOperation::SetProperties => Observed::SetBlobServiceProperties,
        ServiceOperation::GetStats => Observed::GetBlobServiceStats,
    }
}

fn of_account(action: AccountAction) -> Observed {
    match action {
        AccountAction::ListContainers => Observed::ListContainers,
        AccountAction::FindBlobs => Observed::FindBlobsByTags,
        AccountAction::Batch => Observed::BlobBatch,
        AccountAction::GetUserDelegationKey => Observed::GetUserDelegationKey,
        AccountAction::GetAccountInformation => Observed::GetAccountInformation,
    }
}

fn of_container(action: ContainerAction) -> Observed {
    match action {
        ContainerAction::Create => Observed::CreateContainer,
        ContainerAction::GetProperties => Observed::GetContainerProperties,
        ContainerAction::Delete => Observed::DeleteContainer,
        ContainerAction::GetMetadata => Observed::GetContainerMetadata,
        ContainerAction::SetMetadata => Observed::SetContainerMetadata,
        ContainerAction::GetAcl => Observed::GetContainerAcl,
        ContainerAction::SetAcl => Observed::SetContainerAcl,
        ContainerAction::Lease(_) => Observed::LeaseContainer,
        ContainerAction::ListBlobs => Observed::ListBlobs,
        ContainerAction::FindBlobs => Observed::FindBlobsByTagsInContainer,
        ContainerAction::Batch => Observed::BlobBatch,
        ContainerAction::Restore => Observed::RestoreContainer,
    }
}

fn of_blob(action: BlobAction) -> Observed {
    match action {
        BlobAction::Put(_) => Observed::PutBlob,
        BlobAction::PutFromUrl => Observed::PutBlobFromUrl,
        BlobAction::Copy => Observed::CopyBlob,
        BlobAction::CopyFromUrl => Observed::CopyBlobFromUrl,
        BlobAction::AbortCopy => Observed::AbortCopyBlob,
        BlobAction::Get => Observed::GetBlob,
        BlobAction::GetProperties => Observed::GetBlobProperties,
        BlobAction::SetProperties => Observed::SetBlobProperties,
        BlobAction::GetMetadata => Observed::GetBlobMetadata,
        BlobAction::SetMetadata => Observed::SetBlobMetadata,
        BlobAction::Delete(_) => Observed::DeleteBlob,
        BlobAction::Undelete => Observed::UndeleteBlob,
        BlobAction::Lease(_) => Observed::LeaseBlob,
        BlobAction::Snapshot => Observed::SnapshotBlob,
        BlobAction::SetTier => Observed::SetBlobTier,
        BlobAction::GetTags => Observed::GetBlobTags,
        BlobAction::SetTags => Observed::SetBlobTags,
        BlobAction::PutBlock => Observed::PutBlock,
        BlobAction::PutBlockFromUrl => Observed::PutBlockFromUrl,
        BlobAction::PutBlockList => Observed::PutBlockList,
        BlobAction::GetBlockList => Observed::GetBlockList,
        BlobAction::AppendBlock => Observed::AppendBlock,
        BlobAction::AppendBlockFromUrl => Observed::AppendBlockFromUrl,
        BlobAction::Seal => Observed::SealAppendBlob,
        BlobAction::PutPages | BlobAction::ClearPages => Observed::PutPage,
        BlobAction::PutPagesFromUrl => Observed::PutPageFromUrl,
        BlobAction::GetPageRanges => Observed::GetPageRanges,
    }
}
