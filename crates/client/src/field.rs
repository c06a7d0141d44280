//! Types that a property can have in a program.

use crate::{EntityError, Value};

/// A type of a struct's field that is stored as a property. `None` stands for a property that is absent.
pub trait Field: Sized {
    fn to_value(&self) -> Option<Value<'_>>;

    /// `name` is for the error.
    fn from_value(name: &'static str, value: Option<Value<'_>>) -> Result<Self, EntityError>;
}
