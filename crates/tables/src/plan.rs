//! Plans: which key ranges a query reads, and which conditions remain to be checked on each row found there.
//!
//! Promises: the rows in the ranges that satisfy the predicate are exactly the rows that satisfy the filter.
//! Leaves to others: which keys a filter can be true for (`protocol`'s regions), reading the ranges, and where a page
//! ends.

use engine::KeyRange;
use protocol::table::filter::{Expr, Filter};
pub use protocol::table::region::PlanKind;
use protocol::table::region::{Planner, Rectangle, kind_of};

#[derive(Debug)]
pub struct Plan {
    pub kind: PlanKind,
    /// The ranges to read: sorted and disjoint. Empty when nothing can match.
    pub ranges: Vec<KeyRange>,
    /// The conditions that the ranges do not already guarantee.
    pub predicate: Option<Filter>,
}

impl Plan {
    fn table_scan(predicate: Option<Expr>) -> Plan {
        Plan {
            kind: PlanKind::TableScan,
            ranges: vec![KeyRange::all()],
            predicate: predicate.map(|root| Filter { root }),
        }
    }
}

pub fn plan(filter: Option<Filter>) -> Plan {
    match filter {
        Some(Filter { root }) => plan_with(Planner::default(), root),
        None => Plan::table_scan(None),
    }
}

fn plan_with(planner: Planner, root: Expr) -> Plan {
    let (rectangles, guaranteed) = planner.rectangles(&root);
    let kind = kind_of(&rectangles);
    let ranges_are_exact = rectangles.iter().all(Rectangle::is_one_range);
    let ranges = KeyRange::normalize(rectangles.iter().map(key_range).collect());
    let predicate = if ranges_are_exact { remainder(root, &guaranteed) } else { Some(root) };
    Plan { kind, ranges, predicate: predicate.map(|root| Filter { root }) }
}

/// The smallest range that holds the keys of a rectangle.
fn key_range(rectangle: &Rectangle<'_>) -> KeyRange {
    let Rectangle { partition, row } = rectangle;
    match (partition.as_single(), row.as_single()) {
        (Some(partition), Some(row)) => KeyRange::point(partition, row),
        (Some(partition), None) => KeyRange::rows(partition, row.low_bound(), row.high_bound()),
        (None, _) => KeyRange::partitions(partition.low_bound(), partition.high_bound()),
    }
}

/// The filter without the terms that the ranges already guarantee.
fn remainder(root: Expr, guaranteed: &[bool]) -> Option<Expr> {
    if guaranteed.iter().all(|guaranteed| *guaranteed) {
        return None;
    }
    let Expr::And(mut terms) = root else { return Some(root) };
    debug_assert_eq!(terms.len(), guaranteed.len());
    let mut guaranteed = guaranteed.iter();
    terms.retain(|_| guaranteed.next() != Some(&true));
    if terms.len() == 1 { terms.pop() } else { Some(Expr::And(terms)) }
}

#[cfg(test)]
mod tests;
