//! Containers by name: create, properties, metadata, access, leases, list.
//!
//! A container whose record says that it is deleted is not there any more, also before it has lost its name
//! (`container_deletion.rs`).

use bytes::Bytes;
use catalogue::Container;
use engine::{Flow, Share, TableRows};
use protocol::blob::conditions::{ConditionPurpose, ConditionState, Conditions};
use protocol::blob::container_list::ListContainersParameters;
use protocol::blob::lease::{Leasable, Lease, LeaseRequest, LeaseUse};
use protocol::blob::properties::PublicAccess;
use protocol::blob::{BlobETag, ContainerAcl, ContainerName, Tags};
use protocol::common::guid::Guid;
use protocol::common::{AccountName, DateTime, Metadata};
use protocol::{ErrorCode, ServiceError};

use crate::api::{
    ContainerAclView, ContainerPage, ContainerView, DeletedContainerView, Leased, NewContainer, Stamp,
};
use crate::codec::{Decoder, Encoder};
use crate::container_deletion::DELETED_MARK;
use crate::record::{SoftDeletion, read_lease, write_lease};
use crate::service::{ATTEMPT_COUNT_MAX, BlobCore, BlobService, scan_budget};

const TAG_CONTAINER: u8 = 1;
/// Records of one page, stored. A page that would have more is shorter.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What the catalogue keeps of a container beside its name.
#[derive(Clone, Debug)]
pub(crate) struct ContainerRecord {
    /// The ETag, and the time of the last change.
    modified: u64,
    pub(crate) lease: Lease,
    public_access: Option<PublicAccess>,
    metadata: Metadata,
    default_scope: Option<Box<str>>,
    deny_scope_override: bool,
    pub(crate) deleted: Option<SoftDeletion>,
}

impl ContainerRecord {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::new(TAG_CONTAINER);
        out.number(self.modified);
        write_lease(&self.lease, &mut out);
        out.option(self.public_access, |out, access| out.text(access.as_str()));
        out.pairs(self.metadata.items());
        out.option(self.default_scope.as_deref(), Encoder::text);
        out.byte(u8::from(self.deny_scope_override));
        out.option(self.deleted, |out, deleted| {
            out.number(deleted.at);
            out.number(deleted.until);
        });
        out.finish()
    }

    pub(crate) fn read(payload: &[u8]) -> Option<ContainerRecord> {
        let mut from = Decoder::new(payload, TAG_CONTAINER)?;
        let record = ContainerRecord {
            modified: from.number()?,
            lease: read_lease(&mut from)?,
            public_access: from.option(|from| PublicAccess::parse(from.text()?))?,
            metadata: Metadata::read(from.pairs()?).ok()?,
            default_scope: from.option(|from| from.text().map(Box::from))?,
            deny_scope_override: from.flag()?,
            deleted: from.option(|from| Some(SoftDeletion { at: from.number()?, until: from.number()? }))?,
        };
        from.end()?;
        Some(record)
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<ContainerRecord, ServiceError> {
        let damaged =
            || ServiceError::with_source(ErrorCode::InternalError, "a container's record does not decode");
        ContainerRecord::read(payload).ok_or_else(damaged)
    }

    /// Whether no time in it is later than this one.
    fn ends_before(&self, last: u64) -> bool {
        let lease = match self.lease {
            Lease::Leased { until, .. } => until.map_or(0, DateTime::ticks),
            Lease::Breaking { until, .. } => until.ticks(),
            _ => 0,
        };
        self.modified.max(lease) <= last
    }

    pub(crate) fn stamp(&self) -> Stamp {
        let last_modified = DateTime::from_ticks(self.modified);
        Stamp { etag: BlobETag(self.modified), last_modified, version: None }
    }

    fn view(self, name: &str, now: DateTime) -> ContainerView {
        let (name, version) = name.split_once(DELETED_MARK).unwrap_or((name, ""));
        let Stamp { etag, last_modified, .. } = self.stamp();
        ContainerView {
            name: name.into(),
            etag,
            last_modified,
            lease: self.lease.at(now),
            public_access: self.public_access,
            metadata: self.metadata,
            default_encryption_scope: self.default_scope,
            deny_encryption_scope_override: self.deny_scope_override,
            deleted: self.deleted.map(|deleted| DeletedContainerView {
                version: version.into(),
                time: DateTime::from_ticks(deleted.at),
                remaining_days: deleted.remaining_days(now),
            }),
        }
    }

    /// Checks what a request says about the lease, and its conditions.
    pub(crate) fn check(
        &self,
        lease_use: LeaseUse,
        lease: Option<Guid>,
        conditions: &Conditions,
        now: DateTime,
    ) -> Result<(), ServiceError> {
        self.lease.at(now).check_use(lease_use, lease, Leasable::Container)?;
        let no_tags = Tags::default();
        let Stamp { etag, last_modified, .. } = self.stamp();
        let state = ConditionState { etag, last_modified, tags: &no_tags };
        Ok(conditions.check(ConditionPurpose::Change, Some(&state))?)
    }
}

impl BlobService {
    /// `ContainerAlreadyExists` if there is one of this name.
    pub async fn create_container(
        &self,
        account: &AccountName,
        container: &ContainerName,
        new: NewContainer,
    ) -> Result<Stamp, ServiceError> {
        let record = ContainerRecord {
            modified: self.inner.next_moment().await?.ticks(),
            lease: Lease::Available,
            public_access: new.public_access,
            metadata: new.metadata,
            default_scope: new.default_encryption_scope,
            deny_scope_override: new.deny_encryption_scope_override,
            deleted: None,
        };
        let create = || self.inner.catalogue.create(account, container.as_str(), record.encode());
        let mut created = create().await?;
        if created.is_none() && self.inner.finish_deletion(account, container.as_str()).await? {
            created = create().await?;
        }
        created.map(|_| record.stamp()).ok_or_else(|| ErrorCode::ContainerAlreadyExists.into())
    }

    /// Properties and metadata.
    pub async fn container_properties(
        &self,
        account: &AccountName,
        container: &ContainerName,
        lease: Option<Guid>,
    ) -> Result<ContainerView, ServiceError> {
        let (_, record) = self.inner.container(account, container).await?;
        let now = self.inner.now().await?;
        record.check(LeaseUse::Read, lease, &Conditions::default(), now)?;
        Ok(record.view(container.as_str(), now))
    }

    /// How far anonymous callers may read. `None`: not at all, or there is no such container.
    pub async fn public_access(
        &self,
        account: &AccountName,
        container: &ContainerName,
    ) -> Result<Option<PublicAccess>, ServiceError> {
        let found = self.inner.catalogue.get(account, container.as_str()).await?;
        let Some(found) = found else { return Ok(None) };
        let record = ContainerRecord::decode(&found.payload)?;
        Ok(record.public_access.filter(|_| record.deleted.is_none()))
    }

    pub async fn set_container_metadata(
        &self,
        account: &AccountName,
        container: &ContainerName,
        metadata: Metadata,
        lease: Option<Guid>,
        conditions: &Conditions,
    ) -> Result<Stamp, ServiceError> {
        let change = |record: &mut ContainerRecord, now: DateTime| {
            record.check(LeaseUse::Read, lease, conditions, now)?;
            record.metadata = metadata.clone();
            record.modified = now.ticks().max(record.modified + 1);
            Ok(record.stamp())
        };
        self.inner.change_container(account, container, change).await
    }

    pub async fn container_acl(
        &self,
        account: &AccountName,
        container: &ContainerName,
        lease: Option<Guid>,
    ) -> Result<ContainerAclView, ServiceError> {
        let view = self.container_properties(account, container, lease).await?;
        let policies = self.inner.catalogue.policies(account, container.as_str()).await?;
        let policies = policies.ok_or(ErrorCode::ContainerNotFound)?;
        Ok(ContainerAclView { container: view, policies })
    }

    pub async fn set_container_acl(
        &self,
        account: &AccountName,
        container: &ContainerName,
        acl: &ContainerAcl,
        lease: Option<Guid>,
        conditions: &Conditions,
    ) -> Result<Stamp, ServiceError> {
        let (seen, _) = self.inner.container(account, container).await?;
        // Policies are another row. So that two requests do not mix, they take turns, as far as one process sees them.
        let _turn = self.inner.turn(seen.ids.id, "").await;
        let change = |record: &mut ContainerRecord, now: DateTime| {
            record.check(LeaseUse::Read, lease, conditions, now)?;
            record.public_access = acl.public_access;
            record.modified = now.ticks().max(record.modified + 1);
            Ok(record.stamp())
        };
        // The row with the conditions comes first: a request that is refused has changed nothing.
        let stamp = self.inner.change_container(account, container, change).await?;
        match self.inner.catalogue.set_policies(account, container.as_str(), &acl.policies).await? {
            true => Ok(stamp),
            false => Err(ErrorCode::ContainerNotFound.into()),
        }
    }

    pub async fn lease_container(
        &self,
        account: &AccountName,
        container: &ContainerName,
        request: LeaseRequest,
        conditions: &Conditions,
    ) -> Result<Leased, ServiceError> {
        let new_id = new_guid();
        let change = |record: &mut ContainerRecord, now: DateTime| {
            let no_tags = Tags::default();
            let Stamp { etag, last_modified, .. } = record.stamp();
            let state = ConditionState { etag, last_modified, tags: &no_tags };
            conditions.check(ConditionPurpose::Change, Some(&state))?;
            let outcome = record.lease.act(request, Leasable::Container, now, new_id)?;
            record.lease = outcome.lease;
            Ok(Leased { stamp: record.stamp(), outcome })
        };
        self.inner.change_container(account, container, change).await
    }

    pub async fn list_containers(
        &self,
        account: &AccountName,
        parameters: &ListContainersParameters,
        share: Share,
    ) -> Result<ContainerPage, ServiceError> {
        let now = self.inner.now().await?;
        let prefix = parameters.prefix.as_deref().unwrap_or_default();
        let mut containers = Vec::new();
        let (mut damage, mut is_past, mut bytes) = (None, false, 0);
        let mut visit = |name: &str, payload: &[u8]| {
            is_past = !name.starts_with(prefix);
            if is_past || containers.len() == parameters.page_count() {
                return Flow::Stop;
            }
            if name.contains(DELETED_MARK) && !parameters.include_deleted {
                return Flow::Continue;
            }
            let is_system = ContainerName::parse(name).is_ok_and(|name| name.is_system());
            if is_system && !parameters.include_system {
                return Flow::Continue;
            }
            bytes += payload.len();
            if bytes > PAGE_BYTES_MAX && !containers.is_empty() {
                return Flow::Stop;
            }
            match ContainerRecord::decode(payload) {
                Ok(record) if record.deleted.is_some_and(|deleted| deleted.until <= now.ticks()) => {}
                Ok(record) if record.deleted.is_some() && !name.contains(DELETED_MARK) => {}
                Ok(record) => containers.push(record.view(name, now)),
                Err(error) => {
                    damage = Some(error);
                    return Flow::Stop;
                }
            }
            Flow::Continue
        };
        let first = parameters.first_name().unwrap_or_default().max(prefix);
        let next = self.inner.catalogue.list(account, Some(first), scan_budget(share), &mut visit).await?;
        match damage {
            Some(error) => Err(error),
            None => Ok(ContainerPage { containers, next: next.filter(|_| !is_past) }),
        }
    }
}

impl BlobCore {
    async fn container(
        &self,
        account: &AccountName,
        container: &ContainerName,
    ) -> Result<(Container, ContainerRecord), ServiceError> {
        let found = self.catalogue.get(account, container.as_str()).await?;
        let found = found.ok_or(ErrorCode::ContainerNotFound)?;
        let record = ContainerRecord::decode(&found.payload)?;
        match record.deleted {
            None => Ok((found, record)),
            Some(_) => Err(ErrorCode::ContainerBeingDeleted.into()),
        }
    }

    async fn change_container<T>(
        &self,
        account: &AccountName,
        container: &ContainerName,
        change: impl Fn(&mut ContainerRecord, DateTime) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let (seen, mut record) = self.container(account, container).await?;
            let value = change(&mut record, self.next_moment().await?)?;
            let payload = record.encode();
            if self.catalogue.replace(account, container.as_str(), &seen, payload, TableRows::Keep).await? {
                return Ok(value);
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }
}

/// Whether these bytes are the record of a container that is not deleted, with no time after the last one.
pub(crate) fn is_live_record(payload: &[u8], last: u64) -> bool {
    ContainerRecord::read(payload).is_some_and(|record| record.deleted.is_none() && record.ends_before(last))
}

/// Whether these bytes are the record of a container that is deleted.
pub(crate) fn is_deleted_record(payload: &[u8], last: u64) -> bool {
    let is_deleted = |record: ContainerRecord| {
        let deleted = record.deleted.is_some_and(|deleted| deleted.at.max(deleted.until) <= last);
        deleted && record.ends_before(last)
    };
    ContainerRecord::read(payload).is_some_and(is_deleted)
}

/// A new id of a lease or a copy.
pub(crate) fn new_guid() -> Guid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&engine::env::random::unguessable().to_le_bytes());
    bytes[8..].copy_from_slice(&engine::env::random::unguessable().to_le_bytes());
    // Version 4, as random GUIDs are.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Guid(bytes)
}
