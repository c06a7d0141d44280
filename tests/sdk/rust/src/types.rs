//! Property types: values come back equal and of the same type, also at the extremes.

use azure_data_tables::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

/// Sends properties and expects `expected` from a point read, from a listing, and after writing back the entity read.
async fn comes_back_as(sent: Value, expected: Value) {
    let table = new_table().await;
    insert(&table, entity("r", sent)).await.unwrap();
    let found = one(&table).get::<Value>().await.unwrap().entity;
    assert_eq!(plain(found.clone()), expected);
    assert_eq!(plain(list(&table).await.remove(0)), expected);
    one(&table).update(found, IfMatchCondition::Any).unwrap().await.unwrap();
    assert_eq!(stored(&table).await, expected);
}

async fn roundtrip(properties: Value) {
    comes_back_as(properties.clone(), properties).await;
}

fn typed(edm: &str, value: impl Into<Value>) -> Value {
    json!({"v@odata.type": edm, "v": value.into()})
}

#[tokio::test]
async fn int32() {
    for n in [0, 1, -1, i32::MAX, i32::MIN] {
        roundtrip(json!({ "v": n })).await;
    }
}

#[tokio::test]
async fn int64_is_text_with_a_type() {
    for n in [0, -1, 1 << 31, (1 << 53) + 1, i64::MAX, i64::MIN] {
        roundtrip(typed("Edm.Int64", n.to_string())).await;
    }
}

#[tokio::test]
async fn double() {
    for x in [0.1, 1.0 / 3.0, 3.1, -2.5, 5.0, 1e21, 1e-7, 123456789012345.12, f64::MAX, 5e-324] {
        roundtrip(json!({ "v": x })).await;
    }
}

#[tokio::test]
async fn special_doubles_are_text_with_a_type() {
    for special in ["NaN", "Infinity", "-Infinity"] {
        roundtrip(typed("Edm.Double", special)).await;
    }
}

#[tokio::test]
async fn a_double_without_a_fraction_stays_a_double() {
    comes_back_as(typed("Edm.Double", 5), json!({"v": 5.0})).await;
}

#[tokio::test]
async fn an_integer_beyond_int32_without_a_type_is_a_double() {
    comes_back_as(json!({"v": 50_000_000_000_i64}), json!({"v": 5e10})).await;
}

#[tokio::test]
async fn boolean() {
    roundtrip(json!({"yes": true, "no": false})).await;
}

#[tokio::test]
async fn datetime_to_100_ns_from_1601_to_9999() {
    for text in [
        "1601-01-01T00:00:00Z",
        "1601-01-01T00:00:00.0000001Z",
        "1969-12-31T23:59:59.999Z",
        "2020-01-01T01:02:03.1234567Z",
        "9999-12-31T23:59:59.9999999Z",
    ] {
        roundtrip(typed("Edm.DateTime", text)).await;
    }
}

#[tokio::test]
async fn datetime_loses_trailing_zeros_and_its_zone() {
    for (sent, returned) in [
        ("2020-01-01T01:02:03.1200000Z", "2020-01-01T01:02:03.12Z"),
        ("2020-01-01T01:02:03.000Z", "2020-01-01T01:02:03Z"),
        ("2020-01-01T01:30:00+02:00", "2019-12-31T23:30:00Z"),
    ] {
        comes_back_as(typed("Edm.DateTime", sent), typed("Edm.DateTime", returned)).await;
    }
}

#[tokio::test]
async fn guid() {
    for text in ["00000000-0000-0000-0000-000000000000", "c9da6455-213d-42c9-9a79-3e9149a57833"] {
        roundtrip(typed("Edm.Guid", text)).await;
        comes_back_as(typed("Edm.Guid", text.to_uppercase()), typed("Edm.Guid", text)).await;
    }
}

#[tokio::test]
async fn binary_is_base64() {
    for text in ["", "AAEC/w==", "AA==", "////"] {
        roundtrip(typed("Edm.Binary", text)).await;
    }
}

#[tokio::test]
async fn binary_of_64_kib() {
    // 65,536 bytes of zeros: 21,845 groups of three bytes, and one byte more.
    roundtrip(typed("Edm.Binary", "AAAA".repeat(21845) + "AA==")).await;
}

#[tokio::test]
async fn string() {
    for text in [
        "",
        " ",
        "  leading and trailing  ",
        "line\r\nbreak\ttab\0\u{1f} end",
        "quotes ' \" \\ / {} [] \u{2028}",
        "käse ß 日本語 العربية",
        "😀 👩‍🚀 \u{10ffff} \u{10000}",
        "\u{fffd} \u{feff} \u{e000}",
        "NaN",
        "2020-01-01T00:00:00Z",
        "c9da6455-213d-42c9-9a79-3e9149a57833",
    ] {
        roundtrip(json!({ "v": text })).await;
    }
}

#[tokio::test]
async fn string_of_32_ki_characters_and_of_16_ki_emoji() {
    roundtrip(json!({"v": "x".repeat(32768)})).await;
    roundtrip(json!({"v": "😀".repeat(16384)})).await;
}

#[tokio::test]
async fn null_is_not_stored() {
    comes_back_as(json!({"a": null, "b": 1}), json!({"b": 1})).await;
}
