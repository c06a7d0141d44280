//! A server with both services and an admin port, until it is dropped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use engine::Engine;
use engine::env::{Clock, SystemClock};
use engine::memory::MemoryEngine;
use observe::{Advice, Metrics, Observer};
use queues::QueueService;
use server::{
    Accounts, Admin, AdminConfig, AdminDoor, Binding, Current, Front, FrontConfig, Handler, Limits, LogRules,
    QueueHttp, ServedService, Server, TableHttp, Watch,
};
use tables::TableService;
use testkit::{Credentials, RawClient, Request, Response, system_now};
use tokio::sync::oneshot;

#[derive(Default)]
pub struct Options {
    pub engine: Option<Arc<dyn Engine>>,
    pub token: Option<String>,
    /// The services count as reached by HTTPS, the admin port does not.
    pub is_behind_tls_proxy: bool,
    pub rules: LogRules,
    pub observers: Vec<Arc<dyn Observer>>,
    pub advice: Option<Arc<dyn Advice>>,
    /// Where the admin port is; anywhere otherwise.
    pub door: Option<AdminDoor>,
}

pub struct House {
    pub table: SocketAddr,
    pub queue: SocketAddr,
    pub admin_addr: SocketAddr,
    pub admin: Arc<Admin>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

pub fn start(options: Options) -> House {
    let (opened, started) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        runtime.block_on(async move {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            let memory = || Arc::new(MemoryEngine::new(server::FAMILIES, clock.clone())) as Arc<dyn Engine>;
            let engine = options.engine.unwrap_or_else(memory);
            let config = FrontConfig {
                accounts: Arc::new(Current::new(Accounts::emulator())),
                tokens: None,
                is_behind_tls_proxy: options.is_behind_tls_proxy,
                limits: Limits::default(),
                targets: None,
            };
            let watch = Watch::new(Arc::new(Metrics::new()), options.observers, options.rules);
            let front = Front::watched(config, clock.clone(), watch);
            let tables = TableHttp::new(TableService::new(engine.clone(), clock.clone()));
            let table = server::bind(&front, binding(), tables).await.unwrap();
            let queues = QueueHttp::new(Arc::new(QueueService::new(engine.clone(), clock.clone())));
            let queue = server::bind(&front, binding(), queues).await.unwrap();
            let door = match options.door {
                Some(door) => door,
                None => any_door().await,
            };
            let config = AdminConfig {
                door,
                token: options.token,
                version: "1.2.3",
                location: "memory".to_owned(),
                engine,
                services: vec![served("table", "Table", &table), served("queue", "Queue", &queue)],
                advice: options.advice,
                resident_bytes: || Some(4096),
            };
            let admin = server::bind_admin(&front, config).unwrap();
            let addresses = (table.local_addr(), queue.local_addr(), admin.local_addr());
            opened.send((addresses, admin.admin())).unwrap();
            tokio::select! {
                () = table.run(std::future::pending()) => {}
                () = queue.run(std::future::pending()) => {}
                () = admin.run(std::future::pending()) => {}
                _ = stopped => {}
            }
        });
    });
    let ((table, queue, admin_addr), admin) = started.recv().unwrap();
    House { table, queue, admin_addr, admin, stop: Some(stop), thread: Some(thread) }
}

pub async fn any_door() -> AdminDoor {
    AdminDoor::open(SocketAddr::from(([127, 0, 0, 1], 0)), None, Limits::default()).await.unwrap()
}

fn binding() -> Binding {
    Binding { listen: SocketAddr::from(([127, 0, 0, 1], 0)), tls: None, host_suffixes: Vec::new() }
}

fn served<H: Handler>(label: &'static str, name: &'static str, server: &Server<H>) -> ServedService {
    ServedService { label, name, address: server.local_addr(), is_https: false, road: server.handler() }
}

impl House {
    pub fn tables(&self, request: Request) -> Response {
        let bytes = request.to_bytes(self.table, &Credentials::emulator(), system_now());
        RawClient::connect(self.table).unwrap().exchange(&bytes).unwrap()
    }

    pub fn queues(&self, request: Request) -> Response {
        let bytes = request.to_queue_bytes(self.queue, &Credentials::emulator(), system_now());
        RawClient::connect(self.queue).unwrap().exchange(&bytes).unwrap().of_queue()
    }

    /// Asks the admin port, with these headers besides `Host`.
    pub fn ask(&self, method: &str, path: &str, headers: &str) -> Response {
        let host = if headers.to_lowercase().contains("host:") { String::new() } else { self.host_line() };
        let text = format!("{method} {path} HTTP/1.1\r\n{host}{headers}\r\n");
        RawClient::connect(self.admin_addr).unwrap().exchange(text.as_bytes()).unwrap()
    }

    pub fn get(&self, path: &str) -> Response {
        self.ask("GET", path, "")
    }

    fn host_line(&self) -> String {
        format!("Host: {}\r\n", self.admin_addr)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().unwrap().join();
    }
}
