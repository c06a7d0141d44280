//! `cargo xtask bench`: builds the server and the benchmark in release mode, installs Azurite, and runs the benchmark.
//!
//! It also installs Redis and PostgreSQL, which it is compared with, where that is allowed; with `--scale-out` PostgreSQL and
//! what a cluster of it needs.
//! `proof/bench` decides what is measured and how. Its arguments are passed on unchanged, except that `--write` gets
//! the directory of our documents.

use std::path::PathBuf;
use std::process::Command;

use crate::process::{self, cargo};
use crate::{azurite, packages, scale_out};

/// The benchmark's exit code for wrong arguments, after it has printed what is wrong.
const WRONG_USE: i32 = 2;
/// What the usual run compares with: Debian's packages, and a program of each.
const RIVALS: [(&str, &str); 2] = [("redis-server", "redis-server"), ("postgresql", "initdb")];

pub fn run(arguments: &[String]) -> Result<bool, String> {
    println!("==> building the server and the benchmark");
    let built =
        process::run(cargo().args(["build", "--release", "--package", "lazulite", "--package", "bench"]))?;
    if !built.succeeded {
        return Ok(false);
    }
    if arguments.iter().any(|argument| argument == "--scale-out") {
        scale_out::install()??;
    } else if wants_rivals(arguments)
        && let Err(missing) = packages::install(&RIVALS, &[])?
    {
        // The benchmark goes on without them, and says so too.
        println!("SKIPPED: {missing}");
    }
    let benchmark = process::release_program("lazulite-bench")?;
    let mut command = Command::new(&benchmark);
    command.arg("run").arg("--server").arg(process::release_program("lazulite")?);
    if wants_azurite(arguments) {
        match azurite_script() {
            Ok(script) => command.arg("--azurite").arg(script),
            Err(missing) => command.arg("--no-azurite").arg(missing),
        };
    }
    command.arg("--command").arg(format!("cargo xtask bench {}", arguments.join(" ")).trim_end());
    let status = command
        .args(with_directory(arguments))
        .current_dir(process::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", benchmark.display()))?;
    if status.code() == Some(WRONG_USE) {
        std::process::exit(WRONG_USE);
    }
    Ok(status.success())
}

/// Quick runs, runs on a large table, and runs that name other systems do without Azurite.
fn wants_azurite(arguments: &[String]) -> bool {
    let systems = arguments.iter().position(|argument| argument == "--systems");
    let named = systems.and_then(|index| arguments.get(index + 1));
    if named.is_some_and(|systems| !systems.contains("azurite")) {
        return false;
    }
    !arguments.iter().any(|argument| {
        matches!(
            argument.as_str(),
            "--quick" | "--large" | "--huge" | "--large-queues" | "--client" | "--help" | "-h"
        )
    })
}

/// So do they do without Redis and PostgreSQL, and so do blobs.
fn wants_rivals(arguments: &[String]) -> bool {
    let systems = arguments.iter().position(|argument| argument == "--systems");
    if let Some(named) = systems.and_then(|index| arguments.get(index + 1)) {
        return named.contains("redis") || named.contains("postgres");
    }
    wants_azurite(arguments) && !arguments.iter().any(|argument| argument == "--blobs")
}

/// Adds the directory of our documents after `--write`.
fn with_directory(arguments: &[String]) -> Vec<String> {
    let mut given = Vec::new();
    for argument in arguments {
        given.push(argument.clone());
        if argument == "--write" {
            given.push("docs".to_owned());
        }
    }
    given
}

/// Azurite's script for tables; or why it is not installed.
fn azurite_script() -> Result<PathBuf, String> {
    let package = azurite::install().and_then(|installed| installed)?;
    Ok(azurite::table_script(&package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on_and_write_gets_its_directory() {
        let arguments = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(with_directory(&arguments("--rounds 2 --write")), ["--rounds", "2", "--write", "docs"]);
        assert!(
            wants_azurite(&arguments("--scale-out")) && !wants_azurite(&arguments("--scale-out --large"))
        );
        assert!(
            wants_azurite(&arguments("--blobs --rounds 3")) && !wants_azurite(&arguments("--blobs --large"))
        );
        assert!(!wants_azurite(&arguments("--huge --entities 1")));
        assert!(
            wants_rivals(&arguments("--rounds 3")) && wants_rivals(&arguments("--systems durable,redis"))
        );
        assert!(!wants_rivals(&arguments("--systems durable")) && !wants_rivals(&arguments("--blobs")));
        assert!(wants_azurite(&arguments("--full")) && !wants_azurite(&arguments("--quick --rounds 2")));
        assert!(
            wants_azurite(&arguments("--systems azurite")) && !wants_azurite(&arguments("--systems hello"))
        );
    }
}
