//! `soak`: a mixed load at about 60 % of the server's capacity for minutes, with a sample per second and plots of
//! memory, files, latency and throughput.
//!
//! The promises compare the last quarter of the run with the second one. By then the data has reached its full size, so
//! a leak, a growing file or a slowing index shows as a difference. In the third quarter a backup is taken and
//! verified. At the end the store is checked while it is served, restarted, and read completely.
//!
//! It cannot show effects that take longer than the run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use charts::{Plot, Scale, Series};
use lexopt::Parser;
use loadgen::generator::{Counts, Generator, LoadModel, Tally};
use loadgen::measure::median;
use testkit::{Credentials, RawClient, Request, ServerProcess, Stopwatch, TempDir, system_now};

use crate::Error;
use crate::gauge::{self, Gauge, MIB, directory_bytes};
use crate::mix;
use crate::options::{self, Value};
use crate::promises::{Promises, latencies};
use crate::soak_requests::{KINDS, ROW_COUNT_MIN, SoakRequests, TABLE};

const HELP: &str = "\
a mixed load for minutes, with plots of memory, files, latency and throughput

  --server PATH      The server's binary
  --minutes N        Length of the run [default: 10]
  --out DIR          Directory for samples (CSV) and plots (SVG) [default: a temporary directory]
  --seed S           Seed of the requests [default: a new one]";

const CONNECTION_COUNT: usize = 64;
const CAPACITY_TIME: Duration = Duration::from_secs(6);
/// If other programs use more than this share of one processor, latency is not judged.
const OTHERS_PERCENT_MAX: f64 = 30.0;
const CAPACITY_SHARE: f64 = 0.6;
/// A request that finds no free connection for this long counts as an error.
const PATIENCE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);
const SECONDS_PER_REPORT: usize = 30;

const MEMORY_GROWTH_MAX: f64 = 1.15;
const MEMORY_SLACK_BYTES: f64 = 16.0 * MIB as f64;
const OPEN_FILES_SLACK: f64 = 4.0;
const FILE_GROWTH_MAX: f64 = 1.3;
/// The approximate size of a stored row: keys, names, values.
const ROW_BYTES: u64 = 300;
const FILE_TO_DATA_MAX: u64 = 8;
const FILE_BASE_BYTES: u64 = 64 * MIB;
const LATENCY_FACTOR_MAX: f64 = 2.0;
/// Below this, a factor of two means nothing on a machine with other load.
const LATENCY_FLOOR_US: f64 = 50_000.0;
const RESTART_TIME_MAX: Duration = Duration::from_secs(10);

/// The figures of one second.
struct Sample {
    memory_bytes: u64,
    file_bytes: u64,
    open_files: u64,
    threads: u64,
    rows: u64,
    /// Processors that other programs used meanwhile.
    other_processors: f64,
    tally: SampleTally,
}

struct SampleTally {
    accepted: u64,
    refused: u64,
    wrong: u64,
    broken: u64,
    not_sent: u64,
    /// p50, p99 and longest of each kind, in milliseconds; zero without requests.
    latency_ms: Vec<[f64; 3]>,
}

impl SampleTally {
    fn of(tally: &Tally) -> SampleTally {
        let all = tally.all();
        let latency = |counts: &Counts| {
            let histogram = &counts.accepted;
            [
                histogram.percentile_us(0.5) / 1e3,
                histogram.percentile_us(0.99) / 1e3,
                histogram.longest().as_secs_f64() * 1e3,
            ]
        };
        SampleTally {
            accepted: all.accepted.total(),
            refused: all.refused.total(),
            wrong: all.wrong,
            broken: all.broken,
            not_sent: tally.not_sent,
            latency_ms: tally.kinds.iter().map(latency).collect(),
        }
    }
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut server, mut minutes, mut out) = (PathBuf::new(), 10.0f64, None::<PathBuf>);
    let mut seed = fastrand::u64(..1 << 32);
    let known: &mut [(&str, &mut dyn Value)] =
        &mut [("server", &mut server), ("minutes", &mut minutes), ("out", &mut out), ("seed", &mut seed)];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary".into());
    }
    if !(0.2..=100_000.0).contains(&minutes) {
        return Err("--minutes must be at least 0.2".into());
    }
    let out = match out {
        Some(out) => out,
        None => TempDir::with_prefix("lazulite-soak-plots-")?.keep(),
    };
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    println!("soak: {minutes} minutes, seed {seed}, load average {}", gauge::load_average());
    let directory = TempDir::with_prefix("lazulite-soak-")?;
    let mut promises = Promises::default();
    soak(&server, directory.path(), minutes, seed, &out, &mut promises)?;
    println!("  samples and plots are in {}", out.display());
    let held = promises.finish("soak", &format!("cargo xtask soak --minutes {minutes} --seed {seed}"));
    if !held {
        println!("The store is kept in {}.", directory.keep().display());
    }
    Ok(held)
}

fn soak(
    server: &Path,
    directory: &Path,
    minutes: f64,
    seed: u64,
    out: &Path,
    promises: &mut Promises,
) -> Result<(), Error> {
    let binary = server.to_str().ok_or("the server's path is not Unicode")?;
    let store = directory.join("store");
    let process = ServerProcess::start(binary, &store);
    let (address, gauge) = (process.addr(), Gauge::of(process.id()));
    mix::create_table(address, TABLE)?;
    let mut requests = SoakRequests::new(seed)?;
    let mut request = Vec::new();
    while requests.row_count() < ROW_COUNT_MIN {
        requests.first_rows(&mut request);
        mix::ask(address, &request, 202)?;
    }
    let seconds = (minutes * 60.0) as usize;
    let (samples, quarters) = drive(address, &gauge, &store, server, seconds, &mut requests, promises)?;
    write_out(&samples, out)?;
    judge(&samples, &quarters, promises);

    let online = Command::new(server).arg("check").arg("-l").arg(&store).output()?;
    promises.check(
        online.status.code() == Some(0),
        &format!("check, while it is served, finds it sound: {}", last_line(&online.stdout, &online.stderr)),
    );
    let code = process.stop();
    promises.check(code == Some(0), &format!("the server stops cleanly: exit code {code:?}"));
    let watch = Stopwatch::start();
    let process = ServerProcess::start(binary, &store);
    let tables = mix::ask(process.addr(), &loadgen::request::Signer::new()?.list_tables(), 200)?;
    let back = watch.elapsed();
    promises.check(
        back <= RESTART_TIME_MAX && tables.contains(TABLE),
        &format!("a restart opens quickly: {:.3} s to the first answer", back.as_secs_f64()),
    );
    let expected: BTreeSet<String> = requests.row_keys().collect();
    let found = read_all(process.addr())?;
    promises.check(
        found == expected,
        &format!(
            "everything is readable after it: {} rows found, {} expected, {} missing",
            found.len(),
            expected.len(),
            expected.difference(&found).count()
        ),
    );
    process.stop();
    Ok(())
}

/// Runs the load. Returns a sample per second, and the counts of each quarter.
fn drive(
    address: SocketAddr,
    gauge: &Gauge,
    store: &Path,
    server: &Path,
    seconds: usize,
    requests: &mut SoakRequests,
    promises: &mut Promises,
) -> Result<(Vec<Sample>, Vec<Counts>), Error> {
    let mut samples: Vec<Sample> = Vec::with_capacity(seconds);
    let mut quarters = vec![Counts::default(); 4];
    let mut first_wrong = None;
    let mut backup = Backup::new(server, store);
    let mut generator = Generator::open(address, CONNECTION_COUNT, KINDS.len())?;
    generator.set_load_model(LoadModel::Closed);
    generator.run_for(CAPACITY_TIME / 3, requests)?;
    generator.take();
    let took = generator.run_for(CAPACITY_TIME, requests)?;
    let capacity = generator.take().all().accepted.total() as f64 / took.as_secs_f64();
    let per_second = capacity * CAPACITY_SHARE;
    println!("  capacity of this mix: {capacity:.0} requests per second; the load is {per_second:.0}");
    generator.set_load_model(LoadModel::Open { per_second, patience: PATIENCE });
    let others = || -> Result<f64, Error> {
        let ours = gauge.cpu()? + Gauge::own().cpu()?;
        Ok(gauge::machine_cpu()?.saturating_sub(ours).as_secs_f64())
    };
    let mut others_before = others()?;
    for second in 0..seconds {
        if second == seconds / 2 {
            backup.start()?;
        }
        generator.run_for(SECOND, requests)?;
        let tally = generator.take();
        quarters[second * 4 / seconds].add(&tally.all());
        first_wrong = first_wrong.or(tally.first_wrong.clone());
        let others_now = others()?;
        let other_processors = (others_now - others_before) / SECOND.as_secs_f64();
        others_before = others_now;
        samples.push(Sample {
            other_processors,
            memory_bytes: gauge.memory_bytes()?,
            file_bytes: directory_bytes(store),
            open_files: gauge.open_file_count()?,
            threads: gauge.thread_count()?,
            rows: requests.row_count(),
            tally: SampleTally::of(&tally),
        });
        if (second + 1).is_multiple_of(SECONDS_PER_REPORT)
            && let Some(sample) = samples.last()
        {
            println!(
                "  {:>5} s: {} per second, {} rows, {} MiB memory, {} MiB files, {}",
                second + 1,
                sample.tally.accepted,
                sample.rows,
                sample.memory_bytes / MIB,
                sample.file_bytes / MIB,
                latencies(&tally.all().accepted)
            );
        }
    }
    generator.finish(requests)?;
    let rest = generator.take();
    let lost = rest.all();
    backup.finish(promises)?;
    let sum =
        |number: fn(&SampleTally) -> u64| samples.iter().map(|sample| number(&sample.tally)).sum::<u64>();
    let wrong = sum(|tally| tally.wrong) + lost.wrong;
    let broken = sum(|tally| tally.broken) + lost.broken;
    let refused = sum(|tally| tally.refused) + lost.refused.total();
    let not_sent = sum(|tally| tally.not_sent);
    promises.check(
        wrong + broken + refused + not_sent == 0,
        &format!(
            "no errors in {} requests: {wrong} wrong, {broken} broken, {refused} refused, {not_sent} without a connection",
            sum(|tally| tally.accepted) + lost.accepted.total()
        ),
    );
    if let Some(answer) = first_wrong.or(rest.first_wrong) {
        println!("      the first wrong answer:\n{answer}");
    }
    Ok((samples, quarters))
}

/// Compares the last quarter with the second.
fn judge(samples: &[Sample], quarters: &[Counts], promises: &mut Promises) {
    let quarter = |number: usize, value: fn(&Sample) -> u64| -> Vec<f64> {
        let (start, end) = (samples.len() * number / 4, samples.len() * (number + 1) / 4);
        samples[start..end].iter().map(|sample| value(sample) as f64).collect()
    };
    let (before, after) = (median(quarter(1, |s| s.memory_bytes)), median(quarter(3, |s| s.memory_bytes)));
    promises.check(
        after <= before * MEMORY_GROWTH_MAX + MEMORY_SLACK_BYTES,
        &format!(
            "memory does not grow: {:.0} MiB in the second quarter, {:.0} MiB in the last",
            before / MIB as f64,
            after / MIB as f64
        ),
    );
    for (name, value) in
        [("open files", (|s| s.open_files) as fn(&Sample) -> u64), ("threads", |s| s.threads)]
    {
        let (before, after) = (highest(quarter(1, value)), highest(quarter(3, value)));
        promises.check(
            after <= before + OPEN_FILES_SLACK,
            &format!("{name} stay constant: {before} in the second quarter, {after} in the last"),
        );
    }
    let (before, after) = (highest(quarter(1, |s| s.file_bytes)), highest(quarter(3, |s| s.file_bytes)));
    let rows = samples.last().map_or(0, |sample| sample.rows);
    let data_bytes = rows * ROW_BYTES;
    // In a short run the data still grows in the second quarter.
    let bound = (FILE_TO_DATA_MAX * data_bytes + FILE_BASE_BYTES) as f64;
    promises.check(
        after <= bound && (after <= before * FILE_GROWTH_MAX || after <= bound / 2.0),
        &format!(
            "files stay bounded: {:.0} MiB in the second quarter, {:.0} MiB in the last, for {:.0} MiB of live data",
            before / MIB as f64,
            after / MIB as f64,
            data_bytes as f64 / MIB as f64
        ),
    );
    let (before, after) = (&quarters[1].accepted, &quarters[3].accepted);
    println!("    latency in the second quarter: {}", latencies(before));
    println!("    latency in the last quarter:   {}", latencies(after));
    // On a machine with other load, latency depends on that load.
    let others =
        [1, 3].map(|number| median(quarter(number, |sample| (sample.other_processors * 100.0) as u64)));
    if others.iter().any(|percent| *percent > OTHERS_PERCENT_MAX) {
        println!(
            "    not judged: other programs used {:.2} processors in the second quarter and {:.2} in the last",
            others[0] / 100.0,
            others[1] / 100.0
        );
        return;
    }
    let (before_us, after_us) = (before.percentile_us(0.99), after.percentile_us(0.99));
    promises.check(
        after_us <= (before_us * LATENCY_FACTOR_MAX).max(LATENCY_FLOOR_US),
        &format!(
            "latency does not get worse: p99 {:.1} ms in the second quarter, {:.1} ms in the last",
            before_us / 1e3,
            after_us / 1e3
        ),
    );
}

fn highest(values: Vec<f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

fn write_out(samples: &[Sample], out: &Path) -> Result<(), Error> {
    let mut csv = String::from(
        "second,memory_bytes,file_bytes,open_files,threads,rows,accepted,refused,wrong,broken,not_sent",
    );
    for kind in KINDS {
        let _ = write!(csv, ",{kind}_p50_ms,{kind}_p99_ms,{kind}_longest_ms");
    }
    csv.push('\n');
    for (second, sample) in samples.iter().enumerate() {
        let tally = &sample.tally;
        let _ = write!(
            csv,
            "{second},{},{},{},{},{},{},{},{},{},{}",
            sample.memory_bytes,
            sample.file_bytes,
            sample.open_files,
            sample.threads,
            sample.rows,
            tally.accepted,
            tally.refused,
            tally.wrong,
            tally.broken,
            tally.not_sent
        );
        for [p50, p99, longest] in &tally.latency_ms {
            let _ = write!(csv, ",{p50:.3},{p99:.3},{longest:.3}");
        }
        csv.push('\n');
    }
    std::fs::write(out.join("samples.csv"), csv)?;
    let series = |name: &str, value: &dyn Fn(&Sample) -> f64| Series {
        name: name.to_owned(),
        values: samples.iter().map(value).collect(),
    };
    let mib = |bytes: u64| bytes as f64 / MIB as f64;
    let latency = |place: usize| {
        let one =
            |(index, kind): (usize, &&str)| series(kind, &move |s: &Sample| s.tally.latency_ms[index][place]);
        KINDS.iter().enumerate().map(one).collect::<Vec<Series>>()
    };
    let linear = |title, unit, series| Plot { title, unit, scale: Scale::Linear, series };
    let logarithmic = |title, unit, series| Plot { title, unit, scale: Scale::Logarithmic, series };
    let plots = [
        (
            "memory",
            linear("Resident memory of the server", "MiB", vec![series("memory", &|s| mib(s.memory_bytes))]),
        ),
        (
            "files",
            linear(
                "Files of the data directory",
                "MiB",
                vec![
                    series("files", &|s| mib(s.file_bytes)),
                    series("live data (estimated)", &|s| mib(s.rows * ROW_BYTES)),
                ],
            ),
        ),
        (
            "handles",
            linear(
                "Open files and threads",
                "count",
                vec![
                    series("open files", &|s| s.open_files as f64),
                    series("threads", &|s| s.threads as f64),
                ],
            ),
        ),
        ("latency-p50", logarithmic("Latency, median of each second", "milliseconds", latency(0))),
        ("latency-p99", logarithmic("Latency, 99th percentile of each second", "milliseconds", latency(1))),
        (
            "throughput",
            linear(
                "Requests accepted",
                "requests per second",
                vec![series("accepted", &|s| s.tally.accepted as f64)],
            ),
        ),
    ];
    for (name, plot) in plots {
        std::fs::write(out.join(format!("{name}.svg")), plot.to_svg())?;
    }
    Ok(())
}

/// The backup taken under load.
struct Backup<'a> {
    server: &'a Path,
    store: &'a Path,
    file: PathBuf,
    child: Option<std::process::Child>,
}

impl<'a> Backup<'a> {
    fn new(server: &'a Path, store: &'a Path) -> Backup<'a> {
        Backup { server, store, file: store.with_file_name("soak.backup"), child: None }
    }

    fn start(&mut self) -> Result<(), Error> {
        let mut command = Command::new(self.server);
        command.arg("backup").arg(&self.file).arg("-l").arg(self.store);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        self.child = Some(command.spawn()?);
        Ok(())
    }

    fn finish(self, promises: &mut Promises) -> Result<(), Error> {
        let Some(child) = self.child else { return Ok(()) };
        let made = child.wait_with_output()?;
        let verified = Command::new(self.server).args(["check", "--backup"]).arg(&self.file).output()?;
        promises.check(
            made.status.code() == Some(0) && verified.status.code() == Some(0),
            &format!(
                "a backup under load is made and sound: {}; {}",
                last_line(&made.stdout, &made.stderr),
                last_line(&verified.stdout, &verified.stderr)
            ),
        );
        Ok(())
    }
}

/// The last line that a command printed.
pub fn last_line(stdout: &[u8], stderr: &[u8]) -> String {
    let text = [stderr, stdout].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned()).join("\n");
    text.lines().last().unwrap_or_default().to_owned()
}

/// The row keys of the whole table.
fn read_all(address: SocketAddr) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    pages(address, TABLE, "RowKey", &mut |row| {
        found.insert(row["RowKey"].as_str().unwrap_or_default().to_owned());
    })?;
    Ok(found)
}

/// Reads a whole table page by page, with only the named properties of each row.
pub fn pages(
    address: SocketAddr,
    table: &str,
    select: &str,
    row: &mut dyn FnMut(&serde_json::Value),
) -> Result<(), Error> {
    let mut client = RawClient::connect(address)?;
    let mut next: Option<(String, String)> = None;
    loop {
        let mut request = Request::get(&format!("/{table}()")).query("$select", select);
        if let Some((partition, row)) = &next {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let response = client.exchange(&request.to_bytes(address, &Credentials::emulator(), system_now()))?;
        if response.status != 200 {
            return Err(format!("a page of {table} is answered with {response:?}").into());
        }
        response.json()["value"].as_array().into_iter().flatten().for_each(&mut *row);
        let header = |name: &str| response.header(name).map(str::to_owned);
        next = match header("x-ms-continuation-NextPartitionKey") {
            Some(partition) => Some((partition, header("x-ms-continuation-NextRowKey").unwrap_or_default())),
            None => return Ok(()),
        };
    }
}
