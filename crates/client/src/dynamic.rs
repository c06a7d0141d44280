//! Entities without a struct.

use std::collections::BTreeMap;

use protocol::table::model::check_property_name;

use crate::field::{borrowed, refused};
use crate::filter::FilterError;
use crate::literal::{Fit, ToLiteral};
use crate::{Column, DateTime, Entity, EntityError, Field, Keys, Property, Row, Value};

/// An entity whose properties are known only when the program runs.
///
/// ```
/// use lazulite_client::DynamicEntity;
///
/// let mut ada = DynamicEntity::new("Engineering", "0001").with("Age", 36)?.with("Name", "Ada")?;
/// ada.set("Email", "ada@example.com")?;
/// assert_eq!(ada.get::<i32>("Age")?, 36);
/// assert_eq!(ada.get::<Option<String>>("Phone")?, None);
/// assert!(ada.get::<String>("Age").is_err());
/// let names: Vec<&str> = ada.iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["Age", "Email", "Name"]);
/// # Ok::<(), lazulite_client::EntityError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DynamicEntity {
    partition_key: String,
    row_key: String,
    timestamp: Option<DateTime>,
    etag: Option<String>,
    properties: BTreeMap<String, Value<'static>>,
}

impl DynamicEntity {
    /// An entity with these keys and no properties.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> DynamicEntity {
        DynamicEntity {
            partition_key: partition_key.into(),
            row_key: row_key.into(),
            ..DynamicEntity::default()
        }
    }

    /// PartitionKey and RowKey. [`DynamicEntity::partition_key`] and [`DynamicEntity::row_key`] are columns.
    pub fn place(&self) -> (&str, &str) {
        (&self.partition_key, &self.row_key)
    }

    /// When the entity was last written, by the service's clock; only of an entity that was read.
    pub fn last_written(&self) -> Option<DateTime> {
        self.timestamp
    }

    /// The column PartitionKey, for filters.
    pub fn partition_key() -> Column<DynamicEntity, String> {
        Column::named("PartitionKey")
    }

    /// The column RowKey, for filters.
    pub fn row_key() -> Column<DynamicEntity, String> {
        Column::named("RowKey")
    }

    /// The column Timestamp, for filters.
    pub fn timestamp() -> Column<DynamicEntity, DateTime> {
        Column::named("Timestamp")
    }

    /// Any other column, for filters. The type decides what it can be compared with; [`Value`] will take any.
    ///
    /// ```
    /// use lazulite_client::DynamicEntity;
    ///
    /// let filter = DynamicEntity::column::<i64>("Steps")?.gt(5_000);
    /// assert_eq!(filter.to_string(), "Steps gt 5000L");
    /// assert!(DynamicEntity::column::<i64>("1 eq 1 or Steps").is_err());
    /// # Ok::<(), lazulite_client::FilterError>(())
    /// ```
    pub fn column<T>(name: &str) -> Result<Column<DynamicEntity, T>, FilterError> {
        Column::checked(name)
    }

    /// The value of a property, as any type that can hold it. `Option<T>` is for one that may be absent.
    pub fn get<T: Field>(&self, name: &str) -> Result<T, EntityError> {
        T::from_value(name, self.value(name).map(borrowed))
    }

    /// The value of a property as it is stored.
    pub fn value(&self, name: &str) -> Option<&Value<'static>> {
        self.properties.get(name)
    }

    /// Sets a property to a value. An error if no property can have the name, or its type cannot hold the value.
    pub fn set(&mut self, name: &str, value: impl ToLiteral) -> Result<&mut DynamicEntity, EntityError> {
        if matches!(name, "PartitionKey" | "RowKey" | "Timestamp") || check_property_name(name).is_err() {
            return Err(refused(name, "a property cannot have this name"));
        }
        let literal = value.to_literal();
        if literal.fit != Fit::Exact {
            return Err(refused(
                name,
                format!("the value is out of the range of {}", literal.value.edm_type().name()),
            ));
        }
        self.properties.insert(name.to_owned(), literal.value.into_owned());
        Ok(self)
    }

    /// The same with a property more; [`DynamicEntity::set`] for a chain.
    pub fn with(mut self, name: &str, value: impl ToLiteral) -> Result<DynamicEntity, EntityError> {
        self.set(name, value)?;
        Ok(self)
    }

    /// Removes a property and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value<'static>> {
        self.properties.remove(name)
    }

    /// The properties, ordered by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'static>)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many properties there are, keys and Timestamp not counted.
    pub fn len(&self) -> usize {
        self.properties.len()
    }

    /// Whether there is no property.
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }
}

impl Entity for DynamicEntity {
    const COLUMNS: Option<&'static [&'static str]> = None;

    fn keys(&self) -> Result<Keys<'_>, EntityError> {
        Ok(Keys::new(&*self.partition_key, &*self.row_key))
    }

    fn write<'a>(&'a self, out: &mut Vec<Property<'a>>) -> Result<(), EntityError> {
        out.extend(
            self.properties
                .iter()
                .map(|(name, value)| Property { name: name.as_str().into(), value: borrowed(value) }),
        );
        Ok(())
    }

    fn read(row: Row<'_>) -> Result<Self, EntityError> {
        Ok(DynamicEntity {
            partition_key: row.partition_key.into_owned(),
            row_key: row.row_key.into_owned(),
            timestamp: row.timestamp,
            etag: row.etag.map(|etag| etag.into_owned()),
            properties: row
                .properties
                .into_iter()
                .map(|property| (property.name.into_owned(), property.value.into_owned()))
                .collect(),
        })
    }

    fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    fn stamp(&mut self, etag: &str, timestamp: Option<DateTime>) {
        self.etag = Some(etag.to_owned());
        self.timestamp = timestamp;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_property_can_have_are_refused() {
        let mut entity = DynamicEntity::new("p", "r");
        for name in ["", "RowKey", "Timestamp", "a b", "a@odata.type", "odata.x", "1a"] {
            assert!(entity.set(name, 1).is_err(), "{name}");
        }
        assert!(entity.set("Large", u64::MAX).is_err());
        assert!(entity.is_empty());
    }

    #[test]
    fn a_row_becomes_an_entity_and_properties_again() {
        let body = br#"{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r",
            "Timestamp":"2020-07-24T14:34:32Z","b":true,"a@odata.type":"Edm.Int64","a":"1"}"#;
        let entity = DynamicEntity::read(crate::json::read_row(body).unwrap()).unwrap();
        assert_eq!(entity.etag(), Some("W/\"1\""));
        assert_eq!(entity.last_written(), DateTime::parse("2020-07-24T14:34:32Z"));
        assert_eq!(entity.place(), ("p", "r"));
        let mut properties = Vec::new();
        entity.write(&mut properties).unwrap();
        let expected = [("a", Value::Int64(1)), ("b", Value::Boolean(true))]
            .map(|(name, value)| Property { name: name.into(), value });
        assert_eq!(properties, expected);
    }
}
