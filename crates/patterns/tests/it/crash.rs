//! `kill -9` at every step: a child process changes or works, is killed before or after its n-th request, and what it left
//! behind must come right.
//!
//! The child is this very test binary, told by an environment variable what to do. Its transport stops at the chosen request,
//! says so, and waits to be killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use lazulite_client::{
    ClientBuilder, DateTime, Entity, HttpOptions, HttpTransport, Keys, QueueClient, Sending, TableClient,
    Transport, Value,
};
use lazulite_patterns::RawEntity;
use lazulite_patterns::archive::{Archive, Moved};
use lazulite_patterns::data::{self, Employee};
use lazulite_patterns::follow::{CopyIndex, Delivery, Follower, Follows, NameLists, Worked, Worker};
use lazulite_patterns::large::LargeRows;
use lazulite_patterns::showcase::{AnyError, Demo};
use serde::{Deserialize, Serialize};
use testkit::TestServer;

use crate::place;

const CHILD_VARIABLE: &str = "LAZULITE_PATTERNS_CHILD";
const STOPPED: &str = "the child stands still";
/// The shortest time that a message can be hidden for.
const VISIBILITY: Duration = Duration::from_secs(1);
/// No job needs more requests than this.
const REQUEST_COUNT_MAX: usize = 40;
const PHOTO_CHUNK_BYTES: usize = 100_000;
/// How many steps are tried at once.
const GROUP_STEP_COUNT: usize = 5;
/// Hidden messages come back within seconds.
const SETTLE_TURNS_MAX: usize = 600;
const TURN: Duration = Duration::from_millis(50);

/// What a child does, and where it stops.
#[derive(Clone, Serialize, Deserialize, Debug)]
struct Orders {
    connection: String,
    /// Tables: those that the job needs, in its own order.
    tables: Vec<String>,
    queues: Vec<String>,
    job: Job,
    /// Which request to stop at, counted from zero.
    stop_at: usize,
    /// Whether the request is sent, and its answer lost.
    is_sent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
enum Job {
    /// Changes the e-mail address of an employee.
    Change { by_outbox: bool },
    /// Deletes the employee.
    Delete { by_outbox: bool },
    /// Settles all announcements.
    Settle,
    /// The same for lists of last names.
    SettleLists,
    /// Moves employees to the archive.
    Archive,
    /// Replaces a photo.
    Photo,
}

/// Stops at one request.
struct Stopping {
    inner: HttpTransport,
    count: AtomicUsize,
    orders: Orders,
}

impl Transport for Stopping {
    fn send(&self, request: Request<Bytes>) -> Sending<'_> {
        Box::pin(async move {
            if self.count.fetch_add(1, Ordering::SeqCst) != self.orders.stop_at {
                return self.inner.send(request).await;
            }
            if self.orders.is_sent {
                let _ = self.inner.send(request).await;
            }
            println!("{STOPPED}");
            let _ = std::io::stdout().flush();
            std::future::pending().await
        })
    }
}

/// What a child process runs. Without orders there is nothing to do.
#[test]
fn child() {
    let Ok(text) = std::env::var(CHILD_VARIABLE) else { return };
    let orders: Orders = serde_json::from_str(&text).unwrap();
    place::run(obey(orders));
}

async fn obey(orders: Orders) -> Result<(), AnyError> {
    let transport = Stopping {
        inner: HttpTransport::new(HttpOptions::default()),
        count: AtomicUsize::new(0),
        orders: orders.clone(),
    };
    let builder = ClientBuilder::from_connection_string(&orders.connection)?.transport(Arc::new(transport));
    let (tables, queues) = (builder.tables()?, builder.queues()?);
    let open = |n: usize| tables.table(&orders.tables[n]);
    let queue = |n: usize| queues.queue(&orders.queues[n]);
    match orders.job {
        Job::Change { by_outbox } => {
            let follower = Follower::new(open(0)?, queue(0)?, delivery(by_outbox), by_email(open(1)?));
            let old: Employee = open(0)?.get("Sales", &data::employee(3).id).await?;
            let new = Employee { email: "new@contoso.com".to_owned(), ..old.clone() };
            follower.replace(&old, &new).await?;
        }
        Job::Delete { by_outbox } => {
            let follower = Follower::new(open(0)?, queue(0)?, delivery(by_outbox), by_email(open(1)?));
            let old: Employee = open(0)?.get("Sales", &data::employee(3).id).await?;
            follower.delete(&old).await?;
        }
        Job::Settle => {
            let worker =
                Worker::<Employee, _>::new(open(0)?, queue(0)?, queue(1)?, by_email(open(1)?), VISIBILITY);
            while worker.work().await? != Worked::Nothing {}
        }
        Job::SettleLists => {
            let worker =
                Worker::<Employee, _>::new(open(0)?, queue(0)?, queue(1)?, by_name(open(1)?), VISIBILITY);
            while worker.work().await? != Worked::Nothing {}
        }
        Job::Archive => {
            let archive = archive([open(0)?, open(1)?], [queue(0)?, queue(1)?]);
            while archive.work().await? != Moved::Nothing {}
        }
        Job::Photo => photos(open(0)?).write(&photo_head("new"), &photo(1)).await?,
    }
    Ok(())
}

fn delivery(by_outbox: bool) -> Delivery {
    if by_outbox { Delivery::Outbox } else { Delivery::Queue }
}

fn by_email(table: TableClient) -> Arc<CopyIndex<Employee>> {
    Arc::new(CopyIndex::new(table, |employee: &Employee| {
        vec![Keys { partition_key: employee.email.clone().into(), row_key: "".into() }]
    }))
}

fn by_name(table: TableClient) -> Arc<NameLists<Employee>> {
    Arc::new(NameLists::new(table, |employee: &Employee| employee.last_name.clone()))
}

fn archive([current, archive]: [TableClient; 2], [queue, poison]: [QueueClient; 2]) -> Archive {
    Archive { current, archive, queue, poison, visibility: VISIBILITY }
}

/// Sends a child on its way and kills it where it stops. Returns `false` if it came to its end before that.
fn kill_at(orders: &Orders) -> bool {
    let mut child: Child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "crash::child", "--nocapture"])
        .env(CHILD_VARIABLE, serde_json::to_string(orders).expect("orders are JSON"))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the child starts");
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let has_stopped = stdout.lines().map_while(Result::ok).any(|line| line.contains(STOPPED));
    if has_stopped {
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
        return true;
    }
    assert!(child.wait().expect("a child ends").success(), "the child failed: {orders:?}");
    false
}

/// Runs a case for each request of a job, once killed before it is sent and once after. A case prepares, runs the child, and
/// checks; it returns whether the child was stopped. Ends when the child comes to its end. Returns the number of cases.
///
/// Cases mostly wait for messages to come back, so several run at once, each with tables of its own.
fn at_every_step(server: &TestServer, case: impl Fn(&Demo, usize, bool) -> bool + Sync) -> usize {
    let connection = place::connection_to(server);
    let (case, connection) = (&case, &connection);
    for group in (0..REQUEST_COUNT_MAX).collect::<Vec<_>>().chunks(GROUP_STEP_COUNT) {
        let first_unreached = std::thread::scope(|scope| {
            let run = |stop_at: usize, is_sent: bool| {
                scope.spawn(move || (stop_at, case(&Demo::at(connection).expect("a demo"), stop_at, is_sent)))
            };
            let cases: Vec<_> = group.iter().flat_map(|step| [run(*step, false), run(*step, true)]).collect();
            let ended = cases.into_iter().map(|case| case.join().expect("the case holds"));
            ended.filter(|(_, was_stopped)| !was_stopped).map(|(stop_at, _)| stop_at).min()
        });
        if let Some(step_count) = first_unreached {
            return 2 * step_count;
        }
    }
    panic!("the job never ends");
}

/// Two tables and two queues with names of their own.
struct Place {
    tables: [TableClient; 2],
    queues: [QueueClient; 2],
}

impl Place {
    async fn new(demo: &Demo) -> Result<Place, AnyError> {
        Ok(Place {
            tables: [demo.table("first").await?, demo.table("second").await?],
            queues: [demo.queue("work").await?, demo.queue("poison").await?],
        })
    }

    fn orders(&self, server: &TestServer, job: Job, stop_at: usize, is_sent: bool) -> Orders {
        Orders {
            connection: place::connection_to(server),
            tables: self.tables.iter().map(|table| table.name().to_owned()).collect(),
            queues: self.queues.iter().map(|queue| queue.name().to_owned()).collect(),
            job,
            stop_at,
            is_sent,
        }
    }

    /// Lets a worker run until no message is left, hidden ones included.
    async fn settle<F: Follows<Employee>>(&self, follows: Arc<F>) -> Result<(), AnyError> {
        let [table, _] = self.tables.clone();
        let [queue, poison] = self.queues.clone();
        let worker = Worker::<Employee, F>::new(table, queue.clone(), poison.clone(), follows, VISIBILITY);
        for _ in 0..SETTLE_TURNS_MAX {
            if worker.work().await? == Worked::Nothing {
                if queue.approximate_count().await? == 0 {
                    assert_eq!(poison.approximate_count().await?, 0);
                    return Ok(());
                }
                tokio::time::sleep(TURN).await;
            }
        }
        Err("messages are left".into())
    }
}

/// The employees of a table. Claims are skipped.
async fn employees_in(table: &TableClient) -> Result<Vec<Employee>, AnyError> {
    let rows = table.query::<RawEntity>().all().await?;
    let employees = rows.into_iter().filter(|row| !row.keys.row_key.starts_with("claim!"));
    Ok(employees.map(RawEntity::into_entity).collect::<Result<_, _>>()?)
}

/// The index holds a copy of every employee at the right place, and nothing else.
async fn check_index(place: &Place) -> Result<(), AnyError> {
    let index = by_email(place.tables[1].clone());
    let employees = employees_in(&place.tables[0]).await?;
    for employee in &employees {
        let copy =
            index.find(&employee.email, "").await?.ok_or_else(|| format!("no copy of {employee:?}"))?;
        assert_eq!(Employee { etag: None, ..copy }, Employee { etag: None, ..employee.clone() });
    }
    assert_eq!(place::contents(&place.tables[1]).await?.len(), employees.len());
    Ok(())
}

/// A company of one department whose index is right.
async fn found_company(demo: &Demo) -> Result<Place, AnyError> {
    let place = Place::new(demo).await?;
    let index = by_email(place.tables[1].clone());
    for number in [3, 8, 13] {
        let employee = data::employee(number);
        place.tables[0].insert(&employee).await?;
        for copy in index.copies_of(&employee)? {
            place.tables[1].insert(&copy).await?;
        }
    }
    Ok(place)
}

/// Kills the client that makes a change, at every step.
fn client_dies(job: Job) -> usize {
    let server = TestServer::start();
    at_every_step(&server, |demo, stop_at, is_sent| {
        place::run(async {
            let place = found_company(demo).await?;
            let was_stopped = kill_at(&place.orders(&server, job, stop_at, is_sent));
            place.settle(by_email(place.tables[1].clone())).await?;
            check_index(&place).await?;
            Ok(was_stopped)
        })
    })
}

/// Kills the worker that settles a change, at every step.
fn worker_dies(by_outbox: bool) -> usize {
    let server = TestServer::start();
    at_every_step(&server, |demo, stop_at, is_sent| {
        place::run(async {
            let place = found_company(demo).await?;
            let index = by_email(place.tables[1].clone());
            let follower = Follower::new(
                place.tables[0].clone(),
                place.queues[0].clone(),
                delivery(by_outbox),
                index.clone(),
            );
            let old: Employee = place.tables[0].get("Sales", &data::employee(3).id).await?;
            follower.replace(&old, &Employee { email: "new@contoso.com".to_owned(), ..old.clone() }).await?;
            let was_stopped = kill_at(&place.orders(&server, Job::Settle, stop_at, is_sent));
            place.settle(index).await?;
            check_index(&place).await?;
            // The claims of changes that happened are gone, unless their worker died between its last two requests.
            let claims = place::contents(&place.tables[0]).await?.len() - 3;
            assert!(claims <= usize::from(was_stopped), "{claims} claims are left");
            Ok(was_stopped)
        })
    })
}

#[test]
fn an_index_is_right_after_a_client_with_the_outbox_died_at_any_step() {
    assert_eq!(client_dies(Job::Change { by_outbox: true }), 2 * 2);
    assert_eq!(client_dies(Job::Delete { by_outbox: true }), 2 * 2);
}

#[test]
fn an_index_is_right_after_a_client_with_a_queue_died_at_any_step() {
    assert_eq!(client_dies(Job::Change { by_outbox: false }), 2 * 4);
}

#[test]
fn an_index_is_right_after_a_deleting_client_with_a_queue_died_at_any_step() {
    assert_eq!(client_dies(Job::Delete { by_outbox: false }), 2 * 4);
}

#[test]
fn an_index_is_right_after_a_worker_died_at_any_step() {
    assert!(worker_dies(true) >= 2 * 6);
}

#[test]
fn an_index_is_right_after_a_worker_with_claims_died_at_any_step() {
    assert!(worker_dies(false) >= 2 * 8);
}

#[test]
fn lists_of_names_are_right_after_a_worker_died_at_any_step() {
    let server = TestServer::start();
    let cases = at_every_step(&server, |demo, stop_at, is_sent| {
        place::run(async {
            let place = Place::new(demo).await?;
            let lists = by_name(place.tables[1].clone());
            let follower = Follower::new(
                place.tables[0].clone(),
                place.queues[0].clone(),
                Delivery::Outbox,
                lists.clone(),
            );
            let jones = Employee { last_name: "Jones".to_owned(), ..data::employee(3) };
            follower.insert(&jones).await?;
            place.settle(lists.clone()).await?;
            let read: Employee = place.tables[0].get("Sales", &jones.id).await?;
            follower.replace(&read, &Employee { last_name: "Smith".to_owned(), ..read.clone() }).await?;
            let was_stopped = kill_at(&place.orders(&server, Job::SettleLists, stop_at, is_sent));
            place.settle(lists.clone()).await?;
            assert_eq!(lists.members("Jones").await?, []);
            assert_eq!(lists.members("Smith").await?, [jones.keys()?]);
            Ok(was_stopped)
        })
    });
    assert!(cases >= 2 * 7, "{cases}");
}

#[test]
fn an_employee_is_archived_once_whatever_worker_died() {
    let server = TestServer::start();
    let cases = at_every_step(&server, |demo, stop_at, is_sent| {
        place::run(async {
            let place = Place::new(demo).await?;
            let mover = archive(place.tables.clone(), place.queues.clone());
            let jones = data::employee(3);
            mover.current.insert(&jones).await?;
            mover.request(&jones.keys()?).await?;
            let was_stopped = kill_at(&place.orders(&server, Job::Archive, stop_at, is_sent));
            // Never in neither.
            let here = mover.current.exists("Sales", &jones.id).await?;
            let there = mover.archive.exists("Sales", &jones.id).await?;
            assert!(here || there);
            for _ in 0..SETTLE_TURNS_MAX {
                if mover.work().await? == Moved::Nothing {
                    if mover.queue.approximate_count().await? == 0 {
                        break;
                    }
                    tokio::time::sleep(TURN).await;
                }
            }
            assert_eq!(place::contents(&mover.current).await?.len(), 0);
            assert_eq!(place::contents(&mover.archive).await?.len(), 1);
            assert_eq!(mover.poison.approximate_count().await?, 0);
            Ok(was_stopped)
        })
    });
    assert!(cases >= 2 * 5, "{cases}");
}

fn photo_head(title: &'static str) -> RawEntity {
    RawEntity::new("000003", "photo").with("Title", Value::String(title.into()))
}

fn photos(table: TableClient) -> LargeRows {
    LargeRows::new(table).with_chunk_bytes(PHOTO_CHUNK_BYTES)
}

/// Two chunks and a bit.
fn photo(kind: u8) -> Vec<u8> {
    (0..2 * PHOTO_CHUNK_BYTES + 1000).map(|n| (n % 251) as u8 ^ kind).collect()
}

#[test]
fn a_photo_is_the_old_one_or_the_new_one_whenever_its_writer_died() {
    let server = TestServer::start();
    let cases = at_every_step(&server, |demo, stop_at, is_sent| {
        place::run(async {
            let place = Place::new(demo).await?;
            let photos = photos(place.tables[0].clone());
            photos.write(&photo_head("old"), &photo(0)).await?;
            let was_stopped = kill_at(&place.orders(&server, Job::Photo, stop_at, is_sent));
            let (head, bytes) = photos.read::<RawEntity>("000003", "photo").await?.ok_or("a photo")?;
            let is_new = head.text("Title") == Some("new");
            assert!(bytes == photo(u8::from(is_new)), "the photo is torn");
            assert!(is_new || was_stopped);
            // What the dead writer left behind is found and deleted, and the photo stays.
            photos.collect("000003", "photo", DateTime::MAX).await?;
            let left = place::contents(&place.tables[0]).await?;
            assert_eq!(left.len(), 1 + 3, "{:?}", left.keys());
            let (_, bytes) = photos.read::<RawEntity>("000003", "photo").await?.ok_or("a photo")?;
            assert!(bytes == photo(u8::from(is_new)));
            Ok(was_stopped)
        })
    });
    assert!(cases >= 2 * 6, "{cases}");
}
