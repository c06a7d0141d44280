//! A real PostgreSQL in a temporary directory, on a free loopback port.
//!
//! Promises: an unprivileged user runs it, `fsync` stays on, and it ends with its [`Postgres`], even when the test
//! program is killed. The environment variable `LAZULITE_TEST_POSTGRES_BIN` names the directory of another version's
//! programs. Where PostgreSQL is not installed, [`Postgres::start`] says so in one sentence, and the caller skips
//! its tests by name. Leaves to others: what is in the database.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::time::Stopwatch;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Where Debian and Red Hat keep the programs that they do not put into PATH.
const PROGRAM_PARENTS: [&str; 2] = ["/usr/lib/postgresql", "/usr/pgsql"];
const USER: &str = "postgres";
/// In no message of the product, which tests look for.
const PASSWORD: &str = "a-secret-of-the-tests";

/// A running PostgreSQL. Dropping it ends it.
pub struct Postgres {
    shell: Child,
    directory: TempDir,
    programs: PathBuf,
    owner: Option<(u32, u32)>,
    port: u16,
    settings: Vec<(String, String)>,
}

impl Postgres {
    /// Starts a new one with the server's own settings. `Err` says in one sentence why there is none.
    pub fn start() -> Result<Postgres, String> {
        Postgres::start_with(&[])
    }

    /// The same, with these settings: `("max_connections", "20")`.
    pub fn start_with(settings: &[(&str, &str)]) -> Result<Postgres, String> {
        let directory = TempDir::new().map_err(|error| format!("no temporary directory: {error}"))?;
        Postgres::start_in(directory, &programs()?, settings)
    }

    /// The same, in an empty directory, with these programs.
    pub fn start_in(
        directory: TempDir,
        programs: &Path,
        settings: &[(&str, &str)],
    ) -> Result<Postgres, String> {
        let owner = unprivileged_user()?;
        if let Some((user, group)) = owner {
            chown(directory.path(), Some(user), Some(group))
                .map_err(|error| format!("the directory cannot be given away: {error}"))?;
        }
        initialise(programs, directory.path(), owner)?;
        let port = free_port()?;
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let shell = launch(programs, directory.path(), owner, port, &settings)?;
        let server = Postgres { shell, directory, programs: programs.to_owned(), owner, port, settings };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// One for all tests of this program that run at the same time.
    pub fn shared() -> Result<Arc<Postgres>, String> {
        static RUNNING: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = running.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Postgres::start()?);
        *running = Arc::downgrade(&server);
        Ok(server)
    }

    /// Takes passwords as they are from now on. Proving one without showing it takes a debug build tens of
    /// milliseconds for each session, which is most of the time of a suite that opens thousands.
    pub fn accept_plain_passwords(&self) -> Result<(), String> {
        fs::write(data_path(self.directory.path()).join("pg_hba.conf"), "host all all all password\n")
            .map_err(|error| format!("pg_hba.conf: {error}"))?;
        self.sql("SELECT pg_reload_conf()").map(drop)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// With the name and the password of its superuser.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The same server as seen through a proxy on another port.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres")
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Runs statements as its superuser, and returns the rows as `psql` prints them without decoration.
    pub fn sql(&self, statements: &str) -> Result<String, String> {
        let output = Command::new(self.programs.join("psql"))
            .env("PGPASSWORD", PASSWORD)
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", USER])
            .args(["-p", &self.port.to_string(), "-d", "postgres", "-c", statements])
            .output()
            .map_err(|error| format!("psql does not start: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Gives a file or a directory to the user who runs it.
    pub fn give(&self, path: &Path) -> Result<(), String> {
        let Some((user, group)) = self.owner else { return Ok(()) };
        chown(path, Some(user), Some(group))
            .map_err(|error| format!("{} cannot be given away: {error}", path.display()))
    }

    /// Everything that it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(log_path(self.directory.path())).unwrap_or_default()
    }

    /// Ends all its processes at once, as a crash would, and starts it again on the same port.
    pub fn crash_and_restart(&mut self) -> Result<(), String> {
        let stopped = command(&self.programs.join("pg_ctl"), self.owner)
            .args(["stop", "-m", "immediate", "-D"])
            .arg(data_path(self.directory.path()))
            .output()
            .map_err(|error| format!("pg_ctl does not start: {error}"))?;
        if !stopped.status.success() {
            return Err(String::from_utf8_lossy(&stopped.stderr).trim().to_owned());
        }
        self.restart()
    }

    /// Starts it again on the same port, whether it still runs or has ended by itself.
    pub fn restart(&mut self) -> Result<(), String> {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
        self.shell = launch(&self.programs, self.directory.path(), self.owner, self.port, &self.settings)?;
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> Result<(), String> {
        let watch = Stopwatch::start();
        while watch.elapsed() < START_TIMEOUT {
            let is_listening = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            if is_listening && self.sql("SELECT 1").is_ok() {
                return Ok(());
            }
            sleep(POLL_INTERVAL);
        }
        Err(format!("PostgreSQL did not start: {}", last_lines(&log_path(self.directory.path()))))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The shell ends PostgreSQL when its input ends.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// The directory with `initdb` and the other programs.
pub fn programs() -> Result<PathBuf, String> {
    if let Some(chosen) = std::env::var_os("LAZULITE_TEST_POSTGRES_BIN") {
        return Ok(PathBuf::from(chosen));
    }
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> = PROGRAM_PARENTS
        .iter()
        .filter_map(|parent| fs::read_dir(parent).ok())
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path().join("bin")))
        .collect();
    // The newest version first.
    candidates.sort();
    candidates.reverse();
    candidates.extend(std::env::split_paths(&in_path));
    candidates
        .into_iter()
        .find(|directory| directory.join("initdb").is_file())
        .ok_or_else(|| "PostgreSQL is not installed (Debian: apt-get install postgresql)".to_owned())
}

/// PostgreSQL refuses to run as root; the package brings a user for it. `None`: this process is not root.
pub(crate) fn unprivileged_user() -> Result<Option<(u32, u32)>, String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        return Ok(None);
    }
    let number = |flag: &str| -> Result<u32, String> {
        let output =
            Command::new("id").args([flag, USER]).output().map_err(|error| format!("id: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| format!("there is no user {USER} to run PostgreSQL as"))
    };
    Ok(Some((number("-u")?, number("-g")?)))
}

fn command(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command.current_dir("/").env_remove("PGOPTIONS").env("LC_ALL", "C");
    command
}

fn data_path(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn log_path(directory: &Path) -> PathBuf {
    directory.join("log")
}

fn initialise(programs: &Path, directory: &Path, owner: Option<(u32, u32)>) -> Result<(), String> {
    let password_path = directory.join("password");
    fs::write(&password_path, PASSWORD).map_err(|error| format!("the password file: {error}"))?;
    // Nothing is lost if the machine stops before the cluster is on the disk: the tests stop too.
    let output = command(&programs.join("initdb"), owner)
        .args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "-U", USER])
        .arg("--pwfile")
        .arg(&password_path)
        .arg("-D")
        .arg(data_path(directory))
        .output()
        .map_err(|error| format!("initdb does not start: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|addr| addr.port()).map_err(|error| format!("no free port: {error}"))
}

/// A shell starts the server and waits for the end of its own input, which comes with the end of this process at the
/// latest.
fn launch(
    programs: &Path,
    directory: &Path,
    owner: Option<(u32, u32)>,
    port: u16,
    settings: &[(String, String)],
) -> Result<Child, String> {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(log_path(directory))
        .map_err(|error| format!("the log: {error}"))?;
    let server = programs.join("postgres");
    let script = r#""$@" </dev/null & server=$!; read -r _; kill -INT $server 2>/dev/null; wait $server"#;
    let mut shell = command(Path::new("/bin/sh"), owner);
    shell.args(["-c", script, "sh"]).arg(server).arg("-D").arg(data_path(directory));
    shell.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
    shell.args(["-c", "unix_socket_directories=", "-c", "max_connections=300"]);
    for (name, value) in settings {
        shell.arg("-c").arg(format!("{name}={value}"));
    }
    let error_log = log.try_clone().map_err(|error| format!("the log: {error}"))?;
    shell.stdin(Stdio::piped()).stdout(log).stderr(error_log);
    shell.spawn().map_err(|error| format!("PostgreSQL does not start: {error}"))
}

pub(crate) fn last_lines(path: &Path) -> String {
    const TAIL_BYTES: u64 = 2000;
    let mut text = String::new();
    if let Ok(mut file) = fs::File::open(path) {
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let _ = file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)));
        let _ = file.read_to_string(&mut text);
    }
    text
}
