//! A request's head, each part of it read once. Every step before the payload takes what it needs from here.
//!
//! Promises: reading never fails. Malformed parts are noted, and the step that needs them refuses the request.

use observe::Credentials;
use protocol::ErrorCode;
use protocol::ServiceError;
use protocol::auth::Connection;
use protocol::auth::ServiceKind;
use protocol::common::query::Query;
use protocol::common::version::{is_version, protocol_version};

use super::address::{self, HostLabels, Target};
use super::header_names::{X_MS_CLIENT_REQUEST_ID, X_MS_VERSION};
use super::request_id::RequestId;
use crate::http::header_names::{AUTHORIZATION, HOST};
use crate::http::parts::RequestParts;

/// A name has at most 253 characters, and a port at most 5. Answers repeat the host many times, so it must be short.
const HOST_BYTES_MAX: usize = 253 + ":65535".len();
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

pub struct RequestHead<'a> {
    pub request_id: RequestId,
    pub connection: Connection,
    pub method: &'a str,
    /// The path of the request line.
    pub path: &'a str,
    /// The host as the caller wrote it: from the request line if it has an absolute URL, otherwise from the header.
    pub host: Option<&'a str>,
    /// The host is too long or not text, or the request line names another one than the header.
    has_malformed_host: bool,
    /// The account, and the path within it.
    pub target: Target<'a>,
    pub query: Query<'a>,
    /// Where the headers are.
    pub parts: &'a RequestParts,
    /// The protocol version by which the request is served.
    pub version: &'a str,
    /// The value of `x-ms-version`, if it is a valid version.
    pub sent_version: Option<&'a str>,
    has_malformed_version: bool,
    /// The caller's own id for the request, if it can be sent back.
    pub(super) client_request_id: Option<&'a str>,
}

impl<'a> RequestHead<'a> {
    pub fn read(
        parts: &'a RequestParts,
        request_id: RequestId,
        connection: Connection,
        kind: &ServiceKind,
        host_suffixes: &[String],
    ) -> RequestHead<'a> {
        let authority = parts.authority();
        let host_header = parts.header(HOST);
        let host = authority.or_else(|| host_header.filter(|host| host.is_ascii()));
        let host = host.filter(|host| !host.is_empty());
        let has_malformed_host = match host {
            Some(host) => {
                let is_other = |header: &str| authority.is_some() && !header.eq_ignore_ascii_case(host);
                host.len() > HOST_BYTES_MAX || host_header.is_some_and(is_other)
            }
            None => host_header.is_some_and(|header| !header.is_empty()),
        };
        let host = host.filter(|_| !has_malformed_host);
        let path = parts.path();
        let query = Query::split(parts.query().unwrap_or_default());
        let query = if kind.ignores_parameter_case { query.with_lower_names() } else { query };
        let header = parts.header(X_MS_VERSION);
        let sent_version = header.filter(|version| is_version(version));
        let version = protocol_version(&query, sent_version, kind.version_order);
        let version = version.unwrap_or(kind.version_default);
        let labels = HostLabels { service: kind.label, site: kind.site_label };
        RequestHead {
            request_id,
            connection,
            method: parts.method(),
            path,
            host,
            has_malformed_host,
            target: address::locate(host.unwrap_or_default(), path, labels, host_suffixes),
            query,
            parts,
            version,
            sent_version,
            has_malformed_version: header.is_some() && sent_version.is_none(),
            client_request_id: parts.header(X_MS_CLIENT_REQUEST_ID).filter(|value| {
                value.len() <= CLIENT_REQUEST_ID_BYTES_MAX
                    && value.bytes().all(|byte| byte.is_ascii_graphic())
            }),
        }
    }

    /// The head of a request that came inside this one. Unless it says otherwise, it is served by the same version.
    pub fn inner(
        &self,
        parts: &'a RequestParts,
        request_id: RequestId,
        kind: &ServiceKind,
        host_suffixes: &[String],
    ) -> RequestHead<'a> {
        let head = RequestHead::read(parts, request_id, self.connection, kind, host_suffixes);
        if head.sent_version.is_some() {
            return head;
        }
        RequestHead { version: self.version, ..head }
    }

    /// Refuses a request without a host, or with one that cannot be a name and a port.
    pub(crate) fn check_host(&self) -> Result<(), ErrorCode> {
        match self.host {
            Some(_) => Ok(()),
            None if self.has_malformed_host => Err(ErrorCode::InvalidHeaderValue),
            None => Err(ErrorCode::HostInformationNotPresent),
        }
    }

    /// Refuses an `x-ms-version` that is not a valid version.
    pub fn check_version(&self) -> Result<(), ServiceError> {
        if !self.has_malformed_version {
            return Ok(());
        }
        let value = self.header(X_MS_VERSION).unwrap_or_default();
        Err(ServiceError::from(ErrorCode::InvalidHeaderValue)
            .with_element("HeaderName", X_MS_VERSION)
            .with_element("HeaderValue", value.to_owned()))
    }

    /// With what the caller says who it is.
    pub(crate) fn credentials(&self) -> Credentials {
        if self.parts.has(AUTHORIZATION) {
            Credentials::Account
        } else if self.query.raw("sig").is_some() {
            Credentials::Sas
        } else {
            Credentials::Anonymous
        }
    }

    /// The value of the first header with this name, which is given in lower case.
    #[inline(always)]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.parts.header(name)
    }
}
