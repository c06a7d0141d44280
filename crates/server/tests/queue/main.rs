//! The Queue service over real sockets: one module per behaviour, one line per case.
//!
//! Expectations come from the protocol reference for queues, not from the code. Section numbers (§) in comments refer to
//! it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod acl;
mod bearer;
mod clear;
mod cors;
mod delete;
mod errors;
mod expiry;
mod get;
mod golden;
mod headers;
mod hostile;
mod list;
mod metadata;
mod parameters;
mod peek;
mod put;
mod queues;
mod receipts;
mod sas;
mod sas_matrix;
mod service_properties;
mod shared_key;
mod traps;
mod update;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use engine::env::{FakeClock, UNIX_EPOCH_TICKS};
use testkit::{Request, TestServer};

/// 2026-06-26T23:39:12Z.
const START_TICKS: u64 = UNIX_EPOCH_TICKS + 1_782_517_152 * 10_000_000;

/// A document with one stored policy, called `p`.
const POLICY: &str = "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Start>2022-10-27T22:01:36Z</Start><Expiry>2099-10-27T23:06:36Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

/// A server with the queue `abc`.
fn with_queue() -> TestServer {
    let server = TestServer::start();
    server.queue().create("abc");
    server
}

/// The same, and time stands still until the test moves it.
fn with_stopped_clock() -> (TestServer, Arc<FakeClock>) {
    let clock = Arc::new(FakeClock::new(START_TICKS));
    let server = TestServer::options().clock(clock.clone()).start();
    server.queue().create("abc");
    (server, clock)
}

/// Lets this many seconds pass, and a little more: the server never tells the same moment twice, so its time is a few
/// ticks ahead of a clock that stands still, and of the time of another front end.
fn pass(clock: &FakeClock, seconds: u64) {
    clock.advance(Duration::from_secs(seconds) + Duration::from_millis(1));
}

/// Every operation on a queue and its messages, each well-formed: its name, and the request.
fn operations_on(queue: &str) -> Vec<(&'static str, Request)> {
    let message =
        testkit::message_path(queue, "a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab", "bjoiqbcycpsabwpecydj");
    vec![
        ("Delete Queue", Request::delete(&format!("/{queue}"))),
        ("Get Queue Metadata", Request::get(&format!("/{queue}?comp=metadata"))),
        ("Set Queue Metadata", Request::put(&format!("/{queue}?comp=metadata"))),
        ("Get Queue ACL", Request::get(&format!("/{queue}?comp=acl"))),
        ("Set Queue ACL", Request::put(&format!("/{queue}?comp=acl"))),
        ("Put Message", Request::post(&format!("/{queue}/messages")).xml(&testkit::message_xml("a"))),
        ("Get Messages", Request::get(&format!("/{queue}/messages"))),
        ("Peek Messages", Request::get(&format!("/{queue}/messages?peekonly=true"))),
        ("Clear Messages", Request::delete(&format!("/{queue}/messages"))),
        ("Update Message", Request::put(&format!("{message}&visibilitytimeout=0"))),
        ("Delete Message", Request::delete(&message)),
    ]
}
