//! The targets of front ends on PostgreSQL, compared with the results. Bounds are written nowhere else.

use loadgen::workload::WorkloadKind;

use super::large::SMALL_ENTITIES;
use super::results::{Contender, Figures, Keeper, ScaleOutResults, ScaleOutRun, fact};
use crate::targets::{Bound, LARGE_ENTITIES, Unit, row};

struct ScaleOutTarget {
    what: &'static str,
    unit: Unit,
    bound: Bound,
    figure: fn(&ScaleOutResults) -> Option<f64>,
}

const fn target(
    what: &'static str,
    unit: Unit,
    bound: Bound,
    figure: fn(&ScaleOutResults) -> Option<f64>,
) -> ScaleOutTarget {
    ScaleOutTarget { what, unit, bound, figure }
}

const READ: WorkloadKind = WorkloadKind::Read;
const INSERT: WorkloadKind = WorkloadKind::Insert;
const BATCH: WorkloadKind = WorkloadKind::Batch;
const PAGE: WorkloadKind = WorkloadKind::Page;
const READS_OF_PGBENCH: Bound = Bound::AtLeast(0.5);
const INSERTS_OF_PGBENCH: Bound = Bound::AtLeast(0.6);
/// Not slower than Azurite, which developers run today.
const NOT_SLOWER: Bound = Bound::AtLeast(1.0);
const TWICE: Bound = Bound::AtMost(2.0);

const TARGETS: [ScaleOutTarget; 23] = [
    target("point reads: of `pgbench`", Unit::Times, READS_OF_PGBENCH, |results| {
        of_pgbench(results, READ, Keeper::Alone, Contender::FrontEnd)
    }),
    target("inserts: of `pgbench`", Unit::Times, INSERTS_OF_PGBENCH, |results| {
        of_pgbench(results, INSERT, Keeper::Alone, Contender::FrontEnd)
    }),
    target(
        "with a standby, point reads with `etcd=`: of `pgbench`",
        Unit::Times,
        READS_OF_PGBENCH,
        |results| of_pgbench(results, READ, Keeper::WithStandby, Contender::FrontEndWithLease),
    ),
    target("with a standby, point reads without: of `pgbench`", Unit::Times, Bound::None, |results| {
        of_pgbench(results, READ, Keeper::WithStandby, Contender::FrontEnd)
    }),
    target("with a standby, inserts: of `pgbench`", Unit::Times, INSERTS_OF_PGBENCH, |results| {
        of_pgbench(results, INSERT, Keeper::WithStandby, Contender::FrontEnd)
    }),
    target("two front ends, point reads: of one", Unit::Times, Bound::None, |results| {
        two_of_one(results, READ)
    }),
    target("two front ends, inserts: of one", Unit::Times, Bound::None, |results| {
        two_of_one(results, INSERT)
    }),
    target("two front ends, transactions: of one", Unit::Times, Bound::None, |results| {
        two_of_one(results, BATCH)
    }),
    target("two front ends, pages: of one", Unit::Times, Bound::None, |results| two_of_one(results, PAGE)),
    target("point reads: of the embedded engine", Unit::Times, Bound::None, |results| {
        of_embedded(results, READ)
    }),
    target("inserts: of the embedded engine", Unit::Times, Bound::None, |results| {
        of_embedded(results, INSERT)
    }),
    target("transactions: of the embedded engine", Unit::Times, Bound::None, |results| {
        of_embedded(results, BATCH)
    }),
    target("pages: of the embedded engine", Unit::Times, Bound::None, |results| of_embedded(results, PAGE)),
    target("point reads: of Azurite", Unit::Times, NOT_SLOWER, |results| of_azurite(results, READ)),
    target("inserts: of Azurite", Unit::Times, NOT_SLOWER, |results| of_azurite(results, INSERT)),
    target("transactions of 100: of Azurite", Unit::Times, NOT_SLOWER, |results| of_azurite(results, BATCH)),
    target("pages of 1,000: of Azurite", Unit::Times, NOT_SLOWER, |results| of_azurite(results, PAGE)),
    target("point read, 10k to 10M entities: CPU", Unit::Times, TWICE, |results| {
        growth(results, READ, Figures::cpu_us)
    }),
    target("point read, 10k to 10M entities: time", Unit::Times, TWICE, |results| {
        growth(results, READ, seconds)
    }),
    target("page of 1,000, 10k to 10M entities: CPU", Unit::Times, TWICE, |results| {
        growth(results, PAGE, Figures::cpu_us)
    }),
    target("page of 1,000, 10k to 10M entities: time", Unit::Times, TWICE, |results| {
        growth(results, PAGE, seconds)
    }),
    target("dropping 10M entities", Unit::Milliseconds, Bound::AtMost(100.0), |results| {
        large(results)?.fact(fact::DROP_MS)
    }),
    target("loading 10M entities through transactions", Unit::PerSecond, Bound::None, |results| {
        large(results)?.fact(fact::LOAD_ENTITIES_PER_SECOND)
    }),
];

/// All targets as a Markdown table.
pub fn table(results: &ScaleOutResults) -> String {
    let mut text = String::from("| target | measured | wanted | verdict |\n| --- | ---: | ---: | --- |\n");
    for ScaleOutTarget { what, unit, bound, figure } in &TARGETS {
        text.push_str(&row(what, *unit, *bound, figure(results)));
    }
    text
}

/// A contender's throughput relative to another's.
fn ratio(
    results: &ScaleOutResults,
    kind: WorkloadKind,
    own: (Keeper, Contender),
    other: (Keeper, Contender),
) -> Option<f64> {
    let run = results.compared.as_ref()?;
    let (own, other) = (run.figures(kind, own.0, own.1)?, run.figures(kind, other.0, other.1)?);
    Some(own.requests_per_second / other.requests_per_second)
}

fn of_pgbench(
    results: &ScaleOutResults,
    kind: WorkloadKind,
    keeper: Keeper,
    contender: Contender,
) -> Option<f64> {
    ratio(results, kind, (keeper, contender), (keeper, Contender::Pgbench))
}

const ONE: (Keeper, Contender) = (Keeper::Alone, Contender::FrontEnd);

fn two_of_one(results: &ScaleOutResults, kind: WorkloadKind) -> Option<f64> {
    ratio(results, kind, (Keeper::Alone, Contender::TwoFrontEnds), ONE)
}

fn of_embedded(results: &ScaleOutResults, kind: WorkloadKind) -> Option<f64> {
    ratio(results, kind, ONE, (Keeper::Embedded, Contender::Embedded))
}

fn of_azurite(results: &ScaleOutResults, kind: WorkloadKind) -> Option<f64> {
    ratio(results, kind, ONE, (Keeper::Azurite, Contender::Azurite))
}

/// Of one request in the closed loop.
fn seconds(figures: &Figures) -> Option<f64> {
    Some(1.0 / figures.requests_per_second)
}

fn growth(results: &ScaleOutResults, kind: WorkloadKind, cost: fn(&Figures) -> Option<f64>) -> Option<f64> {
    let run = large(results)?;
    Some(cost(run.sized(kind, LARGE_ENTITIES)?)? / cost(run.sized(kind, SMALL_ENTITIES)?)?)
}

/// The large run, if it had as many entities as the targets require.
fn large(results: &ScaleOutResults) -> Option<&ScaleOutRun> {
    let run = results.large.as_ref()?;
    run.cells.iter().any(|cell| cell.entities >= LARGE_ENTITIES).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale_out::report::tests::example;

    #[test]
    fn without_a_run_nothing_is_claimed() {
        let text = table(&ScaleOutResults::default());
        assert_eq!(text.matches("not measured").count(), TARGETS.len());
        assert!(!text.contains("met |"), "{text}");
    }

    #[test]
    fn verdicts_come_from_the_results() {
        let text = table(&example());
        for line in [
            "| point reads: of `pgbench` | 0.60 × | at least 0.50 × | met |",
            "| inserts: of `pgbench` | 0.50 × | at least 0.60 × | **missed by a factor of 1.20** |",
            "| with a standby, point reads with `etcd=`: of `pgbench` | 0.75 × | at least 0.50 × | met |",
            "| with a standby, point reads without: of `pgbench` | 0.05 × | – | – |",
            "| dropping 10M entities | not measured | at most 100 ms | – |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
