//! What the service refuses, checked before anything is sent.
//!
//! Owns: the limits on keys, on one entity and on a transaction, and the texts that say which one was broken.
//! Promises: what passes here is not refused by the service for its size, its number of properties or the characters of
//! its keys. Leaves to the service: everything that depends on what is stored.

use protocol::table::limits::{
    BATCH_OPERATION_COUNT_MAX, ENTITY_SIZE_BYTES_MAX, KEY_UTF16_UNITS_MAX, PROPERTY_COUNT_MAX,
    STRING_UTF16_UNITS_MAX, entity_base_size, is_key_too_long, is_value_too_large, property_size,
};
use protocol::table::model::find_forbidden_key_char;

use crate::{Error, Keys, Property};

/// The most operations of a transaction.
pub(crate) const TRANSACTION_OPERATION_COUNT_MAX: usize = BATCH_OPERATION_COUNT_MAX;
/// The largest body of a transaction, all headers of its parts included.
pub(crate) const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;

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
    if is_key_too_long(key) {
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
        && 2 * json_bytes + (properties.len() + 3) * BYTES_PER_PROPERTY_MAX <= ENTITY_SIZE_BYTES_MAX
    {
        return Ok(());
    }
    let size = entity_size(keys, properties);
    if size > ENTITY_SIZE_BYTES_MAX {
        return Err(Error::Refused(format!(
            "the entity {} has {size} bytes as the service counts, and it stores at most {ENTITY_SIZE_BYTES_MAX}",
            describe(keys)
        )));
    }
    for property in properties {
        if is_value_too_large(&property.value) {
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

fn entity_size(keys: &Keys<'_>, properties: &[Property<'_>]) -> usize {
    let own = properties.iter().map(|property| property_size(&property.name, &property.value));
    entity_base_size(&keys.partition_key, &keys.row_key) + own.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

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
