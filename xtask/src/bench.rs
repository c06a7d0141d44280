//! `cargo xtask bench`: builds the server and the load generator in release mode, installs Azurite, lets the generator
//! measure.
//!
//! What is measured and how is the business of `proof/bench`; its arguments are passed on untouched, but for `--write`,
//! which needs no directory here.

use std::path::PathBuf;
use std::process::Command;

use crate::process::{self, cargo};
use crate::test::server_binary;
use crate::{suites, toolchains};

/// How the generator leaves when it did not understand its arguments; it has said so itself.
const WRONG_USE: i32 = 2;

pub fn run(arguments: &[String]) -> Result<bool, String> {
    println!("==> building the server and the load generator");
    let built =
        process::run(cargo().args(["build", "--release", "--package", "lazulite", "--package", "bench"]))?;
    if !built.succeeded {
        return Ok(false);
    }
    let server = server_binary()?;
    let generator = server.with_file_name(format!("lazulite-bench{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(&generator);
    command.arg("run").arg("--server").arg(&server);
    if wants_azurite(arguments) {
        match azurite() {
            Ok(script) => command.arg("--azurite").arg(script),
            Err(missing) => command.arg("--no-azurite").arg(missing),
        };
    }
    command.arg("--command").arg(format!("cargo xtask bench {}", arguments.join(" ")).trim_end());
    let status = command
        .args(with_directory(arguments))
        .current_dir(process::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", generator.display()))?;
    if status.code() == Some(WRONG_USE) {
        std::process::exit(WRONG_USE);
    }
    Ok(status.success())
}

/// Neither a quick run nor one on a large table has it, nor one of other systems.
fn wants_azurite(arguments: &[String]) -> bool {
    let systems = arguments.iter().position(|argument| argument == "--systems");
    let named = systems.and_then(|index| arguments.get(index + 1));
    if named.is_some_and(|systems| !systems.contains("azurite")) {
        return false;
    }
    !arguments.iter().any(|argument| matches!(argument.as_str(), "--quick" | "--large" | "--help" | "-h"))
}

/// `--write` means the documents of this repository.
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

/// Azurite's script for tables, installed as the lock file says; or why there is none.
fn azurite() -> Result<PathBuf, String> {
    let npm = toolchains::node()?;
    let folder = suites::tests("azurite");
    suites::npm_packages("azurite", npm, &folder)?;
    let script = ["node_modules", "azurite", "dist", "src", "table", "main.js"];
    Ok(script.iter().fold(folder, |path, part| path.join(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on_and_write_gets_its_directory() {
        let arguments = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(with_directory(&arguments("--rounds 2 --write")), ["--rounds", "2", "--write", "docs"]);
        assert!(wants_azurite(&arguments("--full")) && !wants_azurite(&arguments("--quick --rounds 2")));
        assert!(
            wants_azurite(&arguments("--systems azurite")) && !wants_azurite(&arguments("--systems hello"))
        );
    }
}
