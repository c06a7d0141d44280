//! How the Blob service writes a refusal: an XML document, its message in the status line, and headers that clients read
//! where there is no document.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use protocol::blob::versions;
use protocol::common::{DateTime, xml_error};

use crate::front::head::RequestHead;
use crate::front::header_names::X_MS_ERROR_CODE;
use crate::front::refusal::{CHALLENGE, Refusal};
use crate::front::respond::put;
use crate::front::service::ErrorBody;

/// What a refusal says about the source of a copy, as elements of the document and as headers.
const SOURCE_HEADERS: [(&str, HeaderName); 2] = [
    ("CopySourceStatusCode", HeaderName::from_static("x-ms-copy-source-status-code")),
    ("CopySourceErrorCode", HeaderName::from_static("x-ms-copy-source-error-code")),
];

pub fn write<'r>(
    refusal: &'r Refusal,
    head: &RequestHead<'_>,
    now: DateTime,
    headers: &mut HeaderMap,
) -> ErrorBody<'r> {
    let error = &refusal.error;
    if head.version >= versions::ERROR_CODE_HEADER {
        headers.insert(X_MS_ERROR_CODE, HeaderValue::from_static(error.code.name()));
    }
    if error.code.status() == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    }
    if let Some(header) = &refusal.header {
        let (name, value) = &**header;
        headers.insert(name.clone(), value.clone());
    }
    for (element, value) in error.elements() {
        if let Some((_, name)) = SOURCE_HEADERS.iter().find(|(known, _)| *known == element) {
            put(headers, name.clone(), value);
        }
    }
    let reason = Some(xml_error::message(error));
    // This status has no body, and some clients would wait for one that is announced.
    if error.code.status() == 304 {
        return ErrorBody { bytes: Vec::new(), reason };
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    ErrorBody { bytes: xml_error::write_error(error, head.request_id.as_str(), now), reason }
}
