//! `$filter`: parses, type-checks and plans it, and evaluates it over stored records.
//!
//! The plan must agree with the filter about every row: those of the sample, and those with the keys that the filter
//! mentions, which lie on the bounds of its ranges.

use engine::KeyRange;
use protocol::table::filter::{Expr, Filter, Property, Schema, parse};
use protocol::table::model::Value;
use tables::{PlanKind, StoredEntity, plan};

use super::stored;
use crate::golden::distinct;
use crate::{Golden, Outcome, Target, as_text};

pub const TARGET: Target = Target {
    name: "filter",
    run,
    input_bytes_max: 64 * 1024,
    tokens: &[
        b" eq ",
        b" ne ",
        b" gt ",
        b" ge ",
        b" lt ",
        b" le ",
        b" and ",
        b" or ",
        b"not ",
        b"not (",
        b"(",
        b")",
        b"'",
        b"''",
        b" ",
        b"PartitionKey",
        b"RowKey",
        b"Timestamp",
        b"TableName",
        b"Name",
        b"Age",
        b"Big",
        b"Weight",
        b"Active",
        b"Born",
        b"Id",
        b"Data",
        b"Missing",
        b"'p'",
        b"'r'",
        b"'q'",
        b"''",
        b"true",
        b"false",
        b"null",
        b"0",
        b"-",
        b"- 1",
        b"36",
        b"2147483648",
        b"9L",
        b"9223372036854775807L",
        b"1e3",
        b"1.5",
        b"-0.5",
        b"NaN",
        b"INF",
        b"-INF",
        b"1.7976931348623157E+308",
        b"3m",
        b"3f",
        b"datetime'2020-08-20T22:20:23.751381Z'",
        b"datetime'1970-01-01T00:00:00Z'",
        b"datetime'",
        b"guid'07070707-0707-0707-0707-070707070707'",
        b"guid'",
        b"X'0001FF'",
        b"binary'00'",
        b"startswith(",
        b"substringof('a',Name)",
        b"foo()",
        b",",
        b"/",
        b" add ",
        b" mul ",
        b"PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'",
        b"(PartitionKey eq 'p') or (",
        b"\xEF\xBC\xA1",
        b"\xF0\x9F\x92\x8E",
    ],
    seeds,
};

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let from_requests = golden.requests().filter_map(|request| {
        let filter = request.query().split('&').find_map(|pair| pair.strip_prefix("$filter="))?;
        let text = filter.replace('+', " ");
        protocol::common::percent::percent_decode(&text).map(|text| text.into_owned().into_bytes())
    });
    let by_hand = [
        "PartitionKey eq 'p' and RowKey eq 'r'",
        "PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 's'",
        "PartitionKey gt 'a' and PartitionKey le 'p' and not (RowKey eq 'x')",
        "(PartitionKey eq 'p' or PartitionKey eq 'q') and (RowKey lt 'c' or RowKey gt 'd')",
        "Age ge 36 and Age lt 2147483647 and Active",
        "Big eq 9223372036854775807L or Weight gt -1.5e0 or Weight eq NaN",
        "Born le datetime'1970-01-01T00:00:00Z' and Id eq guid'07070707-0707-0707-0707-070707070707'",
        "Data eq X'0001FF' or Data gt binary'00'",
        "Timestamp ge datetime'2020-08-20T22:20:23.751381Z'",
        "not Active or 'O''Brien' eq Name or 3 lt Age",
        "TableName ge 'a' and TableName lt 'b'",
        "((((Age eq 1))))",
    ];
    distinct(from_requests.chain(by_hand.iter().map(|text| text.as_bytes().to_vec())))
}

/// The most keys of the filter that become rows.
const KEY_LITERAL_COUNT_MAX: usize = 3;

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let text = as_text(input)?;
    let tables = parse(text, Schema::Tables);
    let Some(filter) = parse(text, Schema::Entities)? else {
        assert!(matches!(tables, Ok(None)), "a blank filter is one for tables too");
        return Ok(Outcome::Accepted("blank"));
    };
    let planned = plan(parse(text, Schema::Entities).expect("it was read a moment ago"));
    assert!(
        KeyRange::normalize(planned.ranges.clone()) == planned.ranges,
        "the ranges of a plan are sorted and disjoint"
    );
    for row in rows(&filter) {
        let view = row.view().expect("a row is a record");
        let (partition_key, row_key) = (&*row.key.partition, &*row.key.row);
        let is_in_range = planned.ranges.iter().any(|range| range.contains(partition_key, row_key));
        let is_planned =
            is_in_range && planned.predicate.as_ref().is_none_or(|predicate| predicate.matches(&view));
        assert_eq!(
            is_planned,
            filter.matches(&view),
            "the plan and the filter differ at ({partition_key:?}, {row_key:?})"
        );
    }
    Ok(Outcome::Accepted(match planned.kind {
        PlanKind::Point => "point",
        PlanKind::RowRange => "row range",
        PlanKind::PartitionScan => "partition scan",
        PlanKind::PartitionRange => "partition range",
        PlanKind::TableScan => "table scan",
    }))
}

/// The sample under its own keys and under those that the filter mentions, in all combinations.
fn rows(filter: &Filter) -> Vec<StoredEntity> {
    let mut partition_keys = vec!["p".to_owned()];
    let mut row_keys = vec!["r".to_owned(), String::new()];
    // An explicit stack, because a filter may nest too deeply for recursion.
    let mut pending = vec![&filter.root];
    while let Some(expr) = pending.pop() {
        match expr {
            Expr::Constant(_) | Expr::Flag(_) => {}
            Expr::Not(inner) => pending.push(inner),
            Expr::And(terms) | Expr::Or(terms) => pending.extend(terms),
            Expr::Compare { property, literal: Value::String(text), .. } => {
                let keys = match property {
                    Property::PartitionKey => &mut partition_keys,
                    Property::RowKey => &mut row_keys,
                    _ => continue,
                };
                if keys.len() <= KEY_LITERAL_COUNT_MAX && !keys.iter().any(|key| key == &**text) {
                    keys.push(text.clone().into_owned());
                }
            }
            Expr::Compare { .. } => {}
        }
    }
    let sample = stored::sample();
    let mut rows = Vec::new();
    for partition_key in &partition_keys {
        for row_key in &row_keys {
            let key = engine::Key::new(partition_key, row_key).into();
            rows.push(StoredEntity { key, version: sample.version, record: sample.record.clone() });
        }
    }
    rows
}
