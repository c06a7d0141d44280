//! Long scans of a greedy account for the trial `overload`, beside which a modest account makes one long scan after the
//! other.
//!
//! Owns: this phase and its promise. Long scans share half of the processors, so the modest account's scan must become
//! slower beside others. It must not become slower by as much as there are others.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadgen::histogram::Histogram;
use testkit::{Batch, Credentials, RawClient, Request, Stopwatch, batch_parts, entity_json, system_now};

use crate::Error;
use crate::mix::{self, READ_ROW_COUNT, READ_TABLE};
use crate::neighbours::{MODEST_ACCOUNT, MODEST_KEY};
use crate::overload::{Bench, memory_within_bound, quiet_down};
use crate::promises::{Promises, latencies};

const GREEDY_SCAN_COUNT: usize = 100;
const MODEST_TABLE: &str = "scanned";
const BATCH_OPERATION_COUNT: u64 = 100;
/// With turns by account the factor is about two, and more where the generator takes processors from the server. With
/// turns by scan it would be about as many as there are scans.
const FACTOR_MAX: f64 = 20.0;
/// Below this a scan may take whatever the machine makes of it.
const P50_FLOOR_US: f64 = 50e3;

/// Long scans of one account beside those of another.
pub fn run(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    println!(
        "\n  scans: {GREEDY_SCAN_COUNT} connections of one account scan {READ_ROW_COUNT} rows for nothing"
    );
    fill_modest_table(bench.address)?;
    quiet_down(bench)?;
    let quiet = modest_scans(bench.address, bench.seconds / 2)?;
    let watch = bench.gauge.watch();
    let over = &AtomicBool::new(false);
    let request = &mix::scan_for_nothing(READ_TABLE)?;
    let (beside, greedy) = std::thread::scope(|scope| {
        let greedy: Vec<_> = (0..GREEDY_SCAN_COUNT)
            .map(|_| scope.spawn(move || scan_until(bench.address, request, over)))
            .collect();
        std::thread::sleep(Duration::from_secs(1));
        let beside = modest_scans(bench.address, bench.seconds);
        over.store(true, Ordering::Relaxed);
        let mut took = Histogram::new();
        for greedy in greedy {
            took.add(&greedy.join().expect("a greedy scan does not panic")?);
        }
        Ok::<_, Error>((beside?, took))
    })?;
    println!("      the greedy account's scans: {} of them, {}", greedy.total(), latencies(&greedy));
    println!("      the modest account's scans alone: {}", latencies(&quiet));
    println!("      beside the greedy account: {} of them, {}", beside.total(), latencies(&beside));
    let (before_us, now_us) = (quiet.percentile_us(0.5), beside.percentile_us(0.5));
    promises.check(
        beside.total() > 0 && now_us <= (before_us * FACTOR_MAX).max(P50_FLOOR_US),
        &format!(
            "a modest account's long scan does not wait for all scans of another: at the median {:.1} ms, {:.1} times \
             the quiet one",
            now_us / 1e3,
            now_us / before_us.max(1.0)
        ),
    );
    memory_within_bound(watch.peak_bytes(), GREEDY_SCAN_COUNT + 1, promises);
    quiet_down(bench)
}

fn modest() -> Credentials {
    Credentials::new(MODEST_ACCOUNT, MODEST_KEY)
}

/// The modest account's table has as many rows as the one that is scanned beside it.
fn fill_modest_table(address: SocketAddr) -> Result<(), Error> {
    let mut client = RawClient::connect(address)?;
    let create = Request::post("/Tables").json(&format!("{{\"TableName\":\"{MODEST_TABLE}\"}}"));
    client.exchange(&create.to_bytes(address, &modest(), system_now()))?;
    for first in (0..READ_ROW_COUNT).step_by(BATCH_OPERATION_COUNT as usize) {
        let insert = |batch: Batch, number: u64| {
            let json = entity_json("p", &format!("{number:09}"), "\"Age\":36,\"Note\":\"a modest entity\"");
            batch.insert(MODEST_TABLE, &json)
        };
        let batch = (first..first + BATCH_OPERATION_COUNT).fold(Batch::of_account(MODEST_ACCOUNT), insert);
        let response = client.exchange(&batch.request().to_bytes(address, &modest(), system_now()))?;
        if response.status != 202 || batch_parts(&response).iter().any(|part| part.status != 204) {
            return Err(format!("the modest account's rows: {response:?}").into());
        }
    }
    Ok(())
}

/// One long scan after the other, to its end.
fn modest_scans(address: SocketAddr, duration: Duration) -> Result<Histogram, Error> {
    let mut client = RawClient::connect(address)?;
    let request = Request::get(&format!("/{MODEST_TABLE}()")).query("$filter", "Note eq 'nothing'");
    let mut took = Histogram::new();
    let all = Stopwatch::start();
    while all.elapsed() < duration {
        let bytes = request.to_bytes(address, &modest(), system_now());
        let watch = Stopwatch::start();
        let response = client.exchange(&bytes)?;
        if response.status != 200 {
            return Err(format!("a scan of the modest account: {response:?}").into());
        }
        took.record(watch.elapsed());
    }
    Ok(took)
}

fn scan_until(address: SocketAddr, request: &[u8], over: &AtomicBool) -> Result<Histogram, Error> {
    let mut client = RawClient::connect(address)?;
    let mut took = Histogram::new();
    while !over.load(Ordering::Relaxed) {
        let watch = Stopwatch::start();
        match client.exchange(request) {
            Ok(response) if response.status == 200 => took.record(watch.elapsed()),
            // Refused: it is greedy, and asks again at once.
            Ok(_) => {}
            Err(_) => client = RawClient::connect(address)?,
        }
    }
    Ok(took)
}
