//! The permission that each operation of the Blob service needs, and what anonymous callers may do.

use crate::auth::{Grant, LetterSet, Letters, Level, Need, Permission, ResourceName, RoleSet};
use crate::{ErrorCode, ServiceError};

use super::identifier::Revision;
use super::kind::{CONTRIBUTOR, OWNER, READER};
use super::operation::{AccountAction, BlobAction, BlobOperation, ContainerAction, DeleteType, LeaseAction};
use super::properties::PublicAccess;
use super::versions;

const WRITERS: RoleSet = CONTRIBUTOR.or(OWNER);
const READERS: RoleSet = READER.or(WRITERS);

impl BlobOperation<'_> {
    /// `sets_tags` tells whether the request has the header `x-ms-tags`, which needs a permission of its own.
    pub fn need(&self, version: &str, sets_tags: bool) -> Need<'_> {
        match self {
            BlobOperation::Service(operation) => operation.need(READERS),
            BlobOperation::Account(action) => match action {
                AccountAction::ListContainers => of_account(Level::Service, &["l"], READERS),
                AccountAction::FindBlobs => of_account(Level::Object, &["f"], READERS),
                // The parts of a batch are authorized one by one, and every caller with credentials may know what kind
                // of account this is.
                AccountAction::Batch | AccountAction::GetAccountInformation => Need::Service,
                // Left to `authorize_delegation`.
                AccountAction::GetUserDelegationKey => Need::Nothing,
            },
            BlobOperation::Container { container, action } => container_need(container, *action, version),
            BlobOperation::Blob { container, blob, revision, action } => {
                let (letters, roles) = blob_letters(*action, *revision, version, sets_tags);
                of_blob(container, blob, letters, roles)
            }
        }
    }

    /// How public the container must be for callers without credentials; `None` if it does not help.
    pub fn public_access(&self) -> Option<PublicAccess> {
        match self {
            BlobOperation::Blob { action, .. } => match action {
                BlobAction::Get
                | BlobAction::GetProperties
                | BlobAction::GetMetadata
                | BlobAction::GetBlockList
                | BlobAction::GetPageRanges => Some(PublicAccess::Blob),
                _ => None,
            },
            BlobOperation::Container { action, .. } => match action {
                ContainerAction::GetProperties
                | ContainerAction::GetMetadata
                | ContainerAction::ListBlobs => Some(PublicAccess::Container),
                _ => None,
            },
            BlobOperation::Service(_) | BlobOperation::Account(_) => None,
        }
    }

    /// Whether callers without credentials may do it in a container with this public access.
    pub fn is_public(&self, access: Option<PublicAccess>) -> bool {
        // A container that shows more also shows less.
        self.public_access().is_some_and(|needed| access.is_some_and(|access| access >= needed))
    }
}

fn container_need<'a>(container: &'a str, action: ContainerAction, version: &str) -> Need<'a> {
    let of_containers = |letters, roles| of_account(Level::Container, letters, roles);
    let of_this = |level, letters, roles| {
        let resource = Some(ResourceName { container, object: None });
        Need::Permission(Permission { level, letters, roles, resource, key: None })
    };
    match action {
        ContainerAction::Create => of_containers(&["c", "w"], WRITERS),
        ContainerAction::GetProperties | ContainerAction::GetMetadata => of_containers(&["r"], READERS),
        ContainerAction::Delete => of_containers(&["d"], WRITERS),
        ContainerAction::SetMetadata | ContainerAction::Restore => of_containers(&["w"], WRITERS),
        ContainerAction::Lease(action) => of_containers(lease_letters(action, version), WRITERS),
        ContainerAction::GetAcl | ContainerAction::SetAcl => Need::AccountKey,
        ContainerAction::ListBlobs => of_this(Level::Container, &["l"], READERS),
        ContainerAction::FindBlobs => of_this(Level::Object, &["f"], READERS),
        ContainerAction::Batch => Need::Service,
    }
}

fn blob_letters(
    action: BlobAction,
    revision: Revision,
    version: &str,
    sets_tags: bool,
) -> (Letters, RoleSet) {
    let creates: Letters = if sets_tags { &["ct", "wt"] } else { &["c", "w"] };
    let writes: Letters = if sets_tags { &["wt"] } else { &["w"] };
    let letters = match action {
        BlobAction::Get
        | BlobAction::GetProperties
        | BlobAction::GetMetadata
        | BlobAction::GetBlockList
        | BlobAction::GetPageRanges => return (&["r"], READERS),
        BlobAction::GetTags => return (&["t"], READERS),
        BlobAction::SetTags => &["t"],
        // Replacing a blob needs more: `authorize_overwrite`.
        BlobAction::Put(_)
        | BlobAction::PutFromUrl
        | BlobAction::Copy
        | BlobAction::CopyFromUrl
        | BlobAction::Snapshot => creates,
        BlobAction::PutBlock | BlobAction::PutBlockFromUrl | BlobAction::PutBlockList
            if version >= versions::CREATE_COVERS_BLOCKS =>
        {
            creates
        }
        BlobAction::AppendBlock | BlobAction::AppendBlockFromUrl => &["a", "w"],
        BlobAction::Lease(action) => lease_letters(action, version),
        BlobAction::Delete(DeleteType::Permanent) if revision.is_base() => &["dy"],
        BlobAction::Delete(DeleteType::Permanent) => &["y"],
        BlobAction::Delete(DeleteType::Usual) => match revision {
            Revision::Version(_) => &["x"],
            Revision::Base | Revision::Snapshot(_) => &["d"],
        },
        BlobAction::PutBlock
        | BlobAction::PutBlockFromUrl
        | BlobAction::PutBlockList
        | BlobAction::AbortCopy
        | BlobAction::SetProperties
        | BlobAction::SetMetadata
        | BlobAction::Undelete
        | BlobAction::SetTier
        | BlobAction::Seal
        | BlobAction::PutPages
        | BlobAction::PutPagesFromUrl
        | BlobAction::ClearPages => writes,
    };
    (letters, WRITERS)
}

fn lease_letters(action: LeaseAction, version: &str) -> Letters {
    match action {
        LeaseAction::Break if version >= versions::DELETE_BREAKS_LEASES => &["w", "d"],
        _ => &["w"],
    }
}

/// What a signature for a single container or blob cannot allow.
fn of_account(level: Level, letters: Letters, roles: RoleSet) -> Need<'static> {
    Need::Permission(Permission { level, letters, roles, resource: None, key: None })
}

fn of_blob<'a>(container: &'a str, blob: &'a str, letters: Letters, roles: RoleSet) -> Need<'a> {
    let resource = Some(ResourceName { container, object: Some(blob) });
    Need::Permission(Permission { level: Level::Object, letters, roles, resource, key: None })
}

/// What reading the source of a copy needs.
pub fn source_need<'a>(container: &'a str, blob: &'a str) -> Need<'a> {
    of_blob(container, blob, &["r"], READERS)
}

/// Whether the caller, who may create blobs, may also replace one that is there.
pub fn authorize_overwrite(grant: &Grant) -> Result<(), ServiceError> {
    let permissions: LetterSet = match grant {
        Grant::Everything | Grant::Roles(_) => return Ok(()),
        Grant::AccountSas { permissions, .. } | Grant::ServiceSas { permissions, .. } => *permissions,
    };
    if permissions.has_all("w") { Ok(()) } else { Err(ErrorCode::UnauthorizedBlobOverwrite.into()) }
}

/// What the caller's user delegation keys may be used for. Only holders of bearer tokens get one.
pub fn authorize_delegation(grant: &Grant) -> Result<crate::auth::DelegationRole, ServiceError> {
    match grant {
        Grant::Roles(roles) if roles.has_any_of(WRITERS) => Ok(crate::auth::DelegationRole::Writer),
        Grant::Roles(roles) if roles.has_any_of(READERS) => Ok(crate::auth::DelegationRole::Reader),
        Grant::Roles(_) => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
        Grant::Everything | Grant::AccountSas { .. } | Grant::ServiceSas { .. } => {
            Err(ServiceError::failed_authentication("Only authentication scheme Bearer is supported"))
        }
    }
}

#[cfg(test)]
mod tests;
