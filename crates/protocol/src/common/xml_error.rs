//! Errors as XML, in the form that all services but Table have.
//!
//! Promises: no text of the caller breaks out of its element, and none makes an answer long.

use super::error::bounded;
use super::xml_write::XmlWriter;
use crate::common::DateTime;
use crate::{ErrorCode, ServiceError};

/// Room for the usual error, with some elements beside its message.
const CAPACITY_BYTES: usize = 512;

/// The message of an error, in the words of the services that write XML.
pub fn message(error: &ServiceError) -> &str {
    match (error.code, &error.detail) {
        (ErrorCode::InternalError, None) => {
            "The server encountered an internal error. Please retry the request."
        }
        (ErrorCode::InvalidHttpVerb, None) => "The HTTP verb specified was not recognized by the server.",
        _ => bounded(error.message()),
    }
}

/// The document that tells a caller about an error.
pub fn write_error(error: &ServiceError, request_id: &str, now: DateTime) -> Vec<u8> {
    let text = [message(error), "\nRequestId:", request_id, "\nTime:", &now.to_padded()].concat();
    let mut writer = XmlWriter::begin_unmarked(CAPACITY_BYTES);
    writer.start("Error");
    writer.leaf("Code", error.code.name());
    writer.leaf("Message", &text);
    for (name, value) in error.elements() {
        writer.leaf(name, value);
    }
    writer.end("Error");
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::query::{invalid_parameter, parameter_out_of_range};

    #[track_caller]
    fn check(error: impl Into<ServiceError>, time: &str, id: &str, expected: &str) {
        let written = write_error(&error.into(), id, DateTime::parse(time).unwrap());
        let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
        assert_eq!(String::from_utf8(written).unwrap(), format!("{head}{expected}"));
    }

    /// The recorded answers in the queue specification, sections 2.3, 5.3 and 5.6.
    #[test]
    fn recorded_errors_are_repeated_byte_for_byte() {
        check(
            ErrorCode::QueueNotFound,
            "2023-06-16T19:45:53.9586012Z",
            "a5836831-f003-0058-438b-a0e59e000000",
            "<Error><Code>QueueNotFound</Code><Message>The specified queue does not exist.\nRequestId:a5836831-f003-0058-438b-a0e59e000000\nTime:2023-06-16T19:45:53.9586012Z</Message></Error>",
        );
        check(
            parameter_out_of_range("numofmessages", "100", &(1..=32)),
            "2019-06-25T20:44:54.7376410Z",
            "ff40683f-2003-00ba-7e96-2b9a98000000",
            "<Error><Code>OutOfRangeQueryParameterValue</Code><Message>One of the query parameters specified in the request URI is outside the permissible range.\nRequestId:ff40683f-2003-00ba-7e96-2b9a98000000\nTime:2019-06-25T20:44:54.7376410Z</Message><QueryParameterName>numofmessages</QueryParameterName><QueryParameterValue>100</QueryParameterValue><MinimumAllowed>1</MinimumAllowed><MaximumAllowed>32</MaximumAllowed></Error>",
        );
        check(
            invalid_parameter("popreceipt", "invalid", "Invalid pop receipt format"),
            "2019-06-25T20:44:40.9630719Z",
            "cbed5e45-9003-00c5-1696-2b04aa000000",
            "<Error><Code>InvalidQueryParameterValue</Code><Message>Value for one of the query parameters specified in the request URI is invalid.\nRequestId:cbed5e45-9003-00c5-1696-2b04aa000000\nTime:2019-06-25T20:44:40.9630719Z</Message><QueryParameterName>popreceipt</QueryParameterName><QueryParameterValue>invalid</QueryParameterValue><Reason>Invalid pop receipt format</Reason></Error>",
        );
    }

    #[test]
    fn texts_of_the_caller_are_escaped_and_missing_ones_are_empty_elements() {
        check(
            invalid_parameter("comp", "<x>&", ""),
            "2019-06-25T20:44:40Z",
            "id",
            "<Error><Code>InvalidQueryParameterValue</Code><Message>Value for one of the query parameters specified in the request URI is invalid.\nRequestId:id\nTime:2019-06-25T20:44:40.0000000Z</Message><QueryParameterName>comp</QueryParameterName><QueryParameterValue>&lt;x&gt;&amp;</QueryParameterValue><Reason /></Error>",
        );
    }

    #[test]
    fn two_messages_differ_from_those_of_the_table_service() {
        assert!(message(&ErrorCode::InternalError.into()).starts_with("The server encountered"));
        assert!(message(&ErrorCode::InvalidHttpVerb.into()).ends_with("by the server."));
        assert_eq!(message(&ServiceError::with_detail(ErrorCode::InternalError, "x")), "x");
        assert_eq!(message(&ErrorCode::ServerBusy.into()), "The server is busy.");
    }
}
