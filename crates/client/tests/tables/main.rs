//! The table client against a real server: every operation and every refusal.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod bulk;
mod cancel;
mod encryption;
mod lost;
mod query;
mod single;
mod support;
mod transaction;
mod update;
