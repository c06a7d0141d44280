//! What may go wrong when the tree's file is read, and what the caller hears of it.

use redb::StorageError;

use crate::store::TABLES;
use crate::stored::Damage;
use engine::keys::KeyDamage;
use engine::{ReadError, TableId};

#[derive(Debug)]
pub(super) enum Trouble {
    Storage(StorageError),
    /// A row that is not what was written; which, and why.
    Row(String),
}

impl Trouble {
    /// Whether redb reads nothing more from the file after it, until it is opened anew.
    pub(super) fn closes_the_file(&self) -> bool {
        matches!(
            self,
            Trouble::Storage(StorageError::Io(_) | StorageError::PreviousIo | StorageError::DatabaseClosed)
        )
    }

    /// What it was.
    pub(super) fn cause(&self) -> String {
        match self {
            Trouble::Row(what) => what.clone(),
            Trouble::Storage(error) => error.to_string(),
        }
    }

    /// For whoever wanted to write.
    pub(super) fn describe(&self) -> String {
        match self {
            Trouble::Row(what) => format!("damaged data: {TABLES}: {what}"),
            Trouble::Storage(StorageError::Io(error)) if is_damage(error) => {
                format!("damaged data: {TABLES}: {error}")
            }
            Trouble::Storage(error) => format!("{TABLES}: {error}"),
        }
    }

    pub(super) fn into_read_error(self, table: TableId) -> ReadError {
        let table = table.0;
        match self {
            Trouble::Row(what) => ReadError::Damaged(format!("{TABLES}: {what}")),
            Trouble::Storage(StorageError::Corrupted(_)) => {
                ReadError::Damaged(format!("{TABLES}: a page of table {table} is broken"))
            }
            Trouble::Storage(StorageError::Io(error)) if is_damage(&error) => {
                ReadError::Damaged(format!("{TABLES}: table {table}: {error}"))
            }
            Trouble::Storage(StorageError::DatabaseClosed | StorageError::PreviousIo) => ReadError::Busy,
            Trouble::Storage(error) => ReadError::Storage(format!("{TABLES}: table {table}: {error}")),
        }
    }
}

/// Whether the file holds something else than was written.
pub(super) fn is_damage(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof)
}

impl From<StorageError> for Trouble {
    fn from(error: StorageError) -> Trouble {
        Trouble::Storage(error)
    }
}

impl From<KeyDamage> for Trouble {
    fn from(damage: KeyDamage) -> Trouble {
        Trouble::Row(damage.to_string())
    }
}

impl From<Damage> for Trouble {
    fn from(damage: Damage) -> Trouble {
        Trouble::Row(damage.to_string())
    }
}
