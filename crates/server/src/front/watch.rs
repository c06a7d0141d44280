//! Who sees a finished request: the counters, the other observers, and the logs of requests.
//!
//! Promises: a log of requests shows the path without its query, which may hold a signature, and of a filter only its
//! shape. The access log is sampled evenly; the log of slow requests has a bounded rate. Leaves to others: how a line
//! looks (the program's logger), and what observers make of what they see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use observe::{Metrics, Observation, Observer};

use super::audit::PATH_CHARACTERS_MAX;
use super::head::RequestHead;
use super::line_rate::LineRate;

/// The targets of the two logs: a program may send them elsewhere, or leave them out.
pub const ACCESS_TARGET: &str = "access";
pub const SLOW_TARGET: &str = "slow";

/// Which requests are logged.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LogRules {
    /// One request in so many; `None` for none.
    pub access_one_in: Option<u64>,
    /// Requests that take at least so long.
    pub slow: Option<Duration>,
}

/// Everything that observes requests.
#[derive(Default)]
pub struct Watch {
    pub metrics: Arc<Metrics>,
    pub observers: Vec<Arc<dyn Observer>>,
    pub rules: LogRules,
    seen: AtomicU64,
    slow_lines: LineRate,
}

impl Watch {
    pub fn new(metrics: Arc<Metrics>, observers: Vec<Arc<dyn Observer>>, rules: LogRules) -> Watch {
        Watch { metrics, observers, rules, ..Watch::default() }
    }

    pub(crate) fn finished(&self, head: &RequestHead<'_>, observation: &Observation<'_>) {
        self.metrics.observe(observation);
        for observer in &self.observers {
            observer.observe(observation);
        }
        if let Some(one_in) = self.rules.access_one_in
            && self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_in.max(1))
        {
            log_access(head, observation, one_in);
        }
        if self.rules.slow.is_some_and(|slow| observation.took >= slow)
            && let Some(left_out_count) = self.slow_lines.admit(observation.at)
        {
            log_slow(head, observation, left_out_count);
        }
    }
}

/// The path without its query, cut to a length that cannot fill a disk.
fn shown_path(head: &RequestHead<'_>) -> String {
    let path: String = head.path.chars().take(PATH_CHARACTERS_MAX).collect();
    format!("{path:?}")
}

fn log_access(head: &RequestHead<'_>, observation: &Observation<'_>, one_in: u64) {
    log::info!(
        target: ACCESS_TARGET,
        request_id = observation.request_id,
        peer:% = head.connection.peer,
        account = observation.account,
        service = observation.service().label(),
        operation = observation.operation.name(),
        status = observation.status,
        error = observation.error.map_or("", |code| code.name()),
        bytes_in = observation.bytes_in,
        bytes_out = observation.bytes_out,
        took_us = micros(observation.took),
        one_in = one_in;
        "{} {}", head.method, shown_path(head)
    );
}

fn log_slow(head: &RequestHead<'_>, observation: &Observation<'_>, left_out_count: u64) {
    let detail = &observation.detail;
    let shape = detail.filter_shape.map(|shape| shape.text()).unwrap_or_default();
    log::warn!(
        target: SLOW_TARGET,
        request_id = observation.request_id,
        account = observation.account,
        operation = observation.operation.name(),
        container = &*bounded(detail.container),
        status = observation.status,
        plan = detail.plan.map_or("", |plan| plan.name()),
        filter = &*shape,
        examined = detail.examined,
        returned = detail.returned,
        written = detail.written,
        bytes_in = observation.bytes_in,
        bytes_out = observation.bytes_out,
        took_us = micros(observation.took),
        left_out = left_out_count;
        "slow request {} {}", head.method, shown_path(head)
    );
}

/// No name of a container is longer, but a request may say anything.
fn bounded(container: &str) -> String {
    const NAME_CHARACTERS_MAX: usize = 63;
    container.chars().take(NAME_CHARACTERS_MAX).collect()
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}
