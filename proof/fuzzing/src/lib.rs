//! The fuzz targets: one function for each format that comes from the network or the disk.
//!
//! Owns: which code an input reaches, which promises are asserted about the result, and the initial inputs. A function
//! panics if a promise is broken: a value differs after it was written and read again, or the code under test panicked.
//! It returns how far the input got.
//! Leaves to others: making inputs. Two fuzzers call these functions: the driver in `driver/`, on any toolchain, and
//! libFuzzer in `/fuzz`, which needs nightly.
//!
//! To add a format, add a file in `targets/`, a line in [`TARGETS`] and three lines in `/fuzz`, like those of the
//! others.

mod golden;
pub mod targets;

pub use golden::{Exchange, Golden, Message};

use protocol::{ErrorCode, ServiceError};
use targets::*;

/// How far an input got: the kind as which it was accepted, or the reason why it was refused.
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
    /// Initial inputs: from the golden files, and written by hand where those have none.
    pub seeds: fn(&Golden) -> Vec<Vec<u8>>,
}

/// Every format, in the order in which they are run.
pub const TARGETS: [Target; 19] = [
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
    queue_request::TARGET,
    queue_message::TARGET,
    queue_row::TARGET,
];

/// The account that all inputs use.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";

/// The published key of [`ACCOUNT`], the same in every emulator.
pub(crate) const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// An input as text. The HTTP layer refuses anything that is not UTF-8 before it reaches code that takes text.
pub(crate) fn as_text(input: &[u8]) -> Result<&str, Outcome> {
    std::str::from_utf8(input).map_err(|_| Outcome::Refused("not UTF-8"))
}

/// Cuts an input at its first line end, for targets that need two texts.
pub(crate) fn cut_line(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => (input[..at].strip_suffix(b"\r").unwrap_or(&input[..at]), &input[at + 1..]),
        None => (input, &[]),
    }
}
