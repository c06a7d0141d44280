//! A server with a table, clients for it, a transport that loses answers, and the entities of the tests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lazulite_client::{
    ClientBuilder, DynamicEntity, Entity, HttpOptions, HttpTransport, RetryPolicy, Sending, TableClient,
    Transport, TransportError,
};
use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, TestServer};

/// The table of every test.
pub const TABLE: &str = "people";

/// A server with an empty table.
pub fn server() -> TestServer {
    TestServer::with_table(TABLE)
}

/// A server of our own with an empty table, for what only Lazulite does.
pub fn own_server() -> TestServer {
    let server = TestServer::options().own().start();
    server.create_table(TABLE);
    server
}

pub fn builder(server: &TestServer) -> ClientBuilder {
    let endpoint = server.base();
    let text = format!("AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};TableEndpoint={endpoint}");
    let retry = RetryPolicy::default().delay_first(Duration::from_millis(1));
    ClientBuilder::from_connection_string(&text).unwrap().retry(retry)
}

pub fn table(server: &TestServer) -> TableClient {
    builder(server).tables().unwrap().table(TABLE).unwrap()
}

/// What happens to a write.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fault {
    /// Nothing.
    None,
    /// The server does it, and its answer is lost.
    LoseAnswer,
    /// The server never sees it, but the client cannot know.
    LoseRequest,
    /// The server does it and says 500.
    FailAfterwards,
    /// The connection cannot be made.
    Unsent,
}

/// Sends over HTTP. Each write meets the next fault of the list; reads meet none.
pub struct Faulty {
    http: HttpTransport,
    faults: Mutex<VecDeque<Fault>>,
    /// Method and path of all requests.
    seen: Mutex<Vec<String>>,
    /// Called after a write whose answer is lost, before the client hears of it.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Faulty {
    pub fn new(faults: &[Fault]) -> Arc<Faulty> {
        Arc::new(Faulty {
            http: HttpTransport::new(HttpOptions::default()),
            faults: Mutex::new(faults.iter().copied().collect()),
            seen: Mutex::default(),
            meanwhile: Mutex::default(),
        })
    }

    pub fn meanwhile(&self, act: impl FnOnce() + Send + 'static) {
        *self.meanwhile.lock().unwrap() = Some(Box::new(act));
    }

    /// The methods of all requests, in order.
    pub fn methods(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    }
}

impl Transport for Faulty {
    fn send(&self, request: http::Request<Bytes>) -> Sending<'_> {
        self.seen.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
        let fault = match *request.method() {
            http::Method::GET => Fault::None,
            _ => self.faults.lock().unwrap().pop_front().unwrap_or(Fault::None),
        };
        Box::pin(async move {
            match fault {
                Fault::None => return self.http.send(request).await,
                Fault::Unsent => return Err(TransportError::unsent("no route")),
                Fault::LoseRequest => {}
                Fault::LoseAnswer | Fault::FailAfterwards => {
                    self.http.send(request).await?;
                }
            }
            let meanwhile = self.meanwhile.lock().unwrap().take();
            if let Some(act) = meanwhile {
                act();
            }
            if fault == Fault::FailAfterwards {
                let answer = http::Response::builder().status(500).body(Bytes::new());
                return Ok(answer.expect("a response"));
            }
            Err(TransportError::lost("the connection broke"))
        })
    }
}

pub fn faulty_table(server: &TestServer, faults: &[Fault]) -> (TableClient, Arc<Faulty>) {
    let transport = Faulty::new(faults);
    let table = builder(server).transport(transport.clone()).tables().unwrap().table(TABLE).unwrap();
    (table, transport)
}

/// A struct that keeps its ETag.
#[derive(Entity, Clone, PartialEq, Debug)]
pub struct Person {
    #[entity(partition_key)]
    pub team: String,
    #[entity(row_key)]
    pub name: String,
    pub age: i32,
    pub email: Option<String>,
    #[entity(etag)]
    pub etag: Option<String>,
}

pub fn person(team: &str, name: &str, age: i32) -> Person {
    Person { team: team.to_owned(), name: name.to_owned(), age, email: None, etag: None }
}

/// A smaller struct of the same rows.
#[derive(Entity, Clone, PartialEq, Debug)]
pub struct PersonAge {
    #[entity(partition_key)]
    pub team: String,
    #[entity(row_key)]
    pub name: String,
    pub age: i32,
}

pub fn dynamic(partition_key: &str, row_key: &str, age: i32) -> DynamicEntity {
    DynamicEntity::new(partition_key, row_key).with("age", age).unwrap()
}

/// Keys that are legal and awkward.
pub const AWKWARD: [&str; 14] = [
    "",
    "'",
    "O'Brien",
    "a b",
    " leading and trailing ",
    "ü",
    "100%",
    "%27",
    "a%2Fb",
    "a+b&c=d",
    "..",
    LIKE_AN_ADDRESS,
    "\"quoted\"",
    "日本\u{1F600}",
];

/// A key with the marks that end a key in an address.
pub const LIKE_AN_ADDRESS: &str = "(x),RowKey='y'";
