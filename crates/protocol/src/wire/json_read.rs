//! An entity's JSON payload, read in one pass into values that borrow from it.
//!
//! Promises: one look at each byte; annotations may stand before or after their property; whatever is not an
//! entity is refused with the service's own error. Leaves limits and key rules to others.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use crate::error::{ErrorCode, ServiceError};
use crate::model::{DateTime, EdmType, Entity, Guid, Property, Value};

/// Up to here names are compared pair by pair, which beats sorting them.
const PAIRWISE_COUNT_MAX: usize = 24;

pub fn read_entity(body: &[u8]) -> Result<Entity<'_>, ServiceError> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let members =
        deserializer.deserialize_map(MembersVisitor).map_err(|_| ServiceError::unreadable_payload())?;
    deserializer.end().map_err(|_| ServiceError::unreadable_payload())?;
    build(members)
}

/// The payload of Create Table: the name it asks for, unchecked.
pub fn read_table_name(body: &[u8]) -> Result<String, ServiceError> {
    let entity = read_entity(body)?;
    let named = entity.properties.into_iter().find(|property| property.name == "TableName");
    match named.map(|property| property.value) {
        Some(Value::String(name)) => Ok(name.into_owned()),
        Some(_) => Err(ServiceError::unreadable_payload()),
        None => Err(ErrorCode::PropertiesNeedValue.into()),
    }
}

/// A JSON value as it stands in the payload.
enum Raw<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Has a fraction or an exponent, or is beyond 64 bits.
    Double(f64),
    String(Cow<'a, str>),
}

#[derive(Default)]
struct Members<'a> {
    properties: Vec<(Cow<'a, str>, Raw<'a>)>,
    /// `name@odata.type`: the name, and the type's text.
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

fn build(mut members: Members<'_>) -> Result<Entity<'_>, ServiceError> {
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
        // The server sets the Timestamp, whatever the client says.
        if matches!(raw, Raw::Null) || name == "Timestamp" {
            continue;
        }
        let value = type_value(raw, annotation).ok_or_else(ServiceError::unreadable_payload)?;
        match (&*name, value) {
            ("PartitionKey", Value::String(key)) => entity.partition_key = Some(key),
            ("RowKey", Value::String(key)) => entity.row_key = Some(key),
            ("PartitionKey" | "RowKey", _) => return Err(ServiceError::unreadable_payload()),
            (_, value) => entity.properties.push(Property { name, value }),
        }
    }
    Ok(entity)
}

/// The typed value; `None` when it does not fit its annotation.
fn type_value<'a>(raw: Raw<'a>, annotation: Option<&str>) -> Option<Value<'a>> {
    let annotation = match annotation {
        Some(name) => Some(EdmType::from_name(name)?),
        None => None,
    };
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
        (Raw::String(text), Some(EdmType::Int64)) => Value::Int64(text.parse().ok()?),
        (Raw::String(text), Some(EdmType::Double)) => Value::Double(double_from_text(&text)?),
        (Raw::String(text), Some(EdmType::DateTime)) => Value::DateTime(DateTime::parse(&text)?),
        (Raw::String(text), Some(EdmType::Guid)) => Value::Guid(Guid::parse(&text)?),
        (Raw::String(text), Some(EdmType::Binary)) => Value::Binary(STANDARD.decode(&*text).ok()?.into()),
        _ => return None,
    })
}

fn double_from_text(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        // Rust also reads words such as `inf` and `nan`, which are not the service's.
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

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key_seed(TextSeed)? {
            match memchr::memchr(b'@', name.as_bytes()) {
                None if name.starts_with("odata.") => {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
                None => members.properties.push((name, map.next_value_seed(RawSeed)?)),
                Some(at) if &name[at..] == "@odata.type" => {
                    if let Raw::String(edm_type) = map.next_value_seed(RawSeed)? {
                        members.types.push((cut(name, at), edm_type));
                    }
                }
                Some(_) => {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
        }
        Ok(members)
    }
}

fn cut(text: Cow<'_, str>, len: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..len]),
        Cow::Owned(mut text) => {
            text.truncate(len);
            Cow::Owned(text)
        }
    }
}

struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct RawSeed;

impl<'de> DeserializeSeed<'de> for RawSeed {
    type Value = Raw<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Objects and arrays have no visit function here, so serde refuses them.
impl<'de> Visitor<'de> for RawSeed {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property value")
    }

    fn visit_unit<E>(self) -> Result<Raw<'de>, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw<'de>, E> {
        Ok(Raw::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw<'de>, E> {
        Ok(Raw::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw<'de>, E> {
        Ok(i64::try_from(value).map_or(Raw::Double(value as f64), Raw::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw<'de>, E> {
        Ok(Raw::Double(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
        Ok(Raw::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw<'de>, E> {
        Ok(Raw::String(Cow::Owned(text.to_owned())))
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
        check(r#"{"x":1.0}"#, Value::Double(1.0));
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
    fn many_properties_are_read_in_near_linear_time() {
        let members: Vec<String> =
            (0..50_000).map(|n| format!("\"p{n}\":null,\"p{n}@odata.type\":\"Edm.Int64\"")).collect();
        let json = format!("{{{},\"x\":\"5\",\"x@odata.type\":\"Edm.Int64\"}}", members.join(","));
        assert_eq!(value(&json), Ok(Some(Value::Int64(5))));
    }
}
