//! HTTP beneath the road: connections, bounds on number, size and time, bodies, and memory for payloads and answers.
//!
//! Knows nothing of the storage protocol: it hands each request to a [`listener::Handler`] and sends what comes back.

pub mod body;
pub mod deadline;
mod head_timer;
pub mod heavy;
pub mod limits;
pub mod listener;
pub mod memory_pool;
mod stall;
