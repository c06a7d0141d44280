//! Read-modify-write.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lazulite_client::{
    DateTime, DynamicEntity, Entity, EntityKind, Error, HttpOptions, HttpTransport, Sending, Transport,
};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_tasks_count_exactly() {
    const TASKS: i32 = 16;
    const ROUNDS: i32 = 10;
    let server = server();
    let table = table(&server);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let table = table.clone();
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                let first = || person("t", "counter", 0);
                table.update_or_insert("t", "counter", first, |row| row.age += 1).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(table.get::<Person>("t", "counter").await.unwrap().age, TASKS * ROUNDS);
}

#[tokio::test]
async fn an_update_returns_what_was_written() {
    let server = server();
    let table = table(&server);
    table.insert(&person("t", "a", 1)).await.unwrap();
    let updated: Person = table.update("t", "a", |row: &mut Person| row.age = 2).await.unwrap();
    assert_eq!(updated, table.get("t", "a").await.unwrap());
    let row: DynamicEntity = table.update("t", "a", |_: &mut DynamicEntity| {}).await.unwrap();
    assert_eq!(row, table.get("t", "a").await.unwrap());
    assert!(row.last_written().is_some());
    let made = table.update_or_insert("t", "b", || person("t", "b", 1), |row| row.age += 1).await.unwrap();
    assert_eq!(made, table.get("t", "b").await.unwrap());
    assert_eq!(made.age, 2);
}

#[tokio::test]
async fn properties_that_the_struct_does_not_know_are_kept() {
    let server = server();
    let table = table(&server);
    let row = dynamic("t", "a", 1).with("hidden", "kept").unwrap().with("email", "x").unwrap();
    table.insert(&row).await.unwrap();
    table.update("t", "a", |row: &mut PersonAge| row.age = 2).await.unwrap();
    table.update("t", "a", |row: &mut Person| row.email = None).await.unwrap();
    let read: DynamicEntity = table.get("t", "a").await.unwrap();
    assert_eq!(read.get::<String>("hidden").unwrap(), "kept");
    assert_eq!(read.get::<i32>("age").unwrap(), 2);
    assert_eq!(read.value("email"), None);
}

#[tokio::test]
async fn an_update_may_decline() {
    let server = server();
    let table = table(&server);
    let written = table.insert(&person("t", "a", 1)).await.unwrap();
    let declined = table.update_if("t", "a", |row: &mut Person| row.age > 5).await.unwrap();
    assert_eq!(declined, None);
    assert_eq!(table.get::<Person>("t", "a").await.unwrap().etag, Some(written.etag));
    let done =
        table.update_if("t", "a", |row: &mut Person| std::mem::replace(&mut row.age, 9) < 5).await.unwrap();
    assert_eq!(done.map(|row| row.age), Some(9));
}

#[tokio::test]
async fn what_cannot_be_updated_is_an_error() {
    let server = server();
    let table = table(&server);
    let missing = table.update("t", "a", |_: &mut Person| {}).await.unwrap_err();
    assert!(missing.is_not_found());
    table.insert(&person("t", "a", 1)).await.unwrap();
    let moved = table.update("t", "a", |row: &mut Person| row.name = "b".to_owned()).await.unwrap_err();
    assert!(matches!(moved, Error::Refused(_)), "{moved}");
    let elsewhere = table.update_or_insert("t", "c", || person("t", "d", 1), |_| {}).await.unwrap_err();
    assert!(matches!(elsewhere, Error::Refused(_)), "{elsewhere}");
    assert_eq!(table.query::<PersonAge>().count().await.unwrap(), 1);
}

#[tokio::test]
async fn a_change_of_another_client_is_seen_and_kept() {
    let server = server();
    let table = table(&server);
    table.insert(&person("t", "a", 1)).await.unwrap();
    let mut calls = 0;
    let other = crate::support::table(&server);
    let updated: Person = table
        .update("t", "a", |row: &mut Person| {
            calls += 1;
            if calls == 1 {
                // Between the read and the write, as far as the service can tell.
                let other = other.clone();
                std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(other.upsert_merge(&dynamic("t", "a", 10))).unwrap();
                })
                .join()
                .unwrap();
            }
            row.age += 1;
        })
        .await
        .unwrap();
    assert_eq!((calls, updated.age), (2, 11));
    assert!(updated.etag().is_some());
}

#[derive(Entity, Clone, PartialEq, Debug)]
struct Label {
    #[entity(partition_key)]
    team: String,
    #[entity(row_key)]
    name: String,
    label: String,
}

#[derive(EntityKind, Clone, PartialEq, Debug)]
#[entity(property = "kind")]
enum Known {
    Aged(PersonAge),
    Label(Label),
}

#[derive(EntityKind, Clone, PartialEq, Debug)]
#[entity(property = "kind")]
enum Any {
    Aged(PersonAge),
    #[entity(other)]
    Other(DynamicEntity),
}

#[tokio::test]
async fn properties_that_a_kind_does_not_know_are_kept() {
    let server = server();
    let table = table(&server);
    // Another kind knows `label`, and the one for all others everything; this kind does not.
    let row = dynamic("t", "a", 1).with("kind", "Aged").unwrap().with("label", "x").unwrap();
    table.insert(&row.with("hidden", "kept").unwrap()).await.unwrap();
    table
        .update("t", "a", |row: &mut Known| match row {
            Known::Aged(row) => row.age += 1,
            Known::Label(_) => panic!("it is another kind"),
        })
        .await
        .unwrap();
    table
        .update("t", "a", |row: &mut Any| match row {
            Any::Aged(row) => row.age += 1,
            Any::Other(_) => panic!("it is another kind"),
        })
        .await
        .unwrap();
    let read: DynamicEntity = table.get("t", "a").await.unwrap();
    let kept = |name: &str| read.get::<String>(name).unwrap();
    assert_eq!((kept("label"), kept("hidden"), kept("kind")), ("x".into(), "kept".into(), "Aged".into()));
    assert_eq!((read.get::<i32>("age").unwrap(), read.len()), (3, 4));
    // What becomes another kind leaves the properties of the first behind, and keeps those that it never knew.
    let (team, name, label) = ("t".to_owned(), "a".to_owned(), "y".to_owned());
    let changed = Known::Label(Label { team, name, label });
    table.update("t", "a", |row: &mut Known| *row = changed.clone()).await.unwrap();
    assert_eq!(table.get::<Known>("t", "a").await.unwrap(), changed);
    let read: DynamicEntity = table.get("t", "a").await.unwrap();
    assert_eq!((read.value("age"), read.get::<String>("hidden").unwrap()), (None, "kept".to_owned()));
}

/// Must have a Timestamp.
#[derive(Entity, Clone, PartialEq, Debug)]
struct Timed {
    #[entity(partition_key)]
    team: String,
    #[entity(row_key)]
    name: String,
    age: i32,
    #[entity(etag)]
    etag: String,
    #[entity(timestamp)]
    written: DateTime,
}

/// Changes the ETag in every answer to a write, or removes it.
struct OtherETags {
    http: HttpTransport,
    etag: Mutex<Option<&'static str>>,
}

impl Transport for OtherETags {
    fn send(&self, request: http::Request<Bytes>) -> Sending<'_> {
        let is_write = request.method() != http::Method::GET;
        Box::pin(async move {
            let mut response = self.http.send(request).await?;
            if is_write {
                response.headers_mut().remove("etag");
                if let Some(etag) = *self.etag.lock().unwrap() {
                    response.headers_mut().insert("etag", http::HeaderValue::from_static(etag));
                }
            }
            Ok(response)
        })
    }
}

#[tokio::test]
async fn nothing_fails_after_the_write_but_to_read_its_answer() {
    let server = server();
    let transport = Arc::new(OtherETags {
        http: HttpTransport::new(HttpOptions::default()),
        // Cosmos DB's ETags do not tell the time.
        etag: Mutex::new(Some("W/\"0x1\"")),
    });
    let table = builder(&server).transport(transport.clone()).tables().unwrap().table(TABLE).unwrap();
    table.insert(&person("t", "a", 1)).await.unwrap();
    let before: Timed = table.get("t", "a").await.unwrap();
    let after: Timed = table.update("t", "a", |row: &mut Timed| row.age = 2).await.unwrap();
    assert_eq!((after.age, &*after.etag, after.written), (2, "W/\"0x1\"", before.written));

    *transport.etag.lock().unwrap() = None;
    let error = table.update("t", "a", |row: &mut Timed| row.age = 3).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable(_)) && error.is_outcome_unknown(), "{error}");
    assert_eq!(table.get::<Timed>("t", "a").await.unwrap().age, 3);
    let error = table.insert(&person("t", "b", 1)).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
}
