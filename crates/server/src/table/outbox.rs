//! The outbox: a write of entities and messages in one atomic step. It goes beyond the service, and only callers that ask
//! for it notice it.
//!
//! A write, alone or in a batch, that carries `x-lazulite-enqueue: QUEUE` and `x-lazulite-message: TEXT IN BASE64` puts the
//! message if, and only if, the whole transaction is committed. The caller needs `a` on the queue too.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::Version;
use protocol::common::xml_write::is_xml_text;
use protocol::queue::message_text::{TEXT_BYTES_MAX, too_large};
use protocol::queue::operation::{MessagesAction, QueueOperation};
use protocol::queue::{KIND, QueueName};
use protocol::table::model::TableName;
use protocol::table::wire::headers::{ENQUEUE, MESSAGE, OutboxHeaders};
use protocol::{ErrorCode, ServiceError};
use queues::{NewMessage, PlannedPut, QueueService};
use tables::{TableService, Transaction};

use super::{TableHttp, spending};
use crate::front::service::Session;

/// As long as a message lives when nobody says how long.
const TIME_TO_LIVE: Duration = Duration::from_secs(7 * 24 * 3600);
/// A queue that is cleared while a message is on its way is looked up again, so often at most.
const ATTEMPT_COUNT_MAX: usize = 10;

/// A message that goes with a write.
pub(crate) struct Enqueue {
    queue: QueueName,
    message: NewMessage,
}

/// The messages of a transaction, each with the index of its operation.
pub(crate) type Enqueues = Vec<(usize, Enqueue)>;

/// The message that goes with an operation, if its caller may put it.
pub(crate) fn read_enqueue(
    session: &Session<'_>,
    headers: &OutboxHeaders<'_>,
) -> Result<Option<Enqueue>, ServiceError> {
    let (queue, text) = match (headers.enqueue, headers.message) {
        (None, None) => return Ok(None),
        (Some(queue), Some(text)) => (queue, text),
        (None, Some(_)) => return Err(missing(ENQUEUE)),
        (Some(_), None) => return Err(missing(MESSAGE)),
    };
    let operation = QueueOperation::Messages { queue: queue.into(), action: MessagesAction::Put };
    session.authorize_elsewhere(&KIND, &operation.need())?;
    let queue = QueueName::parse(queue)?;
    let text = STANDARD.decode(text).ok().and_then(|text| String::from_utf8(text).ok());
    let text = text.filter(|text| is_xml_text(text)).ok_or_else(|| {
        ServiceError::from(ErrorCode::InvalidHeaderValue).with_element("HeaderName", MESSAGE)
    })?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(too_large(TEXT_BYTES_MAX));
    }
    let message =
        NewMessage { text: text.into(), visibility: Duration::ZERO, time_to_live: Some(TIME_TO_LIVE) };
    Ok(Some(Enqueue { queue, message }))
}

fn missing(header: &'static str) -> ServiceError {
    ServiceError::from(ErrorCode::MissingRequiredHeader).with_element("HeaderName", header)
}

/// Commits the transaction and puts its messages, all or nothing.
pub(crate) async fn commit(
    http: &TableHttp,
    session: &Session<'_>,
    table: &TableName,
    transaction: Transaction,
    enqueues: &Enqueues,
) -> Result<Version, ServiceError> {
    let (service, outbox) = (http.service_of(table)?, &http.outbox);
    let row_count = transaction.len() as u64;
    session.spend(spending::partition(table, transaction.partition_key()), row_count)?;
    for row in transaction.rows() {
        session.notes.row(row.size_bytes.into(), row.property_count.into());
    }
    let outcome = if enqueues.is_empty() {
        service.commit(session.account, table, transaction).await
    } else {
        commit_with_messages(service, outbox, session, table, transaction, enqueues).await
    };
    if outcome.is_ok() {
        session.notes.written(row_count);
    }
    outcome
}

async fn commit_with_messages(
    service: &TableService,
    outbox: &Option<Arc<QueueService>>,
    session: &Session<'_>,
    table: &TableName,
    transaction: Transaction,
    enqueues: &Enqueues,
) -> Result<Version, ServiceError> {
    let outbox = outbox.as_ref().ok_or(ErrorCode::NotImplemented)?;
    for _ in 0..ATTEMPT_COUNT_MAX {
        let mut planned = Vec::with_capacity(enqueues.len());
        for (index, Enqueue { queue, message }) in enqueues {
            match outbox.plan_put(session.account, queue, message).await {
                Ok(put) => planned.push(put),
                Err(error) => {
                    end(planned, None);
                    return Err(error.of_operation(*index));
                }
            }
        }
        let puts = planned.iter().map(|put| put.commit.clone()).collect();
        let outcome = service.commit_with(session.account, table, transaction.clone(), puts).await;
        let version = outcome.as_ref().ok().copied();
        end(planned, version);
        match outcome {
            // The table, or one of the queues: those that are really gone are missed at the next look.
            Err(error) if error.code == ErrorCode::TableNotFound => {
                for (_, Enqueue { queue, .. }) in enqueues {
                    outbox.forget_queue(session.account, queue);
                }
                service.check_table(session.account, table).await?;
            }
            outcome => return outcome,
        }
    }
    Err(ErrorCode::ServerBusy.into())
}

/// The commit of these puts has ended, or never began.
fn end(planned: Vec<PlannedPut>, version: Option<Version>) {
    for put in planned {
        put.end(version);
    }
}
