//! An entity as a client gave it, and as whoever answers with it sees it.

use std::borrow::Cow;

use super::{RawValue, Value};
use crate::common::DateTime;

/// One custom property.
#[derive(Clone, PartialEq, Debug)]
pub struct Property<'a> {
    pub name: Cow<'a, str>,
    pub value: Value<'a>,
}

/// A payload, read but not yet judged: limits are checked by the rules that need them.
/// Null properties are left out, and so is the client's idea of a Timestamp.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Entity<'a> {
    pub partition_key: Option<Cow<'a, str>>,
    pub row_key: Option<Cow<'a, str>>,
    pub properties: Vec<Property<'a>>,
}

/// A stored entity: keys, Timestamp, and properties in stored order, wherever they lie.
pub trait EntitySource {
    fn partition_key(&self) -> &str;
    fn row_key(&self) -> &str;
    fn timestamp(&self) -> DateTime;
    fn property(&self, name: &str) -> Option<Value<'_>>;
    /// Names and values as they lie there: the names are UTF-8 like the texts among the values.
    fn for_each_raw(&self, visit: impl FnMut(&[u8], RawValue<'_>));

    /// The same, checked.
    fn for_each_property(&self, mut visit: impl FnMut(&str, &Value<'_>)) {
        self.for_each_raw(|name, value| {
            if let (Ok(name), Some(value)) = (std::str::from_utf8(name), value.checked()) {
                visit(name, &value);
            }
        });
    }
}
