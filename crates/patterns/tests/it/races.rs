//! Concurrent writers, workers and readers, each with a transport that delays requests and answers at random.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use lazulite_client::{
    ClientBuilder, Error, HttpOptions, HttpTransport, Keys, QueueServiceClient, Sending, TableClient,
    TableServiceClient, Transport, Value,
};
use lazulite_patterns::RawEntity;
use lazulite_patterns::data::{self, Employee};
use lazulite_patterns::follow::{CopyIndex, Delivery, Follower, Worked, Worker};
use lazulite_patterns::large::LargeRows;
use lazulite_patterns::name_list::NameList;
use lazulite_patterns::partition_index::PartitionIndex;
use lazulite_patterns::showcase::{AnyError, Demo};
use lazulite_patterns::wide::WideRows;
use testkit::TestServer;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::place;

const WRITER_COUNT: u64 = 6;
const ROUND_COUNT: u64 = 20;
/// Most requests are quick, and some are so slow that everything else happens meanwhile.
const DELAY_MS_MAX: u64 = 4;
const LONG_DELAY_MS_MAX: u64 = 120;

/// Waits a random while before a request and after its answer, so that the requests of tasks mix in ever new ways.
struct Delaying(HttpTransport);

impl Transport for Delaying {
    fn send(&self, request: Request<Bytes>) -> Sending<'_> {
        Box::pin(async move {
            let pause = || {
                let ms_max = if fastrand::u8(..12) == 0 { LONG_DELAY_MS_MAX } else { DELAY_MS_MAX };
                Duration::from_millis(fastrand::u64(..ms_max))
            };
            tokio::time::sleep(pause()).await;
            let answer = self.0.send(request).await;
            tokio::time::sleep(pause()).await;
            answer
        })
    }
}

fn services(server: &TestServer) -> Result<(TableServiceClient, QueueServiceClient), Error> {
    let transport = Arc::new(Delaying(HttpTransport::new(HttpOptions::default())));
    let builder = ClientBuilder::from_connection_string(&place::connection_to(server))?.transport(transport);
    Ok((builder.tables()?, builder.queues()?))
}

async fn join_all(mut tasks: JoinSet<Result<(), AnyError>>) -> Result<(), AnyError> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Whether another writer was faster, which is what writers without luck are told.
fn is_race(error: &Error) -> bool {
    error.is_precondition_failed() || error.is_conflict() || error.is_not_found()
}

fn by_email(copies: &TableClient) -> Arc<CopyIndex<Employee>> {
    Arc::new(CopyIndex::new(copies.clone(), |employee: &Employee| {
        vec![Keys { partition_key: employee.email.clone().into(), row_key: "".into() }]
    }))
}

async fn index_converges(server: &TestServer, demo: &Demo, delivery: Delivery) -> Result<(), AnyError> {
    let (tables, queues) = services(server)?;
    let table = tables.table(demo.table("Employees").await?.name())?;
    let copies = tables.table(demo.table("ByEmail").await?.name())?;
    let queue = queues.queue(demo.queue("changes").await?.name())?;
    let poison = queues.queue(demo.queue("poison").await?.name())?;
    let index = by_email(&copies);
    let mut tasks: JoinSet<Result<(), AnyError>> = JoinSet::new();
    for writer in 0..WRITER_COUNT {
        let follower = Follower::new(table.clone(), queue.clone(), delivery, index.clone());
        let table = table.clone();
        tasks.spawn(async move {
            for round in 0..ROUND_COUNT {
                // Three employees that all writers fight for; each has a few addresses that come back again and again.
                let number = 3 + 5 * (fastrand::u64(..3));
                let employee = data::employee(number);
                let email = format!("{}-{}@contoso.com", employee.id, (writer + round) % 4);
                let outcome = match table.try_get::<Employee>("Sales", &employee.id).await? {
                    None => follower.insert(&Employee { email, ..employee }).await,
                    Some(old) if fastrand::u8(..5) == 0 => follower.delete(&old).await,
                    Some(old) => follower.replace(&old, &Employee { email, ..old.clone() }).await,
                };
                match outcome {
                    Err(error) if !is_race(&error) => return Err(error.into()),
                    _ => {}
                }
            }
            Ok(())
        });
    }
    let mut workers: JoinSet<Result<(), AnyError>> = JoinSet::new();
    let (sender, is_over) = tokio::sync::watch::channel(false);
    for _ in 0..4 {
        // The time is so short that workers lose their messages to others while they work.
        let visibility = Duration::from_secs(1);
        let worker = Worker::<Employee, _>::new(
            table.clone(),
            queue.clone(),
            poison.clone(),
            index.clone(),
            visibility,
        );
        let (queue, is_over) = (queue.clone(), is_over.clone());
        workers.spawn(async move {
            loop {
                let is_over = *is_over.borrow();
                if worker.work().await? == Worked::Nothing && is_over && queue.approximate_count().await? == 0
                {
                    return Ok(());
                }
            }
        });
    }
    join_all(tasks).await?;
    sender.send(true)?;
    join_all(workers).await?;
    assert_eq!(poison.approximate_count().await?, 0);

    let rows = table.query::<RawEntity>().all().await?;
    let primaries: BTreeMap<String, String> = rows
        .iter()
        .filter(|row| !row.keys.row_key.starts_with("claim!"))
        .map(|row| (row.text("EmailAddress").unwrap_or_default().to_owned(), row.keys.row_key.to_string()))
        .collect();
    let copies = copies.query::<RawEntity>().all().await?;
    let found: BTreeMap<String, String> = copies
        .iter()
        .map(|copy| {
            assert_eq!(copy.text("EmailAddress"), Some(copy.keys.partition_key.as_ref()));
            (copy.keys.partition_key.to_string(), copy.text("PrimaryRowKey").unwrap_or_default().to_owned())
        })
        .collect();
    assert_eq!(found, primaries);
    Ok(())
}

#[test]
fn an_index_behind_the_outbox_converges() {
    let (server, demo) = place::open();
    place::run(index_converges(&server, &demo, Delivery::Outbox));
}

#[test]
fn an_index_behind_a_queue_converges() {
    let (server, demo) = place::open();
    place::run(index_converges(&server, &demo, Delivery::Queue));
}

/// Holds some requests back until they are let go.
struct Holding {
    inner: HttpTransport,
    holds: fn(&Request<Bytes>) -> bool,
    gate: Arc<Semaphore>,
}

impl Holding {
    /// A builder whose requests of this kind wait for a permit, and the gate that gives permits.
    fn builder(
        server: &TestServer,
        holds: fn(&Request<Bytes>) -> bool,
    ) -> Result<(ClientBuilder, Arc<Semaphore>), Error> {
        let gate = Arc::new(Semaphore::new(0));
        let transport =
            Holding { inner: HttpTransport::new(HttpOptions::default()), holds, gate: gate.clone() };
        let builder = ClientBuilder::from_connection_string(&place::connection_to(server))?;
        Ok((builder.transport(Arc::new(transport)).timeout(Duration::from_secs(60)), gate))
    }
}

impl Transport for Holding {
    fn send(&self, request: Request<Bytes>) -> Sending<'_> {
        Box::pin(async move {
            let _pass = if (self.holds)(&request) { self.gate.acquire().await.ok() } else { None };
            self.inner.send(request).await
        })
    }
}

#[test]
fn a_client_that_stalls_after_its_announcement_cannot_write_any_more() {
    let (server, demo) = place::open();
    place::run(async {
        let (slow, gate) = Holding::builder(&server, |request| request.uri().path().ends_with("/$batch"))?;
        let (table, copies) = (demo.table("Employees").await?, demo.table("ByEmail").await?);
        let (queue, poison) = (demo.queue("changes").await?, demo.queue("poison").await?);
        let index = by_email(&copies);
        let follower = Follower::new(
            slow.tables()?.table(table.name())?,
            slow.queues()?.queue(queue.name())?,
            Delivery::Queue,
            index.clone(),
        );
        let stalled = tokio::spawn(async move { follower.insert(&data::employee(3)).await });
        let visibility = Duration::from_secs(30);
        let worker = Worker::<Employee, _>::new(table.clone(), queue.clone(), poison, index, visibility);
        // The worker waits for the change for a while, and then gives it up.
        while worker.work().await? != Worked::Settled {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(queue.approximate_count().await?, 0);
        gate.add_permits(1);
        assert!(stalled.await?.unwrap_err().is_conflict());
        assert_eq!(place::contents(&copies).await?.len(), 0);
        let left = place::contents(&table).await?;
        assert!(left.keys().all(|(_, row)| row.starts_with("claim!")), "{left:?}");
        Ok(())
    });
}

#[test]
fn a_worker_that_stalls_before_it_settles_undoes_what_is_no_longer_right() {
    let (server, demo) = place::open();
    place::run(async {
        let (table, copies) = (demo.table("Employees").await?, demo.table("ByEmail").await?);
        let (queue, poison) = (demo.queue("changes").await?, demo.queue("poison").await?);
        let visibility = Duration::from_secs(30);
        let index = by_email(&copies);
        let worker = Worker::<Employee, _>::new(
            table.clone(),
            queue.clone(),
            poison.clone(),
            index.clone(),
            visibility,
        );
        let follower = Follower::new(table.clone(), queue.clone(), Delivery::Outbox, index.clone());

        // The slow worker has read the employee, and is about to write the copy.
        let (slow, gate) = Holding::builder(&server, |request| request.method() == http::Method::PUT)?;
        let slow_index = by_email(&slow.tables()?.table(copies.name())?);
        let slow_worker =
            Worker::<Employee, _>::new(table.clone(), queue.clone(), poison, slow_index, visibility);
        follower.insert(&data::employee(3)).await?;
        let stalled = tokio::spawn(async move { slow_worker.work().await });
        while !queue.peek(1).await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;

        // Meanwhile the employee gets another address, and another worker settles that.
        let old: Employee = table.get("Sales", &data::employee(3).id).await?;
        follower.replace(&old, &Employee { email: "new@contoso.com".to_owned(), ..old.clone() }).await?;
        assert_eq!(worker.work().await?, Worked::Settled);
        assert!(!stalled.is_finished());
        gate.add_permits(100);
        assert_eq!(stalled.await??, Worked::Settled);
        let places: Vec<_> = place::contents(&copies).await?.into_keys().map(|(place, _)| place).collect();
        assert_eq!(places, ["new@contoso.com"]);
        Ok(())
    });
}

#[test]
fn an_index_in_the_partition_never_differs() {
    let (server, demo) = place::open();
    place::run(async {
        let (tables, _) = services(&server)?;
        let table = tables.table(demo.table("Employees").await?.name())?;
        let mut tasks: JoinSet<Result<(), AnyError>> = JoinSet::new();
        for writer in 0..WRITER_COUNT {
            let table = table.clone();
            let index = PartitionIndex::new(table.clone(), |employee: &Employee| {
                vec![format!("email_{}", employee.email)]
            });
            tasks.spawn(async move {
                for round in 0..ROUND_COUNT {
                    let employee = data::employee(3 + 5 * fastrand::u64(..3));
                    // Addresses that employees fight for: each belongs to at most one.
                    let email = format!("{}@contoso.com", (writer + round) % 5);
                    let outcome = match table.try_get::<Employee>("Sales", &employee.id).await? {
                        None => index.insert(&Employee { email, ..employee }).await,
                        Some(old) if fastrand::u8(..5) == 0 => index.delete(&old).await,
                        Some(old) => index.replace(&old, &Employee { email, ..old.clone() }).await,
                    };
                    match outcome {
                        Err(error) if !is_race(&error) => return Err(error.into()),
                        _ => {}
                    }
                    let rows = table.query::<RawEntity>().partition("Sales").all().await?;
                    let (copies, primaries): (Vec<&RawEntity>, Vec<&RawEntity>) =
                        rows.iter().partition(|row| row.keys.row_key.starts_with("email_"));
                    let place =
                        |row: &&RawEntity| format!("email_{}", row.text("EmailAddress").unwrap_or_default());
                    let expected: BTreeSet<String> = primaries.iter().map(place).collect();
                    let found: BTreeSet<String> =
                        copies.iter().map(|row| row.keys.row_key.to_string()).collect();
                    assert_eq!(found, expected);
                    assert_eq!(copies.len(), primaries.len());
                }
                Ok(())
            });
        }
        join_all(tasks).await
    });
}

#[test]
fn lists_in_the_partition_never_differ() {
    let (server, demo) = place::open();
    place::run(async {
        let (tables, _) = services(&server)?;
        let table = tables.table(demo.table("Employees").await?.name())?;
        let mut tasks: JoinSet<Result<(), AnyError>> = JoinSet::new();
        for writer in 0..WRITER_COUNT {
            let table = table.clone();
            tasks.spawn(async move {
                let list =
                    NameList::new(table.clone(), "name", |employee: &Employee| employee.last_name.clone());
                // Each writer has employees of its own; they share two last names.
                for round in 0..ROUND_COUNT {
                    let id = data::employee_id(writer * 100 + round % 3);
                    let last_name = ["Jones", "Smith"][fastrand::usize(..2)].to_owned();
                    let employee = Employee { id, last_name, ..data::employee(3) };
                    match table.try_get::<Employee>("Sales", &employee.id).await? {
                        None => list.insert(&employee).await?,
                        Some(old) if fastrand::u8(..4) == 0 => list.delete(&old).await?,
                        Some(old) => list.replace(&old, &employee).await?,
                    }
                }
                Ok(())
            });
        }
        join_all(tasks).await?;
        let list = NameList::new(table.clone(), "name", |employee: &Employee| employee.last_name.clone());
        let rows = table.query::<RawEntity>().partition("Sales").all().await?;
        for name in ["Jones", "Smith"] {
            let with_name = rows.iter().filter(|row| row.text("LastName") == Some(name));
            let expected: Vec<String> = with_name.map(|row| row.keys.row_key.to_string()).collect();
            assert_eq!(list.members("Sales", name).await?, expected);
        }
        Ok(())
    });
}

#[test]
fn readers_of_large_and_wide_entities_see_one_write_or_another() {
    let (server, demo) = place::open();
    place::run(async {
        let (tables, _) = services(&server)?;
        let large = LargeRows::new(tables.table(demo.table("Large").await?.name())?);
        let wide = WideRows::new(tables.table(demo.table("Wide").await?.name())?);
        let payload = |n: u64| vec![(n % 250) as u8; 100_000 + 1000 * (n % 50) as usize];
        let object = |n: u64| {
            let count = 300 + 100 * (n % 4);
            (0..count).fold(RawEntity::new("p", "object"), |raw, place| {
                raw.with(format!("P{place:04}"), Value::Int64(i64::try_from(n).unwrap_or(0)))
            })
        };
        large.write(&RawEntity::new("p", "photo"), &payload(0)).await?;
        wide.write(&object(0)).await?;
        let mut tasks: JoinSet<Result<(), AnyError>> = JoinSet::new();
        for writer in 0..3 {
            let (large, wide) = (large.clone(), wide.clone());
            tasks.spawn(async move {
                for round in 0..ROUND_COUNT {
                    let n = writer * ROUND_COUNT + round;
                    large.write(&RawEntity::new("p", "photo"), &payload(n)).await?;
                    wide.write(&object(n)).await?;
                }
                Ok(())
            });
        }
        for _ in 0..3 {
            let (large, wide) = (large.clone(), wide.clone());
            tasks.spawn(async move {
                for _ in 0..ROUND_COUNT {
                    let (_, bytes) = large.read::<RawEntity>("p", "photo").await?.ok_or("a photo")?;
                    let first = u64::from(bytes[0]);
                    assert!(bytes.iter().all(|byte| u64::from(*byte) == first));
                    assert_eq!(bytes.len(), payload(first).len());
                    let object = wide.read::<RawEntity>("p", "object").await?.ok_or("an object")?;
                    let value = object.properties[0].value.clone();
                    assert!(object.properties.iter().all(|property| property.value == value));
                    let Value::Int64(n) = value else { return Err("an integer".into()) };
                    assert_eq!(object.properties.len(), 300 + 100 * (n as usize % 4));
                }
                Ok(())
            });
        }
        join_all(tasks).await?;
        assert!(large.delete("p", "photo").await? && wide.delete("p", "object").await?);
        assert!(!large.delete("p", "photo").await? && !wide.delete("p", "object").await?);
        for name in ["Large", "Wide"] {
            let left = place::contents(&tables.table(&demo.name(name))?).await?;
            assert_eq!(left.len(), 0, "{name}");
        }
        Ok(())
    });
}
