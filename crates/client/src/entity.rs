//! What an entity is to this client: keys, properties, and a row of an answer that it is read from.
//!
//! `#[derive(Entity)]` implements [`Entity`] for a struct. Everything that sends or reads entities goes through it, so
//! a table client knows no particular struct.

use std::borrow::Cow;

use crate::{DateTime, EntityError, Property, Value};

/// PartitionKey and RowKey.
///
/// ```
/// use lazulite_client::Keys;
///
/// let keys = Keys::new("Sales", "0042");
/// assert_eq!(keys.partition_key, "Sales");
/// assert_eq!(keys, ("Sales", "0042").into());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Keys<'a> {
    /// The partition that the entity is in.
    pub partition_key: Cow<'a, str>,
    /// The entity's name in its partition.
    pub row_key: Cow<'a, str>,
}

impl<'a> Keys<'a> {
    /// Both keys.
    pub fn new(partition_key: impl Into<Cow<'a, str>>, row_key: impl Into<Cow<'a, str>>) -> Keys<'a> {
        Keys { partition_key: partition_key.into(), row_key: row_key.into() }
    }

    /// The same keys without a borrow.
    pub fn into_owned(self) -> Keys<'static> {
        Keys {
            partition_key: Cow::Owned(self.partition_key.into_owned()),
            row_key: Cow::Owned(self.row_key.into_owned()),
        }
    }
}

impl<'a, P: Into<Cow<'a, str>>, R: Into<Cow<'a, str>>> From<(P, R)> for Keys<'a> {
    fn from((partition_key, row_key): (P, R)) -> Keys<'a> {
        Keys::new(partition_key, row_key)
    }
}

/// A value that can be stored as an entity and read back.
///
/// Mostly implemented by [`#[derive(Entity)]`](derive@crate::Entity), for several kinds in one table by
/// [`#[derive(EntityKind)]`](derive@crate::EntityKind), and by [`DynamicEntity`](crate::DynamicEntity) for those
/// without a struct.
///
/// ```
/// use lazulite_client::{Entity, Keys};
///
/// #[derive(Entity)]
/// struct Employee {
///     #[entity(partition_key)]
///     department: String,
///     #[entity(row_key)]
///     id: String,
///     #[entity(rename = "Age")]
///     age: i32,
/// }
///
/// let ada = Employee { department: "Engineering".into(), id: "0001".into(), age: 36 };
/// assert_eq!(ada.keys(), Ok(Keys::new("Engineering", "0001")));
/// assert_eq!(Employee::COLUMNS, Some(&["PartitionKey", "RowKey", "Age"][..]));
/// ```
pub trait Entity: Sized + Send {
    /// The properties that a query must fetch for [`Entity::read`], keys included. `None` means all.
    const COLUMNS: Option<&'static [&'static str]>;
    /// The properties that are sealed before they leave the program, and opened after they were read.
    const ENCRYPTED: &'static [&'static str] = &[];

    /// The keys that the entity is stored under. An error if its fields make no key that could be read back.
    fn keys(&self) -> Result<Keys<'_>, EntityError>;

    /// Appends every property except keys, Timestamp and ETag. An absent one is left out.
    fn write<'a>(&'a self, out: &mut Vec<Property<'a>>) -> Result<(), EntityError>;

    /// Reads the entity from a row of an answer.
    fn read(row: Row<'_>) -> Result<Self, EntityError>;

    /// The ETag that the entity was read with, if it keeps it.
    fn etag(&self) -> Option<&str> {
        None
    }

    /// Takes over what the service said of a write of this entity: its new ETag, and when it was written, if the service
    /// tells. An entity that keeps neither has nothing to do.
    fn stamp(&mut self, etag: &str, timestamp: Option<DateTime>) {
        let _ = (etag, timestamp);
    }

    /// Whether this very entity has a place for a property of this name. The kinds of an enum differ in that, and
    /// [`Entity::COLUMNS`] of the enum holds the properties of all of them.
    #[doc(hidden)]
    fn knows(&self, name: &str) -> bool {
        Self::COLUMNS.is_none_or(|columns| columns.contains(&name))
    }
}

/// An entity as the service sent it. Borrows from the answer's body.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row<'a> {
    /// Empty when the query did not select it.
    pub partition_key: Cow<'a, str>,
    /// Empty when the query did not select it.
    pub row_key: Cow<'a, str>,
    /// When the entity was last written, by the service's clock.
    pub timestamp: Option<DateTime>,
    /// Which version of the entity this is.
    pub etag: Option<Cow<'a, str>>,
    /// In the order of the answer.
    pub properties: Vec<Property<'a>>,
}

impl<'a> Row<'a> {
    /// Removes a property and returns its value. The others keep their order.
    pub fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let place = self.properties.iter().position(|property| property.name == name)?;
        Some(self.properties.remove(place).value)
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.properties.iter().find(|property| property.name == name).map(|property| &property.value)
    }
}
