//! The advisor, fed with generated workloads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod cases;
mod workload;
