//! The wire as plain values, shared by server and client.
//!
//! Owns: the names, values, errors and texts that cross the wire, and the functions that read and write them.
//! [`common`] holds what every storage service speaks, [`auth`] how callers prove who they are and what they may do,
//! [`service`] the
//! operations that every service has on itself, [`table`] what only the Table service speaks; [`queue`] and [`blob`] have so far
//! what authentication needs of them.
//! Promises: no I/O, no async, no clock; whatever a stranger sends may be refused but never panics.
//! Leaves to others: sockets, storage, and every decision about data.

pub mod auth;
pub mod blob;
pub mod common;
pub mod queue;
pub mod service;
pub mod table;

pub use common::error::{ErrorCode, ServiceError};
