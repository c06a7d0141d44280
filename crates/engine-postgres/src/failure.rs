//! What went wrong with a statement, and what that says about it.
//!
//! Promises: a description holds no secret and no value of a row, because it takes only the code and the sentence of
//! the server's message, never its detail. [`Failure::Rejected`] means that nothing happened; [`Failure::Lost`] means
//! that nobody knows yet.

use std::error::Error as _;

use engine::{CommitError, ReadError};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Why a statement has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection to a server that takes writes: the statement was not sent. The pool has logged why.
    NoConnection,
    /// It only read, and its server may not have led any more.
    Unproven,
    /// Too many statements wait. It was not sent.
    Busy,
    /// The server has no space left, and undid it. The log says so.
    Full,
    /// The server refused it and undid it.
    Rejected { cause: String, retries: bool },
    /// It was sent, and the connection ended, or the deadline passed. The key is that of the session (`session.rs`).
    Lost { cause: String, session_key: i64 },
}

impl Failure {
    pub(crate) fn of(error: &tokio_postgres::Error, session_key: i64) -> Failure {
        let cause = describe(error);
        match error.as_db_error() {
            Some(db) if is_full(db) => Failure::Full,
            // A fatal error may come after the commit, while it waits for the standby.
            Some(db) if db.parsed_severity() == Some(Severity::Error) => {
                Failure::Rejected { cause, retries: is_worth_retrying(db.code()) }
            }
            _ => Failure::Lost { cause, session_key },
        }
    }

    pub(crate) fn into_read_error(self) -> ReadError {
        match self {
            Failure::NoConnection | Failure::Busy | Failure::Unproven | Failure::Full => ReadError::Busy,
            Failure::Rejected { cause, .. } | Failure::Lost { cause, .. } => ReadError::Storage(cause),
        }
    }

    /// For statements that were not sent or undone; `Lost` is for `outcome.rs` to explain.
    pub(crate) fn into_commit_error(self) -> CommitError {
        match self {
            Failure::NoConnection | Failure::Busy | Failure::Unproven | Failure::Full => CommitError::Busy,
            Failure::Rejected { cause, .. } => CommitError::Storage(cause),
            Failure::Lost { cause, .. } => CommitError::Unknown(cause),
        }
    }
}

/// The disk, a quota, or a limit of the file system. The service then answers that it is busy, as with the embedded
/// engine.
fn is_full(error: &DbError) -> bool {
    error.parsed_severity() == Some(Severity::Error) && *error.code() == SqlState::DISK_FULL
}

/// Deadlocks and the like: the server undid the statement, and another try may succeed. A relation or a function that
/// is missing was that of a table which was dropped; the other try looks at the fence.
fn is_worth_retrying(code: &SqlState) -> bool {
    [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_FUNCTION,
    ]
    .contains(code)
}

/// A sentence for the log, without secrets and without data.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
