//! The report, as Markdown.

use std::fmt;
use std::time::Duration;

use bench::system::{Kind, System};

use crate::measure::Sample;

pub struct Report {
    pub rounds: usize,
    pub seconds: Duration,
    /// Before the run.
    pub load_average: Option<String>,
    pub rows: Vec<Row>,
    pub memory: Vec<Memory>,
    /// The durable server with everything in it: from start to first answer.
    pub restart: Duration,
}

pub struct Row {
    pub workload: &'static str,
    pub entities_per_request: u64,
    pub system: Kind,
    pub connections: usize,
    pub sample: Sample,
}

pub struct Memory {
    system: Kind,
    first_answer: Duration,
    idle_bytes: Option<u64>,
    now_bytes: Option<u64>,
    peak_bytes: Option<u64>,
}

impl Memory {
    /// Taken after all workloads, while the process still runs.
    pub fn of(system: &System) -> Memory {
        Memory {
            system: system.kind,
            first_answer: system.first_answer,
            idle_bytes: system.idle_bytes,
            now_bytes: system.memory_bytes("VmRSS:"),
            peak_bytes: system.memory_bytes("VmHWM:"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        writeln!(
            f,
            "Medians of {} rounds of {:.1} s on {cores} cores, which the generator (one thread) shares. \"Of hello\" is \
             the throughput as a share of a bare HTTP server's, given the same requests in the same rounds. Load average before the run: {}.\n",
            self.rounds,
            self.seconds.as_secs_f64(),
            self.load_average.as_deref().unwrap_or("n/a"),
        )?;
        writeln!(
            f,
            "| workload | system | connections | requests/s | entities/s | p50 | p99 | server CPU per request | of hello | generator busy |"
        )?;
        writeln!(f, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
        for row in &self.rows {
            let Sample { requests_per_second, p50_us, p99_us, server_cpu_us, generator_busy } = row.sample;
            let hello =
                self.rows.iter().find(|other| other.workload == row.workload && other.system == Kind::Hello);
            let entities = match row.system {
                Kind::Hello => "–".to_owned(),
                _ => format!("{:.0}", requests_per_second * row.entities_per_request as f64),
            };
            let share = hello.map(|hello| requests_per_second / hello.sample.requests_per_second * 100.0);
            writeln!(
                f,
                "| {} | {} | {} | {requests_per_second:.0} | {} | {} | {} | {} | {} | {} |",
                row.workload,
                row.system.name(),
                row.connections,
                entities,
                time(p50_us),
                time(p99_us),
                or_unknown(server_cpu_us.map(|us| format!("{us:.1} µs"))),
                or_unknown(share.map(|percent| format!("{percent:.0} %"))),
                or_unknown(generator_busy.map(|share| format!("{:.0} %", share * 100.0))),
            )?;
        }
        writeln!(f, "\n| system | start to first answer | memory idle | memory at the end | memory peak |")?;
        writeln!(f, "| --- | ---: | ---: | ---: | ---: |")?;
        for memory in &self.memory {
            writeln!(
                f,
                "| {} | {:.0} ms | {} | {} | {} |",
                memory.system.name(),
                memory.first_answer.as_secs_f64() * 1000.0,
                size(memory.idle_bytes),
                size(memory.now_bytes),
                size(memory.peak_bytes),
            )?;
        }
        writeln!(
            f,
            "\nThe durable server, restarted with all this data, gave its first answer after {:.0} ms.",
            self.restart.as_secs_f64() * 1000.0
        )
    }
}

fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1000.0 => format!("{us:.0} µs"),
        us if us < 10_000.0 => format!("{:.2} ms", us / 1000.0),
        us => format!("{:.1} ms", us / 1000.0),
    }
}

fn size(bytes: Option<u64>) -> String {
    or_unknown(bytes.map(|bytes| format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))))
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "n/a".to_owned())
}
