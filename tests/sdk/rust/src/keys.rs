//! Keys: every legal character survives URLs, bodies, transactions, filters and continuation tokens.

use azure_data_tables::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

fn awkward() -> Vec<String> {
    let mut keys: Vec<String> = [
        "",
        " ",
        "a b",
        " leading",
        "trailing ",
        "O'Brien",
        "''",
        "'",
        "100%",
        "%",
        "%27",
        "%2F",
        "%252F",
        "a+b",
        "a&b=c",
        "a,b",
        "a;b",
        "\"quoted\"",
        "key:with:colons",
        "..",
        ".",
        "(a)",
        "[a]{b}|^`~",
        "<a>",
        "$batch",
        "@a*!",
        "ü",
        "u\u{308}",
        "日本語",
        "😀",
        "a😀b\u{10ffff}",
        "\u{e000}\u{ffee}",
    ]
    .map(str::to_owned)
    .to_vec();
    keys.push("x".repeat(512));
    keys
}

async fn every_verb_finds(key: &str) {
    let table = new_table().await;
    let at = at(&table, key, key);
    let body = |values| entity_of(key, key, values);
    insert(&table, body(json!({"n": 1}))).await.unwrap();
    assert_eq!(plain(at.get::<Value>().await.unwrap().entity), json!({"n": 1}), "{key}");
    at.merge(body(json!({"m": 2})), IfMatchCondition::Any).unwrap().await.unwrap();
    at.insert_or_merge(body(json!({"n": 3}))).unwrap().await.unwrap();
    assert_eq!(plain(at.get::<Value>().await.unwrap().entity), json!({"n": 3, "m": 2}), "{key}");

    let quoted = key.replace('\'', "''");
    let filter = format!("PartitionKey eq '{quoted}' and RowKey eq '{quoted}'");
    let found = all(table.query().filter(filter)).await.unwrap();
    assert_eq!(rows(&found), [key]);

    at.delete().await.unwrap();
    let partition = table.partition_key_client(&quoted);
    partition.transaction().insert(body(json!({"n": 4}))).unwrap().await.unwrap();
    assert_eq!(plain(at.get::<Value>().await.unwrap().entity), json!({"n": 4}), "{key}");
    partition.transaction().delete(&quoted, None).unwrap().await.unwrap();
    assert_eq!(list(&table).await.len(), 0, "{key}");
}

#[tokio::test]
async fn every_verb_finds_awkward_keys() {
    for key in awkward() {
        every_verb_finds(&key).await;
    }
}

#[tokio::test]
async fn every_verb_finds_emoji_and_supplementary_characters() {
    for key in ["👩‍🚀", "\u{10000}", "a\u{1f600}'b"] {
        every_verb_finds(key).await;
    }
}

#[tokio::test]
async fn forbidden_characters_are_refused() {
    let table = new_table().await;
    for character in ["/", "\\", "#", "?", "\t", "\n", "\0", "\u{7f}", "\u{80}", "\u{9f}"] {
        let text = format!("a{character}b");
        assert_refused(insert(&table, entity_of(&text, "r", json!({}))).await, 400, "OutOfRangeInput");
        assert_refused(insert(&table, entity(&text, json!({}))).await, 400, "OutOfRangeInput");
    }
    assert_eq!(list(&table).await.len(), 0);
}

#[tokio::test]
async fn a_missing_key_is_refused() {
    let table = new_table().await;
    assert_refused(insert(&table, json!({"RowKey": "r"})).await, 400, "PropertiesNeedValue");
    assert_refused(insert(&table, json!({"PartitionKey": "p"})).await, 400, "PropertiesNeedValue");
}

#[tokio::test]
async fn awkward_keys_are_listed_and_paged_in_utf_16_order() {
    let table = new_table().await;
    for key in awkward() {
        insert(&table, entity_of(&key, &key, json!({ "own": key }))).await.unwrap();
    }
    let mut ordered = awkward();
    ordered.sort_by_key(|key| key.encode_utf16().collect::<Vec<u16>>());
    assert_eq!(rows(&list(&table).await), ordered);
    assert_eq!(rows(&all(table.query().top(1)).await.unwrap()), ordered);
}
