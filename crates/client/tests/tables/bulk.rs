//! Bulk loads: few requests, and one failure costs nobody else.

use std::collections::BTreeSet;

use lazulite_client::{BulkMode, DynamicEntity, Error, IfMatch};

use crate::support::*;

fn people(partitions: usize, count: usize) -> Vec<Person> {
    let person = |number: usize| {
        person(
            &format!("p{:02}", number % partitions),
            &format!("r{:05}", number / partitions),
            number as i32,
        )
    };
    (0..count).map(person).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_entities_of_twenty_partitions_with_some_that_fail() {
    let server = server();
    let table = table(&server);
    let people = people(20, 5000);
    let taken: BTreeSet<usize> = [0, 19, 777, 2500, 2501, 4999].into();
    for index in &taken {
        table.insert(&person(&people[*index].team, &people[*index].name, -1)).await.unwrap();
    }
    let report = table.bulk(&people, BulkMode::Insert).await;
    assert_eq!(report.written, 5000 - taken.len());
    let failed: BTreeSet<usize> = report.failures.iter().map(|failure| failure.index).collect();
    assert_eq!(failed, taken);
    for failure in &report.failures {
        assert!(failure.error.is_conflict(), "{failure}");
        let keys = failure.error.failure().unwrap().keys.clone().unwrap();
        assert_eq!(keys.row_key, people[failure.index].name);
    }
    // 20 partitions of 250: three transactions each, and one more for each failure.
    assert_eq!(report.requests, 60 + taken.len());
    assert_eq!(table.query::<PersonAge>().count().await.unwrap(), 5000);
    let old = table.query::<Person>().filter(Person::age().eq(-1)).count().await.unwrap();
    assert_eq!(old, taken.len() as u64);
}

#[tokio::test]
async fn many_failures_are_found_one_by_one() {
    let server = server();
    let table = table(&server);
    let people = people(1, 100);
    for person in people.iter().step_by(2) {
        table.insert(person).await.unwrap();
    }
    let report = table.bulk(&people, BulkMode::Insert).parallel(1).await;
    assert_eq!((report.written, report.failures.len()), (50, 50));
    assert!(report.failures.iter().all(|failure| failure.index % 2 == 0 && failure.error.is_conflict()));
    assert!(report.requests <= 101, "{}", report.requests);
    assert_eq!(table.query::<PersonAge>().count().await.unwrap(), 100);
}

#[tokio::test]
async fn a_row_twice_is_written_twice_in_order() {
    let server = server();
    let table = table(&server);
    let mut rows: Vec<Person> = Vec::new();
    for round in 0..5 {
        rows.extend((0..150).map(|number| person("p", &format!("{number:03}"), round * 1000 + number)));
    }
    let report = table.bulk(&rows, BulkMode::UpsertReplace).await;
    assert_eq!((report.written, report.failures.len(), report.requests), (750, 0, 10));
    let last = table.query::<PersonAge>().all().await.unwrap();
    assert_eq!(last.len(), 150);
    assert!(last.iter().enumerate().all(|(number, row)| row.age == 4000 + number as i32));
    // The second insert of a row is a failure of the second.
    let twice = [person("q", "a", 1), person("q", "b", 1), person("q", "a", 2)];
    let report = table.bulk(&twice, BulkMode::Insert).await;
    assert_eq!(report.failures.iter().map(|failure| failure.index).collect::<Vec<_>>(), [2]);
    assert_eq!(table.get::<Person>("q", "a").await.unwrap().age, 1);
}

#[tokio::test]
async fn every_mode_does_what_its_operation_does() {
    let server = server();
    let table = table(&server);
    let with_email = |age| Person { email: Some("x".to_owned()), ..person("p", "a", age) };
    let missing = person("p", "missing", 1);
    table.insert(&with_email(1)).await.unwrap();
    let check = async |mode: BulkMode, failed: &[usize], email: Option<&str>| {
        let report = table.bulk(&[person("p", "a", 2), missing.clone()], mode).await;
        assert_eq!(
            report.failures.iter().map(|failure| failure.index).collect::<Vec<_>>(),
            failed,
            "{mode:?}"
        );
        let read = table.try_get::<Person>("p", "a").await.unwrap();
        assert_eq!(read.and_then(|read| read.email).as_deref(), email, "{mode:?}");
    };
    check(BulkMode::Insert, &[0], Some("x")).await;
    table.delete_entity(&missing, IfMatch::Any).await.unwrap();
    check(BulkMode::Merge, &[1], Some("x")).await;
    check(BulkMode::UpsertMerge, &[], Some("x")).await;
    table.delete_entity(&missing, IfMatch::Any).await.unwrap();
    check(BulkMode::Replace, &[1], None).await;
    table.replace(&with_email(1), IfMatch::Any).await.unwrap();
    check(BulkMode::UpsertReplace, &[], None).await;
    table.delete_entity(&missing, IfMatch::Any).await.unwrap();
    check(BulkMode::Delete, &[1], None).await;
    assert_eq!(table.query::<PersonAge>().count().await.unwrap(), 0);
}

#[tokio::test]
async fn large_entities_are_packed_by_size() {
    let server = server();
    let table = table(&server);
    let large = |number: usize| {
        let mut entity = DynamicEntity::new("p", format!("{number:03}"));
        for property in 0..10 {
            entity.set(&format!("p{property}"), "x".repeat(30 * 1024)).unwrap();
        }
        entity
    };
    let mut entities: Vec<DynamicEntity> = (0..30).map(large).collect();
    entities[7].set("p", "x".repeat(33 * 1024)).unwrap();
    let report = table.bulk(&entities, BulkMode::Insert).await;
    assert_eq!((report.written, report.requests), (29, 3));
    assert_eq!(report.failures.iter().map(|failure| failure.index).collect::<Vec<_>>(), [7]);
    assert!(matches!(*report.failures[0].error, Error::Refused(_)));
}

#[tokio::test]
async fn a_missing_table_fails_each_entity_once() {
    let server = server();
    let table = builder(&server).tables().unwrap().table("nowhere").unwrap();
    let report = table.bulk(&people(2, 150), BulkMode::Insert).await;
    assert_eq!((report.written, report.failures.len(), report.requests), (0, 150, 2));
    assert!(report.failures.iter().all(|failure| failure.error.code() == Some("TableNotFound")));
    let empty = table.bulk(&people(1, 0), BulkMode::Insert).await;
    assert_eq!((empty.written, empty.requests), (0, 0));
}

#[tokio::test]
async fn lost_answers_cost_nothing() {
    let server = server();
    let faults = [Fault::LoseAnswer, Fault::None, Fault::LoseRequest, Fault::FailAfterwards];
    let (table, _) = faulty_table(&server, &faults);
    let report = table.bulk(&people(3, 300), BulkMode::Insert).await;
    assert_eq!((report.written, report.failures.len()), (300, 0));
    assert_eq!(table.query::<PersonAge>().count().await.unwrap(), 300);
}
