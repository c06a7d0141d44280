//! Index entities in the same partition: for each name a list of the RowKeys that have it.
//!
//! Promises: one transaction writes the entity and the lists that it is on, under the lists' ETags, so the lists are always
//! right. Writers of one list that meet repeat their transaction, a bounded number of times. Leaves to others: values that
//! so many entities share that their list does not fit; see [`LIST_LENGTH_MAX`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lazulite_client::{Entity, Error, IfMatch, TableClient, Value};

use crate::keys::{self, SEPARATOR};
use crate::partition_index::own_etag;
use crate::raw::RawEntity;

/// The property that holds a list: escaped keys with the separator between them.
pub(crate) const LIST: &str = "Members";
/// A property of type String has at most 32 Ki UTF-16 units.
pub const LIST_LENGTH_MAX: usize = 32 * 1024;
/// How often a transaction is repeated because another one changed its list.
pub const ATTEMPT_COUNT_MAX: u32 = 32;

/// A table whose entities are listed by name in index entities of their own partition.
pub struct NameList<E> {
    table: TableClient,
    /// Stands before the name in the RowKey of a list.
    prefix: &'static str,
    name: Arc<dyn Fn(&E) -> String + Send + Sync>,
}

impl<E: Entity + Sync> NameList<E> {
    /// `name` is what entities are listed by, such as the last name; `prefix` tells lists from entities.
    pub fn new(
        table: TableClient,
        prefix: &'static str,
        name: impl Fn(&E) -> String + Send + Sync + 'static,
    ) -> NameList<E> {
        NameList { table, prefix, name: Arc::new(name) }
    }

    /// The RowKey of a name's list.
    pub fn list_key(&self, name: &str) -> String {
        keys::compose([self.prefix, name])
    }

    /// The lists of these entities, for a bulk load. They must be all entities of their partitions.
    pub fn lists_of(&self, entities: &[E]) -> Result<Vec<RawEntity>, Error> {
        let mut lists: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for entity in entities {
            let keys = entity.keys()?;
            let place = (keys.partition_key.to_string(), self.list_key(&(self.name)(entity)));
            lists.entry(place).or_default().insert(keys.row_key.to_string());
        }
        lists
            .into_iter()
            .map(|((partition, row), members)| write_list(RawEntity::new(partition, row), &members))
            .collect()
    }

    /// Inserts an entity and puts it on its list.
    pub async fn insert(&self, entity: &E) -> Result<(), Error> {
        self.change(None, Some(entity)).await
    }

    /// Replaces an entity and moves it from list to list. `old` is the entity as it was read, with its ETag. Refused (412)
    /// if it changed meanwhile.
    pub async fn replace(&self, old: &E, new: &E) -> Result<(), Error> {
        self.change(Some(old), Some(new)).await
    }

    /// Deletes an entity and takes it from its list. `old` is the entity as it was read, with its ETag.
    pub async fn delete(&self, old: &E) -> Result<(), Error> {
        self.change(Some(old), None).await
    }

    /// The RowKeys of the entities with this name: one point read.
    pub async fn members(&self, partition_key: &str, name: &str) -> Result<Vec<String>, Error> {
        let list = self.table.try_get::<RawEntity>(partition_key, &self.list_key(name)).await?;
        Ok(list.as_ref().map(read_list).transpose()?.unwrap_or_default().into_iter().collect())
    }

    async fn change(&self, old: Option<&E>, new: Option<&E>) -> Result<(), Error> {
        let Some(either) = new.or(old) else { return Ok(()) };
        let keys = either.keys()?;
        let (before, after) = (old.map(|entity| (self.name)(entity)), new.map(|entity| (self.name)(entity)));
        let partition = keys.partition_key.as_ref();
        for _ in 0..ATTEMPT_COUNT_MAX {
            let mut transaction = self.table.transaction(partition);
            match (old, new) {
                (None, Some(new)) => transaction.insert(new)?,
                (Some(old), Some(new)) => transaction.replace(new, IfMatch::ETag(own_etag(old)?))?,
                (Some(old), None) => transaction.delete(&keys.row_key, IfMatch::ETag(own_etag(old)?))?,
                (None, None) => return Ok(()),
            };
            if before != after {
                let leaves = before.iter().map(|name| (name, false));
                for (name, joins) in leaves.chain(after.iter().map(|name| (name, true))) {
                    let list = self.table.try_get::<RawEntity>(partition, &self.list_key(name)).await?;
                    let mut members = list.as_ref().map(read_list).transpose()?.unwrap_or_default();
                    if joins {
                        members.insert(keys.row_key.to_string())
                    } else {
                        members.remove(&*keys.row_key)
                    };
                    let changed = write_list(RawEntity::new(partition, self.list_key(name)), &members)?;
                    match &list {
                        Some(list) if members.is_empty() => {
                            transaction.delete(&list.keys.row_key, IfMatch::ETag(list.read_etag()?))?
                        }
                        Some(list) => transaction.replace(&changed, IfMatch::ETag(list.read_etag()?))?,
                        None if members.is_empty() => &mut transaction,
                        None => transaction.insert(&changed)?,
                    };
                }
            }
            match transaction.send().await {
                Ok(_) => return Ok(()),
                // Operation 0 is the entity itself: its refusal is the caller's. The others are lists that changed.
                Err(error) if is_about_a_list(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!("the list changed {ATTEMPT_COUNT_MAX} times while it was to be written")))
    }
}

fn is_about_a_list(error: &Error) -> bool {
    let is_race = error.is_precondition_failed() || error.is_conflict() || error.is_not_found();
    matches!(error, Error::Service(failure) if is_race && failure.operation_index.is_some_and(|index| index > 0))
}

/// The members of a list.
pub(crate) fn read_list(list: &RawEntity) -> Result<BTreeSet<String>, Error> {
    let text = list.text(LIST).ok_or_else(|| Error::Entity(crate::raw::missing(LIST)))?;
    let unreadable = |_| Error::Unreadable(format!("{text:?} is not a list of keys"));
    // An empty list is never stored, so an empty text is one member: the empty RowKey.
    text.split(SEPARATOR)
        .map(|member| keys::unescape(member).map(|member| member.into_owned()).map_err(unreadable))
        .collect()
}

/// The index entity with these members.
pub(crate) fn write_list(list: RawEntity, members: &BTreeSet<String>) -> Result<RawEntity, Error> {
    let text = keys::compose(members);
    if text.len() > LIST_LENGTH_MAX {
        let count = members.len();
        return Err(Error::Refused(format!("a list of {count} members does not fit into one property")));
    }
    Ok(list.with(LIST, Value::String(text.into())))
}
