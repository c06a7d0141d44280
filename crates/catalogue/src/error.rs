//! Translates an engine's errors about the catalogue into the service's errors.

use engine::{CommitError, ReadError};
use protocol::{ErrorCode, ServiceError};

pub fn from_read(error: ReadError) -> ServiceError {
    match error {
        ReadError::Busy => ErrorCode::ServerBusy.into(),
        ReadError::Damaged(_) | ReadError::Storage(_) => {
            ServiceError::with_source(ErrorCode::InternalError, error)
        }
    }
}

/// For a commit that failed, but not because of its expectations.
pub fn from_commit(error: CommitError) -> ServiceError {
    match error {
        CommitError::Busy => ErrorCode::ServerBusy.into(),
        // The one answer from which a caller learns that it must look before it repeats.
        CommitError::Unknown(_) => ServiceError::with_source(ErrorCode::OperationTimedOut, error),
        error => ServiceError::with_source(ErrorCode::InternalError, error),
    }
}

pub(crate) fn damaged_record() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a catalogue record does not decode")
}

pub(crate) fn damaged_setting() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a stored setting does not decode")
}
