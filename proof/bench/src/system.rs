//! The systems compared, each a process of its own: starts it, reads its costs, stops it.
//!
//! Promises: no process outlives its [`System`]. Leaves to others: the requests.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use loadgen::endpoint::{Endpoint, MeasuredService};
use loadgen::request::Signer;
use loadgen::workload::{Counter, WorkloadKind};
use loadgen::{Error, clock, process, table};
use serde::{Deserialize, Serialize};

use crate::results::ProcessCost;

const READY_TEXT: &str = "service is successfully listening at http://";
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// What the bare server answers when its answers are long: as much as a short blob.
pub const LONG_ANSWER_BYTES: usize = 4096;
/// The file of the file server, in its directory. It must be there when the server starts.
pub const SERVED_FILE: &str = "content";

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemKind {
    Durable,
    InMemory,
    Azurite,
    Hello,
    /// Lazulite on PostgreSQL, which `scale_out` compares.
    FrontEnd,
    /// The bare server with a longer answer, and with a file; `blobs` compares them.
    HelloLong,
    FileServer,
}

impl SystemKind {
    /// Those of the usual run.
    pub const ALL: [SystemKind; 4] =
        [SystemKind::Durable, SystemKind::InMemory, SystemKind::Azurite, SystemKind::Hello];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            SystemKind::Durable => "durable",
            SystemKind::InMemory => "in-memory",
            SystemKind::Azurite => "azurite",
            SystemKind::Hello => "hello",
            SystemKind::FrontEnd => "front-end",
            SystemKind::HelloLong => "hello-long",
            SystemKind::FileServer => "file-server",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            SystemKind::Durable => "Lazulite, durable",
            SystemKind::InMemory => "Lazulite, in memory",
            SystemKind::Azurite => "Azurite",
            SystemKind::Hello => "hello world",
            SystemKind::FrontEnd => "Lazulite, on PostgreSQL",
            SystemKind::HelloLong => "hello world, 4 KiB",
            SystemKind::FileServer => "bare file server",
        }
    }

    pub fn from_name(name: &str) -> Option<SystemKind> {
        SystemKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The programs to start.
pub struct Programs {
    pub server: PathBuf,
    /// Azurite's script for tables, run by node.
    pub azurite: Option<PathBuf>,
}

pub struct System {
    pub kind: SystemKind,
    pub endpoint: Endpoint,
    pub queue_endpoint: Endpoint,
    pub blob_endpoint: Endpoint,
    pub counter: Counter,
    /// From the start of the process to its first answer.
    pub first_answer: Duration,
    /// Resident memory right after that answer.
    pub idle_bytes: Option<u64>,
    child: Child,
    /// Azurite's queues are a program of their own.
    queue_child: Option<Child>,
}

impl System {
    /// Starts the system with a data directory of its own below `data`.
    pub fn start(kind: SystemKind, programs: &Programs, data: &Path) -> Result<System, Error> {
        System::start_on(kind, programs, data, None)
    }

    /// Starts a front end on the engine at this URL.
    pub fn start_front_end(programs: &Programs, data: &Path, engine: &str) -> Result<System, Error> {
        System::start_on(SystemKind::FrontEnd, programs, data, Some(engine))
    }

    fn start_on(
        kind: SystemKind,
        programs: &Programs,
        data: &Path,
        engine: Option<&str>,
    ) -> Result<System, Error> {
        let directory = data.join(kind.name());
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
        let mut azurite_addresses = None;
        let mut command = match kind {
            SystemKind::Hello | SystemKind::HelloLong => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["hello", "--port", "0"]);
                if kind == SystemKind::HelloLong {
                    command.args(["--bytes", &LONG_ANSWER_BYTES.to_string()]);
                }
                command
            }
            SystemKind::FileServer => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["files", "--port", "0", "--file"]).arg(directory.join(SERVED_FILE));
                command
            }
            SystemKind::Durable | SystemKind::InMemory | SystemKind::FrontEnd => {
                let mut command = Command::new(&programs.server);
                command.args([
                    "serve",
                    "--tableHost",
                    "127.0.0.1",
                    "--tablePort",
                    "0",
                    "--queuePort",
                    "0",
                    "--blobPort",
                    "0",
                    "--silent",
                ]);
                command.env_remove("LAZULITE_ACCOUNTS").env_remove("AZURITE_ACCOUNTS");
                match (kind, engine) {
                    // Several on one machine must not want the same admin port. The URL holds a password.
                    (_, Some(url)) => command.arg("--no-admin").env("LAZULITE_ENGINE", url),
                    (SystemKind::Durable, None) => command.arg("--location").arg(&directory),
                    (_, None) => command.arg("--in-memory"),
                };
                command
            }
            SystemKind::Azurite => {
                let address = free_address()?;
                azurite_addresses = Some([address, free_address()?]);
                azurite(programs, "table", address, &directory)?
            }
        };
        let start = clock::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
        // From here on, a failure drops the system and so ends the process.
        let mut system = System {
            kind,
            endpoint: Endpoint::development(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            queue_endpoint: Endpoint::development(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            blob_endpoint: Endpoint::development(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            counter: Counter::new(1.into()),
            first_answer: Duration::ZERO,
            idle_bytes: None,
            child,
            queue_child: None,
        };
        let addresses = match azurite_addresses {
            Some(addresses) => {
                system.wait_until_connected(addresses[0])?;
                // Its blobs are a system of their own (`start_azurite_blobs`).
                [addresses[0], addresses[1], addresses[0]]
            }
            // The bare server answers everything at one address.
            None if matches!(kind, SystemKind::Hello | SystemKind::HelloLong | SystemKind::FileServer) => {
                [system.wait_until_ready(1)?[0]; 3]
            }
            None => {
                let addresses = system.wait_until_ready(3)?;
                [addresses[0], addresses[1], addresses[2]]
            }
        };
        system.endpoint = Endpoint::development(addresses[0]);
        system.queue_endpoint = Endpoint::development(addresses[1]);
        system.blob_endpoint = Endpoint::development(addresses[2]);
        table::ask_for(&system.endpoint, &Signer::of(&system.endpoint)?.list_tables(), 200)?;
        system.first_answer = clock::now().duration_since(start);
        system.idle_bytes = system.memory_bytes("VmRSS:");
        if kind == SystemKind::Azurite {
            let mut command = azurite(programs, "queue", addresses[1], &directory)?;
            system.queue_child = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
            system.wait_until_connected(addresses[1])?;
        }
        Ok(system)
    }

    /// Starts Azurite's program for blobs, and none of its others.
    pub fn start_azurite_blobs(programs: &Programs, data: &Path) -> Result<System, Error> {
        let directory = data.join("azurite-blobs");
        std::fs::create_dir_all(&directory)?;
        let address = free_address()?;
        let mut command = azurite(programs, "blob", address, &directory)?;
        let start = clock::now();
        let endpoint = Endpoint::development(address);
        let mut system = System {
            kind: SystemKind::Azurite,
            endpoint: endpoint.clone(),
            queue_endpoint: endpoint.clone(),
            blob_endpoint: endpoint,
            counter: Counter::new(1.into()),
            first_answer: Duration::ZERO,
            idle_bytes: None,
            child: command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?,
            queue_child: None,
        };
        system.wait_until_connected(address)?;
        system.first_answer = clock::now().duration_since(start);
        system.idle_bytes = system.memory_bytes("VmRSS:");
        Ok(system)
    }

    /// Where the service of a workload is.
    pub fn endpoint_of(&self, kind: WorkloadKind) -> &Endpoint {
        match kind.service() {
            MeasuredService::Table => &self.endpoint,
            MeasuredService::Queue => &self.queue_endpoint,
        }
    }

    /// The process that serves tables, and in Lazulite everything.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The process that serves a workload.
    pub fn process_of(&self, kind: WorkloadKind) -> u32 {
        match (&self.queue_child, kind.service()) {
            (Some(child), MeasuredService::Queue) => child.id(),
            _ => self.child.id(),
        }
    }

    pub fn memory_bytes(&self, line: &str) -> Option<u64> {
        process::memory_bytes(self.child.id(), line)
    }

    /// What the process has cost so far.
    pub fn cost(&self) -> ProcessCost {
        ProcessCost {
            system: self.kind,
            first_answer_ms: self.first_answer.as_secs_f64() * 1000.0,
            idle_bytes: self.idle_bytes,
            end_bytes: self.memory_bytes("VmRSS:"),
            peak_bytes: self.memory_bytes("VmHWM:"),
        }
    }

    /// Stops it gracefully.
    pub fn stop(mut self) -> Result<(), Error> {
        if let Some(child) = &mut self.queue_child {
            child.kill()?;
            child.wait()?;
        }
        let pid = self.child.id().to_string();
        let signalled = cfg!(unix) && Command::new("kill").args(["-TERM", &pid]).status()?.success();
        if !signalled {
            self.child.kill()?;
        }
        self.child.wait()?;
        Ok(())
    }

    fn has_ended(&mut self) -> Result<(), Error> {
        match self.child.try_wait()? {
            Some(status) => Err(format!("{} ended before it was ready: {status}", self.kind.what()).into()),
            None => Ok(()),
        }
    }

    fn wait_until_connected(&mut self, address: SocketAddr) -> Result<(), Error> {
        let deadline = clock::now() + START_TIMEOUT;
        while clock::now() < deadline {
            if TcpStream::connect(address).is_ok() {
                return Ok(());
            }
            self.has_ended()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{} does not listen", self.kind.what()).into())
    }

    /// The addresses of so many services.
    fn wait_until_ready(&mut self, service_count: usize) -> Result<Vec<SocketAddr>, Error> {
        let stdout = self.child.stdout.take().ok_or("the server has no standard output")?;
        let (found, ready) = mpsc::channel();
        // The thread keeps reading after the ready line, or the server would block on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once(READY_TEXT) {
                    let _ = found.send(address.trim().trim_end_matches('/').to_owned());
                }
            }
        });
        let deadline = clock::now() + START_TIMEOUT;
        let mut addresses = Vec::new();
        loop {
            match ready.recv_timeout(Duration::from_millis(200)) {
                Ok(address) => {
                    addresses.push(address.parse().map_err(|_| format!("'{address}' is not an address"))?);
                    if addresses.len() == service_count {
                        return Ok(addresses);
                    }
                }
                Err(_) => self.has_ended()?,
            }
            if clock::now() > deadline {
                return Err(format!("{} never printed its ready line", self.kind.what()).into());
            }
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        for child in [Some(&mut self.child), self.queue_child.as_mut()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Azurite's program for a service.
fn azurite(
    programs: &Programs,
    service: &str,
    address: SocketAddr,
    directory: &Path,
) -> Result<Command, Error> {
    let tables = programs.azurite.as_ref().ok_or("Azurite is not installed")?;
    let scripts = tables.parent().and_then(Path::parent).ok_or("Azurite's script has no folder")?;
    let mut command = Command::new("node");
    command.arg(scripts.join(service).join("main.js")).arg("--location").arg(directory);
    command.args([&format!("--{service}Host"), "127.0.0.1"]);
    command.args([&format!("--{service}Port"), &address.port().to_string()]);
    command.args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
    command.env_remove("AZURITE_ACCOUNTS").current_dir(directory);
    Ok(command)
}

/// A local address that was free a moment ago. Azurite cannot choose one itself.
fn free_address() -> Result<SocketAddr, Error> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// A directory for the data of one run, removed at the end.
pub struct DataDirectory(pub PathBuf);

impl DataDirectory {
    /// By default in the target directory: the system's temporary directory is often in memory, where a sync costs
    /// nothing and proves nothing.
    pub fn create(parent: Option<&Path>) -> Result<DataDirectory, Error> {
        let parent = match parent {
            Some(parent) => parent.to_owned(),
            None => {
                let program = std::env::current_exe()?;
                program.parent().and_then(Path::parent).ok_or("cannot find the target directory")?.to_owned()
            }
        };
        let path = parent.join(format!("bench-data-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(DataDirectory(path))
    }

    /// Bytes that all its files take on the disk.
    pub fn bytes(&self) -> u64 {
        bytes_below(&self.0)
    }
}

fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
