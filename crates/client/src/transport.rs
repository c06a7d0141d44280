//! How requests reach a server: a trait, so that tests can answer in its place.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

/// Sends a request whose URI is absolute, and waits for the whole answer.
pub trait Transport: Send + Sync + 'static {
    fn send(&self, request: http::Request<Bytes>) -> Sending<'_>;
}

pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<http::Response<Bytes>, TransportError>> + Send + 'a>>;

/// No answer came.
#[derive(Debug)]
pub struct TransportError {
    /// Whether the server cannot have seen the request: the connection was never made.
    pub is_unsent: bool,
    pub source: Box<dyn std::error::Error + Send + Sync>,
}
