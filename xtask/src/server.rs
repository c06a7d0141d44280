//! The server under test, as a child process.
//!
//! Promises: it starts with empty data, each service on a free port, is stopped the way an operator stops it, and must then exit with
//! status 0. Everything it prints goes to its log. Building the binary is up to the caller.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::process;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// The ports that the server tells, each with the words of its line before the address.
const PORTS: [(&str, &str); 4] = [
    ("Table", "Table service is successfully listening at "),
    ("Queue", "Queue service is successfully listening at "),
    ("Blob", "Blob service is successfully listening at "),
    ("Admin", "Explorer and metrics at "),
];
/// The first ones are the services whose endpoints the connection string names.
const SERVICE_COUNT: usize = 3;
const ADMIN: usize = 3;

/// These could name accounts other than the published one below.
const ACCOUNT_VARIABLES: [&str; 2] = ["LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"];
/// The published account and key that every emulator and every SDK knows.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A durable server on free ports, with its data in a fresh directory.
pub struct Server {
    child: Child,
    /// The address of each port, in the order of [`PORTS`].
    addresses: [String; PORTS.len()],
    log: PathBuf,
}

impl Server {
    pub fn start(binary: &Path, directory: &Path) -> Result<Server, String> {
        // Start empty, so that an earlier run cannot influence this one.
        let _ = std::fs::remove_dir_all(directory);
        let data = directory.join("data");
        std::fs::create_dir_all(&data)
            .map_err(|error| format!("cannot create {}: {error}", data.display()))?;
        let log = directory.join("server.log");
        let log_file = process::create(&log)?;

        let mut command = Command::new(binary);
        for variable in ACCOUNT_VARIABLES {
            command.env_remove(variable);
        }
        let child = command
            .arg("serve")
            .arg("--location")
            .arg(&data)
            .args(["--tableHost", "127.0.0.1", "--tablePort", "0"])
            .args(["--queueHost", "127.0.0.1", "--queuePort", "0"])
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0"])
            .args(["--admin-port", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        let mut server = Server { child, addresses: Default::default(), log };
        server.addresses = server.wait_until_ready()?;
        Ok(server)
    }

    pub fn connection_string(&self) -> String {
        let mut text =
            format!("DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};");
        for ((service, _), address) in PORTS.iter().zip(&self.addresses).take(SERVICE_COUNT) {
            text.push_str(&format!("{service}Endpoint={address}/{ACCOUNT};"));
        }
        text
    }

    /// Tells a program where the server is.
    pub fn describe(&self, command: &mut Command) {
        command.env("LAZULITE_CONNECTION_STRING", self.connection_string());
        command.env("LAZULITE_ADMIN", &self.addresses[ADMIN]);
        // The server is on this machine: bypass any proxy of the environment.
        command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Stops the server with SIGTERM. It must exit in time with status 0.
    pub fn stop(mut self) -> Result<(), String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("the server ended by itself ({status}); its log is {}", self.log.display()));
        }
        if cfg!(not(unix)) {
            return Ok(()); // `drop` kills it: there is no signal to send here.
        }
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        if !sent.is_ok_and(|status| status.success()) {
            return Err(format!("cannot send SIGTERM to the server, process {pid}"));
        }
        let deadline = process::now() + STOP_TIMEOUT;
        while process::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(format!("the server exited with {status} after SIGTERM, not with 0"));
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(format!("cannot wait for the server: {error}")),
            }
        }
        Err(format!("the server did not end within {STOP_TIMEOUT:?} of SIGTERM"))
    }

    fn wait_until_ready(&mut self) -> Result<[String; PORTS.len()], String> {
        let stdout = self.child.stdout.take().ok_or("the server has no standard output")?;
        let mut log = File::options()
            .append(true)
            .open(&self.log)
            .map_err(|error| format!("cannot open the log: {error}"))?;
        let (found, ready) = mpsc::channel();
        // Keep reading after the ready lines, or the server would block on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = writeln!(log, "{line}");
                for (service, (_, ready_text)) in PORTS.iter().enumerate() {
                    if let Some((_, address)) = line.split_once(ready_text) {
                        let _ = found.send((service, address.trim().trim_end_matches('/').to_owned()));
                    }
                }
            }
        });
        let deadline = process::now() + START_TIMEOUT;
        let mut addresses: [String; PORTS.len()] = Default::default();
        while let Some(missing) = addresses.iter().position(String::is_empty) {
            let left = deadline.saturating_duration_since(process::now());
            let (service, address) = ready.recv_timeout(left).map_err(|_| {
                let name = PORTS[missing].0;
                format!("the {name} port never printed its line; the log is {}", self.log.display())
            })?;
            addresses[service] = address;
        }
        Ok(addresses)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
