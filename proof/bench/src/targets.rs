//! The targets and their bounds, compared with the results: met, or missed by how much.
//!
//! A figure is computed only from results; if they lack it, the table says so. A target without a bound is reported but
//! not judged. Bounds are written nowhere else.

use loadgen::measure::Sample;
use loadgen::workload::{TableShape, WorkloadKind};

use crate::floors;
use crate::plan::{EMPTY, MANY_CONNECTIONS, SCATTERED, SMALL_ENTITIES, USUAL, WAITING};
use crate::results::{Results, Run, fact};
use crate::system::SystemKind;

const MIB: f64 = 1024.0 * 1024.0;
/// The size of a large table.
pub const LARGE_ENTITIES: u64 = 10_000_000;
/// As many as the row keys of the generator have room for.
pub const HUGE_ENTITIES: u64 = 100_000_000;

#[derive(Clone, Copy)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// Reported, not judged.
    None,
}

#[derive(Clone, Copy)]
pub enum Unit {
    Times,
    PerSecond,
    Milliseconds,
    Mebibytes,
}

pub struct Target {
    pub what: &'static str,
    pub unit: Unit,
    pub bound: Bound,
    pub figure: fn(&Results) -> Option<f64>,
}

pub const fn target(
    what: &'static str,
    unit: Unit,
    bound: Bound,
    figure: fn(&Results) -> Option<f64>,
) -> Target {
    Target { what, unit, bound, figure }
}

/// In the order of the document. 64 connections unless stated otherwise.
pub const TARGETS: [Target; 43] = [
    target("point read, 100k entities: of hello world", Unit::Times, Bound::AtLeast(0.65), |results| {
        beside(results, WorkloadKind::Read, USUAL, MANY_CONNECTIONS, SystemKind::Hello)
    }),
    target("point read, 100k entities: of Azurite", Unit::Times, Bound::AtLeast(500.0), |results| {
        beside(results, WorkloadKind::Read, USUAL, MANY_CONNECTIONS, SystemKind::Azurite)
    }),
    target(
        "point read, 100k entities in 100 partitions: of Azurite",
        Unit::Times,
        Bound::AtLeast(40.0),
        |results| beside(results, WorkloadKind::Read, SCATTERED, MANY_CONNECTIONS, SystemKind::Azurite),
    ),
    target("durable insert: of hello world", Unit::Times, Bound::AtLeast(0.5), |results| {
        beside(results, WorkloadKind::Insert, EMPTY, MANY_CONNECTIONS, SystemKind::Hello)
    }),
    target("durable insert: of Azurite", Unit::Times, Bound::AtLeast(40.0), |results| {
        beside(results, WorkloadKind::Insert, EMPTY, MANY_CONNECTIONS, SystemKind::Azurite)
    }),
    target("merge of one hot entity: of the insert rate", Unit::Times, Bound::AtLeast(0.8), |results| {
        let merges = durable(&results.main, WorkloadKind::HotMerge, USUAL, MANY_CONNECTIONS)?;
        let inserts = durable(&results.main, WorkloadKind::Insert, EMPTY, MANY_CONNECTIONS)?;
        Some(merges.requests_per_second / inserts.requests_per_second)
    }),
    target("transaction of 100 inserts: of Azurite", Unit::Times, Bound::AtLeast(15.0), |results| {
        beside(results, WorkloadKind::Batch, EMPTY, MANY_CONNECTIONS, SystemKind::Azurite)
    }),
    target(
        "transaction of 100 inserts: of redb, one per commit",
        Unit::Times,
        Bound::AtLeast(0.4),
        |results| of_floor(results, floors::REDB_BATCH),
    ),
    target(
        "transaction of 100 inserts: of redb, ten per commit",
        Unit::Times,
        Bound::AtLeast(0.4),
        |results| of_floor(results, floors::REDB_TEN_BATCHES),
    ),
    target(
        "row range page of 1,000, one connection: entities",
        Unit::PerSecond,
        Bound::AtLeast(500_000.0),
        |results| Some(durable(&results.main, WorkloadKind::Page, USUAL, 1)?.entities_per_second),
    ),
    target(
        "row range page of 1,000, one connection: of Azurite",
        Unit::Times,
        Bound::AtLeast(12.0),
        |results| beside(results, WorkloadKind::Page, USUAL, 1, SystemKind::Azurite),
    ),
    target(
        "scan of 100k entities, one connection: entities",
        Unit::PerSecond,
        Bound::AtLeast(500_000.0),
        |results| Some(durable(&results.main, WorkloadKind::Scan, USUAL, 1)?.entities_per_second),
    ),
    target(
        "scan of 100k entities, one connection: of Azurite",
        Unit::Times,
        Bound::AtLeast(20.0),
        |results| beside(results, WorkloadKind::Scan, USUAL, 1, SystemKind::Azurite),
    ),
    target("filter that 1 % pass, one connection: of Azurite", Unit::Times, Bound::AtLeast(2.0), |results| {
        beside(results, WorkloadKind::Filter, USUAL, 1, SystemKind::Azurite)
    }),
    target(
        "filter that 1 % pass: examined per second and core",
        Unit::PerSecond,
        Bound::AtLeast(9_200_000.0),
        |results| {
            let sample = durable(&results.main, WorkloadKind::Filter, USUAL, 1)?;
            let per_request = sample.examined_per_second / sample.requests_per_second;
            Some(per_request / sample.server_cpu_us? * 1e6)
        },
    ),
    target("`or` of 20 row keys: of Azurite", Unit::Times, Bound::AtLeast(50.0), |results| {
        beside(results, WorkloadKind::AnyOf, USUAL, MANY_CONNECTIONS, SystemKind::Azurite)
    }),
    target("`or` of 20 row keys: CPU, of 20 point reads", Unit::Times, Bound::AtMost(0.5), |results| {
        let query = durable(&results.main, WorkloadKind::AnyOf, USUAL, MANY_CONNECTIONS)?;
        let read = durable(&results.main, WorkloadKind::Read, USUAL, MANY_CONNECTIONS)?;
        Some(query.server_cpu_us? / (read.server_cpu_us? * loadgen::workload::ANY_OF_KEY_COUNT as f64))
    }),
    target(
        "point reads beside a scan and inserts: p99, of quiet",
        Unit::Times,
        Bound::AtMost(5.0),
        |results| {
            let run = results.main.as_ref()?;
            Some(run.fact(fact::DISTURBED_P99_US)? / run.fact(fact::QUIET_P99_US)?)
        },
    ),
    target("point read, 1k to 10M entities: CPU", Unit::Times, Bound::AtMost(1.5), |results| {
        growth(results, WorkloadKind::Read, MANY_CONNECTIONS)
    }),
    target("row range page, 1k to 10M entities: CPU", Unit::Times, Bound::AtMost(1.5), |results| {
        growth(results, WorkloadKind::Page, 1)
    }),
    target("insert, 1k to 10M entities: CPU", Unit::Times, Bound::AtMost(3.0), |results| {
        growth(results, WorkloadKind::Insert, MANY_CONNECTIONS)
    }),
    target(
        "a minute of random inserts at 10M: longest pause",
        Unit::Milliseconds,
        Bound::AtMost(100.0),
        |results| Some(large(results)?.fact(fact::SUSTAINED_LONGEST_US)? / 1000.0),
    ),
    target(
        "random inserts at 10M, half load, open loop: p99.9",
        Unit::Milliseconds,
        Bound::AtMost(20.0),
        |results| Some(large(results)?.fact(fact::HALF_LOAD_P999_US)? / 1000.0),
    ),
    target("memory with 10M entities under load", Unit::Mebibytes, Bound::AtMost(400.0), |results| {
        Some(large(results)?.fact(fact::LOADED_PEAK_BYTES)? / MIB)
    }),
    target("memory, empty and idle", Unit::Mebibytes, Bound::AtMost(60.0), |results| {
        Some(results.main.as_ref()?.process(SystemKind::Durable)?.idle_bytes? as f64 / MIB)
    }),
    target("start to first answer, 10M entities", Unit::Milliseconds, Bound::AtMost(1000.0), |results| {
        large(results)?.fact(fact::RESTART_MS)
    }),
    target("start to first answer, empty", Unit::Milliseconds, Bound::AtMost(100.0), |results| {
        Some(results.main.as_ref()?.process(SystemKind::Durable)?.first_answer_ms)
    }),
    target("put message: of hello world", Unit::Times, Bound::AtLeast(0.3), |results| {
        beside(results, WorkloadKind::PutMessage, EMPTY, MANY_CONNECTIONS, SystemKind::Hello)
    }),
    target("put message: of Azurite", Unit::Times, Bound::AtLeast(40.0), |results| {
        beside(results, WorkloadKind::PutMessage, EMPTY, MANY_CONNECTIONS, SystemKind::Azurite)
    }),
    target(
        "take one message and delete it, as a pair: of hello world",
        Unit::Times,
        Bound::AtLeast(0.12),
        |results| beside(results, WorkloadKind::Take, WAITING, MANY_CONNECTIONS, SystemKind::Hello),
    ),
    target("take one message and delete it: of Azurite", Unit::Times, Bound::AtLeast(40.0), |results| {
        beside(results, WorkloadKind::Take, WAITING, MANY_CONNECTIONS, SystemKind::Azurite)
    }),
    target("take 32 messages and delete each: of Azurite", Unit::Times, Bound::AtLeast(40.0), |results| {
        beside(results, WorkloadKind::Take32, WAITING, MANY_CONNECTIONS, SystemKind::Azurite)
    }),
    target("take and delete, 1k to 10M messages waiting: CPU", Unit::Times, Bound::AtMost(1.5), |results| {
        of_few(results, fact::TAKE_MANY_CPU_US)
    }),
    target("take and delete, 1M invisible at the front: CPU", Unit::Times, Bound::AtMost(1.5), |results| {
        of_few(results, fact::TAKE_INVISIBLE_CPU_US)
    }),
    target("take and delete, 1M expired at the front: CPU", Unit::Times, Bound::AtMost(1.5), |results| {
        of_few(results, fact::TAKE_EXPIRED_CPU_US)
    }),
    target("count of 10M messages", Unit::Milliseconds, Bound::AtMost(10.0), |results| {
        results.large_queues.as_ref()?.fact(fact::COUNT_MS)
    }),
    target("clearing 10M messages", Unit::Milliseconds, Bound::AtMost(50.0), |results| {
        results.large_queues.as_ref()?.fact(fact::CLEAR_MS)
    }),
    target("memory with 10M messages under load", Unit::Mebibytes, Bound::AtMost(400.0), |results| {
        Some(results.large_queues.as_ref()?.fact(fact::QUEUE_PEAK_BYTES)? / MIB)
    }),
    target("putting 10M messages one by one", Unit::PerSecond, Bound::None, |results| {
        results.large_queues.as_ref()?.fact(fact::PUT_MESSAGES_PER_SECOND)
    }),
    target("Rust client, point reads: of the raw generator", Unit::Times, Bound::AtLeast(0.60), |results| {
        results.client.as_ref()?.fact(fact::CLIENT_READ_RATIO)
    }),
    target("Rust client, bulk load: of the raw generator", Unit::Times, Bound::AtLeast(0.70), |results| {
        results.client.as_ref()?.fact(fact::CLIENT_BULK_RATIO)
    }),
    target("release binary", Unit::Mebibytes, Bound::AtMost(25.0), |results| {
        let run = results.main.as_ref().or(results.large.as_ref())?;
        Some(run.fact(fact::BINARY_BYTES)? / MIB)
    }),
    target("loading 10M entities through transactions", Unit::PerSecond, Bound::None, |results| {
        large(results)?.fact(fact::LOAD_ENTITIES_PER_SECOND)
    }),
];

fn durable(run: &Option<Run>, kind: WorkloadKind, shape: TableShape, connections: usize) -> Option<&Sample> {
    run.as_ref()?.sample(kind, shape, connections, SystemKind::Durable)
}

/// The durable server's throughput relative to another system's.
fn beside(
    results: &Results,
    kind: WorkloadKind,
    shape: TableShape,
    connections: usize,
    other: SystemKind,
) -> Option<f64> {
    let own = durable(&results.main, kind, shape, connections)?;
    let other = results.main.as_ref()?.sample(kind, shape, connections, other)?;
    Some(own.throughput_of(other, kind.name()))
}

fn of_floor(results: &Results, floor: &str) -> Option<f64> {
    let batches = durable(&results.main, WorkloadKind::Batch, EMPTY, MANY_CONNECTIONS)?;
    Some(batches.entities_per_second / results.main.as_ref()?.floor(floor)?.entities_per_second)
}

/// Processor time per request on the largest table, relative to the small one.
fn growth(results: &Results, kind: WorkloadKind, connections: usize) -> Option<f64> {
    let run = large(results)?;
    let cells =
        run.cells.iter().filter(|cell| cell.workload == kind.name() && cell.connections == connections);
    let largest = cells.max_by_key(|cell| cell.entities)?.sample?.server_cpu_us?;
    let small = durable(&results.large, kind, TableShape::one_partition(SMALL_ENTITIES), connections)?;
    Some(largest / small.server_cpu_us?)
}

/// The processor time of a take, relative to that in a queue of a thousand messages.
fn of_few(results: &Results, name: &str) -> Option<f64> {
    let run = results.large_queues.as_ref()?;
    Some(run.fact(name)? / run.fact(fact::TAKE_FEW_CPU_US)?)
}

/// The large run, if it had as many entities as the targets require.
fn large(results: &Results) -> Option<&Run> {
    let run = results.large.as_ref()?;
    run.cells.iter().any(|cell| cell.entities >= LARGE_ENTITIES).then_some(run)
}

/// The targets of all runs, in the order of the document.
fn all() -> impl Iterator<Item = &'static Target> {
    TARGETS
        .iter()
        .chain(&crate::rivals::targets::TARGETS)
        .chain(&crate::large::targets::TARGETS)
        .chain(&crate::blobs::targets::TARGETS)
}

/// All targets as a Markdown table.
pub fn table(results: &Results) -> String {
    let mut text = String::from("| target | measured | wanted | verdict |\n| --- | ---: | ---: | --- |\n");
    for target in all() {
        text.push_str(&row(target.what, target.unit, target.bound, (target.figure)(results)));
    }
    text
}

/// One target with its verdict, as a line of a Markdown table.
pub fn row(what: &str, unit: Unit, bound: Bound, figure: Option<f64>) -> String {
    let figure = figure.filter(|figure| figure.is_finite());
    let measured = figure.map_or("not measured".to_owned(), |figure| show(figure, unit));
    let wanted = match bound {
        Bound::AtLeast(bound) => format!("at least {}", show(bound, unit)),
        Bound::AtMost(bound) => format!("at most {}", show(bound, unit)),
        Bound::None => "–".to_owned(),
    };
    format!("| {what} | {measured} | {wanted} | {} |\n", verdict(figure, bound))
}

/// `met`, or the factor by which it was missed.
fn verdict(figure: Option<f64>, bound: Bound) -> String {
    let factor = match (figure, bound) {
        (None, _) | (_, Bound::None) => return "–".to_owned(),
        (Some(figure), Bound::AtLeast(bound)) => bound / figure,
        (Some(figure), Bound::AtMost(bound)) => figure / bound,
    };
    if factor <= 1.0 { "met".to_owned() } else { format!("**missed by a factor of {factor:.2}**") }
}

fn show(figure: f64, unit: Unit) -> String {
    match unit {
        Unit::Times if figure >= 10.0 => format!("{figure:.0} ×"),
        Unit::Times => format!("{figure:.2} ×"),
        Unit::PerSecond => format!("{}/s", crate::report::thousands(figure)),
        Unit::Milliseconds => format!("{figure:.0} ms"),
        Unit::Mebibytes => format!("{figure:.1} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_by_how_much() {
        assert_eq!(verdict(Some(2.0), Bound::AtLeast(2.0)), "met");
        assert_eq!(verdict(Some(1.0), Bound::AtLeast(2.0)), "**missed by a factor of 2.00**");
        assert_eq!(verdict(Some(300.0), Bound::AtMost(250.0)), "**missed by a factor of 1.20**");
        assert_eq!(verdict(Some(249.0), Bound::AtMost(250.0)), "met");
        assert_eq!(verdict(None, Bound::AtMost(1.0)), "–");
        assert_eq!(verdict(Some(1.0), Bound::None), "–");
    }

    #[test]
    fn without_a_run_nothing_is_claimed() {
        let text = table(&Results::default());
        assert_eq!(text.matches("not measured").count(), all().count());
        assert!(!text.contains("met |"), "{text}");
    }

    #[test]
    fn a_smaller_table_does_not_pass_for_a_large_one() {
        let mut run = crate::report::tests::example().main.unwrap();
        run.facts.insert(fact::RESTART_MS.to_owned(), 7.0);
        let mut results = Results { large: Some(run), ..Results::default() };
        let target =
            TARGETS.iter().find(|target| target.what == "start to first answer, 10M entities").unwrap();
        assert_eq!((target.figure)(&results), None);
        results.large.as_mut().unwrap().cells[0].entities = LARGE_ENTITIES;
        assert_eq!((target.figure)(&results), Some(7.0));
    }

    #[test]
    fn figures_come_from_the_results() {
        let results = crate::report::tests::example();
        let figure = |what: &str| {
            let target = TARGETS.iter().find(|target| target.what == what).unwrap();
            (target.figure)(&results)
        };
        assert_eq!(figure("point read, 100k entities: of hello world"), Some(0.5));
        assert_eq!(figure("point read, 100k entities: of Azurite"), Some(25.0));
        assert_eq!(figure("point reads beside a scan and inserts: p99, of quiet"), Some(4.0));
        assert_eq!(figure("durable insert: of Azurite"), None);
    }
}
