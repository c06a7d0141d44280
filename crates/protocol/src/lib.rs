//! The wire as plain values, shared by server and client.
//!
//! Owns: the names, values, errors and texts that cross the wire, and the functions that read and write them.
//! [`common`] holds what all storage services share, [`auth`] how callers prove who they are and what they may do,
//! [`service`] the operations that every service has on itself, [`table`], [`queue`] and [`blob`] everything particular to
//! these services.
//! Promises: no I/O, no async, no clock. Bytes from the network may be refused but never cause a panic.
//! Leaves to others: sockets, storage, and every decision about data.

pub mod auth;
pub mod blob;
pub mod common;
pub mod queue;
pub mod service;
pub mod table;

pub use common::error::{ErrorCode, ServiceError};
