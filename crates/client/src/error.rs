//! Everything that can go wrong, in one type.

use std::borrow::Cow;

/// An entity that cannot be stored, or a row that is not such an entity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntityError {
    /// The property at fault; empty when it is the whole entity.
    pub property: Cow<'static, str>,
    pub reason: Cow<'static, str>,
}

/// Why an operation failed.
#[derive(Debug)]
pub enum Error {
    Entity(EntityError),
}
