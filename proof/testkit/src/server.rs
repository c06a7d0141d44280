//! A server for a test: inside this process, on free ports with real sockets, or, for comparison, an external one.
//!
//! Promises: each test starts with an empty account, and the server stops when its [`TestServer`] is dropped.

use std::io::ErrorKind;
use std::net::SocketAddr;
#[cfg(feature = "postgres")]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use blobs::BlobOptions;
use contents::{ContentStore, MemoryContents};
use engine::Engine;
use engine::env::{Clock, FakeClock, SystemClock, UNIX_EPOCH_TICKS};
use server::{Accounts, Current, FrontConfig, Limits, ScanRule, Watch};

use crate::blob::Blobs;
use crate::front_end::{FrontEnd, Start, Store};
use crate::queue::Queues;
use crate::request::{Request, percent_encode};
use crate::sign::{Credentials, EMULATOR_ACCOUNT, EMULATOR_KEY};
use crate::time::system_now;
use crate::{RawClient, Response, RoundRobin};

/// The environment variable with the URL of a PostgreSQL. Every test then has two front ends on a schema of its own,
/// which answer every other request, unless it is about one server's sockets or brings an engine.
#[cfg(feature = "postgres")]
const ENGINE: &str = "LAZULITE_TEST_ENGINE";

/// The environment variables that name external services to test instead, as `127.0.0.1:10002`: tables, queues, and blobs.
/// They must know the emulator's account and have no other users: each test empties that account when it starts, so
/// tests run one at a time.
const ELSEWHERE: &str = "LAZULITE_TEST_ENDPOINT";
const QUEUES_ELSEWHERE: &str = "LAZULITE_TEST_QUEUE_ENDPOINT";
const BLOBS_ELSEWHERE: &str = "LAZULITE_TEST_BLOB_ENDPOINT";

/// What a test prints when it uses an external server, and how it fails when it cannot. `xtask` counts both.
const ASKS_ELSEWHERE: &str = "this test asks the server at";
const NEEDS_ITS_OWN: &str = "this test needs a server of its own";

/// A little longer than a front end may answer from what it remembers of properties, policies and names.
const KNOWN_EVERYWHERE_WITHIN: Duration = Duration::from_millis(1_020);

/// Whether a test is using the external server. It has only one account, so a test that starts two servers cannot use
/// it.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Room for the contents of blobs.
const CONTENT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

type FrontChange = Box<dyn FnOnce(&mut FrontConfig)>;

/// What a test can choose before it starts a server.
#[derive(Default)]
pub struct Options {
    engine: Option<Arc<dyn Engine>>,
    accounts: Option<String>,
    fake_clock: Option<Arc<FakeClock>>,
    limits: Limits,
    front_change: Option<FrontChange>,
    watch: Watch,
    scan_rule: Option<ScanRule>,
    contents: Option<Arc<dyn ContentStore>>,
    blob_options: BlobOptions,
    needs_its_own: bool,
    /// The test is about the sockets, limits or observers of one server, so that a second one would be in its way.
    is_about_one: bool,
}

impl Options {
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Options {
        self.engine = Some(engine);
        self.needs_its_own = true;
        self
    }

    /// `name:key1[:key2];…`. Requests are signed with the first account's first key unless they name another.
    pub fn accounts(mut self, text: &str) -> Options {
        self.accounts = Some(text.to_owned());
        self.needs_its_own = true;
        self
    }

    /// For client and server, time stands still until the test moves it.
    pub fn clock(mut self, clock: Arc<FakeClock>) -> Options {
        self.fake_clock = Some(clock);
        self.needs_its_own = true;
        self
    }

    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Options {
        change(&mut self.limits);
        self.is_about_one = true;
        self.needs_its_own = true;
        self
    }

    /// Changes what no other option does.
    pub fn front(mut self, change: impl FnOnce(&mut FrontConfig) + 'static) -> Options {
        self.front_change = Some(Box::new(change));
        self.is_about_one = true;
        self.needs_its_own = true;
        self
    }

    /// The test is about something that no other server does.
    pub fn own(mut self) -> Options {
        self.needs_its_own = true;
        self
    }

    /// With these to see its requests.
    pub fn watch(mut self, watch: Watch) -> Options {
        self.watch = watch;
        self.is_about_one = true;
        self.needs_its_own = true;
        self
    }

    /// Where the contents of blobs are.
    pub fn contents(mut self, contents: Arc<dyn ContentStore>) -> Options {
        self.contents = Some(contents);
        self.needs_its_own = true;
        self
    }

    /// What no operation of the Blob service sets.
    pub fn blob_options(mut self, options: BlobOptions) -> Options {
        self.blob_options = options;
        self.needs_its_own = true;
        self
    }

    /// It refuses scans.
    pub fn scan_rule(mut self, rule: ScanRule) -> Options {
        self.scan_rule = Some(rule);
        self.is_about_one = true;
        self.needs_its_own = true;
        self
    }

    pub fn start(self) -> TestServer {
        let elsewhere = [ELSEWHERE, QUEUES_ELSEWHERE, BLOBS_ELSEWHERE].map(|name| {
            let address = std::env::var(name).ok();
            address.map(|address| address.parse().expect("the address of a server"))
        });
        if elsewhere.iter().any(Option::is_some) {
            assert!(!self.needs_its_own, "{NEEDS_ITS_OWN}");
            return TestServer::elsewhere(elsewhere);
        }
        let clock: Arc<dyn Clock> = match &self.fake_clock {
            Some(fake) => fake.clone(),
            None => Arc::new(SystemClock::new()),
        };
        let text = self.accounts.unwrap_or_else(|| format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}"));
        let first = text.split(';').next().unwrap_or_default();
        let mut fields = first.split(':');
        let credentials =
            Credentials::new(fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let config = || FrontConfig {
            accounts: Arc::new(Current::new(Accounts::parse(&text).expect("the test's accounts are valid"))),
            tokens: None,
            is_behind_tls_proxy: false,
            limits: self.limits.clone(),
            targets: None,
        };
        let store = self.engine.map(Store::Given).or_else(shared_store).unwrap_or(Store::Memory);
        let contents = self.contents.unwrap_or_else(|| memory_contents(clock.clone()));
        let blob_options = self.blob_options;
        let mut front_ends = Vec::new();
        if store.is_shared() && !self.is_about_one {
            let watch = Watch::default();
            let (store, contents, clock) = (store.clone(), contents.clone(), clock.clone());
            front_ends.push(FrontEnd::start(Start {
                store,
                contents,
                blob_options,
                clock,
                config: config(),
                watch,
                scan_rule: None,
            }));
        }
        let mut config = config();
        if let Some(change) = self.front_change {
            change(&mut config);
        }
        let (watch, scan_rule) = (self.watch, self.scan_rule);
        let start = Start { store, contents, blob_options, clock, config, watch, scan_rule };
        front_ends.push(FrontEnd::start(start));
        let balance = |addr: fn(&FrontEnd) -> SocketAddr| match &front_ends[..] {
            [only] => (addr(only), None),
            several => {
                let addrs: Vec<SocketAddr> = several.iter().map(addr).collect();
                let balancer = RoundRobin::start(&addrs).expect("a free port can be bound");
                (balancer.addr(), Some(balancer))
            }
        };
        let (addr, balancer) = balance(|front_end| front_end.addr);
        let (queue_addr, queue_balancer) = balance(|front_end| front_end.queue_addr);
        let (blob_addr, blob_balancer) = balance(|front_end| front_end.blob_addr);
        TestServer {
            addr: Some(addr),
            queue_addr: Some(queue_addr),
            blob_addr: Some(blob_addr),
            credentials,
            fake_clock: self.fake_clock,
            balancers: [balancer, queue_balancer, blob_balancer].into_iter().flatten().collect(),
            front_ends,
            connection: Connection::default(),
            queue_connection: Connection::default(),
            blob_connection: Connection::default(),
        }
    }
}

fn memory_contents(clock: Arc<dyn Clock>) -> Arc<dyn ContentStore> {
    let unix_ms = move || clock.now_ticks().saturating_sub(UNIX_EPOCH_TICKS) / 10_000;
    Arc::new(MemoryContents::new(CONTENT_BYTES_MAX, Arc::new(unix_ms)))
}

/// A schema of its own in the database that the tests are given, if they are.
fn shared_store() -> Option<Store> {
    #[cfg(feature = "postgres")]
    if let Ok(url) = std::env::var(ENGINE) {
        static SCHEMA_COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = SCHEMA_COUNT.fetch_add(1, Ordering::Relaxed);
        return Some(Store::Postgres { url, schema: format!("test_{}_{number}", std::process::id()) });
    }
    None
}

/// A running server. Dropping it stops the server.
pub struct TestServer {
    addr: Option<SocketAddr>,
    queue_addr: Option<SocketAddr>,
    blob_addr: Option<SocketAddr>,
    credentials: Credentials,
    fake_clock: Option<Arc<FakeClock>>,
    /// Of tables, of queues, of blobs. Dropped before the front ends: they pass nothing on any more.
    balancers: Vec<RoundRobin>,
    /// Empty for an external server.
    front_ends: Vec<FrontEnd>,
    connection: Connection,
    queue_connection: Connection,
    blob_connection: Connection,
}

impl TestServer {
    /// A server with the memory engine, the emulator's account and the system clock.
    pub fn start() -> TestServer {
        TestServer::options().start()
    }

    pub fn options() -> Options {
        Options::default()
    }

    /// The external services, with the emulator's account emptied.
    fn elsewhere([tables, queues, blobs]: [Option<SocketAddr>; 3]) -> TestServer {
        assert!(!IS_TAKEN.swap(true, Ordering::SeqCst), "{NEEDS_ITS_OWN}");
        let server = TestServer {
            addr: tables,
            queue_addr: queues,
            blob_addr: blobs,
            credentials: Credentials::emulator(),
            fake_clock: None,
            balancers: Vec::new(),
            front_ends: Vec::new(),
            connection: Connection::default(),
            queue_connection: Connection::default(),
            blob_connection: Connection::default(),
        };
        if let Some(addr) = tables {
            println!("{ASKS_ELSEWHERE} {addr}");
            server.empty_tables();
        }
        if let Some(addr) = queues {
            println!("{ASKS_ELSEWHERE} {addr}");
            server.queue().empty();
        }
        if let Some(addr) = blobs {
            println!("{ASKS_ELSEWHERE} {addr}");
            server.blob().empty();
        }
        server
    }

    fn empty_tables(&self) {
        let tables = self.send(Request::get("/Tables")).expect(200).json();
        for table in tables["value"].as_array().into_iter().flatten() {
            let name = table["TableName"].as_str().unwrap_or_default();
            self.send(Request::delete(&format!("/Tables('{name}')"))).expect(204);
        }
        let nothing = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
        let properties = Request::put("/?restype=service&comp=properties").body("application/xml", nothing);
        self.send(properties).expect(202);
    }

    /// The Queue service of this server.
    pub fn queue(&self) -> Queues<'_> {
        Queues {
            server: self,
            addr: self.queue_addr.expect(NEEDS_ITS_OWN),
            connection: &self.queue_connection,
        }
    }

    /// The Blob service of this server.
    pub fn blob(&self) -> Blobs<'_> {
        Blobs { server: self, addr: self.blob_addr.expect(NEEDS_ITS_OWN), connection: &self.blob_connection }
    }

    /// A running server that already has this table.
    pub fn with_table(table: &str) -> TestServer {
        let server = TestServer::start();
        server.create_table(table);
        server
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr.expect(NEEDS_ITS_OWN)
    }

    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// `http://HOST:PORT/ACCOUNT`, the form that links have.
    pub fn base(&self) -> String {
        format!("http://{}/{}", self.addr(), self.credentials.account)
    }

    /// The client's time.
    pub fn now(&self) -> SystemTime {
        match &self.fake_clock {
            Some(clock) => {
                let since_epoch = clock.now_ticks().saturating_sub(UNIX_EPOCH_TICKS);
                SystemTime::UNIX_EPOCH + Duration::from_nanos(since_epoch * 100)
            }
            None => system_now(),
        }
    }

    /// How many pages of tables came from another front end than the page before; `None` if there is only one.
    pub fn pages_from_another_front_end(&self) -> Option<usize> {
        self.balancers.first().map(RoundRobin::page_count)
    }

    /// Waits until every front end must know of a change of properties or policies that one of them made. A server
    /// alone knows at once, and so must a front end that is asked about a container which is gone: no test waits for
    /// that.
    pub fn wait_until_known_everywhere(&self) {
        match &self.fake_clock {
            _ if self.front_ends.len() < 2 => {}
            Some(clock) => clock.advance(KNOWN_EVERYWHERE_WITHIN),
            None => std::thread::sleep(KNOWN_EVERYWHERE_WITHIN),
        }
    }

    pub fn bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_bytes(self.addr(), &self.credentials, self.now())
    }

    /// A new connection.
    pub fn connect(&self) -> RawClient {
        RawClient::connect(self.addr()).expect("the server accepts a connection")
    }

    /// Sends over a kept-alive connection, or a new one if the server has closed it.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        self.connection.exchange(self.addr(), &request, &self.bytes_of(&request))
    }

    #[track_caller]
    pub fn create_table(&self, table: &str) {
        self.send(Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"))).expect(201);
    }

    /// Inserts an entity with these JSON members after its keys. The answer must be 201.
    #[track_caller]
    pub fn insert(&self, table: &str, partition: &str, row: &str, members: &str) -> Response {
        let body = entity_json(partition, row, members);
        self.send(Request::post(&format!("/{table}")).json(&body)).expect(201)
    }

    /// Reads one entity. Any answer will do.
    #[track_caller]
    pub fn get(&self, table: &str, partition: &str, row: &str) -> Response {
        self.send(Request::get(&entity_path(table, partition, row)))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.front_ends.iter_mut().for_each(FrontEnd::ask_to_stop);
        self.connection.close();
        self.queue_connection.close();
        self.blob_connection.close();
        self.balancers.clear();
        if self.front_ends.is_empty() {
            IS_TAKEN.store(false, Ordering::SeqCst);
        }
    }
}

/// A connection that is kept alive between requests.
#[derive(Default)]
pub(crate) struct Connection(Mutex<Option<RawClient>>);

impl Connection {
    /// Sends over the kept connection, or a new one if the server has closed it.
    #[track_caller]
    pub(crate) fn exchange(&self, addr: SocketAddr, request: &Request, bytes: &[u8]) -> Response {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut client) = kept.take() {
            match client.exchange(bytes) {
                Ok(response) => {
                    keep(&mut kept, client, &response);
                    return response;
                }
                // It may have happened, so it must not be sent again.
                Err(error) if is_timeout(&error) => {
                    panic!("no answer in time to {} {}: {error}", request.method, request.target)
                }
                Err(_) => {}
            }
        }
        let mut client = RawClient::connect(addr).expect("the server accepts a connection");
        match client.exchange(bytes) {
            Ok(response) => {
                keep(&mut kept, client, &response);
                response
            }
            Err(error) => panic!("no answer to {} {}: {error}", request.method, request.target),
        }
    }

    fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn keep(place: &mut Option<RawClient>, client: RawClient, response: &Response) {
    if !response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
        *place = Some(client);
    }
}

/// `/table(PartitionKey='…',RowKey='…')`, with quotes doubled and the keys percent-encoded.
pub fn entity_path(table: &str, partition: &str, row: &str) -> String {
    let key = |text: &str| percent_encode(&text.replace('\'', "''"));
    format!("/{table}(PartitionKey='{}',RowKey='{}')", key(partition), key(row))
}

/// An entity's JSON: the keys, then `members` as given.
pub fn entity_json(partition: &str, row: &str, members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    let (partition, row) = (serde_json::Value::from(partition), serde_json::Value::from(row));
    format!("{{\"PartitionKey\":{partition},\"RowKey\":{row}{comma}{members}}}")
}
