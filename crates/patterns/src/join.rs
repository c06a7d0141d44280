//! Joins in the client: many entities by their keys, in few requests.
//!
//! Lazulite answers several keys joined by `or` as a *point* plan: it reads exactly those entities. Azure scans for such a
//! filter, so there [`fetch_each`] is the better way.

use std::collections::BTreeMap;

use lazulite_client::{DynamicEntity, Entity, Error, Filter, Keys, TableClient};

/// A filter has at most 15 comparisons on Azure; each key takes two.
pub const KEYS_PER_REQUEST_MAX: usize = 7;

/// The entities with these keys, those that exist. Each request asks for seven.
pub async fn fetch<E: Entity>(
    table: &TableClient,
    keys: impl IntoIterator<Item = Keys<'static>>,
) -> Result<BTreeMap<Keys<'static>, E>, Error> {
    let wanted = distinct(keys);
    let mut found = BTreeMap::new();
    for some in wanted.chunks(KEYS_PER_REQUEST_MAX) {
        let mut points = Filter::none();
        for Keys { partition_key, row_key } in some {
            points = points
                | (DynamicEntity::partition_key().eq(partition_key.as_ref())
                    & DynamicEntity::row_key().eq(row_key.as_ref()));
        }
        for entity in table.query::<E>().filter(points.cast()).all().await? {
            let keys = crate::owned_keys(&entity)?;
            found.insert(keys, entity);
        }
    }
    Ok(found)
}

/// The same with one point read for each key, one after another.
pub async fn fetch_each<E: Entity>(
    table: &TableClient,
    keys: impl IntoIterator<Item = Keys<'static>>,
) -> Result<BTreeMap<Keys<'static>, E>, Error> {
    let mut found = BTreeMap::new();
    for keys in distinct(keys) {
        if let Some(entity) = table.try_get::<E>(&keys.partition_key, &keys.row_key).await? {
            found.insert(keys, entity);
        }
    }
    Ok(found)
}

fn distinct(keys: impl IntoIterator<Item = Keys<'static>>) -> Vec<Keys<'static>> {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort();
    keys.dedup();
    keys
}
