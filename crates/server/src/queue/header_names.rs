//! Names of headers that only the Queue service has.

pub(crate) const APPROXIMATE_COUNT: &str = "x-ms-approximate-messages-count";
pub(crate) const POP_RECEIPT: &str = "x-ms-popreceipt";
pub(crate) const TIME_NEXT_VISIBLE: &str = "x-ms-time-next-visible";
