//! Read-modify-write: reads a row, lets the program change it, and writes it back if nobody else wrote it meanwhile.
//!
//! Promises: no change of another client is lost, and neither is a property that the struct does not know. A change is
//! stored once if this returns `Ok`, and at most once otherwise: where nobody can tell, the error says so. Attempts are
//! bounded, and competing clients are spread by a random wait.

use std::time::Duration;

use crate::retry::Budget;
use crate::sealing::{Marks, own_property};
use crate::table::{is_row_missing, keys, present};
use crate::write::{Verb, Write};
use crate::{Entity, EntityError, Error, Keys, Property, RetryPolicy, TableClient, json, limits};

/// How often a row is read and written before somebody else's writes are given way to for good.
const UPDATE_ATTEMPT_COUNT_MAX: u32 = 64;
/// The wait after the first conflict. Each further one is twice as long, and half of each is drawn at random.
const CONFLICT_DELAY_FIRST: Duration = Duration::from_millis(4);
const CONFLICT_DELAY_MAX: Duration = Duration::from_millis(250);

/// A row as it was read, for the write that follows.
struct Before<E> {
    entity: E,
    etag: String,
    others: Others,
}

/// The properties of a row that the struct does not know. They are written back as they were.
#[derive(Default)]
struct Others {
    properties: Vec<Property<'static>>,
    /// The properties of the row that were sealed, and must be again: of these and of those that the struct knows.
    sealed: Vec<String>,
}

impl TableClient {
    /// Changes a row: reads it, calls `change`, and replaces it if it is still the one that was read. If another
    /// client wrote it meanwhile, all of this happens again with the new row, up to 64 times; so `change` may be
    /// called several times, each time with a fresh entity.
    ///
    /// Properties of the row that the struct does not know are kept; a field that became `None` is removed. The keys
    /// must stay as they are. Returns the entity as it was written, with its new ETag and Timestamp if it keeps them.
    /// A row that does not exist is an error ([`Error::is_not_found`]).
    ///
    /// The change is never stored twice. If an answer was lost, and the row cannot tell whether the change is in it, the
    /// error says so ([`Error::is_outcome_unknown`]), whatever its status.
    ///
    /// ```no_run
    /// use lazulite_client::{Entity, Error, TableClient};
    ///
    /// #[derive(Entity)]
    /// struct Counter {
    ///     #[entity(partition_key)]
    ///     page: String,
    ///     #[entity(row_key)]
    ///     day: String,
    ///     views: i64,
    /// }
    ///
    /// async fn count(counters: &TableClient) -> Result<i64, Error> {
    ///     let counter = counters.update("home", "2024-05-17", |counter: &mut Counter| counter.views += 1).await?;
    ///     Ok(counter.views)
    /// }
    /// ```
    pub async fn update<E: Entity>(
        &self,
        partition_key: &str,
        row_key: &str,
        mut change: impl FnMut(&mut E),
    ) -> Result<E, Error> {
        let updated = self
            .update_if(partition_key, row_key, |entity| {
                change(entity);
                true
            })
            .await?;
        updated.ok_or_else(|| Error::Refused("an update without a condition declined".to_owned()))
    }

    /// The same, but `change` may decline by returning `false`: then nothing is written, and this returns `None`.
    pub async fn update_if<E: Entity>(
        &self,
        partition_key: &str,
        row_key: &str,
        mut change: impl FnMut(&mut E) -> bool,
    ) -> Result<Option<E>, Error> {
        let keys = keys(partition_key, row_key)?;
        let mut attempt = 1;
        loop {
            let body = self.fetch_fresh(&keys, &mut Budget::new()).await?;
            let Before { mut entity, etag, others } = self.read_before::<E>(&body).await?;
            if !change(&mut entity) {
                return Ok(None);
            }
            match self.write_back(&keys, &mut entity, Some(&etag), &others).await {
                Ok(()) => return Ok(Some(entity)),
                // After a lost answer this may be the work of this very call: once more would be twice.
                Err(error) if error.is_outcome_unknown() => return Err(error),
                Err(error) if error.is_precondition_failed() && attempt < UPDATE_ATTEMPT_COUNT_MAX => {}
                Err(error) => return Err(error),
            }
            self.give_way(attempt).await;
            attempt += 1;
        }
    }

    /// Like [`TableClient::update`], but a row that does not exist is made by `make`, changed, and inserted.
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, TableClient};
    /// # async fn f(counters: &TableClient) -> Result<(), Error> {
    /// let first = || DynamicEntity::new("home", "2024-05-17");
    /// counters.update_or_insert("home", "2024-05-17", first, |counter| { /* count */ }).await?;
    /// # Ok(()) }
    /// ```
    pub async fn update_or_insert<E: Entity>(
        &self,
        partition_key: &str,
        row_key: &str,
        mut make: impl FnMut() -> E,
        mut change: impl FnMut(&mut E),
    ) -> Result<E, Error> {
        let keys = keys(partition_key, row_key)?;
        let mut attempt = 1;
        loop {
            let (mut entity, etag, others) = match present(self.fetch_fresh(&keys, &mut Budget::new()).await)?
            {
                Some(body) => {
                    let Before { entity, etag, others } = self.read_before::<E>(&body).await?;
                    (entity, Some(etag), others)
                }
                None => (make(), None, Others::default()),
            };
            change(&mut entity);
            match self.write_back(&keys, &mut entity, etag.as_deref(), &others).await {
                Ok(()) => return Ok(entity),
                Err(error) if error.is_outcome_unknown() => return Err(error),
                // Somebody wrote, inserted or deleted the row after it was read.
                Err(error) if is_raced(&error) && attempt < UPDATE_ATTEMPT_COUNT_MAX => {}
                Err(error) => return Err(error),
            }
            self.give_way(attempt).await;
            attempt += 1;
        }
    }

    async fn read_before<E: Entity>(&self, body: &[u8]) -> Result<Before<E>, Error> {
        let mut row = json::read_row(body)?;
        let etag = row.etag.as_ref().map(|etag| etag.to_string());
        let etag = etag.ok_or_else(|| EntityError {
            property: "odata.etag".into(),
            reason: "the row came without it, so it cannot be written back".into(),
        })?;
        // Opening a row opens all of it. All that was opened has to be sealed again.
        let sealed = self.inner.sealing.unseal(Marks::of::<E>(), &mut row, self.name()).await?;
        let stored = row.properties.clone();
        let entity = E::read(row)?;
        let is_other = |property: &Property<'_>| !entity.knows(&property.name);
        let properties = stored.into_iter().filter(is_other).map(own_property).collect();
        Ok(Before { entity, etag, others: Others { properties, sealed } })
    }

    /// Replaces the row under the condition that it has this ETag, or inserts it where there is none. The entity receives
    /// its new ETag and Timestamp; nothing else can fail once it is written.
    async fn write_back<E: Entity>(
        &self,
        keys: &Keys<'_>,
        entity: &mut E,
        etag: Option<&str>,
        others: &Others,
    ) -> Result<(), Error> {
        let now = entity.keys()?;
        if now != *keys {
            return Err(Error::Refused(format!(
                "an update of {} cannot change its keys to {}: insert the one and delete the other",
                limits::describe(keys),
                limits::describe(&now)
            )));
        }
        let mut body = Vec::new();
        let encrypted: Vec<&str> =
            E::ENCRYPTED.iter().copied().chain(others.sealed.iter().map(String::as_str)).collect();
        self.write_entity(&*entity, &encrypted, &others.properties, &mut body).await?;
        let verb = if etag.is_some() { Verb::Replace } else { Verb::Insert };
        let keys = keys.clone();
        let write = Write { verb, keys, if_match: etag, body: body.into(), returns_content: false };
        let written = self.write_once(&write).await?;
        entity.stamp(&written.etag, written.timestamp);
        Ok(())
    }

    /// Waits, so that clients that met at one row do not meet again.
    async fn give_way(&self, attempt: u32) {
        let policy = RetryPolicy {
            delay_first: CONFLICT_DELAY_FIRST,
            delay_max: CONFLICT_DELAY_MAX,
            ..RetryPolicy::default()
        };
        tokio::time::sleep(policy.delay(attempt, self.inner.pipeline.environment().random())).await;
    }
}

fn is_raced(error: &Error) -> bool {
    error.is_precondition_failed() || error.is_conflict() || is_row_missing(error)
}
