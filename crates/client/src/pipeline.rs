//! The road of every call: address, sign, send, retry, and read the refusal.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::Error;

/// One operation, before it is addressed and signed.
pub(crate) struct Call {
    pub method: Method,
    /// Below the account: `Tables`, `people(PartitionKey='a',RowKey='b')`; percent-encoded.
    pub path: String,
    /// Names and values, not yet encoded.
    pub query: Vec<(&'static str, String)>,
    pub headers: Vec<(HeaderName, String)>,
    pub body: Bytes,
    pub repeat: Repeat,
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
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Whether an earlier attempt may have reached the server too.
    pub was_repeated: bool,
}

/// One service of one account.
pub(crate) struct Pipeline {}

impl Pipeline {
    /// Refusals (4xx, 5xx) are errors.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer, Error> {
        let _ = call;
        todo!()
    }
}
