//! The heavy clients of the trial `overload`: one that takes all it can get beside a light one, and thousands that
//! request large pages and never read them.
//!
//! Owns: these two phases and their promises. Leaves to others: the light client and the hoarding connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::Stopwatch;

use crate::Error;
use crate::gauge::{self, Gauge};
use crate::hoarders::{self, Appetite, Hoard};
use crate::light_client::{self, Experience};
use crate::mix::{self, LargeBatches, Same};
use crate::overload::{Bench, memory_within_bound, quiet_down};
use crate::promises::{Promises, latencies};
use loadgen::generator::{Generator, LoadModel, Requests, Tally};

const SCAN_CONNECTION_COUNT: usize = 250;
const BATCH_CONNECTION_COUNT: usize = 250;
const HOARDER_COUNT_SLOW: usize = 125;
const HOARDER_COUNT_IDLE: usize = 125;
/// The number of clients in the phase in which no client reads.
const HOARDER_COUNT: usize = 2_000;
/// The table that the heavy client scans without finding anything.
const SCAN_TABLE: &str = "scanned";
const SCAN_ROW_COUNT: u64 = 100_000;
const LIGHT_SUCCESS_SHARE_MIN: f64 = 0.99;
/// The light client's p99 may grow by this factor, or up to a second if that is more, because the heavy client's
/// generator shares the processors.
const LIGHT_FACTOR_MAX: f64 = 50.0;
const LIGHT_P99_FLOOR_US: f64 = 1e6;
/// But never beyond this: on a busy machine even the quiet p99 is long, and a multiple of it would allow anything.
const LIGHT_P99_MAX_US: f64 = 5e6;

pub fn against_light(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    println!("\n  heavy against light: 4 light connections, 20 requests per second each");
    mix::create_table(bench.address, SCAN_TABLE)?;
    mix::fill(bench.address, SCAN_TABLE, SCAN_ROW_COUNT)?;
    fill_large(bench)?;
    quiet_down(bench)?;
    let quiet = light_client::run_for(bench.address, "quiet", bench.seconds / 2);
    print_light("alone", &quiet);

    let scans = mix::scan_for_nothing(SCAN_TABLE)?;
    let page = mix::large_page()?;
    let kinds = [
        (format!("{SCAN_CONNECTION_COUNT} connections that scan and find nothing"), Heavy::Scans(&scans)),
        (format!("{BATCH_CONNECTION_COUNT} connections with batches of 100 large entities"), Heavy::Batches),
        (
            format!(
                "{HOARDER_COUNT_SLOW} that take 4 MiB pages slowly, {HOARDER_COUNT_IDLE} that never read"
            ),
            Heavy::Hoarders(&page),
        ),
    ];
    for (words, kind) in &kinds {
        println!("    beside {words}:");
        let experience = beside(bench, std::slice::from_ref(kind), promises)?;
        judge(&quiet, &experience, words, promises);
        quiet_down(bench)?;
    }
    println!("    beside all of them at once:");
    let all = kinds.map(|(_, kind)| kind);
    let experience = beside(bench, &all, promises)?;
    judge(&quiet, &experience, "all of them", promises);
    quiet_down(bench)
}

/// The kinds of heavy load.
enum Heavy<'a> {
    Scans(&'a [u8]),
    Batches,
    Hoarders(&'a [u8]),
}

/// The light client's experience under heavy load.
fn beside(bench: &Bench, heavy: &[Heavy<'_>], promises: &mut Promises) -> Result<Experience, Error> {
    let over = AtomicBool::new(false);
    let watch = bench.gauge.watch();
    let (clock, server_before, own_before) = (Stopwatch::start(), bench.gauge.cpu()?, Gauge::own().cpu()?);
    let (experience, tallies, hoards) = std::thread::scope(|scope| {
        let (over, mut loads, mut hoards) = (&over, Vec::new(), Vec::new());
        for kind in heavy {
            match kind {
                Heavy::Scans(request) => loads.push((
                    "scans",
                    scope.spawn(move || {
                        closed_loop(bench, &mut Same(request.to_vec()), SCAN_CONNECTION_COUNT, over)
                    }),
                )),
                Heavy::Batches => loads.push((
                    "batches",
                    scope.spawn(move || {
                        closed_loop(bench, &mut LargeBatches::new()?, BATCH_CONNECTION_COUNT, over)
                    }),
                )),
                Heavy::Hoarders(request) => {
                    for (count, appetite) in
                        [(HOARDER_COUNT_SLOW, Appetite::Slow), (HOARDER_COUNT_IDLE, Appetite::None)]
                    {
                        hoards.push(scope.spawn(move || {
                            hoarders::run_until(bench.address, request, count, appetite, over)
                        }));
                    }
                }
            }
        }
        // The heavy clients start first.
        std::thread::sleep(Duration::from_secs(1));
        let name = format!("beside{}", fastrand::u32(..));
        let experience = light_client::run_for(bench.address, &name, bench.seconds);
        over.store(true, Ordering::Relaxed);
        let tallies: Result<Vec<(&str, Tally)>, Error> = loads
            .into_iter()
            .map(|(name, load)| load.join().expect("a generator does not panic").map(|tally| (name, tally)))
            .collect();
        let hoards: Result<Vec<Hoard>, Error> =
            hoards.into_iter().map(|hoard| hoard.join().expect("a hoarder does not panic")).collect();
        (experience, tallies, hoards)
    });
    let seconds = clock.elapsed().as_secs_f64();
    println!(
        "      the server used {:.2} processors, the clients {:.2}, load average {}",
        (bench.gauge.cpu()? - server_before).as_secs_f64() / seconds,
        (Gauge::own().cpu()? - own_before).as_secs_f64() / seconds,
        gauge::load_average()
    );
    for (name, tally) in tallies? {
        let all = tally.all();
        println!(
            "      {name}: {} accepted ({}), {} refused ({}), {} wrong, {} broken",
            all.accepted.total(),
            latencies(&all.accepted),
            all.refused.total(),
            latencies(&all.refused),
            all.wrong,
            all.broken
        );
        let first = tally.first_wrong.unwrap_or_default();
        promises.check(
            all.wrong == 0 && all.broken == 0,
            &format!("the heavy client's {name} are answered 2xx or 503 ServerBusy {first}"),
        );
        // Otherwise the load was not there, and the light client's experience says nothing.
        let answered = all.accepted.total() + all.refused.total();
        promises.check(answered > 0, &format!("the heavy client's {name} are there: {answered} answers"));
    }
    for hoard in hoards? {
        print_hoard(&hoard, promises);
    }
    let connections =
        10 + SCAN_CONNECTION_COUNT + BATCH_CONNECTION_COUNT + HOARDER_COUNT_SLOW + HOARDER_COUNT_IDLE;
    memory_within_bound(watch.peak_bytes(), connections, promises);
    Ok(experience)
}

fn closed_loop(
    bench: &Bench,
    requests: &mut dyn Requests,
    connection_count: usize,
    over: &AtomicBool,
) -> Result<Tally, Error> {
    let mut generator = Generator::open(bench.address, connection_count, 1)?;
    generator.set_load_model(LoadModel::Closed);
    while !over.load(Ordering::Relaxed) {
        generator.run_for(Duration::from_millis(200), requests)?;
    }
    generator.finish(requests)?;
    Ok(generator.take())
}

fn judge(quiet: &Experience, beside: &Experience, words: &str, promises: &mut Promises) {
    print_light("beside it", beside);
    promises.check(
        beside.first_share() >= LIGHT_SUCCESS_SHARE_MIN && beside.wrong.is_empty(),
        &format!(
            "light requests succeed beside {words}: {:.2} % at the first attempt, {:.2} % with a client's retries",
            beside.first_share() * 100.0,
            beside.final_share() * 100.0
        ),
    );
    if let Some(wrong) = beside.wrong.first() {
        println!("      the first of {} wrong answers: {wrong}", beside.wrong.len());
    }
    let (before_us, now_us) = (quiet.all().percentile_us(0.99), beside.all().percentile_us(0.99));
    promises.check(
        now_us <= (before_us * LIGHT_FACTOR_MAX).clamp(LIGHT_P99_FLOOR_US, LIGHT_P99_MAX_US),
        &format!(
            "their p99 stays bounded: {:.1} ms, {:.1} times the quiet one",
            now_us / 1e3,
            now_us / before_us.max(1.0)
        ),
    );
}

fn print_light(name: &str, experience: &Experience) {
    println!(
        "      light, {name}: {} requests; reads {}; inserts {}; {} refused at first, {} never sent",
        experience.requests(),
        latencies(&experience.reads),
        latencies(&experience.inserts),
        experience.refused_at_first,
        experience.unsent.total()
    );
}

fn print_hoard(hoard: &Hoard, promises: &mut Promises) {
    println!("      hoarders: {} pages, {} refused, {} closed", hoard.pages, hoard.refused, hoard.closed);
    let first = hoard.wrong.first().map(String::as_str).unwrap_or_default();
    promises.check(
        hoard.wrong.is_empty() && hoard.pages > 0,
        &format!("hoarders get pages or 503 ServerBusy {first}"),
    );
}

/// Fills the table with enough large rows for a full page.
fn fill_large(bench: &Bench) -> Result<(), Error> {
    let mut batches = LargeBatches::new()?;
    let mut request = Vec::new();
    for _ in 0..2 {
        batches.next(0, &mut request);
        mix::ask(bench.address, &request, 202)?;
    }
    let page = mix::ask(bench.address, &mix::large_page()?, 200)?;
    if page.len() < 3 << 20 {
        return Err(format!("a large page has only {} bytes", page.len()).into());
    }
    Ok(())
}

pub fn hoard(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    println!("\n  hoard: {HOARDER_COUNT} connections ask for 4 MiB pages and never read");
    fill_large(bench)?;
    let page = mix::large_page()?;
    let watch = bench.gauge.watch();
    let before = bench.gauge.memory_bytes()?;
    let over = AtomicBool::new(false);
    let (hoard, experience) = std::thread::scope(|scope| {
        let hoard =
            scope.spawn(|| hoarders::run_until(bench.address, &page, HOARDER_COUNT, Appetite::None, &over));
        std::thread::sleep(Duration::from_secs(2));
        let experience = light_client::run_for(bench.address, "hoard", bench.seconds);
        over.store(true, Ordering::Relaxed);
        (hoard.join().expect("a hoarder does not panic"), experience)
    });
    print_hoard(&hoard?, promises);
    println!("      memory before: {} MiB", before / gauge::MIB);
    memory_within_bound(watch.peak_bytes(), HOARDER_COUNT, promises);
    print_light("beside it", &experience);
    promises.check(
        experience.first_share() >= LIGHT_SUCCESS_SHARE_MIN && experience.wrong.is_empty(),
        &format!("light requests succeed meanwhile: {:.2} %", experience.first_share() * 100.0),
    );
    quiet_down(bench)
}
