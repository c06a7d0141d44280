//! How requests reach a server: a trait, so that tests can answer in its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

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
}

/// A request on its way.
pub type Sending<'a> =
    Pin<Box<dyn Future<Output = Result<http::Response<Bytes>, TransportError>> + Send + 'a>>;

/// No answer came.
#[derive(Debug)]
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
