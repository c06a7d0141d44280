//! The load generator's parts, for the programs that send load: `lazulite-bench` measures speed with them, the trials
//! measure what happens beyond it.
//!
//! Owns: requests signed beforehand, answers read cheaply, latencies in buckets, the closed loop, the processes that
//! are measured. What is measured and how it is reported is left to the programs.

pub mod clock;
pub mod histogram;
pub mod load;
pub mod request;
pub mod response;
pub mod system;
pub mod workload;

/// What went wrong, in words for the person at the terminal.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
