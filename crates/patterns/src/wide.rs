//! Wide entities: more than 252 properties, over several rows of a partition.
//!
//! Promises: one transaction writes all rows, and a reader gets the properties of one write or of another, never of both.
//! Leaves to others: entities that need more than 100 rows or 4 MiB, which no transaction takes.

use lazulite_client::{Entity, Error, IfMatch, Keys, Property, TableClient, Value};

use crate::keys;
use crate::large::is_race;
use crate::raw::{RawEntity, missing, rows_between};

/// The service allows 252 properties in a row. Two of them are the pattern's own.
pub const ROW_PROPERTY_COUNT_MAX: usize = 250;
/// A row has at most 1 MiB. This leaves room for keys and the pattern's own properties.
const ROW_BYTES_MAX: usize = 1024 * 1024 - 8 * 1024;
/// As many as a transaction has operations.
pub const ROW_COUNT_MAX: usize = 100;
/// How often a reader or writer starts again because another writer was faster.
const ATTEMPT_COUNT_MAX: u32 = 16;

const WIDE: &str = "wide";
const NUMBER_WIDTH: usize = 3;
const VERSION: &str = "WideVersion";
const ROWS: &str = "WideRows";

/// A table of entities with any number of properties.
#[derive(Clone)]
pub struct WideRows {
    table: TableClient,
}

impl WideRows {
    /// The rows are stored in this table.
    pub fn new(table: TableClient) -> WideRows {
        WideRows { table }
    }

    /// Stores an entity in place of what was there: one read, then one transaction.
    pub async fn write<E: Entity + Sync>(&self, entity: &E) -> Result<(), Error> {
        let keys = entity.keys()?;
        let rows = split(entity, &keys, &crate::random_name()?)?;
        let (first, others) = rows.split_first().expect("an entity has at least one row");
        for _ in 0..ATTEMPT_COUNT_MAX {
            let old = self.table.try_get::<RawEntity>(&keys.partition_key, &first.keys.row_key).await?;
            let mut transaction = self.table.transaction(keys.partition_key.as_ref());
            // Every writer changes the first row under its ETag, so whoever succeeds knows which other rows there are.
            match &old {
                Some(old) => transaction.replace(first, IfMatch::ETag(old.read_etag()?))?,
                None => transaction.insert(first)?,
            };
            for row in others {
                transaction.upsert_replace(row)?;
            }
            for number in rows.len()..old.as_ref().map_or(Ok(0), row_count)? {
                transaction.delete(&part_key(&keys.row_key, number), IfMatch::Any)?;
            }
            match transaction.send().await {
                Ok(_) => return Ok(()),
                Err(error) if is_race(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!("{:?} was changed {ATTEMPT_COUNT_MAX} times by others", keys.row_key)))
    }

    /// Reads an entity; `None` when there is none. One query, unless the answer needs several pages.
    pub async fn read<E: Entity>(&self, partition_key: &str, row_key: &str) -> Result<Option<E>, Error> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let rows = rows_between(&self.table, partition_key, &keys::part_range([row_key, WIDE])).await?;
            let Some(first) = rows.first() else { return Ok(None) };
            let version = first.text(VERSION).ok_or_else(|| Error::Entity(missing(VERSION)))?;
            // Two pages are two moments, and a write may have come between them.
            if row_count(first)? != rows.len() || rows.iter().any(|row| row.text(VERSION) != Some(version)) {
                continue;
            }
            let mut whole = RawEntity::new(partition_key, row_key);
            whole.etag = first.etag.clone();
            let is_own = |property: &Property<'_>| property.name == VERSION || property.name == ROWS;
            whole.properties = rows
                .into_iter()
                .flat_map(|row| row.properties)
                .filter(|property| !is_own(property))
                .collect();
            return Ok(Some(whole.into_entity()?));
        }
        Err(Error::Refused(format!("{row_key:?} was changed {ATTEMPT_COUNT_MAX} times while it was read")))
    }

    /// Deletes an entity. Returns whether it was there.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool, Error> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let first_key = part_key(row_key, 0);
            let Some(first) = self.table.try_get::<RawEntity>(partition_key, &first_key).await? else {
                return Ok(false);
            };
            let mut transaction = self.table.transaction(partition_key);
            transaction.delete(&first_key, IfMatch::ETag(first.read_etag()?))?;
            for number in 1..row_count(&first)? {
                transaction.delete(&part_key(row_key, number), IfMatch::Any)?;
            }
            match transaction.send().await {
                Ok(_) => return Ok(true),
                Err(error) if is_race(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(format!(
            "{row_key:?} was changed {ATTEMPT_COUNT_MAX} times before it was deleted"
        )))
    }
}

/// How many rows an entity has, by its first row.
fn row_count(first: &RawEntity) -> Result<usize, Error> {
    let count = first.number(ROWS).and_then(|count| usize::try_from(count).ok());
    count.filter(|count| (1..=ROW_COUNT_MAX).contains(count)).ok_or_else(|| Error::Entity(missing(ROWS)))
}

fn part_key(row_key: &str, number: usize) -> String {
    keys::compose([row_key, WIDE, &format!("{number:0NUMBER_WIDTH$}")])
}

/// The rows of an entity: as many properties in each as fit.
fn split<E: Entity>(entity: &E, keys: &Keys<'_>, version: &str) -> Result<Vec<RawEntity>, Error> {
    let mut properties = Vec::new();
    entity.write(&mut properties)?;
    let row = |number: usize| {
        let row = RawEntity::new(keys.partition_key.as_ref(), part_key(&keys.row_key, number));
        row.with(VERSION, Value::String(version.to_owned().into()))
    };
    let mut rows = vec![row(0)];
    let (mut count, mut bytes) = (0, 0);
    for Property { name, value } in properties {
        let size = stored_bytes(&name, &value);
        if count == ROW_PROPERTY_COUNT_MAX || bytes + size > ROW_BYTES_MAX {
            rows.push(row(rows.len()));
            (count, bytes) = (0, 0);
        }
        (count, bytes) = (count + 1, bytes + size);
        let last = rows.last_mut().expect("there is a row from the start");
        last.properties.push(Property { name: name.into_owned().into(), value: value.into_owned() });
    }
    if rows.len() > ROW_COUNT_MAX {
        return Err(Error::Refused(format!("the entity needs more than {ROW_COUNT_MAX} rows")));
    }
    let count = Value::Int64(i64::try_from(rows.len()).unwrap_or(i64::MAX));
    rows[0].properties.push(Property { name: ROWS.into(), value: count });
    Ok(rows)
}

/// What a property adds to the size of a row: 8 bytes, its name and its value, with two bytes for each UTF-16 unit.
fn stored_bytes(name: &str, value: &Value<'_>) -> usize {
    let text = |text: &str| 2 * text.encode_utf16().count();
    8 + text(name)
        + match value {
            Value::String(value) => 4 + text(value),
            Value::Binary(bytes) => 4 + bytes.len(),
            _ => 16,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_as_many_properties_as_fit() {
        let mut wide = RawEntity::new("p", "r");
        for n in 0..501 {
            wide = wide.with(format!("P{n:03}"), Value::Int32(n));
        }
        let rows = split(&wide, &wide.keys, "v").unwrap();
        let counts: Vec<usize> = rows.iter().map(|row| row.properties.len()).collect();
        assert_eq!(counts, [252, 251, 2]);
        assert_eq!(row_count(&rows[0]).unwrap(), 3);
        assert_eq!(rows[2].keys.row_key, "r!wide!002");
    }

    #[test]
    fn a_row_stays_below_its_size() {
        let mut heavy = RawEntity::new("p", "r");
        for n in 0..40 {
            heavy = heavy.with(format!("P{n:03}"), Value::Binary(vec![0; 64 * 1024].into()));
        }
        let rows = split(&heavy, &heavy.keys, "v").unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.properties.len() <= 17));
    }
}
