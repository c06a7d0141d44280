//! Two services over one engine, as in two processes: what one does to a table, the other knows when it matters.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use engine::Share;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use protocol::ErrorCode;
use protocol::common::{AccountName, StoredPolicy};
use protocol::table::model::TableName;
use tables::{Action, Change, EntityQuery, TableService, Transaction};

use super::convert::Collected;

struct World {
    clock: Arc<FakeClock>,
    account: AccountName,
    table: TableName,
    one: TableService,
    other: TableService,
}

impl World {
    async fn new() -> World {
        let clock = Arc::new(FakeClock::default());
        let engine = Arc::new(MemoryEngine::new(tables::FAMILIES, clock.clone()));
        let service = || TableService::new(engine.clone(), clock.clone()).sharing_its_engine();
        let (one, other) = (service(), service());
        let account = AccountName::parse("devstoreaccount1").unwrap();
        let table = TableName::parse("people").unwrap();
        one.create_table(&account, &table).await.unwrap();
        let world = World { clock, account, table, one, other };
        // Both know the table.
        world.put(&world.one, "a").await.unwrap();
        assert!(world.has(&world.other, "a").await.unwrap());
        world
    }

    async fn put(&self, service: &TableService, row: &'static str) -> Result<(), ErrorCode> {
        let action = Action::Replace { properties: Vec::new(), condition: None };
        let change = Change { partition_key: Cow::Borrowed("p"), row_key: Cow::Borrowed(row), action };
        let transaction = Transaction::one(change).unwrap();
        service.commit(&self.account, &self.table, transaction).await.map(|_| ()).map_err(|error| error.code)
    }

    async fn has(&self, service: &TableService, row: &str) -> Result<bool, ErrorCode> {
        let found = service.get_entity(&self.account, &self.table, "p", row).await;
        found.map(|row| row.is_some()).map_err(|error| error.code)
    }

    async fn count(&self, service: &TableService) -> Result<u64, ErrorCode> {
        let query = EntityQuery {
            filter: None,
            within: None,
            resume: None,
            entity_count_max: 100,
            share: Share::COMMON,
        };
        let mut sink = Collected(Vec::new());
        let page = service.query_entities(&self.account, &self.table, query, &mut sink).await;
        page.map(|page| page.returned_count).map_err(|error| error.code)
    }

    async fn replace(&self) {
        self.one.delete_table(&self.account, &self.table).await.unwrap();
        self.one.create_table(&self.account, &self.table).await.unwrap();
    }
}

#[tokio::test]
async fn a_new_table_of_the_same_name_counts_at_once() {
    let world = World::new().await;
    world.replace().await;
    assert_eq!(world.has(&world.other, "a").await, Ok(false));
    world.replace().await;
    world.put(&world.one, "b").await.unwrap();
    assert_eq!(world.has(&world.other, "b").await, Ok(true), "a row of the new table");
    world.replace().await;
    assert_eq!(world.count(&world.other).await, Ok(0));
    world.replace().await;
    world.put(&world.one, "c").await.unwrap();
    assert_eq!(world.count(&world.other).await, Ok(1), "a page of the new table");
    world.replace().await;
    world.put(&world.other, "d").await.unwrap();
    assert_eq!(world.has(&world.one, "d").await, Ok(true), "a write goes to the new table");
}

#[tokio::test]
async fn a_table_that_is_gone_is_gone_at_once() {
    for attempt in 0..3 {
        let world = World::new().await;
        world.one.delete_table(&world.account, &world.table).await.unwrap();
        let outcome = match attempt {
            0 => world.put(&world.other, "a").await,
            1 => world.has(&world.other, "a").await.map(|_| ()),
            _ => world.count(&world.other).await.map(|_| ()),
        };
        assert_eq!(outcome, Err(ErrorCode::TableNotFound), "{attempt}");
    }
}

#[tokio::test]
async fn policies_of_an_old_table_are_not_those_of_a_new_one() {
    let world = World::new().await;
    let name = world.table.as_str();
    let policy = StoredPolicy { id: "one".into(), ..StoredPolicy::default() };
    world.one.catalogue().set_policies(&world.account, name, &[policy]).await.unwrap();
    let policies =
        async || world.other.catalogue().policies(&world.account, name).await.unwrap().unwrap().len();
    assert_eq!(policies().await, 1);
    world.one.catalogue().set_policies(&world.account, name, &[]).await.unwrap();
    assert_eq!(policies().await, 0, "removed at once");
    world.replace().await;
    assert_eq!(policies().await, 0);
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(policies().await, 0);
}
