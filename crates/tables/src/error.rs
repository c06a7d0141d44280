//! The one place that translates the engine's errors into those of the service.

use engine::{CommitError, Expect, Found, Op, ReadError};
use protocol::table::model::TableName;
use protocol::{ErrorCode, ServiceError};

use crate::record;

/// `ops` holds what each operation of the commit expected, in order. The meaning of a failure depends on it.
pub fn from_commit(error: CommitError, ops: &[Expect]) -> ServiceError {
    match error {
        // A commit that was made together with this one. Only a mistake in the program lets it fail.
        CommitError::Precondition { op, .. } | CommitError::Refused { op, .. } if op >= ops.len() => {
            ServiceError::with_source(ErrorCode::InternalError, error)
        }
        CommitError::Precondition { op, found } => {
            let code = match (ops.get(op), found) {
                (Some(Expect::Absent), _) => ErrorCode::EntityAlreadyExists,
                (_, Found::Absent) => ErrorCode::ResourceNotFound,
                (_, Found::Present(_)) => ErrorCode::UpdateConditionNotSatisfied,
            };
            ServiceError::from(code).of_operation(op)
        }
        CommitError::Refused { op, refusal } => record::refusal_error(refusal).of_operation(op),
        CommitError::TableGone => ErrorCode::TableNotFound.into(),
        CommitError::Busy => ErrorCode::ServerBusy.into(),
        // The one answer from which a caller learns that it must look before it repeats.
        CommitError::Unknown(_) => ServiceError::with_source(ErrorCode::OperationTimedOut, error),
        CommitError::Poisoned | CommitError::Storage(_) | CommitError::Invalid(_) => {
            ServiceError::with_source(ErrorCode::InternalError, error)
        }
    }
}

/// Translates a failure to read a table's rows. The log shows the table's name, not its id.
pub fn of_table(table: &TableName, error: ReadError) -> ServiceError {
    match error {
        ReadError::Busy => ErrorCode::ServerBusy.into(),
        error => {
            let cause = format!("table '{}': {error}", table.as_str());
            ServiceError::with_source(ErrorCode::InternalError, cause)
        }
    }
}

pub(crate) fn expectations(ops: &[Op]) -> Vec<Expect> {
    ops.iter().map(|op| op.expect).collect()
}
