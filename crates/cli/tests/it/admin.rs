//! The admin port of the binary: where it listens, what is printed about it, its token; and the log's formats.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use testkit::{RawClient, Request, Response, ServerProcess, run_to_exit};

use crate::{LAZULITE, refusal};

const LINE: &str = "Explorer and metrics at http://";

fn start(arguments: &[&str], environment: &[(&str, &str)]) -> ServerProcess {
    let all = [&["--in-memory", "--table-port", "0", "--queue-port", "0"][..], arguments].concat();
    ServerProcess::start_anywhere(LAZULITE, &all, environment)
}

/// The address and the token in the line about the admin port.
fn admin(server: &ServerProcess) -> (SocketAddr, Option<String>) {
    let line = server.line_with(LINE);
    let (authority, rest) = line.split_once(LINE).unwrap().1.split_once('/').unwrap();
    let port = authority.rsplit(':').next().unwrap().parse().unwrap();
    let token = rest.strip_prefix("?token=").map(str::to_owned);
    (SocketAddr::from(([127, 0, 0, 1], port)), token)
}

fn get(address: SocketAddr, path: &str, headers: &str) -> Response {
    let text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
    RawClient::connect(address).unwrap().exchange(text.as_bytes()).unwrap()
}

#[test]
fn the_admin_port_is_printed_and_answers() {
    let server = start(&["--admin-port", "0"], &[]);
    let (address, token) = admin(&server);
    assert_eq!(token, None, "nobody else reaches it");
    assert_eq!(get(address, "/readyz", "").expect(200).text(), "ready\n");
    server.send(Request::get("/Tables")).expect(200);
    let metrics = get(address, "/metrics", "").expect(200);
    let line =
        "lazulite_requests_total{service=\"table\",operation=\"Query Tables\",status=\"200\",error=\"\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
    assert!(metrics.text().contains(concat!(
        "lazulite_build_info{version=\"",
        env!("CARGO_PKG_VERSION"),
        "\"} 1\n"
    )));
    let status = get(address, "/api/status", "").expect(200).json();
    assert_eq!(status["services"][0]["address"], server.addr().to_string());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn others_need_the_token_that_is_printed_even_by_a_silent_server() {
    let far = ["--admin-host", "0.0.0.0", "--admin-port", "0", "--allow-well-known-key", "--silent"];
    let server = start(&far, &[]);
    let (address, token) = admin(&server);
    let token = token.unwrap();
    assert_eq!(token.len(), 48);
    get(address, "/healthz", "").expect(200);
    get(address, "/metrics", "").expect(401);
    get(address, "/metrics", &format!("Authorization: Bearer {token}\r\n")).expect(200);

    let own = [("LAZULITE_ADMIN_TOKEN", "a-token-of-my-own")];
    let server = start(&["--admin-port", "0"], &own);
    let (address, token) = admin(&server);
    assert_eq!(token, None, "a token that somebody chose does not belong into logs");
    get(address, "/metrics", "").expect(401);
    get(address, "/metrics", "Authorization: Bearer a-token-of-my-own\r\n").expect(200);
    for bad in ["short", "with spaces in it, and more"] {
        let sentence = refusal(&["--in-memory"], &[("LAZULITE_ADMIN_TOKEN", bad)]);
        assert!(sentence.contains("LAZULITE_ADMIN_TOKEN must have") && !sentence.contains(bad), "{sentence}");
    }
}

#[test]
fn a_chosen_port_must_be_free_and_the_usual_one_need_not() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let sentence =
        refusal(&["--in-memory", "--table-port", "0", "--queue-port", "0", "--admin-port", &port], &[]);
    assert!(sentence.contains(&port) && sentence.contains("--no-admin"), "{sentence}");
    // The first one gets the usual port, unless another test has it.
    let taken = "No explorer and no metrics: another program has 127.0.0.1:10003";
    let first = start(&[], &[]);
    let line = first.line_with("xplorer");
    if !line.contains(taken) {
        let second = start(&[], &[]);
        let line = second.line_with("xplorer");
        assert!(line.contains(taken), "{line}");
        second.send(Request::get("/Tables")).expect(200);
    }
    let none = start(&["--no-admin"], &[]);
    let rest = none.rest_of_stdout();
    assert!(!rest.contains("xplorer"), "{rest}");
}

#[test]
fn what_must_stay_on_this_machine_does_not_leave_it_through_the_admin_port() {
    let sentence = refusal(&["--in-memory", "--admin-host", "0.0.0.0"], &[]);
    assert!(sentence.contains("--allow-well-known-key"), "{sentence}");
    let sentence = refusal(&["--in-memory", "--log", "xml"], &[]);
    assert!(sentence.contains("choose text or json"), "{sentence}");
    let sentence = refusal(&["--in-memory", "--log-level", "loud"], &[]);
    assert!(sentence.contains("choose error, warn, info or debug"), "{sentence}");
    assert!(run_to_exit(LAZULITE, &["--help"], &[]).status.success());
}

/// A server that logs requests to a pipe, and the address of its tables.
fn start_logging(arguments: &str) -> (Child, SocketAddr) {
    let mut child = Command::new(LAZULITE)
        .args("--in-memory --table-port 0 --queue-port 0 --no-admin --access-log".split(' '))
        .args(arguments.split(' '))
        .env_remove("LAZULITE_ACCOUNTS")
        .env_remove("AZURITE_ACCOUNTS")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut greeting = [0; 512];
    let count = child.stdout.as_mut().unwrap().read(&mut greeting).unwrap();
    let greeting = String::from_utf8_lossy(&greeting[..count]).into_owned();
    let address = greeting.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    (child, address.parse().unwrap())
}

fn terminate(child: &Child) {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn logs_are_json_lines_when_asked_for() {
    let (child, address) = start_logging("--log json --slow-ms 0");
    let answer = get(address, "/devstoreaccount1/t()?sig=verysecret", "").expect(403);
    terminate(&child);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("verysecret"), "{text}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let id = answer.required("x-ms-request-id");
    let of_request =
        |target: &str| lines.iter().any(|line| line["target"] == target && line["request_id"] == id);
    assert!(of_request("access") && of_request("slow"), "{text}");
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let (mut child, address) = start_logging("--log text");
    let path = format!("/devstoreaccount1/{}", "x".repeat(200));
    let mut client = RawClient::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    // Far more than a pipe holds, and more than wait in memory.
    for _ in 0..6000 {
        assert_eq!(client.exchange(request.as_bytes()).unwrap().status, 404);
    }
    let mut errors = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).unwrap();
        text
    });
    get(address, &path, "").expect(404);
    terminate(&child);
    assert!(child.wait().unwrap().success());
    let text = reader.join().unwrap();
    assert!(
        text.contains("lines of the log were left out, because standard error was not read"),
        "{}",
        text.len()
    );
}
