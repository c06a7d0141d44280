//! An entity as it is stored, for pieces that move or copy entities of any struct.
//!
//! The copy of an entity stands under other keys, so it keeps the keys of its primary in two properties.

use std::borrow::Cow;
use std::ops::Range;

use lazulite_client::{
    DateTime, DynamicEntity, Entity, EntityError, Error, Filter, Keys, Property, Row, TableClient, Value,
};

/// The PartitionKey of the entity that a copy was made of.
pub(crate) const PRIMARY_PARTITION_KEY: &str = "PrimaryPartitionKey";
/// Its RowKey.
pub(crate) const PRIMARY_ROW_KEY: &str = "PrimaryRowKey";

/// An entity with all its properties.
#[derive(Clone, PartialEq, Debug)]
pub struct RawEntity {
    /// Where it is stored.
    pub keys: Keys<'static>,
    /// The ETag that it was read with.
    pub etag: Option<String>,
    /// When the service last wrote it.
    pub timestamp: Option<DateTime>,
    /// All properties except keys and Timestamp.
    pub properties: Vec<Property<'static>>,
}

impl RawEntity {
    /// An entity without properties.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> RawEntity {
        let (partition_key, row_key) = (Cow::Owned(partition_key.into()), Cow::Owned(row_key.into()));
        RawEntity {
            keys: Keys { partition_key, row_key },
            etag: None,
            timestamp: None,
            properties: Vec::new(),
        }
    }

    /// With one more property.
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: Value<'static>) -> RawEntity {
        self.properties.push(Property { name: name.into(), value });
        self
    }

    /// The properties of an entity, under other keys.
    pub(crate) fn copy_of<E: Entity>(
        entity: &E,
        partition_key: &str,
        row_key: &str,
    ) -> Result<RawEntity, EntityError> {
        let primary = entity.keys()?;
        let mut written = Vec::new();
        entity.write(&mut written)?;
        let mut copy = RawEntity::new(partition_key, row_key);
        copy.properties = written.into_iter().map(owned).collect();
        let own = [(PRIMARY_PARTITION_KEY, primary.partition_key), (PRIMARY_ROW_KEY, primary.row_key)];
        for (name, key) in own {
            copy = copy.with(name, Value::String(Cow::Owned(key.into_owned())));
        }
        Ok(copy)
    }

    /// The entity that this is a copy of, as far as the copy goes. Its ETag is that of the copy.
    pub(crate) fn into_primary<E: Entity>(mut self) -> Result<E, EntityError> {
        let [partition_key, row_key] = [PRIMARY_PARTITION_KEY, PRIMARY_ROW_KEY]
            .map(|name| self.take_text(name).ok_or_else(|| missing(name)));
        self.keys = Keys { partition_key: Cow::Owned(partition_key?), row_key: Cow::Owned(row_key?) };
        self.into_entity()
    }

    /// Reads it as a struct.
    pub fn into_entity<E: Entity>(self) -> Result<E, EntityError> {
        E::read(Row {
            partition_key: self.keys.partition_key,
            row_key: self.keys.row_key,
            timestamp: self.timestamp,
            etag: self.etag.map(Cow::Owned),
            properties: self.properties,
        })
    }

    /// Whether this is a copy of the entity with these keys.
    pub(crate) fn is_copy_of(&self, keys: &Keys<'_>) -> bool {
        self.text(PRIMARY_PARTITION_KEY) == Some(&keys.partition_key)
            && self.text(PRIMARY_ROW_KEY) == Some(&keys.row_key)
    }

    /// A property's value.
    pub fn value(&self, name: &str) -> Option<&Value<'static>> {
        self.properties.iter().find(|property| property.name == name).map(|property| &property.value)
    }

    /// A property that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A property that is an Int64.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::Int64(number) => Some(*number),
            _ => None,
        }
    }

    fn take_text(&mut self, name: &str) -> Option<String> {
        let place = self.properties.iter().position(|property| property.name == name)?;
        match self.properties.remove(place).value {
            Value::String(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// The ETag for a conditional write of what was read.
    pub(crate) fn read_etag(&self) -> Result<&str, Error> {
        self.etag
            .as_deref()
            .ok_or_else(|| Error::Unreadable("the service sent an entity without an ETag".to_owned()))
    }
}

impl Entity for RawEntity {
    const COLUMNS: Option<&'static [&'static str]> = None;

    fn keys(&self) -> Result<Keys<'_>, EntityError> {
        let Keys { partition_key, row_key } = &self.keys;
        Ok(Keys { partition_key: Cow::Borrowed(partition_key), row_key: Cow::Borrowed(row_key) })
    }

    fn write<'a>(&'a self, out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
        out.extend(self.properties.iter().map(|property| Property {
            name: Cow::Borrowed(&property.name),
            value: borrowed(&property.value),
        }));
        Ok(())
    }

    fn read(row: Row<'_>) -> Result<RawEntity, EntityError> {
        let keys = Keys {
            partition_key: Cow::Owned(row.partition_key.into_owned()),
            row_key: Cow::Owned(row.row_key.into_owned()),
        };
        let properties = row.properties.into_iter().map(owned).collect();
        Ok(RawEntity { keys, etag: row.etag.map(Cow::into_owned), timestamp: row.timestamp, properties })
    }

    fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }
}

/// All rows of a partition in a range of RowKeys, the end excluded.
pub(crate) async fn rows_between(
    table: &TableClient,
    partition_key: &str,
    range: &Range<String>,
) -> Result<Vec<RawEntity>, Error> {
    table.query::<RawEntity>().filter(row_range(partition_key, range)).all().await
}

/// The filter for [`rows_between`].
pub(crate) fn row_range(partition_key: &str, range: &Range<String>) -> Filter<RawEntity> {
    let rows = DynamicEntity::row_key().between(range.start.as_str(), range.end.as_str());
    (DynamicEntity::partition_key().eq(partition_key) & rows).cast()
}

pub(crate) fn missing(property: &'static str) -> EntityError {
    EntityError { property: Cow::Borrowed(property), reason: Cow::Borrowed("is missing or of another type") }
}

fn owned(property: Property<'_>) -> Property<'static> {
    Property { name: Cow::Owned(property.name.into_owned()), value: property.value.into_owned() }
}

fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(Cow::Borrowed(text)),
        Value::Binary(bytes) => Value::Binary(Cow::Borrowed(bytes)),
        other => other.clone(),
    }
}
