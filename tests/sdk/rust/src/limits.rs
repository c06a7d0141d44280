//! Limits: the largest accepted, the smallest refused, and requests without valid credentials.

use azure_storage::StorageCredentials;
use serde_json::{Map, Value, json};

use crate::support::*;

fn many(count: usize, value: Value) -> Value {
    Value::Object((0..count).map(|n| (format!("p{n}"), value.clone())).collect::<Map<_, _>>())
}

async fn accepted(properties: Value) {
    let table = new_table().await;
    insert(&table, entity("r", properties.clone())).await.unwrap();
    assert_eq!(stored(&table).await, properties);
}

async fn refused(properties: Value, code: &str) {
    let table = new_table().await;
    let body = || entity("r", properties.clone());
    assert_refused(insert(&table, body()).await, 400, code);
    assert_refused(one(&table).insert_or_merge(body()).unwrap().await, 400, code);
    assert_refused(one(&table).insert_or_replace(body()).unwrap().await, 400, code);
    assert_eq!(list(&table).await.len(), 0);
}

#[tokio::test]
async fn values_of_more_than_64_kib() {
    refused(json!({"s": "x".repeat(32769)}), "PropertyValueTooLarge").await;
    refused(json!({"s": "😀".repeat(16385)}), "PropertyValueTooLarge").await;
    let bytes = "AAAA".repeat(21845) + "AAA="; // 65,537 bytes
    refused(json!({"b": bytes, "b@odata.type": "Edm.Binary"}), "PropertyValueTooLarge").await;
}

#[tokio::test]
async fn number_of_properties() {
    accepted(many(252, json!(1))).await;
    refused(many(253, json!(1)), "TooManyProperties").await;
}

#[tokio::test]
async fn names_of_properties() {
    accepted(json!({"n".repeat(255): 1, "größe_数": 2, "name": 3, "Name": 4})).await;
    refused(json!({"n".repeat(256): 1}), "PropertyNameTooLong").await;
    refused(json!({"a-b": 1}), "PropertyNameInvalid").await;
}

#[tokio::test]
async fn size_of_an_entity() {
    accepted(many(16, json!("x".repeat(32000)))).await;
    refused(many(17, json!("x".repeat(32768))), "EntityTooLarge").await;
}

#[tokio::test]
async fn values_out_of_range() {
    let date = json!({"t": "1600-12-31T23:59:59Z", "t@odata.type": "Edm.DateTime"});
    refused(date, "OutOfRangeInput").await;
    for (edm, value) in [
        ("Edm.DateTime", json!("never")),
        ("Edm.Guid", json!("nothing")),
        ("Edm.Int64", json!("9223372036854775808")),
        ("Edm.Int32", json!(2147483648_u32)),
        ("Edm.Decimal", json!("1.0")),
    ] {
        refused(json!({"v": value, "v@odata.type": edm}), "InvalidInput").await;
    }
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_failure() {
    let wrong = StorageCredentials::access_key(account(), "d3Jvbmc=".to_owned());
    assert_refused(client(wrong).table_client(fresh_name()).create().await, 403, "AuthenticationFailed");
}

#[tokio::test]
async fn no_credentials_are_challenged() {
    let stranger = client(StorageCredentials::anonymous());
    assert_refused(stranger.table_client(fresh_name()).create().await, 401, "NoAuthenticationInformation");
}
