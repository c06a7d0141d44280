//! The Blob service's rules, on the engine and the contents in memory and on the embedded ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod containers;
mod failures;
mod listing;
mod model;
mod races;
mod rules;
mod support;
mod sweeping;
mod tricks;
