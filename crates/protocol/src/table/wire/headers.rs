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
    /// Shows each header's name, in lower case, and its place: the only list of them. Inlined, every name is a constant
    /// where it is compared.
    #[inline(always)]
    fn each(&mut self, mut visit: impl FnMut(&'static str, &mut Option<&'a str>)) {
        visit("accept", &mut self.accept);
        visit("content-type", &mut self.content_type);
        visit("prefer", &mut self.prefer);
        visit("if-match", &mut self.if_match);
        visit("if-none-match", &mut self.if_none_match);
        visit(X_HTTP_METHOD, &mut self.x_http_method);
        visit("dataserviceversion", &mut self.data_service_version);
        visit("maxdataserviceversion", &mut self.max_data_service_version);
        visit(ENQUEUE, &mut self.outbox.enqueue);
        visit(MESSAGE, &mut self.outbox.message);
    }

    /// Asks for each header by its name, for a request that knows at once which of them it does not have. How many times
    /// the method is overridden is left to the caller.
    #[inline(always)]
    pub fn find(find: impl Fn(&'static str) -> Option<&'a str>) -> OperationHeaders<'a> {
        let mut headers = OperationHeaders::default();
        headers.each(|name, value| *value = find(name));
        headers
    }

    /// Takes the header if it is one of these. The first value of a repeated header counts. The values of other headers
    /// are not even read.
    pub fn take(&mut self, name: &str, value: impl Fn() -> &'a str) {
        self.x_http_method_count += usize::from(name.eq_ignore_ascii_case(X_HTTP_METHOD));
        self.each(|known, slot| {
            if name.eq_ignore_ascii_case(known) {
                slot.get_or_insert_with(&value);
            }
        });
    }
}
