//! A second service, as small as one can be: it gives back what it gets. It exists to show that a service is added at the
//! seam alone, in one file, without a change to the road.
//!
//! `GET /ACCOUNT/SHELF` names the shelf, `PUT /ACCOUNT/SHELF` puts one up, `POST /ACCOUNT/SHELF` echoes its payload piece by
//! piece. Refusals are one line of text. Permissions are `g` (get) and `p` (put, post), its letter in an account SAS is `e`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use catalogue::Catalogue;
use engine::env::Clock;
use engine::{Engine, Family};
use protocol::auth::{
    KeyBounds, Level, MalformedSas, Need, Permission, ResourceName, RoleSet, ServiceKind, ServiceScope,
    SharedKeyForm,
};
use protocol::common::query::{Query, decode};
use protocol::common::version::VersionOrder;
use protocol::common::{AccountName, DateTime};
use protocol::service::ServiceOperation;
use protocol::{ErrorCode, ServiceError};
use server::front::head::RequestHead;
use server::front::refusal::Refusal;
use server::front::service::{Answer, ErrorBody, PayloadForm, Service, Session};
use server::front::service_operations::{self, ServiceAnswer};
use server::http::body::{AnswerBody, AnswerStream, Payload, PayloadError, PayloadStream, Pieces};
use server::http::response::HeaderList;

/// The number of the family is written to the disk; no service of ours has this one.
pub const FAMILY: Family = Family(9);

pub const KIND: ServiceKind = ServiceKind {
    name: "Echo",
    label: "echo",
    site_label: None,
    letter: "e",
    port: 10009,
    server_header: "Echo/1.0",
    version_default: "2020-12-06",
    version_order: VersionOrder::HeaderFirst,
    ignores_parameter_case: true,
    shared_key: SharedKeyForm::Full,
    policy_letters: "gp",
    roles: &[],
    role_of_basic_tokens: RoleSet::NONE,
    read_service_scope,
};

fn read_service_scope(query: &Query<'_>, path: &str) -> Result<ServiceScope, MalformedSas> {
    let policy = query.raw("si").and_then(decode).unwrap_or_default().into_owned();
    let (resource, parameters) = (path.to_owned(), Vec::new());
    Ok(ServiceScope { label: KIND.label, resource, policy, parameters, bounds: KeyBounds::default() })
}

pub struct Echo {
    catalogue: Catalogue,
}

impl Echo {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Echo {
        Echo { catalogue: Catalogue::new(engine, clock, &KIND, FAMILY) }
    }
}

pub enum EchoRequest<'a> {
    Service(ServiceOperation),
    Get(&'a str),
    Put(&'a str),
    Post(&'a str),
}

pub struct EchoAnswer {
    status: u16,
    body: AnswerBody,
}

impl Service for Echo {
    const KIND: &'static ServiceKind = &KIND;
    type Request<'a> = EchoRequest<'a>;
    type Answer = EchoAnswer;

    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn read<'a>(&self, head: &RequestHead<'a>, _: &AccountName) -> Result<EchoRequest<'a>, Refusal> {
        match (head.method, head.target.path, head.query.raw("comp")) {
            (method, "", Some(comp)) => Ok(EchoRequest::Service(ServiceOperation::read(method, comp)?)),
            ("GET", shelf, None) => Ok(EchoRequest::Get(shelf)),
            ("PUT", shelf, None) => Ok(EchoRequest::Put(shelf)),
            ("POST", shelf, None) => Ok(EchoRequest::Post(shelf)),
            _ => Err(ErrorCode::UnsupportedHttpVerb.into()),
        }
    }

    fn need<'r>(request: &'r EchoRequest<'_>) -> Need<'r> {
        let (shelf, letters): (&str, &'static [&'static str]) = match request {
            EchoRequest::Service(operation) => return operation.need(RoleSet::NONE),
            EchoRequest::Get(shelf) => (shelf, &["g"]),
            EchoRequest::Put(shelf) | EchoRequest::Post(shelf) => (shelf, &["p"]),
        };
        let resource = Some(ResourceName { container: shelf, object: None });
        let (level, roles) = (Level::Container, RoleSet::NONE);
        Need::Permission(Permission { level, letters, roles, resource, key: None })
    }

    fn payload(request: &EchoRequest<'_>) -> PayloadForm {
        match request {
            EchoRequest::Service(ServiceOperation::SetProperties) => PayloadForm::Whole,
            EchoRequest::Post(_) => PayloadForm::Stream,
            _ => PayloadForm::None,
        }
    }

    async fn run(
        &self,
        session: &Session<'_>,
        request: &Self::Request<'_>,
        payload: &mut Payload,
    ) -> Result<EchoAnswer, Refusal> {
        let body = match request {
            EchoRequest::Service(operation) => {
                let run = service_operations::run(&self.catalogue, session, *operation, payload.bytes());
                let ServiceAnswer { status, document } = run.await?;
                return Ok(EchoAnswer { status, body: document.map(AnswerBody::whole).unwrap_or_default() });
            }
            EchoRequest::Put(shelf) => {
                let put = self.catalogue.create(session.account, shelf, Bytes::new()).await?;
                put.ok_or_else(|| ServiceError::with_detail(ErrorCode::InvalidInput, "there is one"))?;
                return Ok(EchoAnswer { status: 201, body: AnswerBody::Empty });
            }
            EchoRequest::Get(shelf) => {
                let found = self.catalogue.get(session.account, shelf).await?;
                found.ok_or(ErrorCode::ResourceNotFound)?;
                AnswerBody::whole(format!("{}/{shelf}", session.base).into_bytes())
            }
            EchoRequest::Post(_) => {
                let stream = payload.take_stream().ok_or(ErrorCode::InvalidInput)?;
                let (len, pieces) = (stream.rest_len(), Box::pin(EchoPieces(Box::pin(next(stream)))));
                AnswerBody::Stream(AnswerStream { len, pieces })
            }
        };
        Ok(EchoAnswer { status: 200, body })
    }

    fn refuse<'r>(
        refusal: &'r Refusal,
        _: &RequestHead<'_>,
        _: DateTime,
        headers: &mut HeaderList,
    ) -> ErrorBody<'r> {
        headers.put("content-type", "text/plain");
        let text = format!("{:?}: {}", refusal.stage, refusal.error.code.name());
        ErrorBody { bytes: text.into_bytes(), reason: None }
    }
}

impl Answer for EchoAnswer {
    fn status(&self) -> u16 {
        self.status
    }

    fn body(&mut self) -> &mut AnswerBody {
        &mut self.body
    }

    fn write_headers(&mut self, headers: &mut HeaderList) {
        headers.put("content-type", "text/plain");
    }
}

type Next = (PayloadStream, Result<Option<Bytes>, PayloadError>);

async fn next(mut stream: PayloadStream) -> Next {
    let piece = stream.next().await;
    (stream, piece)
}

/// One piece of the payload at a time.
struct EchoPieces(Pin<Box<dyn Future<Output = Next> + Send>>);

impl Pieces for EchoPieces {
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Poll::Ready((stream, piece)) = self.0.as_mut().poll(context) else { return Poll::Pending };
        self.0 = Box::pin(next(stream));
        Poll::Ready(piece.map_err(|error| io::Error::other(format!("{error:?}"))).transpose())
    }
}
