//! The promises of contents, on a real directory, in memory, and on disks that fail.

mod contract;
mod crash;
mod damage;
mod disk;
mod load;
mod model;
mod space;
mod support;
