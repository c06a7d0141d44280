//! The engines of this crate from outside, and one that is not of this crate: the conformance suite against each.

#![allow(clippy::unwrap_used)] // All of it is tests, the helpers too.

mod conformance;
mod faults;
mod outsider;
