//! `kill -9` under load, again and again over one growing directory: every acknowledged write is there, no batch is
//! torn, and the server is back within a second.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use serde_json::Value;
use testkit::{
    Batch, RawClient, Request, ServerProcess, Stopwatch, TempDir, batch_parts, entity_json, entity_path,
};

use crate::LAZULITE;

const WRITER_COUNT: usize = 16;
const ROUND_COUNT: usize = 10;
const BATCH_ROW_COUNT: u64 = 10;
const MERGE_PROPERTY_COUNT: u64 = 40;
/// The kill comes after a random number of acknowledged writes below this one.
const ROUND_PROMISES_MAX: usize = 1000;
const STALLED_AFTER: Duration = Duration::from_secs(10);
const BACK_WITHIN: Duration = Duration::from_secs(1);

/// One writer's attempts and acknowledgements for one kind of write. At most one attempt is open at the kill.
#[derive(Clone, Copy, Default)]
struct Progress {
    tried: u64,
    acknowledged: u64,
}

/// Inserts, merges and batches of one writer, each in a partition of its own.
#[derive(Clone, Copy, Default)]
struct Writer {
    inserts: Progress,
    merges: Progress,
    batches: Progress,
}

/// Sends writes until the server is gone, and reports each acknowledgement on the channel.
fn write_until_killed(server: &ServerProcess, number: usize, writer: &mut Writer, acknowledged: Sender<()>) {
    let mut client = RawClient::connect(server.addr()).unwrap();
    loop {
        for (progress, request) in [
            (&mut writer.inserts, insert as fn(usize, u64) -> Request),
            (&mut writer.merges, merge),
            (&mut writer.batches, batch),
        ] {
            progress.tried += 1;
            if !send(server, &mut client, &request(number, progress.tried)) {
                return;
            }
            progress.acknowledged = progress.tried;
            let _ = acknowledged.send(());
        }
    }
}

/// Whether the write was acknowledged. A broken connection means the kill; any other status fails the test.
fn send(server: &ServerProcess, client: &mut RawClient, request: &Request) -> bool {
    let Ok(response) = client.exchange(&server.bytes_of(request)) else { return false };
    assert!([201, 202, 204].contains(&response.status), "{response:?}");
    if response.status == 202 {
        assert!(batch_parts(&response).iter().all(|part| part.status == 204), "{response:?}");
    }
    true
}

fn insert(writer: usize, number: u64) -> Request {
    let body = entity_json(&format!("i{writer}"), &format!("{number:08}"), &format!("\"n\":{number}"));
    Request::post("/crash").json(&body)
}

fn merge(writer: usize, number: u64) -> Request {
    let path = entity_path("crash", &format!("m{writer}"), "row");
    let property = number % MERGE_PROPERTY_COUNT;
    Request::merge(&path).json(&format!("{{\"n\":{number},\"p{property}\":{number}}}"))
}

/// Replaces ten rows with the batch's number, and inserts one row named after it.
fn batch(writer: usize, number: u64) -> Request {
    let partition = format!("b{writer}");
    let mut batch = Batch::new();
    for row in 0..BATCH_ROW_COUNT {
        let json = format!("{{\"n\":{number}}}");
        batch =
            batch.operation("PUT", &entity_path("crash", &partition, &format!("r{row}")), &[], Some(&json));
    }
    batch.insert("crash", &entity_json(&partition, &format!("s{number:08}"), "")).request()
}

/// A partition's rows by row key.
fn rows(server: &ServerProcess, partition: &str) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    let filter = format!("PartitionKey eq '{partition}'");
    let first = Request::get("/crash()").query("$filter", &filter);
    let mut request = first.clone();
    loop {
        let response = server.send(request).expect(200);
        for row in response.json()["value"].as_array().unwrap() {
            rows.insert(row["RowKey"].as_str().unwrap().to_owned(), row.clone());
        }
        let Some(next) = response.header("x-ms-continuation-NextPartitionKey") else { return rows };
        request = first.clone().query("NextPartitionKey", next);
        request = request.query("NextRowKey", response.required("x-ms-continuation-NextRowKey"));
    }
}

/// Checks the state after the kill: everything acknowledged is there, and the open attempt happened completely or not
/// at all. Later rounds build on the state found here.
fn verify(server: &ServerProcess, number: usize, writer: &mut Writer) {
    let inserted = rows(server, &format!("i{number}"));
    for (row, entity) in &inserted {
        assert_eq!(entity["n"], row.parse::<u64>().unwrap(), "writer {number}: a row holds its own number");
    }
    let found = inserted.len() as u64;
    decided(&mut writer.inserts, found, number, "inserts");
    assert!(inserted.keys().eq((1..=found).map(|n| format!("{n:08}")).collect::<Vec<_>>().iter()));

    let merged = rows(server, &format!("m{number}"));
    let entity = merged.get("row").cloned().unwrap_or_default();
    let found = entity["n"].as_u64().unwrap_or(0);
    decided(&mut writer.merges, found, number, "merges");
    for property in 0..MERGE_PROPERTY_COUNT {
        // The last merge up to `found` that wrote this property.
        let expected = (found / MERGE_PROPERTY_COUNT * MERGE_PROPERTY_COUNT + property)
            .checked_sub(if property > found % MERGE_PROPERTY_COUNT { MERGE_PROPERTY_COUNT } else { 0 })
            .filter(|written| *written > 0);
        assert_eq!(
            entity[format!("p{property}")].as_u64(),
            expected,
            "writer {number}: p{property} of {found}"
        );
    }

    let batched = rows(server, &format!("b{number}"));
    let numbers: Vec<_> =
        (0..BATCH_ROW_COUNT).map(|row| batched.get(&format!("r{row}")).map(|r| r["n"].clone())).collect();
    assert!(numbers.iter().all(|n| *n == numbers[0]), "writer {number}: a torn batch: {numbers:?}");
    let found = numbers[0].as_ref().map_or(0, |n| n.as_u64().unwrap());
    decided(&mut writer.batches, found, number, "batches");
    let inserted = batched.keys().filter(|row| row.starts_with('s'));
    assert!(
        inserted.eq((1..=found).map(|n| format!("s{n:08}")).collect::<Vec<_>>().iter()),
        "writer {number}"
    );
}

#[track_caller]
fn decided(progress: &mut Progress, found: u64, writer: usize, what: &str) {
    let Progress { tried, acknowledged } = *progress;
    assert!(
        acknowledged <= found && found <= tried,
        "writer {writer}, {what}: {acknowledged} acknowledged, {tried} tried, {found} found"
    );
    *progress = Progress { tried: found, acknowledged: found };
}

#[test]
fn what_was_acknowledged_survives_kill_9_and_no_batch_is_torn() {
    let seed = fastrand::u64(..);
    println!("seed {seed} decides only when the kills come");
    let mut random = fastrand::Rng::with_seed(seed);
    let directory = TempDir::new().unwrap();
    let mut writers = [Writer::default(); WRITER_COUNT];
    let server = ServerProcess::start(LAZULITE, directory.path());
    server.send(Request::post("/Tables").json(r#"{"TableName":"crash"}"#)).expect(201);
    server.kill();
    for round in 0..ROUND_COUNT {
        let watch = Stopwatch::start();
        let server = ServerProcess::start(LAZULITE, directory.path());
        let probe = Request::post("/crash").json(&entity_json("probe", &round.to_string(), ""));
        server.send(probe).expect(201);
        let back = watch.elapsed();
        assert!(back < BACK_WITHIN, "round {round}: writing again took {back:?}");
        for (number, writer) in writers.iter_mut().enumerate() {
            verify(&server, number, writer);
        }
        let promises = random.usize(1..ROUND_PROMISES_MAX);
        println!("round {round}: back after {back:?}, to be killed after {promises} promises");
        run_and_kill(server, &mut writers, promises);
    }
    let server = ServerProcess::start(LAZULITE, directory.path());
    for (number, writer) in writers.iter_mut().enumerate() {
        verify(&server, number, writer);
    }
    assert_eq!(rows(&server, "probe").len(), ROUND_COUNT);
}

/// Lets the writers run until `promises` writes were acknowledged, then kills the server under them.
fn run_and_kill(server: ServerProcess, writers: &mut [Writer], promises: usize) {
    let killed = AtomicBool::new(false);
    let (sender, acknowledged) = mpsc::channel();
    let stalled = std::thread::scope(|scope| {
        let (server, killed) = (&server, &killed);
        for (number, writer) in writers.iter_mut().enumerate() {
            let sender = sender.clone();
            scope.spawn(move || {
                write_until_killed(server, number, writer, sender);
                assert!(killed.load(Ordering::SeqCst), "the connection broke before the kill");
            });
        }
        let stalled = (0..promises).find(|_| acknowledged.recv_timeout(STALLED_AFTER).is_err());
        killed.store(true, Ordering::SeqCst);
        // Kill first: only then do the writers end, whatever else fails.
        server.signal("KILL");
        stalled
    });
    assert_eq!(stalled, None, "no write was acknowledged for {STALLED_AFTER:?}");
    server.kill();
}
