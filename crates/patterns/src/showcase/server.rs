//! A server of one's own: the release binary as a child process, in memory, on free ports.
//!
//! Promises: the process ends with its [`DemoServer`]. Building happens only when nobody named a binary.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::AnyError;

/// Names a server to start instead of building one.
pub const BINARY_VARIABLE: &str = "LAZULITE_BINARY";

const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Each service, with the words of its ready line before the address.
const SERVICES: [(&str, &str); 2] = [
    ("Table", "Table service is successfully listening at "),
    ("Queue", "Queue service is successfully listening at "),
];
/// These could name accounts other than the published one.
const ACCOUNT_VARIABLES: [&str; 2] = ["LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"];
/// The published account and key that every emulator and every SDK knows.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A running server. Dropping it ends the process.
pub struct DemoServer {
    child: Child,
    connection_string: String,
}

impl DemoServer {
    /// Starts the binary that `LAZULITE_BINARY` names, or else builds one and starts it.
    pub fn start() -> Result<DemoServer, AnyError> {
        let binary = match std::env::var_os(BINARY_VARIABLE) {
            Some(binary) => PathBuf::from(binary),
            None => build()?,
        };
        let mut command = Command::new(&binary);
        for variable in ACCOUNT_VARIABLES {
            command.env_remove(variable);
        }
        let child = command
            .args(["serve", "--in-memory", "--silent"])
            .args([
                "--tableHost",
                "127.0.0.1",
                "--tablePort",
                "0",
                "--queueHost",
                "127.0.0.1",
                "--queuePort",
                "0",
                "--blobPort",
                "0",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        let mut server = DemoServer { child, connection_string: String::new() };
        let addresses = server.wait_until_ready()?;
        server.connection_string = connection_string(&addresses);
        Ok(server)
    }

    /// How a client reaches it.
    pub fn connection_string(&self) -> &str {
        &self.connection_string
    }

    fn wait_until_ready(&mut self) -> Result<[String; SERVICES.len()], AnyError> {
        let stdout = self.child.stdout.take().ok_or("the server has no standard output")?;
        let (found, ready) = mpsc::channel();
        // Keeps reading after the ready lines, or the server would block on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                for (service, (_, words)) in SERVICES.iter().enumerate() {
                    if let Some((_, address)) = line.split_once(words) {
                        let _ = found.send((service, address.trim().trim_end_matches('/').to_owned()));
                    }
                }
            }
        });
        let mut addresses: [String; SERVICES.len()] = Default::default();
        while addresses.iter().any(String::is_empty) {
            let (service, address) =
                ready.recv_timeout(START_TIMEOUT).map_err(|_| "the server never printed its ready lines")?;
            addresses[service] = address;
        }
        Ok(addresses)
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The connection string of the published account at these addresses, such as `http://127.0.0.1:10002`: tables, queues.
pub fn connection_string(addresses: &[String; 2]) -> String {
    let mut text = format!("DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};");
    for ((service, _), address) in SERVICES.iter().zip(addresses) {
        text.push_str(&format!("{service}Endpoint={address}/{ACCOUNT};"));
    }
    text
}

/// Builds the server in release mode, which takes a moment only if it has changed.
fn build() -> Result<PathBuf, AnyError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "lazulite"])
        .current_dir(manifest)
        .status()
        .map_err(|error| format!("cannot start cargo ({error}); set {BINARY_VARIABLE} to a server"))?;
    if !status.success() {
        return Err("the server does not build".into());
    }
    // This program is an example or a test: at `debug/examples/NAME` or `debug/deps/NAME` of the target directory.
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(3).ok_or("this program is not in a target directory")?;
    Ok(target.join("release").join(format!("lazulite{}", std::env::consts::EXE_SUFFIX)))
}
