//! The Table service over HTTP: its requests, its answers and its refusals. `tables` carries the requests out.
//!
//! `request` reads a request or a part of a batch; `tables`, `entities`, `write`, `batch` and `acl` run it, and `outbox`
//! commits; `describe` names it for metrics, and `spending` says what it costs; `scan_rule` may refuse its plan; `answer`,
//! `part` and `refusal` write the result.

mod acl;
mod answer;
mod batch;
mod describe;
mod entities;
mod header_names;
mod outbox;
mod part;
mod refusal;
mod request;
mod scan_rule;
mod spending;
mod tables;
mod write;

use std::sync::Arc;

use ::queues::QueueService;
use ::tables::TableService;
use catalogue::Catalogue;
use protocol::auth::{Need, ServiceKind};
use protocol::common::{AccountName, DateTime};
use protocol::table::KIND;
use protocol::table::model::TableName;
use protocol::table::operation::{AclOperation, Operation};
use protocol::table::wire::uri::{self, Resource};
use protocol::{ErrorCode, ServiceError};

use crate::front::head::RequestHead;
use crate::front::refusal::{Refusal, Stage};
use crate::front::service::{ErrorBody, PayloadForm, Service, Session};
use crate::front::service_operations;
use crate::http::body::Payload;
use crate::http::response::HeaderList;

use answer::TableAnswer;
use request::TableRequest;

pub use scan_rule::ScanRule;

/// The Table service behind the HTTP door.
pub struct TableHttp {
    service: TableService,
    /// Holds the tables that the server itself writes.
    system: Option<TableService>,
    outbox: Option<Arc<QueueService>>,
    scan_rule: Option<ScanRule>,
}

impl TableHttp {
    pub fn new(service: TableService) -> TableHttp {
        TableHttp { service, system: None, outbox: None, scan_rule: None }
    }

    /// The same, with queues that a transaction can put messages into.
    pub fn with_outbox(self, queues: Arc<QueueService>) -> TableHttp {
        TableHttp { outbox: Some(queues), ..self }
    }

    /// The same, with the tables that the server itself writes.
    pub fn with_system_tables(self, system: TableService) -> TableHttp {
        TableHttp { system: Some(system), ..self }
    }

    /// The same, for test suites: it refuses scans.
    pub fn refusing_scans(self, rule: ScanRule) -> TableHttp {
        TableHttp { scan_rule: Some(rule), ..self }
    }

    /// The service that holds the table, if there is such a table at all.
    fn service_of(&self, table: &TableName) -> Result<&TableService, ErrorCode> {
        match table.is_system() {
            false => Ok(&self.service),
            true => self.system.as_ref().ok_or(ErrorCode::TableNotFound),
        }
    }
}

impl Service for TableHttp {
    const KIND: &'static ServiceKind = &KIND;
    const OBSERVED: observe::Service = observe::Service::Table;
    type Request<'a> = TableRequest<'a>;
    type Answer = TableAnswer;

    fn catalogue(&self) -> &Catalogue {
        self.service.catalogue()
    }

    /// A batch may hold a single query, which the secondary answers. `batch` refuses change sets there.
    fn is_write(head: &RequestHead<'_>) -> bool {
        match head.method {
            "GET" | "HEAD" => false,
            "POST" => !matches!(uri::parse_path(head.target.path), Ok(Resource::Batch)),
            _ => true,
        }
    }

    fn read<'a>(&self, head: &RequestHead<'a>, account: &AccountName) -> Result<TableRequest<'a>, Refusal> {
        TableRequest::of_head(head, account)
    }

    fn describe<'r>(request: &'r TableRequest<'_>) -> (observe::Operation, observe::Named<'r>) {
        describe::describe(request)
    }

    fn need<'r>(request: &'r TableRequest<'_>) -> Need<'r> {
        request.operation.need()
    }

    fn forbid(request: &TableRequest<'_>, error: ServiceError) -> Refusal {
        let is_xml = matches!(request.operation, Operation::Service(_) | Operation::Acl(_));
        Refusal::new(if is_xml { Stage::Front } else { Stage::Service }, error)
    }

    fn payload(request: &TableRequest<'_>) -> PayloadForm {
        match request.operation {
            // A missing body removes all of a table's policies.
            Operation::Acl(AclOperation::Set(_)) => PayloadForm::WholeOrAbsent,
            _ if request.takes_payload() => PayloadForm::Whole,
            _ => PayloadForm::None,
        }
    }

    async fn run(
        &self,
        session: &Session<'_>,
        request: &Self::Request<'_>,
        payload: &mut Payload,
    ) -> Result<TableAnswer, Refusal> {
        let service = &self.service;
        let payload = payload.bytes();
        let TableRequest { operation, asked } = request;
        match operation {
            Operation::Read(read) => entities::run(self, session, read, asked).await,
            Operation::Write(write) => write::run_one(self, session, write, asked, payload).await,
            // Boxed, so that the state of rare operations does not enlarge that of every request.
            Operation::Tables(operation) => {
                Box::pin(tables::run(self, session, operation, asked, payload)).await
            }
            Operation::Batch => Box::pin(batch::run(self, session, asked, payload)).await,
            Operation::PostBelow(table) => {
                let refusal = Box::pin(tables::refuse_post_below(service, session, table, asked)).await;
                write::repeat_preference(Err(refusal), asked.preference)
            }
            Operation::Service(operation) => {
                let run = service_operations::run(self.catalogue(), session, *operation, payload);
                Box::pin(run).await.map(TableAnswer::from).map_err(Refusal::front)
            }
            Operation::Acl(operation) => Box::pin(acl::run(self.catalogue(), session, operation, payload))
                .await
                .map_err(Refusal::front),
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
