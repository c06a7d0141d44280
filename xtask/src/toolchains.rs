//! The toolchains that the suites need: finds each program, or explains what is missing.

use std::process::Command;

use crate::process;

const NODE_MAJOR_MIN: u32 = 20;
const GO_MINOR_MIN: u32 = 23;
const JAVA_MAJOR_MIN: u32 = 17;

/// Why a suite cannot run here.
pub type Missing = String;

/// The name of a new enough Python that can make virtual environments.
pub fn python() -> Result<String, Missing> {
    let is_new_enough = |name: &&str| {
        let check = "import sys; sys.exit(sys.version_info < (3, 11))";
        process::answer(Command::new(name).args(["-c", check])).is_some()
    };
    let name = ["python3", "python"].into_iter().find(is_new_enough);
    let name = name.ok_or("python3 (3.11 or newer) is not installed")?;
    if process::answer(Command::new(name).args(["-c", "import venv, ensurepip"])).is_none() {
        return Err("the venv module of python3 is not installed".to_owned());
    }
    Ok(name.to_owned())
}

/// The name of npm, if a new enough Node is installed with it.
pub fn node() -> Result<&'static str, Missing> {
    let version = process::answer(Command::new("node").arg("--version")).ok_or("node is not installed")?;
    if number(version.trim_start_matches('v'), 0) < NODE_MAJOR_MIN {
        return Err(format!("node {version} is too old, {NODE_MAJOR_MIN} or newer is needed"));
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    if process::answer(Command::new(npm).arg("--version")).is_none() {
        return Err("npm is not installed".to_owned());
    }
    Ok(npm)
}

pub fn go() -> Result<(), Missing> {
    let version =
        process::answer(Command::new("go").args(["env", "GOVERSION"])).ok_or("go is not installed")?;
    if number(version.trim_start_matches("go"), 1) < GO_MINOR_MIN {
        return Err(format!("{version} is too old, 1.{GO_MINOR_MIN} or newer is needed"));
    }
    Ok(())
}

/// The name of Maven, if a new enough JDK is installed with it.
pub fn java() -> Result<&'static str, Missing> {
    // Ask the compiler (`javac 17.0.15`), because a runtime alone is not enough.
    let version =
        process::answer(Command::new("javac").arg("-version")).ok_or("javac (a JDK) is not installed")?;
    if number(version.trim_start_matches("javac "), 0) < JAVA_MAJOR_MIN {
        return Err(format!("{version} is too old, {JAVA_MAJOR_MIN} or newer is needed"));
    }
    let maven = if cfg!(windows) { "mvn.cmd" } else { "mvn" };
    if process::answer(Command::new(maven).arg("--version")).is_none() {
        return Err("mvn (Maven) is not installed".to_owned());
    }
    Ok(maven)
}

/// A browser on the `PATH`. Where the system's own packages may be installed without asking, it is.
pub fn browser() -> Result<(), Missing> {
    const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
    let is_there =
        || NAMES.into_iter().any(|name| process::answer(Command::new(name).arg("--version")).is_some());
    if is_there() {
        return Ok(());
    }
    let missing = format!("none of {} is installed", NAMES.join(", "));
    install("chromium").map_err(|why| format!("{missing}, and {why}"))?;
    if is_there() { Ok(()) } else { Err(format!("{missing}, and apt cannot install it")) }
}

/// A program on the `PATH` whose package has its name. Where packages may be installed without asking, it is.
pub fn debian_program(name: &str) -> Result<(), Missing> {
    let is_there = || process::answer(Command::new(name).arg("version")).is_some();
    if is_there() {
        return Ok(());
    }
    install(name).map_err(|why| format!("{name} is not installed, and {why}"))?;
    if is_there() { Ok(()) } else { Err(format!("{name} is not installed, and apt cannot install it")) }
}

/// Lets the system's own packages install one, if this user may do that.
fn install(package: &str) -> Result<(), &'static str> {
    let is_root = process::answer(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    if !is_root || process::answer(Command::new("apt-get").arg("--version")).is_none() {
        return Err("only root can install it with apt");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-y", "-qq"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        process::answer(&mut command)
    };
    let install = ["install", "--no-install-recommends", package];
    // The list of packages may be missing or old.
    if apt(&install).is_none() {
        let _ = apt(&["update"]);
        let _ = apt(&install);
    }
    Ok(())
}

/// The number at `place` of a version such as `1.26.8`; 0 when there is none.
fn number(version: &str, place: usize) -> u32 {
    version.split('.').nth(place).and_then(|part| part.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_of_a_version() {
        assert_eq!(
            [number("1.26.8", 0), number("1.26.8", 1), number("20", 1), number("x", 0)],
            [1, 26, 0, 0]
        );
    }
}
