//! The Queue service's rules, on the engine in memory and on the embedded one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod changing;
mod counting;
mod messages;
mod model;
mod queues;
mod sharing;
mod support;
