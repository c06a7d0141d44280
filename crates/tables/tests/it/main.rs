//! The service's rules against a plain model: thousands of random operations, batches and queries from a seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod condition;
mod convert;
mod model;
mod random;
mod run;
mod sharing;
