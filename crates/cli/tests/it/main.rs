//! The real binary, run as a child process: its command line, its output, its exit codes, and the data that survives a
//! kill.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod account_command;
mod accounts;
mod admin;
mod advise;
mod analytics;
mod arguments;
mod backup;
mod bearer;
mod bench;
mod blob_options;
mod blobs;
mod configuration;
mod control;
mod crash;
mod directory;
mod fixtures;
mod hostile;
#[cfg(unix)]
mod open_files;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod postgres_blobs;
mod profiles;
mod queues;
mod rehearsal;
mod restart;
mod restore_cut;
mod running;
mod sas_command;
mod size;
mod tls;

/// The binary under test.
const LAZULITE: &str = env!("CARGO_BIN_EXE_lazulite");
/// The environment variables that name accounts.
const ACCOUNT_VARIABLES: [&str; 2] = ["LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"];

/// Runs the binary with arguments that must fail: exit code 1, one sentence on stderr, nothing on stdout.
#[track_caller]
fn refusal(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = testkit::run_to_exit(LAZULITE, arguments, environment);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "one sentence:\n{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr.trim_end().to_owned()
}
