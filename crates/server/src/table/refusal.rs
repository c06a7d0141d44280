//! How the Table service writes a refusal: one form for the OData path, another for its front end.

use protocol::ErrorCode;
use protocol::common::DateTime;
use protocol::common::error::bounded;
use protocol::table::wire::MetadataLevel;
use protocol::table::wire::json_write::write_error;
use protocol::table::wire::negotiate;
use protocol::table::wire::options::QueryOptions;
use protocol::table::wire::uri::{self, Resource};

use crate::front::head::RequestHead;
use crate::front::header_names::{X_MS_CLIENT_REQUEST_ID, X_MS_ERROR_CODE, X_MS_VERSION};
use crate::front::refusal::{CHALLENGE, Refusal, Stage};
use crate::front::service::ErrorBody;
use crate::http::header_names::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, NO_SNIFF, SERVER, WWW_AUTHENTICATE};
use crate::http::response::HeaderList;

/// The `Server` header while the caller is not authenticated.
const FRONT_END_SERVER_NAME: &str = "Microsoft-HTTPAPI/2.0";

pub fn write<'r>(
    refusal: &'r Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderList,
) -> ErrorBody<'r> {
    let is_odata = match (refusal.error.code, refusal.stage) {
        // The front end counts a body's bytes before the OData path sees the request, and says so in header and reason
        // phrase. Which body it sends is not recorded: the Java client reads JSON, and breaks on XML.
        (ErrorCode::RequestBodyTooLarge, _) => {
            headers.put(X_MS_ERROR_CODE, refusal.error.code.name());
            let reason = Some(refusal.error.message());
            return ErrorBody { reason, ..write_odata(refusal, head, now, headers) };
        }
        // That the secondary takes no writes is told by whoever would have carried the write out.
        (ErrorCode::InsufficientAccountPermissions, _) => head.query.raw("comp").is_none(),
        (_, stage) => stage == Stage::Service,
    };
    if is_odata {
        write_odata(refusal, head, now, headers)
    } else {
        write_front_end(refusal, head, now, headers)
    }
}

fn write_odata<'r>(
    refusal: &'r Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderList,
) -> ErrorBody<'r> {
    let (error, code) = (&refusal.error, refusal.error.code);
    if forbids_caching(code, head) {
        headers.put(CACHE_CONTROL, "no-cache");
    }
    headers.put(NO_SNIFF, "nosniff");
    if let Some(header) = &refusal.header {
        let (name, value) = &**header;
        headers.put(name, value);
    }
    let (content_type, bytes) =
        odata_error(code, error.message(), error_level(head), accept(head), head, now);
    headers.put(CONTENT_TYPE, content_type);
    ErrorBody { bytes, reason: None }
}

/// The body of an error on the OData path, and its type. `accept` is that of the request or of the part of a batch.
pub(crate) fn odata_error(
    code: ErrorCode,
    message: &str,
    level: MetadataLevel,
    accept: Option<&str>,
    head: &RequestHead<'_>,
    now: DateTime,
) -> (&'static str, Vec<u8>) {
    // A caller that asked for an unsupported format is not answered in JSON unless it accepts it.
    if code.status() == 415 && !negotiate::accepts_json(accept) {
        ("application/xml;charset=utf-8", xml_error("", code, message, head, now))
    } else {
        (level.content_type(), json_error(code, message, head, now))
    }
}

/// Whether the answer has `Cache-Control`. Errors that are found while an operation runs have it, and so have missing
/// permissions. Others depend on the resource: as recorded, the name of a new table and most requests below a table.
fn forbids_caching(code: ErrorCode, head: &RequestHead<'_>) -> bool {
    match code {
        ErrorCode::InvalidResourceName | ErrorCode::OutOfRangeInput => {
            head.method == "POST" && matches!(uri::parse_path(head.target.path), Ok(Resource::Tables))
        }
        ErrorCode::PropertiesNeedValue | ErrorCode::NotImplemented => {
            matches!(uri::parse_path(head.target.path), Ok(Resource::Navigation { .. }))
        }
        _ => code.is_raised_by_execution() || code.status() == 403,
    }
}

fn write_front_end<'r>(
    refusal: &'r Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderList,
) -> ErrorBody<'r> {
    let (error, code) = (&refusal.error, refusal.error.code);
    if refusal.stage == Stage::Authentication {
        headers.put(SERVER, FRONT_END_SERVER_NAME);
        headers.remove(X_MS_VERSION);
        headers.remove(X_MS_CLIENT_REQUEST_ID);
    }
    if code.status() == 401 {
        headers.put(WWW_AUTHENTICATE, CHALLENGE);
    }
    headers.put(X_MS_ERROR_CODE, code.name());
    let bytes = if negotiate::accepts_json(accept(head)) {
        headers.put(CONTENT_TYPE, "application/json");
        json_error(code, error.message(), head, now)
    } else {
        headers.put(CONTENT_TYPE, "application/xml");
        xml_error("m:", code, error.message(), head, now)
    };
    ErrorBody { bytes, reason: Some(error.message()) }
}

fn accept<'a>(head: &RequestHead<'a>) -> Option<&'a str> {
    head.header(ACCEPT)
}

fn error_level(head: &RequestHead<'_>) -> MetadataLevel {
    let options = QueryOptions::read(&head.query).unwrap_or_default();
    negotiate::error_level(options.format.as_deref(), accept(head))
}

fn json_error(code: ErrorCode, message: &str, head: &RequestHead<'_>, now: DateTime) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    write_error(code.name(), bounded(message), head.request_id.as_str(), now, &mut out);
    out
}

/// The front end puts a prefix on its elements; the OData library does not.
fn xml_error(prefix: &str, code: ErrorCode, message: &str, head: &RequestHead<'_>, now: DateTime) -> Vec<u8> {
    const NAMESPACE: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";
    let xmlns = if prefix.is_empty() { "xmlns" } else { "xmlns:m" };
    let mut time = Vec::new();
    now.write_padded(&mut time);
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><{prefix}error {xmlns}=\"{NAMESPACE}\"><{prefix}code>{code}</{prefix}code>\
         <{prefix}message xml:lang=\"en-US\">{message}\nRequestId:{id}\nTime:{time}</{prefix}message></{prefix}error>",
        code = code.name(),
        message = xml_escape(bounded(message)),
        id = head.request_id.as_str(),
        time = String::from_utf8_lossy(&time),
    )
    .into_bytes()
}

fn xml_escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
