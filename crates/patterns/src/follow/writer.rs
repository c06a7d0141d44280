//! The side that changes entities.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lazulite_client::{Entity, Error, IfMatch, PutOptions, QueueClient, TableClient};

use super::announcement::Announcement;
use super::{Delivery, Follows};
use crate::keys;
use crate::partition_index::own_etag;
use crate::raw::RawEntity;

/// The RowKey of a claim begins with this part.
pub const CLAIM_PREFIX: &str = "claim";
/// An announcement that goes first is hidden for so long: usually the change happens within that time.
const HEAD_START: Duration = Duration::from_secs(2);

/// A table whose changes are announced.
///
/// Every change is conditional: an insert of an absent row, or a change of the row that was read. With [`Delivery::Queue`] the
/// partition of an entity holds claims too, for as long as their announcements live.
pub struct Follower<E, F> {
    table: TableClient,
    queue: QueueClient,
    delivery: Delivery,
    follows: Arc<F>,
    entity: PhantomData<fn() -> E>,
}

impl<E: Entity + Sync, F: Follows<E>> Follower<E, F> {
    /// Changes the entities of `table`, and announces in `queue`.
    pub fn new(
        table: TableClient,
        queue: QueueClient,
        delivery: Delivery,
        follows: Arc<F>,
    ) -> Follower<E, F> {
        Follower { table, queue, delivery, follows, entity: PhantomData }
    }

    /// Inserts an entity, which must not exist.
    pub async fn insert(&self, entity: &E) -> Result<(), Error> {
        self.change(None, Some(entity)).await
    }

    /// Replaces an entity. `old` is the entity as it was read, with its ETag. Refused (412) if it changed meanwhile.
    pub async fn replace(&self, old: &E, new: &E) -> Result<(), Error> {
        if old.keys()? != new.keys()? {
            return Err(Error::Refused("an entity cannot be replaced by one with other keys".to_owned()));
        }
        self.change(Some(old), Some(new)).await
    }

    /// Deletes an entity. `old` is the entity as it was read, with its ETag.
    pub async fn delete(&self, old: &E) -> Result<(), Error> {
        self.change(Some(old), None).await
    }

    async fn change(&self, old: Option<&E>, new: Option<&E>) -> Result<(), Error> {
        let Some(either) = new.or(old) else { return Ok(()) };
        let keys = either.keys()?;
        let mut announcement = Announcement {
            partition_key: keys.partition_key.to_string(),
            row_key: keys.row_key.to_string(),
            places: Default::default(),
            claim: None,
        };
        for entity in [old, new].into_iter().flatten() {
            announcement.places.extend(self.follows.places(entity)?);
        }
        let mut transaction = self.table.transaction(keys.partition_key.as_ref());
        match (old, new) {
            (None, Some(new)) => transaction.insert(new)?,
            (Some(old), Some(new)) => transaction.replace(new, IfMatch::ETag(own_etag(old)?))?,
            (Some(old), None) => transaction.delete(&keys.row_key, IfMatch::ETag(own_etag(old)?))?,
            (None, None) => return Ok(()),
        };
        if self.delivery == Delivery::Outbox {
            transaction.enqueue(self.queue.name(), &announcement.to_text()?)?;
            return transaction.send().await.map(|_| ());
        }
        let claim = keys::compose([CLAIM_PREFIX, &crate::random_name()?]);
        transaction.insert(&RawEntity::new(keys.partition_key.as_ref(), claim.as_str()))?;
        announcement.claim = Some(claim);
        let head_start = PutOptions::new().visible_after(HEAD_START);
        let sent = self.queue.put(&announcement.to_text()?, head_start).await?;
        let outcome = transaction.send().await;
        match &outcome {
            // From here on a worker may begin. If this request fails, it begins a little later.
            Ok(_) => drop(self.queue.update(&sent, None, Duration::ZERO).await),
            // Nothing was written, so there is nothing to announce. If this request fails, a worker finds out.
            Err(Error::Service(_)) => drop(self.queue.delete(&sent).await),
            Err(_) => {}
        }
        outcome.map(|_| ())
    }
}
