//! The side that settles what was announced. Any number of workers may run at once, in any number of processes.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lazulite_client::{Entity, Error, IfMatch, Keys, Message, QueueClient, TableClient};

use super::Follows;
use super::announcement::Announcement;
use crate::poison;
use crate::raw::RawEntity;

/// A worker that found no claim so often makes the change impossible. Together with [`WAIT`] this is the time that a
/// client has between its announcement and its change.
pub const FENCE_AFTER_DEQUEUE_COUNT: u32 = 5;
/// A message that was taken more often than this goes to the poison queue.
pub const DEQUEUE_COUNT_MAX: u32 = 20;
/// How long an announcement without its claim is put back for.
const WAIT: Duration = Duration::from_secs(1);
/// How often an entity may change while its places are settled. After that the announcement comes back later.
const ATTEMPT_COUNT_MAX: u32 = 16;

/// What one turn of a worker did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Worked {
    /// No message is visible. Others may be hidden.
    Nothing,
    /// An announcement was settled and deleted.
    Settled,
    /// An announcement was put back: its change has not happened yet, or the entity changes all the time.
    PutBack,
    /// A message was set aside, in the poison queue.
    Poison,
}

/// Settles the places of entities of one table.
pub struct Worker<E, F> {
    table: TableClient,
    queue: QueueClient,
    poison: QueueClient,
    follows: Arc<F>,
    visibility: Duration,
    entity: PhantomData<fn() -> E>,
}

impl<E: Entity + Sync, F: Follows<E>> Worker<E, F> {
    /// Takes announcements from `queue`. Messages that cannot be handled go to `poison`. A message that was taken comes back
    /// after `visibility` if its worker dies.
    pub fn new(
        table: TableClient,
        queue: QueueClient,
        poison: QueueClient,
        follows: Arc<F>,
        visibility: Duration,
    ) -> Worker<E, F> {
        Worker { table, queue, poison, follows, visibility, entity: PhantomData }
    }

    /// Takes one message and handles it. After an error the message comes back by itself.
    pub async fn work(&self) -> Result<Worked, Error> {
        let Some(message) = self.queue.take(1, self.visibility).await?.pop() else {
            return Ok(Worked::Nothing);
        };
        let Some(announcement) =
            Announcement::read(&message.text).filter(|_| message.dequeue_count <= DEQUEUE_COUNT_MAX)
        else {
            poison::set_aside(&self.queue, &self.poison, &message).await?;
            return Ok(Worked::Poison);
        };
        let has_happened = match &announcement.claim {
            Some(claim) => self.has_happened(&announcement.partition_key, claim, &message).await?,
            None => Some(true),
        };
        let Some(has_happened) = has_happened else { return self.put_back(&message).await };
        if !self.settle(&announcement).await? {
            return self.put_back(&message).await;
        }
        let is_last = poison::delete(&self.queue, &message).await?;
        // A claim is needed as long as a worker may look for it. That of a change which must not happen any more stays.
        if let Some(claim) = announcement.claim.as_ref().filter(|_| has_happened && is_last) {
            match self.table.delete(&announcement.partition_key, claim, IfMatch::Any).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(Worked::Settled)
    }

    /// Whether the change with this claim happened; `None` if it still may.
    async fn has_happened(
        &self,
        partition_key: &str,
        claim: &str,
        message: &Message,
    ) -> Result<Option<bool>, Error> {
        if self.table.exists(partition_key, claim).await? {
            return Ok(Some(true));
        }
        if message.dequeue_count < FENCE_AFTER_DEQUEUE_COUNT {
            return Ok(None);
        }
        // If this succeeds, the transaction of the client cannot.
        match self.table.insert(&RawEntity::new(partition_key, claim)).await {
            Ok(_) => Ok(Some(false)),
            Err(error) if error.is_conflict() => Ok(Some(true)),
            Err(error) => Err(error),
        }
    }

    /// Settles all places, until the entity did not change meanwhile. Returns `false` if it never stops changing.
    async fn settle(&self, announcement: &Announcement) -> Result<bool, Error> {
        let Announcement { partition_key, row_key, places, .. } = announcement;
        let keys = Keys { partition_key: partition_key.as_str().into(), row_key: row_key.as_str().into() };
        let mut seen = self.table.try_get::<RawEntity>(partition_key, row_key).await?;
        for _ in 0..ATTEMPT_COUNT_MAX {
            let entity = seen.clone().map(RawEntity::into_entity::<E>).transpose()?;
            let current = entity.as_ref().map_or(Ok(Vec::new()), |entity| self.follows.places(entity))?;
            for place in places {
                let entity = entity.as_ref().filter(|_| current.contains(place));
                self.follows.settle(place, &keys, entity).await?;
            }
            let now = self.table.try_get::<RawEntity>(partition_key, row_key).await?;
            let etag = |raw: &Option<RawEntity>| raw.as_ref().and_then(|raw| raw.etag.clone());
            if etag(&now) == etag(&seen) {
                return Ok(true);
            }
            seen = now;
        }
        Ok(false)
    }

    async fn put_back(&self, message: &Message) -> Result<Worked, Error> {
        match self.queue.update(message, None, WAIT).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Worked::PutBack),
        }
    }
}
