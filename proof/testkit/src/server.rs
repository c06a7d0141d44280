//! A server for a test: inside this process, on free ports with real sockets, or, for comparison, an external one.
//!
//! Promises: each test starts with an empty account, and the server stops when its [`TestServer`] is dropped.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use blobs::{BlobOptions, BlobService};
use contents::{ContentStore, MemoryContents};
use engine::Engine;
use engine::env::{Clock, FakeClock, SystemClock, UNIX_EPOCH_TICKS};
use engine::memory::MemoryEngine;
use queues::QueueService;
use server::{
    Accounts, Binding, BlobHttp, Current, Front, FrontConfig, Limits, QueueHttp, ScanRule, TableHttp, Watch,
};
use tables::TableService;
use tokio::sync::watch;

use crate::blob::Blobs;
use crate::queue::Queues;
use crate::request::{Request, percent_encode};
use crate::sign::{Credentials, EMULATOR_ACCOUNT, EMULATOR_KEY};
use crate::time::system_now;
use crate::{RawClient, Response};

/// The environment variables that name external services to test instead, as `127.0.0.1:10002`: tables, queues, and blobs.
/// They must know the emulator's account and have no other users: each test empties that account when it starts, so
/// tests run one at a time.
const ELSEWHERE: &str = "LAZULITE_TEST_ENDPOINT";
const QUEUES_ELSEWHERE: &str = "LAZULITE_TEST_QUEUE_ENDPOINT";
const BLOBS_ELSEWHERE: &str = "LAZULITE_TEST_BLOB_ENDPOINT";

/// What a test prints when it uses an external server, and how it fails when it cannot. `xtask` counts both.
const ASKS_ELSEWHERE: &str = "this test asks the server at";
const NEEDS_ITS_OWN: &str = "this test needs a server of its own";

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
        self.needs_its_own = true;
        self
    }

    /// Changes what no other option does.
    pub fn front(mut self, change: impl FnOnce(&mut FrontConfig) + 'static) -> Options {
        self.front_change = Some(Box::new(change));
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
        let engine =
            self.engine.unwrap_or_else(|| Arc::new(MemoryEngine::new(server::FAMILIES, clock.clone())));
        let text = self.accounts.unwrap_or_else(|| format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}"));
        let first = text.split(';').next().unwrap_or_default();
        let mut fields = first.split(':');
        let credentials =
            Credentials::new(fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let mut config = FrontConfig {
            accounts: Arc::new(Current::new(Accounts::parse(&text).expect("the test's accounts are valid"))),
            tokens: None,
            is_behind_tls_proxy: false,
            limits: self.limits,
            targets: None,
        };
        if let Some(change) = self.front_change {
            change(&mut config);
        }
        let (watch, scan_rule) = (self.watch, self.scan_rule);
        let contents = self.contents.unwrap_or_else(|| memory_contents(clock.clone()));
        let blobs = BlobService::new(engine.clone(), contents.clone(), clock.clone(), self.blob_options);
        let (addr_sender, addr_receiver) = mpsc::channel();
        let (stop, stopped) = watch::channel(());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime starts");
            runtime.block_on(async move {
                let queues = Arc::new(QueueService::new(engine.clone(), clock.clone()));
                let mut tables = TableHttp::new(TableService::new(engine.clone(), clock.clone()))
                    .with_outbox(queues.clone())
                    .with_system_tables(TableService::system(engine.clone(), clock.clone()));
                if let Some(rule) = scan_rule {
                    tables = tables.refusing_scans(rule);
                }
                let queues = QueueHttp::new(queues);
                let front = Front::watched(config, clock, watch);
                let bound = server::bind(&front, binding("table.core.windows.net"), tables).await;
                let tables = bound.expect("a free port can be bound");
                let bound = server::bind(&front, binding("queue.core.windows.net"), queues).await;
                let queues = bound.expect("a free port can be bound");
                let blobs = BlobHttp::new(blobs);
                let bound = server::bind(&front, binding("blob.core.windows.net"), blobs).await;
                let blobs = bound.expect("a free port can be bound");
                let addrs = (tables.local_addr(), queues.local_addr(), blobs.local_addr());
                addr_sender.send(addrs).expect("the test waits for the addresses");
                let shutdown = || {
                    let mut stopped = stopped.clone();
                    async move {
                        let _ = stopped.changed().await;
                    }
                };
                tokio::join!(tables.run(shutdown()), queues.run(shutdown()), blobs.run(shutdown()));
                contents.close().await;
                engine.close().await;
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        let (addr, queue_addr, blob_addr) = addr_receiver.recv().expect("the server starts");
        TestServer {
            addr: Some(addr),
            queue_addr: Some(queue_addr),
            blob_addr: Some(blob_addr),
            credentials,
            fake_clock: self.fake_clock,
            stop: Some(stop),
            thread: Some(thread),
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

/// A free port on this machine.
fn binding(host_suffix: &str) -> Binding {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Binding { listen, tls: None, host_suffixes: vec![host_suffix.to_owned()] }
}

/// A running server. Dropping it stops the server.
pub struct TestServer {
    addr: Option<SocketAddr>,
    queue_addr: Option<SocketAddr>,
    blob_addr: Option<SocketAddr>,
    credentials: Credentials,
    fake_clock: Option<Arc<FakeClock>>,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
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
            stop: None,
            thread: None,
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
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.connection.close();
        self.queue_connection.close();
        self.blob_connection.close();
        match self.thread.take() {
            Some(thread) => drop(thread.join()),
            None => IS_TAKEN.store(false, Ordering::SeqCst),
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
        if let Some(mut client) = kept.take()
            && let Ok(response) = client.exchange(bytes)
        {
            keep(&mut kept, client, &response);
            return response;
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
