//! Requests of ours to other HTTP servers: to an object store, and to the sources of copies.
//!
//! Promises: every step has a time limit. Redirects are answers like any other and are never followed. The addresses that a name
//! resolves to are judged before a connection is made, so a name cannot lead to an address that was not allowed. Certificates are
//! checked against the authorities that the system trusts. Memory is bounded by what the caller holds: a body is read piece by
//! piece.
//! Leaves to others: signing, retries, and what an answer means.

mod body;
mod connect;
mod origin;

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response};
use hyper::body::Body;
use hyper::client::conn::http1::SendRequest;
use rustls::ClientConfig;

pub use body::{NoBody, OutboundBody};
pub use origin::Origin;

/// Connections to one server that are kept for later requests. Further ones are closed.
const IDLE_COUNT_MAX: usize = 64;

/// Says which addresses a connection may lead to.
pub type Admission = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// For the name, the connection and the handshake together.
    pub connect: Duration,
    /// From the request to the head of the answer.
    pub answer: Duration,
    /// Between two pieces of an answer's body.
    pub pause: Duration,
}

impl Default for TimeLimits {
    fn default() -> TimeLimits {
        let seconds = Duration::from_secs;
        TimeLimits { connect: seconds(10), answer: seconds(60), pause: seconds(30) }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum OutboundError {
    /// It is not the address of an HTTP server.
    NoAddress(String),
    /// The name leads only to addresses that are not allowed.
    NotAllowed(String),
    /// No connection was made, so the server has not seen the request.
    Connect(String),
    /// The time is over.
    TimedOut,
    /// The connection broke. The server may have seen the request.
    Broken(String),
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutboundError::NoAddress(what) => write!(f, "{what} is not the address of an HTTP server"),
            OutboundError::NotAllowed(host) => write!(f, "{host} leads to an address that is not allowed"),
            OutboundError::Connect(why) => write!(f, "no connection: {why}"),
            OutboundError::TimedOut => f.write_str("no answer in time"),
            OutboundError::Broken(why) => write!(f, "the connection broke: {why}"),
        }
    }
}

impl std::error::Error for OutboundError {}

/// A client with connections that are used again. `B` is the body of its requests.
pub struct Outbound<B> {
    limits: TimeLimits,
    admits: Admission,
    tls: OnceLock<Arc<ClientConfig>>,
    idle: Mutex<HashMap<Origin, Vec<SendRequest<B>>>>,
}

impl<B> fmt::Debug for Outbound<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl<B> Outbound<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub fn new(limits: TimeLimits, admits: Admission) -> Outbound<B> {
        Outbound { limits, admits, tls: OnceLock::new(), idle: Mutex::default() }
    }

    /// Sends a request whose URI is absolute.
    pub async fn send(&self, request: Request<B>) -> Result<Response<OutboundBody>, OutboundError> {
        let (mut parts, body) = request.into_parts();
        let origin = Origin::of(&parts.uri)?;
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        parts.uri = target.parse().map_err(|_| OutboundError::NoAddress(origin.to_string()))?;
        if !parts.headers.contains_key(HOST) {
            let host = origin.host_header().parse();
            parts.headers.insert(HOST, host.map_err(|_| OutboundError::NoAddress(origin.to_string()))?);
        }
        let request = Request::from_parts(parts, body);
        let answer = tokio::time::timeout(self.limits.answer, self.exchange(&origin, request));
        let answer = answer.await.unwrap_or(Err(OutboundError::TimedOut))?;
        Ok(answer.map(|body| OutboundBody::new(body, self.limits.pause)))
    }

    async fn exchange(
        &self,
        origin: &Origin,
        mut request: Request<B>,
    ) -> Result<Response<hyper::body::Incoming>, OutboundError> {
        // A server may close a kept connection at any time. If it did so before the request was written, take another.
        while let Some(mut kept) = self.take_idle(origin) {
            match kept.try_send_request(request).await {
                Ok(answer) => {
                    self.keep(origin, kept);
                    return Ok(answer);
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(OutboundError::Broken(failed.into_error().to_string())),
                },
            }
        }
        let mut sender = self.connect(origin).await?;
        let sent = sender.send_request(request).await;
        let answer = sent.map_err(|error| OutboundError::Broken(error.to_string()))?;
        self.keep(origin, sender);
        Ok(answer)
    }

    async fn connect(&self, origin: &Origin) -> Result<SendRequest<B>, OutboundError> {
        let connecting = connect::connect(origin, &self.admits, || self.tls());
        let connected = tokio::time::timeout(self.limits.connect, connecting).await;
        connected.unwrap_or(Err(OutboundError::TimedOut))
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, OutboundError> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let made = Arc::new(connect::client_config()?);
        Ok(self.tls.get_or_init(|| made).clone())
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<Origin, Vec<SendRequest<B>>>> {
        self.idle.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A connection on which nothing is under way.
    fn take_idle(&self, origin: &Origin) -> Option<SendRequest<B>> {
        let mut idle = self.idle();
        let kept = idle.get_mut(origin)?;
        kept.retain(|sender| !sender.is_closed());
        let ready = kept.iter().rposition(SendRequest::is_ready)?;
        Some(kept.swap_remove(ready))
    }

    /// Keeps a connection whose answer may still be on its way: it is used again only when it is ready.
    fn keep(&self, origin: &Origin, sender: SendRequest<B>) {
        let mut idle = self.idle();
        let kept = idle.entry(origin.clone()).or_default();
        kept.retain(|sender| !sender.is_closed());
        if kept.len() < IDLE_COUNT_MAX {
            kept.push(sender);
        }
    }
}
