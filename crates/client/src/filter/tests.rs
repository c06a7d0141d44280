//! Filters: their text, that it reads back as the same tree, and what they cost.

use std::time::{Duration, SystemTime};

use fastrand::Rng;
use protocol::table::filter::Expr;

use super::*;
use crate::{Column, DateTime, DynamicEntity, Guid};

type Condition = Filter<DynamicEntity>;

fn column<T>(name: &str) -> Column<DynamicEntity, T> {
    DynamicEntity::column(name).unwrap()
}

#[track_caller]
fn check(filter: Condition, expected: &str) {
    assert_eq!(filter.to_string(), expected);
    let parsed = parse(expected, Schema::Entities).unwrap().unwrap();
    assert_eq!(parsed.root, filter.to_tree());
}

#[test]
fn literals_have_the_form_of_their_type() {
    check(column::<String>("x").eq("o'n''e"), "x eq 'o''n''''e'");
    check(column::<String>("x").ne(""), "x ne ''");
    check(column::<String>("x").eq(String::from("é\u{1F600}\n")), "x eq 'é\u{1F600}\n'");
    check(column::<i32>("x").lt(i32::MIN), "x lt -2147483648");
    check(column::<u8>("x").lt(200), "x lt 200");
    check(column::<i64>("x").le(i64::MIN), "x le -9223372036854775808L");
    check(column::<u32>("x").le(u32::MAX), "x le 4294967295L");
    check(column::<f64>("x").gt(3.0), "x gt 3.0");
    check(column::<f64>("x").gt(-1.5e300), "x gt -1.5E+300");
    check(column::<f64>("x").gt(f64::INFINITY), "x gt INF");
    check(column::<f64>("x").gt(f64::NEG_INFINITY), "x gt -INF");
    check(column::<bool>("x").is_true(), "x eq true");
    check(column::<bool>("x").is_false(), "x eq false");
    check(column::<DateTime>("x").ge(DateTime::MAX), "x ge datetime'9999-12-31T23:59:59.9999999Z'");
    check(column::<DateTime>("x").ge(SystemTime::UNIX_EPOCH), "x ge datetime'1970-01-01T00:00:00Z'");
    check(column::<Guid>("x").eq(Guid([0xAB; 16])), "x eq guid'abababab-abab-abab-abab-abababababab'");
    check(column::<Vec<u8>>("x").eq([0u8, 0xFF]), "x eq X'00ff'");
    check(column::<Vec<u8>>("x").eq(vec![]), "x eq X''");
    check(column::<Value<'static>>("x").eq(Value::Int64(1)), "x eq 1L");
    assert_eq!(column::<f64>("x").ne(f64::NAN).to_string(), "x ne NaN");
}

#[test]
fn values_beyond_a_type_compare_as_they_should() {
    let large = i64::MAX as u64 + 1;
    check(column::<u64>("x").lt(large), "x le 9223372036854775807L");
    check(column::<u64>("x").le(large), "x le 9223372036854775807L");
    check(column::<u64>("x").ne(large), "x le 9223372036854775807L");
    check(column::<u64>("x").ge(large), "x gt 9223372036854775807L");
    check(column::<u64>("x").eq(large), "x gt 9223372036854775807L");
    let ancient = SystemTime::UNIX_EPOCH - Duration::from_secs(70_000_000_000);
    check(column::<DateTime>("x").gt(ancient), "x ge datetime'0001-01-01T00:00:00Z'");
    check(column::<DateTime>("x").eq(ancient), "x lt datetime'0001-01-01T00:00:00Z'");
}

#[test]
fn conditions_combine_with_as_few_parentheses_as_are_safe() {
    let x = |value: i32| column::<i32>("x").eq(value);
    check(x(1) & x(2) & x(3), "x eq 1 and x eq 2 and x eq 3");
    check(x(1) & (x(2) & x(3)), "x eq 1 and x eq 2 and x eq 3");
    check(x(1) | x(2) & x(3), "x eq 1 or (x eq 2 and x eq 3)");
    check((x(1) | x(2)) & x(3), "(x eq 1 or x eq 2) and x eq 3");
    check(!(x(1) | x(2)), "not (x eq 1 or x eq 2)");
    check(!x(1) & !!x(2), "not (x eq 1) and x eq 2");
    check(column::<i32>("x").between(1, 5), "x ge 1 and x lt 5");
    check(column::<i32>("x").is_in([1, 2]) & x(3), "(x eq 1 or x eq 2) and x eq 3");
    check(column::<i32>("x").is_in(Vec::<i32>::new()), "false");
    check(column::<String>("x").is_in(["a"]), "x eq 'a'");
    check(column::<String>("x").starts_with(""), "x ge ''");
    check(column::<String>("x").starts_with("a'"), "x ge 'a''' and x lt 'a('");
    check(DynamicEntity::timestamp().lt(DateTime::UNIX_EPOCH), "Timestamp lt datetime'1970-01-01T00:00:00Z'");
}

#[test]
fn constants_vanish_where_they_can() {
    let x = || column::<i32>("x").eq(1);
    check(Filter::all() & x(), "x eq 1");
    check(x() & Filter::all(), "x eq 1");
    check(Filter::none() | x(), "x eq 1");
    check(x() | Filter::none(), "x eq 1");
    check(Filter::all() | x(), "true");
    check(x() & Filter::none(), "false");
    check(!Condition::all(), "false");
    assert!(Condition::all().is_all() && !Condition::none().is_all() && !x().is_all());
}

#[test]
fn raw_filters_are_checked_and_can_be_combined() {
    let raw = |text: &str| Condition::raw(text).unwrap();
    check(
        raw("3 lt x or (y and not z)") & column::<i32>("n").eq(1),
        "(x gt 3 or (y and not (z))) and n eq 1",
    );
    check(raw("a and (b and (c and d))"), "a and b and c and d");
    assert!(raw("  ").is_all());
    for (text, message) in [
        ("x eq", "Expression expected at position 4 in 'x eq'."),
        ("x eq 'a", "There is an unterminated string literal at position 7 in 'x eq 'a'."),
        ("RowKey eq 1", "incompatible types"),
    ] {
        let error = Condition::raw(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn arguments_of_a_filter_never_become_syntax() {
    let hostile = "' or true or Name eq '";
    let filter: Condition = crate::filter!("Name eq {} and Age gt {}", hostile, 30).unwrap();
    check(filter, "Name eq ''' or true or Name eq ''' and Age gt 30");
    let filter: Condition = crate::filter!("Name eq '{{}}' and x eq{}", 5i64).unwrap();
    check(filter, "Name eq '{}' and x eq 5L");
    let filter: Condition = crate::filter!("Flag").unwrap();
    assert_eq!(filter.to_string(), "Flag");
    let quoted = Condition::with_arguments("Name eq '{}'", &[literal(hostile)]);
    assert_eq!(quoted.unwrap_err().to_string(), "an argument of a filter stands inside of quotes");
    for (text, count) in [("{}", 0), ("x", 1), ("{", 0), ("}x", 0), ("é{", 0)] {
        assert!(Condition::with_arguments(text, &vec![literal(&1); count]).is_err(), "{text}");
    }
    let refused: Result<Condition, _> = crate::filter!("x eq {}", u64::MAX);
    assert!(refused.is_err());
    assert!(
        DynamicEntity::column::<i32>("not").is_err() && DynamicEntity::column::<i32>("x eq 1 or y").is_err()
    );
}

const NAMES: [&str; 5] = ["x", "PartitionKey", "RowKey", "größe", "_y2"];

fn random_text(random: &mut Rng) -> String {
    let pieces =
        ["", "a", "b", "'", "''", " or ", "\u{D7FF}", "\u{10FFFF}", "\u{FFFF}", "(", "\n", "\0", "datetime'"];
    (0..random.usize(..4)).map(|_| pieces[random.usize(..pieces.len())]).collect()
}

fn random_value(random: &mut Rng) -> Value<'static> {
    match random.u8(..8) {
        0 => Value::String(random_text(random).into()),
        1 => Value::Int32(random.i32(..)),
        2 => Value::Int64(random.i64(..)),
        3 => {
            Value::Double(Some(f64::from_bits(random.u64(..))).filter(|value| !value.is_nan()).unwrap_or(0.5))
        }
        4 => Value::Boolean(random.bool()),
        5 => Value::DateTime(DateTime::from_ticks(random.u64(..DateTime::MAX.ticks()))),
        6 => Value::Guid(Guid(std::array::from_fn(|_| random.u8(..)))),
        _ => Value::Binary((0..random.usize(..4)).map(|_| random.u8(..)).collect::<Vec<_>>().into()),
    }
}

fn random_filter(random: &mut Rng, depth: usize) -> Condition {
    if depth > 0 {
        match random.u8(..4) {
            0 => return random_filter(random, depth - 1) & random_filter(random, depth - 1),
            1 => return random_filter(random, depth - 1) | random_filter(random, depth - 1),
            2 => return !random_filter(random, depth - 1),
            _ => {}
        }
    }
    let name = NAMES[random.usize(..NAMES.len())];
    if matches!(name, "PartitionKey" | "RowKey") {
        let (column, text) = (column::<String>(name), random_text(random));
        return match random.u8(..7) {
            0 => column.ne(text),
            1 => column.lt(text),
            2 => column.gt(text),
            3 => column.starts_with(&text),
            _ => column.eq(text),
        };
    }
    let (column, value) = (column::<Value<'static>>(name), random_value(random));
    match random.u8(..5) {
        0 => column.ne(value),
        1 => column.ge(value),
        2 => column.le(value),
        3 => column.is_in([value, random_value(random)]),
        _ => column.eq(value),
    }
}

#[test]
fn the_text_of_any_filter_parses_to_its_tree() {
    let mut random = Rng::with_seed(11);
    for _ in 0..20_000 {
        let filter = random_filter(&mut random, 4);
        let text = filter.to_string();
        let parsed =
            parse(&text, Schema::Entities).unwrap_or_else(|error| panic!("{text}: {error:?}")).unwrap();
        assert_eq!(parsed.root, filter.to_tree(), "{text}");
        assert_eq!(Condition::raw(&text).unwrap(), filter, "{text}");
    }
}

#[test]
fn a_filter_has_the_plan_that_the_server_makes_of_its_text() {
    let mut random = Rng::with_seed(12);
    let mut found = std::collections::BTreeMap::new();
    for round in 0..20_000 {
        let mut filter = random_filter(&mut random, 3);
        // Half of them about one partition, since most random filters would be table scans.
        if round % 2 == 0 {
            filter = DynamicEntity::partition_key().eq(random_text(&mut random)) & filter;
        }
        let text = filter.to_string();
        let server = tables::plan(parse(&text, Schema::Entities).unwrap());
        assert_eq!(filter.plan().name(), server.kind.name(), "{text}");
        *found.entry(server.kind.name()).or_insert(0) += 1;
    }
    assert!(found.len() == 5 && found.values().all(|count| *count > 100), "{found:?}");
    assert_eq!(Condition::all().plan(), Plan::TableScan);
    assert_eq!(Condition::none().plan(), Plan::Point);
    assert!(!Plan::Point.is_scan() && !Plan::RowRange.is_scan() && Plan::PartitionScan.is_scan());
}

#[test]
fn filters_from_loops_need_no_stack() {
    let work = || {
        let x = |value: i32| column::<i32>("x").eq(value);
        let (mut after, mut before, mut nested) = (Condition::none(), Condition::none(), Condition::none());
        for value in 0..20_000 {
            after = after | x(value);
            nested = !(nested & x(value)) | x(-value);
            if value < 2_000 {
                before = x(value) | before;
            }
        }
        for filter in [after, before, nested] {
            let copy = filter.clone();
            assert_eq!(copy, filter);
            assert!(copy.to_string().len() > 10_000);
            assert!(format!("{copy:?}").len() > 10_000);
            assert_eq!(copy.plan(), Plan::TableScan);
        }
        // As deep as the service takes it.
        let deepest = format!(
            "{}x eq 1{}",
            "x eq 4 or x eq 3 and (".repeat(NESTING_DEPTH_MAX),
            ")".repeat(NESTING_DEPTH_MAX)
        );
        let filter = Condition::raw(&deepest).unwrap();
        assert_eq!(filter.plan(), Plan::TableScan);
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_tree_is_never_a_list_in_a_list() {
    let mut random = Rng::with_seed(13);
    for _ in 0..2_000 {
        let filter = random_filter(&mut random, 5);
        let mut open = vec![filter.to_tree()];
        while let Some(expr) = open.pop() {
            match expr {
                Expr::And(terms) => {
                    assert!(terms.len() > 1 && !terms.iter().any(|term| matches!(term, Expr::And(_))));
                    open.extend(terms);
                }
                Expr::Or(terms) => {
                    assert!(terms.len() > 1 && !terms.iter().any(|term| matches!(term, Expr::Or(_))));
                    open.extend(terms);
                }
                Expr::Not(operand) => {
                    assert!(!matches!(*operand, Expr::Not(_) | Expr::Constant(_)));
                    open.push(*operand);
                }
                _ => {}
            }
        }
    }
}
