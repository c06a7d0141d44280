//! `lazulite bench`: measures how fast any endpoint answers, Lazulite or not.
//!
//! Promises: it works in one new table, or one new queue, with a random name and deletes it at the end, even when it
//! fails or is interrupted. It touches nothing else in the account. The crate `loadgen` sends the requests and measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadgen::endpoint::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, Endpoint, MeasuredService};
use loadgen::measure::{Measurement, Sample, probe};
use loadgen::table::Filled;
use loadgen::workload::{Counter, TableShape, Workload, WorkloadKind};
use loadgen::{queue, table};

use crate::progress::Progress;
use crate::{random, signals};

const CONNECTIONS_DEFAULT: usize = 16;
const CONNECTIONS_MAX: usize = 1024;
const SECONDS_DEFAULT: f64 = 5.0;
const ENTITIES_DEFAULT: u64 = 10_000;
/// Row keys number the entities with eight digits.
const ENTITIES_MAX: u64 = 50_000_000;
const FILL_TIME_MAX: Duration = Duration::from_secs(3600);
const WORKLOADS_DEFAULT: [WorkloadKind; 6] = [
    WorkloadKind::Read,
    WorkloadKind::Page,
    WorkloadKind::Upsert,
    WorkloadKind::HotMerge,
    WorkloadKind::Insert,
    WorkloadKind::Batch,
];

/// The options of `bench`, not yet checked.
#[derive(Default, PartialEq, Debug)]
pub struct BenchRequest {
    pub connection_string: Option<String>,
    pub url: Option<String>,
    pub account: Option<String>,
    pub key: Option<String>,
    pub workloads: Vec<String>,
    pub connections: Option<usize>,
    pub seconds: Option<f64>,
    pub rate: Option<f64>,
    pub entities: Option<u64>,
}

/// The request, checked and with defaults filled in.
struct BenchPlan {
    parts: Vec<ServicePlan>,
    shape: TableShape,
    seconds: Duration,
    rate: Option<f64>,
}

/// What is measured on one service.
struct ServicePlan {
    service: MeasuredService,
    endpoint: Endpoint,
    workloads: Vec<Workload>,
}

pub fn run(request: &BenchRequest) -> Result<(), String> {
    let plan = plan(request)?;
    let stop = stop_on_signal()?;
    let name = unique_name()?;
    for part in &plan.parts {
        part.create(&name)?;
        let measured = measure_all(&plan, part, &name, &stop);
        // Delete it even when the measurement failed.
        match (measured, part.delete(&name)) {
            (Err(failure), Err(left_behind)) => return Err(format!("{failure}; {left_behind}")),
            (measured, deleted) => measured.and(deleted)?,
        }
    }
    Ok(())
}

fn plan(request: &BenchRequest) -> Result<BenchPlan, String> {
    let connections = request.connections.unwrap_or(CONNECTIONS_DEFAULT);
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        return Err(format!("--connections must lie between 1 and {CONNECTIONS_MAX}"));
    }
    let seconds = request.seconds.unwrap_or(SECONDS_DEFAULT);
    if !(0.1..=3600.0).contains(&seconds) {
        return Err("--seconds must lie between 0.1 and 3600".into());
    }
    if request.rate.is_some_and(|rate| !(0.1..=1e6).contains(&rate)) {
        return Err("--rate must lie between 0.1 and a million".into());
    }
    let entities = request.entities.unwrap_or(ENTITIES_DEFAULT);
    if !(1000..=ENTITIES_MAX).contains(&entities) {
        return Err(format!("--entities must lie between 1000 and {ENTITIES_MAX}"));
    }
    let mut kinds = Vec::new();
    for name in &request.workloads {
        let unknown = || format!("there is no workload '{name}', only {}", WorkloadKind::names());
        kinds.push(WorkloadKind::from_name(name).ok_or_else(unknown)?);
    }
    if kinds.is_empty() {
        kinds.extend(WORKLOADS_DEFAULT);
    }
    if request.url.is_some() && kinds.iter().any(|kind| kind.service() != kinds[0].service()) {
        return Err("--url names one service, but some workloads are for tables and some for queues: \
             give --connection-string instead"
            .into());
    }
    // The workloads of a service share one table or queue, so those that count what it holds must run before those that
    // add to it.
    kinds.sort_by_key(|kind| kind.adds_entities());
    let shape = TableShape::one_partition(entities.next_multiple_of(100));
    let mut parts = Vec::new();
    for service in [MeasuredService::Table, MeasuredService::Queue] {
        let kinds = kinds.iter().filter(|kind| kind.service() == service);
        let workloads: Vec<Workload> =
            kinds.map(|kind| Workload { kind: *kind, shape, connections }).collect();
        for workload in &workloads {
            workload.check().map_err(|error| error.to_string())?;
        }
        if !workloads.is_empty() {
            parts.push(ServicePlan { service, endpoint: endpoint(request, service)?, workloads });
        }
    }
    Ok(BenchPlan { parts, shape, seconds: Duration::from_secs_f64(seconds), rate: request.rate })
}

fn endpoint(request: &BenchRequest, service: MeasuredService) -> Result<Endpoint, String> {
    match &request.connection_string {
        Some(text) => {
            if request.url.is_some() || request.account.is_some() || request.key.is_some() {
                return Err(
                    "--connection-string already holds these: leave --url, --account and --key out".into()
                );
            }
            Endpoint::from_connection_string(text, service)
        }
        None => {
            if request.account.is_some() != request.key.is_some() {
                return Err("--account and --key go together".into());
            }
            let account = request.account.as_deref().unwrap_or(DEVELOPMENT_ACCOUNT);
            let key = request.key.as_deref().unwrap_or(DEVELOPMENT_KEY);
            Endpoint::from_url(request.url.as_deref().unwrap_or(service.development_url()), account, key)
        }
    }
}

impl ServicePlan {
    fn create(&self, name: &str) -> Result<(), String> {
        match self.service {
            MeasuredService::Table => {
                table::create(&self.endpoint, name).map_err(|error| format!("cannot create a table: {error}"))
            }
            MeasuredService::Queue => {
                queue::create(&self.endpoint, name).map_err(|error| format!("cannot create a queue: {error}"))
            }
        }
    }

    fn delete(&self, name: &str) -> Result<(), String> {
        match self.service {
            MeasuredService::Table => table::delete(&self.endpoint, name)
                .map_err(|error| format!("the table {name} could not be deleted: {error}")),
            MeasuredService::Queue => queue::delete(&self.endpoint, name)
                .map_err(|error| format!("the queue {name} could not be deleted: {error}")),
        }
    }

    fn fill(&self, name: &str, shape: TableShape, stop: &Arc<AtomicBool>) -> Result<Filled, String> {
        let mut progress = Progress::start();
        let show = |filled: &Filled| progress.show(filled.entities, shape.entities);
        let (endpoint, stop) = (&self.endpoint, Some(stop));
        let filled = match self.service {
            MeasuredService::Table => table::fill(endpoint, name, shape, FILL_TIME_MAX, stop, show),
            MeasuredService::Queue => queue::fill(endpoint, name, shape.entities, FILL_TIME_MAX, stop, show),
        };
        progress.clear();
        filled.map_err(|error| error.to_string())
    }
}

fn measure_all(
    plan: &BenchPlan,
    part: &ServicePlan,
    name: &str,
    stop: &Arc<AtomicBool>,
) -> Result<(), String> {
    let filled = part.fill(name, plan.shape, stop)?;
    let (what, how) = match part.service {
        MeasuredService::Table => ("entities", "in transactions of 100"),
        MeasuredService::Queue => ("messages", "one by one on 64 connections"),
    };
    println!("{} {what} loaded {how}, {:.0}/s", plan.shape.entities, filled.entities_per_second());
    println!(
        "{:30} {:>11} {:>11} {:>11} {:>10} {:>10} {:>10}",
        "workload",
        "connections",
        "requests/s",
        format!("{what}/s"),
        "p50",
        "p99",
        "longest"
    );
    let counter = Counter::new(1.into());
    for workload in &part.workloads {
        let named = |error: loadgen::Error| format!("{}: {error}", workload.kind.name());
        let pass = probe(workload, &part.endpoint, name, &counter).map_err(named)?;
        let sample = Measurement {
            workload,
            endpoint: &part.endpoint,
            table: name,
            counter: &counter,
            rate: plan.rate,
            warm_up: plan.seconds / 5,
            seconds: plan.seconds,
            process: None,
            accepts_all: false,
            tolerates_closing: true,
            pass,
            stop: Some(stop),
        }
        .run();
        if stop.load(Ordering::Relaxed) {
            return Err("interrupted before the end".into());
        }
        println!("{}", row(workload, &sample.map_err(named)?));
    }
    Ok(())
}

fn row(workload: &Workload, sample: &Sample) -> String {
    let mut text = format!(
        "{:30} {:>11} {:>11.0} {:>11.0} {:>10} {:>10} {:>10}",
        workload.kind.what(),
        workload.connections,
        sample.requests_per_second,
        sample.entities_per_second,
        time(sample.p50_us),
        time(sample.p99_us),
        time(sample.longest_us)
    );
    if sample.not_sent > 0 {
        text.push_str(&format!("  {} requests were due and never sent", sample.not_sent));
    }
    if sample.unanswered > 0 {
        text.push_str(&format!("  {} requests got no answer", sample.unanswered));
    }
    text
}

fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1000.0 => format!("{us:.0} us"),
        us => format!("{:.1} ms", us / 1000.0),
    }
}

/// A flag that is set when a signal asks the process to stop.
fn stop_on_signal() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot wait for signals: {error}"))?;
    let requested = {
        let _entered = runtime.enter();
        signals::stop_requested()?
    };
    let flag = stop.clone();
    std::thread::spawn(move || {
        runtime.block_on(requested);
        flag.store(true, Ordering::Relaxed);
    });
    Ok(stop)
}

/// A name that tables and queues may have.
fn unique_name() -> Result<String, String> {
    Ok(format!("lazulitebench{:016x}", u64::from_le_bytes(random::bytes()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_add_entities_come_last() {
        let workloads = ["insert", "scan", "mix", "read"].map(str::to_owned).to_vec();
        let plan = plan(&BenchRequest { workloads, ..BenchRequest::default() }).map_err(drop).unwrap();
        let kinds: Vec<&str> = plan.parts[0].workloads.iter().map(|workload| workload.kind.name()).collect();
        assert_eq!(kinds, ["scan", "read", "insert", "mix"]);
        assert_eq!(plan.parts[0].endpoint.address.to_string(), "127.0.0.1:10002");
    }

    #[test]
    fn each_service_has_its_own_endpoint() {
        let workloads = ["put-message", "read", "take"].map(str::to_owned).to_vec();
        let request = BenchRequest { workloads, ..BenchRequest::default() };
        let plan = plan(&request).map_err(drop).unwrap();
        let addresses: Vec<String> =
            plan.parts.iter().map(|part| part.endpoint.address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1:10002", "127.0.0.1:10001"]);
        let kinds: Vec<&str> = plan.parts[1].workloads.iter().map(|workload| workload.kind.name()).collect();
        assert_eq!(kinds, ["take", "put-message"]);
    }

    #[test]
    fn mistakes_get_one_sentence() {
        let some = |text: &str| Some(text.to_owned());
        let check = |request: BenchRequest, part: &str| {
            let Err(sentence) = plan(&request) else { panic!("{request:?} was taken") };
            assert!(sentence.contains(part) && sentence.lines().count() == 1, "{sentence}");
        };
        let none = BenchRequest::default;
        check(BenchRequest { connections: Some(0), ..none() }, "--connections");
        check(BenchRequest { seconds: Some(f64::NAN), ..none() }, "--seconds");
        check(BenchRequest { rate: Some(0.0), ..none() }, "--rate");
        check(BenchRequest { entities: Some(10), ..none() }, "--entities");
        check(BenchRequest { workloads: vec!["reed".to_owned()], ..none() }, "there is no workload 'reed'");
        let both = vec!["read".to_owned(), "peek".to_owned()];
        check(
            BenchRequest { workloads: both, url: some("http://127.0.0.1:1/a"), ..none() },
            "--url names one service",
        );
        check(BenchRequest { account: some("acme"), ..none() }, "--account and --key");
        check(BenchRequest { url: some("https://127.0.0.1:1/a"), ..none() }, "https");
        check(
            BenchRequest {
                connection_string: some("UseDevelopmentStorage=true"),
                url: some("http://x"),
                ..none()
            },
            "--connection-string",
        );
        check(
            BenchRequest { workloads: vec!["merge".to_owned()], connections: Some(65), ..none() },
            "merge takes at most",
        );
    }
}
