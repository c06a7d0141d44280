//! Azurite from npm: installs it, and runs suites of tests against it: the raw HTTP suites, and those of the client.
//!
//! Promises: no test influences the next. Each runs in a process of its own with a time limit, and Azurite is restarted
//! when it stops answering. The output of all tests goes to a log, to help explain differences in `differences.txt`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::differences::{Comparison, Found};
use crate::document;
use crate::process::{self, cargo};
use crate::toolchains::{self, Missing};
use crate::{set_up, suites};

/// Some tests send thousands of requests, and Azurite may need a while to answer them.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// `testkit` prints these words when a test uses another server, when it cannot, and when it gets no answer.
const ASKS_ELSEWHERE: &str = "this test asks the server at";
const NEEDS_ITS_OWN: &str = "this test needs a server of its own";
const NO_ANSWER: &str = "no answer to";
/// Not sent: `cargo xtask golden` sends the golden exchanges to other servers and reports every difference.
const NOT_SENT: &str = "golden::";

/// Installs Azurite at the version of its lock file, and returns the folder of its package.
pub fn install() -> Result<Result<PathBuf, Missing>, String> {
    let npm = match toolchains::node() {
        Ok(npm) => npm,
        Err(missing) => return Ok(Err(missing)),
    };
    let folder = suites::tests("azurite");
    set_up::npm_packages("azurite", npm, &folder)?;
    Ok(Ok(folder.join("node_modules").join("azurite")))
}

/// The script in that folder that serves tables.
pub fn table_script(package: &Path) -> PathBuf {
    script(package, "table")
}

/// The script in that folder for a service.
fn script(package: &Path, word: &str) -> PathBuf {
    package.join("dist").join("src").join(word).join("main.js")
}

/// A service of Azurite: the word in its script's path and options, and the variable that leads tests to it.
struct Service {
    word: &'static str,
    variable: &'static str,
}

const TABLES: Service = Service { word: "table", variable: "LAZULITE_TEST_ENDPOINT" };
const QUEUES: Service = Service { word: "queue", variable: "LAZULITE_TEST_QUEUE_ENDPOINT" };
const BLOBS: Service = Service { word: "blob", variable: "LAZULITE_TEST_BLOB_ENDPOINT" };

/// A test binary whose tests get their servers from `testkit`.
pub struct Suite {
    /// The folder below `crates`; the package has the same name after `lazulite-`.
    folder: &'static str,
    test: &'static str,
    /// What stands in front of its tests' names.
    prefix: &'static str,
    service: Service,
}

/// The raw HTTP suites of the server.
pub const RAW_HTTP: [Suite; 3] = [
    Suite { folder: "server", test: "it", prefix: "", service: TABLES },
    Suite { folder: "server", test: "queue", prefix: "queue_", service: QUEUES },
    Suite { folder: "server", test: "blob", prefix: "blob_", service: BLOBS },
];

/// The suites of the client that ask a server.
pub const CLIENT: [Suite; 3] = [
    Suite { folder: "client", test: "account", prefix: "account::", service: TABLES },
    Suite { folder: "client", test: "tables", prefix: "tables::", service: TABLES },
    Suite { folder: "client", test: "queues", prefix: "queues::", service: QUEUES },
];

/// Runs every test that these suites list against Azurite.
pub fn compare(suites: &[Suite]) -> Result<Result<Comparison, Missing>, String> {
    let program = match install()? {
        Ok(program) => program,
        Err(missing) => return Ok(Err(missing)),
    };
    let package = suites::read(&program.join("package.json"))?;
    let version = package.split_once("\"version\":").and_then(|(_, rest)| document::first_version(rest));
    let version = version.ok_or("the installed Azurite does not say its version")?;
    let mut tests = BTreeMap::new();
    for suite in suites {
        for (name, found) in compare_suite(suite, &program, &version)? {
            tests.insert(format!("{}{name}", suite.prefix), found);
        }
    }
    Ok(Ok(Comparison { version, tests }))
}

fn compare_suite(suite: &Suite, program: &Path, version: &str) -> Result<Vec<(String, Found)>, String> {
    let Suite { folder, test, prefix, service } = suite;
    let binary = test_binary(folder, test)?;
    let listed = process::answer(Command::new(&binary).args(["--list", "--format", "terse"]));
    let names =
        names(&listed.ok_or_else(|| format!("the suite {test} of {folder} does not list its tests"))?);
    let place = suites::directory()?.join("azurite").join(format!("{folder}-{test}"));
    let mut azurite = Azurite::start(service, program, &place)?;
    let log_path = place.join("suite.log");
    let cannot_write = |error| format!("cannot write {}: {error}", log_path.display());
    let mut log = File::create(&log_path).map_err(cannot_write)?;
    println!("{} tests against Azurite {version}; their output: {}", names.len(), log_path.display());

    let mut tests = Vec::new();
    for name in names {
        if name.starts_with(NOT_SENT) {
            tests.push((name, Found::NotComparable));
            continue;
        }
        let said =
            run_test(&binary, &name, folder, (service.variable, azurite.address), &place.join("test.log"))?;
        writeln!(log, "==== {name}: {:?}\n{}", said.found(), said.text).map_err(cannot_write)?;
        if said.found() == Found::Different {
            println!("different: {prefix}{name}");
        }
        tests.push((name, said.found()));
        if !said.has_ended || said.text.contains(NO_ANSWER) || azurite.has_ended() {
            drop(azurite);
            azurite = Azurite::start(service, program, &place)?;
        }
    }
    Ok(tests)
}

/// Builds a test binary of the package in this folder and returns its path.
fn test_binary(folder: &str, test: &str) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.arg("test").args(process::TESTED_PACKAGES).args(["--test", test]);
    build.args(["--no-run", "--message-format=json"]);
    let built = build.stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("cannot start cargo: {error}"))?;
    let found = executable(&String::from_utf8_lossy(&built.stdout), folder);
    found
        .filter(|_| built.status.success())
        .ok_or_else(|| format!("the suite {test} of {folder} was not built"))
}

/// The test program of the package in this folder that cargo's messages name. Other packages may have one of the same name.
fn executable(messages: &str, folder: &str) -> Option<PathBuf> {
    let manifest = format!("/crates/{folder}/Cargo.toml\"");
    messages.lines().find_map(|message| {
        let message = message.replace("\\\\", "/");
        let is_ours = message.contains(&manifest) && message.contains("\"kind\":[\"test\"]");
        let (_, rest) = message.split_once("\"executable\":\"").filter(|_| is_ours)?;
        let (path, _) = rest.split_once('"')?;
        Some(PathBuf::from(path))
    })
}

/// The names in `cargo test -- --list --format terse`: `keys::a: test`.
fn names(listed: &str) -> Vec<String> {
    listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// A test's output, and how it ended.
struct Said {
    text: String,
    has_ended: bool,
    has_passed: bool,
}

impl Said {
    fn found(&self) -> Found {
        let asks = self.text.contains(ASKS_ELSEWHERE);
        match (self.has_ended, self.has_passed) {
            _ if self.text.contains(NEEDS_ITS_OWN) => Found::NotComparable,
            (true, true) if asks => Found::Same,
            (true, true) => Found::NotComparable,
            _ => Found::Different,
        }
    }
}

/// `folder` is its package's, and `server` the variable that leads the test to a server, and its address.
fn run_test(
    binary: &Path,
    name: &str,
    folder: &str,
    server: (&str, SocketAddr),
    log: &Path,
) -> Result<Said, String> {
    let (out, errors) = process::log_files(log)?;
    let mut command = Command::new(binary);
    command.args(["--exact", name, "--show-output", "--test-threads=1"]);
    command.env(server.0, server.1.to_string()).env("RUST_BACKTRACE", "0");
    // The directory in which cargo runs it.
    command.current_dir(process::root().join("crates").join(folder));
    let child = command.stdin(Stdio::null()).stdout(out).stderr(errors).spawn();
    let mut child = child.map_err(|error| format!("cannot start the test {name}: {error}"))?;
    let deadline = process::now() + TEST_TIMEOUT;
    let status = loop {
        match child.try_wait() {
            Ok(None) if process::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Ok(status) => break status,
            Err(error) => return Err(format!("cannot wait for the test {name}: {error}")),
        }
    };
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let bytes = fs::read(log).map_err(|error| format!("cannot read {}: {error}", log.display()))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if status.is_none() {
        text.push_str(&format!("\nit did not end within {TEST_TIMEOUT:?}\n"));
    }
    Ok(Said { text, has_ended: status.is_some(), has_passed: status.is_some_and(|status| status.success()) })
}

/// A running Azurite with its data in a fresh directory. Dropping it kills the process.
struct Azurite {
    child: Child,
    address: SocketAddr,
}

impl Azurite {
    fn start(service: &Service, program: &Path, place: &Path) -> Result<Azurite, String> {
        let data = place.join("data");
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data).map_err(|error| format!("cannot create {}: {error}", data.display()))?;
        let address = free_address()?;
        let log = place.join("azurite.log");
        let (out, errors) = process::log_files(&log)?;
        // Started as its users do: strict (no --loose), and checking API versions.
        let mut command = Command::new("node");
        command.arg(script(program, service.word)).arg("--location").arg(&data);
        command.arg(format!("--{}Host", service.word)).arg("127.0.0.1");
        command.arg(format!("--{}Port", service.word)).arg(address.port().to_string());
        command.args(["--silent", "--disableTelemetry"]).stdin(Stdio::null()).stdout(out).stderr(errors);
        let child = command.spawn().map_err(|error| format!("cannot start node: {error}"))?;
        let mut azurite = Azurite { child, address };
        let deadline = process::now() + START_TIMEOUT;
        while process::now() < deadline && !azurite.has_ended() {
            if TcpStream::connect(address).is_ok() {
                return Ok(azurite);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("Azurite does not listen at {address}; its log is {}", log.display()))
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A local address that was free a moment ago. Azurite cannot pick a free port itself.
fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map_err(|error| format!("no free port: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_binary_is_found_in_cargos_messages() {
        let message = |folder: &str, kind: &str| {
            let manifest = format!("C:\\\\a\\\\crates\\\\{folder}\\\\Cargo.toml");
            format!(
                "{{\"manifest_path\":\"{manifest}\",\"target\":{{\"kind\":[\"{kind}\"]}},\
                 \"executable\":\"C:\\\\{folder}-{kind}.exe\"}}\n"
            )
        };
        let messages =
            [message("client", "test"), message("server", "bin"), message("server", "test")].concat();
        assert_eq!(executable(&messages, "server"), Some(PathBuf::from("C:/server-test.exe")));
        assert_eq!(executable(&messages, "tables"), None);
    }

    #[test]
    fn tests_are_listed_without_benchmarks() {
        assert_eq!(names("keys::a: test\nkeys::b: benchmark\nsas::c::d: test\n"), ["keys::a", "sas::c::d"]);
    }

    #[test]
    fn what_a_test_said_decides() {
        let found =
            |text: &str, has_ended, has_passed| Said { text: text.to_owned(), has_ended, has_passed }.found();
        assert_eq!(found(ASKS_ELSEWHERE, true, true), Found::Same);
        assert_eq!(found(ASKS_ELSEWHERE, true, false), Found::Different);
        assert_eq!(found(ASKS_ELSEWHERE, false, false), Found::Different);
        assert_eq!(found(NEEDS_ITS_OWN, true, false), Found::NotComparable);
        // A test that asks no server shows nothing about Azurite.
        assert_eq!(found("", true, true), Found::NotComparable);
    }
}
