//! A table's stored access policies over HTTP.
//!
//! Leaves to others: their XML (`protocol`), and storing them (`catalogue`).

use catalogue::Catalogue;
use protocol::common::acl::{read_acl, write_acl};
use protocol::table::KIND;
use protocol::table::operation::AclOperation;
use protocol::{ErrorCode, ServiceError};

use super::answer::TableAnswer;
use crate::front::service::Session;
use crate::front::service_operations::ServiceAnswer;

pub async fn run(
    catalogue: &Catalogue,
    session: &Session<'_>,
    operation: &AclOperation,
    payload: &[u8],
) -> Result<TableAnswer, ServiceError> {
    let answer = match operation {
        AclOperation::Get(table) => {
            let policies = catalogue.policies(session.account, table.as_str()).await?;
            let policies = policies.ok_or(ErrorCode::TableNotFound)?;
            ServiceAnswer { status: 200, document: Some(write_acl(&policies)) }
        }
        AclOperation::Set(table) => {
            let policies = read_acl(payload, KIND.policy_letters)?;
            if !catalogue.set_policies(session.account, table.as_str(), &policies).await? {
                return Err(ErrorCode::TableNotFound.into());
            }
            ServiceAnswer { status: 204, document: None }
        }
    };
    Ok(answer.into())
}
