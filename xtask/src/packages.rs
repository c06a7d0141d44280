//! Debian's packages: databases that are tested with and measured beside.
//!
//! Promises: where programs are missing and this user may install packages, Debian's are installed and nothing of them is
//! started; otherwise the answer says what is missing. Leaves to others: which programs, and what their absence means.

use std::path::Path;
use std::process::Command;

use crate::process;
use crate::toolchains::Missing;

/// Installs the packages whose program is missing, and with them those that belong to `beside`.
pub fn install(packages: &[(&str, &str)], beside: &[&str]) -> Result<Result<(), Missing>, String> {
    let missing: Vec<&str> =
        packages.iter().filter(|(_, program)| !is_installed(program)).map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return Ok(Ok(()));
    }
    let names = missing.join(", ");
    let wanted: Vec<&str> = missing.iter().chain(beside).copied().collect();
    let is_root = process::answer(Command::new("id").arg("-u")).as_deref() == Some("0");
    if !is_root || process::answer(Command::new("apt-get").arg("--version")).is_none() {
        return Ok(Err(format!("{names} missing (Debian: apt-get install {})", wanted.join(" "))));
    }
    println!("==> installing {names}");
    // The package of PostgreSQL would make a cluster of its own otherwise, and start it.
    let settings = Path::new("/etc/postgresql-common/createcluster.conf");
    if !settings.exists() {
        let written = process::create(settings).and_then(|_| {
            std::fs::write(settings, "create_main_cluster = false\n").map_err(|error| error.to_string())
        });
        written.map_err(|error| format!("cannot write {}: {error}", settings.display()))?;
    }
    let log = process::target_directory()?.join("sdk").join("packages-setup.log");
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends"]).args(&wanted);
    // No service is started: tests and benchmarks start their own, on free ports.
    install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    match process::run_quietly(&mut install, &log)?.succeeded {
        true => Ok(Ok(())),
        false => {
            Ok(Err(format!("{names} missing, and could not be installed; the log is {}", log.display())))
        }
    }
}

/// Debian keeps PostgreSQL's programs outside of PATH.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders = std::env::split_paths(&path).chain(versions.map(|version| version.path().join("bin")));
    folders.any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_installed_that_is_there() {
        assert!(is_installed("sh") && !is_installed("no-such-program"));
        assert_eq!(install(&[("no-such-package", "sh")], &["nor-this"]), Ok(Ok(())));
    }
}
