//! What a caller may do, once it is known who asks.
//!
//! Owns: the permissions that each operation needs, key ranges, and the terms of a shared access signature that
//! depend on time, place and stored policies.
//! Leaves to others: whether a signature is right, and reading a table's stored policies.

use std::cmp::Ordering;
use std::net::IpAddr;

use super::sas::{SasScope, SasToken, TableScope};
use crate::error::{ErrorCode, ServiceError};
use crate::model::{DateTime, StoredPolicy, TableName, compare_ordinal};
use crate::operation::{Address, Operation};

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
    TableSas {
        table: TableName,
        permissions: LetterSet,
        bounds: KeyBounds,
    },
    /// A bearer token; its holder is known even when there is no role that lets it do anything.
    Role(Option<Role>),
}

/// The larger role may do what the smaller one may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    Reader,
    Contributor,
}

/// The way a request came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    pub peer: IpAddr,
    pub is_https: bool,
}

impl Grant {
    /// Whether the operation is allowed. A batch always is, because each operation in it is asked about by
    /// itself; so are the keys of an operation that has them in its body: see [`Grant::authorize_key`].
    pub fn authorize(&self, operation: &Operation<'_>) -> Result<(), ServiceError> {
        let need = match need(operation) {
            Need::Nothing => return Ok(()),
            Need::AccountKey => return self.authorize_as_account_key(),
            Need::Permission(need) => need,
        };
        match self {
            Grant::Everything => Ok(()),
            Grant::AccountSas { services, resource_types, permissions } => {
                if !services.has_all("t") {
                    return Err(ErrorCode::AuthorizationServiceMismatch.into());
                }
                if !resource_types.has_all(need.level.letter()) {
                    return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
                }
                need.check(*permissions)
            }
            Grant::TableSas { table, permissions, .. } => {
                let (asked, address) = entities_of(operation).ok_or(ErrorCode::AuthorizationFailure)?;
                if asked != table {
                    return Err(ErrorCode::AuthorizationFailure.into());
                }
                need.check(*permissions)?;
                match address {
                    Some(address) => self.authorize_key(&address.partition_key, &address.row_key),
                    None => Ok(()),
                }
            }
            Grant::Role(role) if need.role.is_some_and(|needed| *role >= Some(needed)) => Ok(()),
            Grant::Role(_) => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
        }
    }

    fn authorize_as_account_key(&self) -> Result<(), ServiceError> {
        match self {
            Grant::Everything => Ok(()),
            Grant::AccountSas { .. } | Grant::TableSas { .. } => Err(ErrorCode::AuthorizationFailure.into()),
            // With a bearer token there is not even such a resource.
            Grant::Role(_) => Err(ErrorCode::ResourceNotFound.into()),
        }
    }

    /// Whether an entity with these keys may be read or written, wherever the keys stand in the request. The
    /// answer does not depend on whether there is such an entity, so that nothing can be learnt from it.
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
            Grant::TableSas { bounds, .. } if *bounds != KeyBounds::default() => Some(bounds),
            _ => None,
        }
    }
}

/// What an operation needs of a caller.
enum Need {
    Nothing,
    AccountKey,
    Permission(Permission),
}

struct Permission {
    level: Level,
    /// All letters of one of these.
    letters: &'static [&'static str],
    /// The smallest role that is enough, if one is.
    role: Option<Role>,
}

impl Permission {
    fn check(&self, granted: LetterSet) -> Result<(), ServiceError> {
        if self.letters.iter().any(|letters| granted.has_all(letters)) {
            Ok(())
        } else {
            Err(ErrorCode::AuthorizationPermissionMismatch.into())
        }
    }
}

/// The resource types of an account SAS.
#[derive(Clone, Copy)]
enum Level {
    Service,
    Tables,
    Entities,
}

impl Level {
    fn letter(self) -> &'static str {
        match self {
            Level::Service => "s",
            Level::Tables => "c",
            Level::Entities => "o",
        }
    }
}

fn need(operation: &Operation<'_>) -> Need {
    use Level::*;
    let (reader, contributor) = (Some(Role::Reader), Some(Role::Contributor));
    let (level, letters, role): (Level, &'static [&'static str], Option<Role>) = match operation {
        Operation::Batch => return Need::Nothing,
        Operation::GetTableAcl(_) | Operation::SetTableAcl(_) => return Need::AccountKey,
        Operation::GetServiceProperties | Operation::GetServiceStats => (Service, &["r"], reader),
        // The roles are about data; this is about the account.
        Operation::SetServiceProperties => (Service, &["w"], None),
        Operation::QueryTables | Operation::GetTable(_) => (Tables, &["l"], reader),
        Operation::CreateTable => (Tables, &["c", "w"], contributor),
        Operation::DeleteTable(_) => (Tables, &["d"], contributor),
        Operation::QueryEntities(_) | Operation::GetEntity { .. } => (Entities, &["r"], reader),
        Operation::InsertEntity(_) => (Entities, &["a"], contributor),
        // An upsert may turn out to be either.
        Operation::ReplaceEntity { condition: None, .. } | Operation::MergeEntity { condition: None, .. } => {
            (Entities, &["au"], contributor)
        }
        Operation::ReplaceEntity { .. } | Operation::MergeEntity { .. } => (Entities, &["u"], contributor),
        Operation::DeleteEntity { .. } => (Entities, &["d"], contributor),
    };
    Need::Permission(Permission { level, letters, role })
}

/// The table whose entities an operation is about, and the entity if the path names one.
fn entities_of<'o>(operation: &'o Operation<'_>) -> Option<(&'o TableName, Option<&'o Address<'o>>)> {
    match operation {
        Operation::QueryEntities(table) | Operation::InsertEntity(table) => Some((table, None)),
        Operation::GetEntity { address, .. }
        | Operation::ReplaceEntity { address, .. }
        | Operation::MergeEntity { address, .. }
        | Operation::DeleteEntity { address, .. } => Some((&address.table, Some(address))),
        Operation::QueryTables
        | Operation::CreateTable
        | Operation::GetTable(_)
        | Operation::DeleteTable(_)
        | Operation::Batch
        | Operation::GetServiceProperties
        | Operation::SetServiceProperties
        | Operation::GetServiceStats
        | Operation::GetTableAcl(_)
        | Operation::SetTableAcl(_) => None,
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

/// A range of entities in the order of their keys, both ends included. Each end is a partition key and, if it
/// falls inside that partition, a row key.
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

    fn of(scope: &TableScope) -> KeyBounds {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        KeyBounds {
            start: given(&scope.start_partition_key).map(|key| (key, given(&scope.start_row_key))),
            end: given(&scope.end_partition_key).map(|key| (key, given(&scope.end_row_key))),
        }
    }
}

impl SasToken {
    /// What the token allows here and now. Its signature has been verified; `policies` are the stored policies of
    /// the table that [`SasToken::policy`] names, none if there is no such table.
    pub fn grant(
        &self,
        policies: &[StoredPolicy],
        now: DateTime,
        connection: &Connection,
    ) -> Result<Grant, ServiceError> {
        let terms = self.terms();
        let token = Times { start: self.limits.start, expiry: self.limits.expiry };
        let (times, permissions) = match self.policy() {
            None => (token, terms.permissions.as_str()),
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
            SasScope::Table(scope) => {
                Grant::TableSas { table: scope.table.clone(), permissions, bounds: KeyBounds::of(scope) }
            }
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
struct Times {
    start: Option<DateTime>,
    expiry: Option<DateTime>,
}

impl Times {
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
    token: Times,
    permissions: &'t str,
    id: &str,
    policies: &'t [StoredPolicy],
) -> Result<(Times, &'t str), ServiceError> {
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
    let times = Times { start: token.start.or(policy.start), expiry: token.expiry.or(policy.expiry) };
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
