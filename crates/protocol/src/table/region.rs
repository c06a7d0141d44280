//! The keys for which a filter can be true, and so what a query has to read.
//!
//! The conditions on PartitionKey and RowKey describe a region of the plane that the two keys span: a union of
//! rectangles, each a partition interval times a row interval. `and` intersects regions, and `or` unites them. A
//! condition on any other property is the whole plane, marked as inexact: a superset of the matching keys.
//!
//! Promises: no row outside of the rectangles satisfies the filter. Planning takes time nearly linear in the filter and
//! recurses at most to a fixed depth. Server and client plan with the same code, so that a client can tell before it
//! asks. Leaves to others: reading the rows, and checking the conditions that remain.

use std::cmp::Ordering;
use std::ops::Bound;

use super::filter::{CompareOp, Expr, FilterProperty};
use super::model::Value;
use crate::common::ordinal::compare_ordinal;

/// How many pairs of rectangles one plan may intersect, over all intersections of two unions. Only these can produce
/// more rectangles than the filter has terms. Past the bound, one of the two unions is left to the predicate.
const RECTANGLE_PRODUCTS_MAX: usize = 16_384;
/// How many alternations of `and` and `or` are planned; deeper ones are left to the predicate.
const PLANNED_DEPTH_MAX: usize = 32;
/// How much key text the rectangles of a plan may hold, since one long literal may bound many of them. A plan with more
/// reads the whole table.
const RECTANGLE_TEXT_BYTES_MAX: usize = 4 << 20;

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

/// What a filter with this root makes a query read.
pub fn kind(root: &Expr) -> PlanKind {
    kind_of(&Planner::default().rectangles(root).0)
}

/// The kind of the most expensive of these rectangles, or of all together if they are the whole plane.
pub fn kind_of(rectangles: &[Rectangle<'_>]) -> PlanKind {
    if cover_everything(rectangles) { PlanKind::TableScan } else { dearest_kind(rectangles) }
}

/// The only partition that a filter with this root can match, if there is one.
pub fn only_partition(root: &Expr) -> Option<String> {
    let (rectangles, _) = Planner::default().rectangles(root);
    let first = rectangles.first()?.partition.as_single()?;
    let is_alone = rectangles.iter().all(|rectangle| rectangle.partition.as_single() == Some(first));
    is_alone.then(|| first.to_owned())
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
pub struct Planner {
    products_left: usize,
    depth_max: usize,
}

impl Default for Planner {
    fn default() -> Planner {
        Planner::new(RECTANGLE_PRODUCTS_MAX, PLANNED_DEPTH_MAX)
    }
}

impl Planner {
    pub fn new(products_max: usize, depth_max: usize) -> Planner {
        Planner { products_left: products_max, depth_max }
    }

    /// The rectangles outside of which no row satisfies the filter, and for each term of the root (if it is an `and`,
    /// otherwise for the root itself) whether it is true for all keys in them. Too much key text makes them one
    /// rectangle: everything.
    pub fn rectangles<'f>(mut self, root: &'f Expr) -> (Vec<Rectangle<'f>>, Vec<bool>) {
        let (rectangles, guaranteed) = match root {
            Expr::And(terms) => {
                let terms: Vec<Term<'_>> = terms.iter().map(|expr| Term { expr, negated: false }).collect();
                self.intersection(&terms, 0)
            }
            expr => {
                let region = self.region(Term { expr, negated: false }, 0);
                (region.rectangles, vec![region.exact])
            }
        };
        if rectangles.iter().map(Rectangle::text_bytes).sum::<usize>() > RECTANGLE_TEXT_BYTES_MAX {
            let guaranteed = vec![false; guaranteed.len()];
            return (vec![Rectangle::EVERYTHING], guaranteed);
        }
        (rectangles, guaranteed)
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

/// Whether every key is in one of the rectangles, counting a rectangle of several partitions as all rows of these.
fn cover_everything(rectangles: &[Rectangle<'_>]) -> bool {
    // Most plans end here: nothing begins at the first key, or nothing reaches the last.
    let begins = rectangles.iter().any(|rectangle| rectangle.start() == Corner::START);
    let ends = rectangles.iter().any(|rectangle| rectangle.end() == Corner::END);
    if !begins || !ends {
        return false;
    }
    let mut stretches: Vec<(Corner<'_>, Corner<'_>)> =
        rectangles.iter().map(|rectangle| (rectangle.start(), rectangle.end())).collect();
    stretches.sort_by(|a, b| a.0.compare(&b.0));
    let mut reached = Corner::START;
    for (start, end) in stretches {
        if start.compare(&reached).is_gt() {
            return false;
        }
        if end.compare(&reached).is_gt() {
            reached = end;
        }
    }
    reached == Corner::END
}

/// A position between the rows of a table. With a row, it is inside of the partition before whose end it lies.
#[derive(Clone, Copy, PartialEq)]
struct Corner<'f> {
    partition: Cut<'f>,
    row: Cut<'f>,
}

impl<'f> Corner<'f> {
    const START: Corner<'static> = Corner { partition: Cut::START, row: Cut::START };
    const END: Corner<'static> = Corner { partition: Cut::End, row: Cut::START };

    fn compare(&self, other: &Corner<'f>) -> Ordering {
        self.partition.compare(&other.partition).then(self.row.compare(&other.row))
    }
}

/// An interval of partitions, with the same interval of rows in each. Never empty.
#[derive(Clone, Copy, PartialEq)]
pub struct Rectangle<'f> {
    pub partition: Interval<'f>,
    pub row: Interval<'f>,
}

impl<'f> Rectangle<'f> {
    pub(crate) const EVERYTHING: Rectangle<'static> =
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

    /// Whether its keys are adjacent. Rows of different partitions are not, unless they are all rows.
    pub fn is_one_range(&self) -> bool {
        self.partition.as_single().is_some() || self.row.is_everything()
    }

    /// Where the keys of the rectangle begin.
    fn start(&self) -> Corner<'f> {
        match self.partition.as_single() {
            Some(partition) => Corner { partition: Cut::Before(partition), row: self.row.low },
            None => Corner { partition: self.partition.low, row: Cut::START },
        }
    }

    /// Where the keys of the rectangle end.
    fn end(&self) -> Corner<'f> {
        match self.partition.as_single() {
            Some(partition) if self.row.high != Cut::End => {
                Corner { partition: Cut::Before(partition), row: self.row.high }
            }
            _ => Corner { partition: self.partition.high, row: Cut::START },
        }
    }

    /// How much key text the rectangle holds.
    fn text_bytes(&self) -> usize {
        let cuts = [self.partition.low, self.partition.high, self.row.low, self.row.high];
        cuts.iter().map(|cut| cut.text().len()).sum()
    }
}

/// The strings between two cuts. Never empty, except that there may be no string between two neighbouring cuts.
#[derive(Clone, Copy, PartialEq)]
pub struct Interval<'f> {
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

    /// The only string in it, if there is exactly one.
    pub fn as_single(&self) -> Option<&'f str> {
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

    /// Where it begins.
    pub fn low_bound(&self) -> Bound<&'f str> {
        match self.low {
            // Nothing sorts before the empty string.
            Cut::Before("") | Cut::End => Bound::Unbounded,
            Cut::Before(text) => Bound::Included(text),
            Cut::After(text) => Bound::Excluded(text),
        }
    }

    /// Where it ends.
    pub fn high_bound(&self) -> Bound<&'f str> {
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
mod tests {
    use super::*;
    use crate::table::filter::{self, Schema};

    #[test]
    fn a_query_has_a_partition_when_its_filter_names_one() {
        let check = |text: &str, expected: Option<&str>| {
            let filter = filter::parse(text, Schema::Entities).unwrap().unwrap();
            assert_eq!(only_partition(&filter.root).as_deref(), expected, "{text}");
        };
        check("PartitionKey eq 'p'", Some("p"));
        check("PartitionKey eq 'p' and Age gt 7", Some("p"));
        check("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')", Some("p"));
        check("PartitionKey eq 'p' or PartitionKey eq 'q'", None);
        check("PartitionKey ge 'p'", None);
        check("Age gt 7", None);
    }
}
