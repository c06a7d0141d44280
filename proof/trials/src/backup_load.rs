//! `backup`: takes a backup of many entities under write load, restores it elsewhere, and compares it with the ledgers.
//!
//! Each writer owns a partition and numbers its writes. Most writes replace one of its rows, every fourth is a batch
//! over a few others; each stores the write's number. A writer has one write in flight at a time, so a moment of the
//! whole store is one number per writer: all writes up to it happened, none after it. The restored store must be such a
//! moment:
//!
//! - every row holds the last number written to it up to the writer's number, and batches are whole;
//! - that number is at least the last one acknowledged when the backup started, and at most the last one sent when it
//!   ended;
//! - across writers, if a write is included, so is every write that was acknowledged before it was sent.
//!
//! Owns: writers, their ledgers and the comparison. The large table loaded beforehand must come back unchanged.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lexopt::Parser;
use loadgen::clock;
use loadgen::request::row_key;
use testkit::{
    Batch, Credentials, RawClient, Request, Response, ServerProcess, Stopwatch, TempDir, entity_json,
    entity_path, system_now,
};

use crate::gauge::{self, MIB, directory_bytes};
use crate::options::{self, Value};
use crate::promises::Promises;
use crate::soak::{last_line, pages};
use crate::{Error, mix};

const HELP: &str = "\
a backup under write load, restored elsewhere: it must equal some moment of the ledger

  --server PATH      The server's binary
  --entities N       Entities to load first, a multiple of 100 [default: 1000000]
  --writers W        Writers during the backup [default: 8]";

const BULK_TABLE: &str = "bulk";
const LEDGER_TABLE: &str = "ledger";
/// The row numbers that a writer goes through with single writes (a number whose turn is a batch's stays without a
/// row), and the rows that each of its batches writes.
const SINGLE_ROW_COUNT: u64 = 20;
const BATCH_ROW_COUNT: u64 = 10;
const WRITES_PER_BATCH: u64 = 4;
/// How long the writers' rate is measured before the backup.
const BEFORE_TIME: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// One writer's writes, by number: when each was sent and acknowledged.
type Ledger = Vec<Entry>;

#[derive(Clone, Copy)]
struct Entry {
    sent: Instant,
    /// `None` if it was still in flight when the ledger was closed.
    acknowledged: Option<Instant>,
}

/// When a backup started and ended.
struct Span {
    started: Instant,
    ended: Instant,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut server, mut entities, mut writer_count) = (PathBuf::new(), 1_000_000u64, 8usize);
    let known: &mut [(&str, &mut dyn Value)] =
        &mut [("server", &mut server), ("entities", &mut entities), ("writers", &mut writer_count)];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    let binary =
        server.to_str().filter(|path| !path.is_empty()).ok_or("--server is missing: it names the binary")?;
    if entities < 100 || !entities.is_multiple_of(100) || writer_count == 0 {
        return Err("--entities must be a multiple of 100, and --writers at least 1".into());
    }
    println!("backup: {entities} entities, {writer_count} writers, load average {}", gauge::load_average());
    let directory = TempDir::with_prefix("lazulite-backup-")?;
    let store = directory.path().join("store");
    let process = ServerProcess::start(binary, &store);
    let address = process.addr();
    mix::create_table(address, BULK_TABLE)?;
    mix::create_table(address, LEDGER_TABLE)?;
    let watch = Stopwatch::start();
    mix::fill_varied(address, BULK_TABLE, entities)?;
    println!(
        "  loaded in {:.1} s; the store has {} MiB",
        watch.elapsed().as_secs_f64(),
        directory_bytes(&store) / MIB
    );
    let mut promises = Promises::default();
    // The numbers continue from one backup to the next.
    let mut ledgers: Vec<Ledger> = vec![Ledger::new(); writer_count];
    for (name, rate) in [("at the default rate", None), ("as fast as it goes", Some("0"))] {
        println!("\n  {name}:");
        let file = directory.path().join(format!("rate-{}.backup", rate.unwrap_or("default")));
        let span = back_up(&server, &store, &file, rate, address, &mut ledgers, &mut promises)?;
        let size = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
        let rows = entities + (writer_count * rows_after(1000).len()) as u64;
        println!(
            "    {:.1} s from start to end, {:.1} MiB, {:.1} bytes per entity",
            (span.ended - span.started).as_secs_f64(),
            size as f64 / MIB as f64,
            size as f64 / rows as f64
        );
        let restored = directory.path().join(format!("restored-{}", rate.unwrap_or("default")));
        let watch = Stopwatch::start();
        let output = command(&server, "restore").arg(&file).arg("-l").arg(&restored).output()?;
        let took = watch.elapsed();
        judge_command(&output, &format!("restored in {:.1} s", took.as_secs_f64()), &mut promises);
        let output = command(&server, "check").arg("--backup").arg(&file).output()?;
        judge_command(&output, "check of the backup file", &mut promises);
        if output.status.success() {
            compare(binary, &restored, entities, &ledgers, &span, &mut promises)?;
        }
        let output = command(&server, "check").arg("-l").arg(&restored).output()?;
        judge_command(&output, "check of the restored store", &mut promises);
        let _ = std::fs::remove_dir_all(&restored);
    }
    process.stop();
    let again = format!("cargo xtask backup --entities {entities} --writers {writer_count}");
    let held = promises.finish("backup", &again);
    if !held {
        println!("The store and the backups are kept in {}.", directory.keep().display());
    }
    Ok(held)
}

fn command(server: &Path, word: &str) -> Command {
    let mut command = Command::new(server);
    command.env_remove("LAZULITE_ACCOUNTS").env_remove("AZURITE_ACCOUNTS").arg(word);
    command
}

fn judge_command(output: &Output, what: &str, promises: &mut Promises) {
    let words = last_line(&output.stdout, &output.stderr);
    promises.check(output.status.code() == Some(0), &format!("{what}: {words}"));
}

/// Takes the backup while the writers write, then closes the ledgers.
fn back_up(
    server: &Path,
    store: &Path,
    file: &Path,
    rate: Option<&str>,
    address: SocketAddr,
    ledgers: &mut [Ledger],
    promises: &mut Promises,
) -> Result<Span, Error> {
    let (over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let (span, output, before, during) = std::thread::scope(|scope| {
        let writers: Vec<_> = ledgers
            .iter_mut()
            .enumerate()
            .map(|(number, ledger)| {
                let (over, written) = (&over, &written);
                scope.spawn(move || Writer::new(number, address, ledger, written).run(over))
            })
            .collect();
        // Wait until every row exists before measuring the rate.
        std::thread::sleep(BEFORE_TIME / 5);
        let begin = written.load(Ordering::Relaxed);
        let watch = Stopwatch::start();
        std::thread::sleep(BEFORE_TIME);
        let (start, before_time) = (written.load(Ordering::Relaxed), watch.elapsed());
        let started = clock::now();
        let mut command = command(server, "backup");
        command.arg(file).arg("-l").arg(store);
        if let Some(rate) = rate {
            command.args(["--rate", rate]);
        }
        let output = command.output();
        let ended = clock::now();
        let end = written.load(Ordering::Relaxed);
        over.store(true, Ordering::Relaxed);
        let mut outcome = Ok(());
        for writer in writers {
            outcome = outcome.and(writer.join().expect("a writer does not panic"));
        }
        let before = (start - begin) as f64 / before_time.as_secs_f64();
        let during = (end - start) as f64 / (ended - started).as_secs_f64();
        outcome.map(|()| (Span { started, ended }, output, before, during))
    })?;
    judge_command(&output?, "backup under write load", promises);
    println!(
        "    the writers: {before:.0} writes per second before, {during:.0} during the backup ({:.0} %)",
        during / before.max(1.0) * 100.0
    );
    promises.check(during > 0.0 && before > 0.0, "writes go on while the backup is taken");
    Ok(span)
}

struct Writer<'a> {
    partition: String,
    address: SocketAddr,
    client: Option<RawClient>,
    ledger: &'a mut Ledger,
    written: &'a AtomicU64,
}

impl<'a> Writer<'a> {
    fn new(number: usize, address: SocketAddr, ledger: &'a mut Ledger, written: &'a AtomicU64) -> Writer<'a> {
        Writer { partition: format!("writer{number:03}"), address, client: None, ledger, written }
    }

    fn run(mut self, over: &AtomicBool) -> Result<(), Error> {
        while !over.load(Ordering::Relaxed) {
            let number = self.ledger.len() as u64;
            let request = self.request(number);
            self.ledger.push(Entry { sent: clock::now(), acknowledged: None });
            loop {
                let response = self.ask(&request)?;
                let busy = response.status == 503 || response.text().contains("ServerBusy");
                if !busy && response.status / 100 == 2 && !response.text().contains("odata.error") {
                    break;
                }
                if !busy {
                    return Err(format!(
                        "write {number} of {} is answered with {response:?}",
                        self.partition
                    )
                    .into());
                }
                // A refused write has not happened, so the same write is sent again.
                std::thread::sleep(RETRY_DELAY);
            }
            if let Some(entry) = self.ledger.last_mut() {
                entry.acknowledged = Some(clock::now());
            }
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn request(&self, number: u64) -> Request {
        let members = format!("\"n\":{number}");
        let rows = rows_of(number);
        if let [row] = &rows[..] {
            let json = entity_json(&self.partition, row, &members);
            return Request::put(&entity_path(LEDGER_TABLE, &self.partition, row)).json(&json);
        }
        let batch = rows.iter().fold(Batch::new(), |batch, row| {
            let json = entity_json(&self.partition, row, &members);
            batch.operation("PUT", &entity_path(LEDGER_TABLE, &self.partition, row), &[], Some(&json))
        });
        batch.request()
    }

    fn ask(&mut self, request: &Request) -> Result<Response, Error> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => RawClient::connect(self.address)?,
        };
        let response =
            client.exchange(&request.to_bytes(self.address, &Credentials::emulator(), system_now()))?;
        if !response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.client = Some(client);
        }
        Ok(response)
    }
}

/// The rows that the write with this number writes.
fn rows_of(number: u64) -> Vec<String> {
    if number % WRITES_PER_BATCH == WRITES_PER_BATCH - 1 {
        return (0..BATCH_ROW_COUNT).map(|row| format!("batch{row:03}")).collect();
    }
    vec![format!("single{:03}", number % SINGLE_ROW_COUNT)]
}

/// A writer's rows after its write with this number, sorted by row.
fn rows_after(number: u64) -> Vec<(String, u64)> {
    let first = number.saturating_sub(SINGLE_ROW_COUNT * WRITES_PER_BATCH);
    let mut rows: Vec<(String, u64)> = Vec::new();
    for write in first..=number {
        for row in rows_of(write) {
            match rows.iter_mut().find(|(present, _)| *present == row) {
                Some((_, held)) => *held = write,
                None => rows.push((row, write)),
            }
        }
    }
    rows.sort();
    rows
}

/// Serves the restored store and compares it with the ledgers.
fn compare(
    binary: &str,
    restored: &Path,
    entities: u64,
    ledgers: &[Ledger],
    span: &Span,
    promises: &mut Promises,
) -> Result<(), Error> {
    let process = ServerProcess::start(binary, restored);
    let (mut count, mut out_of_place) = (0u64, 0u64);
    pages(process.addr(), BULK_TABLE, "RowKey,Name", &mut |row| {
        let right = row["RowKey"].as_str() == Some(&row_key(count))
            && row["Name"].as_str() == Some(&mix::varied_name(count));
        out_of_place += u64::from(!right);
        count += 1;
    })?;
    promises.check(
        count == entities && out_of_place == 0,
        &format!("all {entities} loaded entities are there: {count}, {out_of_place} wrong or out of place"),
    );
    let mut rows: Vec<Vec<(String, u64)>> = vec![Vec::new(); ledgers.len()];
    let mut strange = 0;
    pages(process.addr(), LEDGER_TABLE, "PartitionKey,RowKey,n", &mut |row| {
        let partition = row["PartitionKey"].as_str().unwrap_or_default();
        let writer = partition.strip_prefix("writer").and_then(|digits| digits.parse::<usize>().ok());
        match (writer.and_then(|writer| rows.get_mut(writer)), row["RowKey"].as_str(), row["n"].as_u64()) {
            (Some(rows), Some(key), Some(number)) => rows.push((key.to_owned(), number)),
            _ => strange += 1,
        }
    })?;
    process.stop();
    promises
        .check(strange == 0, &format!("the ledger's table has only rows of the writers: {strange} others"));
    let moment: Vec<Option<u64>> =
        rows.iter().map(|rows| rows.iter().map(|(_, number)| *number).max()).collect();
    let mut broken = broken_rules(&rows, &moment, ledgers, span);
    let shown: Vec<String> = broken.drain(..broken.len().min(3)).collect();
    let writes: u64 = moment.iter().flatten().map(|number| number + 1).sum();
    promises.check(
        shown.is_empty(),
        &format!("the restored store is a moment of the ledger, after {writes} writes {}", shown.join("; ")),
    );
    Ok(())
}

/// The reasons, if any, why these rows are not a moment of the ledgers within the span.
fn broken_rules(
    rows: &[Vec<(String, u64)>],
    moment: &[Option<u64>],
    ledgers: &[Ledger],
    span: &Span,
) -> Vec<String> {
    let mut broken = Vec::new();
    for (writer, (held, ledger)) in rows.iter().zip(ledgers).enumerate() {
        let expected = moment[writer].map(rows_after).unwrap_or_default();
        if *held != expected {
            broken.push(format!("writer {writer}: rows {held:?} where {expected:?} would be whole"));
        }
        let included = moment[writer].map_or(0, |number| number as usize + 1);
        let acknowledged_before =
            ledger.iter().take_while(|entry| entry.acknowledged.is_some_and(|at| at < span.started)).count();
        let sent_by_the_end = ledger.iter().take_while(|entry| entry.sent <= span.ended).count();
        if included < acknowledged_before {
            broken.push(format!(
                "writer {writer}: {acknowledged_before} writes were acknowledged before the start, {included} are included"
            ));
        }
        if included > sent_by_the_end {
            broken.push(format!(
                "writer {writer}: {included} writes are included, {sent_by_the_end} were sent by the end"
            ));
        }
    }
    // Of all included writes, the last one sent: every write acknowledged before it was sent must be included too.
    let last_sent = moment
        .iter()
        .zip(ledgers)
        .filter_map(|(number, ledger)| ledger.get((*number)? as usize).map(|entry| entry.sent))
        .max();
    for (writer, (number, ledger)) in moment.iter().zip(ledgers).enumerate() {
        let first_missing = ledger.get(number.map_or(0, |number| number as usize + 1));
        if let (Some(last_sent), Some(at)) = (last_sent, first_missing.and_then(|entry| entry.acknowledged))
            && at < last_sent
        {
            broken.push(format!(
                "writer {writer}: a missing write was acknowledged {:?} before an included one was sent",
                last_sent - at
            ));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two writers that take turns, with a millisecond per step: sent, acknowledged, sent, acknowledged.
    fn ledgers(start: Instant) -> Vec<Ledger> {
        let at = |ms: u64| start + Duration::from_millis(ms);
        (0..2)
            .map(|writer| {
                (0..200)
                    .map(|n| Entry {
                        sent: at(4 * n + 2 * writer),
                        acknowledged: Some(at(4 * n + 2 * writer + 1)),
                    })
                    .collect()
            })
            .collect()
    }

    fn check(moment: [u64; 2], spoil: impl Fn(&mut Vec<Vec<(String, u64)>>), expected_broken: usize) {
        let start = clock::now();
        let span =
            Span { started: start + Duration::from_millis(400), ended: start + Duration::from_millis(600) };
        let mut rows: Vec<_> = moment.iter().map(|number| rows_after(*number)).collect();
        spoil(&mut rows);
        let found: Vec<Option<u64>> =
            rows.iter().map(|rows| rows.iter().map(|(_, number)| *number).max()).collect();
        let broken = broken_rules(&rows, &found, &ledgers(start), &span);
        assert_eq!(broken.len(), expected_broken, "{moment:?}: {broken:?}");
    }

    #[test]
    fn moments_are_told_from_what_is_none() {
        check([120, 120], |_| (), 0);
        // Writer 0 goes first in every round, so it may be one ahead.
        check([121, 120], |_| (), 0);
        // Writer 1's write 121 was sent after writer 0's was acknowledged.
        check([120, 121], |_| (), 1);
        check([125, 120], |_| (), 1);
        // Before the start, and after the end.
        check([90, 90], |_| (), 2);
        check([160, 160], |_| (), 2);
        // A torn batch, an older row, a missing row.
        check([123, 122], |rows| rows[0][4].1 -= 4, 1);
        check([121, 121], |rows| rows[1][12].1 -= 20, 1);
        check([121, 121], |rows| drop(rows[1].remove(3)), 1);
    }

    #[test]
    fn rows_hold_the_last_write_of_each() {
        let rows = rows_after(103);
        assert_eq!(rows.len() as u64, BATCH_ROW_COUNT + 15, "{rows:?}");
        assert!(rows.iter().filter(|(row, _)| row.starts_with("batch")).all(|(_, number)| *number == 103));
        for early in [0, 5] {
            assert_eq!(rows_after(early).last().map(|(_, number)| *number), Some(early));
        }
    }
}
