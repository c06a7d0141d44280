//! One request, once down the road and once up: address, version, authentication, operation, body, answer.
//!
//! The first check that fails answers, in the order in which the service checks.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use ::tables::TableService;
use bytes::Bytes;
use engine::env::Clock;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use protocol::model::DateTime;
use protocol::operation::{Component, Operation};
use protocol::wire::headers::{OperationHeaders, X_MS_VERSION};
use protocol::wire::options::QueryOptions;
use protocol::wire::uri;
use protocol::{ErrorCode, ServiceError};
use tokio::sync::Semaphore;

use crate::accounts::Accounts;
use crate::answer::{Answer, Refusal, Shape};
use crate::authenticate::{self, Signed};
use crate::limits::Limits;
use crate::request_id::RequestIds;
use crate::respond::{self, Dress};
use crate::tables::{self, Call, Session};
use crate::whole_body::WholeBody;
use crate::{address, batch};

/// What all requests share.
pub struct Shared {
    pub service: TableService,
    pub accounts: Accounts,
    pub limits: Limits,
    pub host_suffixes: Vec<String>,
    pub clock: Arc<dyn Clock>,
    pub request_ids: RequestIds,
    pub in_flight: Semaphore,
}

impl Shared {
    pub fn now(&self) -> DateTime {
        DateTime::from_ticks(self.clock.now_ticks())
    }
}

/// A caller who sends this header is told how the query found its rows.
pub const EXPLAIN: &str = "x-lazulite-explain";
/// The first version in which an update may leave `If-Match` out.
const UPSERT_VERSION: &str = "2011-08-18";

/// Never fails: whatever goes wrong, even a panic, becomes a response.
pub async fn handle(shared: &Shared, request: Request<Incoming>) -> Response<WholeBody> {
    let (parts, body) = request.into_parts();
    let dress = Dress::new(shared.request_ids.next(), &parts.headers, parts.uri.query());
    let Ok(_permit) = shared.in_flight.try_acquire() else {
        return respond::refusal(ErrorCode::ServerBusy.into(), &dress, shared.now());
    };
    let work = process(shared, &parts, body, &dress);
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(answer)) => respond::answer(answer, &dress),
        Ok(Err(refusal)) => respond::refusal(refusal, &dress, shared.now()),
        Err(_) => {
            let error = ServiceError::with_source(ErrorCode::InternalError, "the request's handler panicked");
            respond::refusal(error.into(), &dress, shared.now())
        }
    }
}

async fn process(
    shared: &Shared,
    parts: &Parts,
    body: Incoming,
    dress: &Dress<'_>,
) -> Result<Answer, Refusal> {
    let front_end = |error: ServiceError| Refusal::new(Shape::FrontEnd, error);
    let host = host(parts).ok_or_else(|| front_end(ErrorCode::HostInformationNotPresent.into()))?;
    let raw_path = parts.uri.path();
    let target = address::locate(host, raw_path, &shared.host_suffixes);
    if parts.method == http::Method::OPTIONS {
        // No rules can match where none are set.
        return Err(front_end(ErrorCode::CorsPreflightFailure.into()));
    }
    let account =
        shared.accounts.find(target.account).ok_or_else(|| front_end(ErrorCode::ResourceNotFound.into()))?;
    let version = version(&parts.headers).map_err(front_end)?;
    let options = QueryOptions::parse(parts.uri.query().unwrap_or_default())?;
    let signed =
        Signed { method: parts.method.as_str(), path: raw_path, comp: options.comp.as_deref(), version };
    authenticate::authenticate(account, &signed, &parts.headers, shared.now())
        .map_err(|error| Refusal::new(Shape::Authentication, error))?;

    let headers = operation_headers(&parts.headers);
    let is_write = !matches!(parts.method, http::Method::GET | http::Method::HEAD);
    if target.is_secondary && is_write {
        let error = ServiceError::with_detail(
            ErrorCode::InsufficientAccountPermissions,
            "Write operations are not allowed.",
        );
        return Err(front_end(error));
    }
    let resource = uri::parse_path(target.path)?;
    let component = Component { restype: options.restype.as_deref(), comp: options.comp.as_deref() };
    let shape = if component.comp.is_some() { Shape::FrontEnd } else { Shape::OData };
    let operation =
        Operation::read(account.name.as_str(), parts.method.as_str(), resource, component, &headers)
            .map_err(|error| Refusal::new(shape, error))?;
    check_version(&operation, version)?;
    let time_max = Duration::from_secs(options.timeout_seconds().map_err(front_end)?);

    let base = format!("http://{host}{}", target.base_path);
    let session = Session { service: &shared.service, account: &account.name, base: &base };
    let explain = parts.headers.contains_key(EXPLAIN);
    let call = Call { options: &options, headers: &headers, explain };
    let work = async {
        let payload = if tables::takes_payload(&operation) {
            read_payload(body, &parts.headers, &shared.limits).await?
        } else {
            Bytes::new()
        };
        match operation {
            Operation::Batch => batch::run(&session, &payload, call, dress, shared).await,
            operation => tables::run(&session, operation, &payload, call).await,
        }
    };
    match tokio::time::timeout(time_max, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ErrorCode::OperationTimedOut.into()),
    }
}

/// The host as the caller wrote it: from the request line if it is absolute, else from the header.
fn host(parts: &Parts) -> Option<&str> {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let header = || parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    authority.or_else(header).filter(|host| !host.is_empty())
}

/// Any date in the right form is a version: new ones appear faster than servers are updated.
fn version(headers: &HeaderMap) -> Result<Option<&str>, ServiceError> {
    let Some(value) = headers.get(X_MS_VERSION) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| {
        text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            })
            && ("01"..="12").contains(&&text[5..7])
            && ("01"..="31").contains(&&text[8..])
    });
    text.map(Some).ok_or_else(|| ErrorCode::InvalidHeaderValue.into())
}

/// Before upserts were invented, every update had to say what it expects to find.
fn check_version(operation: &Operation<'_>, version: Option<&str>) -> Result<(), ServiceError> {
    let is_upsert = matches!(
        operation,
        Operation::ReplaceEntity { condition: None, .. } | Operation::MergeEntity { condition: None, .. }
    );
    let is_old = version.is_some_and(|version| version < UPSERT_VERSION);
    if is_upsert && is_old { Err(ErrorCode::InvalidInput.into()) } else { Ok(()) }
}

fn operation_headers(headers: &HeaderMap) -> OperationHeaders<'_> {
    let mut found = OperationHeaders::default();
    for (name, value) in headers {
        // A value that is not text cannot be one that an operation understands.
        found.take(name.as_str(), value.to_str().unwrap_or("\u{FFFD}"));
    }
    found
}

/// Up to this multiple of what is allowed, a body that is too large is read all the same: a client that is still
/// sending does not hear an answer.
const DISCARDED_BODIES_MAX: usize = 4;

async fn read_payload(body: Incoming, headers: &HeaderMap, limits: &Limits) -> Result<Bytes, Refusal> {
    let has_length = headers.contains_key(http::header::CONTENT_LENGTH);
    if !has_length && !headers.contains_key(http::header::TRANSFER_ENCODING) {
        return Err(Refusal::new(Shape::FrontEnd, ErrorCode::MissingContentLengthHeader));
    }
    // A client that asks before it sends, or would send for ever, is told at once.
    let is_waiting = headers.contains_key(http::header::EXPECT);
    let announced = body.size_hint().lower();
    let discarded_max =
        if is_waiting { limits.body_bytes_max } else { limits.body_bytes_max * DISCARDED_BODIES_MAX };
    if announced > discarded_max as u64 {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    match tokio::time::timeout(limits.body_time_max, collect(body, limits.body_bytes_max)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ErrorCode::OperationTimedOut.into()),
    }
}

async fn collect(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() <= bytes_max as u64 {
        return match Limited::new(body, bytes_max).collect().await {
            Ok(payload) => Ok(payload.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(ErrorCode::RequestBodyTooLarge.into()),
            // The caller has gone or breaks the framing: nobody reads this answer.
            Err(_) => Err(ErrorCode::InvalidInput.into()),
        };
    }
    while let Some(Ok(_)) = body.frame().await {}
    Err(ErrorCode::RequestBodyTooLarge.into())
}
