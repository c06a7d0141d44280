//! An answer or a refusal as a part of a batch: status line, headers in the service's order, body.

use http::StatusCode;
use protocol::ServiceError;
use protocol::table::model::ETag;
use protocol::table::wire::batch::BatchPart;
use protocol::table::wire::headers::OperationHeaders;
use protocol::table::wire::negotiate::{self, Preference};

use super::answer::{ContentKind, Continuation, TableAnswer};
use super::refusal::odata_error;
use crate::front::respond::log_cause;
use crate::front::service::Session;

/// Writes a success.
pub fn write(answer: &TableAnswer, content_id: Option<&str>, out: &mut Vec<u8>) {
    let mut part = PartWriter::new(out, answer.status, content_id);
    let level = match answer.content {
        ContentKind::Json(level) => Some(level),
        ContentKind::Nothing | ContentKind::Multipart { .. } | ContentKind::Xml => None,
    };
    // Answers that create or read something use OData 3; those that only change something use OData 1.
    let version = if answer.location.is_some() || level.is_some() { "3.0;" } else { "1.0;" };
    if let Some(level) = level {
        part.header("DataServiceVersion", version);
        part.header("Content-Type", level.content_type());
    }
    part.header("X-Content-Type-Options", "nosniff");
    part.header("Cache-Control", "no-cache");
    if let Some(preference) = answer.preference {
        part.header("Preference-Applied", preference.name());
    }
    if level.is_none() {
        part.header("DataServiceVersion", version);
    }
    if let Some(location) = &answer.location {
        part.header("Location", location);
        if answer.preference == Some(Preference::ReturnNoContent) {
            part.header("DataServiceId", location);
        }
    }
    match &answer.next {
        Some(Continuation::Entity { partition_key, row_key }) => {
            part.header("x-ms-continuation-NextPartitionKey", partition_key);
            part.header("x-ms-continuation-NextRowKey", row_key);
        }
        Some(Continuation::Table(name)) => part.header("x-ms-continuation-NextTableName", name),
        None => {}
    }
    if let Some(timestamp) = &answer.etag {
        part.0.extend_from_slice(b"ETag: ");
        ETag::write(timestamp, part.0);
        part.0.extend_from_slice(b"\r\n");
    }
    // Even an empty body comes after a blank line.
    part.finish(answer.body.as_bytes());
}

/// The position of an operation in its batch.
#[derive(Clone, Copy)]
pub struct Place {
    pub index: usize,
    /// Whether it is the only operation.
    pub is_alone: bool,
}

/// Writes the one part that answers a failed change set or query: which operation failed, and why.
pub fn refuse(
    part: &BatchPart<'_>,
    error: &ServiceError,
    place: Place,
    session: &Session<'_>,
    out: &mut Vec<u8>,
) {
    let (front, head, code) = (session.front, session.head, error.code);
    let OperationHeaders { accept, prefer, x_http_method, .. } = part.headers;
    let message = if place.is_alone && code.is_raised_by_execution() {
        error.message().to_owned()
    } else {
        format!("{}:{}", place.index, error.message())
    };
    log_cause(error, head);
    if code.status() == 403 {
        let path = part.url.split('?').next().unwrap_or_default();
        front.audit.refused(front.clock.monotonic(), head.connection.peer, part.method, path, error);
    }
    // Only inserts use `Prefer`.
    let is_insert = part.method == "POST" && matches!(x_http_method, None | Some("POST"));
    let preference = Preference::parse(prefer).filter(|_| is_insert);

    let mut writer = PartWriter::new(out, code.status(), part.content_id);
    writer.header("X-Content-Type-Options", "nosniff");
    if code.is_raised_by_execution() {
        writer.header("Cache-Control", "no-cache");
    }
    if let Some(preference) = preference {
        writer.header("Preference-Applied", preference.name());
    }
    writer.header("DataServiceVersion", "3.0;");
    let level = negotiate::error_level(None, accept);
    let (content_type, body) = odata_error(code, &message, level, accept, head, front.now());
    writer.header("Content-Type", content_type);
    writer.finish(&body);
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
