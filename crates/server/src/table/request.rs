//! Requests to the Table service and parts of a batch: both are read in the same way and checked in the same order.
//!
//! Leaves to others: authorization, the payload, and carrying the operation out.

use protocol::common::AccountName;
use protocol::common::headers::X_HTTP_METHOD;
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
        let headers = read_headers(head);
        let options = QueryOptions::read(&head.query)?;
        let stage = if options.comp.is_some() { Stage::Front } else { Stage::Service };
        let resource = uri::parse_path(head.target.path).map_err(|error| Refusal::new(stage, error))?;
        let component = Component { restype: options.restype.as_deref(), comp: options.comp.as_deref() };
        let operation = Operation::read(account.as_str(), head.method, resource, component, &headers)
            .map_err(|error| Refusal::new(stage, error))?;
        let explain = head.parts.has(EXPLAIN);
        let mut request = TableRequest::new(operation, options, &headers, head.version, explain);
        request.check(&headers)?;
        Ok(request)
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
        let mut request = TableRequest::new(operation, options, headers, version, false);
        request.check(headers)?;
        Ok(request)
    }

    fn new(
        operation: Operation<'a>,
        options: QueryOptions<'a>,
        headers: &OperationHeaders<'a>,
        version: &'a str,
        explain: bool,
    ) -> TableRequest<'a> {
        let creates = matches!(
            operation,
            Operation::Tables(TableOperation::Create)
                | Operation::Write(EntityWrite::Insert(_))
                | Operation::PostBelow(_)
        );
        let preference = if creates { Preference::parse(headers.prefer) } else { None };
        TableRequest {
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
        }
    }

    /// Checks that come before authorization: whether the request can be answered in the form it asks for.
    fn check(&mut self, headers: &OperationHeaders<'a>) -> Result<(), ServiceError> {
        if matches!(self.operation, Operation::Service(_) | Operation::Acl(_)) {
            return Ok(());
        }
        negotiate::check_data_service_version(headers)?;
        if self.asked.options.has_unsupported {
            return Err(ErrorCode::NotImplemented.into());
        }
        if self.takes_payload() && self.operation != Operation::Batch {
            negotiate::check_content_type(headers.content_type)?;
        }
        if self.has_body() {
            self.asked.level = negotiate::response_level(self.asked.options.format.as_deref(), headers)?;
        }
        // Before upserts existed, every update had to have a condition.
        let is_upsert = matches!(
            self.operation,
            Operation::Write(
                EntityWrite::Replace { condition: None, .. } | EntityWrite::Merge { condition: None, .. }
            )
        );
        if is_upsert && self.asked.version < UPSERT_VERSION {
            Err(ErrorCode::InvalidInput.into())
        } else {
            Ok(())
        }
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

/// Most of these headers are known to be absent at once.
fn read_headers<'a>(head: &RequestHead<'a>) -> OperationHeaders<'a> {
    OperationHeaders {
        x_http_method_count: head.parts.values(X_HTTP_METHOD).count(),
        ..OperationHeaders::find(|name| ascii(head.header(name)))
    }
}

/// No operation accepts a value that is not ASCII, so any unknown text will do.
fn ascii(value: Option<&str>) -> Option<&str> {
    value.map(|value| if value.is_ascii() { value } else { "\u{FFFD}" })
}

impl Asked<'_> {
    /// Whether the answer repeats the created resource.
    pub(crate) fn returns_content(&self) -> bool {
        self.preference != Some(Preference::ReturnNoContent)
    }
}
