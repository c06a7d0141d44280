//! What the trials of the Blob service share: bodies that tell where they come from, writers that know what they have
//! stored, and readers that know what they may find.
//!
//! `door.rs` talks to the service, `body.rs` makes and describes bytes, `state.rs` is what a writer has stored and
//! reads it back, `writer.rs` has the writers, `board.rs` tells readers which bodies a blob can have.
//!
//! **The model.** A writer has a container of its own and does one thing at a time. So whenever somebody looks, the
//! container holds exactly what the writer knows, or that with its one open operation applied: every byte, snapshot,
//! block list, staged block and ETag. The histories have many writers on one blob (`blob_histories.rs`).

pub mod board;
pub mod body;
pub mod door;
pub mod state;
pub mod writer;
