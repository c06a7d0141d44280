//! How requests reach a server: a trait, so that tests can answer in its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

/// Sends a request whose URI is absolute, and waits for the whole answer.
///
/// The client's own transport is [`HttpTransport`](crate::HttpTransport). A test can answer instead:
///
/// ```
/// use bytes::Bytes;
/// use lazulite_client::{Sending, Transport};
///
/// /// Says that there are no tables.
/// struct Empty;
///
/// impl Transport for Empty {
///     fn send(&self, _request: http::Request<Bytes>) -> Sending<'_> {
///         Box::pin(async { Ok(http::Response::new(Bytes::from_static(b"{\"value\":[]}"))) })
///     }
/// }
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Sends once: whether to send again is decided above. Dropping the future gives the request up.
    fn send(&self, request: http::Request<Bytes>) -> Sending<'_>;

    /// The same, for a transport that can tell whether it has begun to write. If the time is up before that, the client
    /// knows that the server has not seen the request, and may send it again without a doubt.
    ///
    /// A transport that says nothing is assumed to have written.
    fn send_watched<'a>(&'a self, request: http::Request<Bytes>, progress: &'a Progress) -> Sending<'a> {
        let _ = progress;
        self.send(request)
    }
}

/// How far a request has come: see [`Transport::send_watched`].
///
/// ```
/// use lazulite_client::Progress;
///
/// let progress = Progress::default();
/// progress.wait(); // for a connection
/// assert!(progress.is_unsent());
/// progress.begin(); // to write the request
/// assert!(!progress.is_unsent());
/// ```
#[derive(Debug, Default)]
pub struct Progress(AtomicBool);

impl Progress {
    /// No byte of the request has been written so far.
    pub fn wait(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// From now on the server may see the request.
    pub fn begin(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the transport has said that it is still waiting.
    pub fn is_unsent(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request on its way.
pub type Sending<'a> =
    Pin<Box<dyn Future<Output = Result<http::Response<Bytes>, TransportError>> + Send + 'a>>;

/// No answer came.
#[derive(Debug)]
#[non_exhaustive]
pub struct TransportError {
    /// Whether the server cannot have seen the request: the connection was never made.
    pub is_unsent: bool,
    /// Whether a connection kept from an earlier request ended before any byte of the answer. Servers close idle
    /// connections at any time, so this says nothing about the server's health.
    pub was_stale: bool,
    /// What happened.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl TransportError {
    /// The server cannot have seen the request.
    pub fn unsent(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TransportError {
        TransportError { is_unsent: true, was_stale: false, source: source.into() }
    }

    /// The request went out, or part of it, and the answer did not come.
    pub fn lost(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TransportError {
        TransportError { is_unsent: false, was_stale: false, source: source.into() }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_unsent { "the server could not be reached" } else { "the answer was lost" };
        write!(f, "{what}: {}", self.source)?;
        // hyper's own errors say little; their causes say what the socket said.
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {}
