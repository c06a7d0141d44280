//! The report of a run: its tables as Markdown.

use std::fmt::Write;

use loadgen::measure::Sample;

use crate::blobs;
use crate::large;
use crate::results::{Cell, Run, fact};
use crate::rivals;
use crate::system::SystemKind;

const MIB: f64 = 1024.0 * 1024.0;

/// Everything that the run measured.
pub fn tables(run: &Run) -> String {
    match run.plan.as_str() {
        "large-queues" => return takes(run),
        // Its two figures are targets.
        "client" => return String::new(),
        "blobs" | "large-blobs" => return blobs::report::tables(run),
        _ => {}
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Medians of {} rounds of {} s, systems in turn, on {} cores that the servers share with the generator (one thread). \
         Load average before the run: {}. \"Of hello\" is the throughput divided by that of a bare HTTP server that gets \
         the same requests; \"of Azurite\" is the throughput divided by Azurite's.\n",
        run.rounds,
        run.seconds,
        run.machine.cores,
        run.load_average_before.map_or("unknown".to_owned(), |load| format!("{load:.2}")),
    );
    if !run.cells.is_empty() {
        text.push_str(&cells(run));
    }
    text.push_str(&rivals::report::table(run));
    if run.cells.iter().any(|cell| cell.half_load.is_some()) {
        text.push_str(
            "\nOpen loop, at half of the throughput above, with latency counted from when a request was due:\n\n\
             | workload | entities | connections | system | requests/s | p50 | p99 | longest |\n\
             | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |\n",
        );
    }
    for cell in &run.cells {
        let Some(sample) = &cell.half_load else { continue };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            cell.what(),
            cell.shape().label(),
            cell.connections,
            cell.system.what(),
            thousands(sample.requests_per_second),
            time(sample.p50_us),
            time(sample.p99_us),
            time(sample.longest_us)
        );
    }
    if !run.floors.is_empty() {
        text.push_str("\n| floor: one committing thread | syncs/s | rows/s |\n| --- | ---: | ---: |\n");
        for floor in &run.floors {
            let (syncs, rows) = (thousands(floor.syncs_per_second), thousands(floor.entities_per_second));
            let _ = writeln!(text, "| {} | {syncs} | {rows} |", floor.what);
        }
    }
    if !run.processes.is_empty() {
        text.push_str(
            "\n| process | start to first answer | memory idle | at the end | peak |\n| --- | ---: | ---: | ---: | ---: |\n",
        );
        for process in &run.processes {
            let size =
                |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), |bytes| mebibytes(bytes as f64));
            let _ = writeln!(
                text,
                "| {} | {:.0} ms | {} | {} | {} |",
                process.system.what(),
                process.first_answer_ms,
                size(process.idle_bytes),
                size(process.end_bytes),
                size(process.peak_bytes)
            );
        }
    }
    text.push_str(&facts(run));
    text.push_str(&large::report::table(run));
    for cell in &run.cells {
        if let Some(unanswered) = cell.sample.map(|sample| sample.unanswered).filter(|count| *count > 0) {
            let (system, what) = (cell.system.what(), cell.what());
            let _ = writeln!(
                text,
                "\n{system} closed connections instead of answering {unanswered} requests ({what}, {} connections).",
                cell.connections
            );
        }
    }
    for note in &run.notes {
        let _ = writeln!(text, "\n{note}");
    }
    text.push('\n');
    text
}

/// What a take costs in queues of four kinds.
fn takes(run: &Run) -> String {
    let mut text = String::from(
        "The server's processor time to take a message and delete it, with 64 connections, a thousand messages at a time, \
         the queues in turn. What was taken is put again.\n\n| queue | CPU per take and deletion |\n| --- | ---: |\n",
    );
    for (queue, name) in [
        ("a thousand messages wait", fact::TAKE_FEW_CPU_US),
        ("ten million messages wait", fact::TAKE_MANY_CPU_US),
        ("a million invisible messages at the front", fact::TAKE_INVISIBLE_CPU_US),
        ("a million expired messages at the front", fact::TAKE_EXPIRED_CPU_US),
    ] {
        if let Some(cpu_us) = run.fact(name) {
            let _ = writeln!(text, "| {queue} | {} |", time(cpu_us));
        }
    }
    text.push('\n');
    text
}

fn cells(run: &Run) -> String {
    let mut text = String::from(
        "| workload | entities | connections | system | requests/s | entities/s | p50 | p99 | CPU per request | of hello | of Azurite | generator busy |\n\
         | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for cell in &run.cells {
        let place = format!(
            "| {} | {} | {} | {}",
            cell.what(),
            cell.shape().label(),
            cell.connections,
            cell.system.what()
        );
        let Some(sample) = &cell.sample else {
            let why = cell.not_measured.as_deref().unwrap_or("no reason known").replace('|', "/");
            let _ = writeln!(text, "{place} | not measured: {why} | | | | | | | |");
            continue;
        };
        let entities = match cell.system {
            SystemKind::Hello => "–".to_owned(),
            _ => thousands(sample.entities_per_second),
        };
        let _ = writeln!(
            text,
            "{place} | {} | {entities} | {} | {} | {} | {} | {} | {} |",
            thousands(sample.requests_per_second),
            time(sample.p50_us),
            time(sample.p99_us),
            or_dash(sample.server_cpu_us.map(time)),
            or_dash(
                share(run, cell, sample, SystemKind::Hello).map(|share| format!("{:.0} %", share * 100.0))
            ),
            or_dash(share(run, cell, sample, SystemKind::Azurite).map(|share| format!("{share:.1} ×"))),
            or_dash(sample.generator_busy.map(|busy| format!("{:.0} %", busy * 100.0))),
        );
    }
    text
}

/// Throughput relative to another system's with the same workload. `None` for a system compared with itself.
fn share(run: &Run, cell: &Cell, sample: &Sample, other: SystemKind) -> Option<f64> {
    if cell.system == other || cell.system == SystemKind::Hello {
        return None;
    }
    let other = run.beside(cell, other)?;
    Some(sample.throughput_of(other, &cell.workload))
}

fn facts(run: &Run) -> String {
    let mut text = String::new();
    let fact = |name: &str| run.fact(name);
    if let (Some(quiet), Some(disturbed)) = (fact(fact::QUIET_P99_US), fact(fact::DISTURBED_P99_US)) {
        let inserts = fact(fact::DISTURBING_INSERTS_PER_SECOND).map_or("?".to_owned(), thousands);
        let scanned = fact(fact::DISTURBING_SCANNED_PER_SECOND).map_or("?".to_owned(), thousands);
        let _ = writeln!(
            text,
            "\nPoint reads at a fixed rate: p99 {} alone, {} beside a table scan ({scanned} entities/s) and inserts ({inserts}/s).",
            time(quiet),
            time(disturbed)
        );
    }
    if let Some(rate) = fact(fact::LOAD_ENTITIES_PER_SECOND) {
        let disk = fact(fact::DISK_BYTES).map_or("unknown".to_owned(), mebibytes);
        let _ =
            writeln!(text, "\nLoaded through transactions: {} entities/s; on disk {disk}.", thousands(rate));
    }
    if let (Some(rate), Some(longest), Some(gap)) =
        (fact(fact::SUSTAINED_PER_SECOND), fact(fact::SUSTAINED_LONGEST_US), fact(fact::SUSTAINED_GAP_US))
    {
        let _ = writeln!(
            text,
            "\nA minute of random inserts: {}/s; the slowest took {}; the longest time without any answer was {}.",
            thousands(rate),
            time(longest),
            time(gap)
        );
    }
    if let (Some(rate), Some(p99), Some(p999), Some(longest)) = (
        fact(fact::HALF_LOAD_PER_SECOND),
        fact(fact::HALF_LOAD_P99_US),
        fact(fact::HALF_LOAD_P999_US),
        fact(fact::HALF_LOAD_LONGEST_US),
    ) {
        let _ = writeln!(
            text,
            "\nA minute of random inserts at half of that rate, in the open loop: {}/s; 99 % within {}, 99.9 % within {}, \
             the slowest {}.",
            thousands(rate),
            time(p99),
            time(p999),
            time(longest)
        );
    }
    if let (Some(idle), Some(peak)) = (fact(fact::LOADED_IDLE_BYTES), fact(fact::LOADED_PEAK_BYTES)) {
        let _ = writeln!(
            text,
            "\nMemory with all this data: {} after the start, {} at the peak.",
            mebibytes(idle),
            mebibytes(peak)
        );
    }
    if let Some(ms) = fact(fact::RESTART_MS) {
        let _ = writeln!(
            text,
            "\nThe durable server, restarted with all this data, gave its first answer after {ms:.0} ms."
        );
    }
    text
}

pub fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 100.0 => format!("{us:.1} µs"),
        us if us < 1000.0 => format!("{us:.0} µs"),
        us if us < 10_000.0 => format!("{:.2} ms", us / 1000.0),
        us => format!("{:.1} ms", us / 1000.0),
    }
}

/// `12,345`; small numbers get a digit after the point.
pub fn thousands(number: f64) -> String {
    if number < 100.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / MIB)
}

pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::plan::{MANY_CONNECTIONS, USUAL};
    use crate::results::Results;

    pub fn sample(requests_per_second: f64) -> Sample {
        Sample {
            requests_per_second,
            entities_per_second: requests_per_second,
            examined_per_second: requests_per_second,
            p50_us: 50.0,
            p99_us: 1500.0,
            p999_us: 3000.0,
            longest_us: 20_000.0,
            gap_longest_us: 10_000.0,
            server_cpu_us: Some(12.34),
            generator_busy: None,
            not_sent: 0,
            unanswered: 0,
        }
    }

    /// Point reads on three systems, one of which failed at scans.
    pub fn example() -> Results {
        let cell = |workload: &str, connections, system, outcome: Result<f64, &str>| Cell {
            workload: workload.to_owned(),
            entities: USUAL.entities,
            partitions: USUAL.partitions,
            connections,
            system,
            sample: outcome.ok().map(sample),
            half_load: None,
            not_measured: outcome.err().map(str::to_owned),
        };
        let machine = Machine {
            processor: "x".to_owned(),
            cores: 2,
            memory_gib: 4.0,
            kernel: "Linux".to_owned(),
            file_system: "ext4".to_owned(),
            azurite: Some("3".to_owned()),
        };
        let facts = [(fact::QUIET_P99_US, 100.0), (fact::DISTURBED_P99_US, 400.0)];
        let run = Run {
            plan: "usual".to_owned(),
            command: "cargo xtask bench".to_owned(),
            commit: "abc".to_owned(),
            machine,
            rounds: 5,
            seconds: 2.0,
            load_average_before: None,
            cells: vec![
                cell("read", MANY_CONNECTIONS, SystemKind::Durable, Ok(50_000.0)),
                cell("read", MANY_CONNECTIONS, SystemKind::Azurite, Ok(2_000.0)),
                cell("read", MANY_CONNECTIONS, SystemKind::Hello, Ok(100_000.0)),
                cell("scan", 1, SystemKind::Azurite, Err("too | slow")),
            ],
            floors: Vec::new(),
            transfers: Vec::new(),
            rivals: Vec::new(),
            load_steps: Vec::new(),
            processes: Vec::new(),
            facts: facts.map(|(name, figure)| (name.to_owned(), figure)).into(),
            notes: vec!["Something is missing.".to_owned()],
        };
        Results { main: Some(run), ..Results::default() }
    }

    #[test]
    fn a_row_has_its_ratios_and_what_failed_says_why() {
        let text = tables(example().main.as_ref().unwrap());
        let row = "| point read | 100k | 64 | Lazulite, durable | 50,000 | 50,000 | 50.0 µs | 1.50 ms | 12.3 µs | 50 % | 25.0 × | – |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("not measured: too / slow"), "{text}");
        assert!(text.contains("Something is missing."));
        let columns: Vec<usize> = text
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.matches('|').count())
            .collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
    }

    #[test]
    fn results_survive_their_file() {
        let run = example().main.unwrap();
        let text = serde_json::to_string(&run).unwrap();
        let again: Run = serde_json::from_str(&text).unwrap();
        assert_eq!(tables(&again), tables(&run));
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [thousands(12.34), thousands(999.6), thousands(1234567.0)],
            ["12.3", "1,000", "1,234,567"]
        );
        assert_eq!([time(5.0), time(123.4), time(12_345.0)], ["5.0 µs", "123 µs", "12.3 ms"]);
    }
}
