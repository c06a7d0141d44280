//! Writes `docs/performance.md` and its charts from the stored results of the last runs, and from nothing else.

use std::fmt::Write;
use std::path::Path;

use charts::BarChart;
use loadgen::Error;
use loadgen::measure::Sample;
use loadgen::workload::WorkloadKind;

use crate::report::{self, thousands, time};
use crate::results::{Cell, Results, Run, write_file};
use crate::rivals;
use crate::system::SystemKind;
use crate::targets;

/// The folder with results and charts, beside the document.
const FOLDER: &str = "performance";

/// Replaces the earlier run of the same plan, or only the workloads of a partial run, and writes everything again.
pub fn write(run: Run, is_partial: bool, directory: &Path) -> Result<Results, Error> {
    let folder = directory.join(FOLDER);
    let mut results = Results::read(&folder)?;
    if is_partial {
        results.put_part(run)
    } else {
        results.put(run)
    }
    results.write(&folder)?;
    let charts = charts(&results);
    for (name, chart) in &charts {
        write_file(&folder.join(format!("{name}.svg")), &chart.to_svg())?;
    }
    let names: Vec<(&str, &str)> = charts.iter().map(|(name, chart)| (*name, chart.title)).collect();
    write_file(&directory.join("performance.md"), &document(&results, &names))?;
    Ok(results)
}

fn document(results: &Results, charts: &[(&str, &str)]) -> String {
    let mut text = String::from(
        "# How fast Lazulite is\n\n\
         `cargo xtask bench --write`, also with `--large`, `--huge`, `--large-queues` and `--blobs`, writes this page; do not edit it. Ratios \
         within one run mean more than bare figures, because every system got the same requests on the same machine, in turn \
         within each round. In the closed loop every connection sends its next request when it has received its answer, \
         so latency includes waiting behind the other connections; the open loop shows latency at half load. The durable \
         server and the floors sync every commit to the disk. Azurite keeps its tables in memory and saves them later. Redis and \
         PostgreSQL sync every write too, and are measured with their own load generators. \
         \"Hello world\" is a bare HTTP server on the same stack.\n\n\
         ## Targets\n\n64 connections, unless stated otherwise. \"Of\" a system means the durable server's throughput \
         divided by that system's; \"CPU\" means processor time per request, as a ratio.\n\n",
    );
    text.push_str(&targets::table(results));
    if !charts.is_empty() {
        text.push_str("\n## At a glance\n");
        for (name, title) in charts {
            let _ = write!(text, "\n![{title}]({FOLDER}/{name}.svg)\n");
        }
    }
    if let Some(run) = &results.main {
        section(&mut text, "Systems compared", run);
    }
    if let Some(run) = &results.large {
        section(&mut text, "A large table", run);
    }
    if let Some(run) = &results.huge {
        section(&mut text, "A hundred million entities", run);
    }
    if let Some(run) = &results.large_queues {
        section(&mut text, "Large queues", run);
    }
    if let Some(run) = &results.blobs {
        section(&mut text, "Blobs", run);
    }
    if let Some(run) = &results.large_blobs {
        section(&mut text, "Ten million blobs", run);
    }
    if let Some(run) = &results.client {
        section(&mut text, "The Rust client", run);
        text.push_str(CLIENT);
    }
    text
}

const CLIENT: &str = "
The load generator sends requests that were signed in advance, from one thread, and barely looks at the answers. The client
signs each request and reads each answer into a struct of nine fields. Both have 64 requests under way at a time, in turn
within each round; the ratios are medians, among the targets above.
";

fn section(text: &mut String, title: &str, run: &Run) {
    let machine = &run.machine;
    let _ = write!(
        text,
        "\n## {title}\n\n```console\n$ {}\n```\n\nCommit {}, on {} ({} cores, {:.0} GiB of memory), {}, file system {}{}.\n\n",
        run.command,
        run.commit,
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        machine.file_system,
        machine.azurite.as_ref().map_or(String::new(), |version| format!(", Azurite {version}")),
    );
    text.push_str(report::tables(run).trim_end());
    text.push('\n');
}

fn charts(results: &Results) -> Vec<(&'static str, BarChart<'static>)> {
    let mut charts = Vec::new();
    if let Some(run) = &results.main {
        charts.push((
            "throughput",
            by_system(
                run,
                "Requests per second, with the most connections (logarithmic)",
                |sample| sample.requests_per_second,
                thousands,
            ),
        ));
        charts.push((
            "latency-p50",
            by_system(run, "Median latency in the closed loop (logarithmic)", |sample| sample.p50_us, time),
        ));
        charts.push((
            "latency-p99",
            by_system(
                run,
                "99th percentile of latency in the closed loop (logarithmic)",
                |sample| sample.p99_us,
                time,
            ),
        ));
    }
    if let Some(run) = &results.main {
        charts.push(("latency-half-load", at_half_load(run)));
        charts.push(("rivals", rivals::report::chart(run)));
    }
    if let Some(run) = &results.large {
        charts.push(("cpu-by-size", by_size(run)));
    }
    charts.retain(|(_, chart)| !chart.is_empty());
    charts
}

/// One group per workload, with the largest table and the most connections that it was measured with.
fn by_system(
    run: &Run,
    title: &'static str,
    figure: fn(&Sample) -> f64,
    show: fn(f64) -> String,
) -> BarChart<'static> {
    let mut groups = Vec::new();
    for kind in WorkloadKind::all() {
        let cells = run.cells.iter().filter(|cell| cell.workload == kind.name() && cell.partitions == 1);
        let Some(best) = cells.max_by_key(|cell| (cell.entities, cell.connections)) else { continue };
        let value = |system: SystemKind| run.beside(best, system).map(figure);
        groups.push((kind.what().replace('`', ""), SystemKind::ALL.map(value).to_vec()));
    }
    let series = SystemKind::ALL.map(|kind| kind.what().to_owned()).to_vec();
    BarChart { title, series, groups, is_logarithmic: true, show }
}

/// Latencies of the open loop, where they were measured.
fn at_half_load(run: &Run) -> BarChart<'static> {
    let mut groups = Vec::new();
    for first in
        run.cells.iter().filter(|cell| cell.system == SystemKind::Durable && cell.half_load.is_some())
    {
        for percent in [50, 99] {
            let figure = |sample: &Sample| if percent == 50 { sample.p50_us } else { sample.p99_us };
            let value = |kind: SystemKind| {
                let cell = run.cells.iter().find(|cell| cell.system == kind && cell.asks_the_same(first))?;
                cell.half_load.as_ref().map(figure)
            };
            groups.push((format!("{}, p{percent}", first.what()), SystemKind::ALL.map(value).to_vec()));
        }
    }
    BarChart {
        title: "Latency at half load, counted from when a request was due (logarithmic)",
        series: SystemKind::ALL.map(|kind| kind.what().to_owned()).to_vec(),
        groups,
        is_logarithmic: true,
        show: time,
    }
}

fn by_size(run: &Run) -> BarChart<'static> {
    let sized = [(WorkloadKind::Read, 64), (WorkloadKind::Page, 1), (WorkloadKind::Insert, 64)];
    let cells = |kind: WorkloadKind, connections: usize| {
        let wanted = move |cell: &&Cell| cell.workload == kind.name() && cell.connections == connections;
        let mut cells: Vec<&Cell> = run.cells.iter().filter(wanted).collect();
        cells.sort_by_key(|cell| cell.entities);
        cells.dedup_by_key(|cell| cell.entities);
        cells
    };
    let sizes = cells(WorkloadKind::Read, 64);
    let series = sizes.iter().map(|cell| format!("{} entities", cell.shape().label())).collect();
    // Relative to the smallest table: absolute times would show how requests differ, not how sizes do.
    let groups = sized.map(|(kind, connections)| {
        let cells = cells(kind, connections);
        let cpu = |entities: u64| {
            let cell = cells.iter().find(|cell| cell.entities == entities)?;
            cell.sample.as_ref()?.server_cpu_us
        };
        let smallest = sizes.first().and_then(|size| cpu(size.entities));
        let ratio = |size: &&Cell| Some(cpu(size.entities)? / smallest?);
        (kind.what().to_owned(), sizes.iter().map(ratio).collect())
    });
    BarChart {
        title: "Processor time per request by table size, relative to the smallest table",
        series,
        groups: groups.into(),
        is_logarithmic: false,
        show: |ratio| format!("{ratio:.2} ×"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_what_was_measured_and_no_more() {
        let results = report::tests::example();
        let charts = charts(&results);
        assert_eq!(
            charts.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["throughput", "latency-p50", "latency-p99"]
        );
        let text = document(&results, &[("throughput", "t")]);
        assert!(text.contains("![t](performance/throughput.svg)") && text.contains("Azurite 3."), "{text}");
        assert!(!text.contains("A large table"));
    }

    #[test]
    fn one_run_is_replaced_and_the_other_kept() {
        let directory = std::env::temp_dir().join(format!("lazulite-bench-test-{}", std::process::id()));
        let run = |plan: &str, command: &str| {
            let run = report::tests::example().main.unwrap();
            Run { plan: plan.to_owned(), command: command.to_owned(), ..run }
        };
        write(run("usual", "first"), false, &directory).unwrap();
        write(run("large", "second"), false, &directory).unwrap();
        write(run("huge", "fifth"), false, &directory).unwrap();
        write(run("full", "third"), false, &directory).unwrap();
        let results = write(run("usual", "fourth"), true, &directory).unwrap();
        let text = std::fs::read_to_string(directory.join("performance.md")).unwrap();
        let _ = std::fs::remove_dir_all(&directory);
        let main = results.main.unwrap();
        assert_eq!(main.command, "third", "a partial run replaces cells only");
        assert_eq!(main.cells.len(), run("usual", "").cells.len());
        assert!(text.contains("Measured by itself later"));
        assert_eq!(results.large.unwrap().command, "second");
        assert_eq!(results.huge.unwrap().command, "fifth");
        assert!(text.contains("## A hundred million entities"));
        assert!(text.contains("$ third") && text.contains("$ second") && !text.contains("$ first"));
    }
}
