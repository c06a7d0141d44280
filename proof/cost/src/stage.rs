//! The whole server in memory, on this thread, without sockets.
//!
//! Leaves to others: the requests (`paths.rs`).

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use blobs::{BlobOptions, BlobService};
use bytes::Bytes;
use contents::MemoryContents;
use engine::env::{Clock, FakeClock, UNIX_EPOCH_TICKS};
use engine::memory::MemoryEngine;
use http::Response;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use observe::{Advisor, Observer};
use queues::QueueService;
use server::{
    Accounts, Analytics, Binding, BlobHttp, Current, Front, FrontConfig, Limits, LogRules, QueueHttp,
    Service, TableHttp, Watch,
};
use tables::TableService;
use testkit::{Batch, Credentials, Request, entity_json, message_xml};

use crate::client::Client;

pub const TABLE: &str = "entities";
pub const PARTITION: &str = "p";
pub const QUEUE: &str = "messages-to-take";
/// A container with one blob of [`BLOB_BYTES`], which lies in its row.
pub const CONTAINER: &str = "files";
pub const BLOB_BYTES: usize = 4096;
const CONTENT_BYTES_MAX: u64 = 1024 * 1024;
pub const ENTITY_COUNT: usize = 1000;
const BATCH_OPERATION_COUNT: usize = 100;
/// The value of `Host`. Nothing listens there.
const HOST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10002);
pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub struct Stage {
    clock: Arc<FakeClock>,
    pub client: Client,
    /// A connection to the Queue service.
    pub queue_client: Client,
    /// A connection to the Blob service.
    pub blob_client: Client,
}

impl Stage {
    /// A server with [`ENTITY_COUNT`] entities in [`TABLE`], and as many messages in [`QUEUE`].
    pub async fn new() -> Stage {
        Stage::with(Some(Arc::new(Advisor::default()))).await
    }

    /// The same without an advisor, to know what it costs.
    pub async fn unadvised() -> Stage {
        Stage::with(None).await
    }

    async fn with(advisor: Option<Arc<Advisor>>) -> Stage {
        let clock = Arc::new(FakeClock::default());
        let engine = Arc::new(MemoryEngine::new(server::FAMILIES, clock.clone()));
        let service = TableService::new(engine.clone(), clock.clone());
        let queues = QueueHttp::new(Arc::new(QueueService::new(engine.clone(), clock.clone())));
        let contents = Arc::new(MemoryContents::new(CONTENT_BYTES_MAX, Arc::new(|| 0)));
        let blobs = BlobService::new(engine.clone(), contents, clock.clone(), BlobOptions::default());
        let accounts = Arc::new(Current::new(Accounts::emulator()));
        // As in the binary, every request is counted for Storage Analytics and seen by the advisor.
        let analytics = Analytics::new(engine, clock.clone(), accounts.clone());
        let mut observers: Vec<Arc<dyn Observer>> = vec![analytics.book()];
        observers.extend(advisor.map(|advisor| advisor as Arc<dyn Observer>));
        let watch = Watch::new(Arc::default(), observers, LogRules::default());
        let config = FrontConfig {
            accounts,
            tokens: None,
            is_behind_tls_proxy: false,
            limits: Limits::default(),
            targets: None,
        };
        let front = Front::watched(config, clock.clone(), watch);
        let client = connect(&front, TableHttp::new(service)).await;
        let queue_client = connect(&front, queues).await;
        let blob_client = connect(&front, BlobHttp::new(blobs)).await;
        let mut stage = Stage { clock, client, queue_client, blob_client };
        stage.fill().await;
        stage
    }

    async fn fill(&mut self) {
        let table = Request::post("/Tables").json(&format!("{{\"TableName\":\"{TABLE}\"}}"));
        self.send(&table, 201).await;
        let rows: Vec<usize> = (0..ENTITY_COUNT).collect();
        for some in rows.chunks(BATCH_OPERATION_COUNT) {
            let batch = some
                .iter()
                .fold(Batch::new(), |batch, row| batch.insert(TABLE, &entity(&row_key(*row), *row)));
            self.send(&batch.request(), 202).await;
        }
        let create = self.queue_bytes_of(&Request::put(&format!("/{QUEUE}")));
        self.queue_client.exchange(&create, 201).await;
        let put = self.queue_bytes_of(&put_message());
        for _ in 0..ENTITY_COUNT {
            self.queue_client.exchange(&put, 201).await;
        }
    }

    /// Creates [`CONTAINER`] with one blob. Only for paths that use it, so that the others cost what they did.
    pub async fn fill_container(&mut self) {
        let create =
            self.blob_bytes_of(&Request::put(&format!("/{CONTAINER}")).query("restype", "container"));
        self.blob_client.exchange(&create, 201).await;
        let put = self.blob_bytes_of(&put_blob());
        self.blob_client.exchange(&put, 201).await;
    }

    async fn send(&mut self, request: &Request, status: u16) {
        let bytes = self.bytes_of(request);
        self.client.exchange(&bytes, status).await;
    }

    /// Signed for this server's clock, which stands still, so the signature never expires.
    pub fn bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_bytes(HOST, &Credentials::emulator(), self.now())
    }

    /// The same, for the Queue service.
    pub fn queue_bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_queue_bytes(HOST, &Credentials::emulator(), self.now())
    }

    /// The same, for the Blob service.
    pub fn blob_bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_blob_bytes(HOST, &Credentials::emulator(), self.now())
    }

    pub fn now(&self) -> SystemTime {
        let since_epoch = self.clock.now_ticks() - UNIX_EPOCH_TICKS;
        SystemTime::UNIX_EPOCH + Duration::from_nanos(since_epoch * 100)
    }
}

async fn connect(front: &Arc<Front>, service: impl Service) -> Client {
    let binding = Binding { listen: SocketAddr::new(PEER, 0), tls: None, host_suffixes: Vec::new() };
    let server = server::bind(front, binding, service).await.expect("a free port can be bound");
    Client::new(|stream| server.serve_stream(stream, PEER))
}

/// A message of medium size.
pub fn put_message() -> Request {
    let text = "message ".repeat(32);
    Request::post(&format!("/{QUEUE}/messages")).xml(&message_xml(&text))
}

/// The blob's address.
pub fn blob_path() -> String {
    format!("/{CONTAINER}/2026/report.bin")
}

pub fn put_blob() -> Request {
    Request::put(&blob_path()).header("x-ms-blob-type", "BlockBlob").bytes([b'x'; BLOB_BYTES])
}

/// Hyper alone, without our server: the lower bound.
pub fn bare() -> Client {
    let hello = service_fn(async |_| {
        let body = Full::new(Bytes::from_static(b"Hello, World!"));
        Ok::<_, Infallible>(Response::new(body))
    });
    Client::new(|stream| async move {
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), hello).await;
    })
}

pub fn row_key(row: usize) -> String {
    format!("{row:016}")
}

/// A medium-sized entity: eight properties of six types. `Score` is 0 to 99, each equally often.
pub fn entity(row_key: &str, row: usize) -> String {
    let members = format!(
        "\"Name\":\"Ada Lovelace\",\"Email\":\"ada.lovelace@example.com\",\"Age\":36,\"Active\":true,\
         \"Score\":{},\"Balance\":1234.56,\
         \"Visits\":\"9007199254740993\",\"Visits@odata.type\":\"Edm.Int64\",\
         \"Joined\":\"2024-02-29T12:34:56.789Z\",\"Joined@odata.type\":\"Edm.DateTime\"",
        row % 100
    );
    entity_json(PARTITION, row_key, &members)
}
