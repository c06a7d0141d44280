//! Where a filter's properties are in a record, remembered from row to row.
//!
//! Rows of one table mostly have the same properties in the same order. A [`PropertyPath`] is what the last row looked like
//! in front of a property: the lengths of names and the types. A row that looks the same is stepped through without
//! looking at a name, but for the last one. Promises: what is found is what [`Record::find`] finds, whatever the
//! rows look like. Leaves to others: the filter itself.

use std::cell::RefCell;

use engine::varint;
use protocol::common::DateTime;
use protocol::table::filter::{FilterProperty, Properties};
use protocol::table::model::RawValue;

use crate::record::{Record, tag};

/// Filters with more properties than this search for the others in every row.
const PATH_COUNT_MAX: usize = 16;

/// The paths of one filter. Not shared between threads: each scan has its own.
#[derive(Default)]
pub(crate) struct PropertyPaths {
    paths: RefCell<Vec<PropertyPath>>,
}

struct PropertyPath {
    /// Where the property's name lies in the filter, which outlives the scan: comparing addresses is quicker than names.
    name_address: usize,
    steps: Vec<PathStep>,
    /// The last row looked different. One row alone is no reason to learn another path.
    has_missed: bool,
}

/// One property in front of the one that is wanted.
struct PathStep {
    name_len: u8,
    tag: u8,
    /// From the entry's start to its tag, and to what follows: the next entry, or the length of the value.
    tag_offset: usize,
    size_bytes: usize,
    has_length: bool,
}

impl PropertyPaths {
    fn find<'r>(&self, record: Record<'r>, name: &str) -> Option<RawValue<'r>> {
        // Evaluating a filter never comes back here, so the paths are free.
        let Ok(mut paths) = self.paths.try_borrow_mut() else { return record.find(name) };
        let name_address = name.as_ptr() as usize;
        let Some(path) = paths.iter_mut().find(|path| path.name_address == name_address) else {
            if paths.len() < PATH_COUNT_MAX {
                let steps = steps_to(record, name).unwrap_or_default();
                paths.push(PropertyPath { name_address, steps, has_missed: false });
            }
            return record.find(name);
        };
        if let Some(at) = path.follow(record.entries)
            && let Some(value) = record.value_at(at, name)
        {
            path.has_missed = false;
            return Some(value);
        }
        let found = record.find(name);
        // A row without the property leads nowhere, and looking for a path in it would be a second walk.
        if found.is_some()
            && std::mem::replace(&mut path.has_missed, true)
            && let Some(steps) = steps_to(record, name)
        {
            path.steps = steps;
            path.has_missed = false;
        }
        found
    }
}

impl PropertyPath {
    /// The offset behind the path, if the row looks like it.
    #[inline]
    fn follow(&self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        for step in &self.steps {
            if *bytes.get(at)? != step.name_len || *bytes.get(at + step.tag_offset)? != step.tag {
                return None;
            }
            at += step.size_bytes;
            if step.has_length {
                let mut rest = bytes.get(at..)?;
                let value_len = varint::pull(&mut rest)?;
                at = bytes.len() - rest.len() + value_len;
            }
        }
        Some(at)
    }
}

/// The path to a property of this row; `None` if the row lacks it, or has a name too long for a step.
fn steps_to(record: Record<'_>, name: &str) -> Option<Vec<PathStep>> {
    let mut steps = Vec::new();
    for entry in record.entries() {
        if entry.name == name.as_bytes() {
            return Some(steps);
        }
        let name_len = u8::try_from(entry.name.len()).ok().filter(|len| *len < varint::LONG)?;
        let value_bytes = *tag::VALUE_BYTES.get(usize::from(entry.tag))?;
        let tag_offset = 1 + entry.name.len();
        steps.push(PathStep {
            name_len,
            tag: entry.tag,
            tag_offset,
            size_bytes: tag_offset + 1 + usize::from(value_bytes.unwrap_or(0)),
            has_length: value_bytes.is_none(),
        });
    }
    None
}

/// A stored entity without its keys, as a filter that does not need them sees it.
pub(crate) struct KeylessRow<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) timestamp: DateTime,
    pub(crate) paths: &'a PropertyPaths,
}

impl Properties for KeylessRow<'_> {
    fn property(&self, property: &FilterProperty) -> Option<RawValue<'_>> {
        match property {
            FilterProperty::Timestamp => Some(RawValue::DateTime(self.timestamp)),
            FilterProperty::Custom(name) => self.paths.find(self.record, name),
            FilterProperty::PartitionKey | FilterProperty::RowKey | FilterProperty::TableName => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::table::model::{Property, Value};

    use super::*;
    use crate::record::encode;

    /// Records of many shapes, one after the other, as rows of a table may be.
    fn random_record(random: &mut fastrand::Rng) -> bytes::Bytes {
        let names = ["Age", "Name", "Mail", "Score", "S", "Long", &"x".repeat(200)];
        let mut properties: Vec<Property<'_>> = Vec::new();
        for name in names {
            if random.u8(..5) == 0 {
                continue;
            }
            let value = match random.u8(..6) {
                0 => Value::Int32(random.i32(..)),
                1 => Value::Int64(random.i64(..)),
                2 => Value::Boolean(random.bool()),
                3 => Value::String("\u{5}Score\u{2}".repeat(random.usize(..60)).into()),
                4 => Value::Binary(vec![random.u8(..); random.usize(..300)].into()),
                _ => Value::String("".into()),
            };
            properties.push(Property { name: name.to_owned().into(), value });
        }
        if random.u8(..4) == 0 {
            random.shuffle(&mut properties);
        }
        encode(1_000, &properties)
    }

    #[test]
    fn what_is_found_by_a_path_is_what_is_found_without() {
        let mut random = fastrand::Rng::with_seed(18);
        let names = ["Age", "Name", "Mail", "Score", "S", "Long", "Missing", &"x".repeat(200)];
        let paths = PropertyPaths::default();
        for round in 0..20_000 {
            let stored = random_record(&mut random);
            let record = Record::open(&stored).unwrap();
            // The same row several times, so that paths are learned and followed.
            for _ in 0..random.usize(1..4) {
                for name in names {
                    assert_eq!(paths.find(record, name), record.find(name), "{name} in round {round}");
                }
            }
        }
        assert_eq!(paths.paths.borrow().len(), names.len());
    }

    #[test]
    fn a_path_does_not_lead_past_the_end_of_a_row() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let stored = random_record(&mut random);
            let whole = Record::open(&stored).unwrap();
            let Some(steps) = steps_to(whole, "Score") else { continue };
            let path = PropertyPath { name_address: 0, steps, has_missed: false };
            for len in 0..whole.entries.len() {
                let cut = Record { entries: &whole.entries[..len], ..whole };
                let found = path.follow(cut.entries).and_then(|at| cut.value_at(at, "Score"));
                assert!(found.is_none() || found == whole.find("Score"));
            }
        }
    }
}
