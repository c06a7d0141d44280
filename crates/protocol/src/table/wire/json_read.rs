//! An entity's JSON payload, read in one pass into values that borrow from it.
//!
//! Promises: looks at each byte once. Annotations may come before or after their property. Any other payload is refused
//! with the service's own error. Leaves limits and key rules to others.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::json_token::{Raw, Reader};
use crate::common::DateTime;
use crate::table::model::{EdmType, Entity, Guid, Property, Value};
use crate::{ErrorCode, ServiceError};

/// Up to this many names, comparing all pairs is faster than sorting.
const PAIRWISE_COUNT_MAX: usize = 24;

/// Reads the payload of an insert.
pub fn read_entity(body: &[u8]) -> Result<Entity<'_>, ServiceError> {
    read(body, KeyType::String)
}

/// Reads the payload of an update: its properties. The URL has the keys, so those of the payload are dropped.
pub fn read_properties(body: &[u8]) -> Result<Vec<Property<'_>>, ServiceError> {
    Ok(read(body, KeyType::Any)?.properties)
}

/// Which types keys in a payload may have.
#[derive(Clone, Copy, PartialEq)]
enum KeyType {
    String,
    /// Clients send keys of an update back with the type they have in the program, such as `Edm.Guid`.
    Any,
}

fn read(body: &[u8], key_type: KeyType) -> Result<Entity<'_>, ServiceError> {
    let members = read_members(body).ok_or_else(ServiceError::unreadable_payload)?;
    build(members, key_type)
}

/// Reads the payload of Create Table: the table's name, unchecked.
pub fn read_table_name(body: &[u8]) -> Result<String, ServiceError> {
    let entity = read_entity(body)?;
    let named = entity.properties.into_iter().find(|property| property.name == "TableName");
    match named.map(|property| property.value) {
        Some(Value::String(name)) => Ok(name.into_owned()),
        Some(_) => Err(ServiceError::unreadable_payload()),
        None => Err(ErrorCode::PropertiesNeedValue.into()),
    }
}

#[derive(Default)]
struct Members<'a> {
    properties: Vec<(Cow<'a, str>, Raw<'a>)>,
    /// For each `name@odata.type`: the name, and the text of the type.
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// `None` when the body is not a JSON object of plain values. Annotations may hold anything.
fn read_members(body: &[u8]) -> Option<Members<'_>> {
    let text = std::str::from_utf8(body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body)).ok()?;
    let mut reader = Reader::new(text);
    // Enough for an entity of average size.
    let mut members = Members { properties: Vec::with_capacity(16), types: Vec::new() };
    reader.take(b'{')?;
    if !reader.take_if(b'}') {
        loop {
            let name = reader.string()?;
            reader.take(b':')?;
            match memchr::memchr(b'@', name.as_bytes()) {
                None if name.starts_with("odata.") => reader.skip_value()?,
                None => members.properties.push((name, reader.scalar()?)),
                Some(at) if &name[at..] == "@odata.type" => match reader.scalar()? {
                    Raw::String(edm_type) => members.types.push((cut(name, at), edm_type)),
                    Raw::Null | Raw::Boolean(_) | Raw::Integer(_) | Raw::Double(_) => {}
                },
                Some(_) => reader.skip_value()?,
            }
            if !reader.take_if(b',') {
                break;
            }
        }
        reader.take(b'}')?;
    }
    reader.is_at_end().then_some(members)
}

pub(super) fn cut(text: Cow<'_, str>, len: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..len]),
        Cow::Owned(mut text) => {
            text.truncate(len);
            Cow::Owned(text)
        }
    }
}

fn build(mut members: Members<'_>, key_type: KeyType) -> Result<Entity<'_>, ServiceError> {
    check_distinct(&members.properties)?;
    let sorted = members.types.len() > PAIRWISE_COUNT_MAX;
    if sorted {
        members.types.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let mut entity = Entity { properties: Vec::with_capacity(members.properties.len()), ..Entity::default() };
    for (name, raw) in members.properties {
        let annotation = if sorted {
            members.types.binary_search_by(|(of, _)| of.cmp(&name)).ok().map(|at| &*members.types[at].1)
        } else {
            members.types.iter().find(|(of, _)| *of == name).map(|(_, edm_type)| &**edm_type)
        };
        // The server sets the Timestamp, so the client's value is ignored.
        if matches!(raw, Raw::Null) || name == "Timestamp" {
            continue;
        }
        let value = type_value(raw, annotation).ok_or_else(ServiceError::unreadable_payload)?;
        match (&*name, value) {
            ("PartitionKey", Value::String(key)) => entity.partition_key = Some(key),
            ("RowKey", Value::String(key)) => entity.row_key = Some(key),
            ("PartitionKey" | "RowKey", _) if key_type == KeyType::Any => {}
            ("PartitionKey" | "RowKey", _) => return Err(ServiceError::unreadable_payload()),
            (_, value) => entity.properties.push(Property { name, value }),
        }
    }
    Ok(entity)
}

/// The value with its type; `None` when it does not fit its annotation.
fn type_value<'a>(raw: Raw<'a>, annotation: Option<&str>) -> Option<Value<'a>> {
    let annotation = match annotation {
        Some(name) => Some(EdmType::from_name(name)?),
        None => None,
    };
    typed_value(raw, annotation)
}

fn typed_value<'a>(raw: Raw<'a>, annotation: Option<EdmType>) -> Option<Value<'a>> {
    Some(match (raw, annotation) {
        (Raw::Null, _) => return None,
        (Raw::Boolean(value), None | Some(EdmType::Boolean)) => Value::Boolean(value),
        (Raw::Integer(value), None) => match i32::try_from(value) {
            Ok(value) => Value::Int32(value),
            Err(_) => Value::Double(value as f64),
        },
        (Raw::Integer(value), Some(EdmType::Int32)) => Value::Int32(value.try_into().ok()?),
        (Raw::Integer(value), Some(EdmType::Int64)) => Value::Int64(value),
        (Raw::Integer(value), Some(EdmType::Double)) => Value::Double(value as f64),
        (Raw::Double(value), None | Some(EdmType::Double)) => Value::Double(value),
        (Raw::String(text), None | Some(EdmType::String)) => Value::String(text),
        // Clients that read without converting types send values of every type back as text.
        (Raw::String(text), Some(EdmType::Int32)) => Value::Int32(text.parse().ok()?),
        (Raw::String(text), Some(EdmType::Boolean)) => Value::Boolean(boolean_from_text(&text)?),
        (Raw::String(text), Some(EdmType::Int64)) => Value::Int64(text.parse().ok()?),
        (Raw::String(text), Some(EdmType::Double)) => Value::Double(double_from_text(&text)?),
        (Raw::String(text), Some(EdmType::DateTime)) => Value::DateTime(DateTime::parse(&text)?),
        (Raw::String(text), Some(EdmType::Guid)) => Value::Guid(Guid::parse(&text)?),
        (Raw::String(text), Some(EdmType::Binary)) => Value::Binary(binary_from_text(&text)?.into()),
        _ => return None,
    })
}

/// A value that was read without its annotation, as the type that the annotation names; `None` when it does not fit.
pub(super) fn retype<'a>(value: Value<'a>, edm_type: EdmType) -> Option<Value<'a>> {
    if value.edm_type() == edm_type {
        return Some(value);
    }
    let raw = match value {
        Value::Int32(value) => Raw::Integer(i64::from(value)),
        Value::Int64(value) => Raw::Integer(value),
        Value::String(text) => Raw::String(text),
        // Neither a boolean nor a number with a fraction is ever another type.
        _ => return None,
    };
    typed_value(raw, Some(edm_type))
}

/// Clients written in .NET and Python send `True` and `False`.
fn boolean_from_text(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// Base64 as .NET reads it: the standard alphabet, padding required, the unused bits of the last character ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Blanks and line breaks may stand anywhere: some encoders write lines of 76 characters.
fn binary_from_text(text: &str) -> Option<Vec<u8>> {
    let is_blank = |character: char| matches!(character, ' ' | '\t' | '\r' | '\n');
    if text.contains(is_blank) {
        return BASE64.decode(text.replace(is_blank, "")).ok();
    }
    BASE64.decode(text).ok()
}

fn double_from_text(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        // Rust also accepts words such as `inf` and `nan`, which the service does not.
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) => text.parse().ok(),
        _ => None,
    }
}

fn check_distinct(properties: &[(Cow<'_, str>, Raw<'_>)]) -> Result<(), ServiceError> {
    let repeated = if properties.len() <= PAIRWISE_COUNT_MAX {
        properties.iter().enumerate().find_map(|(at, (name, _))| {
            properties[..at].iter().any(|(earlier, _)| earlier == name).then_some(&**name)
        })
    } else {
        let mut names: Vec<&str> = properties.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    };
    match repeated {
        None => Ok(()),
        Some("PartitionKey" | "RowKey") => Err(ErrorCode::DuplicateKeyPropertySpecified.into()),
        Some(_) => Err(ErrorCode::DuplicatePropertiesSpecified.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn value(json: &str) -> Result<Option<Value<'static>>, ErrorCode> {
        let entity = read_entity(json.as_bytes()).map_err(|error| error.code)?;
        Ok(entity
            .properties
            .into_iter()
            .find(|property| property.name == "x")
            .map(|property| property.value.into_owned()))
    }

    #[test]
    fn types_are_inferred_or_annotated() {
        let check =
            |json: &str, expected: Value<'static>| assert_eq!(value(json), Ok(Some(expected)), "{json}");
        check(r#"{"x":"a"}"#, Value::String("a".into()));
        check(r#"{"x":"2020-01-01T00:00:00Z"}"#, Value::String("2020-01-01T00:00:00Z".into()));
        check(r#"{"x":1}"#, Value::Int32(1));
        check(r#"{"x":-2147483648}"#, Value::Int32(i32::MIN));
        check(r#"{"x":2147483648}"#, Value::Double(2147483648.0));
        check(r#"{"x":-0}"#, Value::Int32(0));
        check(r#"{"x":1.0}"#, Value::Double(1.0));
        check(r#"{"x":"7","x@odata.type":"Edm.Int32"}"#, Value::Int32(7));
        check(r#"{"x":"true","x@odata.type":"Edm.Boolean"}"#, Value::Boolean(true));
        check(r#"{"x":"False","x@odata.type":"Edm.Boolean"}"#, Value::Boolean(false));
        check(r#"{"x":"TRUE","x@odata.type":"Edm.Boolean"}"#, Value::Boolean(true));
        check(r#" { "x" : 1 , "odata.x" : {"a":[1,{"b":null}]} } "#, Value::Int32(1));
        check(r#"{"x":1e3}"#, Value::Double(1000.0));
        check(r#"{"x":99999999999999999999}"#, Value::Double(1e20));
        check(r#"{"x":true}"#, Value::Boolean(true));
        check(r#"{"x":"1","x@odata.type":"Edm.Int64"}"#, Value::Int64(1));
        check(r#"{"x@odata.type":"Edm.Int64","x":"-9223372036854775808"}"#, Value::Int64(i64::MIN));
        check(r#"{"x":7,"x@odata.type":"Edm.Int64"}"#, Value::Int64(7));
        check(r#"{"x":5,"x@odata.type":"Edm.Double"}"#, Value::Double(5.0));
        check(r#"{"x":"5.5","x@odata.type":"Edm.Double"}"#, Value::Double(5.5));
        check(r#"{"x":"-Infinity","x@odata.type":"Edm.Double"}"#, Value::Double(f64::NEG_INFINITY));
        check(r#"{"x":"YmluYXJ5","x@odata.type":"Edm.Binary"}"#, Value::Binary(b"binary"[..].into()));
        check(r#"{"x":"a\u00e9\n","x@odata.type":"Edm.String"}"#, Value::String("aé\n".into()));
        assert_eq!(value(r#"{"x":null,"x@odata.type":"Edm.Int64"}"#), Ok(None));
        assert_eq!(
            value("\u{FEFF}{\"odata.etag\":\"e\",\"y@odata.type\":\"Edm.Foo\",\"Timestamp\":5}"),
            Ok(None)
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for json in [
            "",
            "[]",
            "{",
            "{\"x\":1}}",
            r#"{"x":{}}"#,
            r#"{"x":[]}"#,
            r#"{"x":"\ud800"}"#,
            r#"{"x":"1","x@odata.type":"Edm.Decimal"}"#,
            r#"{"x":"a","x@odata.type":"Edm.Int64"}"#,
            r#"{"x":2147483648,"x@odata.type":"Edm.Int32"}"#,
            r#"{"x":"inf","x@odata.type":"Edm.Double"}"#,
            r#"{"x":"2020","x@odata.type":"Edm.DateTime"}"#,
            r#"{"x":"zz","x@odata.type":"Edm.Guid"}"#,
            r#"{"x":"*","x@odata.type":"Edm.Binary"}"#,
            r#"{"x":"YmluYX","x@odata.type":"Edm.Binary"}"#,
            r#"{"x":"YmluYX=","x@odata.type":"Edm.Binary"}"#,
            r#"{"x":"YmluYXJ5==","x@odata.type":"Edm.Binary"}"#,
            r#"{"x":"Ym-u","x@odata.type":"Edm.Binary"}"#,
            r#"{"x":"yes","x@odata.type":"Edm.Boolean"}"#,
            r#"{"x":"1","x@odata.type":"Edm.Boolean"}"#,
            r#"{"x":"true ","x@odata.type":"Edm.Boolean"}"#,
            r#"{"x":1,"x@odata.type":"Edm.String"}"#,
            r#"{"PartitionKey":1}"#,
            r#"{"x":1e999}"#,
        ] {
            assert_eq!(value(json), Err(ErrorCode::InvalidInput), "{json}");
        }
        assert_eq!(value(r#"{"x":1,"x":2}"#), Err(ErrorCode::DuplicatePropertiesSpecified));
        assert_eq!(value(r#"{"RowKey":"1","RowKey":"2"}"#), Err(ErrorCode::DuplicateKeyPropertySpecified));
    }

    #[test]
    fn binary_may_have_lines_and_unused_bits() {
        for text in ["YmluYQ==", "YmluYR==", r"Ymlu\r\nYQ==", r" Y m l u\tYQ==\n", r"YmluYQ=\r\n="] {
            let json = format!(r#"{{"x":"{text}","x@odata.type":"Edm.Binary"}}"#);
            assert_eq!(value(&json), Ok(Some(Value::Binary(b"bina"[..].into()))), "{json}");
        }
    }

    #[test]
    fn keys_of_an_update_may_have_any_type() {
        for key in [
            r#""PartitionKey":"p""#,
            r#""PartitionKey":5"#,
            r#""PartitionKey":"5","PartitionKey@odata.type":"Edm.Int64""#,
            r#""RowKey":"2020-01-01T00:00:00Z","RowKey@odata.type":"Edm.DateTime""#,
            r#""RowKey":"c9da6455-213d-42c9-9a79-3e9149a57833","RowKey@odata.type":"Edm.Guid""#,
            r#""RowKey@odata.type":"Edm.Binary","RowKey":"YmluYQ==""#,
        ] {
            let json = format!(r#"{{{key},"x":1}}"#);
            let properties = read_properties(json.as_bytes()).unwrap();
            assert_eq!(properties, [Property { name: "x".into(), value: Value::Int32(1) }], "{json}");
            assert_eq!(read_entity(json.as_bytes()).is_ok(), key == r#""PartitionKey":"p""#, "{json}");
        }
        let unfit = br#"{"RowKey":"soon","RowKey@odata.type":"Edm.DateTime"}"#;
        assert_eq!(read_properties(unfit).unwrap_err().code, ErrorCode::InvalidInput);
    }

    #[test]
    fn many_properties_are_read_in_near_linear_time() {
        let members: Vec<String> =
            (0..50_000).map(|n| format!("\"p{n}\":null,\"p{n}@odata.type\":\"Edm.Int64\"")).collect();
        let json = format!("{{{},\"x\":\"5\",\"x@odata.type\":\"Edm.Int64\"}}", members.join(","));
        assert_eq!(value(&json), Ok(Some(Value::Int64(5))));
    }
}
