//! The Blob service over HTTP: its requests, its answers and its refusals. `blobs` carries the requests out.
//!
//! | file | what it knows |
//! |---|---|
//! | `request.rs` | a request's head |
//! | `containers.rs`, `lists.rs` | operations on the account and on containers |
//! | `reads.rs`, `writes.rs`, `changes.rs`, `from_url.rs` | operations on blobs |
//! | `copy_source.rs`, `outside.rs` | the source of a copy, here or elsewhere, and whether the caller may read it |
//! | `batch.rs`, `delegation.rs` | batches, and keys for others |
//! | `website.rs` | visits to an account's website |
//! | `upload.rs`, `download.rs` | bytes in both directions |
//! | `answer.rs`, `refusal.rs` | writes the result |

mod answer;
mod batch;
mod changes;
mod containers;
mod copy_source;
mod delegation;
mod describe;
mod download;
mod from_url;
mod lists;
mod outside;
mod reads;
mod refusal;
mod request;
mod upload;
mod website;
mod writes;

use std::time::Duration;

use blobs::{BlobPlace, BlobService, Preconditions, Stamp};
use catalogue::Catalogue;
use protocol::ServiceError;
use protocol::auth::{Need, ServiceKind};
use protocol::blob::conditions::Conditions;
use protocol::blob::encryption::{self, Encryption};
use protocol::blob::identifier::Revision;
use protocol::blob::lease::read_lease_id;
use protocol::blob::operation::{AccountAction, BlobAction, BlobOperation, ContainerAction};
use protocol::blob::permission::authorize_overwrite;
use protocol::blob::{BlobName, ContainerName, KIND};
use protocol::common::service_properties::read_extended_update;
use protocol::common::xml_write::without_mark;
use protocol::common::{AccountName, DateTime, Metadata};
use protocol::service::ServiceOperation;

use crate::front::head::RequestHead;
use crate::front::refusal::Refusal;
use crate::front::service::{ErrorBody, PayloadForm, Service, Session};
use crate::front::service_operations;
use crate::front::throttle::Partition;
use crate::http::body::Payload;
use crate::http::response::HeaderList;

use answer::BlobAnswer;
pub use outside::CopySources;
use request::BlobRequest;

/// The Blob service behind the HTTP door.
pub struct BlobHttp {
    service: BlobService,
    /// Other servers that copies may come from.
    outside: Option<CopySources>,
}

impl BlobHttp {
    pub fn new(service: BlobService) -> BlobHttp {
        BlobHttp { service, outside: None }
    }

    pub fn with_outside_sources(self, sources: CopySources) -> BlobHttp {
        BlobHttp { outside: Some(sources), ..self }
    }
}

/// What a request to a blob counts as, where a partition of a table has a target of 2,000 rows a second: a blob has one of 500
/// requests.
const REQUEST_ROW_COUNT: u64 = 4;

impl Service for BlobHttp {
    const KIND: &'static ServiceKind = &KIND;
    const OBSERVED: observe::Service = observe::Service::Blob;
    const HAS_PUBLIC_DATA: bool = true;
    type Request<'a> = BlobRequest<'a>;
    type Answer = BlobAnswer;

    fn catalogue(&self) -> &Catalogue {
        self.service.catalogue()
    }

    /// A request that is no operation is refused as such.
    fn is_write(head: &RequestHead<'_>) -> bool {
        BlobRequest::read(head).is_ok_and(|request| request.operation.is_write())
    }

    fn read<'a>(&self, head: &RequestHead<'a>, _: &AccountName) -> Result<BlobRequest<'a>, Refusal> {
        Ok(BlobRequest::read(head)?)
    }

    fn describe<'r>(request: &'r BlobRequest<'_>) -> (observe::Operation, observe::Named<'r>) {
        describe::describe(&request.operation)
    }

    fn need<'r>(request: &'r BlobRequest<'_>) -> Need<'r> {
        request.operation.need(request.version, request.sets_tags())
    }

    async fn is_public(
        &self,
        account: &AccountName,
        request: &Self::Request<'_>,
    ) -> Result<bool, ServiceError> {
        if request.is_visit {
            return Ok(true);
        }
        let (BlobOperation::Container { container, .. } | BlobOperation::Blob { container, .. }) =
            &request.operation
        else {
            return Ok(false);
        };
        if request.operation.public_access().is_none() {
            return Ok(false);
        }
        let Ok(container) = ContainerName::parse(container) else { return Ok(false) };
        let access = self.service.public_access(account, &container).await?;
        Ok(request.operation.is_public(access))
    }

    fn payload(request: &BlobRequest<'_>) -> PayloadForm {
        request.payload()
    }

    fn time_max(request: &BlobRequest<'_>, asked: Duration) -> Duration {
        request.time_max(asked)
    }

    async fn run(
        &self,
        session: &Session<'_>,
        request: &Self::Request<'_>,
        payload: &mut Payload,
    ) -> Result<BlobAnswer, Refusal> {
        request.check_length(session.head).map_err(Refusal::front)?;
        match &request.operation {
            BlobOperation::Blob { blob, action, .. } if request.is_visit => {
                Box::pin(self.visit(session, request, blob, *action)).await
            }
            BlobOperation::Blob { container, blob, revision, action } => {
                session.spend(Partition { service: KIND.label, container, key: blob }, REQUEST_ROW_COUNT)?;
                let call = BlobCall {
                    http: self,
                    session,
                    request,
                    container: ContainerName::parse(container)?,
                    blob: BlobName::parse(blob)?,
                    revision: *revision,
                };
                call.run(*action, payload).await
            }
            // Boxed, so that the state of rare operations does not enlarge that of every request.
            BlobOperation::Container { container, action } => {
                let container = ContainerName::parse(container)?;
                Ok(Box::pin(self.run_container(session, request, &container, *action, payload)).await?)
            }
            BlobOperation::Account(action) => {
                Ok(Box::pin(self.run_account(session, *action, payload)).await?)
            }
            BlobOperation::Service(operation) => {
                Ok(Box::pin(self.run_service(session, *operation, payload.bytes())).await?)
            }
        }
    }

    fn refuse<'r>(
        refusal: &'r Refusal,
        head: &RequestHead<'_>,
        now: DateTime,
        headers: &mut HeaderList,
    ) -> ErrorBody<'r> {
        refusal::write(refusal, head, now, headers)
    }
}

impl BlobHttp {
    /// Like that of the other services, but with more properties.
    async fn run_service(
        &self,
        session: &Session<'_>,
        operation: ServiceOperation,
        payload: &[u8],
    ) -> Result<BlobAnswer, ServiceError> {
        let (catalogue, version) = (self.catalogue(), session.head.version);
        match operation {
            ServiceOperation::GetProperties => {
                let properties = catalogue.properties(session.account).await?;
                Ok(BlobAnswer::document(without_mark(properties.write_extended(version))))
            }
            ServiceOperation::SetProperties => {
                let update = read_extended_update(payload, version)?;
                catalogue.update_properties(session.account, update).await?;
                Ok(BlobAnswer::empty(202))
            }
            ServiceOperation::GetStats => {
                Ok(service_operations::run(catalogue, session, operation, payload).await?.into())
            }
        }
    }

    async fn run_account(
        &self,
        session: &Session<'_>,
        action: AccountAction,
        payload: &Payload,
    ) -> Result<BlobAnswer, ServiceError> {
        match action {
            AccountAction::ListContainers => containers::list(&self.service, session).await,
            AccountAction::FindBlobs => lists::find(&self.service, session, None).await,
            AccountAction::Batch => batch::run(self, session, None, payload.bytes()).await,
            AccountAction::GetUserDelegationKey => delegation::get_key(session, payload.bytes()),
            AccountAction::GetAccountInformation => Ok(containers::account_information()),
        }
    }

    async fn run_container(
        &self,
        session: &Session<'_>,
        request: &BlobRequest<'_>,
        container: &ContainerName,
        action: ContainerAction,
        payload: &Payload,
    ) -> Result<BlobAnswer, ServiceError> {
        match action {
            ContainerAction::ListBlobs => lists::list(&self.service, session, container).await,
            ContainerAction::FindBlobs => lists::find(&self.service, session, Some(container)).await,
            ContainerAction::Batch => {
                batch::run(self, session, Some(container.as_str()), payload.bytes()).await
            }
            _ => {
                let headers = &request.headers;
                containers::run(&self.service, session, headers, container, action, payload.bytes()).await
            }
        }
    }
}

/// One operation on a blob, with everything that its head says.
struct BlobCall<'c> {
    http: &'c BlobHttp,
    session: &'c Session<'c>,
    request: &'c BlobRequest<'c>,
    container: ContainerName,
    blob: BlobName,
    revision: Revision,
}

impl BlobCall<'_> {
    async fn run(&self, action: BlobAction, payload: &mut Payload) -> Result<BlobAnswer, Refusal> {
        // Boxed, so that the largest state of all these is not that of every request.
        Ok(match action {
            BlobAction::Get => return self.get().await,
            BlobAction::GetProperties => return self.get_properties().await,
            BlobAction::Put(blob_type) => Box::pin(self.put(blob_type, payload)).await?,
            BlobAction::GetMetadata => self.get_metadata().await?,
            BlobAction::GetTags => self.get_tags().await?,
            BlobAction::GetBlockList => Box::pin(self.get_block_list()).await?,
            BlobAction::GetPageRanges => Box::pin(self.get_page_ranges()).await?,
            BlobAction::PutBlock => Box::pin(self.put_block(payload)).await?,
            BlobAction::PutBlockList => Box::pin(self.put_block_list(payload)).await?,
            BlobAction::AppendBlock => Box::pin(self.append_block(payload)).await?,
            BlobAction::Seal => Box::pin(self.seal()).await?,
            BlobAction::PutPages => Box::pin(self.put_pages(payload)).await?,
            BlobAction::ClearPages => Box::pin(self.clear_pages()).await?,
            BlobAction::PutFromUrl => Box::pin(self.put_from_url()).await?,
            BlobAction::PutBlockFromUrl => Box::pin(self.put_block_from_url()).await?,
            BlobAction::AppendBlockFromUrl => Box::pin(self.append_block_from_url()).await?,
            BlobAction::PutPagesFromUrl => Box::pin(self.put_pages_from_url()).await?,
            BlobAction::Copy => Box::pin(self.copy(false)).await?,
            BlobAction::CopyFromUrl => Box::pin(self.copy(true)).await?,
            BlobAction::AbortCopy => Box::pin(self.abort_copy()).await?,
            BlobAction::SetProperties => Box::pin(self.set_properties()).await?,
            BlobAction::SetMetadata => Box::pin(self.set_metadata()).await?,
            BlobAction::SetTags => Box::pin(self.set_tags(payload.bytes())).await?,
            BlobAction::SetTier => Box::pin(self.set_tier()).await?,
            BlobAction::Lease(action) => Box::pin(self.lease(action)).await?,
            BlobAction::Snapshot => Box::pin(self.snapshot()).await?,
            BlobAction::Delete(delete_type) => Box::pin(self.delete(delete_type)).await?,
            BlobAction::Undelete => Box::pin(self.undelete()).await?,
        })
    }

    fn service(&self) -> &BlobService {
        &self.http.service
    }

    fn place(&self) -> BlobPlace<'_> {
        BlobPlace { account: self.session.account, container: &self.container, blob: &self.blob }
    }

    /// What must be true for the operation to happen.
    fn preconditions(&self) -> Result<Preconditions, ServiceError> {
        let headers = &self.request.headers;
        Ok(Preconditions {
            lease: read_lease_id(headers)?,
            conditions: Conditions::read(headers)?,
            encryption: Encryption::read(headers)?,
            create_only: false,
        })
    }

    /// The same for an operation that takes no condition but that on tags.
    fn preconditions_on_tags(&self) -> Result<Preconditions, ServiceError> {
        let preconditions = self.preconditions()?;
        Ok(Preconditions { conditions: preconditions.conditions.tags_only(), ..preconditions })
    }

    /// The same for an operation that creates the blob, or replaces it if the caller may do that.
    fn preconditions_to_create(&self) -> Result<Preconditions, ServiceError> {
        let create_only = authorize_overwrite(self.session.grant).is_err();
        Ok(Preconditions { create_only, ..self.preconditions()? })
    }

    /// The metadata of the request, if it has any.
    fn sent_metadata(&self) -> Result<Option<Metadata>, ServiceError> {
        let metadata = self.request.headers.metadata()?;
        Ok(Some(metadata).filter(|metadata| metadata.items().len() > 0))
    }
}

impl BlobAnswer {
    /// The headers of everything that writes a blob.
    fn written(self, stamp: &Stamp) -> BlobAnswer {
        self.stamp(stamp.etag, stamp.last_modified)
            .header_if("x-ms-version-id", stamp.version.map(DateTime::to_padded))
    }

    /// How what was written is encrypted.
    fn encrypted_with(self, encryption: &Encryption) -> BlobAnswer {
        self.encrypted()
            .header_if(encryption::KEY_SHA256, encryption.key.map(|key| key.to_header()))
            .header_if(encryption::SCOPE, encryption.scope.as_deref())
    }
}
