//! What an entity is to this client: keys, properties, and a row of an answer that it is read from.
//!
//! `#[derive(Entity)]` implements [`Entity`] for a struct. Everything that sends or reads entities goes through it, so
//! a table client knows no particular struct.

use std::borrow::Cow;

use crate::{DateTime, EntityError, Property, Value};

/// PartitionKey and RowKey.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Keys<'a> {
    pub partition_key: Cow<'a, str>,
    pub row_key: Cow<'a, str>,
}

/// A value that can be stored as an entity and read back.
pub trait Entity: Sized + Send {
    /// The properties that a query must fetch for [`Entity::read`], keys included. `None` means all.
    const COLUMNS: Option<&'static [&'static str]>;
    /// The properties that are sealed before they leave the program; see `encryption`.
    const ENCRYPTED: &'static [&'static str] = &[];

    fn keys(&self) -> Result<Keys<'_>, EntityError>;

    /// Appends every property except keys, Timestamp and ETag. An absent one is left out.
    fn write<'a>(&'a self, out: &mut Vec<Property<'a>>) -> Result<(), EntityError>;

    fn read(row: Row<'_>) -> Result<Self, EntityError>;

    /// The ETag that the entity was read with, if it keeps it.
    fn etag(&self) -> Option<&str> {
        None
    }
}

/// An entity as the service sent it. Borrows from the answer's body.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row<'a> {
    /// Empty when the query did not select it.
    pub partition_key: Cow<'a, str>,
    /// Empty when the query did not select it.
    pub row_key: Cow<'a, str>,
    pub timestamp: Option<DateTime>,
    pub etag: Option<Cow<'a, str>>,
    /// In the order of the answer.
    pub properties: Vec<Property<'a>>,
}

impl<'a> Row<'a> {
    /// Removes a property and returns its value. Properties that are asked for in the order of the answer are found at
    /// once.
    pub fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let place = self.properties.iter().position(|property| property.name == name)?;
        Some(self.properties.remove(place).value)
    }
}
