//! The Blob service's rules: containers, blobs of three types, conditions, leases, copies, snapshots, versions, tags, tiers,
//! soft deletion, lists.
//!
//! Owns: how a container and its blobs lie in an engine's table, which bytes in the store of contents belong to them, and what
//! each operation does. Promises: a change of a blob is one conditional commit in one partition, so it happens as a whole or
//! not at all. Bytes are durable before the row that names them, so a crash leaves garbage and never a row without bytes. No
//! operation needs more memory for a larger blob. Lists seek: they do not walk what they do not show.
//! Leaves to others: HTTP, the texts of the protocol and authorization to the server, durability to the engine and the store of
//! contents.
//!
//! | file | what it knows |
//! |---|---|
//! | `api.rs` | the plain values that operations take and return |
//! | `service.rs` | what all operations use: the engine, the contents, the time, tries |
//! | `codec.rs`, `record.rs` | the rows of a container, byte for byte |
//! | `content.rs` | the content of a block or append blob: references, lists, lists of lists |
//! | `stream.rs`, `upload.rs` | bytes on their way out and in |
//! | `containers.rs`, `container_deletion.rs` | containers by name |
//! | `base.rs` | read a blob's rows, decide, commit, try again |
//! | `read.rs` | reads of blobs |
//! | `put.rs`, `blocks.rs`, `append.rs`, `pages.rs`, `page_rows.rs`, `epochs.rs` | writes of content |
//! | `change.rs`, `delete.rs`, `copy.rs` | everything else that changes a blob |
//! | `walk.rs`, `list.rs`, `find.rs` | lists of blobs |
//! | `named.rs`, `sweep.rs`, `check.rs` | what no row names, and whether every row has its bytes |
//! | `unresolved.rs` | what a row may yet name, after a commit of unknown outcome |
//! | `portable.rs`, `export.rs`, `import.rs` | rows and contents as a backup carries them |

mod api;
mod append;
mod base;
mod blocks;
mod change;
mod check;
mod codec;
mod container_deletion;
mod containers;
mod content;
mod copy;
mod delete;
mod epochs;
mod export;
mod family;
mod find;
mod finish;
mod import;
mod list;
mod named;
mod page_rows;
mod pages;
mod portable;
mod put;
mod read;
mod record;
mod service;
mod stream;
mod sweep;
mod time;
mod unresolved;
mod upload;
mod walk;

pub use api::*;
pub use check::BlobReport;
pub use export::{BlobExporter, Exported, ExportedContent};
pub use family::{FAMILY, VALUE_RULES, namespace};
pub use import::{BlobImporter, ContentPiece};
pub use portable::{ContentBook, check_portable, check_portable_container};
pub use record::BASE_ROW as BLOB_ROW;
pub use service::{BlobOptions, BlobService};
pub use stream::{BlobStream, OpenBlob};
pub use sweep::SweepReport;
