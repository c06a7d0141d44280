//! What each piece does when it is used alone: refusals, edges, and what is left behind.

use lazulite_client::{DynamicEntity, Keys, PutOptions, Value};
use lazulite_patterns::RawEntity;
use lazulite_patterns::archive::{Archive, DEQUEUE_COUNT_MAX, Moved};
use lazulite_patterns::daily::DailyTables;
use lazulite_patterns::data::{self, Employee};
use lazulite_patterns::join;
use lazulite_patterns::large::{CHUNK_BYTES_MAX, LargeRows};
use lazulite_patterns::name_list::NameList;
use lazulite_patterns::partition_index::PartitionIndex;
use lazulite_patterns::wide::WideRows;

use std::time::Duration;

use crate::place;

#[test]
fn a_change_of_an_indexed_property_moves_the_copy() {
    let (_server, demo) = place::open();
    place::run(async {
        let table = demo.table("Employees").await?;
        let index = PartitionIndex::new(table.clone(), |employee: &Employee| {
            vec![format!("email_{}", employee.email)]
        });
        let jones = data::employee(3);
        index.insert(&jones).await?;
        // The address is taken, whoever wants it.
        let other = Employee { email: jones.email.clone(), ..data::employee(8) };
        assert!(index.insert(&other).await.unwrap_err().is_conflict());
        assert!(!table.exists("Sales", &other.id).await?);

        let read: Employee = table.get("Sales", &jones.id).await?;
        let renamed = Employee { email: "a/b@contoso.com".replace('/', "."), age: 99, ..read.clone() };
        index.replace(&read, &renamed).await?;
        assert_eq!(index.find("Sales", &format!("email_{}", jones.email)).await?, None);
        let found = index.find("Sales", "email_a.b@contoso.com").await?.ok_or("the copy")?;
        assert_eq!((found.id.as_str(), found.age), (jones.id.as_str(), 99));
        assert!(index.replace(&read, &renamed).await.unwrap_err().is_precondition_failed());
        let listed = index.list("Sales", "email_a".to_owned().."email_b".to_owned()).await?;
        assert_eq!(listed.len(), 1);

        let read: Employee = table.get("Sales", &jones.id).await?;
        index.delete(&read).await?;
        assert_eq!(place::contents(&table).await?.len(), 0);
        Ok(())
    });
}

#[test]
fn a_list_loses_its_last_member_and_is_gone() {
    let (_server, demo) = place::open();
    place::run(async {
        let table = demo.table("Employees").await?;
        let list = NameList::new(table.clone(), "name", |employee: &Employee| employee.last_name.clone());
        let jones = Employee { last_name: "O/Neill #1".to_owned(), ..data::employee(3) };
        list.insert(&jones).await?;
        assert_eq!(list.members("Sales", "O/Neill #1").await?, [&*jones.id]);
        assert!(list.insert(&jones).await.unwrap_err().is_conflict());
        let read: Employee = table.get("Sales", &jones.id).await?;
        list.delete(&read).await?;
        assert_eq!(place::contents(&table).await?.len(), 0);
        Ok(())
    });
}

#[test]
fn payloads_of_every_length_come_back() {
    let (_server, demo) = place::open();
    place::run(async {
        let table = demo.table("Photos").await?;
        let photos = LargeRows::new(table.clone());
        assert_eq!(photos.read::<RawEntity>("p", "photo").await?, None);
        let lengths = [5 * CHUNK_BYTES_MAX + 17, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX + 1, 64 * 1024, 1, 0];
        for length in lengths {
            let payload: Vec<u8> = (0..length).map(|n| (n % 253) as u8).collect();
            photos.write(&RawEntity::new("p", "photo"), &payload).await?;
            let (_, found) = photos.read::<RawEntity>("p", "photo").await?.ok_or("a photo")?;
            assert!(found == payload, "{length}");
            let rows = place::contents(&table).await?.len();
            assert_eq!(rows, 1 + length.div_ceil(CHUNK_BYTES_MAX), "{length}");
        }
        Ok(())
    });
}

#[test]
fn a_wide_entity_shrinks_without_a_trace() {
    let (_server, demo) = place::open();
    place::run(async {
        let table = demo.table("Wide").await?;
        let rows = WideRows::new(table.clone());
        assert_eq!(rows.read::<RawEntity>("p", "r").await?, None);
        for (count, expected_rows) in [(1000, 4), (250, 1), (251, 2), (0, 1)] {
            let object = (0..count)
                .fold(RawEntity::new("p", "r"), |raw, n| raw.with(format!("P{n}"), Value::Int32(n)));
            rows.write(&object).await?;
            let found = rows.read::<RawEntity>("p", "r").await?.ok_or("an entity")?;
            assert_eq!(found.properties, object.properties);
            assert_eq!(place::contents(&table).await?.len(), expected_rows, "{count}");
        }
        Ok(())
    });
}

#[test]
fn days_are_deleted_and_other_tables_stay() {
    let (_server, demo) = place::open();
    place::run(async {
        let tables = DailyTables::new(demo.tables().clone(), demo.name("Day"));
        demo.table("Daylight").await?;
        for day in 0..3 {
            let table = tables.open(data::moment(day * 24 * 3600)).await?;
            table.insert(&RawEntity::new("p", "r")).await?;
        }
        let gone = tables.delete_before(data::moment(2 * 24 * 3600)).await?;
        assert_eq!(gone.len(), 2);
        let left = demo.tables().list_tables().all().await?;
        assert_eq!(left.len(), 2, "{left:?}");
        Ok(())
    });
}

#[test]
fn messages_that_nobody_can_handle_are_set_aside() {
    let (_server, demo) = place::open();
    place::run(async {
        let mover = Archive {
            current: demo.table("Current").await?,
            archive: demo.table("Archive").await?,
            queue: demo.queue("leaving").await?,
            poison: demo.queue("poison").await?,
            visibility: Duration::from_secs(1),
        };
        mover.queue.put("archive everybody", PutOptions::new()).await?;
        assert_eq!(mover.work().await?, Moved::Poison);
        assert_eq!(mover.work().await?, Moved::Nothing);
        assert_eq!(mover.poison.peek(1).await?[0].text, "archive everybody");

        // A message that kills its workers again and again.
        mover.request(&Keys { partition_key: "Sales".into(), row_key: "000003".into() }).await?;
        for _ in 0..DEQUEUE_COUNT_MAX {
            let message = mover.queue.take(1, Duration::from_secs(1)).await?.pop().ok_or("a message")?;
            mover.queue.update(&message, None, Duration::ZERO).await?;
        }
        assert_eq!(mover.work().await?, Moved::Poison);
        assert_eq!(mover.queue.approximate_count().await?, 0);
        assert_eq!(mover.poison.approximate_count().await?, 2);
        Ok(())
    });
}

#[test]
fn a_join_keeps_to_points_and_skips_what_is_gone() {
    let (_server, demo) = place::open();
    place::run(async {
        let table = demo.table("Employees").await?;
        demo.load(&table, &data::employees(data::Size::Medium)).await?;
        let keys = (1..=30).chain([3, 5000]).map(|number| {
            let Employee { department, id, .. } = data::employee(number);
            Keys { partition_key: department.into(), row_key: id.into() }
        });
        let (cost, found) = demo.measure(join::fetch::<DynamicEntity>(&table, keys)).await?;
        assert_eq!(found.len(), 30);
        assert_eq!((cost.requests, cost.entities_examined), (5, 30));
        Ok(())
    });
}
