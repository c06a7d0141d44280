//! What may go wrong when the tree is read, and what the caller hears of it.

use redb::StorageError;

use crate::row_bytes::Damage;
use crate::store::TABLES;
use engine::keys::KeyDamage;
use engine::{ReadError, TableId};

#[derive(Debug)]
pub(crate) enum TreeError {
    Storage(StorageError),
    /// A damaged row: which one, and how it is damaged.
    Row(String),
}

impl TreeError {
    /// redb panicked over a page that it does not understand.
    pub(crate) fn panicked() -> TreeError {
        TreeError::Storage(StorageError::Corrupted("a page is broken".to_owned()))
    }

    /// Whether the file cannot be read after this error until it is reopened: redb refuses, or its locks are poisoned.
    pub(crate) fn closes_the_file(&self) -> bool {
        use StorageError::{Corrupted, DatabaseClosed, Io, PreviousIo};
        matches!(self, TreeError::Storage(Io(_) | PreviousIo | DatabaseClosed | Corrupted(_)))
    }

    /// The cause alone.
    pub(crate) fn cause(&self) -> String {
        match self {
            TreeError::Row(what) => what.clone(),
            TreeError::Storage(error) => error.to_string(),
        }
    }

    /// The message for a caller that wanted to write.
    pub(crate) fn describe(&self) -> String {
        match self {
            TreeError::Row(what) => format!("damaged data: {TABLES}: {what}"),
            TreeError::Storage(StorageError::Io(error)) if is_damage(error) => {
                format!("damaged data: {TABLES}: {error}")
            }
            TreeError::Storage(error) => format!("{TABLES}: {error}"),
        }
    }

    pub(crate) fn into_read_error(self, table: TableId) -> ReadError {
        let table = table.0;
        match self {
            TreeError::Row(what) => ReadError::Damaged(format!("{TABLES}: {what}")),
            TreeError::Storage(StorageError::Corrupted(_)) => {
                ReadError::Damaged(format!("{TABLES}: a page of table {table} is broken"))
            }
            TreeError::Storage(StorageError::Io(error)) if is_damage(&error) => {
                ReadError::Damaged(format!("{TABLES}: table {table}: {error}"))
            }
            TreeError::Storage(StorageError::DatabaseClosed | StorageError::PreviousIo) => ReadError::Busy,
            TreeError::Storage(error) => ReadError::Storage(format!("{TABLES}: table {table}: {error}")),
        }
    }
}

/// Whether the error means damage: the file does not hold what was written.
pub(crate) fn is_damage(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof)
}

impl From<StorageError> for TreeError {
    fn from(error: StorageError) -> TreeError {
        TreeError::Storage(error)
    }
}

impl From<KeyDamage> for TreeError {
    fn from(damage: KeyDamage) -> TreeError {
        TreeError::Row(damage.to_string())
    }
}

impl From<Damage> for TreeError {
    fn from(damage: Damage) -> TreeError {
        TreeError::Row(damage.to_string())
    }
}
