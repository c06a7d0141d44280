//! The table client against a real server: every operation and every refusal.

mod bulk;
mod cancel;
mod encryption;
mod lost;
mod query;
mod single;
mod support;
mod transaction;
mod update;
