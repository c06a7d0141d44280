//! `cargo xtask golden`: replays the exchanges of `tests/golden` against any server and prints the differences.
//!
//! A binary of `proof/testkit` replays them. Its arguments are passed on unchanged.

use crate::process::{self, cargo};

pub fn run(arguments: &[String]) -> Result<bool, String> {
    let mut player = cargo();
    player.args(["run", "--quiet", "--package", "testkit", "--bin", "golden", "--"]).args(arguments);
    let status = player.current_dir(process::root()).status();
    Ok(status.map_err(|error| format!("cannot start cargo: {error}"))?.success())
}
