//! The official SDKs, unmodified, against a real server.
//!
//! Each suite is set up from versions pinned in the repository, under the target directory (`node_modules` stands beside
//! its tests), and again only when those change. A toolchain that is not installed means the suite is skipped, by name;
//! a set-up that fails is a failure. Set-ups mostly wait for downloads, so they run behind other work: see [`SetUps`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use crate::cases::{self, Case};
use crate::counts::Counts;
use crate::process::{self, Server};
use crate::toolchains::{self, Missing};

/// Name and client, in the order they run.
pub const SUITES: [(&str, &str); 6] = [
    ("python", "the azure-data-tables SDK for Python, against the server"),
    ("javascript", "the @azure/data-tables SDK for JavaScript, against the server"),
    ("go", "the aztables SDK for Go, against the server"),
    ("java", "the azure-data-tables SDK for Java, against the server"),
    ("rust-sdk", "the azure_data_tables SDK for Rust, against the server"),
    ("browser", "a page of another origin in a real browser, against the server"),
];

/// A suite that is ready to run.
pub struct Suite {
    pub command: Command,
    /// Shown while it runs, or only when it fails.
    pub is_shown: bool,
    pub report: Report,
}

/// Where the test cases can be read afterwards.
pub enum Report {
    /// A file, or a directory full of them.
    Junit(PathBuf),
    Node(PathBuf),
    Go(BTreeMap<String, String>),
    Cargo,
}

impl Report {
    fn read(&self, output: &str) -> Result<Vec<Case>, String> {
        match self {
            Report::Junit(path) if path.is_dir() => {
                let mut found = Vec::new();
                for file in files(path, ".xml")? {
                    found.extend(cases::from_junit(&read(&file)?));
                }
                Ok(found)
            }
            Report::Junit(path) => Ok(cases::from_junit(&read(path).unwrap_or_default())),
            Report::Node(path) => Ok(cases::from_node_reporter(&read(path).unwrap_or_default())),
            Report::Go(areas) => Ok(cases::from_go_test(output, areas)),
            Report::Cargo => Ok(cases::from_cargo_test(output)),
        }
    }

    /// An old report must not speak for a runner that wrote none.
    fn clear(&self) {
        if let Report::Junit(path) | Report::Node(path) = self {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

pub struct Ran {
    pub cases: Vec<Case>,
    /// With what the runner and the server did besides: an unexplained exit, a server that did not end well.
    pub counts: Counts,
}

type SetUp = Result<Result<Suite, Missing>, String>;

/// Set-ups in the background, one after another, in the order given.
pub struct SetUps(BTreeMap<String, Receiver<SetUp>>);

impl SetUps {
    pub fn start(names: Vec<String>) -> SetUps {
        let mut receivers = BTreeMap::new();
        let mut senders = Vec::new();
        for name in names {
            let (sender, receiver) = mpsc::channel();
            senders.push((name.clone(), sender));
            receivers.insert(name, receiver);
        }
        std::thread::spawn(move || {
            for (name, sender) in senders {
                let _ = sender.send(set_up(&name));
            }
        });
        SetUps(receivers)
    }

    /// Waits for the set-up, then runs the suite against a server of its own.
    pub fn run(&self, name: &str, server: &Path) -> Result<Result<Ran, Missing>, String> {
        let receiver = self.0.get(name).ok_or_else(|| format!("the suite '{name}' was not set up"))?;
        let ready = receiver.recv().map_err(|_| format!("the set-up of '{name}' ended without a result"))?;
        match ready? {
            Ok(suite) => run(name, suite, server).map(Ok),
            Err(missing) => Ok(Err(missing)),
        }
    }
}

fn run(name: &str, suite: Suite, binary: &Path) -> Result<Ran, String> {
    let Suite { mut command, is_shown, report } = suite;
    let server = Server::start(binary, &directory()?.join(format!("{name}-server")))?;
    let log = server.log().to_owned();
    command.env("LAZULITE_CONNECTION_STRING", server.connection_string());
    // The server is on this machine, whatever proxy the environment names.
    command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    report.clear();
    let finished = if is_shown {
        process::run(&mut command)?
    } else {
        process::run_quietly(&mut command, &directory()?.join(format!("{name}.log")))?
    };
    if !is_shown && !finished.succeeded {
        println!("{}", finished.output);
    }
    let cases = report.read(&finished.output)?;
    let mut counts = cases::counts(&cases).of_run(finished.succeeded);
    if let Err(message) = server.stop() {
        println!("{message}");
        counts += Counts::ONE_FAILED;
    }
    if counts.failed > 0 {
        println!("the server's log: {}", log.display());
    }
    Ok(Ran { cases, counts })
}

fn set_up(name: &str) -> SetUp {
    match name {
        "python" => set_up_python(),
        "javascript" => set_up_javascript(),
        "go" => set_up_go(),
        "java" => set_up_java(),
        "rust-sdk" => set_up_rust(),
        "browser" => set_up_browser(),
        "az" => set_up_az(),
        other => Err(format!("there is no SDK suite called '{other}'")),
    }
}

fn set_up_python() -> SetUp {
    let python = match toolchains::python() {
        Ok(python) => python,
        Err(missing) => return Ok(Err(missing)),
    };
    let tests = tests("python");
    let (program, report) = python_environment("python", &python, &tests)?;
    let mut command = pytest(&program, &tests, &report);
    command.arg("-q");
    Ok(Ok(Suite { command, is_shown: true, report: Report::Junit(report) }))
}

/// The command line from PyPI. Heavy to install, so it is no part of the gate.
fn set_up_az() -> SetUp {
    let python = match toolchains::python() {
        Ok(python) => python,
        Err(missing) => return Ok(Err(missing)),
    };
    let tests = tests("az");
    let (program, report) = python_environment("az", &python, &tests)?;
    let mut command = pytest(&program, &tests, &report);
    command.arg("-q");
    // Nothing of the user's own settings, and nothing told to anybody.
    command.env("AZURE_CONFIG_DIR", directory()?.join("az-config"));
    command.env("AZURE_CORE_COLLECT_TELEMETRY", "no");
    Ok(Ok(Suite { command, is_shown: true, report: Report::Junit(report) }))
}

/// A virtual environment with a suite's requirements; its interpreter, and where the report goes.
fn python_environment(name: &str, python: &str, tests: &Path) -> Result<(PathBuf, PathBuf), String> {
    let environment = directory()?.join(name);
    let program = if cfg!(windows) {
        environment.join("Scripts").join("python.exe")
    } else {
        environment.join("bin").join("python")
    };
    let requirements = tests.join("requirements.txt");
    let version = process::answer(Command::new(python).arg("--version")).unwrap_or_default();
    let wanted = format!("{version}\n{}", read(&requirements)?);
    once(name, &environment.join("installed.txt"), &wanted, |steps| {
        steps.run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&environment))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        steps.run(Command::new(&program).args(install).arg(&requirements))
    })?;
    Ok((program, directory()?.join(format!("{name}-report.xml"))))
}

fn pytest(program: &Path, tests: &Path, report: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-m", "pytest", "-p", "no:cacheprovider"]).current_dir(tests);
    command.arg(format!("--junitxml={}", report.display()));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn set_up_javascript() -> SetUp {
    set_up_node("javascript", tests("javascript"))
}

/// Without a browser on the `PATH` the tests say so and count as skipped.
fn set_up_browser() -> SetUp {
    set_up_node("browser", process::root().join("tests").join("browser"))
}

fn set_up_node(name: &str, tests: PathBuf) -> SetUp {
    let npm = match toolchains::node() {
        Ok(npm) => npm,
        Err(missing) => return Ok(Err(missing)),
    };
    npm_packages(name, npm, &tests)?;
    let report = directory()?.join(format!("{name}-report.txt"));
    let reporter = self::tests("javascript").join("reporter.mjs");
    let mut command = Command::new("node");
    command.arg("--test");
    command.args(["--test-reporter=spec", "--test-reporter-destination=stdout"]);
    command.arg(format!("--test-reporter={}", reporter.display()));
    command.arg(format!("--test-reporter-destination={}", report.display()));
    command.args(files(&tests, ".test.mjs")?).current_dir(tests);
    Ok(Ok(Suite { command, is_shown: true, report: Report::Node(report) }))
}

/// Installs what a lock file names, beside it.
pub fn npm_packages(name: &str, npm: &str, folder: &Path) -> Result<(), String> {
    let wanted = read(&folder.join("package-lock.json"))?;
    once(name, &folder.join("node_modules").join(".installed-lock.json"), &wanted, |steps| {
        let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
        steps.run(Command::new(npm).args(install).current_dir(folder))
    })
}

fn set_up_go() -> SetUp {
    if let Err(missing) = toolchains::go() {
        return Ok(Err(missing));
    }
    let (tests, caches) = (tests("go"), directory()?.join("go"));
    // Compiled each time: with its caches that is quick, and only then the sources count.
    let binary = caches.join(format!("sdk.test{}", std::env::consts::EXE_SUFFIX));
    let mut build = Command::new("go");
    build.args(["test", "-c", "-buildvcs=false", "-modcacherw", "-o"]).arg(&binary).arg(".");
    build.current_dir(&tests).env("GOTOOLCHAIN", "local");
    build.env("GOMODCACHE", caches.join("modules")).env("GOCACHE", caches.join("build"));
    Steps::new("go")?.run(&mut build)?;

    let mut areas = BTreeMap::new();
    for file in files(&tests, "_test.go")? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        areas.extend(cases::go_areas(&name, &read(&file)?));
    }
    let mut command = Command::new(binary);
    command.args(["-test.v", "-test.timeout=10m"]).current_dir(tests);
    Ok(Ok(Suite { command, is_shown: false, report: Report::Go(areas) }))
}

fn set_up_java() -> SetUp {
    let maven = match toolchains::java() {
        Ok(maven) => maven,
        Err(missing) => return Ok(Err(missing)),
    };
    let (tests, place) = (tests("java"), directory()?.join("java"));
    let maven = |arguments: &[&str]| {
        let mut command = Command::new(maven);
        command.args(["--quiet", "--batch-mode", "--no-transfer-progress"]).args(arguments);
        command.arg(format!("-Dmaven.repo.local={}", place.join("repository").display()));
        command.arg(format!("-Dlazulite.build={}", place.join("build").display()));
        command.current_dir(&tests);
        command
    };
    let wanted = read(&tests.join("pom.xml"))?;
    once("java", &place.join("installed.txt"), &wanted, |steps| {
        // Maven fetches what it needs to run tests only when it runs one. This one finds no server and fails, which
        // is ignored here.
        let mut fetch =
            maven(&["test", "-Dtest=PoliciesTest#aNewTableHasNone", "-Dmaven.test.failure.ignore=true"]);
        steps.run(fetch.env_remove("LAZULITE_CONNECTION_STRING"))
    })?;
    let report = place.join("build").join("surefire-reports");
    Ok(Ok(Suite { command: maven(&["--offline", "test"]), is_shown: true, report: Report::Junit(report) }))
}

fn set_up_rust() -> SetUp {
    let manifest = tests("rust").join("Cargo.toml");
    let target = directory()?.join("rust");
    let cargo = |arguments: &[&str]| {
        let mut command = process::cargo();
        command.args(["test", "--locked", "--lib", "--manifest-path"]).arg(&manifest);
        command.arg("--target-dir").arg(&target).args(arguments);
        command
    };
    Steps::new("rust-sdk")?.run(&mut cargo(&["--no-run"]))?;
    Ok(Ok(Suite { command: cargo(&[]), is_shown: false, report: Report::Cargo }))
}

/// The commands of one set-up; what they print is kept in a file and shown when one fails.
struct Steps {
    log: PathBuf,
}

impl Steps {
    fn new(name: &str) -> Result<Steps, String> {
        Ok(Steps { log: directory()?.join(format!("{name}-setup.log")) })
    }

    fn run(&self, command: &mut Command) -> Result<(), String> {
        let finished = process::run_quietly(command, &self.log)?;
        if finished.succeeded {
            return Ok(());
        }
        Err(format!("set-up failed: {command:?}\n{}\n(all of it: {})", finished.output, self.log.display()))
    }
}

/// Does `work` unless the file `stamp` says that exactly this was done before.
fn once(
    name: &str,
    stamp: &Path,
    wanted: &str,
    work: impl FnOnce(&Steps) -> Result<(), String>,
) -> Result<(), String> {
    if fs::read_to_string(stamp).ok().as_deref() == Some(wanted) {
        return Ok(());
    }
    work(&Steps::new(name)?)?;
    fs::write(stamp, wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))
}

/// The folder of a suite's tests.
pub fn tests(name: &str) -> PathBuf {
    process::root().join("tests").join("sdk").join(name)
}

/// Where suites keep what they download, build and report.
pub fn directory() -> Result<PathBuf, String> {
    Ok(process::target_directory()?.join("sdk"))
}

/// The files of a folder whose names end like this, in order.
fn files(folder: &Path, end: &str) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found.sort();
    Ok(found)
}

pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
