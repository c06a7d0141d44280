//! Encrypted properties through every operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazulite_client::encryption::{EncryptionError, InMemoryKeyRing};
use lazulite_client::{BulkMode, DynamicEntity, Entity, EntityKind, Error, IfMatch, TableClient, Value};
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

/// Knows one of the encrypted properties, and keeps whatever else there is.
#[derive(Entity, Clone, PartialEq, Debug)]
struct NamedAndRest {
    #[entity(partition_key)]
    ward: String,
    #[entity(row_key)]
    id: String,
    #[entity(encrypt)]
    name: String,
    #[entity(rest)]
    rest: BTreeMap<String, Value<'static>>,
}

/// Takes one of two encrypted properties for plain.
#[derive(Entity, Clone, PartialEq, Debug)]
struct HalfCareless {
    #[entity(partition_key)]
    ward: String,
    #[entity(row_key)]
    id: String,
    #[entity(encrypt)]
    name: String,
    diagnosis: Option<String>,
}

#[derive(EntityKind, Clone, PartialEq, Debug)]
#[entity(row_key_prefix)]
enum Anything {
    #[entity(prefix = "named_")]
    Named(Named),
    #[entity(other)]
    Other(DynamicEntity),
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

#[tokio::test]
async fn a_sealed_property_is_not_read_by_a_struct_that_would_write_it_in_the_clear() {
    let server = server();
    let (table, plain) = tables(&server);
    for id in ["1", "named_1"] {
        table.insert(&patient(id)).await.unwrap();
    }
    for error in [
        table.get::<NamedAndRest>("w", "1").await.unwrap_err(),
        table.get::<Anything>("w", "1").await.unwrap_err(),
        table.get::<Anything>("w", "named_1").await.unwrap_err(),
        table.get::<HalfCareless>("w", "1").await.unwrap_err(),
        table.query::<NamedAndRest>().all().await.unwrap_err(),
        table.update("w", "1", |_: &mut NamedAndRest| {}).await.unwrap_err(),
        table.update("w", "1", |_: &mut Anything| {}).await.unwrap_err(),
        table.update("w", "1", |_: &mut HalfCareless| {}).await.unwrap_err(),
    ] {
        let refusal = EncryptionError::Unmarked { property: "diagnosis".to_owned() };
        assert!(matches!(&error, Error::Encryption(found) if *found == refusal), "{error}");
    }
    is_sealed(&plain.get("w", "1").await.unwrap());
    // Where all that is sealed is marked, the rest can be kept.
    table.insert(&Patient { diagnosis: None, ..patient("2") }).await.unwrap();
    let read: NamedAndRest = table.get("w", "2").await.unwrap();
    assert_eq!(read.rest, BTreeMap::from([("age".to_owned(), Value::Int32(50))]));
    table.replace(&read, IfMatch::Any).await.unwrap();
    table.update("w", "2", |_: &mut NamedAndRest| {}).await.unwrap();
    is_sealed(&plain.get("w", "2").await.unwrap());
}

#[tokio::test]
async fn an_update_does_not_seal_what_was_plain() {
    #[derive(Entity)]
    struct Measured {
        #[entity(partition_key)]
        ward: String,
        #[entity(row_key)]
        id: String,
        #[entity(encrypt)]
        name: String,
        temperature: f64,
    }
    let server = server();
    let (table, plain) = tables(&server);
    // NaN is not equal to itself.
    let (ward, id, name) = ("w".to_owned(), "1".to_owned(), "Ada".to_owned());
    table.insert(&Measured { ward, id, name, temperature: f64::NAN }).await.unwrap();
    table.update("w", "1", |named: &mut Named| named.name = "Grace".to_owned()).await.unwrap();
    let row: DynamicEntity = plain.get("w", "1").await.unwrap();
    assert!(row.get::<f64>("temperature").unwrap().is_nan());
}
