//! Counters of all requests since the start: by operation and outcome, durations, bytes, and how queries found their
//! rows.
//!
//! Promises: counting takes no lock and only relaxed additions, in counters that few threads share. Memory is bounded:
//! operations, statuses, error codes and plans are closed sets, and the counters of an operation are made when it is
//! first seen. What was counted before a reading begins is in it.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use protocol::ErrorCode;

use crate::histogram::{DurationCounts, DurationHistogram};
use crate::notes::PLANS;
use crate::observation::Observation;
use crate::operation::Operation;

const OPERATION_COUNT: usize = Operation::ALL.len();
const CODE_COUNT: usize = ErrorCode::ALL.len();
pub(crate) const PLAN_COUNT: usize = PLANS.len();
/// Threads share counters when there are more of them.
const SHARD_COUNT: usize = 8;
/// The statuses of success; whatever else there may be is counted as the last one.
pub(crate) const SUCCESSES: [u16; 7] = [200, 201, 202, 204, 206, 304, 0];

pub struct Metrics {
    shards: Box<[Shard]>,
    /// Refusals are rare enough to share counters between all threads.
    errors: [OnceLock<Box<Errors>>; OPERATION_COUNT],
}

/// The counters of some threads, apart from those of others.
#[repr(align(128))]
struct Shard {
    operations: [OnceLock<Box<OperationCounters>>; OPERATION_COUNT],
    plans: [PlanCounters; PLAN_COUNT],
}

/// The counters of one operation.
#[derive(Default)]
struct OperationCounters {
    successes: [AtomicU64; SUCCESSES.len()],
    durations: DurationHistogram,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

struct Errors {
    /// The answer has the status of the code.
    refused: [AtomicU64; CODE_COUNT],
    /// The answer is a success as a whole, and a part of it is refused.
    partly: [AtomicU64; CODE_COUNT],
}

#[derive(Default)]
struct PlanCounters {
    requests: AtomicU64,
    examined: AtomicU64,
    returned: AtomicU64,
}

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Which shard this thread counts in.
fn shard_index() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SHARD.with(|shard| {
        if shard.get() == usize::MAX {
            shard.set(NEXT.fetch_add(1, Relaxed) % SHARD_COUNT);
        }
        shard.get()
    })
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    pub fn new() -> Metrics {
        let shard = |_| Shard {
            operations: [const { OnceLock::new() }; OPERATION_COUNT],
            plans: std::array::from_fn(|_| PlanCounters::default()),
        };
        Metrics {
            shards: (0..SHARD_COUNT).map(shard).collect(),
            errors: [const { OnceLock::new() }; OPERATION_COUNT],
        }
    }

    pub fn observe(&self, observation: &Observation<'_>) {
        let Observation { operation, status, error, bytes_in, bytes_out, took, ref detail, .. } =
            *observation;
        let Some(shard) = self.shards.get(shard_index()) else { return };
        let counters = shard.operations[operation.index()].get_or_init(Box::default);
        counters.durations.count(took);
        if bytes_in > 0 {
            counters.bytes_in.fetch_add(bytes_in, Relaxed);
        }
        if bytes_out > 0 {
            counters.bytes_out.fetch_add(bytes_out, Relaxed);
        }
        match error {
            None => {
                let place = SUCCESSES.iter().position(|success| *success == status);
                counters.successes[place.unwrap_or(SUCCESSES.len() - 1)].fetch_add(1, Relaxed);
            }
            Some(code) => {
                let errors = self.errors[operation.index()].get_or_init(Errors::boxed);
                let counts = if status < 400 { &errors.partly } else { &errors.refused };
                counts[code as usize].fetch_add(1, Relaxed);
            }
        }
        if let Some(plan) = detail.plan {
            let counters = &shard.plans[plan as usize];
            counters.requests.fetch_add(1, Relaxed);
            counters.examined.fetch_add(detail.examined, Relaxed);
            counters.returned.fetch_add(detail.returned, Relaxed);
        }
    }

    /// Everything, summed over operations.
    pub(crate) fn totals(&self) -> RequestTotals {
        let mut totals = RequestTotals { plans: self.plans(), ..RequestTotals::default() };
        for counted in Operation::ALL.iter().filter_map(|operation| self.operation(*operation)) {
            totals.requests += counted.successes.iter().sum::<u64>();
            let failed: u64 = counted.errors.iter().map(|error| error.count).sum();
            totals.requests += failed;
            totals.errors += failed;
            totals.bytes_in += counted.bytes_in;
            totals.bytes_out += counted.bytes_out;
            for (sum, count) in totals.durations.buckets.iter_mut().zip(&counted.durations.buckets) {
                *sum += count;
            }
        }
        totals
    }

    /// What was counted of one operation; `None` when it was never seen.
    pub(crate) fn operation(&self, operation: Operation) -> Option<OperationCount> {
        let index = operation.index();
        let mut counted = OperationCount::default();
        let mut is_seen = false;
        for counters in self.shards.iter().filter_map(|shard| shard.operations[index].get()) {
            is_seen = true;
            for (sum, count) in counted.successes.iter_mut().zip(&counters.successes) {
                *sum += count.load(Relaxed);
            }
            counters.durations.add_to(&mut counted.durations);
            counted.bytes_in += counters.bytes_in.load(Relaxed);
            counted.bytes_out += counters.bytes_out.load(Relaxed);
        }
        if let Some(errors) = self.errors[index].get() {
            for (counts, is_partly) in [(&errors.refused, false), (&errors.partly, true)] {
                let codes = ErrorCode::ALL.iter().zip(counts).filter_map(|(code, count)| {
                    let count = count.load(Relaxed);
                    let status = if is_partly { 202 } else { code.status() };
                    (count > 0).then_some(ErrorCount { code: *code, status, count })
                });
                counted.errors.extend(codes);
            }
        }
        is_seen.then_some(counted)
    }

    pub(crate) fn plans(&self) -> [PlanCount; PLAN_COUNT] {
        let mut plans = [PlanCount::default(); PLAN_COUNT];
        for shard in &self.shards {
            for (sum, counters) in plans.iter_mut().zip(&shard.plans) {
                sum.requests += counters.requests.load(Relaxed);
                sum.examined += counters.examined.load(Relaxed);
                sum.returned += counters.returned.load(Relaxed);
            }
        }
        plans
    }
}

impl Errors {
    fn boxed() -> Box<Errors> {
        let zeros = || [const { AtomicU64::new(0) }; CODE_COUNT];
        Box::new(Errors { refused: zeros(), partly: zeros() })
    }
}

/// What was counted of one operation.
#[derive(Default)]
pub(crate) struct OperationCount {
    /// By status, as [`SUCCESSES`].
    pub successes: [u64; SUCCESSES.len()],
    pub errors: Vec<ErrorCount>,
    pub durations: DurationCounts,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

pub(crate) struct ErrorCount {
    pub code: ErrorCode,
    pub status: u16,
    pub count: u64,
}

/// How often a plan was used, and what it looked at.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct PlanCount {
    pub requests: u64,
    pub examined: u64,
    pub returned: u64,
}

/// Sums over all operations since the start.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct RequestTotals {
    pub requests: u64,
    pub errors: u64,
    /// From the cheapest plan to the most expensive.
    pub plans: [PlanCount; PLAN_COUNT],
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub durations: DurationCounts,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Detail;
    use protocol::common::DateTime;
    use protocol::table::region::PlanKind;
    use std::time::Duration;

    pub(crate) fn observation(
        operation: Operation,
        status: u16,
        error: Option<ErrorCode>,
    ) -> Observation<'static> {
        Observation {
            operation,
            account: "acc",
            status,
            error,
            bytes_in: 3,
            bytes_out: 5,
            took: Duration::from_micros(100),
            at: Duration::ZERO,
            now: DateTime::UNIX_EPOCH,
            request_id: "",
            detail: Detail::default(),
        }
    }

    #[test]
    fn threads_lose_no_count() {
        let metrics = Metrics::new();
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARD_COUNT {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let detail = Detail { plan: Some(PlanKind::Point), examined: 1, ..Detail::default() };
                        metrics
                            .observe(&Observation { detail, ..observation(Operation::GetEntity, 200, None) });
                        let missing = Some(ErrorCode::ResourceNotFound);
                        metrics.observe(&observation(Operation::GetEntity, 404, missing));
                    }
                });
            }
        });
        let threads = 2 * SHARD_COUNT as u64;
        let totals = metrics.totals();
        assert_eq!((totals.requests, totals.errors), (threads * 2000, threads * 1000));
        assert_eq!((totals.bytes_in, totals.bytes_out), (threads * 6000, threads * 10_000));
        assert_eq!(
            totals.plans[0],
            PlanCount { requests: threads * 1000, examined: threads * 1000, returned: 0 }
        );
        assert_eq!(totals.durations.total(), threads * 2000);
    }

    #[test]
    fn a_refused_part_is_counted_with_the_status_of_the_whole() {
        let metrics = Metrics::new();
        let batch = Operation::EntityGroupTransaction;
        metrics.observe(&observation(batch, 202, Some(ErrorCode::EntityAlreadyExists)));
        metrics.observe(&observation(batch, 409, Some(ErrorCode::EntityAlreadyExists)));
        metrics.observe(&observation(batch, 299, None));
        let counted = metrics.operation(batch).unwrap();
        let statuses: Vec<_> = counted.errors.iter().map(|error| (error.status, error.count)).collect();
        assert_eq!(statuses, [(409, 1), (202, 1)]);
        assert_eq!(counted.successes.last(), Some(&1));
        assert!(metrics.operation(Operation::GetEntity).is_none());
    }
}
