//! The values of the Table service: property values, entities, table names, ETags, key order.

mod double;
mod entity;
mod etag;
mod names;
mod value;

pub use crate::common::guid::{Guid, GuidError};
pub use double::write_double;
pub use entity::{Entity, EntitySource, Property};
pub use etag::ETag;
pub use names::{TableName, TableNameError, check_property_name, find_forbidden_key_char};
pub use value::{EdmType, RawValue, Value};
