//! Backups: everything of one moment in one file, and back again, whatever the engine.
//!
//! `block.rs` cuts a file into checked blocks, `content.rs` knows what a block says, `save.rs` makes a backup from a
//! running engine's snapshot, `load.rs` puts one into an engine. The file's bytes are described in `docs/backup.md`.
//!
//! Promises: a file that reads to its end is whole and unchanged; a damaged, cut or foreign one is an error that says
//! where, never a panic and never half taken for whole. Entities keep their Timestamps and ETags.
//! Leaves to others: files and sockets (anything that reads and writes will do), and accounts with their keys, which
//! are not part of a backup.

mod block;
mod content;
mod load;
mod save;

use std::fmt;
use std::io;

#[doc(hidden)]
pub use block::framed;
pub use block::{BLOCK_SIZE_BYTES_MAX, FORMAT};
pub use content::{BackupReader, Content, End, Head, RowIter, StoredRow, TableHead};
pub use load::{Loaded, Progress, Selection, load};
pub use save::{SaveOptions, Saved, save};

/// What kept a backup from being made or read, in words for the person at the terminal.
#[derive(Debug)]
pub enum BackupError {
    /// Not a backup at all.
    Foreign,
    NewerFormat(u32),
    /// The file is not what was written; where, and what is wrong.
    Damaged {
        offset: u64,
        cause: &'static str,
    },
    Io(io::Error),
    /// The engine did not read or write; what it said.
    Engine(String),
    /// Something in the store or in the request does not allow it.
    Refused(String),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Foreign => write!(f, "it is not a Lazulite backup"),
            BackupError::NewerFormat(format) => write!(
                f,
                "it has backup format {format} but this version reads formats up to {FORMAT}: use a newer Lazulite"
            ),
            BackupError::Damaged { offset, cause } => write!(f, "it is damaged at byte {offset}: {cause}"),
            BackupError::Io(error) => write!(f, "{error}"),
            BackupError::Engine(cause) => write!(f, "{cause}"),
            BackupError::Refused(sentence) => write!(f, "{sentence}"),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<io::Error> for BackupError {
    fn from(error: io::Error) -> BackupError {
        BackupError::Io(error)
    }
}
