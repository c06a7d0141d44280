//! The load generator, for every program that sends load: `lazulite-bench` compares systems, `lazulite bench` measures
//! one endpoint, the trials overload a server.
//!
//! Owns: endpoints, requests signed beforehand, a cheap reader of answers, latency histograms, the open and the closed
//! loop, workloads, a single measurement. Leaves to the programs: which systems to compare, and how to report results.

pub mod blob;
pub mod blob_request;
pub mod clock;
pub mod endpoint;
pub mod generator;
pub mod histogram;
pub mod measure;
mod messages;
pub mod process;
pub mod queue;
pub mod queue_request;
pub mod request;
pub mod response;
pub mod sources;
pub mod table;
pub mod workload;

/// What went wrong, in words for the person at the terminal. Any cause fits, so `?` works everywhere.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
