//! The payload of an insert or an update, as a client writes it.
//!
//! Promises: every value whose type JSON does not show has its annotation, doubles always, because some servers take
//! `3.0` for an integer. Leaves to others: limits, names, and whether a name occurs twice.

use super::json_write::{end_object, escape_bytes, write_string, write_value};
use crate::table::model::{EdmType, Property, RawValue, Value};

/// Writes one object: the keys, if the payload has them, then the properties.
pub fn write_payload(keys: Option<(&str, &str)>, properties: &[Property<'_>], out: &mut Vec<u8>) {
    out.push(b'{');
    if let Some((partition_key, row_key)) = keys {
        out.extend_from_slice(b"\"PartitionKey\":");
        write_string(partition_key, out);
        out.extend_from_slice(b",\"RowKey\":");
        write_string(row_key, out);
        out.push(b',');
    }
    for Property { name, value } in properties {
        if let Some(edm_type) = annotated_type(value) {
            out.push(b'"');
            escape_bytes(name.as_bytes(), out);
            out.extend_from_slice(b"@odata.type\":\"");
            out.extend_from_slice(edm_type.name().as_bytes());
            out.extend_from_slice(b"\",");
        }
        write_string(name, out);
        out.push(b':');
        write_value(RawValue::from(value), out);
        out.push(b',');
    }
    end_object(out);
}

fn annotated_type(value: &Value<'_>) -> Option<EdmType> {
    match value {
        Value::String(_) | Value::Int32(_) | Value::Boolean(_) => None,
        Value::Int64(_) | Value::Double(_) | Value::DateTime(_) | Value::Guid(_) | Value::Binary(_) => {
            Some(value.edm_type())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{json_answer, json_read};
    use super::*;
    use crate::common::DateTime;
    use crate::table::model::Guid;

    fn property(name: &'static str, value: Value<'static>) -> Property<'static> {
        Property { name: name.into(), value }
    }

    #[test]
    fn what_is_written_is_read_by_the_server_and_by_the_client() {
        let properties = vec![
            property("text", Value::String("a\"\\\n\u{0}é\u{1F600}".into())),
            property("int", Value::Int32(i32::MIN)),
            property("long", Value::Int64(i64::MIN)),
            property("whole", Value::Double(3.0)),
            property("tiny", Value::Double(5e-324)),
            property("infinite", Value::Double(f64::INFINITY)),
            property("flag", Value::Boolean(false)),
            property("date", Value::DateTime(DateTime::MAX)),
            property("guid", Value::Guid(Guid([0xFF; 16]))),
            property("bytes", Value::Binary(vec![0, 0xFF].into())),
            property("empty", Value::Binary(vec![].into())),
        ];
        let mut out = Vec::new();
        write_payload(Some(("p'", "")), &properties, &mut out);
        let sent = json_read::read_entity(&out).unwrap();
        assert_eq!((sent.partition_key.as_deref(), sent.row_key.as_deref()), (Some("p'"), Some("")));
        assert_eq!(sent.properties, properties);
        assert_eq!(json_answer::read_entity(&out).unwrap().properties, properties);

        out.clear();
        write_payload(None, &properties[1..4], &mut out);
        let text = String::from_utf8(out).unwrap();
        let expected = r#"{"int":-2147483648,"long@odata.type":"Edm.Int64","long":"-9223372036854775808","whole@odata.type":"Edm.Double","whole":3.0}"#;
        assert_eq!(text, expected);
        let mut empty = Vec::new();
        write_payload(None, &[], &mut empty);
        assert_eq!(empty, b"{}");
    }
}
