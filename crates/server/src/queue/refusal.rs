//! How the Queue service writes a refusal: an XML document, and its message in the status line.

use protocol::ErrorCode;
use protocol::common::{DateTime, xml_error};
use protocol::queue::message_text::{self, TEXT_BYTES_MAX};
use protocol::queue::versions;

use crate::front::head::RequestHead;
use crate::front::header_names::X_MS_ERROR_CODE;
use crate::front::refusal::{CHALLENGE, Refusal, Stage};
use crate::front::service::ErrorBody;
use crate::http::header_names::{CONTENT_TYPE, WWW_AUTHENTICATE};
use crate::http::response::HeaderList;

pub fn write<'r>(
    refusal: &'r Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderList,
) -> ErrorBody<'r> {
    let error = &refusal.error;
    headers.put(CONTENT_TYPE, "application/xml");
    if head.version >= versions::ERROR_CODE_HEADER {
        headers.put(X_MS_ERROR_CODE, error.code.name());
    }
    if error.code.status() == 401 {
        headers.put(WWW_AUTHENTICATE, CHALLENGE);
    }
    if let Some(header) = &refusal.header {
        let (name, value) = &**header;
        headers.put(name, value);
    }
    let id = head.request_id.as_str();
    let bytes = if error.code == ErrorCode::RequestBodyTooLarge && refusal.stage == Stage::Front {
        // Whoever read the body does not know what it was for. Every limit of this service is the same.
        xml_error::write_error(&message_text::too_large(TEXT_BYTES_MAX), id, now)
    } else {
        xml_error::write_error(error, id, now)
    };
    ErrorBody { bytes, reason: Some(xml_error::message(error)) }
}
