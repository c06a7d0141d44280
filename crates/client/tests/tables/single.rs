//! Reads and writes of one row.

use lazulite_client::{DateTime, DynamicEntity, Entity, Error, Guid, IfMatch, Value};

use crate::support::*;

#[tokio::test]
async fn a_row_is_inserted_read_and_deleted() {
    let server = server();
    let table = table(&server);
    let written = table.insert(&person("math", "ada", 36)).await.unwrap();
    let read: Person = table.get("math", "ada").await.unwrap();
    assert_eq!((read.age, read.etag.as_deref()), (36, Some(written.etag.as_str())));
    assert!(table.exists("math", "ada").await.unwrap());
    let row: DynamicEntity = table.get("math", "ada").await.unwrap();
    assert_eq!(row.last_written(), written.timestamp);
    assert!(written.timestamp.is_some());

    table.delete("math", "ada", IfMatch::Any).await.unwrap();
    assert!(!table.exists("math", "ada").await.unwrap());
    assert_eq!(table.try_get::<Person>("math", "ada").await.unwrap(), None);
    let missing = table.get::<Person>("math", "ada").await.unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(missing.code(), Some("ResourceNotFound"));
    let keys = missing.failure().and_then(|failure| failure.keys.clone()).unwrap();
    assert_eq!((&*keys.partition_key, &*keys.row_key), ("math", "ada"));
    assert!(table.delete("math", "ada", IfMatch::Any).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_second_insert_is_a_conflict() {
    let server = server();
    let table = table(&server);
    table.insert(&person("math", "ada", 36)).await.unwrap();
    let error = table.insert(&person("math", "ada", 37)).await.unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(error.code(), Some("EntityAlreadyExists"));
    assert_eq!(table.get::<Person>("math", "ada").await.unwrap().age, 36);
}

#[tokio::test]
async fn an_insert_can_return_what_was_stored() {
    let server = server();
    let table = table(&server);
    let stored = table.insert_and_return(&dynamic("math", "ada", 36)).await.unwrap();
    assert!(stored.last_written().is_some());
    assert!(stored.etag().is_some());
    assert_eq!(stored, table.get("math", "ada").await.unwrap());
}

#[tokio::test]
async fn replace_drops_what_it_does_not_have_and_merge_keeps_it() {
    let server = server();
    let table = table(&server);
    let with_email = Person { email: Some("ada@example.com".to_owned()), ..person("math", "ada", 36) };
    table.insert(&with_email).await.unwrap();
    table.merge(&person("math", "ada", 37), IfMatch::Any).await.unwrap();
    let merged: Person = table.get("math", "ada").await.unwrap();
    assert_eq!((merged.age, merged.email.as_deref()), (37, Some("ada@example.com")));
    table.replace(&person("math", "ada", 38), IfMatch::Any).await.unwrap();
    let replaced: Person = table.get("math", "ada").await.unwrap();
    assert_eq!((replaced.age, replaced.email), (38, None));

    for error in [
        table.replace(&person("math", "nobody", 1), IfMatch::Any).await.unwrap_err(),
        table.merge(&person("math", "nobody", 1), IfMatch::Any).await.unwrap_err(),
    ] {
        assert!(error.is_not_found());
    }
}

#[tokio::test]
async fn upserts_insert_or_change() {
    let server = server();
    let table = table(&server);
    table.upsert_merge(&person("math", "ada", 36)).await.unwrap();
    let with_email = Person { email: Some("x".to_owned()), ..person("math", "ada", 37) };
    table.upsert_replace(&with_email).await.unwrap();
    table.upsert_merge(&person("math", "ada", 38)).await.unwrap();
    let read: Person = table.get("math", "ada").await.unwrap();
    assert_eq!((read.age, read.email.as_deref()), (38, Some("x")));
    table.upsert_replace(&person("math", "ada", 39)).await.unwrap();
    assert_eq!(table.get::<Person>("math", "ada").await.unwrap().email, None);
    table.upsert_replace(&person("math", "grace", 1)).await.unwrap();
    assert!(table.exists("math", "grace").await.unwrap());
}

#[tokio::test]
async fn conditions_protect_the_writes_of_others() {
    let server = server();
    let table = table(&server);
    let first = table.insert(&person("math", "ada", 36)).await.unwrap();
    let read: Person = table.get("math", "ada").await.unwrap();
    let second = table.replace(&Person { age: 37, ..read.clone() }, IfMatch::Unchanged).await.unwrap();
    assert_ne!(first.etag, second.etag);
    assert!(first.timestamp < second.timestamp);

    for error in [
        table.replace(&read, IfMatch::Unchanged).await.unwrap_err(),
        table.merge(&read, IfMatch::ETag(&first.etag)).await.unwrap_err(),
        table.delete("math", "ada", IfMatch::ETag(&first.etag)).await.unwrap_err(),
        table.delete_entity(&read, IfMatch::Unchanged).await.unwrap_err(),
    ] {
        assert!(error.is_precondition_failed(), "{error}");
    }
    table.merge(&read, IfMatch::ETag(&second.etag)).await.unwrap();
    let read: Person = table.get("math", "ada").await.unwrap();
    table.delete_entity(&read, IfMatch::Unchanged).await.unwrap();
    assert!(!table.exists("math", "ada").await.unwrap());
}

#[tokio::test]
async fn a_condition_that_cannot_be_is_refused_before_sending() {
    let server = server();
    let table = table(&server);
    let unread = person("math", "ada", 36);
    for error in [
        table.replace(&unread, IfMatch::Unchanged).await.unwrap_err(),
        table.delete("math", "ada", IfMatch::Unchanged).await.unwrap_err(),
        table.replace(&unread, IfMatch::ETag("W/\"x\"\r\nX-Evil: 1")).await.unwrap_err(),
        table.replace(&unread, IfMatch::ETag("")).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Refused(_)), "{error}");
    }
}

#[tokio::test]
async fn awkward_keys_arrive_as_they_are() {
    let server = server();
    let table = table(&server);
    for (number, key) in AWKWARD.iter().enumerate() {
        let age = number as i32;
        for other in ["plain", key] {
            table.insert(&person(key, other, age)).await.unwrap();
            let read: Person = table.get(key, other).await.unwrap();
            assert_eq!((read.team.as_str(), read.name.as_str(), read.age), (*key, other, age));
            table
                .merge(
                    &person(key, other, age + 100),
                    read.etag.as_deref().map_or(IfMatch::Any, IfMatch::ETag),
                )
                .await
                .unwrap();
            assert_eq!(table.get::<Person>(key, other).await.unwrap().age, age + 100);
        }
        let listed = table.query::<Person>().partition(key).all().await.unwrap();
        let mut names: Vec<&str> = listed.iter().map(|person| person.name.as_str()).collect();
        names.sort_unstable();
        let mut expected = vec!["plain", *key];
        expected.sort_unstable();
        assert_eq!(names, expected, "{key:?}");
        table.delete(key, key, IfMatch::Any).await.unwrap();
        assert!(!table.exists(key, key).await.unwrap());
        assert!(table.exists(key, "plain").await.unwrap());
    }
}

#[tokio::test]
async fn forbidden_keys_are_refused_before_sending() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[]);
    for key in ["a/b", "a\\b", "a#b", "a?b", "a\nb", "\u{85}"] {
        for error in [
            table.get::<Person>(key, "x").await.unwrap_err(),
            table.insert(&person("x", key, 1)).await.unwrap_err(),
            table.delete(key, "x", IfMatch::Any).await.unwrap_err(),
            table.transaction("x").delete(key, IfMatch::Any).err().unwrap(),
        ] {
            assert!(matches!(error, Error::Refused(_)), "{error}");
        }
    }
    assert!(transport.methods().is_empty());
}

#[tokio::test]
async fn every_type_survives() {
    let server = server();
    let table = table(&server);
    let mut row = DynamicEntity::new("types", "all");
    let values: [(&str, Value<'static>); 18] = [
        ("Text", Value::String("Zeile\n\"Anführung\" \\ \u{1F600} \u{0}".into())),
        ("Empty", Value::String("".into())),
        ("Int32Min", Value::Int32(i32::MIN)),
        ("Int32Max", Value::Int32(i32::MAX)),
        ("Int64Min", Value::Int64(i64::MIN)),
        ("Int64Max", Value::Int64(i64::MAX)),
        ("Double", Value::Double(0.1)),
        ("DoubleWhole", Value::Double(3.0)),
        ("DoubleTiny", Value::Double(f64::MIN_POSITIVE)),
        ("DoubleInfinity", Value::Double(f64::INFINITY)),
        ("DoubleNegative", Value::Double(f64::NEG_INFINITY)),
        ("True", Value::Boolean(true)),
        ("DateFirst", Value::DateTime(DateTime::MIN_STORED)),
        ("DateLast", Value::DateTime(DateTime::MAX)),
        ("Guid", Value::Guid(Guid::parse("01234567-89ab-4def-8123-456789abcdef").unwrap())),
        ("Binary", Value::Binary(vec![0, 1, 254, 255].into())),
        ("BinaryEmpty", Value::Binary(Vec::new().into())),
        ("Größe", Value::Int32(1)),
    ];
    for (name, value) in &values {
        row.set(name, value.clone()).unwrap();
    }
    table.insert(&row).await.unwrap();
    let read: DynamicEntity = table.get("types", "all").await.unwrap();
    for (name, value) in &values {
        assert_eq!(read.value(name), Some(value), "{name}");
    }
    assert_eq!(read.len(), values.len());
    let found = table.query::<DynamicEntity>().partition("types").first().await.unwrap().unwrap();
    assert_eq!(found, read);

    table.insert(&DynamicEntity::new("types", "nan").with("x", f64::NAN).unwrap()).await.unwrap();
    let nan: DynamicEntity = table.get("types", "nan").await.unwrap();
    assert!(nan.get::<f64>("x").unwrap().is_nan());
}

#[tokio::test]
async fn a_smaller_struct_fetches_only_its_properties() {
    let server = server();
    let table = table(&server);
    let wide =
        DynamicEntity::new("math", "ada").with("age", 36).unwrap().with("note", "x".repeat(30_000)).unwrap();
    table.insert(&wide).await.unwrap();
    let narrow: PersonAge = table.get("math", "ada").await.unwrap();
    assert_eq!(narrow.age, 36);
    let pages = table.query::<PersonAge>().partition("math").page().await.unwrap();
    assert!(pages.body_bytes < 1000, "{}", pages.body_bytes);
}

#[tokio::test]
async fn a_missing_table_is_an_error_everywhere() {
    let server = server();
    let table = builder(&server).tables().unwrap().table("nowhere").unwrap();
    let row = person("math", "ada", 1);
    for error in [
        table.try_get::<Person>("a", "b").await.unwrap_err(),
        table.exists("a", "b").await.unwrap_err(),
        table.insert(&row).await.unwrap_err(),
        table.delete("a", "b", IfMatch::Any).await.unwrap_err(),
        table.query::<Person>().all().await.unwrap_err(),
        table.query::<Person>().count().await.unwrap_err(),
        table.transaction("math").insert(&row).unwrap().send().await.unwrap_err(),
    ] {
        assert_eq!(error.code(), Some("TableNotFound"), "{error}");
    }
}
