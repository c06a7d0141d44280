//! The Blob service on the wire: names, operations, conditions, leases, ranges, checksums, tags, and the documents that
//! it reads and writes.
//!
//! Leaves to others: stored data and every rule about it (`blobs`), and bytes of content (`contents`).

pub mod blob_list;
pub mod checksum;
pub mod conditions;
pub mod container_list;
pub mod copy;
pub mod encryption;
mod etag;
mod header_list;
pub mod identifier;
mod kind;
pub mod lease;
pub mod limits;
pub mod list_parameters;
mod name;
pub mod operation;
pub mod permission;
pub mod properties;
pub mod range;
pub mod tag_expression;
mod tags;
pub mod versions;

pub use etag::BlobETag;
pub use header_list::Headers;
pub use kind::{CONTRIBUTOR, KIND, OWNER, READER};
pub use name::{BlobName, ContainerName, ROOT_CONTAINER, WEB_CONTAINER};
pub use tags::Tags;
