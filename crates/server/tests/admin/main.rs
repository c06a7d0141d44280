//! The admin port over real sockets: who may use it, what it tells, and that its counters add up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod access;
mod advice;
mod counts;
mod logs;
mod passage;
mod prometheus_text;
mod ready;
mod stage;
mod welcome;
