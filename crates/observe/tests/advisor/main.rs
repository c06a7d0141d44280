//! The advisor, fed with generated workloads.

mod cases;
mod workload;
