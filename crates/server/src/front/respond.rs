//! The only place that makes a response: from an answer, from a refusal, or for a preflight.
//!
//! Adds the headers that every response has. The service supplies the headers and the body that are its own.

use bytes::Bytes;
use std::cell::RefCell;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONTENT_LENGTH, DATE,
    HeaderValue, SERVER, VARY,
};
use http::{HeaderMap, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use protocol::ServiceError;
use protocol::auth::ServiceKind;
use protocol::common::DateTime;
use protocol::common::cors::{CorsHeaders, PreflightAnswer};

use super::head::RequestHead;
use super::header_names::{X_MS_CLIENT_REQUEST_ID, X_MS_REQUEST_ID, X_MS_VERSION};
use super::refusal::Refusal;
use super::service::{Answer, ErrorBody, Service};
use crate::http::body::{AnswerBody, ResponseBody};

/// The first version that answers tell.
const VERSION_SHOWN_FIRST: &str = "2009-09-19";
/// How many headers a refusal usually has.
const REFUSAL_HEADER_COUNT: usize = 8;

pub fn answer<A: Answer>(
    mut answer: A,
    head: &RequestHead<'_>,
    kind: &ServiceKind,
) -> Response<ResponseBody> {
    let mut response = start(answer.status(), answer.header_count(), head, kind);
    answer.write_headers(response.headers_mut());
    let body = std::mem::take(answer.body());
    // The services send this even where HTTP does not require it. In a 304, the length would be that of the resource.
    if matches!(body, AnswerBody::Empty) && answer.status() != 304 {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert(HeaderValue::from_static("0"));
    }
    *response.body_mut() = ResponseBody::new(body);
    response
}

pub fn refusal<S: Service>(
    refusal: Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
) -> Response<ResponseBody> {
    log_cause(&refusal.error, head);
    let mut response = start(refusal.error.code.status(), REFUSAL_HEADER_COUNT, head, S::KIND);
    let ErrorBody { bytes, reason } = S::refuse(&refusal, head, now, response.headers_mut());
    if let Some(Ok(reason)) = reason.map(|reason| ReasonPhrase::try_from(reason.as_bytes())) {
        response.extensions_mut().insert(reason);
    }
    *response.body_mut() = ResponseBody::new(AnswerBody::whole(bytes));
    response
}

pub fn preflight(
    answer: &PreflightAnswer,
    head: &RequestHead<'_>,
    kind: &ServiceKind,
) -> Response<ResponseBody> {
    let mut response = start(200, REFUSAL_HEADER_COUNT, head, kind);
    let headers = response.headers_mut();
    put(headers, ACCESS_CONTROL_ALLOW_METHODS, &answer.allow_methods);
    if let Some(names) = &answer.allow_headers {
        put(headers, ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(answer.max_age_seconds));
    let allowed = CorsHeaders {
        allow_origin: Some(answer.allow_origin.clone()),
        allow_credentials: answer.allow_credentials,
        ..CorsHeaders::default()
    };
    add_cors(headers, allowed);
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    response
}

/// Adds the CORS headers that the account's rules prescribe.
pub(crate) fn add_cors(headers: &mut HeaderMap, added: CorsHeaders) {
    if let Some(origin) = added.allow_origin {
        put(headers, ACCESS_CONTROL_ALLOW_ORIGIN, &origin);
    }
    if let Some(names) = added.expose_headers {
        put(headers, ACCESS_CONTROL_EXPOSE_HEADERS, &names);
    }
    if added.allow_credentials {
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    if added.vary_origin {
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
}

/// Adds the date, by the clock that everything else goes by. hyper would add one, too, but its date stands still when the
/// system's clock is set back.
pub(crate) fn add_date(headers: &mut HeaderMap, now: DateTime) {
    thread_local! {
        /// The second for which the thread last wrote a date, and the date.
        static LAST: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) };
    }
    let second = now.whole_seconds();
    let date = LAST.with_borrow_mut(|(last, date)| {
        if *last != second {
            *last = second;
            let mut text = Vec::new();
            // HTTP has no earlier date.
            now.max(DateTime::UNIX_EPOCH).write_http(&mut text);
            *date = HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static(""));
        }
        date.clone()
    });
    headers.insert(DATE, date);
}

/// Logs the cause of our own failures, which callers never see. Why a caller was refused is in the audit log.
pub(crate) fn log_cause(error: &ServiceError, head: &RequestHead<'_>) {
    if error.code.status() >= 500
        && let Some(source) = &error.source
    {
        log::error!("request {}: {}: {source}", head.request_id.as_str(), error.code.name());
    }
}

/// Leaves out a value that no header can carry: it can only come from a malformed host.
pub fn put(headers: &mut HeaderMap, name: impl http::header::IntoHeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// A response with this status and nothing else.
fn empty(status: u16) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// A response with this status and body. The caller adds its headers.
pub(crate) fn with_body(status: u16, body: Bytes) -> Response<ResponseBody> {
    let mut response = empty(status);
    *response.body_mut() = ResponseBody::Whole(Some(body));
    response
}

/// A response with the headers that all responses of a service have.
fn start(
    status: u16,
    header_count: usize,
    head: &RequestHead<'_>,
    kind: &ServiceKind,
) -> Response<ResponseBody> {
    let mut response = empty(status);
    let headers = response.headers_mut();
    headers.reserve(header_count);
    headers.insert(SERVER, HeaderValue::from_static(kind.server_header));
    put(headers, X_MS_REQUEST_ID, head.request_id.as_str());
    if let Some(id) = head.client_request_id {
        headers.insert(X_MS_CLIENT_REQUEST_ID, id.clone());
    }
    match head.version_header {
        _ if head.version < VERSION_SHOWN_FIRST => {}
        Some(header) => {
            headers.insert(X_MS_VERSION, header.clone());
        }
        None => put(headers, X_MS_VERSION, head.version),
    }
    response
}
