//! A server for a test: inside this process, on a free port with real sockets, or, for comparison, an external one.
//!
//! Promises: each test starts with an empty account, and the server stops when its [`TestServer`] is dropped.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use engine::Engine;
use engine::env::{Clock, FakeClock, SystemClock, UNIX_EPOCH_TICKS};
use engine::memory::MemoryEngine;
use server::{Accounts, Binding, Current, Front, FrontConfig, Limits, TableHttp};
use tables::TableService;
use tokio::sync::oneshot;

use crate::request::{Request, percent_encode};
use crate::sign::{Credentials, EMULATOR_ACCOUNT, EMULATOR_KEY};
use crate::time::system_now;
use crate::{RawClient, Response};

/// The environment variable that names an external server to test instead, as `127.0.0.1:10002`. It must know the
/// emulator's account and have no other users: each test empties that account when it starts, so tests run one at a
/// time.
const ELSEWHERE: &str = "LAZULITE_TEST_ENDPOINT";

/// What a test prints when it uses an external server, and how it fails when it cannot. `xtask` counts both.
const ASKS_ELSEWHERE: &str = "this test asks the server at";
const NEEDS_ITS_OWN: &str = "this test needs a server of its own";

/// Whether a test is using the external server. It has only one account, so a test that starts two servers cannot use
/// it.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// What a test can choose before it starts a server.
#[derive(Default)]
pub struct Options {
    engine: Option<Arc<dyn Engine>>,
    accounts: Option<String>,
    fake_clock: Option<Arc<FakeClock>>,
    limits: Limits,
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

    pub fn start(self) -> TestServer {
        if let Ok(address) = std::env::var(ELSEWHERE) {
            assert!(!self.needs_its_own, "{NEEDS_ITS_OWN}");
            return TestServer::elsewhere(address.parse().expect("the address of a server"));
        }
        let clock: Arc<dyn Clock> = match &self.fake_clock {
            Some(fake) => fake.clone(),
            None => Arc::new(SystemClock::new()),
        };
        let engine =
            self.engine.unwrap_or_else(|| Arc::new(MemoryEngine::new(tables::FAMILIES, clock.clone())));
        let text = self.accounts.unwrap_or_else(|| format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}"));
        let first = text.split(';').next().unwrap_or_default();
        let mut fields = first.split(':');
        let credentials =
            Credentials::new(fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let config = FrontConfig {
            accounts: Arc::new(Current::new(Accounts::parse(&text).expect("the test's accounts are valid"))),
            tokens: None,
            is_behind_tls_proxy: false,
            limits: self.limits,
        };
        let binding = Binding {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: None,
            host_suffixes: vec!["table.core.windows.net".to_owned()],
        };
        let (addr_sender, addr_receiver) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime starts");
            runtime.block_on(async move {
                let service = TableHttp::new(TableService::new(engine.clone(), clock.clone()));
                let front = Front::new(config, clock);
                let server = server::bind(&front, binding, service).await.expect("a free port can be bound");
                addr_sender.send(server.local_addr()).expect("the test waits for the address");
                let shutdown = async move {
                    let _ = stopped.await;
                };
                server.run(shutdown).await;
                engine.close().await;
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        let addr = addr_receiver.recv().expect("the server starts");
        TestServer {
            addr,
            credentials,
            fake_clock: self.fake_clock,
            stop: Some(stop),
            thread: Some(thread),
            connection: Mutex::new(None),
        }
    }
}

/// A running server. Dropping it stops the server.
pub struct TestServer {
    addr: SocketAddr,
    credentials: Credentials,
    fake_clock: Option<Arc<FakeClock>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    connection: Mutex<Option<RawClient>>,
}

impl TestServer {
    /// A server with the memory engine, the emulator's account and the system clock.
    pub fn start() -> TestServer {
        TestServer::options().start()
    }

    pub fn options() -> Options {
        Options::default()
    }

    /// The external server, with the emulator's account emptied.
    fn elsewhere(addr: SocketAddr) -> TestServer {
        assert!(!IS_TAKEN.swap(true, Ordering::SeqCst), "{NEEDS_ITS_OWN}");
        println!("{ASKS_ELSEWHERE} {addr}");
        let credentials = Credentials::emulator();
        let connection = Mutex::new(None);
        let server = TestServer { addr, credentials, fake_clock: None, stop: None, thread: None, connection };
        let tables = server.send(Request::get("/Tables")).expect(200).json();
        for table in tables["value"].as_array().into_iter().flatten() {
            let name = table["TableName"].as_str().unwrap_or_default();
            server.send(Request::delete(&format!("/Tables('{name}')"))).expect(204);
        }
        let nothing = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
        let properties = Request::put("/?restype=service&comp=properties").body("application/xml", nothing);
        server.send(properties).expect(202);
        server
    }

    /// A running server that already has this table.
    pub fn with_table(table: &str) -> TestServer {
        let server = TestServer::start();
        server.create_table(table);
        server
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// `http://HOST:PORT/ACCOUNT`, the form that links have.
    pub fn base(&self) -> String {
        format!("http://{}/{}", self.addr, self.credentials.account)
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
        request.to_bytes(self.addr, &self.credentials, self.now())
    }

    /// A new connection.
    pub fn connect(&self) -> RawClient {
        RawClient::connect(self.addr).expect("the server accepts a connection")
    }

    /// Sends over a kept-alive connection, or a new one if the server has closed it.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        let bytes = self.bytes_of(&request);
        let mut kept = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut client) = kept.take()
            && let Ok(response) = client.exchange(&bytes)
        {
            keep(&mut kept, client, &response);
            return response;
        }
        let mut client = self.connect();
        match client.exchange(&bytes) {
            Ok(response) => {
                keep(&mut kept, client, &response);
                response
            }
            Err(error) => panic!("no answer to {} {}: {error}", request.method, request.target),
        }
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
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = None;
        match self.thread.take() {
            Some(thread) => drop(thread.join()),
            None => IS_TAKEN.store(false, Ordering::SeqCst),
        }
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
