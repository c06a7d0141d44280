//! The choices of the random walk, all from one seeded generator. Names and keys are few, so that operations collide.

use fastrand::Rng;
use protocol::table::model::Value;

use super::condition::Condition as Filter;
use super::model::{Change, Condition, Model, Properties, Units, Verb};

pub const TABLES: [&str; 4] = ["alpha", "ALPHA", "beta", "Gamma"];
const PARTITIONS: [&str; 6] = ["", "a", "ab", "b", "é", "\u{1F600}"];
const ROWS: [&str; 9] = ["", "0", "1", "10", "2", "O'B", "\u{E000}", "\u{1F600}", "z"];
const NAMES: [&str; 5] = ["flag", "n", "N", "text", "x_1"];
const OPERATORS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const BATCH_CHANGE_COUNT_MAX: usize = 8;
const FILTER_DEPTH_MAX: u32 = 4;

pub fn pick<T: Copy>(random: &mut Rng, from: &[T]) -> T {
    from[random.usize(..from.len())]
}

fn value(random: &mut Rng) -> Value<'static> {
    let number = random.i32(-2..4);
    match random.u8(..5) {
        0 => Value::String(pick(random, &ROWS).into()),
        1 => Value::Int32(number),
        2 => Value::Int64(i64::from(number)),
        3 => Value::Double(f64::from(number) + pick(random, &[0.0, 0.5])),
        _ => Value::Boolean(random.bool()),
    }
}

fn properties(random: &mut Rng) -> Properties {
    (0..random.usize(..4)).map(|_| (pick(random, &NAMES).to_owned(), value(random))).collect()
}

/// One change of any kind, with a condition that often holds for its row.
pub fn change(random: &mut Rng, model: &Model, table: &str, partition: &str) -> Change {
    let row = pick(random, &ROWS);
    let verb =
        pick(random, &[Verb::Insert, Verb::Insert, Verb::Replace, Verb::Merge, Verb::Merge, Verb::Delete]);
    let key = (Units::of(partition), Units::of(row));
    let version = model.table(table).and_then(|table| table.rows.get(&key)).map(|row| row.version);
    let condition = match (verb, random.u8(..5)) {
        (Verb::Insert, _) => Condition::None,
        (Verb::Replace | Verb::Merge, 0 | 1) => Condition::None,
        (_, 2) => Condition::Version(version.unwrap_or(1)),
        (_, 3) => Condition::Version(version.unwrap_or(1) - u64::from(random.bool())),
        _ => Condition::Any,
    };
    Change {
        partition: partition.to_owned(),
        row: row.to_owned(),
        verb,
        condition,
        properties: properties(random),
    }
}

/// Changes to one partition, sometimes with a mistake in them.
pub fn batch(random: &mut Rng, model: &Model, table: &str) -> Vec<Change> {
    let partition = pick(random, &PARTITIONS);
    let mut changes: Vec<Change> = Vec::new();
    for _ in 0..random.usize(2..=BATCH_CHANGE_COUNT_MAX) {
        let stray = random.u8(..40) == 0;
        let change = change(random, model, table, if stray { "stray" } else { partition });
        let is_new = changes.iter().all(|earlier| earlier.row != change.row);
        if is_new || random.u8(..10) == 0 {
            changes.push(change);
        }
    }
    changes
}

pub fn key(random: &mut Rng) -> (&'static str, &'static str) {
    (pick(random, &PARTITIONS), pick(random, &ROWS))
}

pub fn filter(random: &mut Rng) -> Filter {
    filter_of_depth(random, FILTER_DEPTH_MAX)
}

fn filter_of_depth(random: &mut Rng, depth: u32) -> Filter {
    let boxed = |random: &mut Rng| Box::new(filter_of_depth(random, depth - 1));
    match random.u8(..if depth == 0 { 6 } else { 12 }) {
        0..=3 => {
            let (property, keys) =
                if random.bool() { ("PartitionKey", &PARTITIONS[..]) } else { ("RowKey", &ROWS[..]) };
            let literal = Value::String(pick(random, keys).into());
            compare(random, property, literal)
        }
        4 => {
            let (property, literal) = (pick(random, &NAMES), value(random));
            compare(random, property, literal)
        }
        5 => Filter::Flag(pick(random, &NAMES).to_owned()),
        6 | 7 => Filter::Or(boxed(random), boxed(random)),
        8 => Filter::Not(boxed(random)),
        _ => Filter::And(boxed(random), boxed(random)),
    }
}

fn compare(random: &mut Rng, property: &str, literal: Value<'static>) -> Filter {
    let operator = pick(random, &OPERATORS);
    let literal_first = random.u8(..5) == 0;
    Filter::Compare { property: property.to_owned(), operator, literal, literal_first }
}
