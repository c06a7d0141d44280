//! Commands that reach a running server while strangers hold connections to its control address.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use testkit::{Stopwatch, TempDir};

use crate::running::{Running, assert_private, run};

/// Far more than may run at the same time.
const STRANGER_COUNT: usize = 100;
/// Far less than a stranger may take to show a token.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(4);

/// Backs up and checks while `connect` makes connections that say part of a greeting and wait.
fn strangers_keep_nobody_out<S: Read + Write>(location: &Path, connect: impl Fn() -> S) {
    let words = ["", "l", "lazulite control 1 ", "GET / HTTP/1.1\r\n", "lazulite control 1 00ff back"];
    let mut strangers: Vec<S> = (0..STRANGER_COUNT)
        .map(|number| {
            let mut stranger = connect();
            // It may have been closed already, for one of those before it.
            let _ = stranger.write_all(words[number % words.len()].as_bytes());
            stranger
        })
        .collect();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let watch = Stopwatch::start();
    run(&["backup", &text(&location.join("b.lzb")), "-l", &text(location)], &[]);
    run(&["check", "-l", &text(location)], &[]);
    run(&["account", "add", "mine", "-l", &text(location)], &[]);
    assert!(watch.elapsed() < COMMAND_TIME_MAX * 3, "{:?}", watch.elapsed());
    // Those with a wrong token, and those that were closed, hear nothing.
    let mut liar = connect();
    liar.write_all(format!("lazulite control 1 {} check\n", "0".repeat(64)).as_bytes()).unwrap();
    for stranger in [&mut liar, &mut strangers[0]] {
        let mut heard = Vec::new();
        let _ = stranger.read_to_end(&mut heard);
        assert!(heard.is_empty(), "{heard:?}");
    }
}

#[cfg(unix)]
#[test]
fn strangers_at_the_socket_keep_nobody_out() {
    use std::os::unix::net::UnixStream;
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    let server = Running::over(location, &[]);
    let socket = location.join("control.sock");
    assert_private(&socket, 0o600);
    assert_private(&location.join("control"), 0o600);
    strangers_keep_nobody_out(location, || UnixStream::connect(&socket).unwrap());
    server.stop();
    assert!(!socket.exists(), "a server that stops leaves no socket");

    // A killed server leaves one, and the next takes its place.
    drop(Running::over(location, &[]));
    assert!(socket.exists());
    let _server = Running::over(location, &[]);
    run(&["check", "-l", location.to_str().unwrap()], &[]);
}

#[test]
fn strangers_at_the_port_keep_nobody_out_where_no_socket_can_be() {
    let directory = TempDir::new().unwrap();
    // No socket has such a long path.
    let location = directory.path().join("x".repeat(120));
    let server = Running::over(&location, &[]);
    let invitation = std::fs::read_to_string(location.join("control")).unwrap();
    let address = invitation.split(' ').next().unwrap().to_owned();
    strangers_keep_nobody_out(&location, || TcpStream::connect(&address).unwrap());
    server.stop();
}
