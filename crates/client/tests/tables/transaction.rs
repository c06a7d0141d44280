//! Transactions: all or nothing, and refused early.

use lazulite_client::{DynamicEntity, Error, IfMatch, Transaction};

use crate::support::*;

#[track_caller]
fn refused(outcome: Result<&mut Transaction, Error>, part: &str) {
    match outcome {
        Err(Error::Refused(text)) => assert!(text.contains(part), "{text}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused: {part}"),
    }
}

#[tokio::test]
async fn all_kinds_of_writes_happen_together() {
    let server = server();
    let table = table(&server);
    for name in ["replaced", "merged", "deleted", "upserted"] {
        let before = Person { email: Some("before".to_owned()), ..person("t", name, 1) };
        table.insert(&before).await.unwrap();
    }
    let deleted: Person = table.get("t", "deleted").await.unwrap();
    let merged: Person = table.get("t", "merged").await.unwrap();
    let mut transaction = table.transaction("t");
    transaction
        .insert(&dynamic("t", "inserted", 2))
        .unwrap()
        .replace(&person("t", "replaced", 2), IfMatch::Any)
        .unwrap()
        .merge(&person("t", "merged", 2), IfMatch::ETag(merged.etag.as_deref().unwrap()))
        .unwrap()
        .upsert_replace(&person("t", "upserted", 2))
        .unwrap()
        .upsert_merge(&person("t", "new", 2))
        .unwrap()
        .delete_entity(&deleted, IfMatch::Unchanged)
        .unwrap();
    let committed = transaction.send().await.unwrap();
    assert_eq!(committed.etags.len(), 6);
    assert_eq!(committed.etags[5], None);

    let rows = table.query::<Person>().partition("t").all().await.unwrap();
    let seen: Vec<(&str, i32, Option<&str>)> =
        rows.iter().map(|row| (row.name.as_str(), row.age, row.email.as_deref())).collect();
    let expected = [
        ("inserted", 2, None),
        ("merged", 2, Some("before")),
        ("new", 2, None),
        ("replaced", 2, None),
        ("upserted", 2, None),
    ];
    assert_eq!(seen, expected);
    assert_eq!(rows[0].etag, committed.etags[0]);
    assert_eq!(rows[1].etag, committed.etags[2]);
}

#[tokio::test]
async fn a_failed_operation_is_named_and_nothing_happens() {
    let server = server();
    let table = table(&server);
    let first = table.insert(&person("t", "taken", 1)).await.unwrap();
    table.upsert_replace(&person("t", "taken", 2)).await.unwrap();
    let check = async |transaction: &Transaction, status: u16, index: usize, row_key: &str| {
        let error = transaction.send().await.unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!((failure.status.as_u16(), failure.operation_index), (status, Some(index)), "{error}");
        let keys = failure.keys.as_ref().unwrap();
        assert_eq!((&*keys.partition_key, &*keys.row_key), ("t", row_key));
        assert!(!failure.message.starts_with(|first: char| first.is_ascii_digit()), "{}", failure.message);
        assert!(!table.exists("t", "a").await.unwrap());
    };
    let begin = || {
        let mut transaction = table.transaction("t");
        transaction.insert(&person("t", "a", 1)).unwrap().insert(&person("t", "b", 1)).unwrap();
        transaction
    };
    let mut conflict = begin();
    conflict.insert(&person("t", "taken", 3)).unwrap().insert(&person("t", "c", 1)).unwrap();
    check(&conflict, 409, 2, "taken").await;
    let mut missing = begin();
    missing.delete("nobody", IfMatch::Any).unwrap();
    check(&missing, 404, 2, "nobody").await;
    let mut outdated = begin();
    outdated.replace(&person("t", "taken", 3), IfMatch::ETag(&first.etag)).unwrap();
    check(&outdated, 412, 2, "taken").await;
    let mut alone = table.transaction("t");
    alone.insert(&person("t", "taken", 3)).unwrap();
    check(&alone, 409, 0, "taken").await;
    // It can be sent again when the obstacle is gone.
    table.delete("t", "taken", IfMatch::Any).await.unwrap();
    assert_eq!(conflict.send().await.unwrap().etags.len(), 4);
}

#[tokio::test]
async fn a_hundred_operations_fit_and_no_more() {
    let server = server();
    let table = table(&server);
    let mut transaction = table.transaction("t");
    for number in 0..100 {
        assert!(!transaction.is_full());
        transaction.insert(&person("t", &format!("{number:03}"), number)).unwrap();
    }
    assert!(transaction.is_full());
    refused(transaction.insert(&person("t", "more", 1)), "at most 100 operations");
    assert_eq!(transaction.send().await.unwrap().etags.len(), 100);
    assert_eq!(table.query::<PersonAge>().count().await.unwrap(), 100);
}

#[tokio::test]
async fn what_the_service_would_refuse_is_refused_at_once() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[]);
    let mut transaction = table.transaction("t");
    assert!(matches!(transaction.send().await, Err(Error::Refused(_))));
    transaction.insert(&person("t", "a", 1)).unwrap();
    refused(transaction.insert(&person("other", "b", 1)), "another partition");
    refused(transaction.upsert_merge(&person("t", "a", 1)), "in this transaction already");
    refused(transaction.delete("a", IfMatch::Any), "in this transaction already");
    refused(transaction.replace(&person("t", "b", 1), IfMatch::Unchanged), "keeps its ETag");
    refused(transaction.delete("b", IfMatch::Unchanged), "keeps its ETag");

    let mut many = DynamicEntity::new("t", "many");
    for number in 0..253 {
        many.set(&format!("p{number}"), 1).unwrap();
    }
    refused(transaction.insert(&many), "253 properties");
    many.remove("p0");
    transaction.insert(&many).unwrap();

    let mut large = DynamicEntity::new("t", "large");
    for number in 0..16 {
        large.set(&format!("p{number}"), "x".repeat(32 * 1024)).unwrap();
    }
    refused(transaction.insert(&large), "as the service counts");
    let long = DynamicEntity::new("t", "long").with("p", "x".repeat(32 * 1024 + 1)).unwrap();
    refused(transaction.insert(&long), "64 KiB");
    // What was refused left no trace.
    assert_eq!(transaction.len(), 2);
    assert!(transport.methods().is_empty());
    assert_eq!(transaction.send().await.unwrap().etags.len(), 2);
}

#[tokio::test]
async fn four_mebibytes_fit_and_no_more() {
    let server = server();
    let table = table(&server);
    let mut transaction = table.transaction("t");
    let refusal = loop {
        let mut entity = DynamicEntity::new("t", format!("{:03}", transaction.len()));
        for number in 0..10 {
            entity.set(&format!("p{number}"), "x".repeat(30 * 1024)).unwrap();
        }
        if let Err(error) = transaction.insert(&entity) {
            break error;
        }
    };
    assert!(refusal.to_string().contains("4194304"), "{refusal}");
    assert_eq!(transaction.len(), 13);
    assert_eq!(transaction.send().await.unwrap().etags.len(), 13);
}

#[tokio::test]
async fn awkward_keys_go_through_transactions() {
    let keys: Vec<&str> = AWKWARD.into_iter().filter(|key| *key != LIKE_AN_ADDRESS).collect();
    go_through_transactions(&keys).await;
}

#[tokio::test]
async fn keys_like_addresses_go_through_transactions() {
    go_through_transactions(&[LIKE_AN_ADDRESS]).await;
}

async fn go_through_transactions(keys: &[&str]) {
    let server = server();
    let table = table(&server);
    for &partition_key in keys {
        let mut inserts = table.transaction(partition_key);
        let mut merges = table.transaction(partition_key);
        let mut deletes = table.transaction(partition_key);
        for &row_key in keys {
            inserts.insert(&person(partition_key, row_key, 1)).unwrap();
            merges.merge(&person(partition_key, row_key, 2), IfMatch::Any).unwrap();
            deletes.delete(row_key, IfMatch::Any).unwrap();
        }
        inserts.send().await.unwrap();
        merges.send().await.unwrap();
        let rows = table.query::<Person>().partition(partition_key).all().await.unwrap();
        assert_eq!(rows.len(), keys.len());
        assert!(rows.iter().all(|row| row.age == 2));
        deletes.send().await.unwrap();
        assert_eq!(table.query::<Person>().partition(partition_key).count().await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_message_is_put_with_the_transaction_or_not_at_all() {
    let server = server();
    let table = table(&server);
    server.queue().create("jobs");
    let mut transaction = table.transaction("t");
    refused(transaction.enqueue("jobs", "too early"), "has none yet");
    transaction.insert(&person("t", "a", 1)).unwrap();
    refused(transaction.enqueue("No Queue", "x"), "cannot be a queue");
    refused(transaction.enqueue("jobs", "\u{0}"), "control characters");
    refused(transaction.enqueue("jobs", &"x".repeat(64 * 1024 + 1)), "at most");
    transaction.enqueue("jobs", "<a> & ü\nb").unwrap();
    refused(transaction.enqueue("jobs", "again"), "one message");
    transaction.insert(&person("t", "b", 1)).unwrap().enqueue("jobs", "second").unwrap();
    transaction.send().await.unwrap();
    let mut failing = table.transaction("t");
    failing.insert(&person("t", "c", 1)).unwrap().enqueue("jobs", "never").unwrap();
    failing.insert(&person("t", "a", 1)).unwrap();
    assert!(failing.send().await.unwrap_err().is_conflict());
    let mut texts: Vec<String> = server.queue().texts("jobs");
    texts.sort();
    assert_eq!(texts, ["<a> & ü\nb", "second"]);
}
