//! The engine on disk from outside: the conformance suite, then what only this engine promises.

#![allow(clippy::unwrap_used)] // All of it is tests, the helpers too.

mod conformance;
mod damage;
mod disk;
mod displaced;
mod failures;
mod fixtures;
mod folding;
mod gauges;
mod log;
mod model;
mod pipeline;
mod reopen;
mod support;
mod upgrade;
