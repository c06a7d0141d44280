//! Paging: pages of the requested size, and tokens that another client can use later.

use azure_core::prelude::Continuable;
use azure_data_tables::operations::QueryEntityBuilder;
use azure_data_tables::prelude::*;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::*;

const PARTITIONS: usize = 3;
const ROWS_PER_PARTITION: usize = 850; // 2,550 rows fill three pages of a thousand

fn everything() -> Vec<String> {
    (0..PARTITIONS).flat_map(|p| (0..ROWS_PER_PARTITION).map(move |n| format!("p{p}/{n:05}"))).collect()
}

/// One table for all tests here, filled once. Each test has its own runtime, and therefore its own client.
async fn many() -> TableClient {
    static NAME: OnceCell<String> = OnceCell::const_new();
    let name = NAME.get_or_init(|| async {
        let table = new_table().await;
        for p in 0..PARTITIONS {
            let partition = table.partition_key_client(format!("p{p}"));
            for start in (0..ROWS_PER_PARTITION).step_by(50) {
                let mut transaction = partition.transaction();
                for n in start..start + 50 {
                    let row = entity_of(&format!("p{p}"), &format!("{n:05}"), json!({ "n": n }));
                    transaction = transaction.insert(row).unwrap();
                }
                transaction.await.unwrap();
            }
        }
        table.table_name().to_owned()
    });
    service().table_client(name.await)
}

fn keys(entities: &[Value]) -> Vec<String> {
    let key = |entity| format!("{}/{}", text(entity, "PartitionKey"), text(entity, "RowKey"));
    entities.iter().map(key).collect()
}

async fn pages(query: QueryEntityBuilder) -> Vec<Vec<String>> {
    query.into_stream::<Value>().map(|page| keys(&page.unwrap().entities)).collect().await
}

/// The first page and the token for the next.
async fn first_page(query: QueryEntityBuilder) -> (Vec<String>, (String, Option<String>)) {
    let mut pages = query.into_stream::<Value>();
    let page = pages.next().await.unwrap().unwrap();
    let token = page.continuation().expect("there is more");
    (keys(&page.entities), token)
}

fn resume(query: QueryEntityBuilder, (partition, row): (String, Option<String>)) -> QueryEntityBuilder {
    query.initial_partition_key(partition).initial_row_key(row.expect("the service always gives both"))
}

#[tokio::test]
async fn a_plain_listing_follows_continuations_to_the_end() {
    let pages = pages(many().await.query()).await;
    assert_eq!(pages[0].len(), 1000);
    assert_eq!(pages.concat(), everything());
}

#[tokio::test]
async fn pages_have_the_size_asked_for() {
    for size in [1000, 850, 400] {
        let pages = pages(many().await.query().top(size as u32)).await;
        assert_eq!(pages[0].len(), size);
        assert!(pages.iter().all(|page| page.len() <= size));
        assert_eq!(pages.concat(), everything());
    }
}

#[tokio::test]
async fn a_saved_token_resumes_where_it_stopped_in_another_client() {
    let (first, token) = first_page(many().await.query().top(700)).await;
    assert_eq!(first, everything()[..700]);
    let rest = pages(resume(many().await.query().top(700), token)).await;
    assert_eq!(rest.concat(), everything()[700..]);
}

#[tokio::test]
async fn a_token_can_be_used_twice() {
    let table = many().await;
    let (_, token) = first_page(table.query().top(10)).await;
    for _ in 0..2 {
        let (again, _) = first_page(resume(table.query().top(10), token.clone())).await;
        assert_eq!(again, everything()[10..20]);
    }
}

#[tokio::test]
async fn a_filtered_listing_pages_within_its_filter() {
    let filter = "PartitionKey eq 'p1' and n ge 100 and n lt 160";
    let pages = pages(many().await.query().filter(filter).top(25)).await;
    assert!(pages.iter().all(|page| page.len() <= 25));
    assert_eq!(pages.concat(), everything()[950..1010]);
}

#[tokio::test]
async fn more_than_1000_per_page_is_refused() {
    assert_refused(all(many().await.query().top(1001)).await, 400, "InvalidInput");
}

#[tokio::test]
async fn a_token_stays_good_when_the_entity_it_names_is_gone() {
    let table = new_table().await;
    for row in 0..6 {
        insert(&table, entity(&row.to_string(), json!({}))).await.unwrap();
    }
    let (_, token) = first_page(table.query().top(2)).await;
    at(&table, "p", "1").delete().await.unwrap();
    at(&table, "p", "2").delete().await.unwrap();
    assert_eq!(pages(resume(table.query().top(2), token)).await.concat(), ["p/3", "p/4", "p/5"]);
}
