//! The patterns of the "Azure Table storage design guide" as reusable pieces.
//!
//! [`keys`] designs keys. The other modules are one pattern each, where a library makes sense; the patterns that are a way
//! to lay out entities, and nothing more, are examples only. `docs/patterns` has a page for each, and `cargo run --example
//! NAME` measures it: requests, entities examined and bytes, before and after.
//!
//! [`data`], [`measure`] and [`showcase`] are what the examples share: the guide's employees, a transport that counts, and a
//! server to ask.
#![forbid(unsafe_code)]

pub mod data;
pub mod keys;
pub mod measure;
pub mod showcase;
