//! The only place that makes a response: from an answer, from a refusal, or for a preflight.
//!
//! Adds the headers that every response has. The service supplies the headers and the body that are its own. Responses are
//! written into a spare buffer of their connection.

use std::cell::RefCell;

use protocol::ServiceError;
use protocol::auth::ServiceKind;
use protocol::common::DateTime;
use protocol::common::cors::{CorsHeaders, PreflightAnswer};

use super::head::RequestHead;
use super::header_names::{X_MS_CLIENT_REQUEST_ID, X_MS_REQUEST_ID, X_MS_VERSION};
use super::refusal::Refusal;
use super::service::{Answer, ErrorBody, Service};
use crate::http::body::AnswerBody;
use crate::http::header_names::{CONTENT_LENGTH, DATE, SERVER};
use crate::http::response::{HeaderList, Response, ResponseHead};

/// The first version that answers tell.
const VERSION_SHOWN_FIRST: &str = "2009-09-19";

pub fn answer<A: Answer>(
    mut answer: A,
    head: &RequestHead<'_>,
    kind: &ServiceKind,
    spare: Vec<u8>,
) -> Response {
    let mut response = start(answer.status(), head, kind, spare);
    let headers = response.headers_mut();
    answer.write_headers(headers);
    let body = std::mem::take(answer.body());
    // The services send this even where HTTP does not require it. In a 304, the length would be that of the resource.
    if matches!(body, AnswerBody::Empty) && answer.status() != 304 && !headers.has(CONTENT_LENGTH) {
        headers.put_constant(CONTENT_LENGTH, "0");
    }
    Response { head: response, body }
}

pub fn refusal<S: Service>(
    refusal: Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    spare: Vec<u8>,
) -> Response {
    log_cause(&refusal.error, head);
    let mut response = start(refusal.error.code.status(), head, S::KIND, spare);
    let ErrorBody { bytes, reason } = S::refuse(&refusal, head, now, response.headers_mut());
    if let Some(reason) = reason {
        response.set_reason(reason);
    }
    Response { head: response, body: AnswerBody::whole(bytes) }
}

pub fn preflight(
    answer: &PreflightAnswer,
    head: &RequestHead<'_>,
    kind: &ServiceKind,
    spare: Vec<u8>,
) -> Response {
    let mut response = start(200, head, kind, spare);
    let headers = response.headers_mut();
    headers.put("access-control-allow-methods", &answer.allow_methods);
    if let Some(names) = &answer.allow_headers {
        headers.put("access-control-allow-headers", names);
    }
    headers.put_number("access-control-max-age", answer.max_age_seconds.into());
    let allowed = CorsHeaders {
        allow_origin: Some(answer.allow_origin.clone()),
        allow_credentials: answer.allow_credentials,
        ..CorsHeaders::default()
    };
    add_cors(headers, allowed);
    headers.put_constant(CONTENT_LENGTH, "0");
    Response { head: response, body: AnswerBody::Empty }
}

/// Adds the CORS headers that the account's rules prescribe.
pub(crate) fn add_cors(headers: &mut HeaderList, added: CorsHeaders) {
    if let Some(origin) = added.allow_origin {
        headers.put("access-control-allow-origin", &origin);
    }
    if let Some(names) = added.expose_headers {
        headers.put("access-control-expose-headers", &names);
    }
    if added.allow_credentials {
        headers.put("access-control-allow-credentials", "true");
    }
    if added.vary_origin {
        headers.put("vary", "Origin");
    }
}

/// Adds the date, by the clock that everything else goes by.
pub(crate) fn add_date(headers: &mut HeaderList, now: DateTime) {
    thread_local! {
        /// The second for which the thread last wrote a date, and the date.
        static LAST: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let second = now.whole_seconds();
    LAST.with_borrow_mut(|(last, date)| {
        if *last != second {
            *last = second;
            // HTTP has no earlier date.
            *date = now.max(DateTime::UNIX_EPOCH).to_http();
        }
        headers.put_checked(DATE, date);
    });
}

/// Logs the cause of our own failures, which callers never see. Why a caller was refused is in the audit log.
pub(crate) fn log_cause(error: &ServiceError, head: &RequestHead<'_>) {
    if error.code.status() >= 500
        && let Some(source) = &error.source
    {
        log::error!("request {}: {}: {source}", head.request_id.as_str(), error.code.name());
    }
}

/// A response with this status and body. The caller adds its headers.
pub(crate) fn with_body(status: u16, body: AnswerBody, spare: Vec<u8>) -> Response {
    Response { head: ResponseHead::new(status, spare), body }
}

/// A response with the headers that all responses of a service have.
fn start(status: u16, head: &RequestHead<'_>, kind: &ServiceKind, spare: Vec<u8>) -> ResponseHead {
    let mut response = ResponseHead::new(status, spare);
    let headers = response.headers_mut();
    headers.put_checked(SERVER, kind.server_header);
    headers.put_checked(X_MS_REQUEST_ID, head.request_id.as_bytes());
    if let Some(id) = head.client_request_id {
        headers.put(X_MS_CLIENT_REQUEST_ID, id);
    }
    if head.version >= VERSION_SHOWN_FIRST {
        headers.put_checked(X_MS_VERSION, head.version);
    }
    response
}
