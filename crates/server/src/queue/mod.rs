//! The Queue service over HTTP: its requests, its answers and its refusals. `queues` carries the requests out.
//!
//! `queues` runs the operations on queues and `messages` those on messages; `answer` and `refusal` write the result.

mod answer;
mod describe;
mod header_names;
mod messages;
mod queues;
mod refusal;

use std::sync::Arc;

use ::queues::QueueService;
use catalogue::Catalogue;
use protocol::auth::{Need, ServiceKind};
use protocol::common::{AccountName, DateTime};
use protocol::queue::KIND;
use protocol::queue::operation::{MessageAction, MessagesAction, QueueAction, QueueOperation};
use protocol::service::ServiceOperation;

use crate::front::head::RequestHead;
use crate::front::refusal::Refusal;
use crate::front::service::{ErrorBody, PayloadForm, Service, Session};
use crate::front::service_operations;
use crate::http::body::Payload;
use crate::http::response::HeaderList;

use answer::QueueAnswer;

/// The Queue service behind the HTTP door.
pub struct QueueHttp {
    service: Arc<QueueService>,
}

impl QueueHttp {
    pub fn new(service: Arc<QueueService>) -> QueueHttp {
        QueueHttp { service }
    }
}

impl Service for QueueHttp {
    const KIND: &'static ServiceKind = &KIND;
    const OBSERVED: observe::Service = observe::Service::Queue;
    type Request<'a> = QueueOperation<'a>;
    type Answer = QueueAnswer;

    fn catalogue(&self) -> &Catalogue {
        self.service.catalogue()
    }

    /// A request that is no operation is refused as such.
    fn is_write(head: &RequestHead<'_>) -> bool {
        read_operation(head).is_ok_and(|operation| operation.is_write())
    }

    fn read<'a>(&self, head: &RequestHead<'a>, _: &AccountName) -> Result<QueueOperation<'a>, Refusal> {
        read_operation(head)
    }

    fn describe<'r>(request: &'r QueueOperation<'_>) -> (observe::Operation, observe::Named<'r>) {
        describe::describe(request)
    }

    fn need<'r>(request: &'r QueueOperation<'_>) -> Need<'r> {
        request.need()
    }

    fn payload(request: &QueueOperation<'_>) -> PayloadForm {
        match request {
            QueueOperation::Service(ServiceOperation::SetProperties)
            | QueueOperation::Messages { action: MessagesAction::Put, .. } => PayloadForm::Whole,
            // A missing body removes all of a queue's policies, and leaves the text of a message as it is.
            QueueOperation::Queue { action: QueueAction::SetAcl, .. }
            | QueueOperation::Message { action: MessageAction::Update, .. } => PayloadForm::WholeOrAbsent,
            _ => PayloadForm::None,
        }
    }

    async fn run(
        &self,
        session: &Session<'_>,
        request: &Self::Request<'_>,
        payload: &mut Payload,
    ) -> Result<QueueAnswer, Refusal> {
        let service = &self.service;
        let answer = match request {
            QueueOperation::Messages { queue, action } => {
                messages::run(service, session, queue, *action, payload).await?
            }
            QueueOperation::Message { queue, id, action } => {
                messages::run_one(service, session, queue, id, *action, payload).await?
            }
            // Boxed, so that the state of rare operations does not enlarge that of every request.
            QueueOperation::ListQueues => Box::pin(queues::list(service, session)).await?,
            QueueOperation::Queue { queue, action } => {
                Box::pin(queues::run(service, session, queue, *action, payload.bytes())).await?
            }
            QueueOperation::Service(operation) => {
                let run = service_operations::run(self.catalogue(), session, *operation, payload.bytes());
                QueueAnswer::from(Box::pin(run).await?)
            }
        };
        Ok(answer)
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

fn read_operation<'a>(head: &RequestHead<'a>) -> Result<QueueOperation<'a>, Refusal> {
    Ok(QueueOperation::read(head.method, head.target.path, &head.query, head.version)?)
}
