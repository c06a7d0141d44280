//! Entity group transactions: read and check every operation, then make one commit. A batch may also be a single query.
//!
//! Promises: a change set is one commit, so it succeeds or fails as a whole. Leaves to others: the multipart format
//! (`protocol`), each write (`write`), and how a part is written (`part`).

use engine::Version;
use observe::NotedRow;
use protocol::table::limits::BATCH_OPERATION_COUNT_MAX;
use protocol::table::model::TableName;
use protocol::table::operation::{Address, EntityRead, Operation};
use protocol::table::wire::batch::{BatchAnswer, BatchPart, BatchRequest, read_batch};
use protocol::{ErrorCode, ServiceError};
use tables::Transaction;

use super::TableHttp;
use super::answer::{ContentKind, TableAnswer};
use super::outbox::{self, Enqueues, read_enqueue};
use super::request::{Asked, TableRequest};
use super::write::{Reply, note_rows, push, read_change, reserve};
use super::{entities, part};
use crate::front::heavy::TURN_BYTES;
use crate::front::refusal::Refusal;
use crate::front::service::Session;
use crate::http::body::AnswerBody;
use crate::http::memory_pool::{FREE_BYTES, Reservation};

pub async fn run(
    http: &TableHttp,
    session: &Session<'_>,
    asked: &Asked<'_>,
    payload: &[u8],
) -> Result<TableAnswer, Refusal> {
    let batch_id = session.front.request_ids.next();
    let mut reservation = None;
    let answer = match read_batch(asked.content_type, payload)? {
        BatchRequest::ChangeSet(_) if session.head.target.is_secondary => {
            let detail = "Write operations are not allowed.";
            let error = ServiceError::with_detail(ErrorCode::InsufficientAccountPermissions, detail);
            return Err(Refusal::front(error));
        }
        // Like the service, answers an empty change set with an empty one. It names no table that could be missing.
        BatchRequest::ChangeSet(parts) if parts.is_empty() => {
            let change_set_id = session.front.request_ids.next();
            BatchAnswer::new(batch_id.as_str(), Some(change_set_id.as_str()))
        }
        BatchRequest::ChangeSet(parts) => {
            let change_set_id = session.front.request_ids.next();
            let mut answer = BatchAnswer::new(batch_id.as_str(), Some(change_set_id.as_str()));
            match run_change_set(http, session, &parts, asked.version).await {
                Ok(done) => {
                    reservation = done.reservation;
                    for (part, reply) in parts.iter().zip(done.replies) {
                        let done = reply.answer(session, &done.table, done.version)?;
                        answer.push(|out| part::write(&done, part.content_id, out));
                    }
                }
                // Our own failures are reported for the whole request, because clients look there when they decide to
                // retry.
                Err(error) if error.code.status() >= 500 && error.code != ErrorCode::NotImplemented => {
                    return Err(error.into());
                }
                // A failed change set is answered with one part: that of the operation that failed.
                Err(error) => {
                    session.notes.error(error.code);
                    let index = error.operation.unwrap_or(0).min(parts.len() - 1);
                    let place = part::Place { index, is_alone: parts.len() == 1 };
                    answer.push(|out| part::refuse(&parts[index], &error, place, session, out));
                }
            }
            answer
        }
        BatchRequest::Query(part) => {
            let mut answer = BatchAnswer::new(batch_id.as_str(), None);
            match run_query(http, session, &part, asked.version).await {
                Ok(mut found) => {
                    answer.push(|out| part::write(&found, part.content_id, out));
                    reservation = found.body.release();
                }
                Err(refusal) => {
                    session.notes.error(refusal.error.code);
                    let place = part::Place { index: 0, is_alone: false };
                    answer.push(|out| part::refuse(&part, &refusal.error, place, session, out));
                }
            }
            answer
        }
    };
    let content = ContentKind::Multipart { content_type: answer.content_type() };
    let mut body = AnswerBody::whole(answer.finish());
    if let Some(reservation) = reservation {
        // A page's reservation does not count the headers of its part.
        debug_assert!(body.as_bytes().len() <= reservation.bytes() + FREE_BYTES);
        body.hold(reservation);
    }
    Ok(TableAnswer { status: 202, content, body, ..TableAnswer::default() })
}

/// A change set that has happened, and how it will be answered.
struct CommittedSet {
    table: TableName,
    version: Version,
    replies: Vec<Reply>,
    /// Memory for all answers together.
    reservation: Option<Reservation>,
}

async fn run_change_set(
    http: &TableHttp,
    session: &Session<'_>,
    parts: &[BatchPart<'_>],
    version: &str,
) -> Result<CommittedSet, ServiceError> {
    let payload_bytes = parts.iter().map(|part| part.body.len()).sum();
    let turn = session.turn_to_parse(payload_bytes).await;
    let mut transaction = Transaction::new();
    let mut table = None;
    let mut replies: Vec<Reply> = Vec::with_capacity(parts.len());
    let mut enqueues = Enqueues::new();
    let mut read_bytes = 0;
    for (index, part) in parts.iter().enumerate() {
        read_bytes += part.body.len();
        if read_bytes >= TURN_BYTES {
            read_bytes = 0;
            tokio::task::yield_now().await;
        }
        let reply = read_part(session, part, version, true).and_then(|TableRequest { operation, asked }| {
            let write = match &operation {
                Operation::Write(write) => write,
                Operation::PostBelow(_) => return Err(ErrorCode::PropertiesNeedValue.into()),
                _ => return Err(ErrorCode::NotImplemented.into()),
            };
            let (of_table, change) = read_change(write, part.body)?;
            session.grant.authorize_key(&change.partition_key, &change.row_key)?;
            if index == BATCH_OPERATION_COUNT_MAX {
                return Err(too_many_operations());
            }
            if *table.get_or_insert_with(|| of_table.clone()) != *of_table {
                return Err(ErrorCode::CommandsInBatchActOnDifferentPartitions.into());
            }
            if let Some(enqueue) = read_enqueue(session, &asked.outbox)? {
                enqueues.push((index, enqueue));
            }
            push(&mut transaction, change, &asked)
        });
        // Like the service, reports the first operation past the limit with the index of the last one allowed.
        let index = index.min(BATCH_OPERATION_COUNT_MAX - 1);
        replies.push(reply.map_err(|error| error.of_operation(index))?);
    }
    let table = table.ok_or(ErrorCode::InvalidInput)?;
    drop(turn);
    note_rows(session, &table, &transaction);
    let bytes_max = |(reply, part): (&Reply, &BatchPart<'_>)| {
        reply.bytes_max(session, &table, part.body.len()) + part.content_id.map_or(0, str::len)
    };
    let reservation = reserve(session, replies.iter().zip(parts).map(bytes_max).sum())?;
    let version = outbox::commit(http, session, &table, transaction, &enqueues).await?;
    Ok(CommittedSet { table, version, replies, reservation })
}

async fn run_query(
    http: &TableHttp,
    session: &Session<'_>,
    part: &BatchPart<'_>,
    version: &str,
) -> Result<TableAnswer, Refusal> {
    let TableRequest { operation, asked } = read_part(session, part, version, false)?;
    match operation {
        Operation::Read(read) => {
            note_read(session, &read, &asked);
            entities::run(http, session, &read, &asked).await
        }
        Operation::Tables(_) => Err(ErrorCode::NotImplemented.into()),
        // A write must be in a change set.
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

/// Notes what is read, which only the part says.
fn note_read(session: &Session<'_>, read: &EntityRead<'_>, asked: &Asked<'_>) {
    match read {
        EntityRead::Query(table) => {
            session.notes.query(table.as_str(), asked.options.filter.as_deref().unwrap_or_default());
        }
        EntityRead::Get { address: Address { table, partition_key, row_key }, .. } => {
            let operation = observe::Operation::GetEntity;
            let row = NotedRow { operation, row: row_key, size_bytes: 0, property_count: 0 };
            session.notes.rows(table.as_str(), partition_key, std::iter::once(row));
        }
    }
}

/// Reads an operation of the batch, if the caller is authorized for it.
fn read_part<'a>(
    session: &Session<'_>,
    part: &'a BatchPart<'a>,
    version: &'a str,
    is_in_change_set: bool,
) -> Result<TableRequest<'a>, ServiceError> {
    if is_in_change_set && matches!(part.method, "GET" | "HEAD") {
        return Err(ServiceError::with_detail(
            ErrorCode::InvalidInput,
            format!(
                "An invalid HTTP method '{}' was detected for a request in a change set. Requests in change sets only \
                 support the HTTP methods 'POST', 'PUT', 'DELETE', and 'PATCH'.",
                part.method
            ),
        ));
    }
    let account = session.account.as_str();
    let (path, query) = part.url.split_once('?').unwrap_or((part.url, ""));
    let path = path_in_account(path, account);
    let request = TableRequest::of_part(account, part.method, path, query, &part.headers, version)?;
    session.grant.authorize(&protocol::table::KIND, &request.operation.need())?;
    Ok(request)
}

/// The path of a part's URL within the account. The URL may be absolute, begin at the root, or be relative. Scheme and
/// host are ignored, and the account's own segment may or may not come first.
fn path_in_account<'a>(url: &'a str, account: &str) -> &'a str {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |slash| &rest[slash..]),
        None => url,
    };
    let path = path.strip_prefix('/').unwrap_or(path);
    let after_account =
        path.strip_prefix(account).map(|rest| rest.strip_prefix("-secondary").unwrap_or(rest));
    after_account.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
}

fn too_many_operations() -> ServiceError {
    ServiceError::with_detail(
        ErrorCode::InvalidInput,
        "The batch request operation exceeds the maximum 100 changes per change set.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_url_leads_to_the_same_path() {
        for url in [
            "http://127.0.0.1:10002/acc/t(1)",
            "https://acc.table.core.windows.net/t(1)",
            "http://127.0.0.1:10002/acc-secondary/t(1)",
            "/acc/t(1)",
            "/t(1)",
            "t(1)",
            "acc/t(1)",
        ] {
            assert_eq!(path_in_account(url, "acc"), "t(1)", "{url}");
        }
        assert_eq!(path_in_account("http://h/acc(1)", "acc"), "acc(1)");
        assert_eq!(path_in_account("http://h", "acc"), "");
    }
}
