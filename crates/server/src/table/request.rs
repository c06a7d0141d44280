//! Requests to the Table service and parts of a batch: both are read in the same way and checked in the same order.
//!
//! Leaves to others: authorization, the payload, and carrying the operation out.

use protocol::common::AccountName;
use protocol::common::query::Query;
use protocol::table::operation::{Component, EntityWrite, Operation, TableOperation};
use protocol::table::wire::headers::{OperationHeaders, OutboxHeaders};
use protocol::table::wire::negotiate::{self, Preference};
use protocol::table::wire::options::QueryOptions;
use protocol::table::wire::{MetadataLevel, uri};
use protocol::{ErrorCode, ServiceError};

use super::header_names::EXPLAIN;
use crate::front::head::RequestHead;
use crate::front::refusal::{Refusal, Stage};

/// The first version in which an update may omit `If-Match`.
const UPSERT_VERSION: &str = "2011-08-18";

/// One operation, and the options it was requested with.
pub struct TableRequest<'a> {
    pub operation: Operation<'a>,
    pub asked: Asked<'a>,
}

/// The options of a request that affect its answer.
pub struct Asked<'a> {
    pub options: QueryOptions<'a>,
    pub content_type: Option<&'a str>,
    /// The protocol version by which the request is served.
    pub version: &'a str,
    /// The metadata level of the answer, if the answer has a body.
    pub level: MetadataLevel,
    /// What `Prefer` asks for. Only operations that create something use it.
    pub preference: Option<Preference>,
    /// Whether the caller wants to know how its query found its rows.
    pub explain: bool,
    /// The message that goes with a write.
    pub outbox: OutboxHeaders<'a>,
}

impl<'a> TableRequest<'a> {
    /// Reads a whole request.
    pub(crate) fn of_head(
        head: &RequestHead<'a>,
        account: &AccountName,
    ) -> Result<TableRequest<'a>, Refusal> {
        let mut headers = OperationHeaders::default();
        for (name, value) in head.parts.headers() {
            // No operation accepts a value that is not ASCII, so any unknown text will do.
            headers.take(name, || if value.is_ascii() { value } else { "\u{FFFD}" });
        }
        let options = QueryOptions::read(&head.query)?;
        let stage = if options.comp.is_some() { Stage::Front } else { Stage::Service };
        let resource = uri::parse_path(head.target.path).map_err(|error| Refusal::new(stage, error))?;
        let component = Component { restype: options.restype.as_deref(), comp: options.comp.as_deref() };
        let operation = Operation::read(account.as_str(), head.method, resource, component, &headers)
            .map_err(|error| Refusal::new(stage, error))?;
        let explain = head.parts.has(EXPLAIN);
        Ok(TableRequest::check(operation, options, &headers, head.version, explain)?)
    }

    /// Reads a part of a batch. `path` is the path within the account.
    pub(crate) fn of_part(
        account: &str,
        method: &'a str,
        path: &'a str,
        query: &'a str,
        headers: &OperationHeaders<'a>,
        version: &'a str,
    ) -> Result<TableRequest<'a>, ServiceError> {
        let resource = uri::parse_path(path)?;
        let options = QueryOptions::read(&Query::split(query))?;
        // Service properties and access policies cannot be used in a batch.
        if options.comp.is_some() {
            return Err(ErrorCode::NotImplemented.into());
        }
        let operation = Operation::read(account, method, resource, Component::default(), headers)?;
        TableRequest::check(operation, options, headers, version, false)
    }

    /// Checks that come before authorization: whether the request can be answered in the form it asks for.
    fn check(
        operation: Operation<'a>,
        options: QueryOptions<'a>,
        headers: &OperationHeaders<'a>,
        version: &'a str,
        explain: bool,
    ) -> Result<TableRequest<'a>, ServiceError> {
        let creates = matches!(
            operation,
            Operation::Tables(TableOperation::Create)
                | Operation::Write(EntityWrite::Insert(_))
                | Operation::PostBelow(_)
        );
        let preference = if creates { Preference::parse(headers.prefer) } else { None };
        let mut request = TableRequest {
            operation,
            asked: Asked {
                options,
                content_type: headers.content_type,
                version,
                level: MetadataLevel::Minimal,
                preference,
                explain,
                outbox: headers.outbox,
            },
        };
        if matches!(request.operation, Operation::Service(_) | Operation::Acl(_)) {
            return Ok(request);
        }
        negotiate::check_data_service_version(headers)?;
        if request.asked.options.has_unsupported {
            return Err(ErrorCode::NotImplemented.into());
        }
        if request.takes_payload() && request.operation != Operation::Batch {
            negotiate::check_content_type(headers.content_type)?;
        }
        if request.has_body() {
            request.asked.level =
                negotiate::response_level(request.asked.options.format.as_deref(), headers)?;
        }
        // Before upserts existed, every update had to have a condition.
        let is_upsert = matches!(
            request.operation,
            Operation::Write(
                EntityWrite::Replace { condition: None, .. } | EntityWrite::Merge { condition: None, .. }
            )
        );
        if is_upsert && version < UPSERT_VERSION { Err(ErrorCode::InvalidInput.into()) } else { Ok(request) }
    }

    pub(crate) fn takes_payload(&self) -> bool {
        use protocol::service::ServiceOperation;
        use protocol::table::operation::AclOperation;
        match &self.operation {
            Operation::Service(operation) => *operation == ServiceOperation::SetProperties,
            Operation::Acl(operation) => matches!(operation, AclOperation::Set(_)),
            Operation::Tables(operation) => *operation == TableOperation::Create,
            Operation::Read(_) | Operation::PostBelow(_) => false,
            Operation::Write(write) => !matches!(write, EntityWrite::Delete { .. }),
            Operation::Batch => true,
        }
    }

    /// Whether a successful answer contains entities or tables.
    fn has_body(&self) -> bool {
        match &self.operation {
            Operation::Tables(TableOperation::Query | TableOperation::Get(_)) | Operation::Read(_) => true,
            Operation::Tables(TableOperation::Create) | Operation::Write(EntityWrite::Insert(_)) => {
                self.asked.returns_content()
            }
            _ => false,
        }
    }
}

impl Asked<'_> {
    /// Whether the answer repeats the created resource.
    pub(crate) fn returns_content(&self) -> bool {
        self.preference != Some(Preference::ReturnNoContent)
    }
}
