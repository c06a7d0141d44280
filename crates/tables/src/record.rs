//! An entity as stored bytes: format byte, size, property count, then name, type tag and value of each property in
//! the order given. `docs/format.md` has the layout byte by byte.
//!
//! Promises: finding a property and evaluating a filter need no decoded entity; decoding returns what was encoded. The
//! engine keeps the keys and the Timestamp, so they are not in a record.

use std::borrow::Cow;

use bytes::Bytes;
use engine::{MergeRefusal, OwnedKey, Version, varint};
use protocol::common::DateTime;
use protocol::table::filter::{FilterProperty, Properties};
use protocol::table::model::{EntitySource, Guid, Property, RawValue, Value};
use protocol::{ErrorCode, ServiceError};

use crate::limits;

const FORMAT: u8 = 1;
/// Format, size (u32), property count (u8).
const HEAD_BYTES: usize = 6;

pub(crate) mod tag {
    pub(crate) const STRING: u8 = 1;
    pub(crate) const INT32: u8 = 2;
    pub(crate) const INT64: u8 = 3;
    pub(crate) const DOUBLE: u8 = 4;
    pub(crate) const FALSE: u8 = 5;
    pub(crate) const TRUE: u8 = 6;
    pub(crate) const DATE_TIME: u8 = 7;
    pub const GUID: u8 = 8;
    pub(crate) const BINARY: u8 = 9;

    /// The size of each tag's values; `None`: it stands before the value. Tag 0 is no tag, but has no size.
    pub(crate) const VALUE_BYTES: [Option<u8>; 10] =
        [None, None, Some(4), Some(8), Some(8), Some(0), Some(0), Some(8), Some(16), None];
}

/// The stored form of properties whose limits were checked. A patch for [`merge`] has the same form.
pub fn encode(size: usize, properties: &[Property<'_>]) -> Bytes {
    let exact = properties.iter().map(encoded_len).sum::<usize>();
    // The exact capacity, because spare room would be kept for as long as the record is stored.
    let mut out = Vec::with_capacity(HEAD_BYTES + exact);
    begin(size, properties.len(), &mut out);
    for property in properties {
        varint::push(&mut out, property.name.len());
        out.extend_from_slice(property.name.as_bytes());
        push_value(&property.value, &mut out);
    }
    out.into()
}

fn encoded_len(property: &Property<'_>) -> usize {
    let text_len = |len: usize| varint::size_bytes(len) + len;
    let value_len = match &property.value {
        Value::String(text) => text_len(text.len()),
        Value::Binary(bytes) => text_len(bytes.len()),
        Value::Int32(_) => 4,
        Value::Int64(_) | Value::Double(_) | Value::DateTime(_) => 8,
        Value::Boolean(_) => 0,
        Value::Guid(_) => 16,
    };
    text_len(property.name.len()) + 1 + value_len
}

fn begin(size: usize, count: usize, out: &mut Vec<u8>) {
    assert!(
        size <= limits::ENTITY_SIZE_BYTES_MAX && count <= limits::PROPERTY_COUNT_MAX,
        "limits are checked before encoding"
    );
    out.push(FORMAT);
    out.extend_from_slice(&(size as u32).to_le_bytes());
    out.push(count as u8);
}

fn push_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => {
            out.push(tag::STRING);
            varint::push(out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
        Value::Binary(bytes) => {
            out.push(tag::BINARY);
            varint::push(out, bytes.len());
            out.extend_from_slice(bytes);
        }
        Value::Int32(value) => push_fixed(tag::INT32, &value.to_le_bytes(), out),
        Value::Int64(value) => push_fixed(tag::INT64, &value.to_le_bytes(), out),
        Value::Double(value) => push_fixed(tag::DOUBLE, &value.to_bits().to_le_bytes(), out),
        Value::Boolean(value) => out.push(if *value { tag::TRUE } else { tag::FALSE }),
        Value::DateTime(value) => push_fixed(tag::DATE_TIME, &value.ticks().to_le_bytes(), out),
        Value::Guid(value) => push_fixed(tag::GUID, &value.0, out),
    }
}

fn push_fixed(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

/// A record in the engine's page, not copied.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub(crate) size: u32,
    pub(crate) property_count: u8,
    pub(crate) entries: &'a [u8],
}

/// One property in a record. `encoded` is the whole of it: name, tag and value.
pub(crate) struct Entry<'a> {
    encoded: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) tag: u8,
    value: &'a [u8],
}

impl<'a> Record<'a> {
    /// `None` unless the bytes begin like a record in a format that this build knows.
    pub fn open(bytes: &'a [u8]) -> Option<Record<'a>> {
        let (head, entries) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let size = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        (head[0] == FORMAT).then_some(Record { size, property_count: head[HEAD_BYTES - 1], entries })
    }

    pub(crate) fn entries(self) -> Entries<'a> {
        Entries { rest: self.entries }
    }

    pub(crate) fn find(self, name: &str) -> Option<RawValue<'a>> {
        let mut entries = self.entries();
        while let Some((found, tag, value)) = entries.read() {
            if found == name.as_bytes() {
                return raw_value(tag, value);
            }
        }
        None
    }

    /// The value of the property whose entry starts at this offset, if it has this name. The caller knows that an entry
    /// starts there.
    pub(crate) fn value_at(self, offset: usize, name: &str) -> Option<RawValue<'a>> {
        let mut entries = Entries { rest: self.entries.get(offset..)? };
        let (found, tag, value) = entries.read()?;
        if is_same(found, name.as_bytes()) { raw_value(tag, value) } else { None }
    }
}

/// Whether two names are the same. Most are short, and calling a comparison for every row costs more than making it.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match (a.len(), a.first_chunk::<4>(), a.last_chunk::<4>()) {
            (..=8, Some(first), Some(last)) => b.first_chunk() == Some(first) && b.last_chunk() == Some(last),
            _ => a == b,
        }
}

/// Whether the bytes are a complete record. For bytes that our checksums do not cover, and for verification.
pub fn is_record(bytes: &[u8]) -> bool {
    let Some(record) = Record::open(bytes) else { return false };
    let mut entries = record.entries();
    let (mut count, mut size_sum) = (0usize, 0usize);
    while !entries.rest.is_empty() {
        let Some((name, tag, value)) = entries.read() else { return false };
        let Some(size) = (Entry { encoded: &[], name, tag, value }).size() else { return false };
        count += 1;
        size_sum += size;
    }
    // The size is that of the entity, so it includes the keys, which are not in the record.
    let size = record.size as usize;
    size_sum <= size && size <= limits::ENTITY_SIZE_BYTES_MAX && count == usize::from(bytes[HEAD_BYTES - 1])
}

/// Checks an entity that arrives with its stored record and not as a request, for example from a backup: it must be,
/// byte for byte, what a request that passed every check would have stored. The error says what is wrong.
pub fn check_stored(partition_key: &str, row_key: &str, bytes: &[u8]) -> Result<(), Cow<'static, str>> {
    let message = |error: ServiceError| Cow::Owned(error.message().to_owned());
    limits::check_payload_keys(partition_key, row_key).map_err(message)?;
    let undecodable = || Cow::Borrowed("its record cannot be decoded");
    let record = Record::open(bytes).ok_or_else(undecodable)?;
    let mut entries = record.entries();
    let mut properties: Vec<Property<'_>> = Vec::new();
    while !entries.rest.is_empty() {
        // Before anything is allocated for it.
        if properties.len() == limits::PROPERTY_COUNT_MAX {
            return Err(message(ErrorCode::TooManyProperties.into()));
        }
        let (name, tag, value) = entries.read().ok_or_else(undecodable)?;
        let entry = Entry { encoded: &[], name, tag, value };
        let (name, value) = entry.name().zip(entry.value()).ok_or_else(undecodable)?;
        if matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
            return Err(Cow::Owned(format!("a property has the reserved name {name}")));
        }
        if properties.iter().any(|property| property.name == name) {
            return Err(message(ErrorCode::DuplicatePropertiesSpecified.into()));
        }
        properties.push(Property { name: name.into(), value });
    }
    let size = limits::check_entity(partition_key, row_key, &properties).map_err(message)?;
    match encode(size, &properties) == bytes {
        true => Ok(()),
        false => Err(Cow::Borrowed("its record does not have the form in which records are stored")),
    }
}

pub(crate) struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let start = self.rest;
        if start.is_empty() {
            return None;
        }
        let entry = self.read();
        // Bytes that do not decode end the record. Whoever gives a row out has compared its checksum before.
        let (name, tag, value) = entry?;
        Some(Entry { encoded: &start[..start.len() - self.rest.len()], name, tag, value })
    }
}

impl<'a> Entries<'a> {
    // A filter reads entries more often than anything else is done, so this is one straight run of steps.
    #[inline]
    fn read(&mut self) -> Option<(&'a [u8], u8, &'a [u8])> {
        let name_len = varint::pull(&mut self.rest)?;
        let (name, rest) = self.rest.split_at_checked(name_len)?;
        let (tag, mut rest) = rest.split_first()?;
        let value_len = match tag::VALUE_BYTES.get(usize::from(*tag))? {
            Some(size) => usize::from(*size),
            None => varint::pull(&mut rest)?,
        };
        let (value, rest) = rest.split_at_checked(value_len)?;
        self.rest = rest;
        Some((name, *tag, value))
    }
}

impl<'a> Entry<'a> {
    fn name(&self) -> Option<&'a str> {
        std::str::from_utf8(self.name).ok()
    }

    fn value(&self) -> Option<Value<'a>> {
        self.raw_value()?.checked()
    }

    fn raw_value(&self) -> Option<RawValue<'a>> {
        raw_value(self.tag, self.value)
    }

    fn size(&self) -> Option<usize> {
        Some(limits::property_size(self.name()?, &self.value()?))
    }
}

fn raw_value(tag: u8, value: &[u8]) -> Option<RawValue<'_>> {
    Some(match tag {
        tag::STRING => RawValue::String(value),
        tag::BINARY => RawValue::Binary(value),
        tag::INT32 => RawValue::Int32(i32::from_le_bytes(value.try_into().ok()?)),
        tag::INT64 => RawValue::Int64(i64::from_le_bytes(value.try_into().ok()?)),
        tag::DOUBLE => RawValue::Double(f64::from_bits(u64::from_le_bytes(value.try_into().ok()?))),
        tag::FALSE => RawValue::Boolean(false),
        tag::TRUE => RawValue::Boolean(true),
        tag::DATE_TIME => {
            RawValue::DateTime(DateTime::from_ticks(u64::from_le_bytes(value.try_into().ok()?)))
        }
        tag::GUID => RawValue::Guid(Guid(value.try_into().ok()?)),
        _ => return None,
    })
}

const REFUSED_DAMAGED: u16 = 0;
const REFUSED_TOO_MANY_PROPERTIES: u16 = 1;
const REFUSED_TOO_LARGE: u16 = 2;

/// The engine's merge function. Properties in the patch overwrite in place, others stay as they are, and new ones are
/// appended.
pub fn merge(old: Option<&[u8]>, patch: &[u8]) -> Result<Bytes, MergeRefusal> {
    let Some(old) = old else { return Ok(Bytes::copy_from_slice(patch)) };
    let damaged = || MergeRefusal(REFUSED_DAMAGED);
    let old = Record::open(old).ok_or_else(damaged)?;
    let new = Record::open(patch).ok_or_else(damaged)?;
    let patches: Vec<Entry<'_>> = new.entries().collect();
    let mut used = vec![false; patches.len()];

    let mut size = old.size as usize;
    let mut count = 0;
    let mut body = Vec::with_capacity(old.entries.len() + new.entries.len());
    for entry in old.entries() {
        match patches.iter().position(|patch| patch.name == entry.name) {
            None => body.extend_from_slice(entry.encoded),
            Some(at) => {
                used[at] = true;
                size = size + patches[at].size().ok_or_else(damaged)? - entry.size().ok_or_else(damaged)?;
                body.extend_from_slice(patches[at].encoded);
            }
        }
        count += 1;
    }
    for (patch, _) in patches.iter().zip(used).filter(|(_, used)| !used) {
        size += patch.size().ok_or_else(damaged)?;
        body.extend_from_slice(patch.encoded);
        count += 1;
    }
    if count > limits::PROPERTY_COUNT_MAX {
        return Err(MergeRefusal(REFUSED_TOO_MANY_PROPERTIES));
    }
    if size > limits::ENTITY_SIZE_BYTES_MAX {
        return Err(MergeRefusal(REFUSED_TOO_LARGE));
    }
    let mut out = Vec::with_capacity(HEAD_BYTES + body.len());
    begin(size, count, &mut out);
    out.extend_from_slice(&body);
    Ok(out.into())
}

/// Translates a refusal of [`merge`] into the service's error.
pub(crate) fn refusal_error(refusal: MergeRefusal) -> ServiceError {
    match refusal.0 {
        REFUSED_TOO_MANY_PROPERTIES => ErrorCode::TooManyProperties.into(),
        REFUSED_TOO_LARGE => ErrorCode::EntityTooLarge.into(),
        _ => ServiceError::with_source(ErrorCode::InternalError, "a stored record does not decode"),
    }
}

/// A stored entity, read in place: nothing is copied.
pub struct EntityView<'a> {
    partition_key: &'a str,
    row_key: &'a str,
    timestamp: DateTime,
    record: Record<'a>,
}

impl<'a> EntityView<'a> {
    pub fn open(
        partition_key: &'a str,
        row_key: &'a str,
        version: Version,
        value: &'a [u8],
    ) -> Option<EntityView<'a>> {
        let record = Record::open(value)?;
        Some(EntityView { partition_key, row_key, timestamp: DateTime::from_ticks(version.ticks()), record })
    }

    /// Its size by the service's rules, keys and names included.
    pub fn size_bytes(&self) -> u32 {
        self.record.size
    }

    /// Without the keys and the Timestamp.
    pub fn property_count(&self) -> u8 {
        self.record.property_count
    }
}

impl EntitySource for EntityView<'_> {
    fn partition_key(&self) -> &str {
        self.partition_key
    }

    fn row_key(&self) -> &str {
        self.row_key
    }

    fn timestamp(&self) -> DateTime {
        self.timestamp
    }

    fn property(&self, name: &str) -> Option<Value<'_>> {
        self.record.find(name)?.checked()
    }

    fn for_each_raw(&self, mut visit: impl FnMut(&[u8], RawValue<'_>)) {
        let mut entries = self.record.entries();
        while let Some((name, tag, value)) = entries.read() {
            if let Some(value) = raw_value(tag, value) {
                visit(name, value);
            }
        }
    }
}

impl Properties for EntityView<'_> {
    fn property(&self, property: &FilterProperty) -> Option<RawValue<'_>> {
        match property {
            FilterProperty::PartitionKey => Some(RawValue::String(self.partition_key.as_bytes())),
            FilterProperty::RowKey => Some(RawValue::String(self.row_key.as_bytes())),
            FilterProperty::Timestamp => Some(RawValue::DateTime(self.timestamp)),
            FilterProperty::TableName => None,
            FilterProperty::Custom(name) => self.record.find(name),
        }
    }
}

/// A copied entity, which outlives the engine's page.
pub struct StoredEntity {
    pub key: OwnedKey,
    pub version: Version,
    pub record: Bytes,
}

impl StoredEntity {
    pub fn view(&self) -> Option<EntityView<'_>> {
        EntityView::open(&self.key.partition, &self.key.row, self.version, &self.record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(name: &'static str, value: Value<'static>) -> Property<'static> {
        Property { name: name.into(), value }
    }

    fn record(properties: &[Property<'_>]) -> Bytes {
        encode(limits::check_entity("p", "r", properties).unwrap(), properties)
    }

    fn decode(record: &[u8]) -> Vec<(String, Value<'static>)> {
        let entries = Record::open(record).unwrap().entries();
        entries.map(|entry| (entry.name().unwrap().to_owned(), entry.value().unwrap().into_owned())).collect()
    }

    fn sample() -> Vec<Property<'static>> {
        vec![
            property("s", Value::String("日本".into())),
            property("empty", Value::String("".into())),
            property("i", Value::Int32(-1)),
            property("l", Value::Int64(i64::MIN)),
            property("d", Value::Double(-0.0)),
            property("t", Value::Boolean(true)),
            property("f", Value::Boolean(false)),
            property("when", Value::DateTime(DateTime::MAX)),
            property("g", Value::Guid(Guid([7; 16]))),
            property("b", Value::Binary(vec![0, 255].into())),
            property("long", Value::String("x".repeat(300).into())),
        ]
    }

    #[test]
    fn names_are_the_same_if_their_bytes_are() {
        let names =
            ["", "a", "abc", "abcd", "abcde", "abXde", "abcdefgh", "abcXefgh", "abcdefghi", "Xbcdefghi"];
        for a in names {
            for b in names {
                assert_eq!(is_same(a.as_bytes(), b.as_bytes()), a == b, "{a} {b}");
            }
        }
    }

    #[test]
    fn what_is_encoded_decodes_the_same_in_the_same_order() {
        let expected: Vec<_> = sample().into_iter().map(|p| (p.name.into_owned(), p.value)).collect();
        assert_eq!(decode(&record(&sample())), expected);
        assert_eq!(
            Record::open(&record(&sample())).unwrap().find("when"),
            Some(RawValue::DateTime(DateTime::MAX))
        );
        assert_eq!(Record::open(&record(&sample())).unwrap().find("When"), None);
    }

    #[test]
    fn the_room_for_a_record_is_exact() {
        for len in [0, 1, 127, 128, 16_383, 16_384, 30_000] {
            let properties = [property("s", Value::String("x".repeat(len).into()))];
            let expected: usize = properties.iter().map(encoded_len).sum();
            assert_eq!(record(&properties).len(), HEAD_BYTES + expected, "{len}");
        }
        let expected: usize = sample().iter().map(encoded_len).sum();
        assert_eq!(record(&sample()).len(), HEAD_BYTES + expected);
    }

    #[test]
    fn merge_keeps_properties_it_does_not_mention_and_counts_the_size() {
        let old = record(&[property("a", Value::Int32(1)), property("b", Value::Int32(2))]);
        let patch = record(&[property("c", Value::Int32(3)), property("a", Value::String("one".into()))]);
        let merged = merge(Some(&old), &patch).unwrap();
        let expected = [
            property("a", Value::String("one".into())),
            property("b", Value::Int32(2)),
            property("c", Value::Int32(3)),
        ];
        assert_eq!(merged, record(&expected));
        assert_eq!(merge(None, &patch).unwrap(), patch);
    }

    #[test]
    fn merge_refuses_what_would_break_a_limit() {
        let many = |prefix: &str, count: usize| {
            let properties: Vec<_> = (0..count)
                .map(|n| Property { name: format!("{prefix}{n}").into(), value: Value::Int32(0) })
                .collect();
            record(&properties)
        };
        assert!(merge(Some(&many("a", 126)), &many("b", 126)).is_ok());
        assert_eq!(
            merge(Some(&many("a", 127)), &many("b", 126)),
            Err(MergeRefusal(REFUSED_TOO_MANY_PROPERTIES))
        );
        let large = |prefix: &str| {
            let properties: Vec<_> = (0..10)
                .map(|n| Property {
                    name: format!("{prefix}{n}").into(),
                    value: Value::Binary(vec![0; 60_000].into()),
                })
                .collect();
            record(&properties)
        };
        assert_eq!(merge(Some(&large("a")), &large("b")), Err(MergeRefusal(REFUSED_TOO_LARGE)));
        assert_eq!(merge(Some(&large("a")), &large("a")), Ok(large("a")));
    }

    #[test]
    fn damaged_bytes_are_not_a_record() {
        assert!(Record::open(&[]).is_none());
        assert!(Record::open(&[9, 0, 0, 0, 0, 0]).is_none());
        assert_eq!(merge(Some(&[9, 9]), &record(&[])), Err(MergeRefusal(REFUSED_DAMAGED)));
    }

    #[test]
    fn a_stored_entity_must_be_what_a_request_would_have_stored() {
        let check = |partition: &str, row: &str, bytes: &[u8]| check_stored(partition, row, bytes);
        let whole = record(&sample());
        assert_eq!(check("p", "r", &whole), Ok(()));
        let patch = record(&[property("new", Value::Int32(1)), property("s", Value::Boolean(true))]);
        assert_eq!(check("p", "r", &merge(Some(&whole), &patch).unwrap()), Ok(()));
        let refused = |partition: &str, row: &str, bytes: &[u8], part: &str| {
            let cause = check(partition, row, bytes).unwrap_err();
            assert!(cause.contains(part), "{cause}");
        };
        refused("longer", "r", &whole, "form");
        refused("a/b", "r", &whole, "out of range");
        refused("p", "\u{1}", &whole, "out of range");
        refused("p", &"k".repeat(100_000), &whole, "exceeds the maximum");
        refused("p", "r", &whole[..whole.len() - 1], "decoded");
        refused("p", "r", b"junk", "decoded");
        let raw = |properties: &[Property<'_>]| {
            let size =
                properties.iter().map(|property| limits::property_size(&property.name, &property.value));
            encode(limits::entity_base_size("p", "r") + size.sum::<usize>(), properties)
        };
        let one = |name: &'static str, value: Value<'static>| raw(&[property(name, value)]);
        refused("p", "r", &one("Timestamp", Value::Int32(1)), "reserved");
        refused("p", "r", &one("a b", Value::Int32(1)), "name");
        refused("p", "r", &one("s", Value::String("x".repeat(32_769).into())), "exceeds the maximum");
        refused("p", "r", &one("t", Value::DateTime(DateTime::from_ticks(1))), "out of range");
        let twice = raw(&[property("a", Value::Int32(1)), property("a", Value::Int32(1))]);
        refused("p", "r", &twice, "more than once");
        let mut after_9999 = one("t", Value::DateTime(DateTime::MAX)).to_vec();
        let last = after_9999.len() - 1;
        after_9999[last] = 0xFF;
        refused("p", "r", &after_9999, "form");
    }

    #[test]
    fn a_whole_record_is_told_from_one_that_is_not() {
        let whole = record(&sample());
        assert!(is_record(&whole));
        assert!(is_record(&record(&[])));
        for length in 0..whole.len() {
            assert!(!is_record(&whole[..length]), "cut at {length}");
        }
        let changed = |at: usize, to: u8| {
            let mut bytes = whole.to_vec();
            bytes[at] = to;
            is_record(&bytes)
        };
        assert!(!changed(0, 2), "another format");
        assert!(!changed(1, 0), "a size below that of the properties");
        assert!(!changed(4, 9), "a size above the limit");
        assert!(!changed(5, 7), "another count");
        assert!(!is_record(&[&whole[..], &[0]].concat()));
    }
}
