//! Plans: which key ranges a query reads, and which conditions remain to be checked on each row found there.
//!
//! The conditions on PartitionKey and RowKey describe a region of the plane that the two keys span: a union of
//! rectangles, each a partition interval times a row interval. `and` intersects regions, and `or` unites them. A
//! condition on any other property is the whole plane, marked as inexact: a superset of the matching keys.
//!
//! Promises: the rows in the ranges that satisfy the predicate are exactly the rows that satisfy the filter. Planning
//! takes time nearly linear in the filter and recurses at most to a fixed depth.
//! Leaves to others: reading the ranges, and where a page ends.

use std::cmp::Ordering;
use std::ops::Bound;

use engine::KeyRange;
use protocol::common::ordinal::compare_ordinal;
use protocol::table::filter::{CompareOp, Expr, Filter, FilterProperty};
use protocol::table::model::Value;

/// How many pairs of rectangles one plan may intersect, over all intersections of two unions. Only these can produce
/// more rectangles than the filter has terms. Past the bound, one of the two unions is left to the predicate.
const RECTANGLE_PRODUCTS_MAX: usize = 16_384;
/// How many alternations of `and` and `or` are planned; deeper ones are left to the predicate.
const PLANNED_DEPTH_MAX: usize = 32;
/// How much key text the ranges of a plan may hold, since one long literal may bound many ranges. A plan with more
/// reads the whole table.
const RANGE_TEXT_BYTES_MAX: usize = 4 << 20;

/// How a query finds its rows, from the cheapest way to the most expensive. A plan with several ranges has the kind of
/// its most expensive one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PlanKind {
    /// Both keys are known. Also used when nothing can match and nothing is read.
    Point,
    /// The partition is known, and the row key has bounds.
    RowRange,
    /// The partition is known and read in full.
    PartitionScan,
    /// The partition key has bounds.
    PartitionRange,
    /// Everything is read.
    TableScan,
}

impl PlanKind {
    pub fn name(self) -> &'static str {
        match self {
            PlanKind::Point => "point",
            PlanKind::RowRange => "row range",
            PlanKind::PartitionScan => "partition scan",
            PlanKind::PartitionRange => "partition range",
            PlanKind::TableScan => "table scan",
        }
    }
}

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
        Some(Filter { root }) => Planner::new(RECTANGLE_PRODUCTS_MAX, PLANNED_DEPTH_MAX).plan(root),
        None => Plan::table_scan(None),
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

/// A part of the filter, possibly negated.
#[derive(Clone, Copy)]
struct Term<'f> {
    expr: &'f Expr,
    negated: bool,
}

impl<'f> Term<'f> {
    /// The same term without any `not` at its root.
    fn stripped(mut self) -> Term<'f> {
        while let Expr::Not(operand) = self.expr {
            self = Term { expr: operand, negated: !self.negated };
        }
        self
    }

    /// If this is a list, its word and terms. `not (a or b)` counts as `not a and not b`.
    fn as_list(self) -> Option<(Word, &'f [Expr])> {
        match (self.expr, self.negated) {
            (Expr::And(terms), false) | (Expr::Or(terms), true) => Some((Word::And, terms)),
            (Expr::Or(terms), false) | (Expr::And(terms), true) => Some((Word::Or, terms)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    And,
    Or,
}

/// The keys for which a term can be true.
struct Region<'f> {
    rectangles: Vec<Rectangle<'f>>,
    /// Whether the term is true for all of these keys. Otherwise it may be false for some.
    exact: bool,
}

impl<'f> Region<'f> {
    fn constant(value: bool) -> Region<'f> {
        Region { rectangles: if value { vec![Rectangle::EVERYTHING] } else { Vec::new() }, exact: true }
    }

    fn unknown() -> Region<'f> {
        Region { rectangles: vec![Rectangle::EVERYTHING], exact: false }
    }
}

/// Makes one plan, and counts how much of its bounds is left.
struct Planner {
    products_left: usize,
    depth_max: usize,
}

impl Planner {
    fn new(products_max: usize, depth_max: usize) -> Planner {
        Planner { products_left: products_max, depth_max }
    }

    fn plan(mut self, root: Expr) -> Plan {
        let (rectangles, guaranteed) = match &root {
            Expr::And(terms) => {
                let terms: Vec<Term<'_>> = terms.iter().map(|expr| Term { expr, negated: false }).collect();
                self.intersection(&terms, 0)
            }
            expr => {
                let region = self.region(Term { expr, negated: false }, 0);
                (region.rectangles, vec![region.exact])
            }
        };
        if rectangles.iter().map(Rectangle::text_bytes).sum::<usize>() > RANGE_TEXT_BYTES_MAX {
            return Plan::table_scan(Some(root));
        }
        let mut kind = dearest_kind(&rectangles);
        let ranges_are_exact = rectangles.iter().all(Rectangle::is_one_range);
        let ranges = KeyRange::normalize(rectangles.iter().map(Rectangle::key_range).collect());
        if ranges == [KeyRange::all()] {
            kind = PlanKind::TableScan;
        }
        let predicate = if ranges_are_exact { remainder(root, &guaranteed) } else { Some(root) };
        Plan { kind, ranges, predicate: predicate.map(|root| Filter { root }) }
    }

    fn region<'f>(&mut self, term: Term<'f>, depth: usize) -> Region<'f> {
        let term = term.stripped();
        if let Some((word, _)) = term.as_list() {
            if depth == self.depth_max {
                return Region::unknown();
            }
            let terms = flattened(term, word);
            return match word {
                Word::And => {
                    let (rectangles, guaranteed) = self.intersection(&terms, depth + 1);
                    Region { rectangles, exact: guaranteed.iter().all(|guaranteed| *guaranteed) }
                }
                Word::Or => self.union(&terms, depth + 1),
            };
        }
        match term.expr {
            Expr::Constant(value) => Region::constant(*value != term.negated),
            // The parser allows comparing keys with strings only, and every row has both keys, so `not` is the same as
            // the opposite operator.
            Expr::Compare { property: FilterProperty::PartitionKey, op, literal: Value::String(text) } => {
                let partitions = Interval::of(*op, text, term.negated);
                let rectangle = |partition| Rectangle { partition, row: Interval::EVERYTHING };
                Region { rectangles: partitions.map(rectangle).collect(), exact: true }
            }
            Expr::Compare { property: FilterProperty::RowKey, op, literal: Value::String(text) } => {
                let rows = Interval::of(*op, text, term.negated);
                let rectangle = |row| Rectangle { partition: Interval::EVERYTHING, row };
                Region { rectangles: rows.map(rectangle).collect(), exact: true }
            }
            _ => Region::unknown(),
        }
    }

    fn union<'f>(&mut self, terms: &[Term<'f>], depth: usize) -> Region<'f> {
        let mut union = Region::constant(false);
        for term in terms {
            let region = self.region(*term, depth);
            // The union is already the whole plane, so further rectangles would add nothing. If this term is exact, it
            // is always true, and so is the whole list.
            if region.rectangles.iter().any(Rectangle::is_everything) {
                union.rectangles = vec![Rectangle::EVERYTHING];
                union.exact = region.exact;
                return union;
            }
            union.rectangles.extend(region.rectangles);
            union.exact &= region.exact;
        }
        union
    }

    /// The keys for which all terms can be true, and for each term whether it is certainly true for all of these keys.
    fn intersection<'f>(&mut self, terms: &[Term<'f>], depth: usize) -> (Vec<Rectangle<'f>>, Vec<bool>) {
        let mut regions: Vec<(usize, Region<'f>)> =
            terms.iter().map(|term| self.region(*term, depth)).enumerate().collect();
        // Terms with a single rectangle first: they shrink the others without multiplying anything.
        regions.sort_by_key(|(_, region)| region.rectangles.len());

        let mut rectangles = vec![Rectangle::EVERYTHING];
        let mut guaranteed = vec![false; terms.len()];
        for (index, region) in regions {
            if self.affords(&rectangles, &region.rectangles) {
                rectangles = product(&rectangles, &region.rectangles);
                guaranteed[index] = region.exact;
            } else if dearest_kind(&region.rectangles) < dearest_kind(&rectangles) {
                rectangles = region.rectangles;
                guaranteed.fill(false);
                guaranteed[index] = region.exact;
            }
        }
        if rectangles.is_empty() {
            // With no keys left, every term holds trivially.
            guaranteed.fill(true);
        }
        (rectangles, guaranteed)
    }

    fn affords(&mut self, left: &[Rectangle<'_>], right: &[Rectangle<'_>]) -> bool {
        if left.len() <= 1 || right.len() <= 1 {
            return true;
        }
        let products = left.len().saturating_mul(right.len());
        let affords = products <= self.products_left;
        if affords {
            self.products_left -= products;
        }
        affords
    }
}

/// The terms of a list, including those of nested lists with the same word. Not recursive: `a or (b or (c or …))` may
/// be as long as the parser allows and still becomes one list.
fn flattened(list: Term<'_>, word: Word) -> Vec<Term<'_>> {
    let mut terms = Vec::new();
    let mut open = vec![list];
    while let Some(term) = open.pop() {
        let term = term.stripped();
        match term.as_list() {
            Some((inner, exprs)) if inner == word => {
                open.extend(exprs.iter().rev().map(|expr| Term { expr, negated: term.negated }));
            }
            _ => terms.push(term),
        }
    }
    terms
}

fn product<'f>(left: &[Rectangle<'f>], right: &[Rectangle<'f>]) -> Vec<Rectangle<'f>> {
    left.iter().flat_map(|a| right.iter().filter_map(|b| a.intersect(b))).collect()
}

fn dearest_kind(rectangles: &[Rectangle<'_>]) -> PlanKind {
    rectangles.iter().map(Rectangle::kind).max().unwrap_or(PlanKind::Point)
}

/// An interval of partitions, with the same interval of rows in each. Never empty.
#[derive(Clone, Copy, PartialEq)]
struct Rectangle<'f> {
    partition: Interval<'f>,
    row: Interval<'f>,
}

impl<'f> Rectangle<'f> {
    const EVERYTHING: Rectangle<'static> =
        Rectangle { partition: Interval::EVERYTHING, row: Interval::EVERYTHING };

    fn is_everything(&self) -> bool {
        self.partition.is_everything() && self.row.is_everything()
    }

    fn intersect(&self, other: &Rectangle<'f>) -> Option<Rectangle<'f>> {
        let partition = self.partition.intersect(&other.partition)?;
        let row = self.row.intersect(&other.row)?;
        Some(Rectangle { partition, row })
    }

    fn kind(&self) -> PlanKind {
        match (self.partition.as_single(), self.row.as_single()) {
            (Some(_), Some(_)) => PlanKind::Point,
            (Some(_), None) if self.row.is_everything() => PlanKind::PartitionScan,
            (Some(_), None) => PlanKind::RowRange,
            (None, _) if self.partition.is_everything() => PlanKind::TableScan,
            (None, _) => PlanKind::PartitionRange,
        }
    }

    /// Whether [`Rectangle::key_range`] holds no other keys. Rows of different partitions are not adjacent.
    fn is_one_range(&self) -> bool {
        self.partition.as_single().is_some() || self.row.is_everything()
    }

    fn key_range(&self) -> KeyRange {
        match (self.partition.as_single(), self.row.as_single()) {
            (Some(partition), Some(row)) => KeyRange::point(partition, row),
            (Some(partition), None) => KeyRange::rows(partition, self.row.low_bound(), self.row.high_bound()),
            (None, _) => KeyRange::partitions(self.partition.low_bound(), self.partition.high_bound()),
        }
    }

    /// An upper bound on the key text in [`Rectangle::key_range`].
    fn text_bytes(&self) -> usize {
        let cuts = [self.partition.low, self.partition.high, self.row.low, self.row.high];
        cuts.iter().map(|cut| cut.text().len()).sum()
    }
}

/// The strings between two cuts. Never empty, except that there may be no string between two neighbouring cuts.
#[derive(Clone, Copy, PartialEq)]
struct Interval<'f> {
    low: Cut<'f>,
    high: Cut<'f>,
}

/// A position between strings, in the service's order.
#[derive(Clone, Copy, PartialEq)]
enum Cut<'f> {
    Before(&'f str),
    After(&'f str),
    End,
}

impl<'f> Interval<'f> {
    const EVERYTHING: Interval<'static> = Interval { low: Cut::START, high: Cut::End };

    fn new(low: Cut<'f>, high: Cut<'f>) -> Option<Interval<'f>> {
        low.compare(&high).is_lt().then_some(Interval { low, high })
    }

    /// The strings for which `op text` holds, or all others if negated.
    fn of(op: CompareOp, text: &'f str, negated: bool) -> impl Iterator<Item = Interval<'f>> {
        let below = Interval::new(Cut::START, Cut::Before(text));
        let equal = Interval::new(Cut::Before(text), Cut::After(text));
        let above = Interval::new(Cut::After(text), Cut::End);
        let up_to = Interval::new(Cut::START, Cut::After(text));
        let down_to = Interval::new(Cut::Before(text), Cut::End);
        let intervals = match (op, negated) {
            (CompareOp::Eq, false) | (CompareOp::Ne, true) => [equal, None],
            (CompareOp::Ne, false) | (CompareOp::Eq, true) => [below, above],
            (CompareOp::Lt, false) | (CompareOp::Ge, true) => [below, None],
            (CompareOp::Ge, false) | (CompareOp::Lt, true) => [down_to, None],
            (CompareOp::Gt, false) | (CompareOp::Le, true) => [above, None],
            (CompareOp::Le, false) | (CompareOp::Gt, true) => [up_to, None],
        };
        intervals.into_iter().flatten()
    }

    fn is_everything(&self) -> bool {
        *self == Interval::EVERYTHING
    }

    fn as_single(&self) -> Option<&'f str> {
        match (self.low, self.high) {
            (Cut::Before(low), Cut::After(high)) if low == high => Some(low),
            _ => None,
        }
    }

    fn intersect(&self, other: &Interval<'f>) -> Option<Interval<'f>> {
        let low = if self.low.compare(&other.low).is_lt() { other.low } else { self.low };
        let high = if self.high.compare(&other.high).is_gt() { other.high } else { self.high };
        Interval::new(low, high)
    }

    fn low_bound(&self) -> Bound<&'f str> {
        match self.low {
            // Nothing sorts before the empty string.
            Cut::Before("") | Cut::End => Bound::Unbounded,
            Cut::Before(text) => Bound::Included(text),
            Cut::After(text) => Bound::Excluded(text),
        }
    }

    fn high_bound(&self) -> Bound<&'f str> {
        match self.high {
            Cut::Before(text) => Bound::Excluded(text),
            Cut::After(text) => Bound::Included(text),
            Cut::End => Bound::Unbounded,
        }
    }
}

impl<'f> Cut<'f> {
    const START: Cut<'static> = Cut::Before("");

    fn text(&self) -> &'f str {
        match self {
            Cut::Before(text) | Cut::After(text) => text,
            Cut::End => "",
        }
    }

    fn compare(&self, other: &Cut<'f>) -> Ordering {
        match (self, other) {
            (Cut::End, Cut::End) => Ordering::Equal,
            (Cut::End, _) => Ordering::Greater,
            (_, Cut::End) => Ordering::Less,
            _ => compare_ordinal(self.text(), other.text()).then(self.is_after().cmp(&other.is_after())),
        }
    }

    fn is_after(&self) -> bool {
        matches!(self, Cut::After(_))
    }
}

#[cfg(test)]
mod tests;
