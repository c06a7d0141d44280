//! Stored entities for the targets: made from properties by the code that handles writes, and compared bit by bit.

use engine::{OwnedKey, Version};
use protocol::ServiceError;
use protocol::common::{BaseUrl, DateTime};
use protocol::table::model::{EntitySource, Guid, Property, Value};
use protocol::table::wire::MetadataLevel;
use protocol::table::wire::json_write::EntityWriter;
use tables::{Action, Change, EntityView, StoredEntity, Transaction};

use crate::ACCOUNT;

/// 2020-08-20T22:20:23.751381Z.
const VERSION_TICKS: u64 = 637_335_516_237_513_810;

pub fn version() -> Version {
    Version::new(VERSION_TICKS).expect("not zero")
}

/// The entity as a replace operation stores it. The service's limits apply.
pub fn store(
    partition_key: &str,
    row_key: &str,
    properties: Vec<Property<'_>>,
) -> Result<StoredEntity, ServiceError> {
    let action = Action::Replace { properties, condition: None };
    let change = Change { partition_key: partition_key.into(), row_key: row_key.into(), action };
    let transaction = Transaction::one(change)?;
    let record = transaction.record(0).expect("a replacement puts a record");
    let key = OwnedKey { partition: partition_key.into(), row: row_key.into() };
    Ok(StoredEntity { key, version: version(), record })
}

/// A property of each type.
pub fn sample_properties() -> Vec<Property<'static>> {
    let property = |name: &'static str, value| Property { name: name.into(), value };
    vec![
        property("Name", Value::String("Ada \"L\"\u{1F48E}\n".into())),
        property("Age", Value::Int32(36)),
        property("Big", Value::Int64(i64::MAX)),
        property("Weight", Value::Double(-0.5)),
        property("Active", Value::Boolean(true)),
        property("Born", Value::DateTime(DateTime::UNIX_EPOCH)),
        property("Id", Value::Guid(Guid([7; 16]))),
        property("Data", Value::Binary(vec![0, 1, 0xFF].into())),
    ]
}

pub fn sample() -> StoredEntity {
    store("p", "r", sample_properties()).expect("the sample is within the limits")
}

/// The properties in stored order.
pub fn properties_of(view: &EntityView<'_>) -> Vec<Property<'static>> {
    let mut properties = Vec::new();
    view.for_each_property(|name, value| {
        properties.push(Property { name: name.to_owned().into(), value: value.clone().into_owned() });
    });
    properties
}

/// Whether both have the same values in the same order. NaN equals NaN, but 0 does not equal -0.
pub fn are_same(left: &[Property<'_>], right: &[Property<'_>]) -> bool {
    let is_same = |(left, right): (&Property<'_>, &Property<'_>)| {
        left.name == right.name
            && match (&left.value, &right.value) {
                (Value::Double(left), Value::Double(right)) if left.is_nan() => right.is_nan(),
                (Value::Double(left), Value::Double(right)) => left.to_bits() == right.to_bits(),
                (left, right) => left == right,
            }
    };
    left.len() == right.len() && left.iter().zip(right).all(is_same)
}

/// The entity as JSON, as a client sees it.
pub fn write(view: &EntityView<'_>, level: MetadataLevel) -> Vec<u8> {
    let writer = EntityWriter {
        base: BaseUrl { is_https: false, host: "127.0.0.1:10002", path: "/devstoreaccount1" },
        account: ACCOUNT,
        table: "People",
        level,
        selection: None,
    };
    let mut out = Vec::new();
    writer.write_single(view, &mut out);
    out
}

/// Whether a JSON reader other than ours accepts the bytes.
pub fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
