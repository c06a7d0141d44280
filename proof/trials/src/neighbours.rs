//! Greedy neighbours for the trial `overload`: callers that announce or send payloads without end, writers that do not
//! read their long answers, and strangers that never finish a head.
//!
//! Owns: these three phases and their promises. Beside each of them a modest account writes entities that are large
//! enough to need memory for payloads; the trial says by how much it suffers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loadgen::clock;
use loadgen::histogram::Histogram;
use testkit::{Batch, Credentials, RawClient, Request, Sas, entity_json, system_now};

use crate::Error;
use crate::gauge::connection_count_max;
use crate::hoarders::{self, Appetite};
use crate::mix::{self, LARGE_TABLE, WRITE_TABLE};
use crate::overload::{Bench, memory_within_bound, quiet_down};
use crate::promises::{Promises, latencies};

/// The account that suffers. The emulator's account is the greedy one.
pub const MODEST_ACCOUNT: &str = "modest";
pub const MODEST_KEY: &str = "bW9kZXN0";
const MODEST_TABLE: &str = "modest";
const MODEST_ENTITY_BYTES: usize = 24_000;
const MODEST_INTERVAL: Duration = Duration::from_millis(20);
const MODEST_SUCCESS_SHARE_MIN: f64 = 0.99;
/// The generators share the processors with the server, and the greedy writers share its disk.
const MODEST_P99_MAX_US: f64 = 2e6;

const ANNOUNCER_COUNT: usize = 100;
const SENDER_COUNT: usize = 100;
const WRITER_COUNT: usize = 8;
const PAGE_HOARDER_COUNT: usize = 100;
const PAYLOAD_BYTES: usize = 4 << 20;

const ECHO_CLIENT_COUNT: usize = 100;
/// Requests that each of them sends: far more than the sockets hold answers for.
const ECHO_BATCH_COUNT: usize = 12;
const ECHO_KEY_CHARACTERS: usize = 500;
/// The longest host that is accepted.
const HOST_CHARACTERS: usize = 253;

/// One address may have 9,000 connections, and the modest account has the same address.
const HEAD_COUNT_MAX: usize = 8_900;
const HEAD_BYTES: usize = 125 * 1024;
const OTHER_FILE_COUNT: usize = 300;
const WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// What the modest account saw.
#[derive(Default)]
struct Modest {
    accepted: Histogram,
    refused: u64,
    wrong: Vec<String>,
}

impl Modest {
    fn share(&self) -> f64 {
        let accepted = self.accepted.total() as f64;
        accepted / (accepted + self.refused as f64 + self.wrong.len() as f64).max(1.0)
    }

    /// Writes one entity after the other until `over` is set.
    fn run_until(address: SocketAddr, name: &str, over: &AtomicBool) -> Result<Modest, Error> {
        let credentials = Credentials::new(MODEST_ACCOUNT, MODEST_KEY);
        let members = format!("\"Text\":\"{}\"", "m".repeat(MODEST_ENTITY_BYTES));
        let mut modest = Modest::default();
        let mut client = RawClient::connect(address)?;
        for number in 0.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let json = entity_json(name, &format!("{number:09}"), &members);
            let bytes = Request::post(&format!("/{MODEST_TABLE}")).json(&json);
            let bytes = bytes.to_bytes(address, &credentials, system_now());
            let started: Instant = clock::now();
            match client.exchange(&bytes) {
                Ok(response) if response.status == 201 => {
                    modest.accepted.record(clock::now().saturating_duration_since(started));
                }
                Ok(response) if response.status == 503 => modest.refused += 1,
                Ok(response) => modest.wrong.push(format!("{response:?}")),
                Err(error) => {
                    modest.wrong.push(error.to_string());
                    client = RawClient::connect(address)?;
                }
            }
            std::thread::sleep(MODEST_INTERVAL);
        }
        Ok(modest)
    }

    fn run_for(address: SocketAddr, name: &str, duration: Duration) -> Result<Modest, Error> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let modest = scope.spawn(|| Modest::run_until(address, name, &over));
            std::thread::sleep(duration);
            over.store(true, Ordering::Relaxed);
            modest.join().expect("the modest client does not panic")
        })
    }

    fn judge(&self, quiet: &Modest, beside: &str, promises: &mut Promises) {
        println!("      modest writes alone: {}", latencies(&quiet.accepted));
        println!(
            "      modest writes beside {beside}: {}; {} refused, {} wrong",
            latencies(&self.accepted),
            self.refused,
            self.wrong.len()
        );
        if let Some(wrong) = self.wrong.first() {
            println!("      the first wrong answer: {wrong}");
        }
        let (before_us, now_us) = (quiet.accepted.percentile_us(0.99), self.accepted.percentile_us(0.99));
        promises.check(
            self.share() >= MODEST_SUCCESS_SHARE_MIN && now_us <= MODEST_P99_MAX_US,
            &format!(
                "a modest account's writes succeed beside {beside}: {:.2} %, p99 {:.1} ms, {:.1} times the quiet one",
                self.share() * 100.0,
                now_us / 1e3,
                now_us / before_us.max(1.0)
            ),
        );
    }
}

fn modest_alone(bench: &Bench, name: &str) -> Result<Modest, Error> {
    let credentials = Credentials::new(MODEST_ACCOUNT, MODEST_KEY);
    let create = Request::post("/Tables").json(&format!("{{\"TableName\":\"{MODEST_TABLE}\"}}"));
    let bytes = create.to_bytes(bench.address, &credentials, system_now());
    let status = RawClient::connect(bench.address)?.exchange(&bytes)?.status;
    if ![201, 409].contains(&status) {
        return Err(format!("the modest account's table: {status}").into());
    }
    Modest::run_for(bench.address, &format!("{name}-alone"), bench.seconds / 2)
}

/// One account takes everything it can get: payload memory, answer memory, the commit queue.
pub fn greedy(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    println!(
        "\n  greedy: {ANNOUNCER_COUNT} callers announce 4 MiB and send nothing, {SENDER_COUNT} never send the last byte, \
         {WRITER_COUNT} write large batches, {PAGE_HOARDER_COUNT} do not read large pages"
    );
    let quiet = modest_alone(bench, "greedy")?;
    let address = bench.address;
    let sas = Sas::table("2019-02-02", WRITE_TABLE).set("sp", "r").sign(&Credentials::emulator());
    let body = vec![b' '; PAYLOAD_BYTES];
    let request = Request::post("/$batch").sas(&sas).body("multipart/mixed; boundary=b", body);
    let bytes = request.to_bytes(address, &Credentials::emulator(), system_now());
    let (head, all_but_one) = (&bytes[..bytes.len() - PAYLOAD_BYTES], &bytes[..bytes.len() - 1]);
    let page = mix::large_page()?;
    let over = &AtomicBool::new(false);
    let watch = bench.gauge.watch();
    let (answered, written) = (&AtomicU64::new(0), &AtomicU64::new(0));
    let modest = std::thread::scope(|scope| {
        let mut loads = vec![
            scope.spawn(move || keep_sending(address, head, ANNOUNCER_COUNT, answered, over)),
            scope.spawn(move || keep_sending(address, all_but_one, SENDER_COUNT, answered, over)),
            scope.spawn(|| {
                hoarders::run_until(address, &page, PAGE_HOARDER_COUNT, Appetite::None, over).map(|_| ())
            }),
        ];
        loads.extend((0..WRITER_COUNT).map(|_| scope.spawn(move || write_batches(address, written, over))));
        std::thread::sleep(Duration::from_secs(2));
        let modest = Modest::run_for(address, "greedy", bench.seconds);
        over.store(true, Ordering::Relaxed);
        for load in loads {
            load.join().expect("a greedy client does not panic")?;
        }
        modest
    })?;
    println!(
        "      greedy callers: {} refused or given up, {} large batches written",
        answered.load(Ordering::Relaxed),
        written.load(Ordering::Relaxed)
    );
    modest.judge(&quiet, "a greedy account", promises);
    let connections = ANNOUNCER_COUNT + SENDER_COUNT + WRITER_COUNT + PAGE_HOARDER_COUNT;
    memory_within_bound(watch.peak_bytes(), connections, promises);
    quiet_down(bench)
}

/// Keeps this many connections open, each of which has sent the bytes as far as the server takes them. One that is
/// answered or closed is opened again.
fn keep_sending(
    address: SocketAddr,
    bytes: &[u8],
    count: usize,
    answered: &AtomicU64,
    over: &AtomicBool,
) -> Result<(), Error> {
    let mut streams: Vec<Option<(TcpStream, usize)>> = (0..count).map(|_| None).collect();
    let mut scratch = [0; 1024];
    while !over.load(Ordering::Relaxed) {
        for place in &mut streams {
            let (stream, sent) = match place {
                Some(open) => (&mut open.0, &mut open.1),
                None => {
                    let stream = TcpStream::connect(address)?;
                    stream.set_nonblocking(true)?;
                    let open = place.insert((stream, 0));
                    (&mut open.0, &mut open.1)
                }
            };
            while let Some(rest) = bytes.get(*sent..).filter(|rest| !rest.is_empty()) {
                match stream.write(rest) {
                    Ok(count) => *sent += count,
                    Err(_) => break,
                }
            }
            // Anything but "nothing yet" ends this attempt.
            if !matches!(stream.read(&mut scratch), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
            {
                answered.fetch_add(1, Ordering::Relaxed);
                *place = None;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn write_batches(address: SocketAddr, written: &AtomicU64, over: &AtomicBool) -> Result<(), Error> {
    use loadgen::generator::Requests;
    let mut batches = mix::LargeBatches::new()?;
    let mut client = RawClient::connect(address)?;
    let mut bytes = Vec::new();
    while !over.load(Ordering::Relaxed) {
        batches.next(0, &mut bytes);
        match client.exchange(&bytes) {
            Ok(response) => drop(written.fetch_add(u64::from(response.status == 202), Ordering::Relaxed)),
            Err(_) => client = RawClient::connect(address)?,
        }
    }
    Ok(())
}

/// Answers that repeat their request many times over, to clients that do not read.
pub fn echo(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    println!(
        "\n  echo: {ECHO_CLIENT_COUNT} clients send {ECHO_BATCH_COUNT} batches each, whose answers repeat keys and host, and never read"
    );
    let quiet = modest_alone(bench, "echo")?;
    let watch = bench.gauge.watch();
    let mut sent_bytes = 0;
    let mut clients = Vec::with_capacity(ECHO_CLIENT_COUNT);
    for client in 0..ECHO_CLIENT_COUNT {
        let mut stream = TcpStream::connect(bench.address)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        for number in 0..ECHO_BATCH_COUNT {
            let bytes = echoing_batch(bench, client, number);
            // When the server no longer reads, it holds as many answers as it will.
            if stream.write_all(&bytes).is_err() {
                break;
            }
            sent_bytes += bytes.len();
        }
        clients.push(stream);
    }
    let modest = Modest::run_for(bench.address, "echo", bench.seconds)?;
    println!("      {} KiB were sent", sent_bytes / 1024);
    modest.judge(&quiet, "unread echoes", promises);
    memory_within_bound(watch.peak_bytes(), ECHO_CLIENT_COUNT, promises);
    drop(clients);
    quiet_down(bench)
}

fn echoing_batch(bench: &Bench, client: usize, number: usize) -> Vec<u8> {
    let spaces = " ".repeat(ECHO_KEY_CHARACTERS);
    let insert = |batch: Batch, row: usize| {
        let json = entity_json(&format!("{client}-{number}{spaces}"), &format!("{row}{spaces}"), "");
        let accept = [("Accept", "application/json;odata=fullmetadata")];
        batch.operation("POST", &format!("/{LARGE_TABLE}"), &accept, Some(&json))
    };
    let request = (0..100).fold(Batch::new(), insert).request().header("Host", &"h".repeat(HOST_CHARACTERS));
    request.to_bytes(bench.address, &Credentials::emulator(), system_now())
}

/// Strangers whose heads never end.
pub fn heads(bench: &Bench, promises: &mut Promises) -> Result<(), Error> {
    let count = HEAD_COUNT_MAX.min(connection_count_max(OTHER_FILE_COUNT)?);
    println!("\n  heads: {count} strangers send {} KiB of a head and never finish it", HEAD_BYTES / 1024);
    let quiet = modest_alone(bench, "heads")?;
    let watch = bench.gauge.watch();
    let mut head = b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\n".to_vec();
    while head.len() < HEAD_BYTES {
        head.extend_from_slice(format!("x-{}: {}\r\n", head.len(), "y".repeat(4000)).as_bytes());
    }
    let mut strangers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(bench.address)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        // The server may close it meanwhile.
        let _ = stream.write_all(&head);
        strangers.push(stream);
    }
    let modest = Modest::run_for(bench.address, "heads", bench.seconds)?;
    let mut open = 0;
    for stream in &mut strangers {
        stream.set_nonblocking(true)?;
        open += usize::from(
            matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
        );
    }
    println!("      {open} of them are still connected");
    modest.judge(&quiet, "unfinished heads", promises);
    memory_within_bound(watch.peak_bytes(), count, promises);
    drop(strangers);
    quiet_down(bench)
}
