//! The operations on a service as a whole. Every service has them in the same form.
//!
//! Owns: how they are read from a request, and what permission each of them needs. Leaves their documents to
//! `service_properties`.

use crate::auth::{Level, Need, Permission, RoleSet};
use crate::common::query::invalid_parameter;
use crate::{ErrorCode, ServiceError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceOperation {
    GetProperties,
    SetProperties,
    GetStats,
}

impl ServiceOperation {
    /// Reads a request to the account's root with `restype=service`.
    pub fn read(method: &str, comp: &str) -> Result<ServiceOperation, ServiceError> {
        match (comp, method) {
            ("properties", "GET") => Ok(ServiceOperation::GetProperties),
            ("properties", "PUT") => Ok(ServiceOperation::SetProperties),
            ("stats", "GET") => Ok(ServiceOperation::GetStats),
            ("properties" | "stats", _) => Err(ErrorCode::UnsupportedHttpVerb.into()),
            _ => Err(invalid_parameter("comp", comp, "")),
        }
    }

    /// `readers` are the service's roles that may read data.
    pub fn need(self, readers: RoleSet) -> Need<'static> {
        let (letters, roles): (&'static [&'static str], RoleSet) = match self {
            ServiceOperation::GetProperties | ServiceOperation::GetStats => (&["r"], readers),
            // No role may do this: roles grant access to data, and this changes the account's settings.
            ServiceOperation::SetProperties => (&["w"], RoleSet::NONE),
        };
        Need::Permission(Permission { level: Level::Service, letters, roles, resource: None, key: None })
    }
}
