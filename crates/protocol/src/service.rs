//! The operations on a service as a whole, which every service has in the same form.

use crate::auth::{Level, Need, Permission, RoleSet};
use crate::{ErrorCode, ServiceError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceOperation {
    GetProperties,
    SetProperties,
    GetStats,
}

impl ServiceOperation {
    /// Reads the operation of a request to the root with `restype=service`.
    pub fn read(method: &str, comp: &str) -> Result<ServiceOperation, ServiceError> {
        match (comp, method) {
            ("properties", "GET") => Ok(ServiceOperation::GetProperties),
            ("properties", "PUT") => Ok(ServiceOperation::SetProperties),
            ("stats", "GET") => Ok(ServiceOperation::GetStats),
            ("properties" | "stats", _) => Err(ErrorCode::UnsupportedHttpVerb.into()),
            _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
        }
    }

    /// `readers` are the roles of the service that may read its data.
    pub fn need(self, readers: RoleSet) -> Need<'static> {
        let (letters, roles): (&'static [&'static str], RoleSet) = match self {
            ServiceOperation::GetProperties | ServiceOperation::GetStats => (&["r"], readers),
            // The roles are about data; this is about the account.
            ServiceOperation::SetProperties => (&["w"], RoleSet::NONE),
        };
        Need::Permission(Permission { level: Level::Service, letters, roles, resource: None, key: None })
    }
}
