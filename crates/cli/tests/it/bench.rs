//! `lazulite bench`: every workload runs without errors, and no table is left behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use testkit::{Request, ServerProcess, run_to_exit};

use crate::{LAZULITE, refusal};

fn server() -> (ServerProcess, String) {
    let server = ServerProcess::start_anywhere(
        LAZULITE,
        &["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &[],
    );
    let url = format!("http://{}/devstoreaccount1", server.addr());
    (server, url)
}

#[track_caller]
fn nothing_is_left(server: &ServerProcess) {
    let tables = server.send(Request::get("/Tables")).expect(200).json();
    assert_eq!(tables["value"], serde_json::json!([]));
}

#[test]
fn every_workload_is_measured_and_the_table_deleted() {
    let (server, url) = server();
    let mut arguments =
        vec!["bench", "--url", &url, "--entities", "1000", "--seconds", "0.1", "--connections", "2"];
    let workloads = [
        "read",
        "read-miss",
        "insert",
        "upsert",
        "merge",
        "hot-merge",
        "batch",
        "page",
        "any-of",
        "filter",
        "scan",
        "mix",
    ];
    for workload in workloads {
        arguments.extend(["--workload", workload]);
    }
    let output = run_to_exit(LAZULITE, &arguments, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    // One line about loading, one heading, one line per workload.
    assert_eq!(text.lines().count(), 2 + workloads.len(), "{text}");
    nothing_is_left(&server);
}

#[test]
fn the_workloads_of_queues_are_measured_and_the_queue_deleted() {
    let (server, url) = server();
    let key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let queues = format!("http://{}/devstoreaccount1", server.queue_addr());
    let connection =
        format!("AccountName=devstoreaccount1;AccountKey={key};TableEndpoint={url};QueueEndpoint={queues};");
    let mut arguments = vec!["bench", "--connection-string", &connection];
    arguments.extend(["--entities", "1000", "--seconds", "0.3", "--connections", "8"]);
    let workloads = ["put-message", "take", "take-32", "peek"];
    for workload in workloads.iter().chain(&["read"]) {
        arguments.extend(["--workload", workload]);
    }
    let output = run_to_exit(LAZULITE, &arguments, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    // For each service one line about loading, one heading, one line per workload.
    assert_eq!(text.lines().count(), 2 + 1 + 2 + workloads.len(), "{text}");
    nothing_is_left(&server);
}

#[test]
fn the_open_loop_keeps_its_rate() {
    let (server, url) = server();
    let key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let connection = format!("AccountName=devstoreaccount1;AccountKey={key};TableEndpoint={url};");
    let arguments = [
        "bench",
        "--connection-string",
        &connection,
        "--entities",
        "1000",
        "--seconds",
        "1",
        "--rate",
        "50",
        "--workload",
        "read",
    ];
    let output = run_to_exit(LAZULITE, &arguments, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().last().unwrap();
    let rate: f64 = row.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!((40.0..60.0).contains(&rate), "{row}");
    nothing_is_left(&server);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_deletes_its_table() {
    let (server, url) = server();
    let mut child = Command::new(LAZULITE)
        .args(["bench", "--url", &url, "--entities", "1000", "--seconds", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Now the table is filled, and the measurement would take ten minutes.
    assert!(lines.next().unwrap().unwrap().contains("1000 entities loaded"));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    nothing_is_left(&server);
}

#[test]
fn what_cannot_be_measured_gets_one_sentence() {
    let check = |arguments: &[&str], part: &str| {
        let all: Vec<&str> = ["bench"].iter().chain(arguments).copied().collect();
        let sentence = refusal(&all, &[]);
        assert!(sentence.contains(part), "{arguments:?}: {sentence}");
    };
    check(&["--url", "https://127.0.0.1:1/x"], "https");
    check(&["--workload", "reed"], "there is no workload 'reed'");
    check(&["--seconds", "0"], "--seconds");
    // Nothing listens on that port.
    check(&["--url", "http://127.0.0.1:1/devstoreaccount1"], "127.0.0.1:1");
}
