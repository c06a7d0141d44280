//! What the server sees of its own requests: an [`Observation`] of each, and what is made of them.
//!
//! Promises: memory is bounded whatever strangers send. Counters are kept by names from closed sets; counting takes no lock and,
//! once an operation was seen, allocates nothing. The [`Advisor`] keeps names that callers chose, a bounded number of them,
//! and looks at few of the frequent requests.
//! Leaves to others: making observations (`server/front/handle.rs`), showing them (`server/admin`), and the time, which
//! comes in as values.

mod advisor;
mod analytics;
mod histogram;
mod live;
mod metrics;
mod notes;
mod observation;
mod operation;
mod prometheus;
mod rows;
mod targets;

use std::time::Duration;

pub use advisor::{Advisor, Finding, FindingKind, Month, Prices, Severity, pattern};
pub use analytics::{AnalyticsBook, AnalyticsCounts, Measured, Outcome, TICKS_PER_MINUTE};
pub use live::{LiveSecond, LiveSeries};
pub use metrics::Metrics;
pub use notes::{Named, Notes};
pub use observation::{Credentials, Detail, Observation, Shape};
pub use operation::{Operation, Service};
pub use prometheus::{CONTENT_TYPE, Gauge};
pub use protocol::table::region::PlanKind;
pub use rows::{NotedRow, NotedRows};
pub use targets::Targets;

/// Sees every finished request. It is called on the thread that served the request, before the answer is sent: it must
/// be quick, and must not block.
pub trait Observer: Send + Sync {
    fn observe(&self, observation: &Observation<'_>);
}

/// What has been concluded from the observations, for people and pages.
pub trait Advice: Send + Sync {
    /// The findings as a JSON array, the most important first. `now` is the monotonic time of the server's clock.
    fn findings_json(&self, now: Duration) -> String;

    /// The partitions with the most requests lately, as a JSON array of `{"account","table","partition","per_second"}`.
    fn hot_partitions_json(&self, now: Duration) -> String;

    /// What a month would cost on the real service, as a JSON object; `null` when nobody knows.
    fn month_json(&self, now: Duration) -> String {
        let _ = now;
        "null".to_owned()
    }

    /// How much memory it uses at most.
    fn memory_bound_bytes(&self) -> usize;

    /// Everything but the live numbers, as a JSON object.
    fn to_json(&self, now: Duration) -> String {
        format!(
            "{{\"findings\":{},\"month\":{},\"memory_bound_bytes\":{}}}",
            self.findings_json(now),
            self.month_json(now),
            self.memory_bound_bytes()
        )
    }
}
