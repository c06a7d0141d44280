//! The rivals in the report: one table, and how they were measured.

use std::fmt::Write;

use charts::BarChart;
use loadgen::measure::median;
use loadgen::workload::{TableShape, WorkloadKind};

use super::{RivalCell, RivalKind};
use crate::report::{or_dash, thousands, time};
use crate::results::Run;
use crate::system::SystemKind;

pub fn table(run: &Run) -> String {
    let Some(any) = run.rivals.first() else { return String::new() };
    let mut text = format!(
        "\nBeside what users would weigh instead, on {} connections, with {} keys and values of {} bytes, as long as the JSON \
         of our entity:\n\n{}\
         Each is measured in every round, right after the durable server, on the same disk and over TCP. Their generators \
         share the cores with the servers, as ours does: `redis-benchmark` has one thread, `pgbench` two. Both speak a \
         compact protocol over sessions that log in once, if at all; our requests are HTTP, and each is signed and checked. A \
         SET may replace what is there, an insert must find nothing. \"Ours\" is the durable server's throughput divided \
         by the other's in the same round: the median, and in parentheses the lowest and the highest.\n\n\
         | workload | system | requests/s | p50 | p99 | CPU per request | ours | generator busy |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        any.connections,
        thousands(any.keys as f64),
        any.value_bytes,
        systems(run),
    );
    for kind in [WorkloadKind::Read, WorkloadKind::Insert] {
        let cells: Vec<&RivalCell> = run.rivals.iter().filter(|cell| cell.workload == kind.name()).collect();
        if let Some(first) = cells.first() {
            text.push_str(&own(run, kind, first));
        }
        for cell in cells {
            text.push_str(&row(kind, cell));
        }
    }
    text
}

/// How each was set up, with its version.
fn systems(run: &Run) -> String {
    let mut text = String::new();
    for kind in RivalKind::ALL {
        let Some(cell) = run.rivals.iter().find(|cell| cell.rival == kind) else { continue };
        let how = match kind {
            RivalKind::Redis => {
                "with `appendonly yes` and `appendfsync always`, without snapshots: GET and SET by `redis-benchmark`, \
                 not pipelined, with random keys"
            }
            RivalKind::Postgres => {
                "with `fsync` and `synchronous_commit` on: a row selected by its primary key, and a row inserted, by \
                 `pgbench` with prepared statements"
            }
        };
        let _ = writeln!(text, "- {} {} {how}.", kind.what(), cell.version);
    }
    text.push('\n');
    text
}

/// The durable server's own line, from the same rounds.
fn own(run: &Run, kind: WorkloadKind, beside: &RivalCell) -> String {
    // Inserts begin with an empty table.
    let entities = if kind == WorkloadKind::Read { beside.keys } else { 0 };
    let cell = run.cells.iter().find(|cell| {
        cell.workload == kind.name()
            && cell.system == SystemKind::Durable
            && cell.shape() == TableShape::one_partition(entities)
            && cell.connections == beside.connections
    });
    let Some(sample) = cell.and_then(|cell| cell.sample.as_ref()) else { return String::new() };
    format!(
        "| {} | {} | {} | {} | {} | {} | – | {} |\n",
        kind.what(),
        SystemKind::Durable.what(),
        thousands(sample.requests_per_second),
        time(sample.p50_us),
        time(sample.p99_us),
        or_dash(sample.server_cpu_us.map(time)),
        or_dash(sample.generator_busy.map(percent)),
    )
}

fn row(kind: WorkloadKind, cell: &RivalCell) -> String {
    let place = format!("| {} | {}", kind.what(), cell.rival.what());
    let Some(figures) = &cell.figures else {
        let why = cell.not_measured.as_deref().unwrap_or("no reason known").replace('|', "/");
        return format!("{place} | not measured: {why} | | | | | |\n");
    };
    let ours = cell.ratio().zip(cell.spread());
    let p50 = figures.p50_us.map_or_else(|| format!("mean {}", time(figures.mean_us)), time);
    format!(
        "{place} | {} | {p50} | {} | {} | {} | {} |\n",
        thousands(figures.requests_per_second),
        or_dash(figures.p99_us.map(time)),
        or_dash(figures.server_cpu_us.map(time)),
        or_dash(ours.map(|(ratio, (low, high))| format!("{ratio:.2} × ({low:.2} to {high:.2})"))),
        or_dash(figures.generator_busy.map(percent)),
    )
}

/// Point reads and inserts beside each other. Empty if no rival was measured.
pub fn chart(run: &Run) -> BarChart<'static> {
    let mut series = vec![SystemKind::Durable.what().to_owned()];
    series.extend(RivalKind::ALL.map(|kind| kind.what().to_owned()));
    let mut groups = Vec::new();
    for kind in [WorkloadKind::Read, WorkloadKind::Insert] {
        let cells = RivalKind::ALL.map(|rival| run.rival(kind, rival));
        let Some(own) = cells.iter().flatten().find_map(|cell| own_rate(cell)) else { continue };
        let others =
            cells.iter().map(|cell| cell.as_ref()?.figures.map(|figures| figures.requests_per_second));
        groups.push((kind.what().to_owned(), [Some(own)].into_iter().chain(others).collect()));
    }
    BarChart {
        title: "Requests per second beside Redis and PostgreSQL, every write synced",
        series,
        groups,
        is_logarithmic: false,
        show: thousands,
    }
}

/// The durable server's rate in the rounds with a rival. `None` if there was none.
fn own_rate(cell: &RivalCell) -> Option<f64> {
    (!cell.rounds.is_empty()).then(|| median(cell.rounds.iter().map(|[own, _]| *own).collect()))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::tests::cell;

    #[test]
    fn a_row_has_the_ratio_of_the_rounds_and_their_spread() {
        let mut run = crate::report::tests::example().main.unwrap();
        assert_eq!(table(&run), "");
        assert!(chart(&run).is_empty());
        run.rivals.push(cell(
            RivalKind::Redis,
            WorkloadKind::Read,
            &[[50_000.0, 62_500.0], [45.0, 50.0], [35.0, 50.0]],
        ));
        run.rivals.push(cell(RivalKind::Postgres, WorkloadKind::Read, &[[50_000.0, 40_000.0]]));
        let broken = cell(RivalKind::Postgres, WorkloadKind::Insert, &[[1.0, 1.0]]);
        run.rivals.push(RivalCell {
            rounds: Vec::new(),
            figures: None,
            not_measured: Some("a | b".to_owned()),
            ..broken
        });
        let text = table(&run);
        for part in [
            "| point read | Lazulite, durable | 50,000 | 50.0 µs | 1.50 ms | 12.3 µs | – | – |",
            "| point read | Redis | 62,500 | 1.20 ms | 2.50 ms | 12.0 µs | 0.80 × (0.70 to 0.90) | 90 % |",
            "| point read | PostgreSQL | 40,000 | mean 1.30 ms | – | 12.0 µs | 1.25 × (1.25 to 1.25) | 90 % |",
            "| insert, random keys | PostgreSQL | not measured: a / b |",
            "- Redis 7.0 with `appendonly yes`",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let chart = chart(&run);
        let rates = vec![Some(45.0), Some(62_500.0), Some(40_000.0)];
        assert_eq!(chart.groups, [("point read".to_owned(), rates)]);
        let columns: Vec<usize> = text
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.matches('|').count())
            .collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
    }
}
