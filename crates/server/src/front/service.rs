//! The seam: what a service brings to the road, and nothing else knows about it.
//!
//! The road is the same for every service: address, authenticate, read, authorize, payload, run, respond. A service says
//! how a request becomes one of its requests, what that needs of the caller, how it is carried out and how a refusal
//! looks. To add one, implement [`Service`] and bind it to a port of its own.

use std::future::Future;
use std::time::Duration;

use catalogue::Catalogue;
use http::HeaderMap;
use protocol::ServiceError;
use protocol::auth::ServiceKind;
use protocol::auth::{Grant, Need};
use protocol::common::{AccountName, DateTime};

use super::Front;
use super::head::RequestHead;
use super::refusal::Refusal;
use crate::http::body::{AnswerBody, Payload};

pub trait Service: Send + Sync + 'static {
    /// Host label, port, SAS letter, form of Shared Key, roles.
    const KIND: &'static ServiceKind;

    /// One call, read but not yet carried out.
    type Request<'a>: Send + Sync;
    type Answer: Answer;

    /// Where the service keeps its service properties and stored policies.
    fn catalogue(&self) -> &Catalogue;

    /// Whether a request changes something, and so is refused by the secondary. Most verbs say so by themselves.
    fn is_write(head: &RequestHead<'_>) -> bool {
        !matches!(head.method, "GET" | "HEAD")
    }

    /// Reads what the caller asks for. The caller is known by now, and nothing was said yet about what it may do.
    fn read<'a>(&self, head: &RequestHead<'a>, account: &AccountName) -> Result<Self::Request<'a>, Refusal>;

    /// What the request needs of its caller.
    fn need<'r>(request: &'r Self::Request<'_>) -> Need<'r>;

    /// How a request that the caller may not make is refused.
    fn forbid(_request: &Self::Request<'_>, error: ServiceError) -> Refusal {
        error.into()
    }

    /// Whether the request has a payload, and how the service wants it.
    fn payload(request: &Self::Request<'_>) -> PayloadForm;

    /// How long the request may take, payload included; `asked` is what the caller allows.
    fn time_max(_request: &Self::Request<'_>, asked: Duration) -> Duration {
        asked
    }

    /// Carries the request out.
    fn run(
        &self,
        session: &Session<'_>,
        request: &Self::Request<'_>,
        payload: &mut Payload,
    ) -> impl Future<Output = Result<Self::Answer, Refusal>> + Send;

    /// Adds the headers of a refusal to those that every answer has, and returns its body.
    fn refuse(refusal: &Refusal, head: &RequestHead<'_>, now: DateTime, headers: &mut HeaderMap)
    -> ErrorBody;
}

/// A success, as the service means it.
pub trait Answer: Send {
    fn status(&self) -> u16;

    /// About how many headers it has, so that room for them is made once.
    fn header_count(&self) -> usize;

    fn body(&mut self) -> &mut AnswerBody;

    /// Adds its headers to those that every answer has.
    fn write_headers(&mut self, headers: &mut HeaderMap);
}

/// The body of a refusal.
pub struct ErrorBody {
    pub bytes: Vec<u8>,
    /// Whether the status line says the error's own message instead of the usual phrase.
    pub has_reason: bool,
}

/// How a service wants the payload of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadForm {
    /// There is none, or it does not matter.
    None,
    /// Whole, in memory; a request without one is refused.
    Whole,
    /// Whole; a request without one counts as one with an empty one.
    WholeOrAbsent,
    /// Piece by piece, as it arrives.
    Stream,
}

/// Who asks, and what carrying the request out may use.
pub struct Session<'a> {
    pub front: &'a Front,
    pub head: &'a RequestHead<'a>,
    pub account: &'a AccountName,
    /// The account's base URL as the caller knows it, without a slash at its end.
    pub base: &'a str,
    pub grant: &'a Grant,
}
