//! An entity as a client sent it ([`Entity`]), and a stored one as the code that writes an answer sees it
//! ([`EntitySource`]).

use std::borrow::Cow;

use super::{RawValue, Value};
use crate::common::DateTime;

/// One custom property.
#[derive(Clone, PartialEq, Debug)]
pub struct Property<'a> {
    /// Names are case-sensitive.
    pub name: Cow<'a, str>,
    /// A property without a value does not exist.
    pub value: Value<'a>,
}

/// A payload that was read but not yet checked: the rules check limits later. Null properties are left out, and so is
/// the client's Timestamp.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Entity<'a> {
    pub partition_key: Option<Cow<'a, str>>,
    pub row_key: Option<Cow<'a, str>>,
    pub properties: Vec<Property<'a>>,
}

/// A stored entity: keys, Timestamp, and properties in stored order. The implementation decides where they are kept.
pub trait EntitySource {
    fn partition_key(&self) -> &str;
    fn row_key(&self) -> &str;
    fn timestamp(&self) -> DateTime;
    fn property(&self, name: &str) -> Option<Value<'_>>;
    /// Names and values as stored. Names are UTF-8, like the string values.
    fn for_each_raw(&self, visit: impl FnMut(&[u8], RawValue<'_>));

    /// The same, with names and strings checked to be UTF-8.
    fn for_each_property(&self, mut visit: impl FnMut(&str, &Value<'_>)) {
        self.for_each_raw(|name, value| {
            if let (Ok(name), Some(value)) = (std::str::from_utf8(name), value.checked()) {
                visit(name, &value);
            }
        });
    }
}
