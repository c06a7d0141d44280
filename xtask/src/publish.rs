//! `cargo xtask publish`: a dry run of publishing the crates that programs depend on.
//!
//! Promises: each is packaged as it would be uploaded, and built from its package, so that a file outside of its folder
//! or a dependency without a version is found here. Nothing is uploaded. Without the registry it is skipped.

use std::path::PathBuf;
use std::process::Stdio;

use crate::counts::Counts;
use crate::process::cargo;
use crate::toolchains::Missing;

/// Those that are published, in the order of their dependencies.
const PACKAGES: [&str; 3] = ["lazulite-protocol", "lazulite-client-derive", "lazulite-client"];

/// What cargo says when it cannot reach the registry.
const UNREACHABLE: [&str; 3] =
    ["failed to download from", "spurious network error", "failed to get successful HTTP response"];

pub fn run(arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask publish` takes no arguments".to_owned());
    }
    match check()? {
        Ok(counts) => Ok(counts.failed == 0),
        Err(missing) => {
            println!("SKIPPED: {missing}");
            Ok(true)
        }
    }
}

pub fn check() -> Result<Result<Counts, Missing>, String> {
    forget_earlier_packages();
    let mut command = cargo();
    // A tree with changes in it is what people test.
    command.args(["publish", "--dry-run", "--allow-dirty"]);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", *package]));
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    print!("{said}");
    if output.status.success() {
        let passed = PACKAGES.len() as u64;
        return Ok(Ok(Counts { passed, ..Counts::default() }));
    }
    match UNREACHABLE.iter().any(|words| said.contains(words)) {
        true => Ok(Err("the registry cannot be reached".to_owned())),
        false => Ok(Ok(Counts::ONE_FAILED)),
    }
}

/// Removes the packages that an earlier dry run has unpacked in cargo's home. Cargo knows a package by its version, so it
/// would build the next one against the old sources of this version.
fn forget_earlier_packages() {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let registries = home.and_then(|home| std::fs::read_dir(home.join("registry").join("src")).ok());
    for registry in registries.into_iter().flatten().flatten() {
        for unpacked in std::fs::read_dir(registry.path()).into_iter().flatten().flatten() {
            let name = unpacked.file_name();
            let name = name.to_string_lossy();
            let is_ours = |package: &&str| {
                let version = name.strip_prefix(*package).and_then(|rest| rest.strip_prefix('-'));
                version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
            };
            if PACKAGES.iter().any(is_ours) {
                let _ = std::fs::remove_dir_all(unpacked.path());
            }
        }
    }
}
