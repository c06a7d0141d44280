//! HTTP/1 below the road: connections, bounds on number, size and time, heads, bodies, and memory for them.
//!
//! Knows nothing of the storage protocol: it hands each request to a `listener::Handler` and sends what comes back.

pub mod body;
mod body_decoder;
mod connection;
pub(crate) mod connections;
pub(crate) mod deadline;
pub(crate) mod fairness;
mod head_timer;
pub(crate) mod header_names;
mod known_names;
pub(crate) mod limits;
pub(crate) mod listener;
pub(crate) mod memory_pool;
pub mod open_files;
mod parse;
pub mod parts;
pub mod response;
mod wire;
