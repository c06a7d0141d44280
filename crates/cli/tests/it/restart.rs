//! Data, ETags, continuation tokens and the order of timestamps survive a stop and a start.

use testkit::{RawClient, Request, ServerProcess, TempDir, entity_json};

use crate::LAZULITE;
use crate::running::{Running, within};

const TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);

fn insert(server: &ServerProcess, row: &str, members: &str) -> String {
    let request = Request::post("/mytable").json(&entity_json("p", row, members));
    server.send(request).expect(201).required("ETag").to_owned()
}

/// Under `nohup` these tests ignore hang-ups, and a server that they start inherits that.
#[cfg(unix)]
fn ignores_hang_ups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & 1 != 0)
}

#[cfg(unix)]
#[test]
fn every_signal_to_stop_ends_gracefully() {
    let first = usize::from(ignores_hang_ups());
    for signal in &["HUP", "TERM", "INT"][first..] {
        let directory = TempDir::new().unwrap();
        let server = Running::over(directory.path(), &[]);
        server.send(Request::post("/Tables").json(r#"{"TableName":"mytable"}"#)).expect(201);
        // A request is under way: its head is sent, its payload is not.
        let request = Request::post("/mytable").json(&entity_json("p", "r", ""));
        let bytes = server.bytes_of(&request);
        let body = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let mut client = RawClient::connect(server.addr()).unwrap();
        client.send(&bytes[..body]).unwrap();
        // The server answers requests in the order in which it accepted their connections, so it has this one.
        server.send(Request::get("/Tables")).expect(200);
        let address = server.addr();
        let stopped = std::thread::scope(|scope| {
            let stopping = scope.spawn(|| server.stop_with(signal));
            // Once it accepts no more connections, it has seen the signal.
            assert!(within(TIME_MAX, || RawClient::connect(address).is_err()), "{signal}");
            client.send(&bytes[body..]).unwrap();
            assert_eq!(client.read_response(false).unwrap().status, 201, "{signal}");
            stopping.join().unwrap()
        });
        assert!(!stopped.contains("panicked"), "{stopped}");
        let server = Running::over(directory.path(), &[]);
        server.send(Request::get("/mytable(PartitionKey='p',RowKey='r')")).expect(200);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_was_told_to_ignore_hang_ups_does_so() {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh", LAZULITE]);
    let server = Running::start_command(
        shell,
        &["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &[],
    );
    let id = server.id().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "HUP", &id]).status().unwrap().success());
    std::thread::sleep(std::time::Duration::from_millis(300));
    server.send(Request::get("/Tables")).expect(200);
    server.stop();
}

#[test]
fn data_and_etags_survive_a_graceful_restart() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start(LAZULITE, directory.path());
    server.send(Request::post("/Tables").json(r#"{"TableName":"MyTable"}"#)).expect(201);
    server.send(Request::post("/Tables").json(r#"{"TableName":"gone"}"#)).expect(201);
    server.send(Request::delete("/Tables('gone')")).expect(204);
    let etag = insert(&server, "r", r#""x":"ü","n":"9","n@odata.type":"Edm.Int64""#);
    let before = server.send(Request::get("/mytable()")).expect(200);
    assert_eq!(server.stop(), Some(0));

    let server = ServerProcess::start(LAZULITE, directory.path());
    let after = server.send(Request::get("/mytable()")).expect(200);
    assert_eq!(after.json()["value"], before.json()["value"]);
    let tables = server.send(Request::get("/Tables")).json();
    assert_eq!(tables["value"], serde_json::json!([{ "TableName": "MyTable" }]));
    let path = "/mytable(PartitionKey='p',RowKey='r')";
    let response = server.send(Request::put(path).json("{}").header("If-Match", &etag)).expect(204);
    assert!(response.required("ETag") != etag);
}

#[test]
fn a_continuation_token_survives_a_restart() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start(LAZULITE, directory.path());
    server.send(Request::post("/Tables").json(r#"{"TableName":"mytable"}"#)).expect(201);
    for row in ["1", "2", "3"] {
        insert(&server, row, "");
    }
    let response = server.send(Request::get("/mytable()?$top=1")).expect(200);
    server.kill();
    let server = ServerProcess::start(LAZULITE, directory.path());
    let request = Request::get("/mytable()")
        .query("NextPartitionKey", response.required("x-ms-continuation-NextPartitionKey"))
        .query("NextRowKey", response.required("x-ms-continuation-NextRowKey"));
    let body = server.send(request).expect(200).json();
    let rows: Vec<_> =
        body["value"].as_array().unwrap().iter().map(|row| row["RowKey"].as_str().unwrap()).collect();
    assert_eq!(rows, ["2", "3"]);
}

#[test]
fn both_signals_end_it_gracefully() {
    for signal in ["TERM", "INT"] {
        let directory = TempDir::new().unwrap();
        let server = ServerProcess::start(LAZULITE, directory.path());
        // An idle connection does not delay the stop.
        let _idle = RawClient::connect(server.addr()).unwrap();
        let mut used = RawClient::connect(server.addr()).unwrap();
        used.exchange(&server.bytes_of(&Request::get("/Tables"))).unwrap();
        assert_eq!(server.stop_with(signal), Some(0), "SIG{signal}");
    }
}

#[test]
fn timestamps_move_forward_across_restarts() {
    let directory = TempDir::new().unwrap();
    let mut last = String::new();
    for round in 0..3 {
        let server = ServerProcess::start(LAZULITE, directory.path());
        if round == 0 {
            server.send(Request::post("/Tables").json(r#"{"TableName":"mytable"}"#)).expect(201);
        }
        for number in 0..5 {
            let etag = insert(&server, &format!("{round}-{number}"), "");
            assert!(sortable(&etag) > sortable(&last), "{etag} is not after {last}");
            last = etag;
        }
        server.kill();
    }
}

/// The etag's time with its fraction padded, so that it sorts as text.
fn sortable(etag: &str) -> String {
    let bare = etag.trim_start_matches("W/\"datetime'").trim_end_matches("Z'\"");
    let (seconds, fraction) = bare.split_once('.').unwrap_or((bare, ""));
    format!("{seconds}.{fraction:0<7}")
}
