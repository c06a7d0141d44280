//! The server over real sockets: one module per behaviour, each case a line.
//!
//! Expectations come from the protocol reference, not from the code; a section number in a comment says where.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod addressing;
mod auth;
mod batch;
mod batch_dialects;
mod batch_rules;
mod entities;
mod error_table;
mod errors;
mod etags;
mod filters;
mod headers;
mod http;
mod keys;
mod limits;
mod negotiation;
mod paging;
mod query;
mod tables;
mod types;
mod update;
