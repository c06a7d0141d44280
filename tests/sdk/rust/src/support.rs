//! Shared by the tests: clients for the server under test, fresh tables, and checks for refusals.

use azure_core::{Etag, RetryOptions};
use azure_data_tables::clients::TableServiceClientBuilder;
use azure_data_tables::prelude::*;
use azure_storage::{CloudLocation, StorageCredentials};
use futures::StreamExt;
use serde_json::{Map, Value, json};

pub type Result<T> = azure_core::Result<T>;

/// One value of the connection string.
pub fn setting(name: &str) -> String {
    let text = std::env::var("LAZULITE_CONNECTION_STRING")
        .expect("LAZULITE_CONNECTION_STRING names the server to test; `cargo xtask test` sets it");
    let value = text.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("the connection string has no {name}")).to_owned()
}

pub fn account() -> String {
    setting("AccountName")
}

pub fn account_key() -> StorageCredentials {
    StorageCredentials::access_key(account(), setting("AccountKey"))
}

/// A client of the server under test, without retries: they would hide exactly the answers that these tests look for.
pub fn client(credentials: StorageCredentials) -> TableServiceClient {
    let uri = setting("TableEndpoint");
    let location = CloudLocation::Custom { account: account(), uri };
    TableServiceClientBuilder::with_location(location, credentials).retry(RetryOptions::none()).build()
}

pub fn service() -> TableServiceClient {
    client(account_key())
}

/// A table name that no other test uses.
pub fn fresh_name() -> String {
    format!("t{}", uuid::Uuid::new_v4().simple())
}

/// A fresh, empty table. It is not deleted, because the server and its data last only as long as the suite.
pub async fn new_table() -> TableClient {
    let table = service().table_client(fresh_name());
    table.create().await.unwrap();
    table
}

/// The client of one entity. The SDK leaves it to the application to double quotes in keys.
pub fn at(table: &TableClient, partition: &str, row: &str) -> EntityClient {
    table.partition_key_client(partition.replace('\'', "''")).entity_client(row.replace('\'', "''"))
}

/// The client of row "r" in partition "p".
pub fn one(table: &TableClient) -> EntityClient {
    at(table, "p", "r")
}

/// A body with these keys and properties, as the SDK's users would write it with serde.
pub fn entity_of(partition: &str, row: &str, properties: Value) -> Value {
    let mut entity = properties;
    entity["PartitionKey"] = json!(partition);
    entity["RowKey"] = json!(row);
    entity
}

pub fn entity(row: &str, properties: Value) -> Value {
    entity_of("p", row, properties)
}

pub async fn insert(table: &TableClient, entity: Value) -> Result<Etag> {
    Ok(table.insert::<_, Value>(entity)?.await?.etag)
}

/// The properties of row "r" in partition "p", without keys and metadata.
pub async fn stored(table: &TableClient) -> Value {
    plain(one(table).get::<Value>().await.unwrap().entity)
}

/// An entity without keys and the server's additions, to compare it with the properties that were sent.
pub fn plain(entity: Value) -> Value {
    let Value::Object(members) = entity else { panic!("{entity} is not an entity") };
    let own = |name: &String| {
        !name.starts_with("odata.")
            && !["PartitionKey", "RowKey", "Timestamp", "Timestamp@odata.type"].contains(&name.as_str())
    };
    Value::Object(members.into_iter().filter(|(name, _)| own(name)).collect::<Map<_, _>>())
}

pub fn text<'a>(entity: &'a Value, name: &str) -> &'a str {
    entity[name].as_str().unwrap_or_else(|| panic!("no text {name} in {entity}"))
}

/// All results of a query, from all its pages.
pub async fn all(query: azure_data_tables::operations::QueryEntityBuilder) -> Result<Vec<Value>> {
    let mut pages = query.into_stream::<Value>();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        found.extend(page?.entities);
    }
    Ok(found)
}

pub async fn list(table: &TableClient) -> Vec<Value> {
    all(table.query()).await.unwrap()
}

pub fn rows(entities: &[Value]) -> Vec<&str> {
    entities.iter().map(|entity| text(entity, "RowKey")).collect()
}

/// Expects the service's refusal with this status and this code.
#[track_caller]
pub fn assert_refused<T>(result: Result<T>, status: u16, code: &str) {
    let Err(error) = result else { panic!("expected {status} {code}, but it succeeded") };
    let Some(refusal) = error.as_http_error() else { panic!("expected {status} {code}, got {error}") };
    assert_eq!(refusal.status() as u16, status, "{error:?}");
    // The SDK does not find the code in `odata.error`. Its printed form contains the body as an escaped string.
    let in_body = format!("\\\"code\\\":\\\"{code}\\\"");
    assert!(
        refusal.error_code() == Some(code) || refusal.to_string().contains(&in_body),
        "no {code} in {refusal}"
    );
}

#[track_caller]
pub fn assert_not_found<T>(result: Result<T>) {
    assert_refused(result, 404, "ResourceNotFound");
}

#[track_caller]
pub fn assert_not_satisfied<T>(result: Result<T>) {
    assert_refused(result, 412, "UpdateConditionNotSatisfied");
}
