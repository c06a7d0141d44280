//! Query options, and the headers that choose the form of an answer.
//!
//! An input is a query string, then a line for each header.

use protocol::common::BaseUrl;
use protocol::common::query::{Query, TIMEOUT_SECONDS_MAX, timeout_seconds};
use protocol::common::version::{is_version, protocol_version};
use protocol::table::KIND;
use protocol::table::wire::headers::OperationHeaders;
use protocol::table::wire::json_write::EntityWriter;
use protocol::table::wire::negotiate::{self, Preference};
use protocol::table::wire::options::{PAGE_ENTITY_COUNT_MAX, QueryOptions};
use protocol::table::wire::{MetadataLevel, continuation};

use super::stored::{self, is_json};
use crate::golden::distinct;
use crate::{ACCOUNT, Golden, Outcome, Target, as_text};

pub const TARGET: Target = Target {
    name: "options",
    run,
    input_bytes_max: 128 * 1024,
    tokens: &[
        b"$filter=",
        b"$select=",
        b"$top=",
        b"$format=",
        b"timeout=",
        b"comp=",
        b"restype=",
        b"NextPartitionKey=",
        b"NextRowKey=",
        b"NextTableName=",
        b"$skip=1",
        b"$orderby=x",
        b"&",
        b"=",
        b"+",
        b"%",
        b"%20",
        b"%24top=",
        b"%2C",
        b"%FF",
        b"%22",
        b"%5C",
        b"%0A",
        b",",
        b"*",
        b"PartitionKey",
        b"RowKey",
        b"Timestamp",
        b"Name",
        b"Age",
        b"Missing",
        b"1000",
        b"1001",
        b"-1",
        b"0",
        b"99999999999999999999",
        b"1!8!U21pdGg-",
        b"1!0!",
        b"json",
        b"atom",
        b"application/json",
        b";odata=nometadata",
        b";odata=fullmetadata",
        b";odata=verbose",
        b"application/atom+xml",
        b"*/*",
        b";q=0.5",
        b"\"",
        b"\nAccept: ",
        b"\nPrefer: ",
        b"return-content",
        b"return-no-content",
        b"\nContent-Type: ",
        b"\nDataServiceVersion: 3.0;NetFx",
        b"\nMaxDataServiceVersion: 4.0",
        b"\nx-ms-version: 2019-02-02",
        b"\n",
    ],
    seeds,
};

const HEADERS: [&str; 6] =
    ["accept", "prefer", "content-type", "dataserviceversion", "maxdataserviceversion", "x-ms-version"];

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let from_requests = golden.requests().map(|request| {
        let mut text = request.query().to_owned();
        for (name, value) in &request.headers {
            if HEADERS.contains(&&*name.to_ascii_lowercase()) {
                text.push_str(&format!("\n{name}: {value}"));
            }
        }
        text.into_bytes()
    });
    let by_hand = [
        "$select=Name,Age,PartitionKey&$top=10\nAccept: application/json;odata=fullmetadata",
        "$select=Name%2CMissing,%22,Timestamp\nAccept: text/html, application/json;odata=nometadata;q=0.8, */*",
        "NextPartitionKey=1!8!U21pdGg-&NextRowKey=1!4!YQ--&timeout=90\nAccept: */*",
        "$format=application/json;odata=nometadata&$filter=Age+gt+3",
    ];
    distinct(from_requests.chain(by_hand.iter().map(|text| text.as_bytes().to_vec())))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let text = as_text(input)?;
    let mut lines = text.lines();
    let query = Query::split(lines.next().unwrap_or_default());
    let mut headers = OperationHeaders::default();
    let mut version = None;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        headers.take(name.trim(), || value.trim());
        if name.trim().eq_ignore_ascii_case("x-ms-version") {
            version = Some(value.trim());
        }
    }
    if let Some(version) =
        protocol_version(&query, version.filter(|text| is_version(text)), KIND.version_order)
    {
        assert!(is_version(version), "{version}");
    }

    let options = QueryOptions::read(&query)?;
    let timeout = timeout_seconds(&query)?;
    assert!((1..=TIMEOUT_SECONDS_MAX).contains(&timeout));
    let count = options.page_count()?;
    assert!(count <= PAGE_ENTITY_COUNT_MAX);
    if let Some((partition_key, row_key)) = options.next_entity()? {
        for key in [partition_key, row_key] {
            assert_eq!(continuation::decode(&continuation::encode(&key)).ok(), Some(key));
        }
    }
    options.next_table()?;

    let format = options.format.as_deref();
    negotiate::check_content_type(headers.content_type)?;
    negotiate::check_data_service_version(&headers)?;
    negotiate::accepts_json(headers.accept);
    let level = negotiate::response_level(format, &headers)?;
    assert_eq!(negotiate::error_level(format, headers.accept).content_type(), level.content_type());
    if let Some(preference) = Preference::parse(headers.prefer) {
        assert_eq!(Preference::parse(Some(preference.name())), Some(preference));
    }

    let selection = options.selection()?;
    let entity = stored::sample();
    let view = entity.view().expect("the sample is a record");
    let writer = EntityWriter {
        base: BaseUrl { is_https: false, host: "127.0.0.1:10002", path: "/devstoreaccount1" },
        account: ACCOUNT,
        table: "People",
        level,
        selection: selection.as_ref(),
    };
    let mut out = Vec::new();
    writer.write_single(&view, &mut out);
    assert!(is_json(&out), "an answer that is not JSON: {}", out.escape_ascii());
    // An empty selection selects everything.
    if let (Some(selection), MetadataLevel::None) = (&selection, level)
        && !selection.names.is_empty()
    {
        check_selected(&selection.names, &out);
    }
    Ok(Outcome::Accepted(match (level, selection.is_some()) {
        (MetadataLevel::None, true) => "some of nometadata",
        (MetadataLevel::None, false) => "all of nometadata",
        (MetadataLevel::Minimal, true) => "some of minimalmetadata",
        (MetadataLevel::Minimal, false) => "all of minimalmetadata",
        (MetadataLevel::Full, true) => "some of fullmetadata",
        (MetadataLevel::Full, false) => "all of fullmetadata",
    }))
}

/// The answer has a member for each selected name; a property that the entity lacks is null.
fn check_selected(names: &[&str], answer: &[u8]) {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(answer).expect("checked to be JSON");
    assert_eq!(members.len(), names.len(), "{names:?}");
    let sample = stored::sample_properties();
    for name in names {
        let is_there = ["PartitionKey", "RowKey", "Timestamp"].contains(name)
            || sample.iter().any(|property| property.name == *name);
        assert_eq!(members.get(*name).is_some_and(|value| !value.is_null()), is_there, "{name}");
    }
}
