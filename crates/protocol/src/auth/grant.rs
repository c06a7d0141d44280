//! What a caller may do, once authentication has established who it is.
//!
//! Owns: the grant, whether it covers what an operation needs, key ranges, and the terms of a shared access signature
//! that depend on the time, the connection and stored policies.
//! Leaves to others: verifying signatures, saying what each operation needs (each service does so with a [`Need`]), and
//! looking up stored policies.

use std::cmp::Ordering;
use std::net::IpAddr;

use super::sas::{SasScope, SasToken, ServiceScope};
use super::service_kind::ServiceKind;
use crate::common::ordinal::compare_ordinal;
use crate::common::{DateTime, StoredPolicy};
use crate::{ErrorCode, ServiceError};

/// What a caller may do.
#[derive(Clone, PartialEq, Debug)]
pub enum Grant {
    /// The caller has a key of the account, which allows everything.
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
    /// The roles of a bearer token. With none of them its holder is authenticated all the same, but may do nothing.
    Roles(RoleSet),
}

/// How a request reached us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    pub peer: IpAddr,
    pub is_https: bool,
}

/// Roles of one service. The service assigns a bit to each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoleSet(pub u8);

impl RoleSet {
    pub const NONE: RoleSet = RoleSet(0);

    pub const fn or(self, other: RoleSet) -> RoleSet {
        RoleSet(self.0 | other.0)
    }

    pub(crate) fn has_any_of(self, others: RoleSet) -> bool {
        self.0 & others.0 != 0
    }
}

/// What an operation requires from its caller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Need<'a> {
    /// Nothing: each part of the operation is authorized by itself.
    Nothing,
    /// Credentials for this service, whatever they allow.
    Service,
    /// A key of the account; no signature and no role is enough.
    AccountKey,
    Permission(Permission<'a>),
}

/// Alternatives, each one letter or several.
pub type Letters = &'static [&'static str];

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Permission<'a> {
    pub level: Level,
    /// The caller needs all letters of one of these.
    pub letters: Letters,
    /// Any one of these roles is enough.
    pub roles: RoleSet,
    /// What the operation is about. `None`: no service SAS can allow it.
    pub resource: Option<ResourceName<'a>>,
    /// The partition key and the row key, if the path has them.
    pub key: Option<(&'a str, &'a str)>,
}

/// A container, and an object in it if the operation is about a single named one.
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
    /// Whether this operation of the service is allowed. Keys in the request's body are authorized separately, by
    /// [`Grant::authorize_key`].
    pub fn authorize(&self, kind: &ServiceKind, need: &Need<'_>) -> Result<(), ServiceError> {
        let need = match need {
            Need::Nothing => return Ok(()),
            Need::Service => return self.authorize_service(kind),
            Need::AccountKey => return self.authorize_as_account_key(),
            Need::Permission(need) => need,
        };
        self.authorize_service(kind)?;
        match self {
            Grant::Everything => Ok(()),
            Grant::AccountSas { resource_types, permissions, .. } => {
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

    /// Only an account SAS names services.
    fn authorize_service(&self, kind: &ServiceKind) -> Result<(), ServiceError> {
        match self {
            Grant::AccountSas { services, .. } if !services.has_all(kind.letter) => {
                Err(ErrorCode::AuthorizationServiceMismatch.into())
            }
            _ => Ok(()),
        }
    }

    fn authorize_as_account_key(&self) -> Result<(), ServiceError> {
        match self {
            Grant::Everything => Ok(()),
            Grant::AccountSas { .. } | Grant::ServiceSas { .. } => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            // To a bearer token this resource does not exist at all.
            Grant::Roles(_) => Err(ErrorCode::ResourceNotFound.into()),
        }
    }

    /// Whether a row with these keys may be read or written, wherever in the request the keys are. The answer is the
    /// same whether or not the row exists, so it reveals nothing.
    pub fn authorize_key(&self, partition_key: &str, row_key: &str) -> Result<(), ServiceError> {
        match self.bounds() {
            Some(bounds) if !bounds.contains(partition_key, row_key) => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// The key range to which queries are silently limited.
    pub fn bounds(&self) -> Option<&KeyBounds> {
        match self {
            Grant::ServiceSas { bounds, .. } if *bounds != KeyBounds::default() => Some(bounds),
            _ => None,
        }
    }
}

impl ResourceName<'_> {
    /// Whether a signature for `resource` (a container or `container/object`) covers this one.
    fn is_within(&self, resource: &str) -> bool {
        match (resource.split_once('/'), self.object) {
            // Container names that may have upper-case letters are not case-sensitive.
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

/// A set of lower-case letters, as in `sp`, `ss` and `srt`. All other characters are ignored.
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

/// A range of keys in key order, both ends included. Each end is a partition key and, if the range ends within that
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
                // Without a row key the whole partition is inside.
                None => Ordering::Equal,
            })
        };
        self.start.as_ref().is_none_or(|start| position(start).is_ge())
            && self.end.as_ref().is_none_or(|end| position(end).is_le())
    }
}

impl SasToken<'_> {
    /// What the token allows at this time and on this connection. Its signature is already verified. `policies` are the
    /// stored policies of the container that [`SasToken::policy`] names; empty if the container does not exist.
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
        if let SasScope::Delegated(scope) = &terms.scope
            && !scope.key.is_valid_at(now)
        {
            return Err(refused("the user delegation key of the SAS is not valid at this time"));
        }
        self.check_connection(connection)?;

        let permissions = LetterSet::parse(permissions);
        Ok(match &terms.scope {
            SasScope::Account(scope) => Grant::AccountSas {
                services: LetterSet::parse(&scope.services),
                resource_types: LetterSet::parse(&scope.resource_types),
                permissions,
            },
            SasScope::Service(scope) => of_service(scope, permissions),
            SasScope::Delegated(scope) => of_service(&scope.service, permissions),
        })
    }

    fn check_connection(&self, connection: &Connection) -> Result<(), ServiceError> {
        // A dual-stack socket shows IPv4 peers as IPv6 addresses.
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

fn of_service(scope: &ServiceScope, permissions: LetterSet) -> Grant {
    let resource = scope.resource.as_str().into();
    Grant::ServiceSas { resource, permissions, bounds: scope.bounds.clone() }
}

#[derive(Clone, Copy)]
struct Validity {
    start: Option<DateTime>,
    expiry: Option<DateTime>,
}

impl Validity {
    /// The token is already invalid at the instant of its expiry.
    fn check(self, now: DateTime) -> Result<(), ServiceError> {
        let expiry = self.expiry.ok_or_else(|| refused("neither the SAS nor its policy has an expiry"))?;
        if self.start.is_some_and(|start| now < start) {
            return Err(self.is_over(expiry, now, "the SAS is not valid yet"));
        }
        if now >= expiry {
            return Err(self.is_over(expiry, now, "the SAS has expired"));
        }
        Ok(())
    }

    /// The refusal of a token outside its time, in the service's words. Without a start, the service takes the present.
    fn is_over(self, expiry: DateTime, now: DateTime, reason: &'static str) -> ServiceError {
        let [start, expiry_text, current] = [self.start.unwrap_or(now), expiry, now].map(DateTime::to_http);
        let detail = match self.start {
            Some(start) if start < expiry => format!(
                "Signature not valid in the specified time frame: Start [{}] - Expiry [{expiry_text}] - Current [{current}]",
                start.to_http()
            ),
            _ => format!("Signed expiry time [{expiry_text}] must be after signed start time [{start}]"),
        };
        let mut refusal = ServiceError::failed_authentication(detail);
        refusal.source = Some(reason.into());
        refusal
    }
}

/// Combines a token's terms with those of its stored policy. A term may be in either one, but not in both.
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

/// Callers only learn that the token was refused; the reason goes to the log.
fn refused(reason: &'static str) -> ServiceError {
    ServiceError::with_source(ErrorCode::AuthenticationFailed, reason)
}

#[cfg(test)]
mod tests;
