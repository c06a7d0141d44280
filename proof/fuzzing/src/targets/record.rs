//! Stored records: opens bytes from the disk as an entity, writes, filters and merges it, and stores it again.
//!
//! In the product a checksum protects this code. Bytes that are not a whole record are tried all the same, except with
//! debug assertions, which would rightly panic on them.

use std::sync::LazyLock;

use protocol::table::filter::{Filter, Schema, parse};
use protocol::table::model::{EntitySource, Property, Value};
use protocol::table::wire::MetadataLevel;
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
    // A record that claims a larger size than it needs, so that a mutation that adds a property more often stays valid.
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
    // The server refuses to send bytes that are not UTF-8.
    let is_sent = |written: &&Vec<u8>| is_whole || std::str::from_utf8(written).is_ok();
    assert!(written.iter().filter(is_sent).all(|written| is_json(written)), "an answer is not JSON");
    let merged = merge(Some(input), &PATCH.record);
    let patched = merge(Some(&PATCH.record), input);
    if !is_whole {
        return Outcome::Refused("no whole record");
    }

    check_merged(&view, merged.ok().as_deref());
    if let Ok(patched) = patched {
        assert!(is_record(&patched));
    }
    // A record may claim more size than it needs, and the keys count towards it.
    match stored::store("p", "r", properties.clone()) {
        Ok(again) => {
            let again = again.view().expect("what was stored is a record");
            assert!(are_same(&stored::properties_of(&again), &properties), "not the same when stored again");
            Outcome::Accepted(if properties.is_empty() { "no properties" } else { "properties" })
        }
        // The disk may hold names and values that no write would accept.
        Err(_) => Outcome::Accepted("beyond the limits"),
    }
}

/// A merged entity has all properties of the patch, and those of the old entity that the patch does not mention.
fn check_merged(old: &EntityView<'_>, merged: Option<&[u8]>) {
    let Some(merged) = merged else { return };
    assert!(is_record(merged), "a merge of records is not a record");
    let merged = EntityView::open("p", "r", stored::version(), merged).expect("a record opens");
    let patch = PATCH.view().expect("the sample is a record");
    for property in stored::properties_of(&patch) {
        assert_eq!(merged.property(&property.name), Some(property.value));
    }
    old.for_each_property(|name, _| {
        assert!(merged.property(name).is_some(), "a merge lost {name}");
    });
}
