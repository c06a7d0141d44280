//! Everything that reads bytes from strangers or from the disk, one function per format, for a fuzzer to call.
//!
//! Owns: what is called with an input, which promises are asserted of what comes out, and the inputs to start from.
//! A function panics when a promise is broken: something read is not the same when it is written and read again, or
//! the code under test panicked itself. What it returns says how far the input got.
//! Leaves to others: where inputs come from. Two fuzzers call these functions: the driver in `driver/`, on any
//! toolchain, and libFuzzer in `/fuzz`, which needs nightly.
//!
//! A new format is a file in `targets/` and a line in [`TARGETS`]; its three lines in `/fuzz` are like the others.

mod golden;
pub mod targets;

pub use golden::{Exchange, Golden, Message};

use protocol::{ErrorCode, ServiceError};
use targets::*;

/// How far an input got: a kind that was taken, or the reason for which it was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Accepted(&'static str),
    Refused(&'static str),
}

impl From<ErrorCode> for Outcome {
    fn from(code: ErrorCode) -> Outcome {
        Outcome::Refused(code.name())
    }
}

impl From<ServiceError> for Outcome {
    fn from(error: ServiceError) -> Outcome {
        error.code.into()
    }
}

/// One format.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]) -> Outcome,
    /// The longest input that the wire or the disk lets through to this code.
    pub input_bytes_max: usize,
    /// Words of the grammar, for mutations to insert.
    pub tokens: &'static [&'static [u8]],
    /// Inputs to start from: from the golden files, and by hand what they do not have.
    pub seeds: fn(&Golden) -> Vec<Vec<u8>>,
}

/// Every format, in the order in which they are run.
pub const TARGETS: [Target; 16] = [
    request::TARGET,
    options::TARGET,
    filter::TARGET,
    entity::TARGET,
    batch::TARGET,
    authorization::TARGET,
    sas::TARGET,
    bearer::TARGET,
    acl::TARGET,
    properties::TARGET,
    continuation::TARGET,
    record::TARGET,
    key::TARGET,
    row::TARGET,
    log::TARGET,
    backup::TARGET,
];

/// The account in all inputs.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";

/// The published key of [`ACCOUNT`], which every emulator has.
pub(crate) const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// An input as text; what is not UTF-8 never gets past the HTTP door to the code that takes text.
pub(crate) fn as_text(input: &[u8]) -> Result<&str, Outcome> {
    std::str::from_utf8(input).map_err(|_| Outcome::Refused("not UTF-8"))
}

/// Cuts an input at its first line end: what needs two texts gets them like this.
pub(crate) fn cut_line(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => (input[..at].strip_suffix(b"\r").unwrap_or(&input[..at]), &input[at + 1..]),
        None => (input, &[]),
    }
}
