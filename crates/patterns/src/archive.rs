//! The eventually consistent transaction: an entity moves from one table to another, through a queue.
//!
//! Promises: an entity that was to be moved is in the end in the second table and not in the first, whichever worker died at
//! which step; meanwhile it may be in both, and never in neither. An entity that changes while it is moved is copied again, so
//! no change is lost. Leaves to others: running a worker ([`Archive::work`]) as long as there are messages.

use std::time::Duration;

use lazulite_client::{Entity, Error, IfMatch, Keys, PutOptions, QueueClient, TableClient};
use serde::{Deserialize, Serialize};

use crate::poison;
use crate::raw::RawEntity;

/// A message that was taken more often than this goes to the poison queue.
pub const DEQUEUE_COUNT_MAX: u32 = 7;
/// How often an entity may change while it is moved. After that its message comes back later.
const ATTEMPT_COUNT_MAX: u32 = 16;

/// What a message says.
#[derive(Serialize, Deserialize, Debug)]
struct Request {
    partition_key: String,
    row_key: String,
}

/// What one turn of a worker did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// No message is visible. Others may be hidden.
    Nothing,
    /// The entity is in the second table, and the message is gone.
    Done,
    /// A message was set aside, in the poison queue.
    Poison,
}

/// Two tables and the queue between them.
#[derive(Clone)]
pub struct Archive {
    /// Where entities are.
    pub current: TableClient,
    /// Where they go.
    pub archive: TableClient,
    /// Carries the requests.
    pub queue: QueueClient,
    /// Gets the messages that cannot be handled.
    pub poison: QueueClient,
    /// A message comes back after this time if its worker dies.
    pub visibility: Duration,
}

impl Archive {
    /// Asks for an entity to be moved. When this returns, it will happen.
    pub async fn request(&self, keys: &Keys<'_>) -> Result<(), Error> {
        self.queue.put(&text_of(keys)?, PutOptions::new()).await.map(|_| ())
    }

    /// Changes an entity and asks for it to be moved, in one step: both happen, or neither. `entity` was read and keeps its
    /// ETag. Lazulite only (the outbox).
    pub async fn request_with<E: Entity + Sync>(&self, entity: &E) -> Result<(), Error> {
        let keys = entity.keys()?;
        let mut transaction = self.current.transaction(keys.partition_key.as_ref());
        transaction.replace(entity, IfMatch::Unchanged)?.enqueue(self.queue.name(), &text_of(&keys)?)?;
        transaction.send().await.map(|_| ())
    }

    /// Takes one message and does what it asks for. After an error the message comes back by itself.
    pub async fn work(&self) -> Result<Moved, Error> {
        let Some(message) = self.queue.take(1, self.visibility).await?.pop() else {
            return Ok(Moved::Nothing);
        };
        let request = serde_json::from_str::<Request>(&message.text).ok();
        let Some(request) = request.filter(|_| message.dequeue_count <= DEQUEUE_COUNT_MAX) else {
            poison::set_aside(&self.queue, &self.poison, &message).await?;
            return Ok(Moved::Poison);
        };
        self.move_entity(&request).await?;
        poison::delete(&self.queue, &message).await?;
        Ok(Moved::Done)
    }

    async fn move_entity(&self, Request { partition_key, row_key }: &Request) -> Result<(), Error> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            // If it is not here, another worker has moved it and died before it could delete the message.
            let Some(entity) = self.current.try_get::<RawEntity>(partition_key, row_key).await? else {
                return Ok(());
            };
            self.archive.upsert_replace(&entity).await?;
            match self.current.delete(partition_key, row_key, IfMatch::ETag(entity.read_etag()?)).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_not_found() || error.is_precondition_failed() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!("{row_key:?} changes all the time")))
    }
}

fn text_of(keys: &Keys<'_>) -> Result<String, Error> {
    let request =
        Request { partition_key: keys.partition_key.to_string(), row_key: keys.row_key.to_string() };
    serde_json::to_string(&request)
        .map_err(|error| Error::Refused(format!("the request is no JSON: {error}")))
}
