//! Blob Batch: each request inside the body takes the road by itself, with its own credentials.
//!
//! Promises: a batch that is not of one kind, or leaves its container, is refused before any part of it runs. Parts run in
//! the order in which they came.

use protocol::blob::KIND;
use protocol::blob::batch::{BlobBatchAnswer, BlobBatchPart, check_batch, read_batch};
use protocol::blob::operation::BlobOperation;
use protocol::{ErrorCode, ServiceError};

use super::BlobHttp;
use super::answer::BlobAnswer;
use crate::front::handle::answer_inner;
use crate::front::head::RequestHead;
use crate::front::service::Session;
use crate::http::body::AnswerBody;
use crate::http::header_names::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use crate::http::parts::RequestParts;
use crate::http::response::Response;

/// `container` is that of a batch for one container.
pub async fn run(
    service: &BlobHttp,
    session: &Session<'_>,
    container: Option<&str>,
    payload: &[u8],
) -> Result<BlobAnswer, ServiceError> {
    let head = session.head;
    let sent = read_batch(head.header(CONTENT_TYPE), payload)?;
    let requests: Vec<RequestParts> =
        sent.iter().map(|part| to_request(part, head)).collect::<Result<_, ServiceError>>()?;
    check(session, &sent, &requests, container)?;
    let mut answer = BlobBatchAnswer::new(session.front.request_ids.next().as_str());
    let mut reservation = session.reserve_answer();
    for (part, request) in sent.iter().zip(&requests) {
        let response = answer_inner(session.way(service), request, head).await;
        push(&mut answer, part.content_id, response);
        // What has been done cannot be answered with an error: a longer answer is held without a reservation.
        let _ = reservation.grow(answer.len());
    }
    let content_type = answer.content_type();
    let mut body = AnswerBody::whole(answer.finish());
    body.hold(reservation);
    Ok(BlobAnswer::empty(202).with_body(body).header("content-type", &content_type))
}

fn check(
    session: &Session<'_>,
    sent: &[BlobBatchPart<'_>],
    requests: &[RequestParts],
    container: Option<&str>,
) -> Result<(), ServiceError> {
    let operations = sent.iter().zip(requests).map(|(part, request)| {
        let head = session.head.inner(request, session.head.request_id, &KIND, session.host_suffixes);
        BlobOperation::read(head.method, head.target.path, &head.query, &part.headers)
            .map_err(|_| ErrorCode::InvalidInput.into())
    });
    let operations = operations.collect::<Result<Vec<_>, ServiceError>>()?;
    check_batch(&operations, container)
}

/// The request as it would have come by itself. Its host is that of the batch.
fn to_request(part: &BlobBatchPart<'_>, outer: &RequestHead<'_>) -> Result<RequestParts, ServiceError> {
    let target = match part.query {
        "" => part.path.to_owned(),
        query => [part.path, "?", query].concat(),
    };
    let own = part.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(HOST));
    let headers = own.chain([(HOST, outer.host.unwrap_or_default())]);
    let composed = RequestParts::compose(part.method, &target, headers);
    Ok(composed.ok_or(ErrorCode::InvalidInput)?)
}

fn push(answer: &mut BlobBatchAnswer, content_id: Option<&str>, response: Response) {
    let Response { head, body } = response;
    // The operations that a batch may have answer without a stream.
    let body = body.as_bytes();
    let write_head = |out: &mut Vec<u8>| {
        out.extend_from_slice(format!("HTTP/1.1 {} {}\r\n", head.status(), head.reason()).as_bytes());
        for (name, value) in head.headers().iter().filter(|(name, _)| *name != CONTENT_LENGTH) {
            for piece in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(piece.as_bytes());
            }
        }
        if !body.is_empty() {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
    };
    answer.push(content_id, write_head, body);
}
