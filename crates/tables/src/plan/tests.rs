//! Plans, by the text of the filter: what they read and what they still check, compared with reading everything.

use std::collections::HashMap;
use std::ops::Bound;

use super::*;
use protocol::common::ordinal::compare_ordinal;
use protocol::table::filter::{FilterProperty, Properties, Schema, parse};
use protocol::table::model::RawValue;

#[track_caller]
fn planned(text: &str) -> Plan {
    plan(parse(text, Schema::Entities).unwrap())
}

/// Checks the plan's name, how many ranges it reads, and whether it has a predicate.
#[track_caller]
fn check(text: &str, kind: &str, range_count: usize, asks: bool) {
    let plan = planned(text);
    let found = (plan.kind.name(), plan.ranges.len(), plan.predicate.is_some());
    assert_eq!(found, (kind, range_count, asks), "{text:.400}");
}

const EXACT: bool = false;
const ASKS: bool = true;

#[test]
fn both_keys_make_a_point() {
    check("PartitionKey eq 'p' and RowKey eq 'r'", "point", 1, EXACT);
    check("RowKey eq 'r' and 'p' eq PartitionKey", "point", 1, EXACT);
    check("PartitionKey eq '' and RowKey eq ''", "point", 1, EXACT);
    check("PartitionKey le '' and RowKey le ''", "point", 1, EXACT);
    check("not (PartitionKey ne 'p' or RowKey ne 'r')", "point", 1, EXACT);
    check("PartitionKey eq 'p' and RowKey ge 'r' and RowKey le 'r'", "point", 1, EXACT);
    check("PartitionKey eq 'p' and RowKey eq 'r' and x eq 1", "point", 1, ASKS);
    assert_eq!(planned("PartitionKey eq 'p' and RowKey eq 'r'").ranges, [KeyRange::point("p", "r")]);
}

#[test]
fn a_partition_and_row_bounds_make_a_row_range() {
    check("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", "row range", 1, EXACT);
    check("PartitionKey eq 'p' and RowKey gt 'a'", "row range", 1, EXACT);
    check("PartitionKey eq 'p' and RowKey ne 'a'", "row range", 2, EXACT);
    check("PartitionKey eq 'p' and not (RowKey eq 'a')", "row range", 2, EXACT);
    check("PartitionKey eq 'p' and (RowKey lt 'b' or RowKey eq 'x')", "row range", 2, EXACT);
    check("PartitionKey eq 'p' and (RowKey lt 'b' or RowKey ge 'a')", "row range", 1, EXACT);
    let range = KeyRange::rows("p", Bound::Included("a"), Bound::Excluded("b"));
    assert_eq!(planned("RowKey lt 'b' and PartitionKey eq 'p' and RowKey ge 'a'").ranges, [range]);
}

#[test]
fn a_partition_alone_makes_a_partition_scan() {
    check("PartitionKey eq 'p'", "partition scan", 1, EXACT);
    check("PartitionKey eq 'p' and x gt 5", "partition scan", 1, ASKS);
    check("PartitionKey eq 'p' or PartitionKey eq 'q'", "partition scan", 2, EXACT);
    check("PartitionKey eq 'p' and RowKey ge ''", "partition scan", 1, EXACT);
    check("PartitionKey eq 'p' and (RowKey eq 'r' or x eq 1)", "partition scan", 1, ASKS);
}

#[test]
fn partition_bounds_make_a_partition_range() {
    check("PartitionKey ge 'a' and PartitionKey lt 'b'", "partition range", 1, EXACT);
    check("PartitionKey gt 'a'", "partition range", 1, EXACT);
    check("PartitionKey ne 'a'", "partition range", 2, EXACT);
    check("PartitionKey gt 'a' and RowKey eq 'r'", "partition range", 1, ASKS);
    check("PartitionKey gt 'a' and (RowKey eq 'r' or RowKey eq 's')", "partition range", 1, ASKS);
}

#[test]
fn all_else_makes_a_table_scan() {
    check("", "table scan", 1, EXACT);
    check("true", "table scan", 1, EXACT);
    check("x eq 1", "table scan", 1, ASKS);
    check("x", "table scan", 1, ASKS);
    check("RowKey eq 'r'", "table scan", 1, ASKS);
    check("Timestamp gt datetime'2020-01-01T00:00:00Z'", "table scan", 1, ASKS);
    check("PartitionKey ge ''", "table scan", 1, EXACT);
    check("PartitionKey eq 'p' or x eq 1", "table scan", 1, ASKS);
    check("PartitionKey eq 'p' or RowKey eq 'r'", "table scan", 1, ASKS);
    check("PartitionKey eq 'p' or true", "table scan", 1, EXACT);
    check("PartitionKey lt 'p' or PartitionKey ge 'p'", "table scan", 1, EXACT);
    check("not (PartitionKey eq 'p' and x eq 1)", "table scan", 1, ASKS);
}

#[test]
fn what_cannot_match_reads_nothing() {
    check("false", "point", 0, EXACT);
    check("x eq 1 and false", "point", 0, EXACT);
    check("PartitionKey lt ''", "point", 0, EXACT);
    check("PartitionKey eq 'p' and PartitionKey eq 'q'", "point", 0, EXACT);
    check("PartitionKey gt 'q' and PartitionKey lt 'p' and x eq 1", "point", 0, EXACT);
    check("PartitionKey eq 'p' and RowKey gt 'r' and RowKey le 'r'", "point", 0, EXACT);
}

#[test]
fn alternatives_become_several_seeks() {
    check("PartitionKey eq 'p' and (RowKey eq '1' or RowKey eq '2' or RowKey eq '3')", "point", 3, EXACT);
    check(
        "(PartitionKey eq 'p' or PartitionKey eq 'q') and (RowKey eq '1' or RowKey eq '2')",
        "point",
        4,
        EXACT,
    );
    let points = "(PartitionKey eq 'p' and RowKey eq '2') or (PartitionKey eq 'p' and RowKey eq '1')";
    check(points, "point", 2, EXACT);
    assert_eq!(planned(points).ranges, [KeyRange::point("p", "1"), KeyRange::point("p", "2")]);
    check(&format!("{points} or PartitionKey eq 'q'"), "partition scan", 3, EXACT);
    check(&format!("{points} or (PartitionKey eq 'q' and RowKey gt 'r')"), "row range", 3, EXACT);
    check(&format!("{points} or PartitionKey gt 'q'"), "partition range", 3, EXACT);
    check(&format!("({points}) and x eq 1"), "point", 2, ASKS);
    check("RowKey eq '1' or (RowKey eq '2' or (RowKey eq '3' or RowKey eq '4'))", "table scan", 1, ASKS);
}

#[test]
fn the_predicate_keeps_only_what_the_ranges_leave_open() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let expected = parse(expected, Schema::Entities).unwrap();
        assert_eq!(planned(text).predicate, expected, "{text}");
    }
    check("PartitionKey eq 'p' and x eq 1", "x eq 1");
    check("PartitionKey eq 'p' and x eq 1 and RowKey gt 'r' and y eq 2", "x eq 1 and y eq 2");
    check("PartitionKey eq 'p' and (RowKey gt 'r' or x eq 1)", "RowKey gt 'r' or x eq 1");
    // The rows of several partitions are not one range, so the ranges guarantee nothing.
    check("PartitionKey gt 'p' and RowKey gt 'r'", "PartitionKey gt 'p' and RowKey gt 'r'");
    check("PartitionKey eq 'p' and RowKey gt 'r'", "");
}

#[test]
fn keys_are_ordered_by_utf16_code_unit() {
    // U+1F600 is a surrogate pair, below U+E000.
    check("PartitionKey gt '\u{1F600}' and PartitionKey lt '\u{E000}'", "partition range", 1, EXACT);
    check("PartitionKey gt '\u{E000}' and PartitionKey lt '\u{1F600}'", "point", 0, EXACT);
}

// The cost of hostile filters.

#[test]
fn thousands_of_terms_are_thousands_of_seeks() {
    let points: Vec<String> =
        (0..1_200).map(|n| format!("(PartitionKey eq 'p{n:05}' and RowKey eq 'r{n}')")).collect();
    check(&points.join(" or "), "point", 1_200, EXACT);
    let rows: Vec<String> = (0..3_000).map(|n| format!("RowKey eq '{n}'")).collect();
    check(&format!("PartitionKey eq 'p' and ({})", rows.join(" or ")), "point", 3_000, EXACT);
    // Some clients nest their terms like this.
    let nested = format!("{}RowKey eq 'x'{}", rows[..700].join(" or (") + " or (", ")".repeat(700));
    check(&format!("PartitionKey eq 'p' and ({nested})"), "point", 701, EXACT);
}

#[test]
fn products_of_unions_are_bounded() {
    let any_of = |key: &str, count: usize| {
        let terms: Vec<String> = (0..count).map(|n| format!("{key} eq '{n}'")).collect();
        format!("({})", terms.join(" or "))
    };
    check(&format!("{} and {}", any_of("PartitionKey", 100), any_of("RowKey", 100)), "point", 10_000, EXACT);
    // Past the bound, the partitions become ranges and the rows are left to the predicate, in either order.
    let (partitions, rows) = (any_of("PartitionKey", 200), any_of("RowKey", 200));
    check(&format!("{partitions} and {rows}"), "partition scan", 200, ASKS);
    check(&format!("{rows} and {partitions}"), "partition scan", 200, ASKS);
    // Groups whose intersections are cheap one by one still share one bound.
    let group = ["(PartitionKey lt '5' or PartitionKey gt '3')"; 12].join(" and ");
    let groups = vec![format!("({group})"); 100].join(" or ");
    check(&groups, "table scan", 1, ASKS);
    let unequal: Vec<String> = (0..2_200).map(|n| format!("PartitionKey ne '{n:05}'")).collect();
    let plan = planned(&unequal.join(" and "));
    assert!((100..200).contains(&plan.ranges.len()) && plan.predicate.is_some(), "{}", plan.ranges.len());
}

#[test]
fn ranges_hold_a_bounded_amount_of_text() {
    let rows: Vec<String> = (0..1_000).map(|n| format!("RowKey eq '{n}'")).collect();
    let text = format!("PartitionKey eq '{}' and ({})", "p".repeat(30_000), rows.join(" or "));
    check(&text, "table scan", 1, ASKS);
}

#[test]
fn deep_filters_are_planned_on_a_small_stack() {
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(|| {
            let nested = |open: &str, depth: usize| {
                format!("PartitionKey eq 'p' and ({}RowKey eq 'r'{})", open.repeat(depth), ")".repeat(depth))
            };
            check(&nested("RowKey eq 'a' or RowKey gt 'b' and (", 700), "row range", 2, ASKS);
            check(&nested("not (RowKey eq 'a' or ", 390), "row range", 2, ASKS);
            check(&nested("RowKey gt 'a' and (", 700), "point", 1, EXACT);
        })
        .unwrap()
        .join()
        .unwrap();
}

// Random filters, compared with reading everything.

const KEYS: [&str; 6] = ["", "a", "ab", "b", "\u{1F600}", "\u{E000}"];

struct Row {
    partition: &'static str,
    row: &'static str,
    /// Either missing or one of a few numbers.
    x: Option<i32>,
    flag: bool,
}

impl Properties for Row {
    fn property(&self, property: &FilterProperty) -> Option<RawValue<'_>> {
        match property {
            FilterProperty::PartitionKey => Some(RawValue::String(self.partition.as_bytes())),
            FilterProperty::RowKey => Some(RawValue::String(self.row.as_bytes())),
            FilterProperty::Custom(name) => match &**name {
                "x" => self.x.map(RawValue::Int32),
                "flag" => Some(RawValue::Boolean(self.flag)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Xorshift from a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn filter(&mut self, depth: usize) -> String {
        let op = self.pick(&["eq", "eq", "eq", "ne", "lt", "le", "gt", "ge"]);
        let key = self.pick(&KEYS);
        match self.below(if depth == 0 { 7 } else { 15 }) {
            0..=2 => format!("PartitionKey {op} '{key}'"),
            3 | 4 => format!("'{key}' {op} RowKey"),
            5 => format!("x {op} {}", self.below(3)),
            6 => self.pick(&["flag", "not flag", "true", "false", "partitionkey", "missing eq 1"]).into(),
            7 => format!("not ({})", self.filter(depth - 1)),
            8..=11 => self.list(" and ", depth - 1),
            _ => self.list(" or ", depth - 1),
        }
    }

    fn list(&mut self, word: &str, depth: usize) -> String {
        let terms: Vec<String> =
            (0..2 + self.below(3)).map(|_| format!("({})", self.filter(depth))).collect();
        terms.join(word)
    }
}

#[test]
fn any_plan_finds_what_reading_everything_finds() {
    let mut rows = Vec::new();
    for partition in KEYS {
        for row in KEYS {
            let n = rows.len();
            rows.push(Row { partition, row, x: [None, Some(0), Some(1), Some(2)][n % 4], flag: n % 3 == 0 });
        }
    }
    rows.sort_by(|a, b| compare_ordinal(a.partition, b.partition).then(compare_ordinal(a.row, b.row)));

    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut kinds = HashMap::new();
    for _ in 0..6_000 {
        let text = random.filter(3);
        let filter = || parse(&text, Schema::Entities).unwrap().unwrap();
        let whole = filter();
        let matching: Vec<usize> = (0..rows.len()).filter(|n| whole.matches(&rows[*n])).collect();

        let plan = plan(Some(filter()));
        assert_eq!(found(&plan, &rows), matching, "{text}: {plan:?}");
        *kinds.entry((plan.kind, plan.predicate.is_some())).or_insert(0) += 1;

        // A planner that runs out of its bounds early finds the same rows.
        let plan = plan_with(Planner::new(random.below(10), random.below(3)), filter().root);
        assert_eq!(found(&plan, &rows), matching, "{text}: {plan:?}");
    }
    assert!(kinds.len() == 10 && kinds.values().all(|count| *count > 10), "too few of some kind: {kinds:?}");
}

/// The rows that a plan finds, range by range in the order given. A range out of order or read twice would show.
fn found(plan: &Plan, rows: &[Row]) -> Vec<usize> {
    let mut found = Vec::new();
    for range in &plan.ranges {
        for (n, row) in rows.iter().enumerate() {
            let asked = || plan.predicate.as_ref().is_none_or(|predicate| predicate.matches(row));
            if range.contains(row.partition, row.row) && asked() {
                found.push(n);
            }
        }
    }
    found
}
