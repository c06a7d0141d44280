//! A future that is dropped leaves the client usable, and sends no more.

use std::time::Duration;

use lazulite_client::BulkMode;

use crate::support::*;

#[tokio::test]
async fn operations_can_be_cancelled_at_any_point() {
    let server = server();
    let table = table(&server);
    // Ever later, from before the first byte to after the last.
    for microseconds in (0..4000).step_by(97) {
        let name = format!("{microseconds:05}");
        let row = person("t", &name, 1);
        let patience = Duration::from_micros(microseconds);
        let outcome = tokio::time::timeout(patience, table.insert(&row)).await;
        let exists = table.exists("t", &name).await.unwrap();
        assert!(exists || outcome.is_err());
        let _ = tokio::time::timeout(patience, table.query::<Person>().all()).await;
        let _ =
            tokio::time::timeout(patience, table.update("t", &name, |row: &mut Person| row.age += 1)).await;
        let age = table.try_get::<Person>("t", &name).await.unwrap().map(|row| row.age);
        assert!(matches!(age, None | Some(1 | 2)), "{age:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_load_that_is_dropped_stops() {
    let server = server();
    let (table, transport) = faulty_table(&server, &[]);
    let people: Vec<Person> = (0..20_000).map(|number| person("t", &format!("{number:05}"), 1)).collect();
    let outcome =
        tokio::time::timeout(Duration::from_millis(30), table.bulk(&people, BulkMode::Insert).parallel(2))
            .await;
    assert!(outcome.is_err(), "too fast to be dropped");
    // What is on its way may still arrive.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let sent = transport.methods().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(transport.methods().len(), sent);
    let count = table.query::<PersonAge>().count().await.unwrap();
    assert_eq!(count % 100, 0, "every transaction happened as a whole or not at all");
}

#[tokio::test]
async fn a_stream_that_is_dropped_fetches_no_more() {
    let server = server();
    let plain = table(&server);
    let people: Vec<Person> = (0..100).map(|number| person("t", &format!("{number:05}"), 1)).collect();
    plain.bulk(&people, BulkMode::Insert).await.into_result().unwrap();
    let (table, transport) = faulty_table(&server, &[]);
    let mut stream = table.query::<PersonAge>().page_size(10).stream();
    for _ in 0..15 {
        stream.next().await.unwrap().unwrap();
    }
    drop(stream);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(transport.methods().len(), 2);
}
