//! Queues by name: create, delete, list, metadata, policies, clear.

use std::sync::Arc;

use engine::{Flow, Share, TableRows};
use protocol::common::{AccountName, Metadata, StoredPolicy};
use protocol::queue::QueueName;
use protocol::{ErrorCode, ServiceError};

use crate::payload;
use crate::service::{ATTEMPT_COUNT_MAX, QueueService, scan_budget};

/// What became of a creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    New,
    /// There was one of this name with the same metadata.
    Existed,
}

/// Metadata of one page, stored. A page that would have more is shorter.
const PAGE_METADATA_BYTES_MAX: usize = 1024 * 1024;

/// Which queues to list.
pub struct ListQuery<'a> {
    pub prefix: &'a str,
    /// The first name of the page.
    pub marker: Option<&'a str>,
    pub queue_count_max: usize,
    /// Without it, the metadata of the listed queues are left out.
    pub has_metadata: bool,
    pub share: Share,
}

pub struct QueuePage {
    pub queues: Vec<ListedQueue>,
    /// The first name of the next page.
    pub next: Option<String>,
}

pub struct ListedQueue {
    pub name: String,
    pub metadata: Metadata,
}

pub struct QueueProperties {
    pub metadata: Metadata,
    pub message_count: u64,
}

impl QueueService {
    pub async fn create_queue(
        &self,
        account: &AccountName,
        queue: &QueueName,
        metadata: &Metadata,
    ) -> Result<Created, ServiceError> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            if self.catalogue.create(account, queue.as_str(), payload::write(metadata)).await?.is_some() {
                return Ok(Created::New);
            }
            // It may be deleted between the two looks.
            let Some(existing) = self.catalogue.get(account, queue.as_str()).await? else { continue };
            return match payload::read(&existing.payload)? == *metadata {
                true => Ok(Created::Existed),
                false => Err(ErrorCode::QueueAlreadyExists.into()),
            };
        }
        Err(ErrorCode::ServerBusy.into())
    }

    pub async fn delete_queue(&self, account: &AccountName, queue: &QueueName) -> Result<(), ServiceError> {
        let id = self.catalogue.delete(account, queue.as_str()).await?.ok_or(ErrorCode::QueueNotFound)?;
        self.live().await?.fronts.forget(id);
        Ok(())
    }

    pub async fn list_queues(
        &self,
        account: &AccountName,
        query: &ListQuery<'_>,
    ) -> Result<QueuePage, ServiceError> {
        let mut queues = Vec::new();
        let mut damage = None;
        let mut is_past = false;
        let mut metadata_bytes = 0;
        let mut visit = |name: &str, payload: &[u8]| {
            is_past = !name.starts_with(query.prefix);
            if is_past || queues.len() == query.queue_count_max {
                return Flow::Stop;
            }
            let payload = if query.has_metadata { payload } else { &[] };
            metadata_bytes += payload.len();
            if metadata_bytes > PAGE_METADATA_BYTES_MAX {
                return Flow::Stop;
            }
            match payload::read(payload) {
                Ok(metadata) => queues.push(ListedQueue { name: name.to_owned(), metadata }),
                Err(error) => {
                    damage = Some(error);
                    return Flow::Stop;
                }
            }
            Flow::Continue
        };
        let first = query.marker.unwrap_or_default().max(query.prefix);
        let next = self.catalogue.list(account, Some(first), scan_budget(query.share), &mut visit).await?;
        match damage {
            Some(error) => Err(error),
            None => Ok(QueuePage { queues, next: next.filter(|_| !is_past) }),
        }
    }

    pub async fn properties(
        &self,
        account: &AccountName,
        queue: &QueueName,
    ) -> Result<QueueProperties, ServiceError> {
        let found = self.catalogue.get(account, queue.as_str()).await?.ok_or(ErrorCode::QueueNotFound)?;
        let message_count = self.message_count(found.ids.id).await?;
        Ok(QueueProperties { metadata: payload::read(&found.payload)?, message_count })
    }

    pub async fn set_metadata(
        &self,
        account: &AccountName,
        queue: &QueueName,
        metadata: &Metadata,
    ) -> Result<(), ServiceError> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let seen = self.catalogue.get(account, queue.as_str()).await?.ok_or(ErrorCode::QueueNotFound)?;
            let payload = payload::write(metadata);
            if self.catalogue.replace(account, queue.as_str(), &seen, payload, TableRows::Keep).await? {
                return Ok(());
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// Removes all messages, however many there are, in one step.
    pub async fn clear_messages(&self, account: &AccountName, queue: &QueueName) -> Result<(), ServiceError> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let seen = self.catalogue.get(account, queue.as_str()).await?.ok_or(ErrorCode::QueueNotFound)?;
            let payload = seen.payload.clone();
            #[cfg(not(feature = "seeded-bugs"))]
            let rows = TableRows::Drop;
            #[cfg(feature = "seeded-bugs")]
            let rows = crate::seeded::cleared_rows();
            if self.catalogue.replace(account, queue.as_str(), &seen, payload, rows).await? {
                self.live().await?.fronts.forget(seen.ids.id);
                return Ok(());
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    pub async fn policies(
        &self,
        account: &AccountName,
        queue: &QueueName,
    ) -> Result<Arc<[StoredPolicy]>, ServiceError> {
        let policies = self.catalogue.policies(account, queue.as_str()).await?;
        policies.ok_or_else(|| ErrorCode::QueueNotFound.into())
    }

    pub async fn set_policies(
        &self,
        account: &AccountName,
        queue: &QueueName,
        policies: &[StoredPolicy],
    ) -> Result<(), ServiceError> {
        match self.catalogue.set_policies(account, queue.as_str(), policies).await? {
            true => Ok(()),
            false => Err(ErrorCode::QueueNotFound.into()),
        }
    }

    /// For a request that can match no message: it still matters whether there is a queue.
    pub async fn check_queue(&self, account: &AccountName, queue: &QueueName) -> Result<(), ServiceError> {
        self.find(account, queue).await.map(|_| ())
    }
}
