//! The server over real sockets: one module per behaviour, one line per case.
//!
//! Expectations come from the protocol reference, not from the code. Section numbers (§) in comments refer to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod addressing;
mod analytics;
mod applications;
mod auth;
mod batch;
mod batch_dialects;
mod batch_rules;
mod cors;
mod entities;
mod error_table;
mod errors;
mod etags;
mod filters;
mod framing;
mod golden;
mod headers;
mod hostile;
mod http;
mod keys;
mod limits;
mod memory;
mod negotiation;
mod outbox;
mod paging;
mod policies;
mod query;
mod readings;
mod rulings;
mod sas;
mod sas_matrix;
mod sas_range;
mod sas_scope;
mod scans;
mod service_properties;
mod tables;
mod throttle;
mod traps;
mod traps_batch;
mod traps_filters;
mod traps_keys;
mod types;
mod update;
