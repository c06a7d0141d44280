//! Parallel use: with many requests in flight nothing is lost and nothing is invented.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn inserts_and_reads_in_flight_together() {
    let table = new_table().await;
    let one = async |n: usize| {
        let (partition, row) = (format!("p{}", n % 7), n.to_string());
        insert(&table, entity_of(&partition, &row, json!({ "n": n }))).await.unwrap();
        plain(at(&table, &partition, &row).get::<Value>().await.unwrap().entity)
    };
    let found = join_all((0..200).map(one)).await;
    assert!(found.iter().enumerate().all(|(n, values)| *values == json!({ "n": n })));
    assert_eq!(list(&table).await.len(), 200);
}

#[tokio::test]
async fn of_inserts_of_the_same_entity_one_wins() {
    let table = new_table().await;
    let results = join_all((0..40).map(|n| insert(&table, entity("r", json!({ "winner": n }))))).await;
    let winners: Vec<usize> = (0..40).filter(|n| results[*n].is_ok()).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(stored(&table).await, json!({"winner": winners[0]}));
    for refused in results.into_iter().filter(|result| result.is_err()) {
        assert_refused(refused, 409, "EntityAlreadyExists");
    }
}

#[tokio::test]
async fn counting_with_etags_loses_no_update() {
    let table = new_table().await;
    insert(&table, entity("r", json!({"count": 0}))).await.unwrap();
    let add_one = async || {
        loop {
            let found = one(&table).get::<Value>().await.unwrap();
            let next = entity("r", json!({"count": found.entity["count"].as_i64().unwrap() + 1}));
            match one(&table).update(next, found.etag.into()).unwrap().await {
                Ok(_) => return,
                refused => assert_not_satisfied(refused),
            }
        }
    };
    join_all((0..8).map(async |_| {
        for _ in 0..10 {
            add_one().await;
        }
    }))
    .await;
    assert_eq!(stored(&table).await, json!({"count": 80}));
}

#[tokio::test]
async fn merges_of_different_properties_all_stay() {
    let table = new_table().await;
    let merge = async |n: usize| {
        let values = json!({ format!("p{n}"): n });
        one(&table).insert_or_merge(entity("r", values)).unwrap().await.unwrap();
    };
    join_all((0..100).map(merge)).await;
    let found = stored(&table).await;
    assert!((0..100).all(|n| found[format!("p{n}")] == n));
    assert_eq!(found.as_object().unwrap().len(), 100);
}

#[tokio::test]
async fn readers_see_all_of_a_transaction_or_nothing() {
    let table = new_table().await;
    let write = async |n: usize| {
        let mut all = table.partition_key_client("p").transaction();
        for row in 0..20 {
            let row = format!("{row:02}");
            all = all.insert_or_replace(&row, entity(&row, json!({ "n": n }))).unwrap();
        }
        all.await.unwrap();
    };
    write(0).await;
    let work = async |n: usize| {
        if n % 2 == 1 {
            return write(n).await;
        }
        let found = list(&table).await;
        assert_eq!(found.len(), 20);
        assert!(found.iter().all(|entity| entity["n"] == found[0]["n"]));
    };
    join_all((0..60).map(work)).await;
}
