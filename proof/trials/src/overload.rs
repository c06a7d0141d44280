//! `overload`: ten times the load that the server can handle, a heavy client beside a light one, clients that never
//! read their answers, hostile queries, and greedy neighbours. Goodput, latency and memory are compared with those of the quiet server.
//!
//! Generator and server share the machine's processors, so more load takes processor time away from the server: goodput
//! falls although the server wastes nothing. Therefore goodput is also given per second of the server's processor time.
//! The promise (80 % of the peak) holds if either figure keeps it: the plain one when the processors suffice for both,
//! the other when they do not. The trial prints how busy the generator was.
//!
//! It cannot show the effects of a real network, or of more processors than this machine has.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::env::SystemClock;
use engine_local::LocalOptions;
use lexopt::Parser;
use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, ServerProcess, Stopwatch, TempDir};

use crate::Error;
use crate::gauge::{self, Gauge, MIB};
use crate::mix::{self, MIX_KINDS, Mix, READ_ROW_COUNT, READ_TABLE, WRITE_TABLE};
use crate::options::{self, Value};
use crate::promises::{Promises, latencies};
use crate::{heavy, hostile, long_scans, neighbours};
use loadgen::generator::{Generator, LoadModel, Tally};

const HELP: &str = "\
ten times the load the server can handle, a heavy client beside a light one, hostile queries

  --server PATH      The server's binary
  --seconds S        Length of each measurement [default: 10]
  --rows N           Rows of the table that hostile queries scan [default: 300000]
  --only PHASES      Some of overload, heavy, hoard, hostile, greedy, scans, echo, heads, separated by commas [default: all]
  --seed S           Seed of the requests [default: a new one]";

const PEAK_CONNECTION_COUNT: usize = 64;
/// More than the commit queue holds, if the system lets a process open that many.
const OVERLOAD_CONNECTION_COUNT_MAX: usize = 8_000;
/// Open files needed for other purposes.
const OTHER_FILE_COUNT: usize = 200;
const OVERLOAD_FACTOR: f64 = 10.0;
/// How long a request that is due waits for a free connection before its client gives up.
const PATIENCE: Duration = Duration::from_secs(1);
const GOODPUT_SHARE_MIN: f64 = 0.8;
/// The longest that an accepted request may take from when it was due: the patience plus the server's own time.
const ACCEPTED_LATENCY_MAX: Duration = Duration::from_secs(10);
/// A refusal may take as long as an accepted request at the median, or a hundredth of a second if that is more.
const REFUSAL_FLOOR: Duration = Duration::from_millis(10);

/// Memory that one connection may take: buffers of both directions, its task, a small payload or answer.
const CONNECTION_BYTES: u64 = 64 * 1024;
/// Memory for the program, its threads and tables.
const BASE_BYTES: u64 = 64 * MIB;
/// The factor for memory that the allocator keeps beyond what is in use.
const ALLOCATOR_SHARE: f64 = 1.25;

/// What all phases need.
pub struct Bench {
    pub address: SocketAddr,
    pub gauge: Gauge,
    pub seconds: Duration,
    pub seed: u64,
    pub rows: u64,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut server, mut seconds, mut rows) = (PathBuf::new(), 10.0f64, 300_000u64);
    let (mut only, mut seed) =
        (String::from("overload,heavy,hoard,hostile,greedy,scans,echo,heads"), fastrand::u64(..1 << 32));
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut server),
        ("seconds", &mut seconds),
        ("rows", &mut rows),
        ("only", &mut only),
        ("seed", &mut seed),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    let binary =
        server.to_str().filter(|path| !path.is_empty()).ok_or("--server is missing: it names the binary")?;
    if !(1.0..=300.0).contains(&seconds) || rows < 1000 || !rows.is_multiple_of(100) {
        return Err(
            "--seconds must be between 1 and 300; --rows must be a multiple of 100 and at least 1000".into(),
        );
    }
    println!("overload: {seconds} s per measurement, seed {seed}, load average {}", gauge::load_average());
    let directory = TempDir::with_prefix("lazulite-overload-")?;
    let accounts = format!(
        "{EMULATOR_ACCOUNT}:{EMULATOR_KEY};{}:{}",
        neighbours::MODEST_ACCOUNT,
        neighbours::MODEST_KEY
    );
    let environment = [("LAZULITE_ACCOUNTS", accounts.as_str())];
    let process = ServerProcess::start_with(
        binary,
        directory.path(),
        &["--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &environment,
    );
    let bench = Bench {
        address: process.addr(),
        gauge: Gauge::of(process.id()),
        seconds: Duration::from_secs_f64(seconds),
        seed,
        rows,
    };
    let watch = Stopwatch::start();
    let mut promises = Promises::default();
    for table in [READ_TABLE, WRITE_TABLE, mix::LARGE_TABLE] {
        mix::create_table(bench.address, table)?;
    }
    mix::fill(bench.address, READ_TABLE, READ_ROW_COUNT)?;
    let phases: [(&str, Phase); 8] = [
        ("overload", overload),
        ("heavy", heavy::against_light),
        ("hoard", heavy::hoard),
        ("hostile", hostile::run),
        ("greedy", neighbours::greedy),
        ("scans", long_scans::run),
        ("echo", neighbours::echo),
        ("heads", neighbours::heads),
    ];
    for (name, phase) in phases {
        if only.split(',').any(|wanted| wanted == name) {
            phase(&bench, &mut promises)?;
        }
    }
    println!(
        "\noverload: {:.0} s in all, the server's peak memory {} MiB",
        watch.elapsed().as_secs_f64(),
        bench.gauge.memory_peak_bytes()? / MIB
    );
    let code = process.stop();
    promises.check(code == Some(0), &format!("the server stops cleanly: exit code {code:?}"));
    let again = format!("cargo xtask overload --seconds {seconds} --rows {rows} --only {only} --seed {seed}");
    let held = promises.finish("overload", &again);
    if !held {
        println!("The store is kept in {}.", directory.keep().display());
    }
    Ok(held)
}

type Phase = fn(&Bench, &mut Promises) -> Result<(), Error>;

/// One measurement of the mix.
struct Measured {
    tally: Tally,
    seconds: f64,
    server_cpu: f64,
    own_cpu: f64,
}

impl Measured {
    fn goodput(&self) -> f64 {
        self.tally.all().accepted.total() as f64 / self.seconds
    }

    fn goodput_per_cpu(&self) -> f64 {
        self.tally.all().accepted.total() as f64 / self.server_cpu.max(0.01)
    }

    fn print(&self, name: &str) {
        println!(
            "    {name}: {:.0} requests accepted per second; the server used {:.2} processors ({:.0} accepted per \
             processor second), the generator {:.2}",
            self.goodput(),
            self.server_cpu / self.seconds,
            self.goodput_per_cpu(),
            self.own_cpu / self.seconds
        );
        for (kind, counts) in MIX_KINDS.iter().zip(&self.tally.kinds) {
            println!(
                "      {kind:<6} {:>8} accepted, {}",
                counts.accepted.total(),
                latencies(&counts.accepted)
            );
        }
    }
}

fn measure(
    bench: &Bench,
    mix: &mut Mix,
    connection_count: usize,
    model: LoadModel,
    warm_up: Duration,
) -> Result<Measured, Error> {
    let mut generator = Generator::open(bench.address, connection_count, MIX_KINDS.len())?;
    generator.set_load_model(model);
    generator.run_for(warm_up, mix)?;
    generator.take();
    let (server_before, own_before) = (bench.gauge.cpu()?, Gauge::own().cpu()?);
    let took = generator.run_for(bench.seconds, mix)?;
    let (server_after, own_after) = (bench.gauge.cpu()?, Gauge::own().cpu()?);
    let tally = generator.take();
    generator.finish(mix)?;
    Ok(Measured {
        tally,
        seconds: took.as_secs_f64(),
        server_cpu: (server_after - server_before).as_secs_f64(),
        own_cpu: (own_after - own_before).as_secs_f64(),
    })
}

/// Once with a mix of reads and writes, and once with writes alone, which fill the commit queue until it refuses.
fn overload(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    ten_times(bench, "seven reads to three writes", 1, 7, promises)?;
    ten_times(bench, "writes only", 3, 0, promises)
}

fn ten_times(
    bench: &Bench,
    what: &str,
    name: u8,
    reads_of_ten: u32,
    promises: &mut Promises,
) -> Result<(), Error> {
    let warm_up = bench.seconds / 4;
    println!("\n  peak, {what}: {PEAK_CONNECTION_COUNT} connections in a closed loop");
    let peak = measure(
        bench,
        &mut Mix::new(bench.seed, name, reads_of_ten)?,
        PEAK_CONNECTION_COUNT,
        LoadModel::Closed,
        warm_up,
    )?;
    peak.print("peak");
    no_surprises(&peak.tally, "at the peak", promises);

    let per_second = OVERLOAD_FACTOR * peak.goodput();
    let connection_count = OVERLOAD_CONNECTION_COUNT_MAX.min(gauge::connection_count_max(OTHER_FILE_COUNT)?);
    println!(
        "\n  overload, {what}: {per_second:.0} requests per second are due, whatever the server does, on {connection_count} \
         connections"
    );
    let watch = bench.gauge.watch();
    let model = LoadModel::Open { per_second, patience: PATIENCE };
    let over =
        measure(bench, &mut Mix::new(bench.seed, name + 1, reads_of_ten)?, connection_count, model, warm_up)?;
    let memory_peak_bytes = watch.peak_bytes();
    drop(watch);
    over.print("overload");
    let all = over.tally.all();
    let answered = all.accepted.total() + all.refused.total();
    println!(
        "      {:.0} per second were sent ({:.1} times the peak), {:.0} per second found no connection within {PATIENCE:?}",
        answered as f64 / over.seconds,
        answered as f64 / over.seconds / peak.goodput(),
        over.tally.not_sent as f64 / over.seconds
    );
    println!("      accepted, since due:  {}", latencies(&all.accepted));
    println!("      accepted, since sent: {}", latencies(&all.accepted_served));
    println!("      refused, since sent:  {} of them, {}", all.refused.total(), latencies(&all.refused));
    no_surprises(&over.tally, "under overload", promises);
    let plain = over.goodput() / peak.goodput();
    let per_cpu = over.goodput_per_cpu() / peak.goodput_per_cpu();
    promises.check(
        plain.max(per_cpu) >= GOODPUT_SHARE_MIN,
        &format!(
            "goodput stays within {:.0} % of the peak: {:.0} % of it overall, {:.0} % per processor second of the server",
            GOODPUT_SHARE_MIN * 100.0,
            plain * 100.0,
            per_cpu * 100.0
        ),
    );
    if all.refused.total() == 0 {
        println!("    no request was refused here, so nothing is shown about refusals");
    } else {
        let refusal_us = all.refused.percentile_us(0.5);
        let accepted_us = all.accepted_served.percentile_us(0.5);
        promises.check(
            refusal_us <= accepted_us.max(REFUSAL_FLOOR.as_micros() as f64),
            &format!(
                "refusals are fast: at the median {:.1} ms, accepted ones {:.1} ms",
                refusal_us / 1e3,
                accepted_us / 1e3
            ),
        );
    }
    promises.check(
        all.accepted.longest() <= ACCEPTED_LATENCY_MAX,
        &format!(
            "accepted requests are answered within {ACCEPTED_LATENCY_MAX:?} of being due: the longest took {:.2} s",
            all.accepted.longest().as_secs_f64()
        ),
    );
    memory_within_bound(memory_peak_bytes, connection_count, promises);
    quiet_down(bench)
}

fn no_surprises(tally: &Tally, when: &str, promises: &mut Promises) {
    let all = tally.all();
    promises.check(
        all.wrong == 0 && all.broken == 0,
        &format!(
            "{when} every answer is 2xx or 503 ServerBusy: {} others, {} connections broke",
            all.wrong, all.broken
        ),
    );
    if let Some(answer) = &tally.first_wrong {
        println!("      the first wrong answer:\n{answer}");
    }
}

/// Compares memory with the sum of the configured limits.
pub fn memory_within_bound(peak_bytes: u64, connection_count: usize, promises: &mut Promises) {
    let limits = server::Limits::default();
    let engine = LocalOptions::new(tables::FAMILIES, Arc::new(SystemClock::new()));
    let parts = [
        ("pages in the engine's cache", engine.cache_bytes_max as u64),
        ("recent rows, those being folded included", 4 * engine.recent_bytes_max as u64),
        ("commits that wait, and those being written", 2 * engine.commit_queue_bytes_max as u64),
        ("payloads, as received and as decoded", 2 * limits.payload_bytes_max as u64),
        ("answers that wait for their readers", limits.answer_bytes_max as u64),
        ("heads longer than usual", limits.head_bytes_max as u64),
        ("connections", connection_count as u64 * CONNECTION_BYTES),
        ("the program itself", BASE_BYTES),
    ];
    let words: Vec<String> = parts.iter().map(|(name, bytes)| format!("{} {name}", bytes / MIB)).collect();
    let bound_bytes = (parts.iter().map(|(_, bytes)| bytes).sum::<u64>() as f64 * ALLOCATOR_SHARE) as u64;
    println!("    the bound on memory in MiB: ({}) x {ALLOCATOR_SHARE} of allocator", words.join(" + "));
    promises.check(
        peak_bytes <= bound_bytes,
        &format!("memory stays within its bound: {} of {} MiB", peak_bytes / MIB, bound_bytes / MIB),
    );
}

/// Waits until the server is idle, so that one phase does not affect the next.
pub fn quiet_down(bench: &Bench) -> Result<(), Error> {
    let watch = Stopwatch::start();
    while watch.elapsed() < Duration::from_secs(30) {
        let before = bench.gauge.cpu()?;
        std::thread::sleep(Duration::from_millis(300));
        if bench.gauge.cpu()? - before < Duration::from_millis(20) {
            break;
        }
    }
    Ok(())
}
