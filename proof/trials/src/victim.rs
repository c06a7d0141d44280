//! The real binary as a trial needs it: it may refuse to start or die at any moment, and its output on standard error
//! is kept.
//!
//! Owns: the child process, its standard error, and one kept-alive connection for single requests. Promises: nothing
//! that the server does causes a panic here. Leaves to the trial: judging what the server does.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use testkit::{Credentials, RawClient, Request, Response, Stopwatch, system_now};

use crate::Error;

const READY: &str = "Table service is successfully listening at http://";
const QUEUE_READY: &str = "Queue service is successfully listening at http://";
const BLOB_READY: &str = "Blob service is successfully listening at http://";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// A log line is written by another thread than the one that answers.
const WORDS_TIMEOUT: Duration = Duration::from_secs(5);
const EXIT_POLL: Duration = Duration::from_millis(2);
/// 32 bytes in Base64, with which servers on a remote engine keep their accounts.
const ACCOUNTS_KEY: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
/// What a Rust program prints on standard error when it panics.
const PANIC: &str = "panicked at";

/// How to start the server.
#[derive(Clone)]
pub struct Launch {
    pub binary: PathBuf,
    pub location: PathBuf,
    pub environment: Vec<(String, String)>,
    /// The URL of a remote engine, in place of the directory.
    pub engine: Option<String>,
    /// Further arguments.
    pub arguments: Vec<String>,
}

/// A server that did not start, with its own explanation.
#[derive(Debug)]
pub struct Refusal {
    /// `None` if it was ended by a signal, or had to be killed because it neither served nor exited.
    pub code: Option<i32>,
    pub words: String,
}

/// A running server. Dropping it kills the process.
pub struct Victim {
    /// In a mutex only so that one thread can kill it while others use it.
    child: Mutex<Child>,
    addr: SocketAddr,
    queue_addr: SocketAddr,
    blob_addr: SocketAddr,
    credentials: Credentials,
    words: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    connection: Mutex<Option<RawClient>>,
}

impl Launch {
    pub fn new(binary: &Path, location: &Path) -> Launch {
        Launch {
            binary: binary.to_owned(),
            location: location.to_owned(),
            environment: Vec::new(),
            engine: None,
            arguments: Vec::new(),
        }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_remove("LAZULITE_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
        // A report needs to know that it panicked and where, but not the whole stack.
        command.env("RUST_BACKTRACE", "0");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Spawns the process without waiting until it listens.
    pub fn spawn(&self) -> Result<Child, Error> {
        let mut command = self.command();
        match &self.engine {
            // Not as an argument: everybody on the machine can read those, and it holds a password.
            Some(url) => command.env("LAZULITE_ENGINE", url).env("LAZULITE_ACCOUNTS_KEY", ACCOUNTS_KEY),
            None => command.arg("--location").arg(&self.location),
        };
        command.args(["--table-port", "0", "--queue-port", "0", "--blob-port", "0"]).args(&self.arguments);
        let spawned = command.spawn();
        spawned.map_err(|error| format!("cannot start {}: {error}", self.binary.display()).into())
    }

    /// Starts a backup of the running server into a file beside its directory, replacing an earlier one.
    pub fn backup(&self, name: &str) -> Result<Child, Error> {
        let file = self.location.with_file_name(name);
        let _ = std::fs::remove_file(&file);
        let mut command = self.command();
        // Its output is not needed.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.arg("backup").arg(file).arg("--location").arg(&self.location).spawn()?)
    }

    /// Makes the server, or this command if none is running, give back the contents of blobs that nobody uses: purging an
    /// account that does not exist does that and nothing else. A running server answers before it has begun.
    pub fn sweep(&self) -> Command {
        let mut command = self.command();
        command.args(["account", "purge", "nobody", "--location"]).arg(&self.location);
        command
    }

    /// Runs `lazulite check`. Returns its words, and whether it found nothing.
    pub fn check(&self) -> Result<(bool, String), Error> {
        let output = self.command().arg("check").arg("--location").arg(&self.location).output()?;
        let words = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
    }

    /// Starts the server and waits until it listens. The outer error is the trial's own, the inner one the server's
    /// refusal.
    pub fn start(&self) -> Result<Result<Victim, Refusal>, Error> {
        let mut child = self.spawn()?;
        let stdout = child.stdout.take().ok_or("standard output is piped")?;
        let stderr = child.stderr.take().ok_or("standard error is piped")?;
        let words = Arc::new(Mutex::new(String::new()));
        let reader = std::thread::spawn({
            let words = words.clone();
            move || listen(stderr, &words)
        });
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Keeps reading after the ready line, so that the child never blocks on a full pipe.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let watch = Stopwatch::start();
        // A server on a remote engine has no blobs, unless it is told where their contents are.
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let (mut table, mut queue, mut blob) = (None, None, self.engine.as_ref().map(|_| nowhere));
        let (addr, queue_addr, blob_addr) = loop {
            if let (Some(addr), Some(queue_addr), Some(blob_addr)) = (table, queue, blob) {
                break (addr, queue_addr, blob_addr);
            }
            match lines.recv_timeout(START_TIMEOUT.saturating_sub(watch.elapsed())) {
                Ok(line) => {
                    table = address_in(&line, READY)?.or(table);
                    queue = address_in(&line, QUEUE_READY)?.or(queue);
                    blob = address_in(&line, BLOB_READY)?.or(blob);
                }
                Err(_) => {
                    let _ = child.kill();
                    let code = child.wait()?.code();
                    let _ = reader.join();
                    let words = lock(&words).clone();
                    return Ok(Err(Refusal { code, words }));
                }
            }
        };
        Ok(Ok(Victim {
            child: Mutex::new(child),
            addr,
            queue_addr,
            blob_addr,
            credentials: Credentials::emulator(),
            words,
            reader: Some(reader),
            connection: Mutex::new(None),
        }))
    }
}

impl Victim {
    pub fn bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_bytes(self.addr, &self.credentials, system_now())
    }

    pub fn connect(&self) -> std::io::Result<RawClient> {
        RawClient::connect(self.addr)
    }

    /// Sends a request over the kept connection. An error means that the connection broke; the next request gets a new
    /// one.
    pub fn ask(&self, request: &Request) -> std::io::Result<Response> {
        let mut kept = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = match kept.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let response = client.exchange(&self.bytes_of(request))?;
        if !response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            *kept = Some(client);
        }
        Ok(response)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where the Queue service listens.
    pub fn queue_addr(&self) -> SocketAddr {
        self.queue_addr
    }

    /// Where the Blob service listens, if the engine is the embedded one.
    pub fn blob_addr(&self) -> SocketAddr {
        self.blob_addr
    }

    pub fn id(&self) -> u32 {
        lock(&self.child).id()
    }

    /// Whether the process has exited.
    pub fn has_ended(&self) -> bool {
        matches!(lock(&self.child).try_wait(), Ok(Some(_)))
    }

    /// `kill -9`, even while other threads use it.
    pub fn kill(&self) {
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Asks it to stop (SIGTERM), so that it finishes the requests it has accepted.
    pub fn terminate(&self) -> Result<(), Error> {
        let id = self.id().to_string();
        let status = Command::new("kill").args(["-s", "TERM", &id]).status()?;
        if status.success() { Ok(()) } else { Err("kill -s TERM does not work".into()) }
    }

    /// Waits until it has printed this on standard error, or for some seconds.
    pub fn wait_for_words(&self, part: &str) {
        let watch = Stopwatch::start();
        while watch.elapsed() < WORDS_TIMEOUT && !lock(&self.words).contains(part) {
            std::thread::sleep(EXIT_POLL);
        }
    }

    /// Kills it if it still runs. Returns everything it printed on standard error.
    pub fn finish(mut self) -> String {
        self.kill();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        lock(&self.words).clone()
    }

    /// Waits until it exits; `None` if it does not.
    pub fn wait(&self) -> Option<ExitStatus> {
        let watch = Stopwatch::start();
        while watch.elapsed() < STOP_TIMEOUT {
            if let Ok(Some(status)) = lock(&self.child).try_wait() {
                return Some(status);
            }
            std::thread::sleep(EXIT_POLL);
        }
        None
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The address in a ready line; `None` if it is another line.
fn address_in(line: &str, ready: &str) -> Result<Option<SocketAddr>, Error> {
    let Some((_, rest)) = line.split_once(ready) else { return Ok(None) };
    let authority = rest.split(['/', ' ']).next().unwrap_or_default();
    Ok(Some(authority.parse().map_err(|_| format!("no address in: {line}"))?))
}

/// Whether this output is that of a process that panicked.
pub fn panicked(words: &str) -> bool {
    words.contains(PANIC)
}

fn listen(stderr: impl Read, words: &Mutex<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let mut words = lock(words);
        words.push_str(&line);
        words.push('\n');
    }
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
