//! Delete Container and Restore Container.
//!
//! A deletion has three steps. First the container's record says that it is deleted, if it is still the one whose lease and conditions
//! were checked: from here on it is gone. Then it gets another name, `NAME!VERSION`, which nobody can ask for because it is not a
//! container's. There it can be restored, or it is dropped.
//!
//! Promises: what a crash left half done is finished by the next creation of a container of that name, or by a sweep, when it is
//! certain that nobody else is at it. The new name belongs to one deletion, and stays taken for a day if others have finished it. So
//! two of them cannot touch a new container of the same name.

use std::time::Duration;

use catalogue::Container;
use engine::env::ticks;
use engine::{CommitError, TablePath, TableRows};
use protocol::blob::ContainerName;
use protocol::blob::conditions::Conditions;
use protocol::blob::lease::{Lease, LeaseUse};
use protocol::common::guid::Guid;
use protocol::common::{AccountName, DateTime};
use protocol::{ErrorCode, ServiceError};

use crate::api::Stamp;
use crate::base::deletion;
use crate::containers::ContainerRecord;
use crate::family::{FAMILY, namespace};
use crate::finish::Unstoppable;
use crate::record::SoftDeletion;
use crate::service::{ATTEMPT_COUNT_MAX, BlobCore, BlobService};

/// Between the name of a deleted container and its version. No name has it.
pub(crate) const DELETED_MARK: &str = "!";
/// Whoever begins a deletion gives up after this time.
const DELETION_TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// After this time others finish it. Clocks may differ by as much as lies between the two.
const CUT_SHORT_AFTER: Duration = Duration::from_secs(10 * 60);
/// For so long the name `NAME!VERSION` of a deletion that others finished stays taken, so that nobody who is late can use it.
const LEFTOVER_TIME: Duration = Duration::from_secs(24 * 3600);

/// What became of a renaming.
enum Renamed {
    Done,
    Absent,
    Taken,
}

/// What a sweep has to do about a container.
pub(crate) enum Overdue {
    /// It is deleted and has not lost its name.
    Finish,
    /// It cannot be restored any more.
    Drop,
}

impl BlobService {
    pub async fn delete_container(
        &self,
        account: &AccountName,
        container: &ContainerName,
        lease: Option<Guid>,
        conditions: &Conditions,
    ) -> Result<(), ServiceError> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let Some(seen) = self.inner.catalogue.get(account, container.as_str()).await? else {
                return Err(ErrorCode::ContainerNotFound.into());
            };
            let mut record = ContainerRecord::decode(&seen.payload)?;
            let now = self.inner.next_moment().await?;
            if record.deleted.is_some() {
                self.inner.finish_deletion(account, container.as_str()).await?;
                return Ok(());
            }
            record.check(LeaseUse::Write, lease, conditions, now)?;
            record.lease = Lease::Available;
            record.deleted = Some(deletion(now, self.inner.options.container_retention_days.unwrap_or(0)));
            let (inner, account, container) = (self.inner.clone(), account.clone(), container.clone());
            let delete = async move { inner.delete_seen(&account, container.as_str(), &seen, &record).await };
            if Unstoppable::new(delete).await? {
                return Ok(());
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// Undoes the deletion of a container, under the same or another name.
    pub async fn restore_container(
        &self,
        account: &AccountName,
        container: &ContainerName,
        deleted_name: &str,
        deleted_version: &str,
    ) -> Result<Stamp, ServiceError> {
        let kept = [deleted_name, DELETED_MARK, deleted_version].concat();
        let found = self.inner.catalogue.get(account, &kept).await?.ok_or(ErrorCode::ContainerNotFound)?;
        let mut record = ContainerRecord::decode(&found.payload)?;
        let now = self.inner.next_moment().await?;
        if record.deleted.take().is_none_or(|deleted| deleted.until <= now.ticks()) {
            return Err(ErrorCode::ContainerNotFound.into());
        }
        match self.inner.rename_container(account, &kept, container.as_str(), &record).await? {
            Renamed::Done => Ok(record.stamp()),
            Renamed::Absent => Err(ErrorCode::ContainerNotFound.into()),
            Renamed::Taken => Err(ErrorCode::ContainerAlreadyExists.into()),
        }
    }
}

impl BlobCore {
    /// Deletes a container that is still as it was seen. `false` if it is not.
    async fn delete_seen(
        &self,
        account: &AccountName,
        name: &str,
        seen: &Container,
        record: &ContainerRecord,
    ) -> Result<bool, ServiceError> {
        let Some(SoftDeletion { at, until }) = record.deleted else { return Ok(false) };
        if !self.catalogue.replace(account, name, seen, record.encode(), TableRows::Keep).await? {
            return Ok(false);
        }
        if self.now().await?.ticks() > at.saturating_add(ticks(DELETION_TIME_MAX)) {
            return Err(ErrorCode::ServerBusy.into());
        }
        let kept = kept_name(name, at);
        self.rename_container(account, name, &kept, record).await?;
        if until <= at {
            self.catalogue.delete(account, &kept).await?;
        }
        Ok(true)
    }

    /// Takes its name from a container whose deletion was cut short. `false` if there is no such container.
    pub(crate) async fn finish_deletion(
        &self,
        account: &AccountName,
        name: &str,
    ) -> Result<bool, ServiceError> {
        let Some(found) = self.catalogue.get(account, name).await? else { return Ok(true) };
        let record = ContainerRecord::decode(&found.payload)?;
        let Some(SoftDeletion { at, .. }) = record.deleted else { return Ok(false) };
        if !is_cut_short(at, self.now().await?) {
            return Err(ErrorCode::ContainerBeingDeleted.into());
        }
        // If it is absent or taken, another one was faster.
        self.rename_container(account, name, &kept_name(name, at), &record).await?;
        Ok(true)
    }

    /// Gives a container another name, and another record, in one step.
    async fn rename_container(
        &self,
        account: &AccountName,
        from: &str,
        to: &str,
        record: &ContainerRecord,
    ) -> Result<Renamed, ServiceError> {
        let payload = catalogue::record::of_new(FAMILY, record.encode());
        let path = |name| TablePath::new(namespace(account), name);
        let renamed = self.engine.rename_table(path(from), path(to), payload).await;
        for name in [from, to] {
            self.catalogue.forget(account, name);
        }
        match renamed {
            Ok(_) => Ok(Renamed::Done),
            Err(CommitError::Precondition { op: 0, .. }) => Ok(Renamed::Absent),
            Err(CommitError::Precondition { .. }) => Ok(Renamed::Taken),
            Err(error) => Err(catalogue::from_commit(error)),
        }
    }
}

/// What is to be done about the container of this name.
pub(crate) fn overdue(name: &str, payload: &[u8], now: DateTime) -> Option<Overdue> {
    let SoftDeletion { at, until } = ContainerRecord::read(payload)?.deleted?;
    if !name.contains(DELETED_MARK) {
        return is_cut_short(at, now).then_some(Overdue::Finish);
    }
    // One that was not to be kept is dropped with its deletion. It is here only if that was cut short.
    let until = if until > at { until } else { at.saturating_add(ticks(LEFTOVER_TIME)) };
    (until <= now.ticks()).then_some(Overdue::Drop)
}

fn kept_name(name: &str, at: u64) -> String {
    format!("{name}{DELETED_MARK}{at:016x}")
}

/// Whether whoever began a deletion at this moment does not go on with it.
fn is_cut_short(at: u64, now: DateTime) -> bool {
    at.saturating_add(ticks(CUT_SHORT_AFTER)) <= now.ticks()
}
