//! The operations that every service has on itself: service properties and statistics.
//!
//! Leaves to others: reading and checking the request, and authorization.

use protocol::ServiceError;
use protocol::common::query::invalid_parameter;
use protocol::common::service_properties::{read_update, write_stats};
use protocol::service::ServiceOperation;

use super::service::Session;
use catalogue::Catalogue;

/// The answer to such an operation: a status, and an XML document if it reads something.
pub struct ServiceAnswer {
    pub status: u16,
    pub document: Option<Vec<u8>>,
}

pub async fn run(
    catalogue: &Catalogue,
    session: &Session<'_>,
    operation: ServiceOperation,
    payload: &[u8],
) -> Result<ServiceAnswer, ServiceError> {
    let version = session.head.version;
    let document = match operation {
        ServiceOperation::GetProperties => catalogue.properties(session.account).await?.write(version),
        ServiceOperation::SetProperties => {
            catalogue.update_properties(session.account, read_update(payload, version)?).await?;
            return Ok(ServiceAnswer { status: 202, document: None });
        }
        ServiceOperation::GetStats if session.head.target.is_secondary => {
            write_stats("live", session.front.now())
        }
        ServiceOperation::GetStats => return Err(invalid_parameter("comp", "stats", "")),
    };
    Ok(ServiceAnswer { status: 200, document: Some(document) })
}
