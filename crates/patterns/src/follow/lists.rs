//! Index entities of another partition: for each name, the keys of the entities that have it, in any partition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lazulite_client::{Entity, Error, IfMatch, Keys, TableClient};

use super::Follows;
use crate::keys;
use crate::large::is_race;
use crate::name_list::{ATTEMPT_COUNT_MAX, read_list, write_list};
use crate::raw::RawEntity;

/// The RowKey of every list. Each name has a partition of its own, so that lists are spread.
const LIST_ROW: &str = "list";

/// Lists of entities by name, in a table of their own. A place is a name.
pub struct NameLists<E> {
    table: TableClient,
    name: Arc<dyn Fn(&E) -> String + Send + Sync>,
}

impl<E: Entity + Sync> NameLists<E> {
    /// `name` is what entities are listed by.
    pub fn new(table: TableClient, name: impl Fn(&E) -> String + Send + Sync + 'static) -> NameLists<E> {
        NameLists { table, name: Arc::new(name) }
    }

    /// The keys of the entities with this name. One point read.
    pub async fn members(&self, name: &str) -> Result<Vec<Keys<'static>>, Error> {
        let list = self.table.try_get::<RawEntity>(&keys::escape(name), LIST_ROW).await?;
        let members = list.as_ref().map(read_list).transpose()?.unwrap_or_default();
        members.iter().map(|member| read_member(member)).collect()
    }

    /// The lists of these entities, for a bulk load. They must be all entities of their table.
    pub fn lists_of(&self, entities: &[E]) -> Result<Vec<RawEntity>, Error> {
        let mut lists: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entity in entities {
            let Keys { partition_key, row_key } = entity.keys()?;
            let member = keys::compose([partition_key, row_key]);
            lists.entry(keys::escape(&(self.name)(entity)).into_owned()).or_default().insert(member);
        }
        lists
            .into_iter()
            .map(|(name, members)| write_list(RawEntity::new(name, LIST_ROW), &members))
            .collect()
    }
}

fn read_member(member: &str) -> Result<Keys<'static>, Error> {
    let unreadable = || Error::Unreadable(format!("{member:?} names no entity"));
    let parts: [String; 2] =
        keys::parts(member).map_err(|_| unreadable())?.try_into().map_err(|_| unreadable())?;
    let [partition_key, row_key] = parts.map(Into::into);
    Ok(Keys { partition_key, row_key })
}

impl<E: Entity + Sync> Follows<E> for NameLists<E> {
    fn places(&self, entity: &E) -> Result<Vec<String>, Error> {
        Ok(vec![(self.name)(entity)])
    }

    async fn settle(&self, place: &str, keys: &Keys<'_>, entity: Option<&E>) -> Result<(), Error> {
        let partition_key = keys::escape(place);
        let member = keys::compose([&keys.partition_key, &keys.row_key]);
        for _ in 0..ATTEMPT_COUNT_MAX {
            let list = self.table.try_get::<RawEntity>(&partition_key, LIST_ROW).await?;
            let mut members = list.as_ref().map(read_list).transpose()?.unwrap_or_default();
            let has_changed =
                if entity.is_some() { members.insert(member.clone()) } else { members.remove(&member) };
            if !has_changed {
                return Ok(());
            }
            let changed = write_list(RawEntity::new(partition_key.as_ref(), LIST_ROW), &members)?;
            let outcome = match &list {
                None => self.table.insert(&changed).await.map(|_| ()),
                Some(list) if members.is_empty() => {
                    self.table.delete(&partition_key, LIST_ROW, IfMatch::ETag(list.read_etag()?)).await
                }
                Some(list) => {
                    self.table.replace(&changed, IfMatch::ETag(list.read_etag()?)).await.map(|_| ())
                }
            };
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) if is_race(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!("the list of {place:?} changes all the time")))
    }
}
