//! The seam: everything that a service contributes to the road. No other code in `front` depends on a particular
//! service.
//!
//! The road is the same for every service: address, authenticate, read, authorize, payload, run, respond. A service
//! defines how a request is read, what permission it needs, how it is carried out, and how a refusal looks. To add a
//! service, implement [`Service`] and bind it to a port of its own.

use std::future::Future;
use std::time::Duration;

use catalogue::Catalogue;
use engine::lane::{Share, Turn};
use observe::{Named, Notes, Operation};
use protocol::auth::ServiceKind;
use protocol::auth::{Grant, Need};
use protocol::common::{AccountName, BaseUrl, DateTime};
use protocol::{ErrorCode, ServiceError};

use super::Front;
use super::handle::Way;
use super::head::RequestHead;
use super::refusal::Refusal;
use crate::http::body::{AnswerBody, Payload};
use crate::http::header_names::AUTHORIZATION;
use crate::http::memory_pool::Reservation;
use crate::http::response::HeaderList;

pub trait Service: Send + Sync + 'static {
    /// Host label, port, SAS letter, form of Shared Key, roles.
    const KIND: &'static ServiceKind;

    /// How metrics and logs name it.
    const OBSERVED: observe::Service = observe::Service::Other;

    /// Whether there may be something that callers without credentials may read.
    const HAS_PUBLIC_DATA: bool = false;

    /// A request that has been read but not yet carried out.
    type Request<'a>: Send + Sync;
    type Answer: Answer;

    /// Holds the service properties and stored policies.
    fn catalogue(&self) -> &Catalogue;

    /// Whether a request changes something, and so is refused by the secondary. Most verbs say so by themselves.
    fn is_write(head: &RequestHead<'_>) -> bool {
        !matches!(head.method, "GET" | "HEAD")
    }

    /// Reads what the caller asks for. The caller is authenticated by now, but nothing is authorized yet.
    fn read<'a>(&self, head: &RequestHead<'a>, account: &AccountName) -> Result<Self::Request<'a>, Refusal>;

    /// What the request is, for metrics and logs. What turns out later is written into [`Session::notes`].
    fn describe<'r>(_request: &'r Self::Request<'_>) -> (Operation, Named<'r>) {
        (Self::OBSERVED.unread(), Named::default())
    }

    /// The permission that the request needs.
    fn need<'r>(request: &'r Self::Request<'_>) -> Need<'r>;

    /// Whether callers without credentials may do this too. Only asked of services with public data.
    fn is_public(
        &self,
        _account: &AccountName,
        _request: &Self::Request<'_>,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send {
        async { Ok(false) }
    }

    /// The refusal for a caller that lacks the permission.
    fn forbid(_request: &Self::Request<'_>, error: ServiceError) -> Refusal {
        error.into()
    }

    /// Whether the request has a payload, and in which form the service wants it.
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

    /// Adds a refusal's headers to those that every response has, and returns its body.
    fn refuse<'r>(
        refusal: &'r Refusal,
        head: &RequestHead<'_>,
        now: DateTime,
        headers: &mut HeaderList,
    ) -> ErrorBody<'r>;
}

/// A successful result, in the service's own terms.
pub trait Answer: Send {
    fn status(&self) -> u16;

    fn body(&mut self) -> &mut AnswerBody;

    /// Adds its headers to those that every response has.
    fn write_headers(&mut self, headers: &mut HeaderList);
}

/// The body of a refusal.
pub struct ErrorBody<'r> {
    pub bytes: Vec<u8>,
    /// What the status line says instead of the standard phrase.
    pub reason: Option<&'r str>,
}

/// In which form a service wants the payload of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadForm {
    /// The request has no payload, or its payload is ignored.
    None,
    /// As a whole, in memory. A request without a payload is refused.
    Whole,
    /// As a whole. A missing payload counts as an empty one.
    WholeOrAbsent,
    /// Piece by piece, as it arrives.
    Stream,
}

/// The caller, and everything that running its request may use.
pub struct Session<'a> {
    pub front: &'a Front,
    pub head: &'a RequestHead<'a>,
    pub account: &'a AccountName,
    /// The account's base URL as the caller knows it, without a trailing slash.
    pub base: BaseUrl<'a>,
    pub grant: &'a Grant,
    /// What is learned about the request while it runs.
    pub notes: &'a Notes,
    /// Additional host suffixes whose first label is the account.
    pub(crate) host_suffixes: &'a [String],
}

impl Session<'_> {
    /// Whether the caller may do this with another service of the account too.
    pub(crate) fn authorize_elsewhere(
        &self,
        kind: &ServiceKind,
        need: &Need<'_>,
    ) -> Result<(), ServiceError> {
        match self.grant {
            Grant::Everything | Grant::AccountSas { .. } => self.grant.authorize(kind, need),
            // It is for one resource of one service.
            Grant::ServiceSas { .. } => Err(ErrorCode::AuthorizationFailure.into()),
            // The roles that were read are those of this service.
            Grant::Roles(_) => {
                let token = self.head.header(AUTHORIZATION).and_then(|header| header.split_once(' '));
                let (Some((_, token)), Some(tokens)) = (token, &self.front.tokens) else {
                    return Err(ErrorCode::AuthorizationPermissionMismatch.into());
                };
                let validated = tokens.get().validate(
                    token.trim(),
                    kind,
                    self.account,
                    &self.head.connection,
                    self.front.now(),
                );
                let denied = |_| ServiceError::from(ErrorCode::AuthorizationPermissionMismatch);
                validated.map_err(denied)?.authorize(kind, need)
            }
        }
    }

    /// The way that the request came, for those inside it.
    pub(crate) fn way<'s, S: Service>(&'s self, service: &'s S) -> Way<'s, S> {
        Way { front: self.front, service, host_suffixes: self.host_suffixes }
    }

    /// An empty reservation of memory for the request's payload.
    pub(crate) fn reserve_payload(&self) -> Reservation {
        self.front.payload_memory.small(self.front.holder(self.account, self.head))
    }

    /// An empty reservation of memory for the request's answer.
    pub(crate) fn reserve_answer(&self) -> Reservation {
        self.front.answer_memory.small(self.front.holder(self.account, self.head))
    }

    /// With whom the request shares what it may have to wait for: accounts share with accounts, and within an account
    /// callers with callers, as with memory.
    pub(crate) fn share(&self) -> Share {
        let holder = self.front.holder(self.account, self.head);
        Share { group: holder.account, member: holder.caller }
    }

    /// To be held while a payload of this size is parsed.
    pub(crate) async fn turn_to_parse(&self, payload_bytes: usize) -> Option<Turn<'_>> {
        self.front.heavy_lane.turn(payload_bytes, || self.share()).await
    }
}
