//! The headers that change what an operation of the Table service means, and the names of headers that only this
//! service sends.

use crate::common::headers::X_HTTP_METHOD;

pub const CONTINUATION_NEXT_PARTITION_KEY: &str = "x-ms-continuation-nextpartitionkey";
pub const CONTINUATION_NEXT_ROW_KEY: &str = "x-ms-continuation-nextrowkey";
pub const CONTINUATION_NEXT_TABLE_NAME: &str = "x-ms-continuation-nexttablename";

/// Names a queue that gets a message if, and only if, the write happens. No header of the service.
pub const ENQUEUE: &str = "x-lazulite-enqueue";
/// The text of that message, in Base64.
pub const MESSAGE: &str = "x-lazulite-message";

/// The headers that change what one operation means. A request has one set; each part of a batch has its own.
#[derive(Clone, Copy, Default, Debug)]
pub struct OperationHeaders<'a> {
    pub accept: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub prefer: Option<&'a str>,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub x_http_method: Option<&'a str>,
    pub x_http_method_count: usize,
    pub data_service_version: Option<&'a str>,
    pub max_data_service_version: Option<&'a str>,
    pub outbox: OutboxHeaders<'a>,
}

/// What a write says of a message that goes with it.
#[derive(Clone, Copy, Default, Debug)]
pub struct OutboxHeaders<'a> {
    pub enqueue: Option<&'a str>,
    pub message: Option<&'a str>,
}

impl<'a> OperationHeaders<'a> {
    /// Takes the header if it is one of these. The first value of a repeated header counts. The values of other headers
    /// are not even read.
    pub fn take(&mut self, name: &str, value: impl FnOnce() -> &'a str) {
        let slot = match name.len() {
            6 if name.eq_ignore_ascii_case("accept") => &mut self.accept,
            6 if name.eq_ignore_ascii_case("prefer") => &mut self.prefer,
            8 if name.eq_ignore_ascii_case("if-match") => &mut self.if_match,
            12 if name.eq_ignore_ascii_case("content-type") => &mut self.content_type,
            13 if name.eq_ignore_ascii_case("if-none-match") => &mut self.if_none_match,
            13 if name.eq_ignore_ascii_case(X_HTTP_METHOD) => {
                self.x_http_method_count += 1;
                &mut self.x_http_method
            }
            18 if name.eq_ignore_ascii_case(ENQUEUE) => &mut self.outbox.enqueue,
            18 if name.eq_ignore_ascii_case(MESSAGE) => &mut self.outbox.message,
            18 if name.eq_ignore_ascii_case("dataserviceversion") => &mut self.data_service_version,
            21 if name.eq_ignore_ascii_case("maxdataserviceversion") => &mut self.max_data_service_version,
            _ => return,
        };
        slot.get_or_insert_with(value);
    }
}
