//! The first versions of what the Queue service has not always had.

/// Messages tell how often they were taken.
pub(super) const DEQUEUE_COUNT: &str = "2009-09-19";
/// Update Message.
pub(super) const UPDATE_MESSAGE: &str = "2011-08-18";
/// Messages of 64 KiB that stay hidden for up to seven days, and that can be put hidden.
pub(super) const LONG_MESSAGES: &str = "2011-08-18";
/// Stored access policies.
pub(super) const ACL: &str = "2012-02-12";
/// Lists name the service's endpoint, and no longer the URL of each queue.
pub(super) const ENDPOINT_IN_LIST: &str = "2013-08-15";
/// The answer to Put Message says which message it was.
pub const PUT_ANSWER: &str = "2016-05-31";
/// Messages may live for any time, or for ever.
pub(super) const LONG_LIFE: &str = "2017-07-29";
/// Errors have their code in a header.
pub const ERROR_CODE_HEADER: &str = "2017-07-29";
