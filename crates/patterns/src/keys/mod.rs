//! Keys that sort as a program needs them: numbers, times, composites, buckets.
//!
//! The service sorts PartitionKey and RowKey as text, by UTF-16 code unit, and forbids some characters. Everything here
//! turns a value into a key so that the order of keys is the order of values, and back.
//!
//! Promises: every key is made of allowed characters, reading back what was written gives the value, and the order is
//! kept (property-tested against the service's own comparison). Leaves to others: the 512 UTF-16 units that a key may
//! have at most; the client and the service check them.

mod bucket;
mod composite;
mod escape;
mod integer;
mod ticks;

#[cfg(test)]
mod tests;

pub use bucket::{BUCKET_COUNT_MAX, bucket, bucket_name, bucket_names, bucketed, hashed, stable_hash};
pub use composite::{SEPARATOR, compose, part_range, parts};
pub use escape::{escape, unescape};
pub use integer::{SIGNED_WIDTH, padded, parse_padded, parse_signed, signed};
pub use ticks::{TICKS_WIDTH, chronological, log_tail, parse_chronological, parse_log_tail};

/// A value that does not fit its key, or a key that was not written by this module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyError {
    reason: String,
}

impl KeyError {
    fn new(reason: impl Into<String>) -> KeyError {
        KeyError { reason: reason.into() }
    }
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.reason)
    }
}

impl std::error::Error for KeyError {}
