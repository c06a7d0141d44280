//! Operations on messages: turns parameters and payloads into values, makes one call into the service, and turns the
//! result into an answer.
//!
//! Promises: a text in the usual form is not copied on its way down, and once on its way up. Answers are written in
//! reserved memory, and memory for taken messages is reserved before they are taken.

use ::queues::{NewMessage, PeekedMessage, PutMessage, QueueService, TakenMessage};
use bytes::Bytes;
use http::StatusCode;
use protocol::queue::message_list::{ListedMessage, MESSAGE_OVERHEAD_BYTES, MessageListWriter, listed_bytes};
use protocol::queue::message_text::read_message;
use protocol::queue::operation::{MessageAction, MessagesAction};
use protocol::queue::parameters::{
    GetParameters, PutParameters, UpdateParameters, read_message_count, read_receipt,
};
use protocol::queue::{KIND, MessageId, PopReceipt, QueueName, versions};
use protocol::{ErrorCode, ServiceError};

use super::answer::QueueAnswer;
use crate::front::service::Session;
use crate::front::throttle::Partition;
use crate::http::body::{AnswerBody, Payload};
use crate::http::memory_pool::Reservation;

pub async fn run(
    service: &QueueService,
    session: &Session<'_>,
    queue: &str,
    action: MessagesAction,
    payload: &Payload,
) -> Result<QueueAnswer, ServiceError> {
    let queue = QueueName::parse(queue)?;
    if action != MessagesAction::Clear {
        session.spend(partition(&queue), 1)?;
    }
    match action {
        MessagesAction::Put => put(service, session, &queue, payload).await,
        MessagesAction::Get => get(service, session, &queue).await,
        MessagesAction::Peek => {
            let count_max = read_message_count(&session.head.query)?;
            let mut reservation = session.reserve_answer();
            let peeked = service
                .peek_messages(
                    session.account,
                    &queue,
                    count_max,
                    session.share(),
                    &mut fits_into(&mut reservation),
                )
                .await?;
            session.notes.read(peeked.len() as u64, peeked.len() as u64);
            session.spend_further(partition(&queue), (peeked.len() as u64).saturating_sub(1));
            let messages = peeked.iter().map(of_peeked).collect::<Result<_, _>>()?;
            Ok(write_list(session, messages, reservation))
        }
        MessagesAction::Clear => {
            service.clear_messages(session.account, &queue).await?;
            Ok(QueueAnswer::empty(StatusCode::NO_CONTENT))
        }
    }
}

/// What has a scalability target here is the queue. It counts messages that are put, taken, peeked, changed or deleted.
fn partition(queue: &QueueName) -> Partition<'_> {
    Partition { service: KIND.label, container: queue.as_str(), key: "" }
}

async fn put(
    service: &QueueService,
    session: &Session<'_>,
    queue: &QueueName,
    payload: &Payload,
) -> Result<QueueAnswer, ServiceError> {
    let version = session.head.version;
    let PutParameters { visibility, time_to_live } = PutParameters::read(&session.head.query, version)?;
    let text = read_text(payload, version)?;
    let message = NewMessage { text, visibility, time_to_live };
    let put = service.put_message(session.account, queue, message).await?;
    if version < versions::PUT_ANSWER {
        return Ok(QueueAnswer::empty(StatusCode::CREATED));
    }
    let mut writer = MessageListWriter::begin(version, MESSAGE_OVERHEAD_BYTES);
    writer.push(&of_put(&put));
    Ok(QueueAnswer::created(writer.finish()))
}

async fn get(
    service: &QueueService,
    session: &Session<'_>,
    queue: &QueueName,
) -> Result<QueueAnswer, ServiceError> {
    let GetParameters { count_max, visibility } =
        GetParameters::read(&session.head.query, session.head.version)?;
    let mut reservation = session.reserve_answer();
    let mut fits = fits_into(&mut reservation);
    let taken = service
        .get_messages(session.account, queue, count_max, visibility, session.share(), &mut fits)
        .await?;
    drop(fits);
    session.notes.read(taken.len() as u64, taken.len() as u64);
    session.spend_further(partition(queue), (taken.len() as u64).saturating_sub(1));
    let messages = taken.iter().map(of_taken).collect::<Result<_, _>>()?;
    Ok(write_list(session, messages, reservation))
}

/// Reserves memory for a message and for its place in the list, before it is taken.
fn fits_into(reservation: &mut Reservation) -> impl FnMut(&[u8]) -> bool + Send {
    let mut bytes = 0;
    move |text| {
        bytes += text.len() + listed_bytes(text);
        reservation.grow(bytes)
    }
}

fn write_list(
    session: &Session<'_>,
    messages: Vec<ListedMessage<'_>>,
    reservation: Reservation,
) -> QueueAnswer {
    let text_bytes = |message: &ListedMessage<'_>| message.content.map_or(0, |(_, text)| text.len());
    let bytes = messages.iter().map(|message| text_bytes(message) + MESSAGE_OVERHEAD_BYTES).sum();
    let mut writer = MessageListWriter::begin(session.head.version, bytes);
    messages.iter().for_each(|message| writer.push(message));
    let mut body = AnswerBody::whole(writer.finish());
    body.hold(reservation);
    QueueAnswer::read(body)
}

pub(super) async fn run_one(
    service: &QueueService,
    session: &Session<'_>,
    queue: &str,
    id: &str,
    action: MessageAction,
    payload: &Payload,
) -> Result<QueueAnswer, ServiceError> {
    let (account, query) = (session.account, &session.head.query);
    let queue = QueueName::parse(queue)?;
    session.spend(partition(&queue), 1)?;
    match action {
        MessageAction::Update => {
            let UpdateParameters { receipt, visibility } = UpdateParameters::read(query)?;
            let text = match payload.bytes() {
                [] => None,
                _ => Some(read_text(payload, session.head.version)?),
            };
            let (id, receipt) = find(service, session, &queue, id, receipt).await?;
            let updated = service.update_message(account, &queue, id, receipt, text, visibility).await?;
            Ok(QueueAnswer::updated(updated))
        }
        MessageAction::Delete => {
            let receipt = read_receipt(query)?;
            let (id, receipt) = find(service, session, &queue, id, receipt).await?;
            service.delete_message(account, &queue, id, receipt).await?;
            Ok(QueueAnswer::empty(StatusCode::NO_CONTENT))
        }
    }
}

/// An id or a receipt that we would not write matches no message. A queue that does not exist is told first.
async fn find(
    service: &QueueService,
    session: &Session<'_>,
    queue: &QueueName,
    id: &str,
    receipt: Option<PopReceipt>,
) -> Result<(MessageId, PopReceipt), ServiceError> {
    match MessageId::parse(id).zip(receipt) {
        Some(found) => Ok(found),
        None => {
            service.check_queue(session.account, queue).await?;
            Err(ErrorCode::MessageNotFound.into())
        }
    }
}

/// The text in a payload, which it shares if it is there as it is.
fn read_text(payload: &Payload, version: &str) -> Result<Bytes, ServiceError> {
    use std::borrow::Cow;
    match (read_message(payload.bytes(), version)?, payload) {
        (Cow::Borrowed(text), Payload::Whole(bytes)) => Ok(bytes.slice_ref(text.as_bytes())),
        (text, _) => Ok(Bytes::from(text.into_owned())),
    }
}

fn of_put(message: &PutMessage) -> ListedMessage<'_> {
    ListedMessage {
        id: message.id,
        inserted: message.inserted,
        expires: message.expires,
        hold: Some((message.receipt, message.visible)),
        content: None,
    }
}

fn of_taken(message: &TakenMessage) -> Result<ListedMessage<'_>, ServiceError> {
    Ok(ListedMessage {
        id: message.id,
        inserted: message.inserted,
        expires: message.expires,
        hold: Some((message.receipt, message.visible)),
        content: Some((message.dequeue_count, stored_text(&message.text)?)),
    })
}

fn of_peeked(message: &PeekedMessage) -> Result<ListedMessage<'_>, ServiceError> {
    Ok(ListedMessage {
        id: message.id,
        inserted: message.inserted,
        expires: message.expires,
        hold: None,
        content: Some((message.dequeue_count, stored_text(&message.text)?)),
    })
}

fn stored_text(text: &[u8]) -> Result<&str, ServiceError> {
    let damaged = |_| ServiceError::with_source(ErrorCode::InternalError, "a stored message is not text");
    std::str::from_utf8(text).map_err(damaged)
}
