//! Encrypted properties through every operation.

use std::sync::Arc;

use lazulite_client::encryption::InMemoryKeyRing;
use lazulite_client::{BulkMode, DynamicEntity, Entity, Error, IfMatch, TableClient, Value};
use testkit::TestServer;

use crate::support::*;

#[derive(Entity, Clone, PartialEq, Debug)]
struct Patient {
    #[entity(partition_key)]
    ward: String,
    #[entity(row_key)]
    id: String,
    age: i32,
    #[entity(encrypt)]
    name: String,
    #[entity(encrypt)]
    diagnosis: Option<String>,
}

/// Takes the encrypted name for plain.
#[derive(Entity, Clone, PartialEq, Debug)]
struct Careless {
    #[entity(partition_key)]
    ward: String,
    #[entity(row_key)]
    id: String,
    name: String,
}

/// Knows one of the encrypted properties only.
#[derive(Entity, Clone, PartialEq, Debug)]
struct Named {
    #[entity(partition_key)]
    ward: String,
    #[entity(row_key)]
    id: String,
    #[entity(encrypt)]
    name: String,
}

/// Needs no key.
#[derive(Entity, Clone, PartialEq, Debug)]
struct Aged {
    #[entity(partition_key)]
    ward: String,
    #[entity(row_key)]
    id: String,
    age: i32,
}

fn patient(id: &str) -> Patient {
    let diagnosis = Some("secret illness".to_owned());
    Patient { ward: "w".to_owned(), id: id.to_owned(), age: 50, name: "Ada Lovelace".to_owned(), diagnosis }
}

fn tables(server: &TestServer) -> (TableClient, TableClient) {
    let plain = table(server);
    let ring = InMemoryKeyRing::generate("2026-01").unwrap();
    (plain.with_key_ring(ring), plain)
}

#[track_caller]
fn is_sealed(row: &DynamicEntity) {
    assert!(matches!(row.value("name"), Some(Value::Binary(_))), "{row:?}");
    let text = format!("{row:?}");
    assert!(!text.contains("Ada") && !text.contains("illness"), "{text}");
    assert_eq!(row.get::<i32>("age").unwrap(), 50);
}

#[tokio::test]
async fn every_write_seals_and_every_read_opens() {
    let server = server();
    let (table, plain) = tables(&server);
    table.insert(&patient("1")).await.unwrap();
    assert_eq!(table.insert_and_return(&patient("2")).await.unwrap(), patient("2"));
    table.upsert_replace(&patient("3")).await.unwrap();
    table.replace(&patient("3"), IfMatch::Any).await.unwrap();
    let mut transaction = table.transaction("w");
    transaction.insert(&patient("4")).unwrap().upsert_replace(&patient("5")).unwrap();
    transaction.send().await.unwrap();
    table.bulk(&[patient("6"), patient("7")], BulkMode::Insert).await.into_result().unwrap();
    table.update("w", "7", |patient: &mut Patient| patient.diagnosis = None).await.unwrap();
    table
        .update("w", "7", |patient: &mut Patient| patient.diagnosis = Some("secret illness".to_owned()))
        .await
        .unwrap();

    let all = table.query::<Patient>().partition("w").all().await.unwrap();
    assert_eq!(all.len(), 7);
    for (number, read) in all.iter().enumerate() {
        let id = (number + 1).to_string();
        assert_eq!(*read, patient(&id));
        assert_eq!(table.get::<Patient>("w", &id).await.unwrap(), patient(&id));
        is_sealed(&plain.get("w", &id).await.unwrap());
    }
}

#[tokio::test]
async fn without_a_key_ring_nothing_is_written_or_read() {
    let server = server();
    let (table, plain) = tables(&server);
    table.insert(&patient("1")).await.unwrap();
    let bulk = plain.bulk(&[patient("2")], BulkMode::Insert).await;
    for error in [
        plain.insert(&patient("2")).await.unwrap_err(),
        plain.get::<Patient>("w", "1").await.unwrap_err(),
        plain.query::<Patient>().all().await.unwrap_err(),
        plain.transaction("w").insert(&patient("2")).err().unwrap(),
        plain.update("w", "1", |_: &mut Patient| {}).await.unwrap_err(),
    ]
    .into_iter()
    .map(Arc::new)
    .chain([bulk.failures[0].error.clone()])
    {
        assert!(matches!(&*error, Error::Refused(text) if text.contains("key ring")), "{error}");
    }
    assert_eq!(plain.query::<Aged>().count().await.unwrap(), 1);
}

#[tokio::test]
async fn merges_and_careless_projections_are_refused() {
    let server = server();
    let (table, _) = tables(&server);
    table.insert(&patient("1")).await.unwrap();
    let bulk = table.bulk(&[patient("1"), patient("2")], BulkMode::UpsertMerge).await;
    assert_eq!((bulk.written, bulk.failures.len(), bulk.requests), (0, 2, 0));
    for error in [
        table.merge(&patient("1"), IfMatch::Any).await.unwrap_err(),
        table.upsert_merge(&patient("1")).await.unwrap_err(),
        table.transaction("w").merge(&patient("1"), IfMatch::Any).err().unwrap(),
        table.transaction("w").upsert_merge(&patient("1")).err().unwrap(),
    ] {
        assert!(matches!(error, Error::Encryption(_)), "{error}");
    }
    let careless = table.query::<Patient>().select::<Careless>().all().await.unwrap_err();
    assert!(matches!(&careless, Error::Refused(text) if text.contains("metadata")), "{careless}");
    let named = table.query::<Patient>().select::<Named>().all().await.unwrap();
    assert_eq!(named[0].name, "Ada Lovelace");
    let aged = table.query::<Patient>().select::<Aged>().all().await.unwrap();
    assert_eq!(aged[0].age, 50);
}

#[tokio::test]
async fn an_update_through_a_smaller_struct_leaves_nothing_in_the_clear() {
    let server = server();
    let (table, plain) = tables(&server);
    table.insert(&patient("1")).await.unwrap();
    // Through a struct that knows one sealed property, and one that knows none.
    table.update("w", "1", |named: &mut Named| named.name = "Grace Hopper".to_owned()).await.unwrap();
    plain.update("w", "1", |aged: &mut Aged| aged.age = 50).await.unwrap();
    is_sealed(&plain.get("w", "1").await.unwrap());
    let read: Patient = table.get("w", "1").await.unwrap();
    assert_eq!(read, Patient { name: "Grace Hopper".to_owned(), ..patient("1") });
}

#[tokio::test]
async fn a_sealed_insert_whose_answer_was_lost_is_found() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[Fault::LoseAnswer]);
    let table = table.with_key_ring(InMemoryKeyRing::generate("k").unwrap());
    table.insert(&patient("1")).await.unwrap();
    assert_eq!(transport.methods(), ["POST", "GET"]);
    assert_eq!(table.get::<Patient>("w", "1").await.unwrap(), patient("1"));
}
