//! The Table service's wire as plain values, shared by server and client.
//!
//! Owns: the names, values, errors and texts that cross the wire, and the functions that read and write them.
//! Promises: no I/O, no async, no clock; whatever a stranger sends may be refused but never panics.
//! Leaves to others: sockets, storage, and every decision about data.

pub mod auth;
pub mod error;
pub mod filter;
pub mod model;
pub mod operation;
pub mod wire;

pub use error::{ErrorCode, ServiceError};
