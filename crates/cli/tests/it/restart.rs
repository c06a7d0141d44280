//! Data, ETags, continuation tokens and the order of timestamps survive a stop and a start.

use testkit::{RawClient, Request, ServerProcess, TempDir, entity_json};

use crate::LAZULITE;

fn insert(server: &ServerProcess, row: &str, members: &str) -> String {
    let request = Request::post("/mytable").json(&entity_json("p", row, members));
    server.send(request).expect(201).required("ETag").to_owned()
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
