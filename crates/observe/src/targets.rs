//! The scalability targets that the live services publish: the advisor measures against them, `--throttle` enforces them.

/// What goes over them is answered 503 `ServerBusy` by a service that enforces them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Targets {
    /// Rows of one partition that are written, or that answers hold.
    pub partition_rows_per_second: u32,
    /// Requests to one account, to whichever service.
    pub account_operations_per_second: u32,
}

/// The targets that the live services publish.
impl Default for Targets {
    fn default() -> Targets {
        Targets { partition_rows_per_second: 2_000, account_operations_per_second: 20_000 }
    }
}
