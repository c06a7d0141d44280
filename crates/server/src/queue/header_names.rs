//! Names of headers that only the Queue service has.

use http::HeaderName;

pub(crate) const APPROXIMATE_COUNT: HeaderName = HeaderName::from_static("x-ms-approximate-messages-count");
pub(crate) const POP_RECEIPT: HeaderName = HeaderName::from_static("x-ms-popreceipt");
pub(crate) const TIME_NEXT_VISIBLE: HeaderName = HeaderName::from_static("x-ms-time-next-visible");
