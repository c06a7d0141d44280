//! A request to the Blob service, as far as its head tells.

use std::time::Duration;

use protocol::blob::Headers;
use protocol::blob::operation::{AccountAction, BlobAction, BlobOperation, ContainerAction};
use protocol::blob::properties::BlobType;
use protocol::service::ServiceOperation;
use protocol::{ErrorCode, ServiceError};

use super::website::visitor_headers;
use crate::front::head::RequestHead;
use crate::front::service::PayloadForm;
use crate::http::header_names::CONTENT_LENGTH;

/// How long a batch, and a list of blocks, may take.
const BATCH_TIME_MAX: Duration = Duration::from_secs(120);
const BLOCK_LIST_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a body of unknown length, or a copy, may take.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(2 * 60 * 60);
/// Slower senders run out of time.
const TRANSFER_BYTES_PER_SECOND_MIN: u64 = 128 * 1024;

#[derive(Clone)]
pub struct BlobRequest<'a> {
    pub operation: BlobOperation<'a>,
    pub headers: Headers<'a>,
    pub version: &'a str,
    /// How long the body says it is.
    pub announced: Option<u64>,
    /// Whether it is a visit to the account's website.
    pub is_visit: bool,
}

impl<'a> BlobRequest<'a> {
    pub fn read(head: &RequestHead<'a>) -> Result<BlobRequest<'a>, ServiceError> {
        if head.target.is_site {
            let operation = BlobOperation::read_visit(head.method, head.target.path)?;
            let headers = visitor_headers(head);
            return Ok(BlobRequest {
                operation,
                headers,
                version: head.version,
                announced: None,
                is_visit: true,
            });
        }
        // The names of metadata are kept as they were sent.
        let headers: Headers<'_> = head.parts.spelt_headers().collect();
        let operation = BlobOperation::read(head.method, head.target.path, &head.query, &headers)?;
        let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        Ok(BlobRequest { operation, headers, version: head.version, announced, is_visit: false })
    }

    /// Whether it sets tags beside what else it does, which needs a permission of its own.
    pub fn sets_tags(&self) -> bool {
        self.headers.has("x-ms-tags")
    }

    pub fn payload(&self) -> PayloadForm {
        match &self.operation {
            BlobOperation::Service(ServiceOperation::SetProperties) => PayloadForm::Whole,
            BlobOperation::Service(_) => PayloadForm::None,
            BlobOperation::Account(action) => match action {
                AccountAction::Batch | AccountAction::GetUserDelegationKey => PayloadForm::Whole,
                _ => PayloadForm::None,
            },
            BlobOperation::Container { action, .. } => match action {
                ContainerAction::Batch => PayloadForm::Whole,
                // A missing body removes all policies.
                ContainerAction::SetAcl => PayloadForm::WholeOrAbsent,
                _ => PayloadForm::None,
            },
            BlobOperation::Blob { action, .. } => match action {
                BlobAction::SetTags => PayloadForm::Whole,
                // A list of blocks may be longer than what is read as a whole.
                BlobAction::Put(BlobType::Block)
                | BlobAction::PutBlock
                | BlobAction::PutBlockList
                | BlobAction::AppendBlock
                | BlobAction::PutPages => PayloadForm::Stream,
                _ => PayloadForm::None,
            },
        }
    }

    /// How long it may take; `asked` is what the caller allows. Transfers of data take as long as the data needs.
    pub fn time_max(&self, asked: Duration) -> Duration {
        let BlobOperation::Blob { action, .. } = &self.operation else {
            let is_batch = matches!(
                self.operation,
                BlobOperation::Account(AccountAction::Batch)
                    | BlobOperation::Container { action: ContainerAction::Batch, .. }
            );
            return if is_batch { BATCH_TIME_MAX } else { asked };
        };
        match action {
            BlobAction::Put(BlobType::Block)
            | BlobAction::PutBlock
            | BlobAction::AppendBlock
            | BlobAction::PutPages => match self.announced {
                Some(bytes) => asked + Duration::from_secs(bytes / TRANSFER_BYTES_PER_SECOND_MIN),
                None => TRANSFER_TIME_MAX,
            },
            BlobAction::PutFromUrl
            | BlobAction::PutBlockFromUrl
            | BlobAction::AppendBlockFromUrl
            | BlobAction::PutPagesFromUrl
            | BlobAction::Copy
            | BlobAction::CopyFromUrl => TRANSFER_TIME_MAX,
            BlobAction::PutBlockList => asked.max(BLOCK_LIST_TIME_MAX),
            _ => asked,
        }
    }

    /// Refuses a write that says nothing about its length. Requests inside a batch have no body.
    pub(crate) fn check_length(&self, head: &RequestHead<'_>) -> Result<(), ErrorCode> {
        let is_inner = matches!(self.operation, BlobOperation::Blob { action: BlobAction::SetTier, .. });
        if matches!(head.method, "PUT" | "POST") && !head.parts.announces_body() && !is_inner {
            return Err(ErrorCode::MissingContentLengthHeader);
        }
        Ok(())
    }
}
