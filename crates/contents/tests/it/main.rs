//! The promises of contents, on a real directory, in memory, and on disks that fail.

#![allow(clippy::unwrap_used)] // All of it is tests, the helpers too.

mod contract;
mod crash;
mod damage;
mod disk;
mod format;
mod load;
mod model;
#[cfg(feature = "objects")]
mod objects;
#[cfg(feature = "objects")]
mod s3_server;
mod space;
mod support;
