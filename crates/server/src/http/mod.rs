//! HTTP below the road: connections, bounds on number, size and time, bodies, and memory for payloads and answers.
//!
//! Knows nothing of the storage protocol: it hands each request to a `listener::Handler` and sends what comes back.

pub mod body;
pub(crate) mod connections;
pub(crate) mod deadline;
pub(crate) mod fairness;
mod framing;
mod guarded_stream;
mod head_timer;
pub(crate) mod header_case;
pub(crate) mod limits;
pub(crate) mod listener;
pub(crate) mod memory_pool;
