//! Entities: every verb, with and without an etag.

use std::collections::HashSet;

use azure_core::Etag;
use azure_data_tables::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Person {
    partition_key: String,
    row_key: String,
    name: String,
    age: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    nickname: Option<String>,
}

fn ada() -> Person {
    Person {
        partition_key: "p".to_owned(),
        row_key: "r".to_owned(),
        name: "Ada".to_owned(),
        age: 36,
        nickname: None,
    }
}

async fn update(table: &TableClient, condition: IfMatchCondition, values: Value) -> Result<Etag> {
    Ok(one(table).update(entity("r", values), condition)?.await?.etag)
}

async fn merge(table: &TableClient, condition: IfMatchCondition, values: Value) -> Result<Etag> {
    Ok(one(table).merge(entity("r", values), condition)?.await?.etag)
}

#[tokio::test]
async fn insert_then_get_returns_the_struct_that_was_sent() {
    let table = new_table().await;
    let inserted = table.insert::<_, Person>(ada()).unwrap().await.unwrap();
    assert!(inserted.entity_with_metadata.is_none());
    assert_eq!(
        inserted.location.unwrap().as_str(),
        format!("{}/{}(PartitionKey='p',RowKey='r')", setting("TableEndpoint"), table.table_name())
    );
    let found = one(&table).get::<Person>().await.unwrap();
    assert_eq!(found.entity, ada());
    assert_eq!(found.etag, inserted.etag);
}

#[tokio::test]
async fn insert_answers_with_the_entity_when_asked_to() {
    let table = new_table().await;
    let answer = table.insert::<_, Person>(ada()).unwrap().return_entity(true).await.unwrap();
    let echoed = answer.entity_with_metadata.unwrap();
    assert_eq!(echoed.entity, ada());
    assert_eq!(Etag::from(echoed.metadata.etag), answer.etag);
    assert_eq!(echoed.metadata.odata_type, format!("{}.{}", account(), table.table_name()));
    assert_eq!(echoed.metadata.edit_link, format!("{}(PartitionKey='p',RowKey='r')", table.table_name()));
}

#[tokio::test]
async fn the_etag_has_the_form_of_the_live_service_and_carries_the_timestamp() {
    let table = new_table().await;
    let etag = insert(&table, entity("r", json!({}))).await.unwrap();
    let found = one(&table).get::<Value>().await.unwrap().entity;
    let escaped = text(&found, "Timestamp").replace(':', "%3A");
    assert_eq!(etag.to_string(), format!("W/\"datetime'{escaped}'\""));
}

#[tokio::test]
async fn insert_of_an_existing_entity_is_a_conflict_and_changes_nothing() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"n": 1}))).await.unwrap();
    assert_refused(insert(&table, entity("r", json!({"n": 2}))).await, 409, "EntityAlreadyExists");
    assert_eq!(stored(&table).await, json!({"n": 1}));
}

#[tokio::test]
async fn get_of_a_missing_entity_is_not_found() {
    assert_not_found(one(&new_table().await).get::<Value>().await);
}

#[tokio::test]
async fn keys_are_case_sensitive() {
    let table = new_table().await;
    insert(&table, entity_of("P", "R", json!({"n": 1}))).await.unwrap();
    assert_not_found(at(&table, "p", "R").get::<Value>().await);
    assert_not_found(at(&table, "P", "r").get::<Value>().await);
    insert(&table, entity("r", json!({"n": 2}))).await.unwrap();
    assert_eq!(stored(&table).await, json!({"n": 2}));
}

#[tokio::test]
async fn update_replaces_and_merge_keeps() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"kept": 1, "dropped": 2}))).await.unwrap();
    update(&table, IfMatchCondition::Any, json!({"kept": 3, "added": 4})).await.unwrap();
    assert_eq!(stored(&table).await, json!({"kept": 3, "added": 4}));
    merge(&table, IfMatchCondition::Any, json!({"added": "now text"})).await.unwrap();
    assert_eq!(stored(&table).await, json!({"kept": 3, "added": "now text"}));
}

#[tokio::test]
async fn update_and_merge_of_a_missing_entity_are_not_found() {
    let table = new_table().await;
    assert_not_found(update(&table, IfMatchCondition::Any, json!({"n": 1})).await);
    assert_not_found(merge(&table, IfMatchCondition::Any, json!({"n": 1})).await);
    assert_eq!(list(&table).await.len(), 0);
}

#[tokio::test]
async fn the_right_etag_lets_updates_pass_and_gives_a_new_one() {
    let table = new_table().await;
    let first = insert(&table, entity("r", json!({"n": 1}))).await.unwrap();
    let second = update(&table, first.clone().into(), json!({"n": 2})).await.unwrap();
    let third = merge(&table, second.clone().into(), json!({"m": 3})).await.unwrap();
    assert_eq!(HashSet::from([first.to_string(), second.to_string(), third.to_string()]).len(), 3);
    assert_eq!(stored(&table).await, json!({"n": 2, "m": 3}));
    assert_eq!(one(&table).get::<Value>().await.unwrap().etag, third);
}

#[tokio::test]
async fn an_old_etag_fails_and_changes_nothing() {
    let table = new_table().await;
    let old = insert(&table, entity("r", json!({"n": 1}))).await.unwrap();
    let current = update(&table, IfMatchCondition::Any, json!({"n": 2})).await.unwrap();
    assert_not_satisfied(update(&table, old.clone().into(), json!({"n": 3})).await);
    assert_not_satisfied(merge(&table, old.clone().into(), json!({"n": 3})).await);
    assert_not_satisfied(one(&table).delete().if_match(old).await);
    let found = one(&table).get::<Value>().await.unwrap();
    assert_eq!((plain(found.entity), found.etag), (json!({"n": 2}), current));
}

#[tokio::test]
async fn an_etag_of_a_missing_entity_is_not_found() {
    let table = new_table().await;
    let etag = insert(&table, entity("r", json!({}))).await.unwrap();
    one(&table).delete().await.unwrap();
    assert_not_found(update(&table, etag.clone().into(), json!({})).await);
    assert_not_found(merge(&table, etag.clone().into(), json!({})).await);
    assert_not_found(one(&table).delete().if_match(etag).await);
}

#[tokio::test]
async fn insert_or_replace_inserts_then_drops_what_it_does_not_mention() {
    let table = new_table().await;
    let upsert = |values| one(&table).insert_or_replace(entity("r", values)).unwrap();
    let etag = upsert(json!({"a": 1, "b": 2})).await.unwrap().etag;
    assert_eq!(one(&table).get::<Value>().await.unwrap().etag, etag);
    upsert(json!({"b": 3})).await.unwrap();
    assert_eq!(stored(&table).await, json!({"b": 3}));
}

#[tokio::test]
async fn insert_or_merge_inserts_then_keeps_what_it_does_not_mention() {
    let table = new_table().await;
    let upsert = |values| one(&table).insert_or_merge(entity("r", values)).unwrap();
    let etag = upsert(json!({"a": 1, "b": 2})).await.unwrap().etag;
    assert_eq!(one(&table).get::<Value>().await.unwrap().etag, etag);
    upsert(json!({"b": 3})).await.unwrap();
    assert_eq!(stored(&table).await, json!({"a": 1, "b": 3}));
}

#[tokio::test]
async fn a_null_in_a_merge_leaves_the_stored_value_and_in_an_update_removes_it() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"a": 1, "b": 2}))).await.unwrap();
    merge(&table, IfMatchCondition::Any, json!({"a": null, "b": 3})).await.unwrap();
    assert_eq!(stored(&table).await, json!({"a": 1, "b": 3}));
    update(&table, IfMatchCondition::Any, json!({"a": null, "b": 4})).await.unwrap();
    assert_eq!(stored(&table).await, json!({"b": 4}));
}

#[tokio::test]
async fn delete_removes_and_delete_of_a_missing_entity_is_not_found() {
    let table = new_table().await;
    let etag = insert(&table, entity("r", json!({}))).await.unwrap();
    one(&table).delete().if_match(etag).await.unwrap();
    assert_eq!(list(&table).await.len(), 0);
    assert_not_found(one(&table).delete().await);
}

#[tokio::test]
async fn an_etag_of_a_previous_life_does_not_match_the_next() {
    let table = new_table().await;
    let old = insert(&table, entity("r", json!({"n": 1}))).await.unwrap();
    one(&table).delete().await.unwrap();
    insert(&table, entity("r", json!({"n": 2}))).await.unwrap();
    assert_not_satisfied(merge(&table, old.into(), json!({"n": 3})).await);
    assert_eq!(stored(&table).await, json!({"n": 2}));
}

#[tokio::test]
async fn a_malformed_etag_is_refused() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"n": 1}))).await.unwrap();
    assert_refused(merge(&table, Etag::from("nonsense").into(), json!({"n": 2})).await, 400, "InvalidInput");
    assert_eq!(stored(&table).await, json!({"n": 1}));
}

#[tokio::test]
async fn every_write_gives_a_new_etag() {
    let table = new_table().await;
    let mut etags = HashSet::from([insert(&table, entity("r", json!({}))).await.unwrap().to_string()]);
    for n in 1..20 {
        etags.insert(merge(&table, IfMatchCondition::Any, json!({ "n": n })).await.unwrap().to_string());
    }
    assert_eq!(etags.len(), 20);
}

#[tokio::test]
async fn select_returns_exactly_what_was_asked_for_and_null_for_what_is_missing() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"a": 1, "b": "two", "c": 3.5}))).await.unwrap();
    let found = one(&table).get::<Value>().select("a,RowKey,nothing").await.unwrap().entity;
    assert_eq!(text(&found, "RowKey"), "r");
    assert_eq!(found.get("PartitionKey"), None);
    assert_eq!(plain(found), json!({"a": 1, "nothing": null}));
}

#[tokio::test]
async fn the_answer_repeats_the_version_and_names_the_request() {
    let table = new_table().await;
    let found = table.insert::<_, Person>(ada()).unwrap().await.unwrap().common_storage_response_headers;
    assert_eq!(found.version, "2022-11-02");
    assert_eq!(found.request_id.as_simple().to_string().len(), 32);
}
