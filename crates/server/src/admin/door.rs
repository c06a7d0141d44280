//! The admin port from its first moment: until the store is open it lives and is not ready, then the admin answers.
//!
//! Promises: it is one socket all along, so nobody who asks in between is refused. Opening a store may take a while: what
//! was written since the tree was last brought up to date is read again.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::env::{Clock, SystemClock};
use protocol::common::DateTime;
use tls::Tls;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Admin, text};
use crate::front::respond;
use crate::http::connections::Connections;
use crate::http::limits::Limits;
use crate::http::listener::{Handler, Incoming, Server};
use crate::http::memory_pool::{Holder, MemoryPool, Reservation};
use crate::http::response::{HeaderList, Response};

/// A page, a monitor or two, and some to spare.
const CONNECTION_COUNT_MAX: usize = 256;
/// Shorter than for the services: who opens connections and sends nothing must not keep monitors out.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// For the heads of all requests.
const HEAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A port that says "not yet" until it is given an admin.
pub struct AdminDoor {
    port: Arc<Port>,
    local_addr: SocketAddr,
    is_https: bool,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl AdminDoor {
    /// Takes the port, and answers on it from now on.
    pub async fn open(listen: SocketAddr, tls: Option<Tls>, limits: Limits) -> io::Result<AdminDoor> {
        let is_https = tls.is_some();
        let port = Port {
            limits: Limits {
                connection_count_max: CONNECTION_COUNT_MAX,
                header_time_max: HEADER_TIME_MAX.min(limits.header_time_max),
                ..limits
            },
            connections: Connections::new(CONNECTION_COUNT_MAX),
            head_memory: MemoryPool::new(HEAD_BYTES_MAX),
            clock: SystemClock::new(),
            admin: OnceLock::new(),
        };
        let server = Server::bind(listen, tls, port).await?;
        let (port, local_addr) = (server.handler(), server.local_addr());
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.run(async {
            // Nothing is ever sent: the other end is dropped.
            let _ = stopped.await;
        }));
        Ok(AdminDoor { port, local_addr, is_https, stop, serving })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    pub(super) fn is_https(&self) -> bool {
        self.is_https
    }

    /// From now on this one answers.
    pub(super) fn give(self, admin: Admin) -> AdminServer {
        let admin = self.port.admin.get_or_init(|| Arc::new(admin)).clone();
        AdminServer { admin, local_addr: self.local_addr, stop: self.stop, serving: self.serving }
    }
}

/// The admin port, serving.
pub struct AdminServer {
    admin: Arc<Admin>,
    local_addr: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl AdminServer {
    pub fn admin(&self) -> Arc<Admin> {
        self.admin.clone()
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown` completes, then finishes open requests.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        drop(self.stop);
        if let Err(error) = self.serving.await {
            log::error!("the admin port ended: {error}");
        }
    }
}

struct Port {
    limits: Limits,
    connections: Arc<Connections>,
    head_memory: MemoryPool,
    /// For answers without an admin.
    clock: SystemClock,
    admin: OnceLock<Arc<Admin>>,
}

impl Handler for Port {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    fn head_memory(&self, _: IpAddr) -> Reservation {
        self.head_memory.small(Holder { account: 0, caller: 0 })
    }

    fn add_date(&self, headers: &mut HeaderList) {
        respond::add_date(headers, DateTime::from_ticks(self.clock.now_ticks()));
    }

    async fn handle(&self, peer: IpAddr, request: Incoming<'_>) -> Response {
        if let Some(admin) = self.admin.get() {
            return admin.handle(peer, request).await;
        }
        let mut response = match request.parts.path() {
            "/healthz" => text(200, "ok"),
            _ => text(503, "the store is being opened"),
        };
        self.add_date(response.head.headers_mut());
        response
    }
}
