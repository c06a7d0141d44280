//! Answers that are lost after the server did what it was asked.

use lazulite_client::{IfMatch, TableClient};
use testkit::TestServer;

use crate::support::*;

/// Runs an operation of another client, while the first waits for its answer.
fn act(
    server: &TestServer,
    act: impl AsyncFnOnce(TableClient) + Send + 'static,
) -> impl FnOnce() + Send + 'static {
    let table = table(server);
    move || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(act(table));
            });
        });
    }
}

#[tokio::test]
async fn an_insert_that_happened_is_found() {
    for fault in [Fault::LoseAnswer, Fault::FailAfterwards] {
        let server = server();
        let (table, transport) = faulty_table(&server, &[fault]);
        let written = table.insert(&person("t", "a", 1)).await.unwrap();
        assert_eq!(transport.methods(), ["POST", "GET"]);
        assert_eq!(table.get::<Person>("t", "a").await.unwrap().etag, Some(written.etag));
        let (table, _) = faulty_table(&server, &[fault]);
        let returned = table.insert_and_return(&dynamic("t", "b", 1)).await.unwrap();
        assert_eq!(returned, table.get("t", "b").await.unwrap());
    }
}

#[tokio::test]
async fn an_insert_that_did_not_happen_is_sent_again() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[Fault::LoseRequest, Fault::Unsent]);
    table.insert(&person("t", "a", 1)).await.unwrap();
    assert_eq!(transport.methods(), ["POST", "GET", "POST", "POST"]);
    // As often as the policy allows.
    let (table, transport) = faulty_table(&server, &[Fault::LoseRequest; 20]);
    let error = table.insert(&person("t", "b", 1)).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    assert_eq!(transport.methods().iter().filter(|method| *method == "POST").count(), 5);
    assert!(!table.exists("t", "b").await.unwrap());
}

#[tokio::test]
async fn an_insert_that_somebody_else_beat_is_a_conflict() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[Fault::LoseRequest]);
    transport.meanwhile(act(&server, async |other| {
        other.insert(&person("t", "a", 2)).await.unwrap();
    }));
    let error = table.insert(&person("t", "a", 1)).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(error.code(), Some("EntityAlreadyExists"));
    assert_eq!(transport.methods(), ["POST", "GET"]);
    // A conflict that no lost answer explains needs no look.
    let (table, transport) = faulty_table(&server, &[]);
    assert!(table.insert(&person("t", "a", 2)).await.unwrap_err().is_conflict());
    assert_eq!(transport.methods(), ["POST"]);
}

#[tokio::test]
async fn a_conditional_write_that_happened_is_found() {
    let server = server();
    let plain = table(&server);
    plain.insert(&Person { email: Some("x".to_owned()), ..person("t", "a", 1) }).await.unwrap();
    for merges in [false, true] {
        let read: Person = plain.get("t", "a").await.unwrap();
        let next = Person { age: read.age + 1, ..read.clone() };
        let (table, transport) = faulty_table(&server, &[Fault::LoseAnswer]);
        let written = match merges {
            false => table.replace(&next, IfMatch::Unchanged).await.unwrap(),
            true => table.merge(&next, IfMatch::Unchanged).await.unwrap(),
        };
        assert_eq!(transport.methods().len(), 3, "{:?}", transport.methods());
        let now: Person = plain.get("t", "a").await.unwrap();
        assert_eq!((now.age, now.etag), (next.age, Some(written.etag)));
    }
}

#[tokio::test]
async fn a_conditional_write_that_somebody_else_beat_is_refused() {
    let server = server();
    let plain = table(&server);
    plain.insert(&person("t", "a", 1)).await.unwrap();
    let read: Person = plain.get("t", "a").await.unwrap();
    let (table, transport) = faulty_table(&server, &[Fault::LoseRequest]);
    transport.meanwhile(act(&server, async |other| {
        other.upsert_merge(&person("t", "a", 50)).await.unwrap();
    }));
    let error = table.replace(&Person { age: 2, ..read }, IfMatch::Unchanged).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    assert_eq!(plain.get::<Person>("t", "a").await.unwrap().age, 50);
}

#[tokio::test]
async fn a_delete_that_happened_is_a_success() {
    let server = server();
    let plain = table(&server);
    for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::FailAfterwards] {
        let written = plain.insert(&person("t", "a", 1)).await.unwrap();
        let (table, _) = faulty_table(&server, &[fault]);
        table.delete("t", "a", IfMatch::ETag(&written.etag)).await.unwrap();
        assert!(!plain.exists("t", "a").await.unwrap());
    }
    let (table, _) = faulty_table(&server, &[]);
    assert!(table.delete("t", "a", IfMatch::Any).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn an_update_counts_once_or_says_that_it_does_not_know() {
    let server = server();
    let plain = table(&server);
    plain.insert(&person("t", "a", 0)).await.unwrap();
    for (number, fault) in [Fault::LoseRequest, Fault::LoseAnswer, Fault::FailAfterwards].iter().enumerate() {
        let (table, _) = faulty_table(&server, &[*fault]);
        let mut calls = 0;
        let outcome = table
            .update("t", "a", |row: &mut Person| {
                calls += 1;
                row.age += 1;
            })
            .await;
        match (fault, outcome) {
            (Fault::LoseRequest, row) => assert_eq!(row.unwrap().age, 1),
            (_, outcome) => assert!(outcome.unwrap_err().is_outcome_unknown(), "{fault:?}"),
        }
        assert_eq!(calls, 1);
        assert_eq!(plain.get::<Person>("t", "a").await.unwrap().age, number as i32 + 1, "{fault:?}");
    }
}

#[tokio::test]
async fn an_update_takes_nobody_elses_work_for_its_own() {
    let server = server();
    let plain = table(&server);
    plain.insert(&person("t", "a", 0)).await.unwrap();
    // The other one counts to the same number, and writes the same content.
    let count = async |other: TableClient| {
        let first = || person("t", "a", 0);
        other.update_or_insert("t", "a", first, |row| row.age += 1).await.unwrap();
    };
    let (table, transport) = faulty_table(&server, &[Fault::LoseRequest]);
    transport.meanwhile(act(&server, count));
    let error = table.update("t", "a", |row: &mut Person| row.age += 1).await.unwrap_err();
    assert!(error.is_precondition_failed() && error.is_outcome_unknown(), "{error}");

    plain.delete("t", "a", IfMatch::Any).await.unwrap();
    let (table, transport) = faulty_table(&server, &[Fault::LoseRequest]);
    transport.meanwhile(act(&server, count));
    let first = || person("t", "a", 0);
    let error = table.update_or_insert("t", "a", first, |row| row.age += 1).await.unwrap_err();
    assert!(error.is_conflict() && error.is_outcome_unknown(), "{error}");
}

#[tokio::test]
async fn a_change_that_may_be_stored_is_not_made_again() {
    let server = server();
    let plain = table(&server);
    plain.insert(&person("t", "a", 0)).await.unwrap();
    // The change happens, and then another client changes the row once more.
    let (table, transport) = faulty_table(&server, &[Fault::LoseAnswer]);
    transport.meanwhile(act(&server, async |other| {
        other.update("t", "a", |row: &mut Person| row.age += 10).await.unwrap();
    }));
    let error = table.update("t", "a", |row: &mut Person| row.age += 1).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    assert_eq!(plain.get::<Person>("t", "a").await.unwrap().age, 11);
}

#[tokio::test]
async fn a_transaction_that_happened_is_found() {
    let server = server();
    let plain = table(&server);
    for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::FailAfterwards] {
        for name in ["deleted", "merged", "replaced"] {
            plain.upsert_replace(&person("t", name, 1)).await.unwrap();
        }
        let replaced: Person = plain.get("t", "replaced").await.unwrap();
        let (table, _) = faulty_table(&server, &[fault]);
        let mut transaction = table.transaction("t");
        transaction.insert(&person("t", "inserted", 2)).unwrap();
        transaction.delete("deleted", IfMatch::Any).unwrap();
        transaction.merge(&person("t", "merged", 2), IfMatch::Any).unwrap();
        transaction.replace(&Person { age: 2, ..replaced }, IfMatch::Unchanged).unwrap();
        let committed = transaction.send().await.unwrap();
        let inserted: Person = plain.get("t", "inserted").await.unwrap();
        assert_eq!(inserted.etag, committed.etags[0]);
        assert_eq!(committed.etags[1], None);
        assert_eq!(plain.query::<Person>().filter(Person::age().eq(2)).count().await.unwrap(), 3);
        plain.delete("t", "inserted", IfMatch::Any).await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_that_somebody_else_beat_is_refused() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[Fault::LoseRequest]);
    // The same row, but not the other one: so this is not the transaction's own work.
    transport.meanwhile(act(&server, async |other| {
        other.insert(&person("t", "a", 1)).await.unwrap();
    }));
    let mut transaction = table.transaction("t");
    transaction.insert(&person("t", "a", 1)).unwrap().insert(&person("t", "b", 1)).unwrap();
    let error = transaction.send().await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(!table.exists("t", "b").await.unwrap());
}

#[tokio::test]
async fn a_message_is_never_put_twice() {
    let server = server();
    server.queue().create("jobs");
    let (table, transport) = faulty_table(&server, &[Fault::LoseAnswer]);
    let mut transaction = table.transaction("t");
    transaction.upsert_replace(&person("t", "a", 1)).unwrap().enqueue("jobs", "one").unwrap();
    let error = transaction.send().await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    assert_eq!(transport.methods(), ["POST"]);
    // With an insert in it, the service itself refuses the second time.
    let (table, _) = faulty_table(&server, &[Fault::LoseAnswer]);
    let mut transaction = table.transaction("t");
    transaction.insert(&person("t", "b", 1)).unwrap().enqueue("jobs", "two").unwrap();
    transaction.send().await.unwrap();
    let texts: Vec<String> = server.queue().texts("jobs");
    assert_eq!(texts, ["one", "two"]);
}
