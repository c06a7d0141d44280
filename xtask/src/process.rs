//! Processes: the tools we run, and the server under test.
//!
//! A tool's output is shown as it comes and kept, so that its test cases can be counted. A server listens on a free
//! port, is stopped the way an operator stops it, and has to leave with status 0.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SERVER_START_TIMEOUT: Duration = Duration::from_secs(30);
const SERVER_STOP_TIMEOUT: Duration = Duration::from_secs(15);
const READY_TEXT: &str = "Table service is successfully listening at ";

/// The published account and key that every emulator and every SDK knows.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

pub struct Finished {
    pub succeeded: bool,
    pub output: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Cargo's target directory, wherever it was configured to be: this program lies in it, at `debug/xtask`.
pub fn target_directory() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let directory = program.parent().and_then(Path::parent);
    directory.map(Path::to_owned).ok_or_else(|| format!("{} is not in a target directory", program.display()))
}

pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs to the end; standard output is shown line by line and kept, standard error only shown.
pub fn run(command: &mut Command) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        // Lossy on purpose: a test that prints bytes which are not UTF-8 must not end the gate.
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|error| format!("cannot read what {name} prints: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            output.push_str(&line);
            output.push('\n');
        }
    }
    let status = child.wait().map_err(|error| format!("cannot wait for {name}: {error}"))?;
    Ok(Finished { succeeded: status.success(), output })
}

/// Runs to the end without showing anything: all that it prints goes to the file `log`, and is returned.
pub fn run_quietly(command: &mut Command, log: &Path) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let file = create(log)?;
    let errors = file.try_clone().map_err(|error| format!("cannot write {}: {error}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file).stderr(errors);
    let status = command.status().map_err(|error| format!("cannot start {name}: {error}"))?;
    let bytes = std::fs::read(log).map_err(|error| format!("cannot read {}: {error}", log.display()))?;
    Ok(Finished { succeeded: status.success(), output: String::from_utf8_lossy(&bytes).into_owned() })
}

fn create(path: &Path) -> Result<File, String> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    }
    File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()))
}

/// What a command prints when it succeeds quietly; `None` when it is missing or fails.
pub fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The only clock here: durations shown to people.
pub fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "xtask times its own steps; nothing here is simulated")]
    Instant::now()
}

/// A durable server on a free port, with its data in a fresh directory.
pub struct Server {
    child: Child,
    endpoint: String,
    log: PathBuf,
}

impl Server {
    pub fn start(binary: &Path, directory: &Path) -> Result<Server, String> {
        // Start from nothing: what an earlier run left behind must not decide this one.
        let _ = std::fs::remove_dir_all(directory);
        let data = directory.join("data");
        std::fs::create_dir_all(&data)
            .map_err(|error| format!("cannot create {}: {error}", data.display()))?;
        let log = directory.join("server.log");
        let log_file = create(&log)?;

        let child = Command::new(binary)
            .arg("serve")
            .arg("--location")
            .arg(&data)
            .args(["--tableHost", "127.0.0.1", "--tablePort", "0", "--silent"])
            .env_remove("LAZULITE_ACCOUNTS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        let mut server = Server { child, endpoint: String::new(), log };
        server.endpoint = server.wait_until_ready()?;
        Ok(server)
    }

    pub fn connection_string(&self) -> String {
        format!(
            "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};TableEndpoint={}/{ACCOUNT};",
            self.endpoint
        )
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Asks the server to end and requires that it does so in good order.
    pub fn stop(mut self) -> Result<(), String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("the server ended by itself ({status}); its log is {}", self.log.display()));
        }
        if cfg!(not(unix)) {
            return Ok(()); // `drop` ends it: there is no polite signal to send.
        }
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        if !sent.is_ok_and(|status| status.success()) {
            return Err(format!("cannot send SIGTERM to the server, process {pid}"));
        }
        let deadline = now() + SERVER_STOP_TIMEOUT;
        while now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(format!("the server left with {status} after SIGTERM, not with 0"));
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(format!("cannot wait for the server: {error}")),
            }
        }
        Err(format!("the server did not end within {SERVER_STOP_TIMEOUT:?} of SIGTERM"))
    }

    fn wait_until_ready(&mut self) -> Result<String, String> {
        let stdout = self.child.stdout.take().ok_or("the server has no standard output")?;
        let mut log = File::options()
            .append(true)
            .open(&self.log)
            .map_err(|error| format!("cannot open the log: {error}"))?;
        let (found, ready) = mpsc::channel();
        // The thread reads on after the ready line, or the server would block on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = writeln!(log, "{line}");
                if let Some((_, address)) = line.split_once(READY_TEXT) {
                    let _ = found.send(address.trim().trim_end_matches('/').to_owned());
                }
            }
        });
        ready
            .recv_timeout(SERVER_START_TIMEOUT)
            .map_err(|_| format!("the server never said that it listens; its log is {}", self.log.display()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
