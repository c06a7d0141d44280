//! Operations on containers: turns headers, parameters and payloads into values, makes one call into the service, and turns
//! the result into an answer.

use blobs::{BlobService, ContainerView, NewContainer};
use protocol::blob::conditions::Conditions;
use protocol::blob::container_list::{ContainerListWriter, ENCRYPTION_SCOPE_USUAL, ListContainersParameters};
use protocol::blob::lease::{LeaseRequest, read_lease_id};
use protocol::blob::operation::ContainerAction;
use protocol::blob::properties::{PUBLIC_ACCESS, PublicAccess};
use protocol::blob::{ContainerAcl, ContainerName, Headers};
use protocol::common::acl::write_acl;
use protocol::common::headers::missing_header;
use protocol::common::xml_write::without_mark;
use protocol::{ErrorCode, ServiceError};

use super::answer::BlobAnswer;
use crate::front::service::Session;
use crate::http::body::AnswerBody;

const DELETED_NAME: &str = "x-ms-deleted-container-name";
const DELETED_VERSION: &str = "x-ms-deleted-container-version";

pub async fn run(
    service: &BlobService,
    session: &Session<'_>,
    headers: &Headers<'_>,
    container: &ContainerName,
    action: ContainerAction,
    payload: &[u8],
) -> Result<BlobAnswer, ServiceError> {
    let account = session.account;
    let conditions = Conditions::read_container(headers, action)?;
    let stamp = match action {
        ContainerAction::Create => {
            let new = NewContainer {
                metadata: headers.metadata()?,
                public_access: PublicAccess::read(headers, PUBLIC_ACCESS)?,
                default_encryption_scope: headers.get("x-ms-default-encryption-scope").map(Box::from),
                deny_encryption_scope_override: headers.flag("x-ms-deny-encryption-scope-override")?,
            };
            let stamp = service.create_container(account, container, new).await?;
            return Ok(BlobAnswer::empty(201).stamp(stamp.etag, stamp.last_modified));
        }
        ContainerAction::GetProperties => {
            let lease = read_lease_id(headers)?;
            return Ok(properties(&service.container_properties(account, container, lease).await?));
        }
        ContainerAction::GetMetadata => {
            let lease = read_lease_id(headers)?;
            let found = service.container_properties(account, container, lease).await?;
            let answer = BlobAnswer::empty(200).stamp(found.etag, found.last_modified);
            return Ok(answer.metadata(&found.metadata));
        }
        ContainerAction::SetMetadata => {
            let (metadata, lease) = (headers.metadata()?, read_lease_id(headers)?);
            service.set_container_metadata(account, container, metadata, lease, &conditions).await?
        }
        ContainerAction::GetAcl => {
            let found = service.container_acl(account, container, read_lease_id(headers)?).await?;
            let stamp = found.container.stamp();
            let access = found.container.public_access.map(PublicAccess::as_str);
            return Ok(BlobAnswer::document(without_mark(write_acl(&found.policies)))
                .stamp(stamp.etag, stamp.last_modified)
                .header_if(PUBLIC_ACCESS, access));
        }
        ContainerAction::SetAcl => {
            let (acl, lease) = (ContainerAcl::read(headers, payload)?, read_lease_id(headers)?);
            service.set_container_acl(account, container, &acl, lease, &conditions).await?
        }
        ContainerAction::Lease(action) => {
            let request = LeaseRequest::read(action, headers)?;
            let leased = service.lease_container(account, container, request, &conditions).await?;
            return Ok(super::changes::leased(&leased));
        }
        ContainerAction::Delete => {
            let lease = read_lease_id(headers)?;
            service.delete_container(account, container, lease, &conditions).await?;
            return Ok(BlobAnswer::empty(202));
        }
        ContainerAction::Restore => {
            let name = headers.get(DELETED_NAME).ok_or_else(|| missing_header(DELETED_NAME))?;
            let version = headers.get(DELETED_VERSION).ok_or_else(|| missing_header(DELETED_VERSION))?;
            let stamp = service.restore_container(account, container, name, version).await?;
            return Ok(BlobAnswer::empty(201).stamp(stamp.etag, stamp.last_modified));
        }
        // These are about what is in a container.
        ContainerAction::ListBlobs | ContainerAction::FindBlobs | ContainerAction::Batch => {
            return Err(ErrorCode::InternalError.into());
        }
    };
    Ok(BlobAnswer::empty(200).stamp(stamp.etag, stamp.last_modified))
}

fn properties(found: &ContainerView) -> BlobAnswer {
    let scope = found.default_encryption_scope.as_deref().unwrap_or(ENCRYPTION_SCOPE_USUAL);
    let denies = if found.deny_encryption_scope_override { "true" } else { "false" };
    BlobAnswer::empty(200)
        .stamp(found.etag, found.last_modified)
        .header("x-ms-lease-status", found.lease.status())
        .header("x-ms-lease-state", found.lease.state())
        .header_if("x-ms-lease-duration", found.lease.duration())
        .header_if(PUBLIC_ACCESS, found.public_access.map(PublicAccess::as_str))
        .header("x-ms-has-immutability-policy", "false")
        .header("x-ms-has-legal-hold", "false")
        .header("x-ms-immutable-storage-with-versioning-enabled", "false")
        .header("x-ms-default-encryption-scope", scope)
        .header("x-ms-deny-encryption-scope-override", denies)
        .metadata(&found.metadata)
}

pub async fn list(service: &BlobService, session: &Session<'_>) -> Result<BlobAnswer, ServiceError> {
    let parameters = ListContainersParameters::read(&session.head.query, session.account)?;
    let page = service.list_containers(session.account, &parameters, session.share()).await?;
    session.notes.read(page.containers.len() as u64, page.containers.len() as u64);
    let (version, count) = (session.head.version, page.containers.len());
    let mut reservation = session.reserve_answer();
    let base = session.base.to_string();
    let mut writer = ContainerListWriter::begin(&base, session.account, &parameters, version, count);
    let mut written_count = 0;
    for container in &page.containers {
        if !writer.push(&container.listed(), |bytes| reservation.grow(bytes)) {
            break;
        }
        written_count += 1;
    }
    // When memory is short, pages get shorter. One that ends before its first container would lead the caller to the same
    // place again and again.
    let next = match page.containers.get(written_count) {
        Some(_) if written_count == 0 => return Err(ErrorCode::ServerBusy.into()),
        Some(container) => Some(&*container.name),
        None => page.next.as_deref(),
    };
    let mut body = AnswerBody::whole(writer.finish(next));
    body.hold(reservation);
    Ok(BlobAnswer::read(body))
}

/// Get Account Information.
pub fn account_information() -> BlobAnswer {
    BlobAnswer::empty(200)
        .header("x-ms-sku-name", "Standard_LRS")
        .header("x-ms-account-kind", "StorageV2")
        .header("x-ms-is-hns-enabled", "false")
}
