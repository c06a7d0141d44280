//! The only place that writes a response: an answer or a refusal, dressed as HTTP or as a part of a batch.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL,
    CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, LOCATION, SERVER, VARY, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use protocol::auth::protocol_version;
use protocol::model::{DateTime, ETag};
use protocol::wire::MetadataLevel;
use protocol::wire::cors::CorsHeaders;
use protocol::wire::json_write::{etag_text, write_error};
use protocol::wire::negotiate::{self, Preference};
use protocol::wire::options::QueryOptions;
use protocol::{ErrorCode, ServiceError};

use crate::answer::{Answer, Body, Next, Refusal, Shape};
use crate::header_names::{
    CONTINUATION_NEXT_PARTITION_KEY, CONTINUATION_NEXT_ROW_KEY, CONTINUATION_NEXT_TABLE_NAME,
    DATA_SERVICE_ID, EXPLANATION, NO_SNIFF, PREFERENCE_APPLIED, X_MS_CLIENT_REQUEST_ID, X_MS_ERROR_CODE,
    X_MS_REQUEST_ID, X_MS_VERSION,
};
use crate::request_id::RequestId;
use crate::whole_body::WholeBody;

/// What the dress of a response takes from its request.
pub struct Dress<'a> {
    request_id: RequestId,
    client_request_id: Option<&'a HeaderValue>,
    version: &'a str,
    /// The header that says so, if it is a header.
    version_header: Option<&'a HeaderValue>,
    accept: Option<&'a str>,
    query: &'a str,
}

const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;
/// How a request without a version is served.
const DEFAULT_VERSION: &str = "2019-02-02";
const SERVER_NAME: &str = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0";
/// What answers when a caller is not known yet.
const FRONT_END_SERVER_NAME: &str = "Microsoft-HTTPAPI/2.0";
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
                         resource_id=https://storage.azure.com";

/// The headers that an answer usually has, and those of one that makes something.
const HEADER_COUNT: usize = 8;
const CREATION_HEADER_COUNT: usize = 12;

impl<'a> Dress<'a> {
    pub fn new(request_id: RequestId, headers: &'a HeaderMap, query: Option<&'a str>) -> Dress<'a> {
        let client_request_id = headers.get(X_MS_CLIENT_REQUEST_ID).filter(|value| {
            value.len() <= CLIENT_REQUEST_ID_BYTES_MAX && value.as_bytes().iter().all(u8::is_ascii_graphic)
        });
        let query = query.unwrap_or_default();
        let header = headers.get(X_MS_VERSION);
        let header_text = header.and_then(|version| version.to_str().ok());
        let version = protocol_version(query, header_text).unwrap_or(DEFAULT_VERSION);
        let version_header = header.filter(|header| header.as_bytes() == version.as_bytes());
        let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
        Dress { request_id, client_request_id, version, version_header, accept, query }
    }

    /// The version that the request is served by.
    pub fn version(&self) -> &'a str {
        self.version
    }

    /// Only errors ask for it, so it is worked out only then.
    fn error_level(&self) -> MetadataLevel {
        let options = QueryOptions::parse(self.query).unwrap_or_default();
        negotiate::error_level(options.format.as_deref(), self.accept)
    }

    fn start(&self, status: u16, header_count: usize) -> Response<WholeBody> {
        let mut response = Response::new(WholeBody::empty());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.reserve(header_count);
        headers.insert(SERVER, HeaderValue::from_static(SERVER_NAME));
        put(headers, X_MS_REQUEST_ID, self.request_id.as_str());
        if let Some(id) = self.client_request_id {
            headers.insert(X_MS_CLIENT_REQUEST_ID, id.clone());
        }
        match self.version_header {
            Some(header) => {
                headers.insert(X_MS_VERSION, header.clone());
            }
            None => put(headers, X_MS_VERSION, self.version),
        }
        response
    }
}

pub fn answer(answer: Answer, dress: &Dress<'_>) -> Response<WholeBody> {
    let header_count = if answer.location.is_some() { CREATION_HEADER_COUNT } else { HEADER_COUNT };
    let mut response = dress.start(answer.status, header_count);
    let headers = response.headers_mut();
    if !answer.is_front_end {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
    }
    if let Some(etag) = answer
        .etag
        .and_then(|timestamp| HeaderValue::from_maybe_shared(Bytes::from(etag_text(timestamp))).ok())
    {
        headers.insert(ETAG, etag);
    }
    if let Some(location) =
        answer.location.and_then(|url| HeaderValue::from_maybe_shared(Bytes::from(url)).ok())
    {
        headers.insert(LOCATION, location.clone());
        if answer.preference == Some(Preference::ReturnNoContent) {
            headers.insert(DATA_SERVICE_ID, location);
        }
    }
    if let Some(preference) = answer.preference {
        headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(preference.name()));
    }
    match &answer.next {
        Some(Next::Entity { partition_key, row_key }) => {
            put(headers, CONTINUATION_NEXT_PARTITION_KEY, partition_key);
            put(headers, CONTINUATION_NEXT_ROW_KEY, row_key);
        }
        Some(Next::Table(name)) => put(headers, CONTINUATION_NEXT_TABLE_NAME, name),
        None => {}
    }
    if let Some(explanation) = &answer.explanation {
        put(headers, EXPLANATION, explanation);
    }
    if let Some(preflight) = &answer.preflight {
        put(headers, ACCESS_CONTROL_ALLOW_METHODS, &preflight.allow_methods);
        if let Some(names) = &preflight.allow_headers {
            put(headers, ACCESS_CONTROL_ALLOW_HEADERS, names);
        }
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(preflight.max_age_seconds));
        let allowed = CorsHeaders {
            allow_origin: Some(preflight.allow_origin.clone()),
            allow_credentials: preflight.allow_credentials,
            ..CorsHeaders::default()
        };
        add_cors(headers, allowed);
    }
    let bytes = match answer.body {
        Body::Empty => {
            // The service says so even where HTTP would not need it; of 304 the length would be the entity's.
            if answer.status != 304 {
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            return response;
        }
        Body::Json(level, json) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(level.content_type()));
            json
        }
        Body::Multipart { content_type, bytes } => {
            put(headers, CONTENT_TYPE, &content_type);
            bytes
        }
        Body::Xml(document) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            document
        }
    };
    *response.body_mut() = match answer.room {
        None => WholeBody::new(bytes),
        Some(room) => WholeBody::new(room.keep(bytes)),
    };
    response
}

/// What the account's CORS rules add to an answer.
pub fn add_cors(headers: &mut HeaderMap, added: CorsHeaders) {
    if let Some(origin) = added.allow_origin {
        put(headers, ACCESS_CONTROL_ALLOW_ORIGIN, &origin);
    }
    if let Some(names) = added.expose_headers {
        put(headers, ACCESS_CONTROL_EXPOSE_HEADERS, &names);
    }
    if added.allow_credentials {
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    if added.vary_origin {
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
}

pub fn refusal(refusal: Refusal, dress: &Dress<'_>, now: DateTime) -> Response<WholeBody> {
    let Refusal { error, shape, preference } = refusal;
    log_cause(&error, dress);
    let code = error.code;
    let mut response = dress.start(code.status(), HEADER_COUNT);
    let headers = response.headers_mut();
    let body = if shape == Shape::OData {
        if code.is_raised_by_execution() {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
        if let Some(preference) = preference {
            headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(preference.name()));
        }
        // Who asked for a format that is gone cannot be answered in JSON.
        if code.status() == 415 && !negotiate::accepts_json(dress.accept) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml;charset=utf-8"));
            xml_error("", &error, dress, now)
        } else {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(dress.error_level().content_type()));
            json_error(code, error.message(), dress, now)
        }
    } else {
        if shape == Shape::Authentication {
            headers.insert(SERVER, HeaderValue::from_static(FRONT_END_SERVER_NAME));
            headers.remove(X_MS_VERSION);
            headers.remove(X_MS_CLIENT_REQUEST_ID);
        }
        if code.status() == 401 {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        put(headers, X_MS_ERROR_CODE, code.name());
        if negotiate::accepts_json(dress.accept) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            json_error(code, error.message(), dress, now)
        } else {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            xml_error("m:", &error, dress, now)
        }
    };
    // The front end's reason phrase is the message itself.
    if shape != Shape::OData
        && let Ok(reason) = ReasonPhrase::try_from(error.message().as_bytes())
    {
        response.extensions_mut().insert(reason);
    }
    *response.body_mut() = WholeBody::new(body);
    response
}

/// A cause beneath a failure of ours is for our log, not for the caller. Why a caller was refused is the audit's.
pub fn log_cause(error: &ServiceError, dress: &Dress<'_>) {
    if error.code.status() >= 500
        && let Some(source) = &error.source
    {
        log::error!("request {}: {}: {source}", dress.request_id.as_str(), error.code.name());
    }
}

fn json_error(code: ErrorCode, message: &str, dress: &Dress<'_>, now: DateTime) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    write_error(code.name(), message, dress.request_id.as_str(), now, &mut out);
    out
}

/// The front end prefixes its elements; the OData library does not.
fn xml_error(prefix: &str, error: &ServiceError, dress: &Dress<'_>, now: DateTime) -> Vec<u8> {
    const NAMESPACE: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";
    let xmlns = if prefix.is_empty() { "xmlns" } else { "xmlns:m" };
    let mut time = Vec::new();
    now.write_padded(&mut time);
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><{prefix}error {xmlns}=\"{NAMESPACE}\"><{prefix}code>{code}</{prefix}code>\
         <{prefix}message xml:lang=\"en-US\">{message}\nRequestId:{id}\nTime:{time}</{prefix}message></{prefix}error>",
        code = error.code.name(),
        message = xml_escape(error.message()),
        id = dress.request_id.as_str(),
        time = String::from_utf8_lossy(&time),
    )
    .into_bytes()
}

fn xml_escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A success as a part of a batch: status line, headers in the service's order, body.
pub fn part(answer: &Answer, content_id: Option<&str>, out: &mut Vec<u8>) {
    let mut part = PartWriter::new(out, answer.status, content_id);
    // What makes or reads something speaks of OData 3; what only changes it, of OData 1.
    let version =
        if answer.location.is_some() || matches!(answer.body, Body::Json(..)) { "3.0;" } else { "1.0;" };
    if let Body::Json(level, _) = &answer.body {
        part.header("DataServiceVersion", version);
        part.header("Content-Type", level.content_type());
    }
    part.header("X-Content-Type-Options", "nosniff");
    part.header("Cache-Control", "no-cache");
    if let Some(preference) = answer.preference {
        part.header("Preference-Applied", preference.name());
    }
    if !matches!(answer.body, Body::Json(..)) {
        part.header("DataServiceVersion", version);
    }
    if let Some(location) = &answer.location {
        part.header("Location", location);
        if answer.preference == Some(Preference::ReturnNoContent) {
            part.header("DataServiceId", location);
        }
    }
    match &answer.next {
        Some(Next::Entity { partition_key, row_key }) => {
            part.header("x-ms-continuation-NextPartitionKey", partition_key);
            part.header("x-ms-continuation-NextRowKey", row_key);
        }
        Some(Next::Table(name)) => part.header("x-ms-continuation-NextTableName", name),
        None => {}
    }
    if let Some(etag) = answer.etag {
        part.0.extend_from_slice(b"ETag: ");
        ETag::write(etag, part.0);
        part.0.extend_from_slice(b"\r\n");
    }
    match &answer.body {
        Body::Json(_, json) => part.finish(json),
        // Not even an empty body comes without its line end.
        Body::Empty | Body::Multipart { .. } | Body::Xml(_) => part.finish(b""),
    }
}

/// A refusal as the one part that answers a change set.
pub fn refusal_part(
    (code, message): (ErrorCode, &str),
    level: MetadataLevel,
    preference: Option<Preference>,
    content_id: Option<&str>,
    dress: &Dress<'_>,
    now: DateTime,
    out: &mut Vec<u8>,
) {
    let mut part = PartWriter::new(out, code.status(), content_id);
    part.header("X-Content-Type-Options", "nosniff");
    if code.is_raised_by_execution() {
        part.header("Cache-Control", "no-cache");
    }
    if let Some(preference) = preference {
        part.header("Preference-Applied", preference.name());
    }
    part.header("DataServiceVersion", "3.0;");
    part.header("Content-Type", level.content_type());
    part.finish(&json_error(code, message, dress, now));
}

struct PartWriter<'a>(&'a mut Vec<u8>);

impl<'a> PartWriter<'a> {
    fn new(out: &'a mut Vec<u8>, status: u16, content_id: Option<&str>) -> PartWriter<'a> {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for piece in
            ["HTTP/1.1 ", status.as_str(), " ", status.canonical_reason().unwrap_or_default(), "\r\n"]
        {
            out.extend_from_slice(piece.as_bytes());
        }
        let mut part = PartWriter(out);
        if let Some(id) = content_id {
            part.header("Content-ID", id);
        }
        part
    }

    fn header(&mut self, name: &str, value: &str) {
        for piece in [name, ": ", value, "\r\n"] {
            self.0.extend_from_slice(piece.as_bytes());
        }
    }

    fn finish(self, body: &[u8]) {
        self.0.extend_from_slice(b"\r\n");
        self.0.extend_from_slice(body);
    }
}

/// A value that no header can carry is left out: it can only come from a host that is no host.
fn put(headers: &mut HeaderMap, name: impl http::header::IntoHeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
