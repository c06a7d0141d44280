//! Entities in an answer, as a client reads them: one, or a page of them, at any metadata level.
//!
//! Promises: one pass over the body, and values that borrow from it. Annotations may come before or after their
//! property. Without an annotation a value keeps the type that its JSON shows. Any bytes may be refused, but none cause
//! a panic. Leaves to others: which type a program expects.

use std::borrow::Cow;

use super::json_read::{cut, retype};
use super::json_token::{Raw, Reader};
use crate::common::DateTime;
use crate::table::model::{EdmType, Property, Value};

/// An entity of an answer. What `$select` left out is absent.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AnswerEntity<'a> {
    pub partition_key: Option<Cow<'a, str>>,
    pub row_key: Option<Cow<'a, str>>,
    pub timestamp: Option<DateTime>,
    pub etag: Option<Cow<'a, str>>,
    /// In the order of the answer, without those that are null.
    pub properties: Vec<Property<'a>>,
}

/// Why an answer cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnswerError {
    /// Not the JSON of an entity or of a page.
    Malformed,
    /// A value that is not of the type that its annotation, or its name, demands.
    Mistyped { property: String },
}

/// Enough for an entity of average size.
const PROPERTY_COUNT_USUAL: usize = 16;

/// Reads the answer to a query of one entity.
pub fn read_entity(body: &[u8]) -> Result<AnswerEntity<'_>, AnswerError> {
    let mut reader = Reader::new(text(body)?);
    let entity = entity(&mut reader, PROPERTY_COUNT_USUAL)?;
    if reader.is_at_end() { Ok(entity) } else { Err(AnswerError::Malformed) }
}

/// Reads the answer to a query: calls `visit` for each entity, in the order of the answer.
pub fn read_page<'a>(body: &'a [u8], mut visit: impl FnMut(AnswerEntity<'a>)) -> Result<(), AnswerError> {
    let mut reader = Reader::new(text(body)?);
    let mut has_value = false;
    reader.take(b'{').ok_or(AnswerError::Malformed)?;
    loop {
        let name = name(&mut reader)?;
        if name == "value" && !has_value {
            has_value = true;
            entities(&mut reader, &mut visit)?;
        } else {
            reader.skip_value().ok_or(AnswerError::Malformed)?;
        }
        if !reader.take_if(b',') {
            break;
        }
    }
    reader.take(b'}').ok_or(AnswerError::Malformed)?;
    if has_value && reader.is_at_end() { Ok(()) } else { Err(AnswerError::Malformed) }
}

fn text(body: &[u8]) -> Result<&str, AnswerError> {
    std::str::from_utf8(body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body))
        .map_err(|_| AnswerError::Malformed)
}

fn name<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, AnswerError> {
    let name = reader.string().ok_or(AnswerError::Malformed)?;
    reader.take(b':').ok_or(AnswerError::Malformed)?;
    Ok(name)
}

fn entities<'a>(
    reader: &mut Reader<'a>,
    visit: &mut impl FnMut(AnswerEntity<'a>),
) -> Result<(), AnswerError> {
    reader.take(b'[').ok_or(AnswerError::Malformed)?;
    if reader.take_if(b']') {
        return Ok(());
    }
    // The entities of a page are mostly alike.
    let mut property_count = PROPERTY_COUNT_USUAL;
    loop {
        let entity = entity(reader, property_count)?;
        property_count = entity.properties.len();
        visit(entity);
        if !reader.take_if(b',') {
            return reader.take(b']').ok_or(AnswerError::Malformed);
        }
    }
}

fn entity<'a>(reader: &mut Reader<'a>, property_count: usize) -> Result<AnswerEntity<'a>, AnswerError> {
    let mut entity =
        AnswerEntity { properties: Vec::with_capacity(property_count), ..AnswerEntity::default() };
    // The last annotation, whose property mostly comes next, and earlier ones whose property has not come yet.
    let mut latest: Option<(Cow<'a, str>, Cow<'a, str>)> = None;
    let mut earlier: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
    reader.take(b'{').ok_or(AnswerError::Malformed)?;
    if reader.take_if(b'}') {
        return Ok(entity);
    }
    loop {
        let name = name(reader)?;
        match memchr::memchr(b'@', name.as_bytes()) {
            None if name.starts_with("odata.") => {
                if name == "odata.etag" {
                    entity.etag = reader.string();
                    entity.etag.as_ref().ok_or(AnswerError::Malformed)?;
                } else {
                    reader.skip_value().ok_or(AnswerError::Malformed)?;
                }
            }
            None => {
                let raw = reader.scalar().ok_or(AnswerError::Malformed)?;
                let annotation = match latest.take_if(|(of, _)| *of == name) {
                    Some(annotation) => Some(annotation),
                    None => earlier.iter().position(|(of, _)| *of == name).map(|at| earlier.swap_remove(at)),
                };
                if let Some(value) = inferred(raw) {
                    entity.add(name, value, annotation.as_ref().map(|(_, edm_type)| &**edm_type))?;
                }
            }
            Some(at) if &name[at..] == "@odata.type" => {
                let edm_type = reader.string().ok_or(AnswerError::Malformed)?;
                earlier.extend(latest.replace((cut(name, at), edm_type)));
            }
            Some(_) => reader.skip_value().ok_or(AnswerError::Malformed)?,
        }
        if !reader.take_if(b',') {
            break;
        }
    }
    reader.take(b'}').ok_or(AnswerError::Malformed)?;
    for (name, edm_type) in earlier.into_iter().chain(latest) {
        entity.annotate(&name, &edm_type)?;
    }
    Ok(entity)
}

/// The value as its JSON shows it; `None` for null. An integer beyond 32 bits without an annotation comes from a server
/// that forgot its type: as an Int64 it keeps all its digits, and an annotation that follows can still change it.
fn inferred(raw: Raw<'_>) -> Option<Value<'_>> {
    Some(match raw {
        Raw::Null => return None,
        Raw::Boolean(value) => Value::Boolean(value),
        Raw::Integer(value) => i32::try_from(value).map_or(Value::Int64(value), Value::Int32),
        Raw::Double(value) => Value::Double(value),
        Raw::String(text) => Value::String(text),
    })
}

fn mistyped(property: &str) -> AnswerError {
    AnswerError::Mistyped { property: property.to_owned() }
}

fn typed<'a>(name: &str, value: Value<'a>, annotation: &str) -> Result<Value<'a>, AnswerError> {
    let edm_type = EdmType::from_name(annotation).ok_or_else(|| mistyped(name))?;
    retype(value, edm_type).ok_or_else(|| mistyped(name))
}

impl<'a> AnswerEntity<'a> {
    fn add(
        &mut self,
        name: Cow<'a, str>,
        value: Value<'a>,
        annotation: Option<&str>,
    ) -> Result<(), AnswerError> {
        match (&*name, value) {
            ("PartitionKey", Value::String(key)) => self.partition_key = Some(key),
            ("RowKey", Value::String(key)) => self.row_key = Some(key),
            ("Timestamp", Value::String(text)) => {
                self.timestamp = Some(DateTime::parse(&text).ok_or_else(|| mistyped("Timestamp"))?);
            }
            ("PartitionKey" | "RowKey" | "Timestamp", _) => return Err(mistyped(&name)),
            (_, value) => {
                let value = match annotation {
                    Some(annotation) => typed(&name, value, annotation)?,
                    None => value,
                };
                self.properties.push(Property { name, value });
            }
        }
        Ok(())
    }

    /// Applies an annotation that came after its property. One without a property is ignored.
    fn annotate(&mut self, name: &str, annotation: &str) -> Result<(), AnswerError> {
        if let Some(property) = self.properties.iter_mut().find(|property| property.name == name) {
            let value = std::mem::replace(&mut property.value, Value::Boolean(false));
            property.value = typed(name, value, annotation)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::model::Guid;

    fn read(json: &str) -> AnswerEntity<'_> {
        read_entity(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_example_of_full_metadata_is_read() {
        // The specification, section 4.3.
        let entity = read(
            r#"{"odata.metadata":"https://ACCOUNT.table.core.windows.net/$metadata#t/@Element","odata.type":"ACCOUNT.t","odata.id":"https://ACCOUNT.table.core.windows.net/t(PartitionKey='p',RowKey='r')","odata.etag":"W/\"datetime'2020-07-24T14%3A34%3A32.2506465Z'\"","odata.editLink":"t(PartitionKey='p',RowKey='r')","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2020-07-24T14:34:32.2506465Z","age@odata.type":"Edm.Int64","age":"39","sex":"male","married":true,"ratio":3.1,"binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","other":20,"gone":null}"#,
        );
        assert_eq!(entity.partition_key.as_deref(), Some("p"));
        assert_eq!(entity.row_key.as_deref(), Some("r"));
        assert_eq!(entity.timestamp, DateTime::parse("2020-07-24T14:34:32.2506465Z"));
        assert_eq!(entity.etag.as_deref(), Some("W/\"datetime'2020-07-24T14%3A34%3A32.2506465Z'\""));
        let properties: Vec<(&str, Value<'_>)> =
            entity.properties.iter().map(|property| (&*property.name, property.value.clone())).collect();
        let expected = vec![
            ("age", Value::Int64(39)),
            ("sex", Value::String("male".into())),
            ("married", Value::Boolean(true)),
            ("ratio", Value::Double(3.1)),
            ("binary", Value::Binary(b"binary"[..].into())),
            ("other", Value::Int32(20)),
        ];
        assert_eq!(properties, expected);
    }

    #[test]
    fn annotations_may_follow_and_untyped_values_stay_as_they_are() {
        let check = |json: &str, expected: Value<'static>| {
            assert_eq!(read(json).properties[0].value, expected, "{json}")
        };
        check(r#"{"x":"9223372036854775807","x@odata.type":"Edm.Int64"}"#, Value::Int64(i64::MAX));
        check(r#"{"x":9223372036854775807,"x@odata.type":"Edm.Int64"}"#, Value::Int64(i64::MAX));
        check(r#"{"x":5,"x@odata.type":"Edm.Double"}"#, Value::Double(5.0));
        check(r#"{"x@odata.type":"Edm.Double","x":"-Infinity"}"#, Value::Double(f64::NEG_INFINITY));
        check(r#"{"x":"39"}"#, Value::String("39".into()));
        check(r#"{"x":5000000000}"#, Value::Int64(5_000_000_000));
        check(
            r#"{"y@odata.type":"Edm.Int64","x":"00000000000000000000000000000000","x@odata.type":"Edm.Guid"}"#,
            Value::Guid(Guid([0; 16])),
        );
    }

    #[test]
    fn pages_are_read_whatever_surrounds_them() {
        let page = |json: &'static str| {
            let mut rows = Vec::new();
            read_page(json.as_bytes(), |entity| rows.push(entity.row_key.unwrap_or_default().into_owned()))
                .map(|()| rows)
        };
        assert_eq!(page(r#"{"value":[]}"#), Ok(vec![]));
        let with_metadata =
            r#"{"odata.metadata":"m","value":[{"RowKey":"a"}, {"RowKey":"b"},{}],"more":{"x":[1]}}"#;
        assert_eq!(page(with_metadata), Ok(vec!["a".to_owned(), "b".to_owned(), String::new()]));
        for bad in
            ["", "{}", "[]", r#"{"value":{}}"#, r#"{"value":[1]}"#, r#"{"value":[{}]"#, r#"{"value":[{}]}x"#]
        {
            assert_eq!(page(bad), Err(AnswerError::Malformed), "{bad}");
        }
    }

    #[test]
    fn wrong_types_name_their_property() {
        for json in [
            r#"{"x":"a","x@odata.type":"Edm.Int64"}"#,
            r#"{"x":1,"x@odata.type":"Edm.Decimal"}"#,
            r#"{"x@odata.type":"Edm.Guid","x":true}"#,
        ] {
            let refused = read_entity(json.as_bytes());
            assert_eq!(refused, Err(AnswerError::Mistyped { property: "x".to_owned() }), "{json}");
        }
        let refused = read_entity(br#"{"PartitionKey":1}"#);
        assert_eq!(refused, Err(AnswerError::Mistyped { property: "PartitionKey".to_owned() }));
    }

    #[test]
    fn no_bytes_cause_a_panic() {
        let whole = br#"{"value":[{"odata.etag":"W/\"1\"","PartitionKey":"p\u00e9","Timestamp":"2020-07-24T14:34:32.25Z","x@odata.type":"Edm.Binary","x":"AQID","y":1.5e3,"z":{"a":[null]}}]}"#;
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200_000 {
            let mut body = whole.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..body.len());
                match random.u8(..4) {
                    0 => body[at] = random.u8(..),
                    1 => body.truncate(at.max(1)),
                    2 => drop(body.remove(at)),
                    _ => body[at] = whole[random.usize(..whole.len())],
                }
                if body.is_empty() {
                    body.push(b'{');
                }
            }
            let _ = read_page(&body, |_| {});
            let _ = read_entity(&body);
        }
    }
}
