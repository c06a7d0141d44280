//! Entities, tables and errors as JSON, in the service's member order, written straight into one buffer.
//!
//! Promises: exactly the bytes of the service, and JSON whatever a stored record has for names. Leaves to others: which
//! entities to write, and whether stored strings are UTF-8.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::json_text::{is_plain, needs_escape};
use super::negotiate::MetadataLevel;
use super::options::Selection;
use super::uri;
use crate::common::decimal::write_integer;
use crate::common::{BaseUrl, DateText, DateTime};
use crate::table::model::{EdmType, EntitySource, RawValue, write_double};

/// The context that all entities of one answer share.
pub struct EntityWriter<'a> {
    /// The account's base URL, without a trailing slash.
    pub base: BaseUrl<'a>,
    pub account: &'a str,
    pub table: &'a str,
    pub level: MetadataLevel,
    pub selection: Option<&'a Selection<'a>>,
}

impl EntityWriter<'_> {
    /// Writes one entity as the whole body. Returns the text of its Timestamp, which its ETag has too.
    pub fn write_single(&self, entity: &impl EntitySource, out: &mut Vec<u8>) -> DateText {
        out.push(b'{');
        if self.level != MetadataLevel::None {
            self.write_metadata("/@Element", out);
        }
        let timestamp = self.write_members(entity, out);
        end_object(out);
        timestamp
    }

    /// Begins a set; its elements follow, then [`end_set`].
    pub fn begin_set(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        if self.level != MetadataLevel::None {
            self.write_metadata("", out);
        }
        out.extend_from_slice(b"\"value\":[");
    }

    /// Writes one element of a set, with a comma in front if it needs one.
    pub fn write_element(&self, entity: &impl EntitySource, out: &mut Vec<u8>) {
        if out.last() == Some(&b'}') {
            out.push(b',');
        }
        out.push(b'{');
        self.write_members(entity, out);
        end_object(out);
    }

    fn write_metadata(&self, suffix: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"odata.metadata\":\"");
        write_base(self.base, out);
        out.extend_from_slice(b"/$metadata#");
        // The name of a table needs no escape.
        out.extend_from_slice(self.table.as_bytes());
        out.extend_from_slice(suffix.as_bytes());
        if let Some(selection) = self.selection {
            out.extend_from_slice(b"&$select=");
            escape(selection.text, out);
        }
        out.extend_from_slice(b"\",");
    }

    fn write_members(&self, entity: &impl EntitySource, out: &mut Vec<u8>) -> DateText {
        if self.level == MetadataLevel::Full {
            write_name("odata.type", out);
            out.push(b'"');
            out.extend_from_slice(self.account.as_bytes());
            out.push(b'.');
            escape(self.table, out);
            out.extend_from_slice(b"\",\"odata.id\":\"");
            write_base(self.base, out);
            out.push(b'/');
            uri::write_entity_path(self.table, entity.partition_key(), entity.row_key(), out);
            out.extend_from_slice(b"\",");
        }
        let timestamp = entity.timestamp().text();
        if self.level != MetadataLevel::None {
            out.extend_from_slice(b"\"odata.etag\":\"W/\\\"datetime'");
            timestamp.write_escaped(out);
            out.extend_from_slice(b"'\\\"\",");
        }
        if self.level == MetadataLevel::Full {
            out.extend_from_slice(b"\"odata.editLink\":\"");
            uri::write_entity_path(self.table, entity.partition_key(), entity.row_key(), out);
            out.extend_from_slice(b"\",");
        }
        match self.selection {
            Some(selection) if !selection.names.is_empty() => {
                self.write_selected(entity, selection, &timestamp, out)
            }
            _ => self.write_all(entity, &timestamp, out),
        }
        timestamp
    }

    fn write_all(&self, entity: &impl EntitySource, timestamp: &DateText, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"PartitionKey\":\"");
        escape(entity.partition_key(), out);
        out.extend_from_slice(b"\",\"RowKey\":\"");
        escape(entity.row_key(), out);
        out.extend_from_slice(b"\",");
        self.write_timestamp(timestamp, out);
        entity.for_each_raw(|name, value| self.write_property(name, value, out));
    }

    fn write_selected(
        &self,
        entity: &impl EntitySource,
        selection: &Selection<'_>,
        timestamp: &DateText,
        out: &mut Vec<u8>,
    ) {
        for name in &selection.names {
            match *name {
                "PartitionKey" => {
                    write_name(name, out);
                    write_string(entity.partition_key(), out);
                    out.push(b',');
                }
                "RowKey" => {
                    write_name(name, out);
                    write_string(entity.row_key(), out);
                    out.push(b',');
                }
                "Timestamp" => self.write_timestamp(timestamp, out),
                _ => match entity.property(name) {
                    Some(value) => self.write_property(name.as_bytes(), (&value).into(), out),
                    // An annotation is no property. A null would stand beside the one that is written anyway.
                    None if is_annotation(name) => {}
                    None => {
                        write_name(name, out);
                        out.extend_from_slice(b"null,");
                    }
                },
            }
        }
    }

    fn write_timestamp(&self, timestamp: &DateText, out: &mut Vec<u8>) {
        if self.level == MetadataLevel::Full {
            out.extend_from_slice(b"\"Timestamp@odata.type\":\"Edm.DateTime\",");
        }
        out.extend_from_slice(b"\"Timestamp\":\"");
        timestamp.write(out);
        out.extend_from_slice(b"\",");
    }

    fn write_property(&self, name: &[u8], value: RawValue<'_>, out: &mut Vec<u8>) {
        if self.level != MetadataLevel::None
            && let Some(type_name) = needed_type(value)
        {
            out.push(b'"');
            escape_bytes(name, out);
            out.extend_from_slice(b"@odata.type\":\"");
            out.extend_from_slice(type_name.as_bytes());
            out.extend_from_slice(b"\",");
        }
        out.push(b'"');
        escape_bytes(name, out);
        // Most properties are strings, so their quotes are written together with what is beside them.
        if let RawValue::String(text) = value {
            out.extend_from_slice(b"\":\"");
            escape_bytes(text, out);
            out.extend_from_slice(b"\",");
            return;
        }
        out.extend_from_slice(b"\":");
        write_value(value, out);
        out.push(b',');
    }
}

fn write_base(base: BaseUrl<'_>, out: &mut Vec<u8>) {
    let [scheme, host, path] = base.parts();
    out.extend_from_slice(scheme.as_bytes());
    escape(host, out);
    escape(path, out);
}

/// Ends a set.
pub fn end_set(out: &mut Vec<u8>) {
    out.extend_from_slice(b"]}");
}

/// The context that all tables of one answer share.
pub struct TableWriter<'a> {
    pub base: BaseUrl<'a>,
    pub account: &'a str,
    pub level: MetadataLevel,
}

impl TableWriter<'_> {
    pub fn write_single(&self, name: &str, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_metadata("/@Element", out);
        self.write_members(name, out);
        end_object(out);
    }

    pub fn begin_set(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_metadata("", out);
        out.extend_from_slice(b"\"value\":[");
    }

    pub fn write_element(&self, name: &str, out: &mut Vec<u8>) {
        if out.last() == Some(&b'}') {
            out.push(b',');
        }
        out.push(b'{');
        self.write_members(name, out);
        end_object(out);
    }

    fn write_metadata(&self, suffix: &str, out: &mut Vec<u8>) {
        if self.level != MetadataLevel::None {
            out.extend_from_slice(b"\"odata.metadata\":\"");
            write_base(self.base, out);
            out.extend_from_slice(b"/$metadata#Tables");
            out.extend_from_slice(suffix.as_bytes());
            out.extend_from_slice(b"\",");
        }
    }

    fn write_members(&self, name: &str, out: &mut Vec<u8>) {
        if self.level == MetadataLevel::Full {
            out.extend_from_slice(b"\"odata.type\":\"");
            escape(self.account, out);
            out.extend_from_slice(b".Tables\",\"odata.id\":\"");
            write_base(self.base, out);
            out.extend_from_slice(b"/Tables('");
            escape(name, out);
            out.extend_from_slice(b"')\",\"odata.editLink\":\"Tables('");
            escape(name, out);
            out.extend_from_slice(b"')\",");
        }
        out.extend_from_slice(b"\"TableName\":");
        write_string(name, out);
        out.push(b',');
    }
}

/// `{"odata.error":...}` without white space: clients find the index of a failed batch operation by its exact text.
pub fn write_error(code: &str, message: &str, request_id: &str, time: DateTime, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"odata.error\":{\"code\":");
    write_string(code, out);
    out.extend_from_slice(b",\"message\":{\"lang\":\"en-US\",\"value\":\"");
    escape(message, out);
    out.extend_from_slice(b"\\nRequestId:");
    escape(request_id, out);
    out.extend_from_slice(b"\\nTime:");
    time.write_padded(out);
    out.extend_from_slice(b"\"}}}");
}

/// Every member ends with a comma; the closing brace replaces the last one.
pub(super) fn end_object(out: &mut Vec<u8>) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b'}');
}

/// The type annotation of a value whose type is not evident in JSON.
fn needed_type(value: RawValue<'_>) -> Option<&'static str> {
    let edm_type = match value {
        RawValue::Int64(_) => EdmType::Int64,
        RawValue::DateTime(_) => EdmType::DateTime,
        RawValue::Guid(_) => EdmType::Guid,
        RawValue::Binary(_) => EdmType::Binary,
        RawValue::Double(value) if !value.is_finite() => EdmType::Double,
        RawValue::Double(_) | RawValue::String(_) | RawValue::Int32(_) | RawValue::Boolean(_) => return None,
    };
    Some(edm_type.name())
}

/// Whether the name is that of an annotation, which no property can have.
fn is_annotation(name: &str) -> bool {
    name.starts_with("odata.") || name.contains('@')
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    write_string(name, out);
    out.push(b':');
}

pub(super) fn write_value(value: RawValue<'_>, out: &mut Vec<u8>) {
    match value {
        RawValue::String(text) => quoted(out, |out| escape_bytes(text, out)),
        RawValue::Int32(value) => write_integer(i64::from(value), out),
        RawValue::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        RawValue::Double(value) if value.is_finite() => write_double(value, out),
        RawValue::Double(value) => quoted(out, |out| write_double(value, out)),
        RawValue::Int64(value) => quoted(out, |out| write_integer(value, out)),
        RawValue::DateTime(value) => quoted(out, |out| value.write(out)),
        RawValue::Guid(value) => quoted(out, |out| value.write(out)),
        RawValue::Binary(bytes) => quoted(out, |out| write_base64(bytes, out)),
    }
}

fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written =
        STANDARD.encode_slice(bytes, &mut out[start..]).expect("the room is exactly what Base64 needs");
    out.truncate(start + written);
}

pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape(text, out);
    out.push(b'"');
}

fn escape(text: &str, out: &mut Vec<u8>) {
    escape_bytes(text.as_bytes(), out);
}

/// Few texts contain anything that needs an escape, so most are copied as they are.
pub(super) fn escape_bytes(text: &[u8], out: &mut Vec<u8>) {
    if is_plain(text) {
        out.extend_from_slice(text);
    } else {
        escape_in_runs(text, out);
    }
}

fn escape_in_runs(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !needs_escape(byte) {
            continue;
        }
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.extend_from_slice(&bytes[copied..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::model::Value;

    #[test]
    fn what_json_cannot_hold_is_escaped() {
        let mut out = Vec::new();
        escape("a\"b\\c\u{1}\n\r\t\u{8}\u{C}é\u{7F}", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "a\\\"b\\\\c\\u0001\\n\\r\\t\\b\\fé\u{7F}");
    }

    struct Sample(Vec<(&'static str, Value<'static>)>);

    impl EntitySource for Sample {
        fn partition_key(&self) -> &str {
            "p"
        }
        fn row_key(&self) -> &str {
            "r"
        }
        fn timestamp(&self) -> DateTime {
            DateTime::parse("2020-07-24T14:34:32.2506465Z").unwrap()
        }
        fn property(&self, name: &str) -> Option<Value<'_>> {
            self.0.iter().find(|(found, _)| *found == name).map(|(_, value)| value.clone())
        }
        fn for_each_raw(&self, mut visit: impl FnMut(&[u8], RawValue<'_>)) {
            self.0.iter().for_each(|(name, value)| visit(name.as_bytes(), value.into()));
        }
    }

    fn write(
        level: MetadataLevel,
        select: Option<&Selection<'_>>,
        properties: Vec<(&'static str, Value<'static>)>,
    ) -> String {
        let writer = EntityWriter {
            base: BaseUrl { is_https: true, host: "ACCOUNT.table.core.windows.net", path: "" },
            account: "ACCOUNT",
            table: "t",
            level,
            selection: select,
        };
        let mut out = Vec::new();
        writer.write_single(&Sample(properties), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn full_metadata_is_written_as_the_service_writes_it() {
        let properties = vec![
            ("age", Value::Int64(39)),
            ("sex", Value::String("male".into())),
            ("married", Value::Boolean(true)),
            ("ratio", Value::Double(3.1)),
            ("binary", Value::Binary(b"binary"[..].into())),
            ("other", Value::Int32(20)),
        ];
        // The example of the specification, section 4.3.
        let expected = r#"{"odata.metadata":"https://ACCOUNT.table.core.windows.net/$metadata#t/@Element","odata.type":"ACCOUNT.t","odata.id":"https://ACCOUNT.table.core.windows.net/t(PartitionKey='p',RowKey='r')","odata.etag":"W/\"datetime'2020-07-24T14%3A34%3A32.2506465Z'\"","odata.editLink":"t(PartitionKey='p',RowKey='r')","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2020-07-24T14:34:32.2506465Z","age@odata.type":"Edm.Int64","age":"39","sex":"male","married":true,"ratio":3.1,"binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","other":20}"#;
        assert_eq!(write(MetadataLevel::Full, None, properties), expected);
    }

    #[test]
    fn a_selection_gives_null_for_what_is_not_there() {
        let selection = Selection { text: "age,RowKey,gone", names: vec!["age", "RowKey", "gone"] };
        let json = write(
            MetadataLevel::None,
            Some(&selection),
            vec![("age", Value::Int32(1)), ("sex", Value::Int32(2))],
        );
        assert_eq!(json, r#"{"age":1,"RowKey":"r","gone":null}"#);
        let json = write(MetadataLevel::Minimal, Some(&selection), vec![]);
        assert!(json.contains(r##"$metadata#t/@Element&$select=age,RowKey,gone","odata.etag""##), "{json}");
    }

    #[test]
    fn a_selected_annotation_is_not_written_twice() {
        let names = vec!["odata.etag", "age", "age@odata.type"];
        let selection = Selection { text: "odata.etag,age,age@odata.type", names };
        let properties = || vec![("age", Value::Int64(39))];
        let json = write(MetadataLevel::Minimal, Some(&selection), properties());
        assert_eq!(json.matches(r#""odata.etag""#).count(), 1, "{json}");
        assert!(json.ends_with(r#"","age@odata.type":"Edm.Int64","age":"39"}"#), "{json}");
        assert_eq!(write(MetadataLevel::None, Some(&selection), properties()), r#"{"age":"39"}"#);
        let selection = Selection { text: "odata.etag", names: vec!["odata.etag"] };
        assert_eq!(write(MetadataLevel::None, Some(&selection), properties()), "{}");
    }

    #[test]
    fn special_doubles_are_strings_with_a_type() {
        let json = write(
            MetadataLevel::Minimal,
            None,
            vec![("x", Value::Double(f64::NAN)), ("y", Value::Double(1.0))],
        );
        assert!(json.ends_with(r#""x@odata.type":"Edm.Double","x":"NaN","y":1.0}"#), "{json}");
    }

    #[test]
    fn what_is_escaped_reads_back_the_same() {
        let text: String = (0u8..128).map(char::from).chain("é日\u{1F600}\u{2028}".chars()).collect();
        let mut out = Vec::new();
        write_string(&text, &mut out);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
