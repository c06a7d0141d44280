//! Blob Batch: each request inside the body takes the road by itself, with its own credentials.
//!
//! Promises: a batch that is not of one kind, or leaves its container, is refused before any part of it runs. Parts run in
//! the order in which they came.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use hyper::ext::ReasonPhrase;
use protocol::blob::KIND;
use protocol::blob::batch::{BlobBatchAnswer, BlobBatchPart, check_batch, read_batch};
use protocol::blob::operation::BlobOperation;
use protocol::{ErrorCode, ServiceError};

use super::BlobHttp;
use super::answer::BlobAnswer;
use crate::front::handle::answer_inner;
use crate::front::head::RequestHead;
use crate::front::service::Session;
use crate::http::body::{AnswerBody, ResponseBody};

/// `container` is that of a batch for one container.
pub async fn run(
    service: &BlobHttp,
    session: &Session<'_>,
    container: Option<&str>,
    payload: &[u8],
) -> Result<BlobAnswer, ServiceError> {
    let head = session.head;
    let sent = read_batch(head.header(CONTENT_TYPE), payload)?;
    let requests: Vec<Parts> =
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
    requests: &[Parts],
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
fn to_request(part: &BlobBatchPart<'_>, outer: &RequestHead<'_>) -> Result<Parts, ServiceError> {
    let target = match part.query {
        "" => part.path.to_owned(),
        query => [part.path, "?", query].concat(),
    };
    let target = PathAndQuery::try_from(target).map_err(|_| ErrorCode::InvalidInput)?;
    let mut request = Request::builder().method(part.method).uri(Uri::from(target));
    for (name, value) in part.headers.iter() {
        if !name.eq_ignore_ascii_case(HOST.as_str()) {
            request = request.header(name, value);
        }
    }
    let host = HeaderValue::from_str(outer.host.unwrap_or_default()).map_err(|_| ErrorCode::InvalidInput)?;
    let request = request.header(HOST, host).body(()).map_err(|_| ErrorCode::InvalidInput)?;
    Ok(request.into_parts().0)
}

fn push(answer: &mut BlobBatchAnswer, content_id: Option<&str>, response: Response<ResponseBody>) {
    let (parts, body) = response.into_parts();
    // The operations that a batch may have answer without a stream.
    let body = match body {
        ResponseBody::Whole(bytes) => bytes.unwrap_or_default(),
        ResponseBody::Stream(_) => Default::default(),
    };
    let write_head = |out: &mut Vec<u8>| {
        let reason = match parts.extensions.get::<ReasonPhrase>() {
            Some(reason) => reason.as_bytes(),
            None => parts.status.canonical_reason().unwrap_or_default().as_bytes(),
        };
        for piece in [b"HTTP/1.1 ", parts.status.as_str().as_bytes(), b" ", reason, b"\r\n"] {
            out.extend_from_slice(piece);
        }
        for (name, value) in parts.headers.iter().filter(|(name, _)| **name != CONTENT_LENGTH) {
            for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.extend_from_slice(piece);
            }
        }
        if !body.is_empty() {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
    };
    answer.push(content_id, write_head, &body);
}
