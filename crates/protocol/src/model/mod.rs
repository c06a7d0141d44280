//! The values everybody speaks: property values, entities, names, dates, ETags.

mod datetime;
mod decimal;
mod double;
mod entity;
mod etag;
mod guid;
mod names;
mod ordinal;
mod policy;
mod value;

pub use datetime::DateTime;
pub use decimal::write_integer;
pub use double::write_double;
pub use entity::{Entity, EntitySource, Property};
pub use etag::ETag;
pub use guid::Guid;
pub(crate) use guid::hex_digit;
pub use names::{AccountName, TableName, TableNameError, check_property_name, find_forbidden_key_char};
pub use ordinal::compare_ordinal;
pub use policy::{StoredPolicy, parse_policy_time};
pub use value::{EdmType, RawValue, Value};
