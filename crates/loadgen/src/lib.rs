//! The load generator's parts, for the programs that send load: `lazulite-bench` measures speed with them, `lazulite bench`
//! measures any endpoint, the trials measure what happens beyond.
//!
//! Owns: endpoints, requests signed beforehand, answers read cheaply, latencies in buckets, the open and the closed loop,
//! workloads, one measurement. Which systems are compared and how it is reported is left to the programs.

pub mod clock;
pub mod endpoint;
pub mod generator;
pub mod histogram;
pub mod measure;
pub mod process;
pub mod request;
pub mod response;
pub mod sources;
pub mod table;
pub mod workload;

/// What went wrong, in words for the person at the terminal.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
