//! How each suite is set up: what it installs, and the command that then runs its tests.
//!
//! Promises: versions are pinned in the repository; everything lands under the target directory (only `node_modules`
//! stands beside its tests); a set-up is repeated only when its pins change. A missing toolchain means that the suite
//! is skipped; a set-up that fails is a failure. An older client, which a registry may drop one day, is skipped too when
//! its download fails. Running the suite is the work of `suites`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cases;
use crate::process;
use crate::suites::{Report, Suite, directory, files, read, tests};
use crate::toolchains::{self, Missing};

const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// A suite that is ready to run, or the toolchain that it misses.
pub type SetUp = Result<Result<Suite, Missing>, String>;

pub fn set_up(name: &str) -> SetUp {
    match name {
        "python" | "python-old" => set_up_pytest(name),
        "javascript" | "javascript-old" => set_up_node(name, tests(name)),
        "go" | "go-old" => set_up_go(name),
        "java" | "java-old" => set_up_java(name),
        "rust-sdk" => set_up_rust(),
        "browser" => set_up_browser(),
        "programs" => set_up_programs(),
        "az" => set_up_az(),
        other => Err(format!("there is no SDK suite called '{other}'")),
    }
}

fn set_up_browser() -> SetUp {
    match toolchains::browser() {
        Ok(()) => set_up_node("browser", process::root().join("tests").join("browser")),
        Err(missing) => Ok(Err(missing)),
    }
}

/// The command line from PyPI. It is not in the gate, because it takes long to install.
fn set_up_az() -> SetUp {
    let config = directory()?.join("az-config");
    Ok(set_up_pytest("az")?.map(|mut suite| {
        // Ignore the user's own settings and send no telemetry.
        suite.command.env("AZURE_CONFIG_DIR", config).env("AZURE_CORE_COLLECT_TELEMETRY", "no");
        suite
    }))
}

/// Programs that others wrote. Those of Debian are installed where that is possible; a missing one is skipped by its
/// tests.
fn set_up_programs() -> SetUp {
    let python = match toolchains::python() {
        Ok(python) => python,
        Err(missing) => return Ok(Err(missing)),
    };
    for missing in ["rclone", "restic"].map(toolchains::debian_program).into_iter().filter_map(Result::err) {
        println!("SKIPPED in programs: {missing}");
    }
    let tests = process::root().join("tests").join("programs");
    let (program, report) = python_environment("programs", &python, &tests)?;
    let mut command = pytest(&program, &tests, &report);
    command.args(["-q", "-rs"]);
    match azcopy(&tests.join("azcopy"))? {
        Ok(binary) => {
            command.env("LAZULITE_AZCOPY", binary);
        }
        Err(missing) => println!("SKIPPED in programs: azcopy: {missing}"),
    }
    Ok(Ok(Suite { command, is_shown: true, report: Report::Junit(report) }))
}

/// Builds AzCopy at the version that its module pins. A registry may drop it one day; then it is missing.
fn azcopy(module: &Path) -> Result<Result<PathBuf, Missing>, String> {
    if let Err(missing) = toolchains::go() {
        return Ok(Err(missing));
    }
    let caches = directory()?.join("go");
    let binary = caches.join(process::program_name("azcopy"));
    let wanted = read(&module.join("go.sum"))?;
    let built = once("programs", &caches.join("azcopy-built.txt"), &wanted, |steps| {
        let mut build = Command::new("go");
        build.args(["build", "-modcacherw", "-buildvcs=false", "-o"]).arg(&binary);
        build
            .arg("github.com/Azure/azure-storage-azcopy/v10")
            .current_dir(module)
            .env("GOTOOLCHAIN", "local");
        build.env("GOMODCACHE", caches.join("modules")).env("GOCACHE", caches.join("build"));
        steps.run(&mut build)
    });
    Ok(match built {
        Ok(()) => Ok(binary),
        Err(_) => Err(format!("it could not be built; the log is {}", Steps::new("programs")?.log.display())),
    })
}

fn set_up_pytest(name: &str) -> SetUp {
    let python = match toolchains::python() {
        Ok(python) => python,
        Err(missing) => return Ok(Err(missing)),
    };
    let tests = tests(name);
    let (program, report) = match python_environment(name, &python, &tests) {
        Ok(environment) => environment,
        Err(message) => return not_downloaded(name, message),
    };
    let mut command = pytest(&program, &tests, &report);
    command.arg("-q");
    Ok(Ok(Suite { command, is_shown: true, report: Report::Junit(report) }))
}

/// Makes a virtual environment with a suite's requirements. Returns its interpreter and the path for the report.
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

fn set_up_node(name: &str, folder: PathBuf) -> SetUp {
    let npm = match toolchains::node() {
        Ok(npm) => npm,
        Err(missing) => return Ok(Err(missing)),
    };
    if let Err(message) = npm_packages(name, npm, &folder) {
        return not_downloaded(name, message);
    }
    let report = directory()?.join(format!("{name}-report.txt"));
    let reporter = tests("javascript").join("reporter.mjs");
    let mut command = Command::new("node");
    command.arg("--test");
    command.args(["--test-reporter=spec", "--test-reporter-destination=stdout"]);
    command.arg(format!("--test-reporter={}", reporter.display()));
    command.arg(format!("--test-reporter-destination={}", report.display()));
    command.args(files(&folder, ".test.mjs")?).current_dir(folder);
    Ok(Ok(Suite { command, is_shown: true, report: Report::Node(report) }))
}

/// Installs the packages of a lock file beside it.
pub fn npm_packages(name: &str, npm: &str, folder: &Path) -> Result<(), String> {
    let wanted = read(&folder.join("package-lock.json"))?;
    once(name, &folder.join("node_modules").join(".installed-lock.json"), &wanted, |steps| {
        let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
        steps.run(Command::new(npm).args(install).current_dir(folder))
    })
}

fn set_up_go(name: &str) -> SetUp {
    if let Err(missing) = toolchains::go() {
        return Ok(Err(missing));
    }
    // Both suites share the caches; their set-ups run one after the other.
    let (tests, caches) = (tests(name), directory()?.join("go"));
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).arg("-modcacherw").current_dir(&tests).env("GOTOOLCHAIN", "local");
        command.env("GOMODCACHE", caches.join("modules")).env("GOCACHE", caches.join("build"));
        command
    };
    let stamp = caches.join(format!("{name}-downloaded.txt"));
    let wanted = read(&tests.join("go.sum"))?;
    let download = |steps: &Steps| steps.run(&mut go(&["mod", "download"]));
    if let Err(message) = once(name, &stamp, &wanted, download) {
        return not_downloaded(name, message);
    }
    // Compile every time, so that changed tests count. The caches keep it quick.
    let binary = caches.join(process::program_name(&format!("{name}.test")));
    let mut build = go(&["test", "-c", "-buildvcs=false"]);
    Steps::new(name)?.run(build.arg("-o").arg(&binary).arg("."))?;

    let mut areas = BTreeMap::new();
    for file in files(&tests, "_test.go")? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        areas.extend(cases::go_areas(&name, &read(&file)?));
    }
    let mut command = Command::new(binary);
    command.args(["-test.v", "-test.timeout=10m"]).current_dir(tests);
    Ok(Ok(Suite { command, is_shown: false, report: Report::Go(areas) }))
}

fn set_up_java(name: &str) -> SetUp {
    let maven = match toolchains::java() {
        Ok(maven) => maven,
        Err(missing) => return Ok(Err(missing)),
    };
    let (tests, place) = (tests(name), directory()?.join(name));
    // Both suites share the repository; their set-ups run one after the other.
    let repository = directory()?.join("java").join("repository");
    let maven = |arguments: &[&str]| {
        let mut command = Command::new(maven);
        command.args(["--quiet", "--batch-mode", "--no-transfer-progress"]).args(arguments);
        command.arg(format!("-Dmaven.repo.local={}", repository.display()));
        command.arg(format!("-Dlazulite.build={}", place.join("build").display()));
        command.current_dir(&tests);
        command
    };
    let wanted = read(&tests.join("pom.xml"))?;
    let download = |steps: &Steps| steps.run(&mut maven(&["test", "-Dmaven.test.skip=true"]));
    if let Err(message) = once(name, &place.join("downloaded.txt"), &wanted, download) {
        return not_downloaded(name, message);
    }
    once(name, &place.join("installed.txt"), &wanted, |steps| {
        // Maven downloads its test runner only when it runs a test. This test finds no server and fails, which is
        // ignored here.
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

/// The result of a download that failed: a failure. But a registry may drop an older client one day, so that suite is
/// skipped; the log has the details.
fn not_downloaded(name: &str, message: String) -> SetUp {
    if !name.ends_with("-old") {
        return Err(message);
    }
    Ok(Err(format!("the client could not be downloaded; the log is {}", Steps::new(name)?.log.display())))
}

/// The commands of one set-up. Their output goes to a log, and is shown when one fails.
struct Steps {
    log: PathBuf,
}

impl Steps {
    fn new(name: &str) -> Result<Steps, String> {
        Ok(Steps { log: directory()?.join(format!("{name}-setup.log")) })
    }

    /// Tries twice: most steps download something, and not every tool bears with a registry that stumbles for a moment.
    fn run(&self, command: &mut Command) -> Result<(), String> {
        let mut finished = process::run_quietly(command, &self.log)?;
        if !finished.succeeded {
            println!("set-up failed and is tried again: {command:?}\n{}", finished.output);
            std::thread::sleep(RETRY_PAUSE);
            finished = process::run_quietly(command, &self.log)?;
        }
        if finished.succeeded {
            return Ok(());
        }
        Err(format!("set-up failed: {command:?}\n{}\n(full log: {})", finished.output, self.log.display()))
    }
}

/// Does `work` unless the file `stamp` already holds `wanted`, which describes it; then writes the stamp.
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
    if let Some(folder) = stamp.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    fs::write(stamp, wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))
}
