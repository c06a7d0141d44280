//! Backups: saves the whole store as of one moment to one file, and loads it back, with any engine.
//!
//! `block.rs` cuts a file into checked blocks, `content.rs`, `queue_content.rs` and `blob_content.rs` read and write what is in a
//! block, `save.rs` makes a backup from a running engine's snapshot, `load.rs` loads a backup into an engine, `rules.rs` says what
//! a backup may hold. `docs/backup.md` describes the file format.
//!
//! Promises: a file that reads to its end is complete and unchanged. A damaged, truncated or foreign file is an error
//! that says where, never a panic and never taken for complete. So is a file that holds what no request could have
//! stored. Entities keep their Timestamps and ETags, unless these are ahead of the store that takes them in. Messages keep
//! their ids, times and dequeue counts. Blobs keep their ETags, snapshots, versions, staged blocks and leases.
//! Leaves to others: files and sockets (any reader and writer will do), and accounts with their keys, which are not
//! part of a backup.

mod blob_content;
mod block;
mod content;
mod load;
mod queue_content;
mod rules;
mod save;

use std::fmt;
use std::io;

pub use blob_content::ContainerHead;
use block::FORMAT;
#[doc(hidden)]
pub use block::framed;
pub use content::{BackupHead, BackupReader, Content, RowIter, StoredRow, TableHead, Totals};
pub use load::{LoadReport, LoadSelection, OnProgress, SelectedName, is_empty, is_restoring, load};
pub use queue_content::{MessageIter, QueueHead};
pub use rules::VERSION_TICKS_MAX;
pub use save::{SaveOptions, Saved, save};

/// Why a backup could not be made or read, in words for the person at the terminal.
#[derive(Debug)]
pub enum BackupError {
    /// Not a backup at all.
    Foreign,
    NewerFormat(u32),
    /// The file is not what was written: where, and what is wrong.
    Damaged {
        offset: u64,
        cause: &'static str,
    },
    /// The file is whole but holds what no request could have stored: where, and what is wrong.
    Forbidden(String),
    Io(io::Error),
    /// The engine failed to read or write: what it said.
    Engine(String),
    /// Something in the store or in the request forbids it.
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
            BackupError::Forbidden(sentence) => {
                write!(f, "it holds what Lazulite does not store: {sentence}")
            }
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
