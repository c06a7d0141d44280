//! The published limits on keys, values and entities, and the size of an entity as the service counts it.
//!
//! Both sides of the wire use them: the server refuses what breaks them, and a client refuses it before sending.

use super::model::Value;

/// The most operations that an entity group transaction may hold.
pub const BATCH_OPERATION_COUNT_MAX: usize = 100;
/// The largest entity, as [`entity_base_size`] and [`property_size`] count.
pub const ENTITY_SIZE_BYTES_MAX: usize = 1024 * 1024;
/// The most properties of an entity, without its keys and its Timestamp.
pub const PROPERTY_COUNT_MAX: usize = 252;
/// The longest string: 64 KiB of UTF-16.
pub const STRING_UTF16_UNITS_MAX: usize = 32 * 1024;
pub const BINARY_BYTES_MAX: usize = 64 * 1024;
/// The longest PartitionKey or RowKey: 1 KiB of UTF-16.
pub const KEY_UTF16_UNITS_MAX: usize = 512;

/// The size of an entity without properties: 4 bytes, the keys, and the Timestamp.
pub fn entity_base_size(partition_key: &str, row_key: &str) -> usize {
    4 + 2 * (utf16_units(partition_key) + utf16_units(row_key)) + 8 + 2 * "Timestamp".len() + 8
}

/// What a property adds to it.
pub fn property_size(name: &str, value: &Value<'_>) -> usize {
    let value_size = match value {
        Value::String(text) => 2 * utf16_units(text) + 4,
        Value::Binary(bytes) => bytes.len() + 4,
        Value::Boolean(_) => 1,
        Value::Int32(_) => 4,
        Value::Int64(_) | Value::Double(_) | Value::DateTime(_) => 8,
        Value::Guid(_) => 16,
    };
    8 + 2 * utf16_units(name) + value_size
}

/// Whether a value is larger than any property may be.
pub fn is_value_too_large(value: &Value<'_>) -> bool {
    match value {
        Value::String(text) => utf16_units_exceed(text, STRING_UTF16_UNITS_MAX),
        Value::Binary(bytes) => bytes.len() > BINARY_BYTES_MAX,
        _ => false,
    }
}

pub fn is_key_too_long(key: &str) -> bool {
    utf16_units_exceed(key, KEY_UTF16_UNITS_MAX)
}

fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// A text never has more UTF-16 units than UTF-8 bytes, so for most the byte length is enough.
fn utf16_units_exceed(text: &str, units_max: usize) -> bool {
    text.len() > units_max && utf16_units(text) > units_max
}
