//! One request, down the road and up again.
//!
//! Owns: the order of the steps. It is the order in which the real services check, and the first check that fails
//! decides the answer. Leaves every step to the module that it is named after.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use observe::{Credentials, Detail, Named, Notes, Observation};
use protocol::auth::{Connection, Grant, RoleSet};
use protocol::common::query::{Query, timeout_seconds};
use protocol::common::{BaseUrl, DateTime};
use protocol::{ErrorCode, ServiceError};
use tls::Tls;

use super::accounts::Account;
use super::authenticate::{self, Caller};
use super::head::RequestHead;
use super::refusal::{Refusal, Stage};
use super::service::{Answer, PayloadForm, Service, Session};
use super::{Front, cors, respond, welcome};
use crate::http::body::{self, AnswerBody, IncomingBody, Payload};
use crate::http::connections::Connections;
use crate::http::deadline::within;
use crate::http::limits::Limits;
use crate::http::listener::{Handler, Incoming, Server};
use crate::http::memory_pool::Reservation;
use crate::http::parts::RequestParts;
use crate::http::response::{HeaderList, Response};

/// Where a service listens.
pub struct Binding {
    pub listen: SocketAddr,
    /// Serves only HTTPS when present.
    pub tls: Option<Tls>,
    /// Additional host suffixes whose first label is the account, as in `account.storage.example.org`.
    pub host_suffixes: Vec<String>,
}

/// Opens the port for a service.
pub async fn bind<S: Service>(
    front: &Arc<Front>,
    binding: Binding,
    service: S,
) -> io::Result<Server<BoundService<S>>> {
    let Binding { listen, tls, host_suffixes } = binding;
    let is_https = tls.is_some() || front.is_behind_tls_proxy;
    let bound = BoundService { front: front.clone(), service, host_suffixes, is_https };
    Server::bind(listen, tls, bound).await
}

/// A service bound to an address of its own.
pub struct BoundService<S> {
    front: Arc<Front>,
    service: S,
    host_suffixes: Vec<String>,
    /// Whether callers use HTTPS, either with us or with a proxy in front of us.
    is_https: bool,
}

impl<S: Service> Handler for BoundService<S> {
    fn limits(&self) -> &Limits {
        &self.front.limits
    }

    fn connections(&self) -> &Arc<Connections> {
        &self.front.connections
    }

    fn head_memory(&self, peer: IpAddr) -> Reservation {
        self.front.head_memory.small(self.front.stranger(peer))
    }

    fn add_date(&self, headers: &mut HeaderList) {
        respond::add_date(headers, self.front.now());
    }

    fn handle(&self, peer: IpAddr, request: Incoming<'_>) -> impl Future<Output = Response> + Send {
        handle(self, peer, request)
    }
}

/// The way to a service.
pub(crate) struct Way<'a, S> {
    pub front: &'a Front,
    pub service: &'a S,
    pub host_suffixes: &'a [String],
}

impl<S> Clone for Way<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Way<'_, S> {}

/// Every failure, even a panic, becomes a response.
async fn handle<S: Service>(bound: &BoundService<S>, peer: IpAddr, request: Incoming<'_>) -> Response {
    let Incoming { parts, body, mut spare, is_https } = request;
    let front = &*bound.front;
    let way = Way { front, service: &bound.service, host_suffixes: &bound.host_suffixes };
    let started = front.clock.monotonic();
    let id = front.request_ids.next();
    let connection = Connection { peer, is_https: is_https.unwrap_or(bound.is_https) };
    let head = RequestHead::read(parts, id, connection, S::KIND, &bound.host_suffixes);
    let mut seen = Seen::<S>::default();
    let response = {
        let Seen { account, request, error, notes } = &mut seen;
        // Pinned here, because passing it by value would copy its whole state.
        let work = pin!(async {
            let outcome = match find_account(front, &head) {
                Err(refusal) => Err(refusal),
                Ok(found) => match front.in_flight.admit(found.number) {
                    None => Err(ErrorCode::ServerBusy.into()),
                    Some(_admitted) => {
                        let account = &**account.insert(found);
                        process(way, &head, account, body, request, notes, &mut spare).await
                    }
                },
            };
            let mut response = outcome.unwrap_or_else(|refusal| {
                let spare = std::mem::take(&mut spare);
                if welcome::is_wanted(&head) {
                    return welcome::page(S::KIND, head.host, front.explorer.get(), spare);
                }
                *error = Some(refusal.error.code);
                audit(front, &head, &refusal);
                respond::refusal::<S>(refusal, &head, front.now(), spare)
            });
            if let Some(account) = account {
                cors::decorate(bound.service.catalogue(), &account.name, &head, &mut response.head).await;
            }
            response
        });
        catch_panic(work).await
    };
    let mut response = response.unwrap_or_else(|| {
        let error = ServiceError::with_source(ErrorCode::InternalError, "the request's handler panicked");
        seen.error = Some(error.code);
        respond::refusal::<S>(error.into(), &head, front.now(), Vec::new())
    });
    let now = front.now();
    respond::add_date(response.head.headers_mut(), now);
    seen.observe(front, &head, &response, started, now);
    response
}

/// What is known of a request when it is finished, however far it came.
struct Seen<'h, S: Service> {
    account: Option<Arc<Account>>,
    request: Option<S::Request<'h>>,
    error: Option<ErrorCode>,
    notes: Notes,
}

impl<S: Service> Default for Seen<'_, S> {
    fn default() -> Self {
        Seen { account: None, request: None, error: None, notes: Notes::default() }
    }
}

impl<S: Service> Seen<'_, S> {
    /// Shows the finished request to those who watch.
    fn observe(
        &self,
        front: &Front,
        head: &RequestHead<'_>,
        response: &Response,
        started: Duration,
        now: DateTime,
    ) {
        let (operation, named) = match &self.request {
            Some(request) => S::describe(request),
            None if head.method == "OPTIONS" => (S::OBSERVED.preflight(), Named::default()),
            None => (S::OBSERVED.unread(), Named::default()),
        };
        let at = front.clock.monotonic();
        let is_sent = head.method != "HEAD";
        let observation = Observation {
            operation,
            account: self.account.as_ref().map_or("", |account| account.name.as_str()),
            status: response.head.status(),
            error: self.error.or_else(|| self.notes.noted_error()),
            bytes_in: self.notes.payload_bytes(),
            bytes_out: response.body.len().filter(|_| is_sent).unwrap_or(0),
            took: at.saturating_sub(started),
            at,
            now,
            request_id: head.request_id.as_str(),
            detail: Detail {
                credentials: head.credentials(),
                is_secondary: head.target.is_secondary,
                ..self.notes.detail(named)
            },
        };
        front.watch.finished(head, &observation);
    }
}

fn find_account(front: &Front, head: &RequestHead<'_>) -> Result<Arc<Account>, Refusal> {
    head.check_host().map_err(Refusal::front)?;
    let accounts = front.accounts.get();
    let account = accounts.find(head.target.account);
    account.cloned().ok_or_else(|| Refusal::front(ErrorCode::ResourceNotFound))
}

/// Websites are for visitors only: no request contains or names one.
fn find_inner_account(front: &Front, head: &RequestHead<'_>) -> Result<Arc<Account>, Refusal> {
    if head.target.is_site {
        return Err(Refusal::front(ErrorCode::ResourceNotFound));
    }
    find_account(front, head)
}

async fn process<'h, S: Service>(
    way: Way<'_, S>,
    head: &RequestHead<'h>,
    account: &Account,
    mut body: IncomingBody,
    read: &mut Option<S::Request<'h>>,
    notes: &Notes,
    spare: &mut Vec<u8>,
) -> Result<Response, Refusal> {
    let Way { front, service, host_suffixes } = way;
    if head.method == "OPTIONS" {
        let answer = cors::preflight(service.catalogue(), &account.name, head).await;
        let answer = answer.map_err(Refusal::front)?;
        return Ok(respond::preflight(&answer, head, S::KIND, std::mem::take(spare)));
    }
    let grant = admit(way, head, account, read).await?;
    let Some(request) = &*read else { return Err(ErrorCode::InternalError.into()) };
    // The parameters of a website's address mean something to its own pages only.
    let query = if head.target.is_site { &Query::split("") } else { &head.query };
    let asked = Duration::from_secs(timeout_seconds(query).map_err(Refusal::front)?);
    // Only now: strangers without credentials do not use up what belongs to the account.
    if let Some(throttle) = &front.throttle {
        throttle.operation(&account.name, front.clock.monotonic())?;
    }

    let base = BaseUrl {
        is_https: head.connection.is_https,
        host: head.host.unwrap_or_default(),
        path: head.target.base_path,
    };
    let session = Session { front, head, account: &account.name, base, grant: &grant, notes, host_suffixes };
    let form = S::payload(request);
    let mut payload = match form {
        PayloadForm::Stream => Payload::stream(std::mem::take(&mut body), head.parts, &front.limits)?,
        _ => Payload::none(),
    };
    let outcome = {
        let work = pin!(async {
            let mut _reservation = None;
            if matches!(form, PayloadForm::Whole | PayloadForm::WholeOrAbsent) {
                let may_be_absent = form == PayloadForm::WholeOrAbsent;
                let reserve = || front.payload_memory.small(front.holder(&account.name, head));
                (payload, _reservation) =
                    body::read_whole(body, head.parts, &front.limits, reserve, may_be_absent).await?;
                notes.payload(payload.bytes().len() as u64);
            }
            let mut answer = service.run(&session, request, &mut payload).await?;
            reserve(answer.body(), &session)?;
            Ok(respond::answer(answer, head, S::KIND, std::mem::take(spare)))
        });
        within(S::time_max(request, asked), work).await
    };
    outcome.unwrap_or_else(|| Err(ErrorCode::OperationTimedOut.into()))
}

/// The first half of the road: what the caller asks for, and whether it may. Returns what it may do.
async fn admit<'h, S: Service>(
    way: Way<'_, S>,
    head: &RequestHead<'h>,
    account: &Account,
    read: &mut Option<S::Request<'h>>,
) -> Result<Grant, Refusal> {
    if head.target.is_site {
        return Box::pin(admit_visitor(way, head, account, read)).await;
    }
    head.check_version().map_err(Refusal::front)?;
    let grant = match identify(way, account, head).await {
        Ok(grant) => grant,
        Err(refusal) if S::HAS_PUBLIC_DATA && head.credentials() == Credentials::Anonymous => {
            return Box::pin(admit_anybody(way, head, account, read, refusal)).await;
        }
        Err(refusal) => return Err(refusal),
    };
    // A query that does not decode is told so only to somebody who may ask.
    if head.query.has_unreadable_name() {
        return Err(ErrorCode::InvalidInput.into());
    }
    if head.target.is_secondary && S::is_write(head) {
        let detail = "Write operations are not allowed.";
        let error = ServiceError::with_detail(ErrorCode::InsufficientAccountPermissions, detail);
        return Err(Refusal::front(error));
    }
    // Not by `insert`, which copies the request once more.
    *read = Some(way.service.read(head, &account.name)?);
    let Some(request) = &*read else { return Err(ErrorCode::InternalError.into()) };
    grant.authorize(S::KIND, &S::need(request)).map_err(|error| S::forbid(request, error))?;
    Ok(grant)
}

/// Lets somebody without credentials read what everybody may read. To all else the answer is `refusal`.
async fn admit_anybody<'h, S: Service>(
    way: Way<'_, S>,
    head: &RequestHead<'h>,
    account: &Account,
    read: &mut Option<S::Request<'h>>,
    refusal: Refusal,
) -> Result<Grant, Refusal> {
    if head.query.has_unreadable_name() {
        return Err(refusal);
    }
    let Ok(request) = way.service.read(head, &account.name) else { return Err(refusal) };
    let request = &*read.insert(request);
    match way.service.is_public(&account.name, request).await? {
        // It has no roles, so nothing else is open to it.
        true => Ok(Grant::Roles(RoleSet::NONE)),
        false => Err(refusal),
    }
}

/// Lets somebody look at an account's website, where nobody shows credentials.
async fn admit_visitor<'h, S: Service>(
    way: Way<'_, S>,
    head: &RequestHead<'h>,
    account: &Account,
    read: &mut Option<S::Request<'h>>,
) -> Result<Grant, Refusal> {
    let request = &*read.insert(way.service.read(head, &account.name)?);
    match way.service.is_public(&account.name, request).await? {
        true => Ok(Grant::Roles(RoleSet::NONE)),
        false => Err(Refusal::front(ErrorCode::ResourceNotFound)),
    }
}

/// A request that may run.
pub(crate) struct AdmittedInner<R> {
    pub account: Arc<Account>,
    pub request: R,
}

/// Whether a request that another one names or contains would be let in. It does not run.
pub(crate) fn admit_inner<'a, S: Service>(
    way: Way<'a, S>,
    head: &'a RequestHead<'a>,
) -> Inner<'a, Result<AdmittedInner<S::Request<'a>>, Refusal>> {
    Box::pin(async move {
        let account = find_inner_account(way.front, head)?;
        let mut read = None;
        admit(way, head, &account, &mut read).await?;
        let request = read.ok_or(ErrorCode::InternalError)?;
        Ok(AdmittedInner { account, request })
    })
}

/// The work of a request inside another one. Boxed, because the road contains itself there.
type Inner<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers a request without a payload that came inside another one: by the same road, but it is neither admitted nor
/// observed by itself.
pub(crate) fn answer_inner<'a, S: Service>(
    way: Way<'a, S>,
    parts: &'a RequestParts,
    outer: &'a RequestHead<'a>,
) -> Inner<'a, Response> {
    Box::pin(async move {
        let front = way.front;
        let head = outer.inner(parts, front.request_ids.next(), S::KIND, way.host_suffixes);
        let (mut read, notes, mut spare) = (None, Notes::default(), Vec::new());
        let outcome = match find_inner_account(front, &head) {
            Err(refusal) => Err(refusal),
            Ok(account) => {
                process(way, &head, &account, IncomingBody::Empty, &mut read, &notes, &mut spare).await
            }
        };
        outcome.unwrap_or_else(|refusal| {
            audit(front, &head, &refusal);
            respond::refusal::<S>(refusal, &head, front.now(), spare)
        })
    })
}

/// Reserves memory for a large answer until it is read. A service that changed something has reserved it before, because
/// a completed change is never answered with an error for want of memory.
fn reserve(body: &mut AnswerBody, session: &Session<'_>) -> Result<(), Refusal> {
    if !body.wants_reservation() {
        return Ok(());
    }
    let mut reservation = session.reserve_answer();
    if !reservation.grow(body.as_bytes().len()) {
        return Err(ErrorCode::ServerBusy.into());
    }
    body.hold(reservation);
    Ok(())
}

/// What the caller may do: first authenticates the credentials, then determines what they grant at this time and on
/// this connection.
async fn identify<S: Service>(
    way: Way<'_, S>,
    account: &Account,
    head: &RequestHead<'_>,
) -> Result<Grant, Refusal> {
    let unknown = |error: ServiceError| Refusal::new(Stage::Authentication, error);
    let Way { front, service, .. } = way;
    let now = front.now();
    let tokens = front.tokens.as_ref().map(|tokens| tokens.get());
    let caller =
        authenticate::authenticate(account, head, S::KIND, tokens.as_deref(), now).map_err(unknown)?;
    let token = match caller {
        Caller::Granted(grant) => return Ok(grant),
        Caller::Sas(token) => token,
    };
    let policies = match token.policy() {
        None => None,
        // Looked up for every request, so that changing or removing a policy takes effect with the next one.
        Some((container, _)) => service.catalogue().policies(&account.name, container).await?,
    };
    token.grant(policies.as_deref().unwrap_or_default(), now, &head.connection).map_err(|error| {
        match error.code {
            ErrorCode::AuthenticationFailed => unknown(error),
            // A genuine token, but for another address or protocol: its holder is authenticated, so it gets the
            // service's error.
            _ => error.into(),
        }
    })
}

fn audit(front: &Front, head: &RequestHead<'_>, refusal: &Refusal) {
    if refusal.stage == Stage::Authentication || matches!(refusal.error.code.status(), 401 | 403) {
        let now = front.clock.monotonic();
        front.audit.refused(now, head.connection.peer, head.method, head.path, &refusal.error);
    }
}

/// `None` when the work panics. It must not be polled again afterwards.
async fn catch_panic<F: Future>(mut work: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
        Err(_) => Poll::Ready(None),
    })
    .await
}
