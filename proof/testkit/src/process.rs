//! The real binary as a child process, on a free port, with a directory that outlives it.
//!
//! Promises: the process never outlives its [`ServerProcess`], and a start or stop that hangs fails the test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use crate::request::Dialect;
use crate::sign::Credentials;
use crate::time::{Stopwatch, system_now};
use crate::{RawClient, Request, Response};

const READY: &str = "Table service is successfully listening at http://";
const QUEUE_READY: &str = "Queue service is successfully listening at http://";
const BLOB_READY: &str = "Blob service is successfully listening at http://";
const START_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server. Dropping it kills the process.
pub struct ServerProcess {
    child: Child,
    addr: SocketAddr,
    credentials: Credentials,
    /// In a mutex only so that threads can share the process.
    lines: Mutex<mpsc::Receiver<String>>,
    /// The output up to and including the ready line.
    greeting: String,
    queue_addr: OnceLock<SocketAddr>,
    blob_addr: OnceLock<SocketAddr>,
}

impl ServerProcess {
    /// Starts on a free port with the data in `location`.
    pub fn start(binary: &str, location: &Path) -> ServerProcess {
        ServerProcess::start_with(
            binary,
            location,
            &["--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
            &[],
        )
    }

    /// Starts with these arguments after `--location`, and these environment variables.
    pub fn start_with(
        binary: &str,
        location: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> ServerProcess {
        let location = location.to_str().expect("a temporary directory has a plain name");
        // The subcommand, if there is one, comes before the options.
        let (subcommand, options) = match arguments.split_first() {
            Some((word, options)) if !word.starts_with('-') => (Some(*word), options),
            _ => (None, arguments),
        };
        let all: Vec<&str> =
            subcommand.into_iter().chain(["--location", location]).chain(options.iter().copied()).collect();
        ServerProcess::start_anywhere(binary, &all, environment)
    }

    /// Starts with exactly these arguments.
    pub fn start_anywhere(binary: &str, arguments: &[&str], environment: &[(&str, &str)]) -> ServerProcess {
        let mut child = command(binary, environment).args(arguments).spawn().expect("the binary starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            // Keeps reading after the ready line, so that the child never blocks on a full pipe.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let watch = Stopwatch::start();
        let mut greeting = String::new();
        let addr = loop {
            let left = START_TIMEOUT.saturating_sub(watch.elapsed());
            let Ok(line) = receiver.recv_timeout(left) else {
                let _ = child.kill();
                let mut stderr = String::new();
                let _ = child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut stderr));
                panic!("no ready line; stdout:\n{greeting}\nstderr:\n{stderr}");
            };
            greeting.push_str(&line);
            greeting.push('\n');
            if line.contains(READY) {
                break address_in(&line, READY);
            }
        };
        let errors = child.stderr.take();
        std::thread::spawn(move || {
            let _ = errors.map(|mut pipe| std::io::copy(&mut pipe, &mut std::io::sink()));
        });
        ServerProcess {
            child,
            addr: reachable(addr),
            credentials: Credentials::emulator(),
            lines: Mutex::new(receiver),
            greeting,
            queue_addr: OnceLock::new(),
            blob_addr: OnceLock::new(),
        }
    }

    /// Where the Queue service listens: the line after the ready line tells.
    pub fn queue_addr(&self) -> SocketAddr {
        *self.queue_addr.get_or_init(|| reachable(address_in(&self.line_with(QUEUE_READY), QUEUE_READY)))
    }

    /// Where the Blob service listens: the line after that of the Queue service tells.
    pub fn blob_addr(&self) -> SocketAddr {
        self.queue_addr();
        *self.blob_addr.get_or_init(|| reachable(address_in(&self.line_with(BLOB_READY), BLOB_READY)))
    }

    /// Sends to the Blob service.
    #[track_caller]
    pub fn send_blob(&self, request: Request) -> Response {
        let mut client = RawClient::connect(self.blob_addr()).expect("the server accepts a connection");
        let bytes = request.in_dialect(Dialect::Blob, self.blob_addr(), &self.credentials, system_now());
        client.exchange(&bytes).expect("the server answers")
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The output up to and including the ready line.
    pub fn greeting(&self) -> &str {
        &self.greeting
    }

    /// The next line on stdout after the ready line that contains `part`.
    #[track_caller]
    pub fn line_with(&self, part: &str) -> String {
        let watch = Stopwatch::start();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match lines.recv_timeout(START_TIMEOUT.saturating_sub(watch.elapsed())) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(_) => panic!("no line with {part:?} on stdout"),
            }
        }
    }

    pub fn bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_bytes(self.addr, &self.credentials, system_now())
    }

    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        let mut client = RawClient::connect(self.addr).expect("the server accepts a connection");
        client.exchange(&self.bytes_of(&request)).expect("the server answers")
    }

    /// Stops it gracefully. Returns its output after the ready line.
    pub fn rest_of_stdout(self) -> String {
        self.signal("TERM");
        let mut rest = String::new();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(line) = lines.recv_timeout(STOP_TIMEOUT) {
            rest.push_str(&line);
            rest.push('\n');
        }
        drop(lines);
        rest
    }

    /// `kill -9`: the process can neither flush nor print anything.
    pub fn kill(mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("a killed process ends");
    }

    /// Asks it to stop (SIGTERM) and waits. Returns the exit code.
    pub fn stop(self) -> Option<i32> {
        self.stop_with("TERM")
    }

    pub fn stop_with(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        let watch = Stopwatch::start();
        while watch.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server did not stop within {STOP_TIMEOUT:?}");
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill runs");
        assert!(status.success(), "kill -s {name} {id}");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in a ready line.
fn address_in(line: &str, ready: &str) -> SocketAddr {
    let rest = line.split_once(ready).map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', ' ']).next().unwrap_or_default();
    authority.parse().unwrap_or_else(|_| panic!("no address in the ready line: {line}"))
}

/// The address at which a client on this machine reaches a server that listens on `addr`.
fn reachable(addr: SocketAddr) -> SocketAddr {
    if addr.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], addr.port())) } else { addr }
}

/// Runs the binary until it exits. If it does not exit in time, it is killed and the test fails.
#[track_caller]
pub fn run_to_exit(binary: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut child = command(binary, environment).args(arguments).spawn().expect("the binary starts");
    let watch = Stopwatch::start();
    while child.try_wait().expect("a child can be waited for").is_none() {
        if watch.elapsed() > START_TIMEOUT {
            let _ = child.kill();
            let output = child.wait_with_output().expect("a killed process ends");
            panic!("{arguments:?} keeps running: {output:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("an ended process has its output")
}

fn command(binary: &str, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary);
    command.env_remove("LAZULITE_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
    command.envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
