//! The source of a copy: the blob that a URL names, and whether the caller may read it.
//!
//! A source with a signature or a token of its own is authorized by that; without one, a source in the same account by
//! the caller's own credentials, and every other source only if it is public.
//! Promises: no address outside this server is asked here (`outside.rs`). A URL with the name of one of this server's accounts means
//! that account, whatever its host.

use protocol::blob::copy::{CopySource, source_failure};
use protocol::blob::identifier::Revision;
use protocol::blob::operation::{BlobAction, BlobOperation};
use protocol::blob::permission::source_need;
use protocol::blob::{BlobName, ContainerName, Headers, KIND};
use protocol::common::AccountName;
use protocol::common::headers::invalid_header;
use protocol::{ErrorCode, ServiceError};

use super::BlobHttp;
use crate::front::handle::{AdmittedInner, admit_inner};
use crate::front::head::RequestHead;
use crate::front::header_names::X_MS_VERSION;
use crate::front::service::Session;
use crate::http::header_names::{AUTHORIZATION, HOST};
use crate::http::parts::RequestParts;

/// A blob of this server that the caller may read.
pub(crate) struct FoundSource {
    pub account: AccountName,
    pub container: ContainerName,
    pub blob: BlobName,
    pub revision: Revision,
    /// As properties show it: without what gives access.
    pub url: Box<str>,
}

pub(crate) async fn find(
    service: &BlobHttp,
    session: &Session<'_>,
    headers: &Headers<'_>,
) -> Result<FoundSource, ServiceError> {
    let source = CopySource::read(headers)?;
    let parts = to_request(&source, session.head.version)?;
    let head = session.head.inner(&parts, session.head.request_id, &KIND, session.host_suffixes);
    let is_own = head.target.account == session.account.as_str();
    let has_credentials = source.bearer.is_some() || head.query.raw("sig").is_some();
    if is_own && !has_credentials {
        let operation = read(&head)?;
        if let BlobOperation::Blob { container, blob, .. } = &operation
            && session.grant.authorize(&KIND, &source_need(container, blob)).is_ok()
        {
            return found(session.account.clone(), &operation, &source);
        }
    }
    match admit_inner(session.way(service), &head).await {
        Ok(AdmittedInner { account, request }) => found(account.name.clone(), &request.operation, &source),
        Err(refusal) => Err(refused(&refusal.error)),
    }
}

/// Whether the URL names an account of this server in one of the ways in which only this server is addressed. An
/// account of a cloud may have the same name as one here.
pub(crate) fn is_here(session: &Session<'_>, source: &CopySource<'_>) -> bool {
    let Ok(parts) = to_request(source, session.head.version) else { return false };
    let head = session.head.inner(&parts, session.head.request_id, &KIND, session.host_suffixes);
    let host = source.authority.rsplit_once(':').map_or(source.authority, |(host, _)| host);
    let is_below = |suffix: &str| {
        host.len() > suffix.len() && host.is_char_boundary(host.len() - suffix.len()) && {
            host[host.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
        }
    };
    let is_by_path = !head.target.base_path.is_empty();
    let is_own_name = is_below(".localhost") || session.host_suffixes.iter().any(|suffix| is_below(suffix));
    (is_by_path || is_own_name) && session.front.accounts.get().find(head.target.account).is_some()
}

/// What a refusal of the source becomes.
pub fn refused(error: &ServiceError) -> ServiceError {
    if error.code.status() >= 500 {
        return ServiceError::with_source(ErrorCode::CannotVerifyCopySource, error.message().to_owned());
    }
    source_failure(error.code.status(), Some(error.code.name()), Some(error.message()))
}

fn read<'h>(head: &RequestHead<'h>) -> Result<BlobOperation<'h>, ServiceError> {
    let read = BlobOperation::read(head.method, head.target.path, &head.query, &Headers::default());
    read.map_err(|error| refused(&error))
}

fn found(
    account: AccountName,
    operation: &BlobOperation<'_>,
    source: &CopySource<'_>,
) -> Result<FoundSource, ServiceError> {
    let BlobOperation::Blob { container, blob, revision, action: BlobAction::Get } = operation else {
        return Err(invalid_header("x-ms-copy-source", source.url));
    };
    let container = ContainerName::parse(container).map_err(|error| refused(&error))?;
    let blob = BlobName::parse(blob).map_err(|error| refused(&error))?;
    Ok(FoundSource { account, container, blob, revision: *revision, url: shown_url(source) })
}

/// The URL without a signature: properties show it to everybody who may read the copy.
pub(crate) fn shown_url(source: &CopySource<'_>) -> Box<str> {
    let (place, query) = source.url.split_once('?').unwrap_or((source.url, ""));
    let is_moment = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        name.eq_ignore_ascii_case("snapshot") || name.eq_ignore_ascii_case("versionid")
    };
    match query.split('&').find(is_moment) {
        Some(moment) => [place, "?", moment].concat().into(),
        None => place.into(),
    }
}

/// The request that would read the source, by the same version.
fn to_request(source: &CopySource<'_>, version: &str) -> Result<RequestParts, ServiceError> {
    let target = match source.query {
        "" => source.path.to_owned(),
        query => [source.path, "?", query].concat(),
    };
    let token = source.bearer.map(|token| ["Bearer ", token].concat());
    let authorization = token.as_deref().map(|token| (AUTHORIZATION, token));
    let headers = [(HOST, source.authority), (X_MS_VERSION, version)].into_iter().chain(authorization);
    RequestParts::compose("GET", &target, headers)
        .ok_or_else(|| invalid_header("x-ms-copy-source", source.url))
}
