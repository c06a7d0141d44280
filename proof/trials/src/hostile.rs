//! Hostile queries for the trial `overload`: filters that match little or nothing over many rows, thousands of `or`
//! terms, deep nesting.
//!
//! Owns: the queries and their promises. Each page arrives within a query's time budget plus a margin for a busy
//! machine. The continuation of an incomplete result always advances. Paging ends with exactly the matching rows. While
//! many such queries run, point reads of other clients are delayed by a bounded factor only.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadgen::histogram::Histogram;
use loadgen::request::row_key;
use protocol::table::wire::continuation::decode;
use testkit::{Credentials, RawClient, Request, Response, Stopwatch, percent_encode, system_now};

use crate::Error;
use crate::light_client;
use crate::mix;
use crate::overload::{Bench, memory_within_bound, quiet_down};
use crate::promises::{Promises, latencies};

const TABLE: &str = "hostile";
/// The time budget of a query, and what a busy machine may add to it.
const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
const PAGE_TIME_MARGIN: Duration = Duration::from_secs(3);
/// A filter may have 64 KiB, and so may its URL, in which a blank takes three bytes. Our filters fill the URL.
const FILTER_BYTES_AS_SENT: usize = 62_000;
/// Two brackets per level; a filter may be nested 800 deep.
const BRACKET_LEVEL_COUNT: usize = 350;
/// Odd, so that this many negations of a condition that is always true match nothing.
const NEGATION_COUNT: usize = 351;
const QUERY_COUNT_AT_ONCE: usize = 16;
const PAGE_COUNT_MAX: usize = 10_000;
const READ_FACTOR_MAX: f64 = 50.0;
const READ_P99_FLOOR_US: f64 = 1e6;
const READ_P99_MAX_US: f64 = 5e6;

struct QueryShape {
    name: &'static str,
    filter: String,
    /// The row keys of all matching rows.
    matching: BTreeSet<String>,
}

pub fn run(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    println!("\n  hostile queries over {} rows", bench.rows);
    mix::create_table(bench.address, TABLE)?;
    let watch = Stopwatch::start();
    mix::fill(bench.address, TABLE, bench.rows)?;
    println!("    loaded in {:.1} s", watch.elapsed().as_secs_f64());
    quiet_down(bench)?;
    let memory = bench.gauge.watch();
    let shapes = shapes(bench.rows);
    for shape in &shapes {
        alone(bench, shape, promises)?;
    }
    many_at_once(bench, &shapes, promises)?;
    memory_within_bound(memory.peak_bytes(), QUERY_COUNT_AT_ONCE + 4, promises);
    quiet_down(bench)
}

/// All rows have the same properties, so a filter on properties matches all or none of them.
fn shapes(rows: u64) -> Vec<QueryShape> {
    let last = row_key(rows - 1);
    let middle = row_key(rows / 2);
    let mut terms = String::from("Age eq 1");
    let mut number = 1000;
    while percent_encode(&terms).len() < FILTER_BYTES_AS_SENT {
        terms.push_str(&format!(" or Age eq {number}"));
        number += 1;
    }
    let with_a_hit = format!("{terms} or RowKey eq '{middle}'");
    let mut keys = format!("RowKey eq '{last}'");
    let mut number = 0;
    while percent_encode(&keys).len() < FILTER_BYTES_AS_SENT {
        keys.push_str(&format!(" or RowKey eq 'x{number}'"));
        number += 1;
    }
    // Every left side is false and every middle one true, so the innermost comparison decides.
    let mut nested = String::from("RowKey eq 'nobody'");
    for level in 0..BRACKET_LEVEL_COUNT {
        nested = format!("(Age eq {} or (Age eq 36 and {nested}))", 1000 + level);
    }
    let negations = format!("{}Age eq 36{}", "not (".repeat(NEGATION_COUNT), ")".repeat(NEGATION_COUNT));
    let one = |key: &str| BTreeSet::from([key.to_owned()]);
    let nothing = BTreeSet::new();
    vec![
        QueryShape {
            name: "a filter that matches nothing",
            filter: "Note eq 'nothing'".to_owned(),
            matching: nothing.clone(),
        },
        QueryShape { name: "thousands of or terms on a property", filter: terms, matching: nothing.clone() },
        QueryShape {
            name: "thousands of or terms, one of which matches",
            filter: with_a_hit,
            matching: one(&middle),
        },
        QueryShape { name: "thousands of row keys without a partition", filter: keys, matching: one(&last) },
        QueryShape { name: "nested brackets", filter: nested, matching: nothing.clone() },
        QueryShape { name: "nested negations", filter: negations, matching: nothing },
    ]
}

/// Pages through one query while nothing else runs, and compares the rows it finds.
fn alone(bench: &Bench, shape: &QueryShape, promises: &mut Promises) -> Result<(), Error> {
    let mut found = BTreeSet::new();
    let mut query = Query::new(bench, shape)?;
    let mut pages = Histogram::new();
    let watch = Stopwatch::start();
    let mut finished = false;
    while !finished && pages.total() < PAGE_COUNT_MAX as u64 {
        match query.page()? {
            Page::Answer { took, rows, end } => {
                pages.record(took);
                found.extend(rows);
                finished = end;
            }
            Page::Refused => std::thread::sleep(Duration::from_millis(100)),
            Page::Wrong(words) => {
                promises.check(false, &format!("{}: {words}", shape.name));
                return Ok(());
            }
        }
    }
    println!(
        "    {} ({} bytes of filter): {} pages in {:.1} s, {:.0} rows per second; a page {}",
        shape.name,
        shape.filter.len(),
        pages.total(),
        watch.elapsed().as_secs_f64(),
        bench.rows as f64 / watch.elapsed().as_secs_f64(),
        latencies(&pages)
    );
    promises.check(
        finished && found == shape.matching && pages.longest() <= PAGE_TIME_MAX + PAGE_TIME_MARGIN,
        &format!(
            "{}: ends with {} of {} matching rows, the longest page {:.2} s",
            shape.name,
            found.intersection(&shape.matching).count(),
            shape.matching.len(),
            pages.longest().as_secs_f64()
        ),
    );
    Ok(())
}

/// Runs many queries of all shapes at once, with the light client beside them.
fn many_at_once(bench: &Bench, shapes: &[QueryShape], promises: &mut Promises) -> Result<(), Error> {
    let quiet = light_client::run_for(bench.address, "calm", bench.seconds / 2);
    let over = AtomicBool::new(false);
    let (beside, outcomes) = std::thread::scope(|scope| {
        let over = &over;
        let queries: Vec<_> = (0..QUERY_COUNT_AT_ONCE)
            .map(|index| scope.spawn(move || page_until(bench, &shapes[index % shapes.len()], over)))
            .collect();
        std::thread::sleep(Duration::from_secs(1));
        let beside = light_client::run_for(bench.address, "hostile", bench.seconds);
        over.store(true, Ordering::Relaxed);
        let outcomes: Result<Vec<Crowd>, Error> =
            queries.into_iter().map(|query| query.join().expect("a query does not panic")).collect();
        (beside, outcomes)
    });
    let mut crowd = Crowd::default();
    for outcome in outcomes? {
        crowd.pages.add(&outcome.pages);
        crowd.refused += outcome.refused;
        crowd.wrong.extend(outcome.wrong);
    }
    println!(
        "    {QUERY_COUNT_AT_ONCE} of them at once: {} pages, {}, {} refused",
        crowd.pages.total(),
        latencies(&crowd.pages),
        crowd.refused
    );
    println!(
        "      point reads alone: {}; beside them: {}",
        latencies(&quiet.reads),
        latencies(&beside.reads)
    );
    println!(
        "      inserts alone: {}; beside them: {}",
        latencies(&quiet.inserts),
        latencies(&beside.inserts)
    );
    let first = crowd.wrong.first().map(String::as_str).unwrap_or_default();
    promises.check(
        crowd.wrong.is_empty() && crowd.pages.longest() <= PAGE_TIME_MAX + PAGE_TIME_MARGIN,
        &format!(
            "each of their pages is right and in time, the longest {:.2} s {first}",
            crowd.pages.longest().as_secs_f64()
        ),
    );
    let (before_us, now_us) = (quiet.reads.percentile_us(0.99), beside.reads.percentile_us(0.99));
    promises.check(
        now_us <= (before_us * READ_FACTOR_MAX).clamp(READ_P99_FLOOR_US, READ_P99_MAX_US)
            && beside.wrong.is_empty()
            && beside.refused_at_first == 0
            && beside.starved == 0,
        &format!(
            "point reads of others go on: p99 {:.1} ms, {:.1} times the quiet one, {} refused, {} wrong, {} starved",
            now_us / 1e3,
            now_us / before_us.max(1.0),
            beside.refused_at_first,
            beside.wrong.len(),
            beside.starved
        ),
    );
    Ok(())
}

#[derive(Default)]
struct Crowd {
    pages: Histogram,
    refused: u64,
    wrong: Vec<String>,
}

fn page_until(bench: &Bench, shape: &QueryShape, over: &AtomicBool) -> Result<Crowd, Error> {
    let mut crowd = Crowd::default();
    let mut query = Query::new(bench, shape)?;
    while !over.load(Ordering::Relaxed) {
        match query.page()? {
            Page::Answer { took, rows, .. } => {
                crowd.pages.record(took);
                if let Some(row) = rows.iter().find(|row| !shape.matching.contains(*row)) {
                    crowd.wrong.push(format!("{}: row {row} does not match", shape.name));
                }
            }
            Page::Refused => {
                crowd.refused += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
            Page::Wrong(words) => {
                crowd.wrong.push(format!("{}: {words}", shape.name));
                break;
            }
        }
    }
    Ok(crowd)
}

enum Page {
    Answer { took: Duration, rows: Vec<String>, end: bool },
    Refused,
    Wrong(String),
}

/// One query, page after page. After its end it starts again.
struct Query<'a> {
    bench: &'a Bench,
    shape: &'a QueryShape,
    client: RawClient,
    next: Option<(String, String)>,
    /// The keys that the continuation `next` encodes.
    place: Option<(String, String)>,
}

impl<'a> Query<'a> {
    fn new(bench: &'a Bench, shape: &'a QueryShape) -> Result<Query<'a>, Error> {
        Ok(Query { bench, shape, client: RawClient::connect(bench.address)?, next: None, place: None })
    }

    fn page(&mut self) -> Result<Page, Error> {
        let mut request = Request::get(&format!("/{TABLE}()")).query("$filter", &self.shape.filter);
        if let Some((partition, row)) = &self.next {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let bytes = request.to_bytes(self.bench.address, &Credentials::emulator(), system_now());
        let watch = Stopwatch::start();
        let response = match self.client.exchange(&bytes) {
            Ok(response) => response,
            Err(error) => return Ok(Page::Wrong(format!("no answer after {:?}: {error}", watch.elapsed()))),
        };
        let took = watch.elapsed();
        if response.status == 503 && response.error_code() == "ServerBusy" {
            self.client = RawClient::connect(self.bench.address)?;
            return Ok(Page::Refused);
        }
        if response.status != 200 {
            return Ok(Page::Wrong(format!("{response:?}")));
        }
        let next = continuation(&response);
        let place = next.as_ref().map(place).transpose()?;
        if place.is_some() && place <= self.place {
            return Ok(Page::Wrong(format!(
                "the continuation {place:?} does not advance from {:?}",
                self.place
            )));
        }
        let end = next.is_none();
        (self.next, self.place) = (next, place);
        let json = response.json();
        let rows = json["value"].as_array().map(Vec::as_slice).unwrap_or_default();
        let rows = rows.iter().map(|row| row["RowKey"].as_str().unwrap_or_default().to_owned()).collect();
        Ok(Page::Answer { took, rows, end })
    }
}

fn continuation(response: &Response) -> Option<(String, String)> {
    let partition = response.header("x-ms-continuation-NextPartitionKey")?;
    Some((
        partition.to_owned(),
        response.header("x-ms-continuation-NextRowKey").unwrap_or_default().to_owned(),
    ))
}

/// Decodes a continuation. It is opaque to clients, but ours encode keys, so a later one is greater.
fn place((partition, row): &(String, String)) -> Result<(String, String), Error> {
    let decode = |token: &str| decode(token).map_err(|error| format!("the continuation {token}: {error:?}"));
    Ok((decode(partition)?, decode(row)?))
}
