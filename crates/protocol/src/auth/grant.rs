//! What a caller may do, once it is known who asks.
//!
//! Owns: the grant, whether it covers what an operation needs, key ranges, and the terms of a shared access signature
//! that depend on time, place and stored policies.
//! Leaves to others: whether a signature is right, what each operation needs (each service says so with a [`Need`]), and
//! reading stored policies.

use std::cmp::Ordering;
use std::net::IpAddr;

use super::sas::{SasScope, SasToken};
use super::service_kind::ServiceKind;
use crate::common::ordinal::compare_ordinal;
use crate::common::{DateTime, StoredPolicy};
use crate::{ErrorCode, ServiceError};

/// What a caller may do.
#[derive(Clone, PartialEq, Debug)]
pub enum Grant {
    /// A key of the account opens everything.
    Everything,
    AccountSas {
        services: LetterSet,
        resource_types: LetterSet,
        permissions: LetterSet,
    },
    ServiceSas {
        /// A container, or `container/object`.
        resource: Box<str>,
        permissions: LetterSet,
        bounds: KeyBounds,
    },
    /// A bearer token; its holder is known even when there is no role that lets it do anything.
    Roles(RoleSet),
}

/// The way a request came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    pub peer: IpAddr,
    pub is_https: bool,
}

/// Roles of one service, each of them a bit that the service chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoleSet(pub u8);

impl RoleSet {
    pub const NONE: RoleSet = RoleSet(0);

    pub const fn or(self, other: RoleSet) -> RoleSet {
        RoleSet(self.0 | other.0)
    }

    pub fn has_any_of(self, others: RoleSet) -> bool {
        self.0 & others.0 != 0
    }
}

/// What an operation needs of a caller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Need<'a> {
    /// Nothing, because each part of the operation is asked about by itself.
    Nothing,
    /// A key of the account: no signature and no role is enough.
    AccountKey,
    Permission(Permission<'a>),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Permission<'a> {
    pub level: Level,
    /// All letters of one of these.
    pub letters: &'static [&'static str],
    /// Any of these roles is enough.
    pub roles: RoleSet,
    /// What the operation is about. `None`: no service SAS is for it.
    pub resource: Option<ResourceName<'a>>,
    /// The partition key and the row key, where the path has them.
    pub key: Option<(&'a str, &'a str)>,
}

/// A container, and the object in it if the operation is about one that has a name of its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResourceName<'a> {
    pub container: &'a str,
    pub object: Option<&'a str>,
}

/// The resource types of an account SAS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Service,
    Container,
    Object,
}

impl Level {
    fn letter(self) -> &'static str {
        match self {
            Level::Service => "s",
            Level::Container => "c",
            Level::Object => "o",
        }
    }
}

impl Grant {
    /// Whether an operation of that service is allowed. Keys that stand in the operation's body are asked about
    /// separately: see [`Grant::authorize_key`].
    pub fn authorize(&self, kind: &ServiceKind, need: &Need<'_>) -> Result<(), ServiceError> {
        let need = match need {
            Need::Nothing => return Ok(()),
            Need::AccountKey => return self.authorize_as_account_key(),
            Need::Permission(need) => need,
        };
        match self {
            Grant::Everything => Ok(()),
            Grant::AccountSas { services, resource_types, permissions } => {
                if !services.has_all(kind.letter) {
                    return Err(ErrorCode::AuthorizationServiceMismatch.into());
                }
                if !resource_types.has_all(need.level.letter()) {
                    return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
                }
                need.check(*permissions)
            }
            Grant::ServiceSas { resource, permissions, .. } => {
                let asked = need.resource.ok_or(ErrorCode::AuthorizationFailure)?;
                if !asked.is_within(resource) {
                    return Err(ErrorCode::AuthorizationFailure.into());
                }
                need.check(*permissions)?;
                match need.key {
                    Some((partition_key, row_key)) => self.authorize_key(partition_key, row_key),
                    None => Ok(()),
                }
            }
            Grant::Roles(roles) if roles.has_any_of(need.roles) => Ok(()),
            Grant::Roles(_) => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
        }
    }

    fn authorize_as_account_key(&self) -> Result<(), ServiceError> {
        match self {
            Grant::Everything => Ok(()),
            Grant::AccountSas { .. } | Grant::ServiceSas { .. } => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            // With a bearer token there is not even such a resource.
            Grant::Roles(_) => Err(ErrorCode::ResourceNotFound.into()),
        }
    }

    /// Whether a row with these keys may be read or written, wherever the keys stand in the request. The answer does
    /// not depend on whether there is such a row, so that nothing can be learnt from it.
    pub fn authorize_key(&self, partition_key: &str, row_key: &str) -> Result<(), ServiceError> {
        match self.bounds() {
            Some(bounds) if !bounds.contains(partition_key, row_key) => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// The range that queries are silently limited to.
    pub fn bounds(&self) -> Option<&KeyBounds> {
        match self {
            Grant::ServiceSas { bounds, .. } if *bounds != KeyBounds::default() => Some(bounds),
            _ => None,
        }
    }
}

impl ResourceName<'_> {
    /// Whether a signature for `resource`, a container or `container/object`, is for this one.
    fn is_within(&self, resource: &str) -> bool {
        match (resource.split_once('/'), self.object) {
            // Services whose names have upper-case letters ignore their case.
            (None, _) => resource.eq_ignore_ascii_case(self.container),
            (Some((container, object)), Some(asked)) => container == self.container && object == asked,
            (Some(_), None) => false,
        }
    }
}

impl Permission<'_> {
    fn check(&self, granted: LetterSet) -> Result<(), ServiceError> {
        if self.letters.iter().any(|letters| granted.has_all(letters)) {
            Ok(())
        } else {
            Err(ErrorCode::AuthorizationPermissionMismatch.into())
        }
    }
}

/// A set of lower-case letters, as `sp`, `ss` and `srt` write one. Everything else in the text is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LetterSet(u32);

impl LetterSet {
    pub fn parse(text: &str) -> LetterSet {
        let letters = text.bytes().filter(u8::is_ascii_lowercase);
        LetterSet(letters.fold(0, |set, letter| set | 1 << (letter - b'a')))
    }

    pub fn has_all(self, letters: &str) -> bool {
        let wanted = LetterSet::parse(letters).0;
        self.0 & wanted == wanted
    }
}

/// A range of keys in their order, both ends included. Each end is a partition key and, if it falls inside that
/// partition, a row key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyBounds {
    pub start: Option<(String, Option<String>)>,
    pub end: Option<(String, Option<String>)>,
}

impl KeyBounds {
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let position = |(partition, row): &(String, Option<String>)| {
            compare_ordinal(partition_key, partition).then_with(|| match row {
                Some(row) => compare_ordinal(row_key, row),
                // All of the partition is inside.
                None => Ordering::Equal,
            })
        };
        self.start.as_ref().is_none_or(|start| position(start).is_ge())
            && self.end.as_ref().is_none_or(|end| position(end).is_le())
    }
}

impl SasToken<'_> {
    /// What the token allows here and now. Its signature has been verified; `policies` are the stored policies of
    /// the container that [`SasToken::policy`] names, none if there is no such container.
    pub fn grant(
        &self,
        policies: &[StoredPolicy],
        now: DateTime,
        connection: &Connection,
    ) -> Result<Grant, ServiceError> {
        let terms = self.terms();
        let token = Validity { start: self.limits.start, expiry: self.limits.expiry };
        let (times, permissions) = match self.policy() {
            None => (token, &*terms.permissions),
            Some((_, id)) => complete(token, &terms.permissions, id, policies)?,
        };
        times.check(now)?;
        self.check_connection(connection)?;

        let permissions = LetterSet::parse(permissions);
        Ok(match &terms.scope {
            SasScope::Account(scope) => Grant::AccountSas {
                services: LetterSet::parse(&scope.services),
                resource_types: LetterSet::parse(&scope.resource_types),
                permissions,
            },
            SasScope::Service(scope) => Grant::ServiceSas {
                resource: scope.resource.as_str().into(),
                permissions,
                bounds: scope.bounds.clone(),
            },
        })
    }

    fn check_connection(&self, connection: &Connection) -> Result<(), ServiceError> {
        // A socket that serves both families shows IPv4 peers inside IPv6 addresses.
        let peer = connection.peer.to_canonical();
        if let Some(ips) = &self.limits.ips {
            let is_inside = matches!(peer, IpAddr::V4(peer) if ips.contains(&peer));
            if !is_inside {
                return Err(ServiceError::with_detail(
                    ErrorCode::AuthorizationSourceIPMismatch,
                    format!(
                        "This request is not authorized to perform this operation using this source IP {peer}."
                    ),
                ));
            }
        }
        if self.limits.https_only && !connection.is_https {
            return Err(ErrorCode::AuthorizationProtocolMismatch.into());
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Validity {
    start: Option<DateTime>,
    expiry: Option<DateTime>,
}

impl Validity {
    /// The expiry is the first instant at which the token is no longer good.
    fn check(self, now: DateTime) -> Result<(), ServiceError> {
        let expiry = self.expiry.ok_or_else(|| refused("neither the SAS nor its policy has an expiry"))?;
        if self.start.is_some_and(|start| now < start) {
            return Err(refused("the SAS is not valid yet"));
        }
        if now >= expiry {
            return Err(refused("the SAS has expired"));
        }
        Ok(())
    }
}

/// The terms of a token together with those of its stored policy: each is in one of the two, never in both.
fn complete<'t>(
    token: Validity,
    permissions: &'t str,
    id: &str,
    policies: &'t [StoredPolicy],
) -> Result<(Validity, &'t str), ServiceError> {
    let policy = policies
        .iter()
        .find(|policy| policy.id == id)
        .ok_or_else(|| refused("the stored policy of the SAS is not there"))?;
    let stored_permissions = policy.permission.as_deref().filter(|letters| !letters.is_empty());
    let token_permissions = Some(permissions).filter(|letters| !letters.is_empty());
    let is_doubled = (token.start.is_some() && policy.start.is_some())
        || (token.expiry.is_some() && policy.expiry.is_some())
        || (token_permissions.is_some() && stored_permissions.is_some());
    if is_doubled {
        return Err(refused("a term is in both the SAS and its policy"));
    }
    let times = Validity { start: token.start.or(policy.start), expiry: token.expiry.or(policy.expiry) };
    let permissions = token_permissions
        .or(stored_permissions)
        .ok_or_else(|| refused("neither the SAS nor its policy has permissions"))?;
    Ok((times, permissions))
}

/// The caller learns no more than that the token is no good; the log has the reason.
fn refused(reason: &'static str) -> ServiceError {
    ServiceError::with_source(ErrorCode::AuthenticationFailed, reason)
}

#[cfg(test)]
mod tests;
