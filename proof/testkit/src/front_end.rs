//! A server inside this process, on free ports with real sockets: what a [`crate::TestServer`] has one of, or two.
//!
//! Promises: it stops when it is dropped. Leaves to others: who sends what to it.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use blobs::{BlobOptions, BlobService};
use contents::ContentStore;
use engine::Engine;
use engine::env::Clock;
use engine::memory::MemoryEngine;
use queues::QueueService;
use server::{Binding, BlobHttp, Front, FrontConfig, QueueHttp, ScanRule, TableHttp, Watch};
use tables::TableService;
use tokio::sync::watch;

/// Where a server keeps everything.
#[derive(Clone)]
pub(crate) enum Store {
    Memory,
    Given(Arc<dyn Engine>),
    #[cfg(feature = "postgres")]
    Postgres {
        url: String,
        schema: String,
    },
}

/// What a server needs to start.
pub(crate) struct Start {
    pub store: Store,
    /// Of blobs. Several servers have the same.
    pub contents: Arc<dyn ContentStore>,
    pub blob_options: BlobOptions,
    pub clock: Arc<dyn Clock>,
    pub config: FrontConfig,
    pub watch: Watch,
    pub scan_rule: Option<ScanRule>,
}

pub(crate) struct FrontEnd {
    pub addr: SocketAddr,
    pub queue_addr: SocketAddr,
    pub blob_addr: SocketAddr,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FrontEnd {
    pub fn start(start: Start) -> FrontEnd {
        let (addr_sender, addr_receiver) = mpsc::channel();
        let (stop, stopped) = watch::channel(());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime starts");
            runtime.block_on(run(start, addr_sender, stopped));
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        let Addresses { tables, queues, blobs } = addr_receiver.recv().expect("the server starts");
        FrontEnd {
            addr: tables,
            queue_addr: queues,
            blob_addr: blobs,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Asks it to stop, and does not wait.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Where the services of a server listen.
struct Addresses {
    tables: SocketAddr,
    queues: SocketAddr,
    blobs: SocketAddr,
}

async fn run(start: Start, addresses: mpsc::Sender<Addresses>, stopped: watch::Receiver<()>) {
    let Start { store, contents, blob_options, clock, config, watch, scan_rule } = start;
    let is_shared = store.is_shared();
    let engine = store.open(&clock).await;
    let mut tables = TableService::new(engine.clone(), clock.clone());
    let mut system_tables = TableService::system(engine.clone(), clock.clone());
    let mut queues = QueueService::new(engine.clone(), clock.clone());
    let mut blobs = BlobService::new(engine.clone(), contents.clone(), clock.clone(), blob_options);
    if is_shared {
        tables = tables.sharing_its_engine();
        system_tables = system_tables.sharing_its_engine();
        queues = queues.sharing_its_engine();
        blobs = blobs.sharing_its_engine();
    }
    let queues = Arc::new(queues);
    let mut tables = TableHttp::new(tables).with_outbox(queues.clone()).with_system_tables(system_tables);
    if let Some(rule) = scan_rule {
        tables = tables.refusing_scans(rule);
    }
    let queues = QueueHttp::new(queues);
    let front = Front::watched(config, clock, watch);
    let bound = server::bind(&front, binding("table.core.windows.net"), tables).await;
    let tables = bound.expect("a free port can be bound");
    let bound = server::bind(&front, binding("queue.core.windows.net"), queues).await;
    let queues = bound.expect("a free port can be bound");
    let bound = server::bind(&front, binding("blob.core.windows.net"), BlobHttp::new(blobs)).await;
    let blobs = bound.expect("a free port can be bound");
    let listening =
        Addresses { tables: tables.local_addr(), queues: queues.local_addr(), blobs: blobs.local_addr() };
    addresses.send(listening).expect("the test waits for the addresses");
    let shutdown = || {
        let mut stopped = stopped.clone();
        async move {
            let _ = stopped.changed().await;
        }
    };
    tokio::join!(tables.run(shutdown()), queues.run(shutdown()), blobs.run(shutdown()));
    contents.close().await;
    engine.close().await;
}

impl Store {
    /// Whether several servers can use it at once.
    pub fn is_shared(&self) -> bool {
        match self {
            Store::Memory | Store::Given(_) => false,
            #[cfg(feature = "postgres")]
            Store::Postgres { .. } => true,
        }
    }

    async fn open(self, clock: &Arc<dyn Clock>) -> Arc<dyn Engine> {
        match self {
            Store::Memory => Arc::new(MemoryEngine::new(server::FAMILIES, clock.clone())),
            Store::Given(engine) => engine,
            #[cfg(feature = "postgres")]
            Store::Postgres { url, schema } => {
                let mut options =
                    engine_postgres::PostgresOptions::new(&url, server::FAMILIES, clock.clone());
                options.schema = schema;
                let connected = engine_postgres::PostgresEngine::connect(options).await;
                Arc::new(connected.expect("the database of the tests answers"))
            }
        }
    }
}

/// A free port on this machine.
fn binding(host_suffix: &str) -> Binding {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Binding { listen, tls: None, host_suffixes: vec![host_suffix.to_owned()] }
}
