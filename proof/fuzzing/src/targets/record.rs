//! Stored records: bytes from the disk opened as an entity, shown, filtered, merged, and stored again.
//!
//! In the product a checksum stands before this code. What is no whole record is looked at all the same, except where
//! debug assertions are on: there the code says loudly that such bytes should not have come so far.

use std::sync::LazyLock;

use protocol::filter::{Filter, Schema, parse};
use protocol::model::{EntitySource, Property, Value};
use protocol::wire::MetadataLevel;
use tables::{EntityView, StoredEntity, is_record, merge};

use super::stored::{self, are_same, is_json};
use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "record",
    run,
    input_bytes_max: 1024 * 1024,
    tokens: &[
        b"\x01",
        b"\x00",
        b"\x00\x00\x00\x00",
        b"\x01\x40\x00\x00\x00\x01",
        b"\xFF\xFF\xFF\xFF",
        b"\x80",
        b"\x80\x80\x80\x80\x80",
        b"\xFF\xFF\xFF\xFF\x0F",
        b"\x03Age\x02",
        b"\x04Name\x01",
        b"\x01a\x05",
        b"\x01a\x06",
        b"\x01b\x02\x01\x00\x00\x00",
        b"\x01c\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\x01d\x04\x00\x00\x00\x00\x00\x00\xF8\x7F",
        b"\x01e\x07\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\x01f\x08",
        b"\x01g\x09\x00",
        b"\x01h\x01\x01\xFF",
        b"\x01i\x0A",
        b"\xC3\xA9",
        b"\xFF",
    ],
    seeds,
};

fn seeds(_: &Golden) -> Vec<Vec<u8>> {
    let one = |name: &'static str, value| vec![Property { name: name.into(), value }];
    let sets = [
        Vec::new(),
        stored::sample_properties(),
        one("Name", Value::String("x".repeat(200).into())),
        one("é", Value::Double(f64::NAN)),
        [one("Age", Value::Int32(1)), one("Name", Value::Binary(vec![7; 20].into()))].concat(),
    ];
    let records = sets
        .into_iter()
        .map(|set| stored::store("p", "r", set).expect("the limits are kept").record.to_vec());
    // A record whose size has room to spare, so that a mutation that adds a property is a record more often.
    let roomy = records.clone().map(|mut record| {
        record[3] = 8;
        record
    });
    distinct(records.chain(roomy))
}

static FILTER: LazyLock<Filter> = LazyLock::new(|| {
    let text = "Age ge 1 and not (Name eq 'x') or Born lt datetime'2020-01-01T00:00:00Z' or Data eq X'00'";
    parse(text, Schema::Entities).ok().flatten().expect("the filter is good")
});

static PATCH: LazyLock<StoredEntity> = LazyLock::new(stored::sample);

pub fn run(input: &[u8]) -> Outcome {
    let is_whole = is_record(input);
    if !is_whole && cfg!(debug_assertions) {
        return Outcome::Refused("no whole record");
    }
    let Some(view) = EntityView::open("p", "r", stored::version(), input) else {
        assert!(!is_whole);
        return Outcome::Refused("another format");
    };
    FILTER.matches(&view);
    let properties = stored::properties_of(&view);
    let written = [MetadataLevel::None, MetadataLevel::Minimal, MetadataLevel::Full]
        .map(|level| stored::write(&view, level));
    // The server refuses to send what is not even text.
    let is_sent = |written: &&Vec<u8>| is_whole || std::str::from_utf8(written).is_ok();
    assert!(written.iter().filter(is_sent).all(|written| is_json(written)), "an answer that is no JSON");
    let merged = merge(Some(input), &PATCH.record);
    let patched = merge(Some(&PATCH.record), input);
    if !is_whole {
        return Outcome::Refused("no whole record");
    }

    check_merged(&view, merged.ok().as_deref());
    if let Ok(patched) = patched {
        assert!(is_record(&patched));
    }
    // The keys take some of the size that a record says it has; it may say more than it needs.
    match stored::store("p", "r", properties.clone()) {
        Ok(again) => {
            let again = again.view().expect("what was stored is a record");
            assert!(are_same(&stored::properties_of(&again), &properties), "not the same when stored again");
            Outcome::Accepted(if properties.is_empty() { "no properties" } else { "properties" })
        }
        // Names and values that no write lets through may still be on the disk.
        Err(_) => Outcome::Accepted("beyond the limits"),
    }
}

/// A merge has what the patch says, and what the patch does not mention.
fn check_merged(old: &EntityView<'_>, merged: Option<&[u8]>) {
    let Some(merged) = merged else { return };
    assert!(is_record(merged), "a merge of records is no record");
    let merged = EntityView::open("p", "r", stored::version(), merged).expect("a record opens");
    let patch = PATCH.view().expect("the sample is a record");
    for property in stored::properties_of(&patch) {
        assert_eq!(merged.property(&property.name), Some(property.value));
    }
    old.for_each_property(|name, _| {
        assert!(merged.property(name).is_some(), "a merge lost {name}");
    });
}
