//! The systems compared, each a process of its own: how it is started, what it costs, how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::request::Signer;
use crate::response::ResponseReader;
use crate::{Error, clock};

const READY_TEXT: &str = "Table service is successfully listening at http://";
const START_TIMEOUT: Duration = Duration::from_secs(120);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Linux counts process time in these for user space, whatever the kernel's own tick is.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Durable,
    InMemory,
    Hello,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Durable, Kind::InMemory, Kind::Hello];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Durable => "durable",
            Kind::InMemory => "in memory",
            Kind::Hello => "hello world",
        }
    }
}

pub struct System {
    pub kind: Kind,
    pub address: SocketAddr,
    /// From the start of the process to its first answer.
    pub first_answer: Duration,
    /// Resident memory right after that answer.
    pub idle_bytes: Option<u64>,
    child: Child,
}

impl System {
    pub fn start(kind: Kind, server: &Path, data: &Path) -> Result<System, Error> {
        let mut command = match kind {
            Kind::Hello => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["hello", "--port", "0"]);
                command
            }
            Kind::Durable | Kind::InMemory => {
                let mut command = Command::new(server);
                command.args(["serve", "--tableHost", "127.0.0.1", "--tablePort", "0", "--silent"]);
                command.env_remove("LAZULITE_ACCOUNTS");
                if kind == Kind::Durable {
                    command.arg("--location").arg(data);
                } else {
                    command.arg("--in-memory");
                }
                command
            }
        };
        let start = clock::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
        let address = wait_until_ready(&mut child, kind)?;
        let mut system = System { kind, address, first_answer: Duration::ZERO, idle_bytes: None, child };
        system.ask(&Signer::new()?.list_tables(), 200)?;
        system.first_answer = clock::now().duration_since(start);
        system.idle_bytes = system.memory_bytes("VmRSS:");
        Ok(system)
    }

    /// One request outside any measurement. The answer's text, provided that it has the expected status.
    pub fn ask(&self, request: &[u8], expected: u16) -> Result<String, Error> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_nodelay(true)?;
        stream.write_all(request)?;
        let mut reader = ResponseReader::new();
        loop {
            let count = stream.read(reader.space())?;
            if count == 0 {
                return Err(format!("{} closed the connection instead of answering", self.kind.name()).into());
            }
            match reader.advance(count)? {
                Some(status) if status == expected || self.kind == Kind::Hello => return Ok(reader.text()),
                Some(_) => {
                    let (name, answer) = (self.kind.name(), reader.text());
                    return Err(
                        format!("{name}: expected status {expected}, not this answer:\n{answer}").into()
                    );
                }
                None => {}
            }
        }
    }

    /// Processor time used so far, by all threads.
    pub fn cpu(&self) -> Option<Duration> {
        process_cpu(&self.child.id().to_string())
    }

    /// A line of the process's memory status, such as `VmRSS:` or `VmHWM:` (the peak).
    pub fn memory_bytes(&self, line: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let rest = status.lines().find_map(|text| text.strip_prefix(line))?;
        let kibibytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// Ends it the polite way and says how long that took.
    pub fn stop(mut self) -> Result<Duration, Error> {
        let start = clock::now();
        let pid = self.child.id().to_string();
        let signalled = cfg!(unix) && Command::new("kill").args(["-TERM", &pid]).status()?.success();
        if !signalled {
            self.child.kill()?;
        }
        self.child.wait()?;
        Ok(clock::now().duration_since(start))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of this process, the generator.
pub fn own_cpu() -> Option<Duration> {
    process_cpu("self")
}

/// How many processes wanted a core during the last minute: a busy machine measures its other tenants too.
pub fn load_average() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

fn process_cpu(process: &str) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain blanks; utime and stime are the 12th and 13th fields after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(Duration::from_secs_f64((user + system) / TICKS_PER_SECOND))
}

fn wait_until_ready(child: &mut Child, kind: Kind) -> Result<SocketAddr, Error> {
    let stdout = child.stdout.take().ok_or("the server has no standard output")?;
    let (found, ready) = mpsc::channel();
    // The thread reads on after the ready line, or the server would block on a full pipe.
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once(READY_TEXT) {
                let _ = found.send(address.trim().trim_end_matches('/').to_owned());
            }
        }
    });
    let deadline: Instant = clock::now() + START_TIMEOUT;
    loop {
        match ready.recv_timeout(Duration::from_millis(200)) {
            Ok(address) => return address.parse().map_err(|_| format!("'{address}' is no address").into()),
            Err(_) => {
                if let Some(status) = child.try_wait()? {
                    return Err(format!("{} ended before it was ready: {status}", kind.name()).into());
                }
                if clock::now() > deadline {
                    let _ = child.kill();
                    return Err(format!("{} never said that it listens", kind.name()).into());
                }
            }
        }
    }
}

/// A directory for the durable server's data, removed at the end.
pub struct DataDirectory(pub PathBuf);

impl DataDirectory {
    /// In the target directory unless told otherwise: the system's temporary directory is often memory, where a
    /// sync costs nothing and proves nothing.
    pub fn create(parent: Option<&Path>) -> Result<DataDirectory, Error> {
        let parent = match parent {
            Some(parent) => parent.to_owned(),
            None => {
                let program = std::env::current_exe()?;
                program.parent().and_then(Path::parent).ok_or("this program is nowhere")?.to_owned()
            }
        };
        let path = parent.join(format!("bench-data-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(DataDirectory(path))
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
