//! The service's XML resources: service properties, stats, access policies.

use std::time::Duration;

use bytes::Bytes;
use protocol::common::acl::{read_acl, write_acl};
use protocol::common::service_properties::{ServiceProperties, read_update, write_stats};
use protocol::common::{AccountName, DateTime, StoredPolicy};
use protocol::table::model::TableName;
use protocol::table::operation::Operation;
use protocol::{ErrorCode, ServiceError};
use tables::TableService;

use crate::answer::Answer;
use crate::cors::CorsRules;

/// What an XML resource's operation needs to know.
pub struct Call<'a> {
    pub service: &'a TableService,
    pub rules: &'a CorsRules,
    pub account: &'a AccountName,
    pub version: &'a str,
    pub is_secondary: bool,
    pub now: DateTime,
    pub monotonic: Duration,
}

/// Whether the operation is one of these.
pub fn owns(operation: &Operation<'_>) -> bool {
    matches!(
        operation,
        Operation::GetServiceProperties
            | Operation::SetServiceProperties
            | Operation::GetServiceStats
            | Operation::GetTableAcl(_)
            | Operation::SetTableAcl(_)
    )
}

pub async fn run(call: &Call<'_>, operation: Operation<'_>, payload: &[u8]) -> Result<Answer, ServiceError> {
    let Call { service, account, version, .. } = call;
    match operation {
        Operation::GetServiceProperties => {
            Ok(Answer::xml(properties(service, account).await?.write(version)))
        }
        Operation::SetServiceProperties => {
            let update = read_update(payload, version)?;
            let stored = service
                .update_service_properties(account, |old| {
                    let mut properties = decode(old)?;
                    properties.apply(update.clone());
                    Ok(Bytes::from(properties.to_stored()))
                })
                .await?;
            call.rules.remember(account, decode(Some(&stored))?.cors.into(), call.monotonic);
            Ok(Answer::front_end(202))
        }
        Operation::GetServiceStats if call.is_secondary => Ok(Answer::xml(write_stats("live", call.now))),
        Operation::GetServiceStats => Err(ErrorCode::InvalidQueryParameterValue.into()),
        Operation::GetTableAcl(table) => {
            Ok(Answer::xml(write_acl(&policies(service, account, &table).await?)))
        }
        Operation::SetTableAcl(table) => {
            let policies = read_acl(payload)?;
            service.set_table_acl(account, &table, write_acl(&policies).into()).await?;
            Ok(Answer::front_end(204))
        }
        _ => Err(ErrorCode::NotImplemented.into()),
    }
}

/// The table's stored access policies. They are stored as the XML that Get Table ACL answers with.
pub async fn policies(
    service: &TableService,
    account: &AccountName,
    table: &TableName,
) -> Result<Vec<StoredPolicy>, ServiceError> {
    match service.table_acl(account, table).await? {
        None => Ok(Vec::new()),
        Some(stored) => read_acl(&stored).map_err(|_| damaged()),
    }
}

pub async fn properties(
    service: &TableService,
    account: &AccountName,
) -> Result<ServiceProperties, ServiceError> {
    decode(service.service_properties(account).await?.as_deref())
}

fn decode(stored: Option<&[u8]>) -> Result<ServiceProperties, ServiceError> {
    match stored {
        None => Ok(ServiceProperties::default()),
        Some(stored) => ServiceProperties::from_stored(stored).ok_or_else(damaged),
    }
}

fn damaged() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a stored setting does not decode")
}
