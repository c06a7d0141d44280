//! Entity group transactions: every operation read and checked, then one commit; or one query.

use std::net::IpAddr;

use protocol::operation::{Component, Operation};
use protocol::wire::batch::{BATCH_OPERATION_COUNT_MAX, BatchAnswer, BatchPart, BatchRequest, read_batch};
use protocol::wire::headers::OperationHeaders;
use protocol::wire::negotiate;
use protocol::wire::options::QueryOptions;
use protocol::wire::uri;
use protocol::{ErrorCode, ServiceError};
use tables::Transaction;

use crate::answer::{Answer, Body, Refusal};
use crate::handle::Shared;
use crate::heavy::TURN_BYTES;
use crate::respond::{self, Dress};
use crate::tables::{Call, Session, check, run as run_operation};
use crate::write::{Write, Written};

pub async fn run(
    session: &Session<'_>,
    payload: &[u8],
    call: Call<'_>,
    dress: &Dress<'_>,
    shared: &Shared,
) -> Result<Answer, Refusal> {
    let batch_id = shared.request_ids.next();
    let mut room = None;
    let answer = match read_batch(call.headers.content_type, payload)? {
        BatchRequest::ChangeSet(parts) => {
            let change_set_id = shared.request_ids.next();
            let mut answer = BatchAnswer::new(batch_id.as_str(), Some(change_set_id.as_str()));
            match run_change_set(session, &parts, call.version).await {
                Ok(answers) => {
                    for (part, done) in parts.iter().zip(answers) {
                        answer.push(|out| respond::part(&done, part.content_id, out));
                    }
                }
                // Our own trouble is the whole request's: clients try again when they see it there.
                Err(refusal)
                    if refusal.error.code.status() >= 500
                        && refusal.error.code != ErrorCode::NotImplemented =>
                {
                    return Err(refusal);
                }
                // The answer to a change set that fails is one part: that of the operation that failed.
                Err(refusal) => {
                    let index = refusal.error.operation.unwrap_or(0).min(parts.len() - 1);
                    let is_alone = parts.len() == 1;
                    let part = &parts[index];
                    answer.push(|out| {
                        refuse_part(part, refusal, index, is_alone, dress, (shared, session.peer), out)
                    });
                }
            }
            answer
        }
        BatchRequest::Query(part) => {
            let mut answer = BatchAnswer::new(batch_id.as_str(), None);
            match run_query(session, &part, call.version).await {
                Ok(found) => {
                    answer.push(|out| respond::part(&found, part.content_id, out));
                    room = found.room;
                }
                Err(refusal) => {
                    answer.push(|out| {
                        refuse_part(&part, refusal, 0, false, dress, (shared, session.peer), out)
                    });
                }
            }
            answer
        }
    };
    let content_type = answer.content_type();
    let body = Body::Multipart { content_type, bytes: answer.finish() };
    Ok(Answer { status: 202, body, room, ..Answer::default() })
}

async fn run_change_set(
    session: &Session<'_>,
    parts: &[BatchPart<'_>],
    version: &str,
) -> Result<Vec<Answer>, Refusal> {
    let payload_bytes = parts.iter().map(|part| part.body.len()).sum();
    let turn = session.heavy_lane.turn(payload_bytes).await;
    let mut transaction = Transaction::new();
    let mut table = None;
    let mut written: Vec<Written> = Vec::with_capacity(parts.len());
    let mut read_bytes = 0;
    for (index, part) in parts.iter().enumerate() {
        read_bytes += part.body.len();
        if read_bytes >= TURN_BYTES {
            read_bytes = 0;
            tokio::task::yield_now().await;
        }
        let write = read_write(session, part, version).and_then(|write| {
            if index == BATCH_OPERATION_COUNT_MAX {
                return Err(too_many_operations());
            }
            if *table.get_or_insert_with(|| write.table.clone()) != write.table {
                return Err(ErrorCode::CommandsInBatchActOnDifferentPartitions.into());
            }
            transaction.push(write.change)?;
            Ok(write.reply.keep(&transaction, index))
        });
        // The service counts the operation that is one too many as the last one allowed.
        let index = index.min(BATCH_OPERATION_COUNT_MAX - 1);
        written.push(write.map_err(|error| error.of_operation(index))?);
    }
    let table = table.ok_or(ErrorCode::InvalidInput)?;
    drop(turn);
    let version = session.service.commit(session.account, &table, transaction).await?;
    written.iter().map(|written| written.answer(session, &table, version)).collect()
}

fn read_write<'a>(
    session: &Session<'_>,
    part: &'a BatchPart<'a>,
    version: &str,
) -> Result<Write<'a>, ServiceError> {
    if matches!(part.method, "GET" | "HEAD") {
        return Err(ServiceError::with_detail(
            ErrorCode::InvalidInput,
            format!(
                "An invalid HTTP method '{}' was detected for a request in a change set. Requests in change sets only \
                 support the HTTP methods 'POST', 'PUT', 'DELETE', and 'PATCH'.",
                part.method
            ),
        ));
    }
    let (operation, options) = read_operation(session, part, version)?;
    let call = Call { options: &options, headers: &part.headers, version, explain: false };
    let write = Write::read(operation, part.body, call)?.ok_or(ErrorCode::NotImplemented)?;
    session.grant.authorize_key(&write.change.partition_key, &write.change.row_key)?;
    Ok(write)
}

async fn run_query(session: &Session<'_>, part: &BatchPart<'_>, version: &str) -> Result<Answer, Refusal> {
    let (operation, options) = read_operation(session, part, version)?;
    let call = Call { options: &options, headers: &part.headers, version, explain: false };
    match operation {
        Operation::GetEntity { .. } | Operation::QueryEntities(_) => {
            run_operation(session, operation, &[], call).await
        }
        Operation::QueryTables
        | Operation::GetTable(_)
        | Operation::CreateTable
        | Operation::DeleteTable(_) => Err(ErrorCode::NotImplemented.into()),
        // A write belongs into a change set.
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

fn read_operation<'a>(
    session: &Session<'_>,
    part: &'a BatchPart<'a>,
    version: &str,
) -> Result<(Operation<'a>, QueryOptions<'a>), ServiceError> {
    let account = session.account.as_str();
    let (path, query) = part.url.split_once('?').unwrap_or((part.url, ""));
    let resource = uri::parse_path(path_in_account(path, account))?;
    let options = QueryOptions::parse(query)?;
    // Service properties and access policies have no place in a batch.
    if options.comp.is_some() {
        return Err(ErrorCode::NotImplemented.into());
    }
    let operation = Operation::read(account, part.method, resource, Component::default(), &part.headers)?;
    check(&operation, Call { options: &options, headers: &part.headers, version, explain: false })?;
    session.grant.authorize(&operation)?;
    Ok((operation, options))
}

/// The path of a part's URL within the account. Scheme and host do not count; the URL may be absolute, begin at the
/// root, or be relative; the account's own segment may stand in front of the path or not.
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

/// One part that says which operation failed and why.
fn refuse_part(
    part: &BatchPart<'_>,
    refusal: Refusal,
    index: usize,
    is_alone: bool,
    dress: &Dress<'_>,
    (shared, peer): (&Shared, IpAddr),
    out: &mut Vec<u8>,
) {
    let error = refusal.error;
    let OperationHeaders { accept, prefer, x_http_method, .. } = part.headers;
    let message = if is_alone && error.code.is_raised_by_execution() {
        error.message().to_owned()
    } else {
        format!("{index}:{}", error.message())
    };
    respond::log_cause(&error, dress);
    if error.code.status() == 403 {
        let path = part.url.split('?').next().unwrap_or_default();
        shared.audit.refused(shared.clock.monotonic(), peer, part.method, path, &error);
    }
    let level = negotiate::error_level(None, accept);
    // Only an insert listens to `Prefer`.
    let is_insert = part.method == "POST" && x_http_method.is_none();
    let preference = negotiate::Preference::parse(prefer).filter(|_| is_insert);
    let said = (error.code, message.as_str());
    respond::refusal_part(said, level, preference, part.content_id, dress, shared.now(), out);
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
