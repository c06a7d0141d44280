//! How the Blob service writes a refusal: an XML document, its message in the status line, and headers that clients read
//! where there is no document.

use protocol::blob::versions;
use protocol::common::{DateTime, xml_error};

use crate::front::head::RequestHead;
use crate::front::header_names::X_MS_ERROR_CODE;
use crate::front::refusal::{CHALLENGE, Refusal};
use crate::front::service::ErrorBody;
use crate::http::header_names::{CONTENT_TYPE, WWW_AUTHENTICATE};
use crate::http::response::HeaderList;

/// What a refusal says about the source of a copy, as elements of the document and as headers.
const SOURCE_HEADERS: [(&str, &str); 2] = [
    ("CopySourceStatusCode", "x-ms-copy-source-status-code"),
    ("CopySourceErrorCode", "x-ms-copy-source-error-code"),
];

pub fn write<'r>(
    refusal: &'r Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderList,
) -> ErrorBody<'r> {
    let error = &refusal.error;
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
    for (element, value) in error.elements() {
        if let Some((_, name)) = SOURCE_HEADERS.iter().find(|(known, _)| *known == element) {
            headers.put(name, value);
        }
    }
    let reason = Some(xml_error::message(error));
    // This status has no body, and some clients would wait for one that is announced.
    if error.code.status() == 304 {
        return ErrorBody { bytes: Vec::new(), reason };
    }
    headers.put(CONTENT_TYPE, "application/xml");
    ErrorBody { bytes: xml_error::write_error(error, head.request_id.as_str(), now), reason }
}
