//! One request, once down the road and once up: address, version, authentication, operation, body, answer.
//!
//! The first check that fails answers, in the order in which the service checks.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::tables::TableService;
use bytes::{Bytes, BytesMut};
use engine::env::Clock;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use protocol::auth::{BearerValidator, Connection, Grant};
use protocol::model::DateTime;
use protocol::operation::{Component, Operation};
use protocol::wire::headers::{OperationHeaders, is_version};
use protocol::wire::options::QueryOptions;
use protocol::wire::uri;
use protocol::{ErrorCode, ServiceError};
use tokio::sync::Semaphore;

use crate::accounts::{Account, Accounts};
use crate::address::{self, Target};
use crate::answer::{Answer, Refusal, Shape};
use crate::audit::Audit;
use crate::authenticate::{self, Caller, Signed};
use crate::cors::CorsRules;
use crate::current::Current;
use crate::deadline::within;
use crate::header_names::{EXPLAIN, X_MS_VERSION};
use crate::heavy::HeavyLane;
use crate::limits::Limits;
use crate::request_id::RequestIds;
use crate::respond::{self, Dress};
use crate::room::{FREE_BYTES, Room, SharedRoom};
use crate::tables::{self, Call, Session};
use crate::whole_body::WholeBody;
use crate::{batch, cors, settings};

/// What all requests share.
pub struct Shared {
    pub service: TableService,
    pub accounts: Arc<Current<Accounts>>,
    pub tokens: Option<Arc<Current<BearerValidator>>>,
    pub limits: Limits,
    pub host_suffixes: Vec<String>,
    pub clock: Arc<dyn Clock>,
    pub request_ids: RequestIds,
    pub in_flight: Semaphore,
    pub payload_room: SharedRoom,
    pub answer_room: SharedRoom,
    pub heavy_lane: HeavyLane,
    pub cors_rules: CorsRules,
    pub audit: Audit,
}

impl Shared {
    pub fn now(&self) -> DateTime {
        DateTime::from_ticks(self.clock.now_ticks())
    }
}

/// Never fails: whatever goes wrong, even a panic, becomes a response.
pub async fn handle(
    shared: &Shared,
    connection: &Connection,
    request: Request<Incoming>,
) -> Response<WholeBody> {
    let (parts, body) = request.into_parts();
    let dress = Dress::new(shared.request_ids.next(), &parts.headers, parts.uri.query());
    let Ok(_permit) = shared.in_flight.try_acquire() else {
        return respond::refusal(ErrorCode::ServerBusy.into(), &dress, shared.now());
    };
    // Pinned where it stands: handed over by value, the whole of its state would be copied.
    let work = pin!(async {
        let mut body = Some(body);
        let (account, outcome) = match locate(shared, &parts) {
            Err(refusal) => (None, Err(refusal)),
            Ok(place) => {
                let outcome = process(shared, connection, &parts, &place, &mut body, &dress).await;
                (Some(place.account), outcome)
            }
        };
        discard(body, &parts.headers, &shared.limits);
        let mut response = match outcome {
            Ok(answer) => respond::answer(answer, &dress),
            Err(refusal) => {
                if refusal.shape == Shape::Authentication || matches!(refusal.error.code.status(), 401 | 403)
                {
                    let (method, path) = (parts.method.as_str(), parts.uri.path());
                    shared.audit.refused(
                        shared.clock.monotonic(),
                        connection.peer,
                        method,
                        path,
                        &refusal.error,
                    );
                }
                respond::refusal(refusal, &dress, shared.now())
            }
        };
        if let Some(account) = account {
            cors::decorate(shared, &account.name, &parts, &mut response).await;
        }
        response
    });
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            let error = ServiceError::with_source(ErrorCode::InternalError, "the request's handler panicked");
            respond::refusal(error.into(), &dress, shared.now())
        }
    }
}

/// Where a request goes.
struct Place<'a> {
    /// As the caller wrote it.
    host: &'a str,
    target: Target<'a>,
    account: Arc<Account>,
}

fn locate<'a>(shared: &Shared, parts: &'a Parts) -> Result<Place<'a>, Refusal> {
    let front_end = |code: ErrorCode| Refusal::new(Shape::FrontEnd, code);
    let host = host(parts).ok_or_else(|| front_end(ErrorCode::HostInformationNotPresent))?;
    let target = address::locate(host, parts.uri.path(), &shared.host_suffixes);
    let accounts = shared.accounts.get();
    let account = accounts.find(target.account).ok_or_else(|| front_end(ErrorCode::ResourceNotFound))?;
    Ok(Place { host, target, account: account.clone() })
}

async fn process(
    shared: &Shared,
    connection: &Connection,
    parts: &Parts,
    place: &Place<'_>,
    body: &mut Option<Incoming>,
    dress: &Dress<'_>,
) -> Result<Answer, Refusal> {
    let front_end = |error: ServiceError| Refusal::new(Shape::FrontEnd, error);
    let Place { host, target, account } = place;
    let raw_path = parts.uri.path();
    if parts.method == http::Method::OPTIONS {
        return cors::preflight(shared, &account.name, &parts.headers).await.map_err(front_end);
    }
    let version = version(&parts.headers).map_err(front_end)?;
    let query = parts.uri.query().unwrap_or_default();
    // A query that does not decode is told so only to somebody who may ask.
    let options = QueryOptions::parse(query);
    let comp = options.as_ref().ok().and_then(|options| options.comp.as_deref());
    let method = parts.method.as_str();
    let signed = Signed { method, path: raw_path, query, comp, version, connection };
    let grant = identify(shared, account, &signed, &parts.headers).await?;
    let Ok(options) = &options else { return Err(ErrorCode::InvalidInput.into()) };

    let headers = operation_headers(&parts.headers);
    let is_write = !matches!(parts.method, http::Method::GET | http::Method::HEAD);
    if target.is_secondary && is_write {
        let detail = "Write operations are not allowed.";
        return Err(front_end(ServiceError::with_detail(ErrorCode::InsufficientAccountPermissions, detail)));
    }
    let resource = uri::parse_path(target.path)?;
    let component = Component { restype: options.restype.as_deref(), comp };
    let shape = if comp.is_some() { Shape::FrontEnd } else { Shape::OData };
    let dressed = |error: ServiceError| Refusal::new(shape, error);
    let operation =
        Operation::read(account.name.as_str(), method, resource, component, &headers).map_err(dressed)?;
    let explain = parts.headers.contains_key(EXPLAIN);
    let call = Call { options, headers: &headers, version: dress.version(), explain };
    tables::check(&operation, call)?;
    grant.authorize(&operation).map_err(dressed)?;
    let time_max = Duration::from_secs(options.timeout_seconds().map_err(front_end)?);

    let scheme = if connection.is_https { "https" } else { "http" };
    let base = [scheme, "://", host, target.base_path].concat();
    let session = Session {
        service: &shared.service,
        account: &account.name,
        base: &base,
        grant: &grant,
        peer: connection.peer,
        answer_room: &shared.answer_room,
        heavy_lane: &shared.heavy_lane,
    };
    let work = pin!(async {
        let (payload, payload_room) = if tables::takes_payload(&operation) {
            read_payload(shared, &operation, body, &parts.headers).await?
        } else {
            (Bytes::new(), None)
        };
        let outcome = match operation {
            // In boxes: what is rare must not make the state of every request larger.
            Operation::Batch => Box::pin(batch::run(&session, &payload, call, dress, shared)).await,
            operation if settings::owns(&operation) => {
                let call = settings::Call {
                    service: &shared.service,
                    rules: &shared.cors_rules,
                    account: &account.name,
                    version: dress.version(),
                    is_secondary: target.is_secondary,
                    now: shared.now(),
                    monotonic: shared.clock.monotonic(),
                };
                Box::pin(settings::run(&call, operation, &payload)).await.map_err(front_end)
            }
            operation => tables::run(&session, operation, &payload, call).await,
        };
        outcome.and_then(|answer| make_room(answer, payload_room, &shared.answer_room))
    });
    within(time_max, work).await.unwrap_or_else(|| Err(ErrorCode::OperationTimedOut.into()))
}

/// A large answer needs room until it is read. What was done is not undone for want of it: the answer to a write, which
/// repeats its payload, takes over the payload's room.
fn make_room(mut answer: Answer, payload_room: Option<Room>, shared: &SharedRoom) -> Result<Answer, Refusal> {
    let bytes = answer.body.len();
    if bytes > FREE_BYTES && answer.room.is_none() {
        let is_write = payload_room.is_some();
        let mut room = payload_room.unwrap_or_else(|| shared.small());
        if !is_write && !room.grow(bytes) {
            return Err(ErrorCode::ServerBusy.into());
        }
        answer.room = Some(room);
    }
    Ok(answer)
}

/// What the caller may do: credentials first, then what they are worth here and now.
async fn identify(
    shared: &Shared,
    account: &Account,
    signed: &Signed<'_>,
    headers: &HeaderMap,
) -> Result<Grant, Refusal> {
    let unknown = |error| Refusal::new(Shape::Authentication, error);
    let now = shared.now();
    let tokens = shared.tokens.as_ref().map(|tokens| tokens.get());
    let caller =
        authenticate::authenticate(account, signed, headers, tokens.as_deref(), now).map_err(unknown)?;
    let token = match caller {
        Caller::Granted(grant) => return Ok(grant),
        Caller::Sas(token) => token,
    };
    let policies = match token.policy() {
        None => Vec::new(),
        // Looked up each time: a policy that was changed or removed counts from the next request on.
        Some((table, _)) => match settings::policies(&shared.service, &account.name, table).await {
            Err(error) if error.code == ErrorCode::TableNotFound => Vec::new(),
            policies => policies?,
        },
    };
    token.grant(&policies, now, signed.connection).map_err(|error| match error.code {
        ErrorCode::AuthenticationFailed => unknown(error),
        // A genuine token from the wrong place: its holder is known, and answered like one.
        _ => error.into(),
    })
}

/// The host as the caller wrote it: from the request line if it is absolute, else from the header.
pub fn host(parts: &Parts) -> Option<&str> {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let header = || parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    authority.or_else(header).filter(|host| !host.is_empty())
}

fn version(headers: &HeaderMap) -> Result<Option<&str>, ServiceError> {
    let Some(value) = headers.get(X_MS_VERSION) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| is_version(text));
    text.map(Some).ok_or_else(|| ErrorCode::InvalidHeaderValue.into())
}

fn operation_headers(headers: &HeaderMap) -> OperationHeaders<'_> {
    let mut found = OperationHeaders::default();
    for (name, value) in headers {
        // A value that is not text cannot be one that an operation understands.
        found.take(name.as_str(), || value.to_str().unwrap_or("\u{FFFD}"));
    }
    found
}

/// Up to this multiple of what is allowed, a body that is too large is read all the same: a client that is still
/// sending does not hear an answer.
const DISCARDED_BODIES_MAX: usize = 4;

/// A request that is answered without its body goes on sending it. Somebody has to take it, or the connection is
/// cut and the answer with it. A client that waits to be asked for its body sends none.
fn discard(body: Option<Incoming>, headers: &HeaderMap, limits: &Limits) {
    let Some(mut body) = body.filter(|body| !body.is_end_stream()) else { return };
    let bytes_max = limits.body_bytes_max as u64 * DISCARDED_BODIES_MAX as u64;
    if headers.contains_key(http::header::EXPECT) || body.size_hint().lower() > bytes_max {
        return;
    }
    let time_max = limits.body_time_max;
    tokio::spawn(async move {
        let take = async {
            let mut room = bytes_max;
            while let Some(Ok(frame)) = body.frame().await {
                let len = frame.data_ref().map_or(0, |data| data.len() as u64);
                if len > room {
                    break;
                }
                room -= len;
            }
        };
        // Who sends slower than this is cut off after all.
        let _ = tokio::time::timeout(time_max, take).await;
    });
}

async fn read_payload(
    shared: &Shared,
    operation: &Operation<'_>,
    body: &mut Option<Incoming>,
    headers: &HeaderMap,
) -> Result<(Bytes, Option<Room>), Refusal> {
    let limits = &shared.limits;
    let has_length = headers.contains_key(http::header::CONTENT_LENGTH);
    if !has_length && !headers.contains_key(http::header::TRANSFER_ENCODING) {
        // No body at all takes a table's policies away.
        if matches!(operation, Operation::SetTableAcl(_)) {
            return Ok((Bytes::new(), None));
        }
        return Err(Refusal::new(Shape::FrontEnd, ErrorCode::MissingContentLengthHeader));
    }
    // A client that asks before it sends, or would send for ever, is told at once.
    let is_waiting = headers.contains_key(http::header::EXPECT);
    let announced = body.as_ref().map_or(0, |body| body.size_hint().lower());
    let discarded_max =
        if is_waiting { limits.body_bytes_max } else { limits.body_bytes_max * DISCARDED_BODIES_MAX };
    if announced > discarded_max as u64 {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    // A body that does not say how long it is may be as long as any.
    let bytes =
        if has_length { announced.min(limits.body_bytes_max as u64) } else { limits.body_bytes_max as u64 };
    let mut room = shared.payload_room.small();
    if !room.grow(bytes as usize) {
        return Err(ErrorCode::ServerBusy.into());
    }
    let Some(body) = body.take() else { return Ok((Bytes::new(), None)) };
    match within(limits.body_time_max, pin!(collect(body, limits.body_bytes_max))).await {
        Some(outcome) => outcome.map(|payload| (payload, Some(room))),
        None => Err(ErrorCode::OperationTimedOut.into()),
    }
}

async fn collect(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Refusal> {
    let announced = body.size_hint().lower();
    if announced > bytes_max as u64 {
        while let Some(Ok(_)) = body.frame().await {}
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    // A small payload comes in one piece and is not copied.
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        // The caller has gone or breaks the framing: nobody reads this answer.
        let frame = frame.map_err(|_| ErrorCode::InvalidInput)?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > bytes_max {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.reserve((announced as usize).max(first.len() + data.len()));
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}
