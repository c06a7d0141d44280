//! The engines from outside: the conformance suite against each, then what only the one on disk promises.

#![allow(clippy::unwrap_used)] // All of it is tests, the helpers too.

mod conformance;
mod damage;
mod disk;
mod failures;
mod faults;
mod log;
mod model;
mod pipeline;
mod reopen;
mod support;
