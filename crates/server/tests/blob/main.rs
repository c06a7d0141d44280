//! The Blob service over real sockets: one module per behaviour, one line per case.
//!
//! Expectations come from the protocol reference for blobs, not from the code. Section numbers (§) in comments refer to
//! it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod access;
mod append;
mod batch;
mod blocks;
mod conditions;
mod containers;
mod copy;
mod cors;
mod delegation;
mod golden;
mod header_text;
mod leases;
mod list;
mod pages;
mod properties_of_blobs;
mod put;
mod ranges;
mod sas;
mod sas_matrix;
mod snapshots;
mod streaming;
mod tags;
mod traps;
mod website;

use std::sync::Arc;
use std::time::Duration;

use engine::env::{FakeClock, UNIX_EPOCH_TICKS};
use testkit::TestServer;

/// 2026-06-26T23:39:12Z.
const START_TICKS: u64 = UNIX_EPOCH_TICKS + 1_782_517_152 * 10_000_000;

/// A server with the container `abc`.
fn with_container() -> TestServer {
    let server = TestServer::start();
    server.blob().create("abc");
    server
}

/// The same, and time stands still until the test moves it.
fn with_stopped_clock() -> (TestServer, Arc<FakeClock>) {
    let clock = Arc::new(FakeClock::new(START_TICKS));
    let server = TestServer::options().clock(clock.clone()).start();
    server.blob().create("abc");
    (server, clock)
}

/// Lets this many seconds pass, and a little more.
fn pass(clock: &FakeClock, seconds: u64) {
    clock.advance(Duration::from_secs(seconds) + Duration::from_millis(1));
}

/// Bytes that differ from place to place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}
