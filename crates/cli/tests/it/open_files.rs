//! Strangers that only hold connections do not take the files that the store needs.

use std::net::TcpStream;
use std::time::Duration;

use testkit::{RawClient, Request, TempDir, entity_json, entity_path};

use crate::running::Running;

const LIMIT: usize = 200;
/// More than are served with this limit.
const STRANGER_COUNT: usize = 150;

fn insert(row: usize) -> Request {
    let members = format!("\"x\":\"{}\"", "y".repeat(30_000));
    Request::post("/mytable").json(&entity_json("p", &format!("{row:04}"), &members))
}

#[test]
fn idle_strangers_do_not_stop_writes() {
    let directory = TempDir::new().unwrap();
    let server = Running::limited(&format!("-n {LIMIT}"), directory.path());
    assert!(server.said().contains("only 200 files may be open at once"), "{}", server.said());
    let mut client = RawClient::connect(server.addr()).unwrap();
    let create = Request::post("/Tables").json(r#"{"TableName":"mytable"}"#);
    assert_eq!(client.exchange(&server.bytes_of(&create)).unwrap().status, 201);
    // They have one address, so the server closes some of them. The rest is for other addresses.
    let strangers: Vec<TcpStream> =
        (0..STRANGER_COUNT).map(|_| TcpStream::connect(server.addr()).unwrap()).collect();
    server.line_with("has too many connections");
    for row in 0..200 {
        assert_eq!(client.exchange(&server.bytes_of(&insert(row))).unwrap().status, 201, "{row}");
    }
    drop(strangers);
    let read = server.bytes_of(&Request::get(&entity_path("mytable", "p", "0199")));
    // The server closes new connections until it has seen that the strangers are gone.
    let answered = (0..500).find_map(|_| {
        let answer = RawClient::connect(server.addr()).and_then(|mut client| client.exchange(&read));
        answer.inspect_err(|_| std::thread::sleep(Duration::from_millis(10))).ok()
    });
    assert_eq!(answered.map(|answer| answer.status), Some(200));
    let said = server.said();
    assert!(!said.contains("Too many open files"), "{said}");
    assert!(said.matches("too many connections").count() < 3, "{said}");
}

/// The handles that a process has open.
#[cfg(target_os = "linux")]
fn handle_count(server: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count()
}

#[cfg(target_os = "linux")]
#[test]
fn connections_leave_handles_to_the_store_even_if_the_limit_is_lowered() {
    const LOWERED: usize = 64;
    let directory = TempDir::new().unwrap();
    let server = Running::over(directory.path(), &[]);
    let limit = format!("--nofile={LOWERED}:{LOWERED}");
    let pid = server.id().to_string();
    assert!(std::process::Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success());
    let mut strangers: Vec<RawClient> =
        (0..STRANGER_COUNT).map(|_| RawClient::connect(server.addr()).unwrap()).collect();
    server.line_with("cannot accept a connection: the last file handles are kept for the store");
    // One connection waits with a handle of its own, for a moment with two; the system keeps the others waiting. With more
    // handles of its own than usual, which a parent may have left open, the server keeps fewer than sixteen.
    let count = handle_count(&server);
    assert!((LOWERED - 17..LOWERED - 4).contains(&count), "{count}");
    let mut last = strangers.pop().unwrap();
    drop(strangers);
    let list = server.bytes_of(&Request::get("/Tables"));
    assert_eq!(last.exchange(&list).unwrap().status, 200, "it was queued all the time");
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_is_raised_as_far_as_the_system_allows() {
    let directory = TempDir::new().unwrap();
    let server = Running::limited("-S -n 100", directory.path());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (soft, hard): (u64, u64) = (words[3].parse().unwrap(), words[4].parse().unwrap());
    assert_eq!(soft, hard.min(65_536), "{line}");
}
