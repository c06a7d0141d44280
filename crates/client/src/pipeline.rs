//! The road of every call: address, sign, send, retry, and read the refusal.
//!
//! Promises: every attempt is signed anew with the current date and carries the same client request id. What must not
//! happen twice is sent again only when the server cannot have begun it. No header or URL is logged.
//! Leaves to others: what an operation means, and what its answer holds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use protocol::auth::{FullRequest, Scheme, ServiceKind, SharedKeyForm, ShortRequest};
use protocol::common::headers::{X_MS_CLIENT_REQUEST_ID, X_MS_DATE, X_MS_VERSION};
use protocol::common::query::Query;
use tracing::Instrument as _;

use crate::clock::{self, DateText, Environment};
use crate::connection::{Endpoint, Endpoints};
use crate::credential::Kind;
use crate::error::{ServiceFailure, refuses_before_work};
use crate::operation_name::operation_name;
use crate::retry::{self, Budget, RetryPolicy};
use crate::{Credential, Error, Progress, Transport, TransportError};

/// The version of the Table service whose answers the client reads, which is the one that the official clients ask for.
pub(crate) const TABLE_VERSION: &str = "2019-02-02";
/// The version of the Queue service: recent, and known to every region and emulator.
pub(crate) const QUEUE_VERSION: &str = "2025-11-05";

static DATE: HeaderName = HeaderName::from_static(X_MS_DATE);
static VERSION: HeaderName = HeaderName::from_static(X_MS_VERSION);
static CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static(X_MS_CLIENT_REQUEST_ID);
static DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("dataserviceversion");
static MAX_DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("maxdataserviceversion");

/// As many headers as a request usually has.
const HEADER_COUNT_USUAL: usize = 14;

/// One operation, before it is addressed and signed.
#[derive(Clone)]
pub(crate) struct Call {
    pub method: Method,
    /// Below the account: `Tables`, `people(PartitionKey='a',RowKey='b')`; percent-encoded.
    pub path: String,
    /// Names and values, not yet encoded.
    pub query: Vec<(&'static str, String)>,
    /// They replace the headers that every request of the service has.
    pub headers: Vec<(HeaderName, String)>,
    pub body: Bytes,
    pub repeat: Repeat,
    /// Whether it must see the latest state: the replica, which lags behind, is not asked even if reads may go there.
    pub is_fresh: bool,
}

/// What may be done when no answer came, or a 5xx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeat {
    /// The operation may be sent again: it reads, or its effect is the same however often it happens.
    Freely,
    /// Only when the server cannot have seen it. The caller finds out what happened.
    OnlyUnsent,
}

/// What the service answered, when it accepted the call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Whether an earlier attempt may have reached the server too.
    pub was_repeated: bool,
}

/// One service of one account.
pub(crate) struct Pipeline {
    kind: &'static ServiceKind,
    endpoints: Endpoints,
    credential: Credential,
    transport: Arc<dyn Transport>,
    retry: RetryPolicy,
    /// For one attempt.
    timeout: Duration,
    date: DateText,
    user_agent: HeaderValue,
}

/// What a pipeline is made of, beside its service.
pub(crate) struct Settings {
    pub endpoints: Endpoints,
    pub credential: Credential,
    pub transport: Arc<dyn Transport>,
    pub retry: RetryPolicy,
    pub timeout: Duration,
    pub environment: Arc<dyn Environment>,
    pub user_agent: HeaderValue,
}

/// Which of the endpoints an attempt goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Primary,
    Secondary,
}

/// An attempt that brought no answer that the caller wants.
struct Failure {
    error: Error,
    /// Whether the operation may be sent again.
    may_repeat: bool,
    /// Whether the server may have begun the work.
    may_have_begun: bool,
    /// How long the server asks to wait.
    asked: Option<Duration>,
}

impl Pipeline {
    pub(crate) fn new(kind: &'static ServiceKind, settings: Settings) -> Result<Pipeline, Error> {
        let Settings { endpoints, credential, transport, retry, timeout, environment, user_agent } = settings;
        let is_open = |endpoint: &&Endpoint| !endpoint.is_https() && !endpoint.is_loopback();
        let open = std::iter::once(&endpoints.primary).chain(&endpoints.secondary).find(is_open);
        if let (Kind::Token(_), Some(endpoint)) = (&credential.0, open) {
            return Err(Error::Configuration(format!(
                "{endpoint} is not https: a bearer token would be readable on the way"
            )));
        }
        let date = DateText::new(environment);
        Ok(Pipeline { kind, endpoints, credential, transport, retry, timeout, date, user_agent })
    }

    /// Whatever is not a success (2xx) is an error.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer, Error> {
        self.call_within(call, &mut Budget::new()).await
    }

    /// A call that is part of an operation of several.
    pub(crate) async fn call_within(&self, call: Call, budget: &mut Budget) -> Result<Answer, Error> {
        self.run(call, Location::Primary, budget).await
    }

    /// Asks the replica, and only it.
    pub(crate) async fn call_secondary(&self, call: Call) -> Result<Answer, Error> {
        if self.endpoints.secondary.is_none() {
            return Err(Error::Configuration(format!(
                "nothing tells where the replica of {} is: name it with ClientBuilder::secondary_endpoint, or in the \
                 connection string with {}SecondaryEndpoint",
                self.endpoints.primary, self.kind.name
            )));
        }
        self.run(call, Location::Secondary, &mut Budget::new()).await
    }

    /// Where the service is: `http://host/account`, or `https://account.host`.
    pub(crate) fn root(&self) -> String {
        self.endpoints.primary.to_string()
    }

    /// A new identifier, as text.
    pub(crate) fn guid(&self) -> [u8; 36] {
        clock::guid(self.environment().random())
    }

    /// The wait after a failure, for whoever repeats more than one call. `false` at once if the policy allows no more.
    pub(crate) async fn pause(&self, budget: &Budget, asked: Option<Duration>) -> bool {
        match budget.next_delay(&self.retry, self.environment().random(), asked) {
            Some(delay) => {
                tokio::time::sleep(delay).await;
                true
            }
            None => false,
        }
    }

    pub(crate) fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Time and chance, for whoever needs more of them than the pipeline.
    pub(crate) fn environment(&self) -> &dyn Environment {
        self.date.environment()
    }

    async fn run(&self, call: Call, location: Location, budget: &mut Budget) -> Result<Answer, Error> {
        let span = tracing::debug_span!(
            "azure_storage_call",
            service = self.kind.name,
            operation = operation_name(self.kind, &call),
            attempts = tracing::field::Empty,
            status = tracing::field::Empty,
        );
        self.attempts(&call, location, budget).instrument(span).await
    }

    async fn attempts(
        &self,
        call: &Call,
        mut location: Location,
        budget: &mut Budget,
    ) -> Result<Answer, Error> {
        let id = self.guid();
        let is_read = matches!(call.method, Method::GET | Method::HEAD) && call.repeat == Repeat::Freely;
        let mut alternates = is_read
            && !call.is_fresh
            && location == Location::Primary
            && self.retry.reads_secondary
            && self.endpoints.secondary.is_some();
        let mut attempt_count = 0;
        let (mut was_repeated, mut was_stale_once, mut was_forgotten) = (false, false, false);
        loop {
            attempt_count += 1;
            // Only a token is looked at again: the service may refuse one that has been revoked.
            let mut token = None;
            let progress = Progress::default();
            progress.wait();
            let attempt = async {
                let request = self.request(call, location, &id).await?;
                progress.begin();
                if let Kind::Token(cache) = &self.credential.0 {
                    token = request.headers().get(AUTHORIZATION).cloned().map(|token| (cache, token));
                }
                Ok(self.transport.send_watched(request, &progress).await)
            };
            let failure = match tokio::time::timeout(self.timeout, attempt).await {
                // Everything else is a refusal, a redirect too: no service redirects, and whatever stands between
                // would have to see the credential again.
                Ok(Ok(Ok(response))) if response.status().is_success() => {
                    self.record(attempt_count, Some(response.status()));
                    return Ok(Answer::new(response, was_repeated));
                }
                Ok(Ok(Ok(response))) => self.refusal(call, response),
                Ok(Ok(Err(error))) => self.silence(call, Some(error)),
                Ok(Err(error)) => return Err(told(error, was_repeated)),
                Err(_elapsed) if progress.is_unsent() => {
                    let reason = "there was no token or no free connection in time";
                    self.silence(call, Some(TransportError::unsent(reason)))
                }
                Err(_elapsed) => self.silence(call, None),
            };
            let status = failure.error.status();
            self.record(attempt_count, status);
            let had_begun = was_repeated;
            was_repeated |= failure.may_have_begun;

            // A kept connection that the server closed says nothing about the server, so there is nothing to wait for.
            let is_stale = matches!(&failure.error, Error::Transport(error) if error.was_stale);
            if is_stale && failure.may_repeat && !was_stale_once {
                was_stale_once = true;
                tracing::debug!(attempt = attempt_count, "the kept connection was closed; sending again");
                continue;
            }
            if let Some((cache, token)) = token
                && refuses_token(&failure.error)
                && !was_forgotten
            {
                was_forgotten = true;
                cache.forget(&token);
                continue;
            }
            // The replica lags behind: only the primary can say that something does not exist.
            if alternates && location == Location::Secondary && status == Some(StatusCode::NOT_FOUND) {
                alternates = false;
                location = Location::Primary;
                continue;
            }
            budget.failure_count += 1;
            if !failure.may_repeat || budget.failure_count >= self.retry.attempts_max {
                return Err(told(failure.error, had_begun));
            }
            if alternates {
                location = location.other();
            }
            let delay = match location {
                // The other server may well be healthy.
                Location::Secondary if alternates => {
                    budget.within(&self.retry, failure.asked.unwrap_or_default())
                }
                _ => budget.next_delay(&self.retry, self.environment().random(), failure.asked),
            };
            let Some(delay) = delay else { return Err(told(failure.error, had_begun)) };
            tracing::debug!(
                attempt = attempt_count,
                status = status.map(|status| status.as_u16()),
                delay_ms = delay.as_millis() as u64,
                "trying again"
            );
            tokio::time::sleep(delay).await;
        }
    }

    fn record(&self, attempt_count: u32, status: Option<StatusCode>) {
        let span = tracing::Span::current();
        if span.is_disabled() {
            return;
        }
        span.record("attempts", attempt_count);
        if let Some(status) = status {
            span.record("status", status.as_u16());
        }
    }

    /// The service answered, and refused.
    fn refusal(&self, call: &Call, response: Response<Bytes>) -> Failure {
        let (parts, body) = response.into_parts();
        let failure = ServiceFailure::read(parts.status, &parts.headers, &body);
        Failure {
            may_repeat: retry::allows_after_answer(call.repeat, parts.status, &failure.code),
            may_have_begun: parts.status.is_server_error()
                && !refuses_before_work(parts.status, &failure.code),
            asked: retry::asked_delay(&parts.headers, self.environment().now()),
            error: failure.into(),
        }
    }

    /// No answer came: the transport failed, or, without an error, the time was up.
    fn silence(&self, call: &Call, error: Option<TransportError>) -> Failure {
        Failure {
            may_repeat: retry::allows_after_silence(call.repeat, error.as_ref()),
            may_have_begun: error.as_ref().is_none_or(|error| !error.is_unsent),
            asked: None,
            error: error.map_or(Error::Timeout, Error::Transport),
        }
    }

    /// The request, addressed and signed.
    async fn request(&self, call: &Call, location: Location, id: &[u8; 36]) -> Result<Request<Bytes>, Error> {
        let endpoint = match (location, &self.endpoints.secondary) {
            (Location::Secondary, Some(secondary)) => secondary,
            _ => &self.endpoints.primary,
        };
        let (target, path_end) = self.target(call, endpoint);
        let target = PathAndQuery::from_maybe_shared(Bytes::from(target))
            .map_err(|_| Error::Refused(format!("{} has a path that no URL can have", call.path)))?;

        let mut headers = self.headers(call, id)?;
        match &self.credential.0 {
            Kind::SharedKey { account, key } => {
                let target = target.as_str();
                let (path, query) = (&target[..path_end], target.get(path_end + 1..).unwrap_or_default());
                let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
                let signature = match self.kind.shared_key {
                    SharedKeyForm::Short => ShortRequest {
                        method: call.method.as_str(),
                        content_md5: "",
                        content_type: text(&CONTENT_TYPE).unwrap_or_default(),
                        date: text(&DATE).unwrap_or_default(),
                        account,
                        path,
                        comp: call
                            .query
                            .iter()
                            .find(|(name, _)| *name == "comp")
                            .map(|(_, value)| value.as_str()),
                    }
                    .sign(key, Scheme::SharedKey),
                    SharedKeyForm::Full => {
                        let signed: Vec<(&str, &str)> = headers
                            .iter()
                            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
                            .collect();
                        let request = FullRequest {
                            method: call.method.as_str(),
                            account,
                            path,
                            query: &Query::split(query),
                            version: text(&VERSION),
                            headers: &signed,
                        };
                        request
                            .sign(key, Scheme::SharedKey)
                            .ok_or_else(|| Error::Refused("a query parameter is not UTF-8".to_owned()))?
                    }
                };
                let mut value = String::with_capacity(11 + account.len() + signature.len());
                for piece in ["SharedKey ", account, ":", &signature] {
                    value.push_str(piece);
                }
                let mut value = HeaderValue::try_from(value).map_err(|_| {
                    Error::Configuration("the account's name is not a valid header value".to_owned())
                })?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            Kind::Token(cache) => {
                headers.insert(AUTHORIZATION, cache.authorization(self.environment()).await?);
            }
            // The signature is part of the query.
            Kind::Sas(_) => {}
        }

        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(endpoint.scheme.clone());
        parts.authority = Some(endpoint.authority.clone());
        parts.path_and_query = Some(target);
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = call.method.clone();
        *request.uri_mut() =
            Uri::from_parts(parts).expect("an endpoint has a scheme, an authority and a path");
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Path and query, and where the path ends.
    fn target(&self, call: &Call, endpoint: &Endpoint) -> (String, usize) {
        let signature = match &self.credential.0 {
            Kind::Sas(query) => &**query,
            _ => "",
        };
        let query_bytes: usize =
            call.query.iter().map(|(name, value)| name.len() + value.len() * 2 + 2).sum();
        let capacity = endpoint.path.len() + call.path.len() + query_bytes + signature.len() + 2;
        let mut target = String::with_capacity(capacity);
        target.push_str(&endpoint.path);
        target.push('/');
        target.push_str(&call.path);
        let path_end = target.len();
        let mut separator = '?';
        for (name, value) in &call.query {
            target.push(separator);
            separator = '&';
            push_escaped(name, &mut target);
            target.push('=');
            push_escaped(value, &mut target);
        }
        if !signature.is_empty() {
            target.push(separator);
            target.push_str(signature);
        }
        (target, path_end)
    }

    /// Every header except `Authorization`.
    fn headers(&self, call: &Call, id: &[u8; 36]) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::with_capacity(HEADER_COUNT_USUAL);
        headers.insert(&DATE, self.date.now());
        let id = HeaderValue::from_bytes(id).expect("a GUID is a valid header value");
        headers.insert(&CLIENT_REQUEST_ID, id);
        headers.insert(USER_AGENT, self.user_agent.clone());
        match self.kind.shared_key {
            SharedKeyForm::Short => {
                headers.insert(&VERSION, HeaderValue::from_static(TABLE_VERSION));
                headers.insert(&DATA_SERVICE_VERSION, HeaderValue::from_static("3.0"));
                headers.insert(&MAX_DATA_SERVICE_VERSION, HeaderValue::from_static("3.0;NetFx"));
                headers.insert(ACCEPT, HeaderValue::from_static("application/json;odata=minimalmetadata"));
            }
            SharedKeyForm::Full => {
                headers.insert(&VERSION, HeaderValue::from_static(QUEUE_VERSION));
                headers.insert(ACCEPT, HeaderValue::from_static("application/xml"));
            }
        }
        // The services want the length of an empty body too, where a body could be.
        if !call.body.is_empty() || !matches!(call.method, Method::GET | Method::HEAD | Method::DELETE) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(call.body.len()));
        }
        for (name, value) in &call.headers {
            let value = HeaderValue::from_str(value)
                .map_err(|_| Error::Refused(format!("the value of {name} is not valid in a header")))?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("endpoint", &format_args!("{}", self.endpoints.primary))
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

impl Answer {
    fn new(response: Response<Bytes>, was_repeated: bool) -> Answer {
        let (parts, body) = response.into_parts();
        Answer { status: parts.status, headers: parts.headers, body, was_repeated }
    }

    /// The text of a header, if it is there and is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Call {
    /// A call without query, headers and body.
    pub(crate) fn new(method: Method, path: impl Into<String>, repeat: Repeat) -> Call {
        Call {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            repeat,
            is_fresh: false,
        }
    }
}

impl Location {
    fn other(self) -> Location {
        match self {
            Location::Primary => Location::Secondary,
            Location::Secondary => Location::Primary,
        }
    }
}

/// Whether the service did not accept the token. Versions before 2019-12-12, of which the Table service's is one, say so
/// with 403, as they do for every signature.
fn refuses_token(error: &Error) -> bool {
    match error.status() {
        Some(StatusCode::UNAUTHORIZED) => true,
        Some(StatusCode::FORBIDDEN) => error.code() == Some("AuthenticationFailed"),
        _ => false,
    }
}

/// What the caller hears of the last attempt, if an earlier one may have reached the server.
fn told(error: Error, had_begun: bool) -> Error {
    if had_begun { error.after_lost_answer() } else { error }
}

/// Percent-encodes everything except the unreserved characters of a URI, for a segment of a path or a part of a query.
pub(crate) fn push_escaped(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut rest = text;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        out.push_str(&rest[..at]);
        // The bytes of one character, however many, are all escaped, so the text is cut between characters.
        let character_bytes = rest[at..].chars().next().map_or(1, char::len_utf8);
        for byte in rest[at..at + character_bytes].bytes() {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
        rest = &rest[at + character_bytes..];
    }
    out.push_str(rest);
}

#[cfg(test)]
pub(crate) mod tests;
