//! The Blob service on the wire: names, operations, conditions, leases, ranges, checksums, tags, and the documents that
//! it reads and writes.
//!
//! Leaves to others: stored data and every rule about it (`blobs`), and bytes of content (`contents`).

mod acl;
pub mod batch;
pub mod blob_headers;
pub mod blob_list;
pub mod block_list;
pub mod checksum;
pub mod conditions;
pub mod container_list;
pub mod copy;
pub mod encryption;
mod etag;
mod header_list;
pub mod identifier;
mod kind;
pub mod lease;
pub mod limits;
pub mod list_parameters;
mod name;
pub mod operation;
pub mod page_list;
pub mod permission;
pub mod properties;
pub mod range;
pub mod tag_expression;
mod tags;
pub mod user_delegation;
pub mod versions;

pub use acl::ContainerAcl;
pub use etag::BlobETag;
pub use header_list::Headers;
pub use kind::{CONTRIBUTOR, KIND, OWNER, READER, new_scope};
pub use name::{BlobName, ContainerName, WEB_CONTAINER};
pub use tags::Tags;

#[cfg(test)]
mod tests {
    use crate::common::DateTime;
    use crate::common::headers::{invalid_header, missing_header};
    use crate::common::xml_error::write_error;
    use crate::{ErrorCode, ServiceError};

    #[track_caller]
    fn check(error: impl Into<ServiceError>, expected: &str) {
        let time = DateTime::parse("2020-07-23T10:19:50.4732996Z").unwrap();
        let id = "10429372-901e-002b-42da-60cd6c000000";
        let written = String::from_utf8(write_error(&error.into(), id, time)).unwrap();
        let place = format!("\nRequestId:{id}\nTime:2020-07-23T10:19:50.4732996Z</Message>");
        let (message, elements) = expected.split_once('|').unwrap();
        let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>";
        assert_eq!(written, format!("{head}{message}{place}{elements}</Error>"));
    }

    /// The example of section 3 of the specification, and elements of other refusals.
    #[test]
    fn errors_are_documents_with_elements() {
        let text = "<Code>ConditionNotMet</Code><Message>The condition specified using HTTP conditional header(s) is not met.|";
        check(ErrorCode::ConditionNotMet, text);
        check(ErrorCode::ConditionNotModified, text);
        check(
            invalid_header("x-ms-blob-content-length", "513"),
            "<Code>InvalidHeaderValue</Code><Message>The value for one of the HTTP headers is not in the correct format.|<HeaderName>x-ms-blob-content-length</HeaderName><HeaderValue>513</HeaderValue>",
        );
        check(
            missing_header("x-ms-blob-type"),
            "<Code>MissingRequiredHeader</Code><Message>An HTTP header that's mandatory for this request is not specified.|<HeaderName>x-ms-blob-type</HeaderName>",
        );
        check(
            super::limits::body_too_large(4_194_304),
            "<Code>RequestBodyTooLarge</Code><Message>The request body is too large and exceeds the maximum permissible limit.|<MaxLimit>4194304</MaxLimit>",
        );
    }
}
