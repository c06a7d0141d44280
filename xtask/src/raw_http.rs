//! The raw HTTP suites of the `server` crate: tables, queues and blobs, each with a test binary of its own.

use crate::cases::{self, Case};
use crate::process::{self, cargo};

/// The folder below `crates/server/tests`, and what stands in front of its modules' names to tell them apart.
pub const SUITES: [(&str, &str); 3] = [("it", ""), ("queue", "queue_"), ("blob", "blob_")];

/// Runs them against the server of this workspace. Returns the cases, and how many failed.
pub fn run() -> Result<(Vec<Case>, u64), String> {
    let (mut all, mut failed) = (Vec::new(), 0);
    for (suite, prefix) in SUITES {
        let finished = process::run(cargo().args(["test", "--package", "lazulite-server", "--test", suite]))?;
        let mut cases = cases::from_cargo_test(&finished.output);
        failed += cases::counts(&cases).of_run(finished.succeeded).failed;
        for case in &mut cases {
            case.area.insert_str(0, prefix);
        }
        all.append(&mut cases);
    }
    Ok((all, failed))
}
