//! Why a content could not be written or read.

use std::fmt;
use std::io;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContentError {
    /// There is no space for now. Nothing has changed, and reads go on.
    NoRoom(String),
    /// Too many contents are being written.
    Busy,
    /// The content is not here: it was forgotten, or the reference belongs to another store.
    NotFound,
    /// What lies there does not match its checksum.
    Damaged(String),
    /// A sync failed, so nobody knows what the disk holds. Writes are refused until the store is opened again.
    Unavailable(String),
    /// The operating system refused.
    Io(String),
    /// More contents were held during a sweep than it remembers. Sweep again.
    SweepOverrun,
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentError::NoRoom(why) => write!(f, "there is no room for the content: {why}"),
            ContentError::Busy => f.write_str("too many contents are being written"),
            ContentError::NotFound => f.write_str("the content is not in this store"),
            ContentError::Damaged(what) => write!(f, "the content is damaged: {what}"),
            ContentError::Unavailable(why) => write!(f, "the store of contents takes no writes: {why}"),
            ContentError::Io(why) => write!(f, "the content could not be reached: {why}"),
            ContentError::SweepOverrun => f.write_str("too many contents were held during the sweep"),
        }
    }
}

impl std::error::Error for ContentError {}

impl From<io::Error> for ContentError {
    fn from(error: io::Error) -> ContentError {
        if is_full(&error) {
            ContentError::NoRoom(error.to_string())
        } else {
            ContentError::Io(error.to_string())
        }
    }
}

/// Whether the error says that the file takes no writes for now. That may change: somebody frees space, or makes the
/// file system writable.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem)
}
