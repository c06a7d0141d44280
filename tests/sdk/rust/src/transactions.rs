//! Transactions: all or nothing. For a failed one the SDK reports a single answer with its status, without the index
//! and the code.

use azure_data_tables::operations::TransactionBuilder;
use azure_data_tables::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

const OLD_ETAG: &str = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"";

fn transaction(table: &TableClient) -> TransactionBuilder {
    table.partition_key_client("p").transaction()
}

async fn statuses(transaction: TransactionBuilder) -> Vec<u16> {
    let answer = transaction.await.unwrap();
    answer.operation_responses.iter().map(|part| part.status_code as u16).collect()
}

async fn values(table: &TableClient) -> Vec<(String, Value)> {
    list(table).await.into_iter().map(|entity| (text(&entity, "RowKey").to_owned(), plain(entity))).collect()
}

/// Expects one failed answer and an unchanged table, etags included.
async fn rolled_back(table: &TableClient, transaction: TransactionBuilder, status: u16) {
    let before = list(table).await;
    assert_eq!(statuses(transaction).await, [status]);
    assert_eq!(list(table).await, before);
}

fn new(row: &str) -> Value {
    entity(row, json!({"new": 2}))
}

#[tokio::test]
async fn all_kinds_of_operation_in_one_transaction() {
    let table = new_table().await;
    for row in ["delete", "insert-or-merge", "insert-or-replace", "merge", "update"] {
        insert(&table, entity(row, json!({"old": 1}))).await.unwrap();
    }
    let any = || Some(IfMatchCondition::Any);
    let answer = transaction(&table)
        .insert(new("insert"))
        .unwrap()
        .update("update", new("update"), any())
        .unwrap()
        .merge("merge", new("merge"), any())
        .unwrap()
        .insert_or_replace("insert-or-replace", new("insert-or-replace"))
        .unwrap()
        .insert_or_merge("insert-or-merge", new("insert-or-merge"))
        .unwrap()
        .insert_or_merge("absent", new("absent"))
        .unwrap()
        .delete("delete", None)
        .unwrap()
        .await
        .unwrap()
        .operation_responses;
    let statuses: Vec<u16> = answer.iter().map(|part| part.status_code as u16).collect();
    assert_eq!(statuses, [201, 204, 204, 204, 204, 204, 204]);
    let both = json!({"old": 1, "new": 2});
    let single = json!({"new": 2});
    let expected = [
        ("absent", &single),
        ("insert", &single),
        ("insert-or-merge", &both),
        ("insert-or-replace", &single),
        ("merge", &both),
        ("update", &single),
    ];
    assert_eq!(values(&table).await, expected.map(|(row, values)| (row.to_owned(), values.clone())));

    let order = ["insert", "update", "merge", "insert-or-replace", "insert-or-merge", "absent"];
    for (row, part) in order.into_iter().zip(&answer) {
        assert_eq!(part.etag, Some(at(&table, "p", row).get::<Value>().await.unwrap().etag), "{row}");
    }
    assert_eq!(answer[6].etag, None);
}

#[tokio::test]
async fn a_hundred_inserts() {
    let table = new_table().await;
    let mut all = transaction(&table);
    for n in 0..100 {
        all = all.insert(entity(&format!("{n:03}"), json!({ "n": n }))).unwrap();
    }
    assert_eq!(statuses(all).await, [201; 100]);
    let found = list(&table).await;
    assert!(found.iter().enumerate().all(|(n, entity)| entity["n"] == n) && found.len() == 100);
}

#[tokio::test]
async fn an_insert_of_an_existing_entity_rolls_back_wherever_it_stands() {
    let table = new_table().await;
    insert(&table, entity("taken", json!({"n": 1}))).await.unwrap();
    for index in [0, 1, 50, 99] {
        let mut all = transaction(&table);
        for n in 0..100 {
            let row = if n == index { "taken".to_owned() } else { format!("{n:03}") };
            all = all.insert(new(&row)).unwrap();
        }
        rolled_back(&table, all, 409).await;
    }
}

#[tokio::test]
async fn an_update_of_a_missing_entity_rolls_back() {
    let table = new_table().await;
    insert(&table, entity("there", json!({"n": 1}))).await.unwrap();
    let start = || transaction(&table).insert_or_merge("there", new("there")).unwrap();
    let any = || Some(IfMatchCondition::Any);
    rolled_back(&table, start().update("missing", new("missing"), any()).unwrap(), 404).await;
    rolled_back(&table, start().merge("missing", new("missing"), any()).unwrap(), 404).await;
    rolled_back(&table, start().delete("missing", None).unwrap(), 404).await;
}

#[tokio::test]
async fn an_old_etag_rolls_back() {
    let table = new_table().await;
    insert(&table, entity("a", json!({"n": 1}))).await.unwrap();
    insert(&table, entity("b", json!({"n": 1}))).await.unwrap();
    let start = || transaction(&table).insert_or_replace("a", new("a")).unwrap();
    let old = || Some(IfMatchCondition::Etag(OLD_ETAG.into()));
    rolled_back(&table, start().update("b", new("b"), old()).unwrap(), 412).await;
    rolled_back(&table, start().merge("b", new("b"), old()).unwrap(), 412).await;
    rolled_back(&table, start().delete("b", old()).unwrap(), 412).await;
}

#[tokio::test]
async fn right_etags_let_it_pass() {
    let table = new_table().await;
    let a = insert(&table, entity("a", json!({"n": 1}))).await.unwrap();
    let b = insert(&table, entity("b", json!({"n": 1}))).await.unwrap();
    let all = transaction(&table).update("a", new("a"), Some(a.into())).unwrap();
    assert_eq!(statuses(all.delete("b", Some(b.into())).unwrap()).await, [204, 204]);
    assert_eq!(values(&table).await, [("a".to_owned(), json!({"new": 2}))]);
}

#[tokio::test]
async fn an_update_without_a_condition_is_an_upsert() {
    let table = new_table().await;
    assert_eq!(statuses(transaction(&table).update("a", new("a"), None).unwrap()).await, [204]);
    assert_eq!(values(&table).await, [("a".to_owned(), json!({"new": 2}))]);
}

#[tokio::test]
async fn the_same_row_twice_is_refused() {
    let table = new_table().await;
    let all = transaction(&table).insert(new("a")).unwrap().insert_or_merge("a", new("a")).unwrap();
    rolled_back(&table, all, 400).await;
}

#[tokio::test]
async fn mixed_partitions_are_refused() {
    let table = new_table().await;
    let all = transaction(&table).insert(new("a")).unwrap().insert(entity_of("q", "b", json!({}))).unwrap();
    rolled_back(&table, all, 400).await;
}

#[tokio::test]
async fn more_than_a_hundred_operations_are_refused() {
    let table = new_table().await;
    let mut all = transaction(&table);
    for n in 0..101 {
        all = all.insert(new(&n.to_string())).unwrap();
    }
    rolled_back(&table, all, 400).await;
}

#[tokio::test]
async fn a_value_that_is_too_large_rolls_back() {
    let table = new_table().await;
    let big = entity("big", json!({"text": "x".repeat(32769)}));
    rolled_back(&table, transaction(&table).insert(new("a")).unwrap().insert(big).unwrap(), 400).await;
}

#[tokio::test]
async fn a_transaction_on_a_missing_table_is_not_found() {
    let missing = service().table_client(fresh_name());
    assert_eq!(statuses(transaction(&missing).insert(new("a")).unwrap()).await, [404]);
}

#[tokio::test]
async fn a_body_above_4_mib_is_too_large() {
    let table = new_table().await;
    let text = "x".repeat(32768);
    let mut all = transaction(&table);
    for n in 0..70 {
        all = all.insert(entity(&n.to_string(), json!({"a": text, "b": text}))).unwrap();
    }
    assert_refused(all.await, 413, "RequestBodyTooLarge");
    assert_eq!(list(&table).await.len(), 0);
}
