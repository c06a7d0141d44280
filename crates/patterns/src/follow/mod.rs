//! What follows from an entity in other partitions, kept right by a worker: the inter-partition secondary index, and index
//! entities of another partition.
//!
//! An entity has *places*: names of what must be written elsewhere because of it. [`Follower`] changes the entity and
//! announces the change in a queue; [`Worker`] takes announcements and settles the places that they name.
//!
//! Promises: every place is right once the queue is empty, whichever process died at which step, and however many workers
//! there are. Why:
//!
//! - No change happens without its announcement: see [`Delivery`].
//! - An announcement names the places before and after its change, and its worker settles those and no others.
//! - What belongs at a place follows from the entity alone, so settling can be repeated, and the order of announcements
//!   does not matter.
//! - A worker reads the entity again after it settled, and settles again if the entity changed. So whoever settles a place
//!   last has seen that the entity stayed as it was; if it changes later, that change has an announcement of its own.
//! - An announcement is deleted after all that, and comes back if its worker dies.
//!
//! Until then a reader of a place sees what followed from an earlier state of the entity. Leaves to others: values that
//! two entities share at one place of a [`CopyIndex`]; its places must be unique.

mod announcement;
mod copies;
mod lists;
mod worker;
mod writer;

use std::future::Future;

use lazulite_client::{Error, Keys};

pub use copies::CopyIndex;
pub use lists::NameLists;
pub use worker::{DEQUEUE_COUNT_MAX, FENCE_AFTER_DEQUEUE_COUNT, Worked, Worker};
pub use writer::{CLAIM_PREFIX, Follower};

/// How a change and its announcement become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// One request writes both, or neither. Lazulite only.
    Outbox,
    /// For any service: the announcement goes first, and the change carries a *claim*, a row of the entity's partition that
    /// the same transaction inserts. A worker that finds no claim waits; after a while it inserts the claim itself, and from
    /// then on the change cannot happen any more. So an announcement is deleted only after its change happened or became
    /// impossible.
    Queue,
}

/// What follows from entities of type `E`.
pub trait Follows<E>: Send + Sync {
    /// The places at which this entity must be seen. They must be a function of the entity.
    fn places(&self, entity: &E) -> Result<Vec<String>, Error>;

    /// Makes a place right. `entity` is there if it belongs at this place; otherwise whatever the entity with these keys
    /// left there goes. Must have the same effect however often it happens.
    fn settle(
        &self,
        place: &str,
        keys: &Keys<'_>,
        entity: Option<&E>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}
