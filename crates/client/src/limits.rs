//! What the service refuses, checked before anything is sent.
//!
//! Owns: the limits on keys, on one entity and on a transaction, and the texts that say which one was broken.
//! Promises: what passes here is not refused by the service for its size, its number of properties or the characters of
//! its keys. Leaves to the service: everything that depends on what is stored.

use protocol::table::model::find_forbidden_key_char;

use crate::{Error, Keys, Property, Value};

/// The most operations of a transaction.
pub(crate) const TRANSACTION_OPERATION_COUNT_MAX: usize = protocol::table::BATCH_OPERATION_COUNT_MAX;
/// The largest body of a transaction, all headers of its parts included.
pub(crate) const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most properties of an entity, without its keys and its Timestamp.
const PROPERTY_COUNT_MAX: usize = 252;
/// The largest entity, as the service counts: see [`entity_size`].
const ENTITY_BYTES_MAX: usize = 1024 * 1024;
/// The longest PartitionKey or RowKey, in units of UTF-16: 1 KiB.
const KEY_UTF16_UNITS_MAX: usize = 512;
/// The longest string, in units of UTF-16: 64 KiB.
const STRING_UTF16_UNITS_MAX: usize = 32 * 1024;
const BINARY_BYTES_MAX: usize = 64 * 1024;

/// Refuses keys that the service cannot store. In a URL, some of them would even name something else.
pub(crate) fn check_keys(keys: &Keys<'_>) -> Result<(), Error> {
    check_key("PartitionKey", &keys.partition_key)?;
    check_key("RowKey", &keys.row_key)
}

pub(crate) fn check_key(name: &str, key: &str) -> Result<(), Error> {
    if let Some(character) = find_forbidden_key_char(key) {
        return Err(Error::Refused(format!(
            "the {name} {key:?} has the character {character:?}, which no key may have: \
             / \\ # ? and control characters are forbidden"
        )));
    }
    if utf16_units_exceed(key, KEY_UTF16_UNITS_MAX) {
        return Err(Error::Refused(format!(
            "the {name} has more than {KEY_UTF16_UNITS_MAX} characters: keys are limited to 1 KiB of UTF-16"
        )));
    }
    Ok(())
}

/// Refuses an entity of too many properties, or one that is too large, or that has a value that is. `json_bytes` is
/// its length as JSON, from which most entities are seen to be small enough without counting.
pub(crate) fn check_entity(
    keys: &Keys<'_>,
    properties: &[Property<'_>],
    json_bytes: usize,
) -> Result<(), Error> {
    if properties.len() > PROPERTY_COUNT_MAX {
        return Err(Error::Refused(format!(
            "the entity {} has {} properties, and the service stores at most {PROPERTY_COUNT_MAX}",
            describe(keys),
            properties.len()
        )));
    }
    // Every character is at least one byte of JSON and counts for two, and so do the names; a property counts for no
    // more than 24 bytes beside its text.
    const BYTES_PER_PROPERTY_MAX: usize = 24;
    const SMALL_VALUE_BYTES: usize = STRING_UTF16_UNITS_MAX;
    if json_bytes <= SMALL_VALUE_BYTES
        && 2 * json_bytes + (properties.len() + 3) * BYTES_PER_PROPERTY_MAX <= ENTITY_BYTES_MAX
    {
        return Ok(());
    }
    let size = entity_size(keys, properties);
    if size > ENTITY_BYTES_MAX {
        return Err(Error::Refused(format!(
            "the entity {} has {size} bytes as the service counts, and it stores at most {ENTITY_BYTES_MAX}",
            describe(keys)
        )));
    }
    for property in properties {
        let is_too_large = match &property.value {
            Value::String(text) => utf16_units_exceed(text, STRING_UTF16_UNITS_MAX),
            Value::Binary(bytes) => bytes.len() > BINARY_BYTES_MAX,
            _ => false,
        };
        if is_too_large {
            return Err(Error::Refused(format!(
                "the property {:?} of the entity {} is larger than 64 KiB",
                property.name,
                describe(keys)
            )));
        }
    }
    Ok(())
}

/// How a refusal names an entity.
pub(crate) fn describe(keys: &Keys<'_>) -> String {
    format!("({:?}, {:?})", keys.partition_key, keys.row_key)
}

/// The published formula of the service: texts count as UTF-16, and the Timestamp counts as a property.
fn entity_size(keys: &Keys<'_>, properties: &[Property<'_>]) -> usize {
    let base = 4 + 2 * (utf16_units(&keys.partition_key) + utf16_units(&keys.row_key));
    let timestamp = 8 + 2 * "Timestamp".len() + 8;
    base + timestamp + properties.iter().map(property_size).sum::<usize>()
}

fn property_size(property: &Property<'_>) -> usize {
    let value_size = match &property.value {
        Value::String(text) => 2 * utf16_units(text) + 4,
        Value::Binary(bytes) => bytes.len() + 4,
        Value::Boolean(_) => 1,
        Value::Int32(_) => 4,
        Value::Int64(_) | Value::Double(_) | Value::DateTime(_) => 8,
        Value::Guid(_) => 16,
    };
    8 + 2 * utf16_units(&property.name) + value_size
}

fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// A text never has more units of UTF-16 than bytes of UTF-8, so for most the byte length is enough.
fn utf16_units_exceed(text: &str, units_max: usize) -> bool {
    text.len() > units_max && utf16_units(text) > units_max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(partition_key: &'static str, row_key: &'static str) -> Keys<'static> {
        Keys { partition_key: partition_key.into(), row_key: row_key.into() }
    }

    fn properties(count: usize, text: &str) -> Vec<Property<'static>> {
        let name = |number: usize| format!("p{number}").into();
        let value = || Value::String(text.to_owned().into());
        (0..count).map(|number| Property { name: name(number), value: value() }).collect()
    }

    #[track_caller]
    fn check(count: usize, text: &str, expected: Option<&str>) {
        let properties = properties(count, text);
        let json_bytes = properties.iter().map(|property| property.name.len() + text.len() + 6).sum();
        let outcome = check_entity(&keys("p", "r"), &properties, json_bytes);
        match (outcome, expected) {
            (Ok(()), None) => {}
            (Err(Error::Refused(text)), Some(part)) => assert!(text.contains(part), "{text}"),
            other => panic!("{count} of {} bytes: {other:?}", text.len()),
        }
    }

    #[test]
    fn an_entity_is_judged_by_its_properties_its_size_and_its_values() {
        check(0, "", None);
        check(252, "x", None);
        check(253, "x", Some("253 properties"));
        check(1, &"x".repeat(32 * 1024), None);
        check(1, &"ü".repeat(32 * 1024), None);
        check(1, &"x".repeat(32 * 1024 + 1), Some("larger than 64 KiB"));
        check(15, &"x".repeat(32 * 1024), None);
        check(16, &"x".repeat(32 * 1024), Some("bytes as the service counts"));
    }

    #[test]
    fn keys_are_judged_by_characters_and_length() {
        for key in ["", "O'Brien", "a b", "ü", "100%", "a+b", "..", "a%2Fb", "日本\u{1F600}"] {
            assert!(check_key("RowKey", key).is_ok(), "{key}");
        }
        for key in ["a/b", "a\\b", "#", "?", "\n", "\u{85}"] {
            assert!(check_key("RowKey", key).is_err(), "{key}");
        }
        assert!(check_key("RowKey", &"ü".repeat(512)).is_ok());
        assert!(check_key("RowKey", &"ü".repeat(513)).is_err());
    }
}
