//! HTTP beneath the road: connections, bounds on number, size and time, bodies, and memory for what is on its way.
//!
//! Knows no service: it hands each request to the road and sends what comes back.

pub mod body;
pub mod deadline;
mod head_timer;
pub mod header_names;
pub mod heavy;
pub mod limits;
pub mod listener;
pub mod memory_pool;
mod stall;
