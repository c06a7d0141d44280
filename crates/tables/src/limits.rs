//! The checks that enforce the published limits, and the limits of a page.
//!
//! Promises: a violation is refused with the service's own error. Leaves to others: limits on requests as a whole,
//! which the server enforces.

use protocol::common::DateTime;
pub use protocol::table::limits::BATCH_OPERATION_COUNT_MAX;
pub(crate) use protocol::table::limits::{
    ENTITY_SIZE_BYTES_MAX, PROPERTY_COUNT_MAX, entity_base_size, property_size,
};
use protocol::table::limits::{is_key_too_long, is_value_too_large};
use protocol::table::model::{Property, Value, check_property_name, find_forbidden_key_char};
use protocol::{ErrorCode, ServiceError};

const _: () = assert!(BATCH_OPERATION_COUNT_MAX <= engine::COMMIT_OP_COUNT_MAX, "a batch is one commit");

/// Bytes of entities in one page, as written in the answer.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Time one page may take before it ends with a continuation.
pub(crate) const PAGE_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// Checks keys that came in a payload.
pub(crate) fn check_payload_keys(partition_key: &str, row_key: &str) -> Result<(), ServiceError> {
    for (name, key) in [("PartitionKey", partition_key), ("RowKey", row_key)] {
        if find_forbidden_key_char(key).is_some() {
            return Err(out_of_range(name, key));
        }
        check_key_size(key)?;
    }
    Ok(())
}

/// Checks the keys in the URL of a write.
pub(crate) fn check_address_keys(partition_key: &str, row_key: &str) -> Result<(), ServiceError> {
    for key in [partition_key, row_key] {
        if find_forbidden_key_char(key).is_some() {
            return Err(ErrorCode::OutOfRangeInput.into());
        }
        check_key_size(key)?;
    }
    Ok(())
}

fn check_key_size(key: &str) -> Result<(), ServiceError> {
    if is_key_too_long(key) { Err(ErrorCode::PropertyValueTooLarge.into()) } else { Ok(()) }
}

/// Checks the properties' names, values and number, and returns the entity's size in bytes as the service counts it.
pub(crate) fn check_entity(
    partition_key: &str,
    row_key: &str,
    properties: &[Property<'_>],
) -> Result<usize, ServiceError> {
    if properties.len() > PROPERTY_COUNT_MAX {
        return Err(ErrorCode::TooManyProperties.into());
    }
    let mut size = entity_base_size(partition_key, row_key);
    let mut has_large_value = false;
    for property in properties {
        check_property_name(&property.name)?;
        check_date(property)?;
        has_large_value |= is_value_too_large(&property.value);
        size += property_size(&property.name, &property.value);
    }
    // The entity comes first: a value of 1 MiB makes it too large, whatever the limit for one value.
    if size > ENTITY_SIZE_BYTES_MAX {
        return Err(ErrorCode::EntityTooLarge.into());
    }
    if has_large_value { Err(ErrorCode::PropertyValueTooLarge.into()) } else { Ok(size) }
}

fn check_date(property: &Property<'_>) -> Result<(), ServiceError> {
    match property.value {
        Value::DateTime(date) if date < DateTime::MIN_STORED => {
            let mut text = Vec::new();
            date.write_american(&mut text);
            Err(out_of_range(&property.name, &String::from_utf8_lossy(&text)))
        }
        _ => Ok(()),
    }
}

fn out_of_range(name: &str, value: &str) -> ServiceError {
    let detail = format!("The '{name}' parameter of value '{value}' is out of range.");
    ServiceError::with_detail(ErrorCode::OutOfRangeInput, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(value: Value<'static>) -> Result<usize, ErrorCode> {
        check_entity("p", "r", &[Property { name: "x".into(), value }]).map_err(|error| error.code)
    }

    #[test]
    fn values_are_limited_in_utf16_units_and_bytes() {
        let too_large = Err(ErrorCode::PropertyValueTooLarge);
        assert!(entity(Value::String("a".repeat(32_768).into())).is_ok());
        assert_eq!(entity(Value::String("a".repeat(32_769).into())), too_large);
        assert!(entity(Value::String("日".repeat(32_768).into())).is_ok());
        assert!(entity(Value::String("\u{1F600}".repeat(16_384).into())).is_ok());
        assert_eq!(entity(Value::String("\u{1F600}".repeat(16_385).into())), too_large);
        assert!(entity(Value::Binary(vec![0; 65_536].into())).is_ok());
        assert_eq!(entity(Value::Binary(vec![0; 65_537].into())), too_large);
    }

    #[test]
    fn a_value_that_fills_the_entity_makes_the_entity_too_large() {
        let text = |units: usize| entity(Value::String("a".repeat(units).into()));
        assert_eq!(text(512 * 1024 - 100), Err(ErrorCode::PropertyValueTooLarge));
        assert_eq!(text(512 * 1024), Err(ErrorCode::EntityTooLarge));
        assert_eq!(entity(Value::Binary(vec![0; 1 << 20].into())), Err(ErrorCode::EntityTooLarge));
    }

    #[test]
    fn keys_are_limited_to_512_units() {
        assert!(check_payload_keys(&"k".repeat(512), "").is_ok());
        assert_eq!(
            check_payload_keys("", &"k".repeat(513)).unwrap_err().code,
            ErrorCode::PropertyValueTooLarge
        );
        let error = check_payload_keys("a/b", "").unwrap_err();
        assert_eq!(error.message(), "The 'PartitionKey' parameter of value 'a/b' is out of range.");
        assert_eq!(
            check_address_keys("a#b", "").unwrap_err().message(),
            "One of the request inputs is out of range."
        );
    }

    #[test]
    fn sizes_follow_the_published_formula() {
        // 4 + 2*(1+1) + Timestamp (8 + 18 + 8) + x (8 + 2 + 4)
        assert_eq!(entity(Value::Int32(1)), Ok(4 + 4 + 34 + 14));
    }
}
