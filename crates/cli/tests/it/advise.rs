//! `lazulite advise`: what a running server has found, over its data directory and over its admin port.

use testkit::{Request, ServerProcess, TempDir};

use crate::running::{Running, run};
use crate::{LAZULITE, refusal};

/// A table that is scanned for one of its properties.
fn scan(send: impl Fn(Request) -> testkit::Response) {
    send(Request::post("/Tables").json(r#"{"TableName":"People"}"#)).expect(201);
    for number in 0..60 {
        let entity =
            format!(r#"{{"PartitionKey":"p{number}","RowKey":"r","Email":"e{number}@example.org"}}"#);
        send(Request::post("/People").json(&entity)).expect(201);
    }
    for number in 0..5 {
        let filter = format!("Email eq 'e{number}@example.org'");
        send(Request::get("/People()").query("$filter", &filter)).expect(200);
    }
}

const TOKEN: &str = "0123456789abcdef";
const TITLE: &str = "1. Queries for Email scan the whole table People (low)";

#[test]
fn findings_are_told_over_the_data_directory() {
    let directory = TempDir::new().unwrap();
    let location = directory.path().join("data");
    let server = Running::over(&location, &["--no-admin"]);
    let location = location.to_str().unwrap();
    let (quiet, _) = run(&["advise", "-l", location], &[]);
    assert!(quiet.starts_with("Nothing to advise"), "{quiet}");
    scan(|request| server.send(request));
    let (words, _) = run(&["advise", "-l", location], &[]);
    for part in [TITLE, "Email eq String", "PeopleByEmail", "docs/patterns/inter_partition_index.md", " USD"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains("example.org"), "values stay where they are: {words}");
    let (json, _) = run(&["advise", "-l", location, "--json"], &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["findings"][0]["kind"], "table-scan");
    assert_eq!(json["findings"][0]["numbers"]["examined"], 300);
    assert_eq!(json["findings"][0]["numbers"]["returned"], 5);
}

#[test]
fn findings_are_told_over_the_admin_port() {
    let prices = TempDir::new().unwrap();
    let file = prices.path().join("prices.toml");
    std::fs::write(&file, "currency = \"EUR\"\n").unwrap();
    let arguments =
        ["--in-memory", "--table-port", "0", "--queue-port", "0", "--admin-port", "0", "--prices"];
    let arguments = [&arguments[..], &[file.to_str().unwrap()]].concat();
    let server = ServerProcess::start_anywhere(LAZULITE, &arguments, &[("LAZULITE_ADMIN_TOKEN", TOKEN)]);
    scan(|request| server.send(request));
    let line = server.line_with("Explorer and metrics at ");
    let url = line.split_once(" at ").unwrap().1.trim_end_matches('/');
    let (words, _) = run(&["advise", "--url", url, "--token", TOKEN], &[]);
    assert!(words.contains(TITLE) && words.contains(" EUR"), "{words}");
    assert!(refusal(&["advise", "--url", url], &[]).contains("needs the token"));
}

#[test]
fn a_server_that_is_not_there_is_said_so() {
    let directory = TempDir::new().unwrap();
    let location = directory.path().to_str().unwrap();
    refusal(&["advise", "-l", location], &[]);
    assert!(refusal(&["advise", "--url", "http://127.0.0.1:1"], &[]).contains("does not answer"));
    assert!(refusal(&["advise", "--url", "https://127.0.0.1:1"], &[]).contains("-l DIR"));
    assert!(refusal(&["advise", "--url", "http://x", "-l", location], &[]).contains("not both"));
    let missing = directory.path().join("none.toml");
    let missing = missing.to_str().unwrap();
    assert!(refusal(&["--prices", missing, "--in-memory"], &[]).contains("none.toml"));
}
