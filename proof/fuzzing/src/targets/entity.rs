//! An entity's JSON: reads, checks and stores it, writes it at every metadata level, and reads it again.

use protocol::ErrorCode;
use protocol::table::model::{EntitySource, Value};
use protocol::table::wire::MetadataLevel;
use protocol::table::wire::json_read::{read_entity, read_table_name};
use tables::merge;

use super::stored::{self, are_same, is_json};
use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "entity",
    run,
    input_bytes_max: 4 * 1024 * 1024,
    tokens: &[
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"\"",
        b"\\",
        b"\\\"",
        b"\\n",
        b"\\u0000",
        b"\\u00e9",
        b"\\ud83d\\udc8e",
        b"\\ud83d",
        b"\\udc8e",
        b"\"PartitionKey\":\"p\"",
        b"\"RowKey\":\"r\"",
        b"\"Timestamp\":",
        b"\"TableName\":\"People\"",
        b"\"a\":1,",
        b"\"a@odata.type\":",
        b"@odata.type",
        b"odata.etag",
        b"\"odata.x\":{\"y\":[1]},",
        b"Edm.String",
        b"Edm.Int32",
        b"Edm.Int64",
        b"Edm.Double",
        b"Edm.Boolean",
        b"Edm.DateTime",
        b"Edm.Guid",
        b"Edm.Binary",
        b"Edm.Nothing",
        b"null",
        b"true",
        b"false",
        b"0",
        b"-0",
        b"-0.0",
        b"1.0",
        b"1e5",
        b"1E-400",
        b"1e400",
        b"2147483648",
        b"9223372036854775808",
        b"\"9223372036854775807\"",
        b"\"NaN\"",
        b"\"Infinity\"",
        b"\"-Infinity\"",
        b"5e-324",
        b"\"2020-08-20T22:20:23.7513810Z\"",
        b"\"1600-01-01T00:00:00Z\"",
        b"\"0001-01-01T00:00:00Z\"",
        b"\"2020-01-01T00:00:00+14:00\"",
        b"\"07070707-0707-0707-0707-070707070707\"",
        b"\"AAH/\"",
        b" ",
        b"\n",
        b"\xEF\xBB\xBF",
        b"\xC3\xA9",
        b"\x00",
        b"\xFF",
    ],
    seeds,
};

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let by_hand = [
        r#"{"PartitionKey":"p","RowKey":"r","s":"a\u00e9\ud83d\udc8e","i":-1,"d":1.5e-7,"t":true,"n":null}"#,
        r#"{"a@odata.type":"Edm.Int64","a":"9223372036854775807","b":"AAH/","b@odata.type":"Edm.Binary"}"#,
        r#"{"a":"2020-08-20T22:20:23.751381Z","a@odata.type":"Edm.DateTime","g@odata.type":"Edm.Guid","g":"{07070707-0707-0707-0707-070707070707}"}"#,
        r#"{"d@odata.type":"Edm.Double","d":"NaN","e@odata.type":"Edm.Double","e":"-Infinity","f@odata.type":"Edm.Double","f":3}"#,
        r#"{"odata.metadata":{"x":[1,{"y":null}]},"PartitionKey":"","RowKey":"","x@odata.type":"Edm.Boolean","x":"true"}"#,
    ];
    distinct(golden.bodies("{").into_iter().chain(by_hand.iter().map(|text| text.as_bytes().to_vec())))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let table_name = read_table_name(input);
    let entity = match read_entity(input) {
        Ok(entity) => entity,
        Err(error) => {
            assert!(table_name.is_err(), "a table's name was read from what is not an entity");
            return Err(error.into());
        }
    };
    let bare = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    assert!(is_json(bare), "an entity was read from what is not JSON");

    let has_keys = entity.partition_key.is_some() && entity.row_key.is_some();
    let partition_key = entity.partition_key.as_deref().unwrap_or("p");
    let row_key = entity.row_key.as_deref().unwrap_or("r");
    let stored = stored::store(partition_key, row_key, entity.properties.clone())?;
    assert!(tables::is_record(&stored.record), "a stored record is not one");
    let view = stored.view().expect("what was stored is a record");
    assert!(are_same(&stored::properties_of(&view), &entity.properties), "stored and read are not the same");
    for property in &entity.properties {
        let found = view.property(&property.name).expect("a stored property is found by its name");
        assert_eq!(found.edm_type(), property.value.edm_type());
    }

    for level in [MetadataLevel::Minimal, MetadataLevel::Full] {
        let written = stored::write(&view, level);
        let again = read_entity(&written).unwrap_or_else(|error| {
            panic!("a written entity cannot be read: {} {}", error.code.name(), written.escape_ascii())
        });
        assert_eq!(again.partition_key.as_deref(), Some(partition_key));
        assert_eq!(again.row_key.as_deref(), Some(row_key));
        assert!(are_same(&again.properties, &entity.properties), "not the same: {}", written.escape_ascii());
        assert!(is_json(&written), "a written entity is not JSON: {}", written.escape_ascii());
    }
    // Without types the values may differ, but the properties are there.
    let untyped = stored::write(&view, MetadataLevel::None);
    let again = read_entity(&untyped).unwrap_or_else(|error| panic!("not read: {}", error.code.name()));
    assert_eq!(again.properties.len(), entity.properties.len());

    assert_eq!(merge(None, &stored.record).ok(), Some(stored.record.clone()));
    assert_eq!(merge(Some(&stored.record), &stored.record).ok(), Some(stored.record.clone()));
    if table_name.is_ok() {
        assert!(entity.properties.iter().any(|property| property.name == "TableName"));
    } else if let Some(named) = entity.properties.iter().find(|property| property.name == "TableName") {
        assert!(!matches!(named.value, Value::String(_)), "a name that is there was not found");
    }
    match (has_keys, entity.properties.is_empty()) {
        (true, false) => Ok(Outcome::Accepted("entity")),
        (true, true) => Ok(Outcome::Accepted("keys alone")),
        (false, false) => Ok(Outcome::Accepted("properties alone")),
        (false, true) => Err(ErrorCode::PropertiesNeedValue.into()),
    }
}
