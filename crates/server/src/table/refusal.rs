//! How the Table service writes a refusal: one form for the OData path, another for its front end.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, SERVER, WWW_AUTHENTICATE};
use protocol::common::DateTime;
use protocol::table::wire::MetadataLevel;
use protocol::table::wire::json_write::write_error;
use protocol::table::wire::negotiate;
use protocol::table::wire::options::QueryOptions;
use protocol::{ErrorCode, ServiceError};

use super::header_names::NO_SNIFF;
use crate::front::head::RequestHead;
use crate::front::header_names::{X_MS_CLIENT_REQUEST_ID, X_MS_ERROR_CODE, X_MS_VERSION};
use crate::front::refusal::{Refusal, Stage};
use crate::front::respond::put;
use crate::front::service::ErrorBody;

/// The `Server` header while the caller is not authenticated.
const FRONT_END_SERVER_NAME: &str = "Microsoft-HTTPAPI/2.0";
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
                         resource_id=https://storage.azure.com";

pub fn write(refusal: &Refusal, head: &RequestHead<'_>, now: DateTime, headers: &mut HeaderMap) -> ErrorBody {
    match refusal.stage {
        Stage::Service => write_odata(refusal, head, now, headers),
        Stage::Front | Stage::Authentication => write_front_end(refusal, head, now, headers),
    }
}

fn write_odata(
    refusal: &Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderMap,
) -> ErrorBody {
    let (error, code) = (&refusal.error, refusal.error.code);
    let accept = accept(head);
    if code.is_raised_by_execution() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
    if let Some(header) = &refusal.header {
        let (name, value) = &**header;
        headers.insert(name.clone(), value.clone());
    }
    // A caller that asked for an unsupported format is not answered in JSON unless it accepts it.
    let bytes = if code.status() == 415 && !negotiate::accepts_json(accept) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml;charset=utf-8"));
        xml_error("", error, head, now)
    } else {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(error_level(head).content_type()));
        json_error(code, error.message(), head, now)
    };
    ErrorBody { bytes, has_reason: false }
}

fn write_front_end(
    refusal: &Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderMap,
) -> ErrorBody {
    let (error, code) = (&refusal.error, refusal.error.code);
    if refusal.stage == Stage::Authentication {
        headers.insert(SERVER, HeaderValue::from_static(FRONT_END_SERVER_NAME));
        headers.remove(X_MS_VERSION);
        headers.remove(X_MS_CLIENT_REQUEST_ID);
    }
    if code.status() == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    }
    put(headers, X_MS_ERROR_CODE, code.name());
    let bytes = if negotiate::accepts_json(accept(head)) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        json_error(code, error.message(), head, now)
    } else {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        xml_error("m:", error, head, now)
    };
    ErrorBody { bytes, has_reason: true }
}

fn accept<'a>(head: &RequestHead<'a>) -> Option<&'a str> {
    head.header(http::header::ACCEPT)
}

fn error_level(head: &RequestHead<'_>) -> MetadataLevel {
    let options = QueryOptions::read(&head.query).unwrap_or_default();
    negotiate::error_level(options.format.as_deref(), accept(head))
}

/// A message may quote the request. No text of the service is nearly as long.
const MESSAGE_BYTES_MAX: usize = 2048;

fn bounded(message: &str) -> &str {
    let end = (0..=message.len().min(MESSAGE_BYTES_MAX)).rev().find(|at| message.is_char_boundary(*at));
    &message[..end.unwrap_or_default()]
}

pub(crate) fn json_error(code: ErrorCode, message: &str, head: &RequestHead<'_>, now: DateTime) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    write_error(code.name(), bounded(message), head.request_id.as_str(), now, &mut out);
    out
}

/// The front end puts a prefix on its elements; the OData library does not.
fn xml_error(prefix: &str, error: &ServiceError, head: &RequestHead<'_>, now: DateTime) -> Vec<u8> {
    const NAMESPACE: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";
    let xmlns = if prefix.is_empty() { "xmlns" } else { "xmlns:m" };
    let mut time = Vec::new();
    now.write_padded(&mut time);
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><{prefix}error {xmlns}=\"{NAMESPACE}\"><{prefix}code>{code}</{prefix}code>\
         <{prefix}message xml:lang=\"en-US\">{message}\nRequestId:{id}\nTime:{time}</{prefix}message></{prefix}error>",
        code = error.code.name(),
        message = xml_escape(bounded(error.message())),
        id = head.request_id.as_str(),
        time = String::from_utf8_lossy(&time),
    )
    .into_bytes()
}

fn xml_escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
