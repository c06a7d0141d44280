//! Tables: create, list, filter, delete.

use futures::StreamExt;
use serde_json::json;

use crate::support::*;

async fn names(filter: Option<String>, top: Option<u32>) -> Vec<String> {
    let mut list = service().list();
    if let Some(filter) = filter {
        list = list.filter(filter);
    }
    if let Some(top) = top {
        list = list.top(top);
    }
    let mut pages = list.into_stream();
    let mut names = Vec::new();
    while let Some(page) = pages.next().await {
        let tables = page.unwrap().tables;
        assert!(top.is_none_or(|top| tables.len() <= top as usize));
        names.extend(tables.into_iter().map(|table| table.name));
    }
    names
}

async fn five_tables() -> Vec<String> {
    let prefix = fresh_name();
    let created: Vec<String> = "abcde".chars().map(|letter| format!("{prefix}{letter}")).collect();
    for name in &created {
        service().table_client(name).create().await.unwrap();
    }
    created
}

#[tokio::test]
async fn a_created_table_is_listed_and_a_deleted_one_is_not() {
    let table = service().table_client(fresh_name());
    assert!(!names(None, None).await.contains(&table.table_name().to_owned()));
    let created = table.create().await.unwrap().table;
    assert_eq!(created.name, table.table_name());
    assert_eq!(created.table_type, format!("{}.Tables", account()));
    assert_eq!(created.edit_link, format!("Tables('{}')", table.table_name()));
    assert_eq!(created.id, format!("{}/{}", setting("TableEndpoint"), created.edit_link));
    assert!(names(None, None).await.contains(&created.name));
    table.delete().await.unwrap();
    assert!(!names(None, None).await.contains(&created.name));
}

#[tokio::test]
async fn creating_a_table_twice_is_a_conflict_and_keeps_what_is_in_it() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"n": 7}))).await.unwrap();
    assert_refused(table.create().await, 409, "TableAlreadyExists");
    let upper = service().table_client(table.table_name().to_uppercase());
    assert_refused(upper.create().await, 409, "TableAlreadyExists");
    assert_eq!(stored(&upper).await, json!({"n": 7}));
}

#[tokio::test]
async fn deleting_a_missing_table_is_not_found() {
    assert_not_found(service().table_client(fresh_name()).delete().await);
}

#[tokio::test]
async fn listing_keeps_the_case_of_names() {
    let name = format!("Mixed{}", fresh_name().to_uppercase());
    service().table_client(&name).create().await.unwrap();
    assert!(names(None, None).await.contains(&name));
    service().table_client(name.to_lowercase()).delete().await.unwrap();
    assert!(!names(None, None).await.contains(&name));
}

#[tokio::test]
async fn a_table_created_again_is_empty() {
    let table = new_table().await;
    insert(&table, entity("r", json!({}))).await.unwrap();
    table.delete().await.unwrap();
    table.create().await.unwrap();
    assert_eq!(list(&table).await.len(), 0);
}

#[tokio::test]
async fn a_filter_finds_by_name_and_by_range_in_order() {
    let created = five_tables().await;
    let by_name = format!("TableName eq '{}'", created[2]);
    assert_eq!(names(Some(by_name), None).await, created[2..3]);
    let by_range = format!("TableName ge '{}' and TableName lt '{}'", created[1], created[4]);
    assert_eq!(names(Some(by_range), None).await, created[1..4]);
    assert!(names(Some(format!("TableName eq '{}'", fresh_name())), None).await.is_empty());
}

#[tokio::test]
async fn pages_give_each_table_once() {
    let created = five_tables().await;
    let filter = format!("TableName ge '{}' and TableName lt '{}z'", created[0], created[4]);
    assert_eq!(names(Some(filter), Some(2)).await, created);
}

#[tokio::test]
async fn illegal_names_are_refused() {
    let long = "a".repeat(64);
    for (name, code) in [
        ("ab", "OutOfRangeInput"),
        (&long, "OutOfRangeInput"),
        ("1abc", "InvalidResourceName"),
        ("a-b-c", "InvalidResourceName"),
        ("with space", "InvalidResourceName"),
    ] {
        assert_refused(service().table_client(name).create().await, 400, code);
    }
}

#[tokio::test]
async fn entities_of_a_missing_table_are_not_found() {
    let missing = service().table_client(fresh_name());
    let body = || entity("r", json!({}));
    assert_refused(insert(&missing, body()).await, 404, "TableNotFound");
    assert_refused(one(&missing).get::<serde_json::Value>().await, 404, "TableNotFound");
    assert_refused(one(&missing).insert_or_merge(body()).unwrap().await, 404, "TableNotFound");
    assert_refused(one(&missing).delete().await, 404, "TableNotFound");
    assert_refused(all(missing.query()).await, 404, "TableNotFound");
}
