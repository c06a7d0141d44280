//! What needs a look inside: the memory that is really held, and threads that meet.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use protocol::common::DateTime;
use protocol::table::filter;
use protocol::table::region::PlanKind;

use super::*;
use crate::observation::{Detail, Shape};

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// An observation and the texts that it borrows.
pub(crate) struct Observed {
    table: String,
    keys: Option<(String, String)>,
    filter: Option<(u64, String)>,
    operation: Operation,
    detail: Detail<'static>,
    at: Duration,
}

impl Observed {
    pub(crate) fn observation(&self) -> Observation<'_> {
        Observation {
            operation: self.operation,
            account: "acc",
            status: 200,
            error: None,
            bytes_in: 0,
            bytes_out: 100,
            took: Duration::from_millis(2),
            at: self.at,
            now: DateTime::UNIX_EPOCH,
            request_id: "",
            detail: Detail {
                container: &self.table,
                partition: self.keys.as_ref().map(|keys| &*keys.0),
                row: self.keys.as_ref().map(|keys| &*keys.1),
                filter_shape: self.filter.as_ref().map(|(number, source)| Shape::new(*number, source)),
                ..self.detail
            },
        }
    }
}

pub(crate) fn query(
    table: &str,
    plan: PlanKind,
    source: &str,
    examined: u64,
    returned: u64,
    at: Duration,
) -> Observed {
    let parsed = filter::parse(source, filter::Schema::Entities).unwrap().unwrap();
    Observed {
        table: table.to_owned(),
        keys: None,
        filter: Some((filter::shape_number(&parsed.root), source.to_owned())),
        operation: Operation::QueryEntities,
        detail: Detail { plan: Some(plan), examined, returned, ..Detail::default() },
        at,
    }
}

fn insert(table: &str, partition: &str, row: &str, at: Duration) -> Observed {
    Observed {
        table: table.to_owned(),
        keys: Some((partition.to_owned(), row.to_owned())),
        filter: None,
        operation: Operation::InsertEntity,
        detail: Detail { written: 1, row_bytes_max: 1 << 20, property_count_max: 252, ..Detail::default() },
        at,
    }
}

#[test]
fn memory_stays_within_its_bound_whatever_is_sent() {
    let advisor = Advisor::default();
    for number in 0..5000u64 {
        let at = Duration::from_millis(number);
        let key = format!("{number}{}", "\u{1F600}".repeat(500));
        let table = format!("t{number:062}");
        advisor.observe(&insert(&table, &key, &key, at).observation());
        let source = format!("{}{number} eq 'x'", "P".repeat(240));
        advisor.observe(&query(&table, PlanKind::TableScan, &source, 200_000, 1, at).observation());
        let source = format!("PartitionKey eq '{key}'");
        advisor.observe(&query(&table, PlanKind::PartitionScan, &source, 20_000, 1, at).observation());
    }
    let (held, bound) = (advisor.held_bytes(), advisor.memory_bound_bytes());
    println!("the advisor holds {held} bytes, and at most {bound}");
    assert!(held <= bound, "{held} of {bound}");
    assert!(bound < 1 << 20, "{bound}");
    // As large as it gets, the answer is still made in bounded time and size.
    let json = advisor.findings_json(seconds(6));
    assert_eq!(advisor.findings(seconds(6)).len(), 100);
    assert!(json.len() < 1 << 20, "{}", json.len());
}

#[test]
fn threads_that_meet_do_not_wait_and_lose_no_count() {
    const THREADS: u64 = 8;
    const EACH: u64 = 20_000;
    let advisor = Advisor::default();
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let read = Observed {
                    detail: Detail { plan: Some(PlanKind::Point), ..Detail::default() },
                    operation: Operation::GetEntity,
                    ..insert("t", "p", "r", seconds(1))
                };
                let mut count = 0;
                // Until the last one is due and finds nobody in its way.
                while count < EACH || sample::untaken(RequestKind::Read) > 0 {
                    advisor.observe(&read.observation());
                    count += 1;
                }
                sent.fetch_add(count, Relaxed);
            });
        }
    });
    assert_eq!(advisor.lock().counts[RequestKind::Read as usize], sent.into_inner());
}

#[test]
fn a_point_read_that_is_passed_over_takes_no_lock() {
    let advisor = Advisor::default();
    let read = Observed {
        detail: Detail { plan: Some(PlanKind::Point), ..Detail::default() },
        operation: Operation::GetEntity,
        ..insert("t", "p", "r", seconds(1))
    };
    // The first one is looked at, and with the lock taken the next one that is due gives up at once.
    advisor.observe(&read.observation());
    let held = advisor.lock();
    for _ in 0..1000 {
        advisor.observe(&read.observation());
    }
    assert_eq!(held.counts[RequestKind::Read as usize], 1);
    drop(held);
    advisor.observe(&read.observation());
    assert_eq!(advisor.lock().counts[RequestKind::Read as usize], 1002);
}
